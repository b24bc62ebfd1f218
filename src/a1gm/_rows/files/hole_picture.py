"""Where the holes of a table lie, as a small picture."""

from __future__ import annotations

import numpy as np

from a1gm._base.types import Floats
from a1gm._rows.files.table_files import TableFiles


def hole_shares(files: TableFiles, height: int, width: int) -> Floats:
    """Share of missing cells in each of some bands of rows and columns.

    The files are read again; a pass must have told how many rows they have.
    """
    n_rows, n_cols = files.n_rows or 0, files.n_cols
    height, width = min(height, n_rows), min(width, n_cols)
    left = np.arange(width) * n_cols // width
    holes, cells = np.zeros((height, width)), np.zeros((height, 1))
    for rows, values in files.blocks():
        missing = np.add.reduceat(np.isnan(values), left, axis=1, dtype=np.int64)
        band = np.arange(rows.start, rows.stop) * height // n_rows
        top = np.flatnonzero(np.diff(band, prepend=-1))
        holes[band[top]] += np.add.reduceat(missing, top, axis=0)
        cells[:, 0] += np.bincount(band, minlength=height)
    shares: Floats = holes / (cells * np.diff(left, append=n_cols))
    return shares
