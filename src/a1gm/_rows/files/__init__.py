"""Table files, one or many, as rows of numbers.

    origin ──► csv, columnar ──► table_file ──► table_files
    (bytes)    (record batches)  (pieces of     (several files:
                                  numbers)       the RowSource)

``options`` says how to read. Every module needs pyarrow, the extra ``cli``, and imports
it when used.
"""

from __future__ import annotations

from a1gm._rows.files.find import PathOrPaths
from a1gm._rows.files.options import TableOptions
from a1gm._rows.files.piece import Piece
from a1gm._rows.files.table_file import Progress, TableFile
from a1gm._rows.files.table_files import TableFiles

__all__ = [
    "PathOrPaths",
    "Piece",
    "Progress",
    "TableFile",
    "TableFiles",
    "TableOptions",
]
