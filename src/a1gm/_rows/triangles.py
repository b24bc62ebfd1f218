"""A Triangle of chainladder as the triangles it holds."""

from __future__ import annotations

from typing import Any

import numpy as np

from a1gm._rows.rows import Rows


def is_triangle(given: Any) -> bool:
    """Whether this is a Triangle; chainladder is not loaded for this."""
    kind = type(given)
    return kind.__name__ == "Triangle" and kind.__module__.startswith("chainladder")


def read_triangles(
    triangle: Any,
) -> tuple[list[tuple[Any, ...]], tuple[Any, ...], list[Rows]]:
    """Keys, what their parts are called, and the increments of every triangle.

    Cells before the valuation are known, 0 where chainladder holds NaN for it; the
    others are missing.
    """
    given = triangle.cum_to_incr() if triangle.is_cumulative else triangle
    given = given.set_backend("numpy")
    known = np.asarray(given.nan_triangle) == 1.0
    cells = np.asarray(given.values, np.float64)
    cells = np.where(known, np.nan_to_num(cells), np.nan)
    origins, ages = given.origin, list(given.development)
    names = [tuple(name) for name in given.index.to_numpy().tolist()]
    keys = [(*name, column) for name in names for column in given.columns]
    sources = [
        Rows(
            [(table, None, None, 0)],
            len(origins),
            len(ages),
            row_labels=origins,
            col_labels=ages,
            backend="pandas",
        )
        for table in cells.reshape(-1, *cells.shape[2:])
    ]
    return keys, (*given.key_labels, "column"), sources
