"""Any table that a user may have becomes a checked `Rows`.

anything ──► read_input ──► Rows (arrays, frames)  ──► the kernel
                            SparseRows (SciPy)     ──► the kernel
"""

from __future__ import annotations

from a1gm._rows.read import AnyRows, read_input, same_cells
from a1gm._rows.rows import Rows
from a1gm._rows.sparse import SparseRows

__all__ = ["AnyRows", "Rows", "SparseRows", "read_input", "same_cells"]
