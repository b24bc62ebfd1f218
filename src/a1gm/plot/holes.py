"""Where the holes of a table are."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from a1gm._base.types import Absent, Bools, Ints, SmallInts
from a1gm._rows import read_input
from a1gm.plot.axes import HOLE, averaged, drawing, name_table, values_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["pattern", "structure_order"]


def pattern(
    X: Any,
    *,
    absent: Absent | None = None,
    reorder: bool = False,
    ax: Axes | None = None,
) -> Axes:
    """Draw which cells of a table are missing.

    Parameters
    ----------
    X : table of shape (n_rows, n_cols)
        An array or a frame of any kind; NaN, null or a mask marks a missing cell.
    absent : {"missing", "zero"}, optional
        For SciPy sparse tables, what an absent cell is.
    reorder : bool
        Whether to sort rows and columns so that grids, staircases and blocks show.
    ax : matplotlib.axes.Axes, optional
        Where to draw. Default: a new figure.

    Returns
    -------
    matplotlib.axes.Axes
        A large table is averaged down to a few hundred pixels: the darker, the more
        cells are missing.

    Examples
    --------
    >>> import matplotlib.pyplot as plt
    >>> import numpy as np, a1gm
    >>> X = np.ones((12, 8))
    >>> X[np.ix_([1, 4, 5, 9], [0, 3, 6])] = np.nan
    >>> _, axes = plt.subplots(1, 2, figsize=(7, 3), layout="constrained")
    >>> found = a1gm.plot.pattern(X, ax=axes[0])
    >>> sorted_ = a1gm.plot.pattern(X, reorder=True, ax=axes[1])
    >>> found.get_title()
    'Missing: 12 of 96 cells (12.5 %)'
    """
    from matplotlib.colors import LinearSegmentedColormap

    source = read_input(X, absent=absent)
    missing = np.isnan(values_of(source))
    if reorder:
        rows, columns = structure_order(missing)
        missing = missing[rows][:, columns]
    with drawing(ax) as (axes,):
        axes.imshow(
            averaged(missing),
            cmap=LinearSegmentedColormap.from_list("holes", [f"{HOLE}00", f"{HOLE}ff"]),
            vmin=0,
            vmax=1,
            aspect="auto",
            interpolation="nearest",
            extent=(0, missing.shape[1], missing.shape[0], 0),
        )
        name_table(axes, source, ", reordered" * reorder)
        n, share = int(missing.sum()), 100.0 * missing.mean()
        axes.set_title(f"Missing: {n:,} of {missing.size:,} cells ({share:.1f} %)")
        axes.spines[:].set_visible(True)
    return axes


def structure_order(
    missing: Bools,
    row_block: SmallInts | None = None,
    col_block: SmallInts | None = None,
) -> tuple[Ints, Ints]:
    """Order rows and columns so that the structure of the holes shows.

    By block, then fewest holes first, then equal patterns together: grids become
    rectangles, staircases stairs, blocks squares on the diagonal.

    Parameters
    ----------
    missing : ndarray of bool, shape (n_rows, n_cols)
        True where a cell is missing.
    row_block, col_block : ndarray of int, optional
        Identifiability blocks of a fit.

    Returns
    -------
    tuple of ndarray of int
        Row order and column order.

    Examples
    --------
    >>> import matplotlib.pyplot as plt
    >>> import numpy as np, a1gm
    >>> X = np.ones((6, 5))
    >>> for row, n_missing in enumerate([2, 0, 4, 1, 3, 0]):
    ...     X[row, [1, 3, 0, 4][:n_missing]] = np.nan
    >>> rows, columns = a1gm.plot.structure_order(np.isnan(X))
    >>> rows.tolist(), columns.tolist()
    ([1, 5, 3, 0, 4, 2], [2, 4, 0, 3, 1])
    >>> _, axes = plt.subplots(1, 2, figsize=(7, 3), layout="constrained")
    >>> found = a1gm.plot.pattern(X, ax=axes[0])
    >>> ordered = a1gm.plot.pattern(X[rows][:, columns], ax=axes[1])
    """
    columns = _line_order(missing.T, col_block)
    rows = _line_order(missing[:, columns], row_block)
    return rows, columns


def _line_order(missing: Bools, block: SmallInts | None) -> Ints:
    # Patterns as whole numbers, 64 cells each: equal lines have equal numbers.
    bits = np.packbits(missing, axis=1)
    bits = np.pad(bits, ((0, 0), (0, -bits.shape[1] % 8)))
    words = np.ascontiguousarray(bits).view(np.uint64)
    blocks = np.zeros(len(missing), dtype=np.int32) if block is None else block
    # Lines without any observed cell belong to no block (-1) and come last.
    blocks = np.where(blocks < 0, np.iinfo(np.int32).max, blocks)
    return np.lexsort((*words.T, missing.sum(axis=1), blocks))
