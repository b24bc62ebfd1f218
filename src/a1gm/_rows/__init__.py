"""Any table that a user may have becomes a checked `Source`.

anything ──► read_input ──► Source (arrays, frames)  ──► the kernel
                            SparseSource (SciPy)     ──► the kernel
"""

from __future__ import annotations

from a1gm._rows.dense import Source
from a1gm._rows.read import AnySource, read_input, same_cells
from a1gm._rows.sparse import SparseSource

__all__ = ["AnySource", "Source", "SparseSource", "read_input", "same_cells"]
