"""Table files: read in blocks, written whole or not at all.

    origin ──► source ──► reader ──► (the library) ──► writers ──► atomic
    (bytes)    (batches)  (numbers)                    (bytes)     (rename)

Every module needs pyarrow, the extra ``cli``, and imports it when used.
"""

from __future__ import annotations

from a1gm.io.atomic import atomic_folder, atomic_write, check_target
from a1gm.io.options import TableOptions
from a1gm.io.reader import Block, TableReader, fold_blocks, open_table
from a1gm.io.writers import open_writer

__all__ = [
    "Block",
    "TableOptions",
    "TableReader",
    "atomic_folder",
    "atomic_write",
    "check_target",
    "fold_blocks",
    "open_table",
    "open_writer",
]
