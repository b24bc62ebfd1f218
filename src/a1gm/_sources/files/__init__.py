"""Table files: read in pieces.

    origin ──► source ──► reader
    (bytes)    (batches)  (numbers)

Every module needs pyarrow, the extra ``cli``, and imports it when used.
"""

from __future__ import annotations

from a1gm._sources.files.options import TableOptions
from a1gm._sources.files.reader import Block, TableReader, fold_blocks, open_table

__all__ = [
    "Block",
    "TableOptions",
    "TableReader",
    "fold_blocks",
    "open_table",
]
