"""Algorithm 1, A1GM: grow the holes to a grid, move them to a corner, use Theorem 1."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from a1gm._base.types import Bools, Floats, Ints
from a1gm.exceptions import DataError
from a1gm.paper._checks import as_mask, as_table
from a1gm.paper.nmmf import factors_of_zero_x, theorem1_from_sums


@dataclass(frozen=True)
class Grid:
    """The rows and the columns that hold a hole.

    It unpacks to ``rows, columns``, and is true when the holes fill all of
    ``rows × columns``, which is when the paper calls them grid-like.

    Attributes
    ----------
    rows, columns : ndarray of int
        The paper's S1 and S2, increasing, counted from 0.
    n_holes : int
        Number of missing cells, at most ``len(rows) * len(columns)``.
    """

    rows: Ints
    columns: Ints
    n_holes: int

    @property
    def n_holes_grown(self) -> int:
        """Number of missing cells once the holes fill the grid."""
        return len(self.rows) * len(self.columns)

    @property
    def increase_rate(self) -> float:
        """The paper's increase rate; 1 for grid-like holes and for none at all."""
        return self.n_holes_grown / self.n_holes if self.n_holes else 1.0

    def __bool__(self) -> bool:
        return self.n_holes == self.n_holes_grown

    def __iter__(self) -> Iterator[Ints]:
        return iter((self.rows, self.columns))


def grid_like(mask: npt.ArrayLike) -> Grid:
    """Find the rows and columns that hold a hole, and whether they form a grid.

    Parameters
    ----------
    mask : array_like of bool, shape (n_rows, n_columns)
        True where a cell is missing, as ``np.isnan(X)``.

    Returns
    -------
    Grid
        ``rows, columns = grid_like(mask)`` gives S1 and S2;
        ``if grid_like(mask)`` asks whether the holes are exactly S1 × S2, the
        case in which Algorithm 1 is exact.

    Examples
    --------
    >>> import numpy as np
    >>> from a1gm import paper
    >>> mask = np.zeros((4, 5), dtype=bool)
    >>> mask[[1, 3], 2] = True
    >>> bool(paper.grid_like(mask))
    True
    >>> mask[3, 4] = True
    >>> rows, columns = paper.grid_like(mask)
    >>> rows, columns, bool(paper.grid_like(mask))
    (array([1, 3]), array([2, 4]), False)
    """
    holes = as_mask(mask)
    return Grid(
        rows=np.flatnonzero(holes.any(axis=1)),
        columns=np.flatnonzero(holes.any(axis=0)),
        n_holes=int(holes.sum()),
    )


def complete_to_grid(mask: npt.ArrayLike) -> Bools:
    """Grow the holes to the smallest grid that contains them.

    Parameters
    ----------
    mask : array_like of bool, shape (n_rows, n_columns)
        True where a cell is missing.

    Returns
    -------
    ndarray of bool, shape (n_rows, n_columns)
        True on S1 × S2. It has at most the square of the number of holes given.

    Examples
    --------
    >>> from a1gm import paper
    >>> paper.complete_to_grid([[False, True], [True, False]])
    array([[ True,  True],
           [ True,  True]])
    """
    holes = as_mask(mask)
    return np.logical_and.outer(holes.any(axis=1), holes.any(axis=0))


def a1gm(X: npt.ArrayLike) -> tuple[Floats, Floats]:
    """Run Algorithm 1 as published: fast, and approximate off the grid.

    Parameters
    ----------
    X : array_like of shape (n_rows, n_columns)
        Non-negative table; NaN marks a missing cell.

    Returns
    -------
    c : ndarray of shape (n_rows,)
    d : ndarray of shape (n_columns,)
        ``np.outer(c, d)`` is the best rank-1 table when the holes are grid-like.
        Otherwise it is the best one for the cells that are left after the holes
        are grown to a grid: the observed cells inside the grid are not used.

    Raises
    ------
    DataError
        If every row or every column holds a hole: nothing is left to solve from.
        Or if the complete rows and columns meet in zeros only while both have a
        positive cell elsewhere: no minimum exists then. `a1gm.fit` solves these
        tables, and every other one, exactly, or gives the limit.

    See Also
    --------
    a1gm.fit : the global optimum for every pattern of holes.

    References
    ----------
    Ghalamkari & Sugiyama (2022), Fast Rank-1 NMF for Missing Data with KL
    Divergence, AISTATS, Algorithm 1.

    Examples
    --------
    >>> import numpy as np
    >>> from a1gm import paper
    >>> X = np.array([[1.0, 2.0, 3.0], [2.0, 4.0, np.nan], [3.0, 6.0, np.nan]])
    >>> c, d = paper.a1gm(X)
    >>> np.outer(c, d).round(10)
    array([[1., 2., 3.],
           [2., 4., 6.],
           [3., 6., 9.]])
    """
    table = as_table(X)
    return algorithm1(table, np.isnan(table))


def algorithm1(table: Floats, missing: Bools) -> tuple[Floats, Floats]:
    """Run the steps of `a1gm` on a checked table, as benchmarks time them."""
    row_holes = np.asarray(missing.any(axis=1))
    column_holes = np.asarray(missing.any(axis=0))
    if row_holes.all() or column_holes.all():
        raise DataError(
            f"Every {'row' if row_holes.all() else 'column'} of X holds a hole, so "
            "Algorithm 1 has no complete one to start from. Use a1gm.fit(X): it is "
            "exact for every pattern of holes."
        )
    factors = _solve_corner(table, row_holes, column_holes)
    if factors is None:
        raise DataError(
            "Where the complete rows of X cross its complete columns every cell is "
            "zero, but both have a positive cell elsewhere: no minimum exists, for "
            "their factors fit those cells ever better the smaller their product is, "
            "but it cannot be 0. Use a1gm.fit(X): it gives the limit and lists the "
            "cells that have none."
        )
    c, d = np.empty(table.shape[0]), np.empty(table.shape[1])
    c[~row_holes], d[~column_holes], c[row_holes], d[column_holes] = factors
    return c, d


def _solve_corner(
    table: Floats, row_holes: Bools, column_holes: Bools
) -> tuple[Floats, Floats, Floats, Floats] | None:
    """Apply Theorem 1 to ``[[X, Z], [Y, holes]]``; None when no minimum exists.

    Theorem 1 needs sums only, and a swap renames lines without changing a sum: so
    nothing is moved, which halves the time.
    """
    rows, columns = ~row_holes, ~column_holes
    y, z = table[row_holes][:, columns], table[:, column_holes][rows]
    x_columns = (rows.astype(np.float64) @ table)[columns]
    if not x_columns.any():
        return factors_of_zero_x(y, z)
    return theorem1_from_sums(
        float(x_columns.sum()),
        table.sum(axis=1)[rows],
        x_columns + y.sum(axis=0),
        y.sum(axis=1),
        z.sum(axis=0),
    )
