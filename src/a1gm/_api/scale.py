"""``a1gm.scale``: the table nearest to a seed that has given totals."""

from __future__ import annotations

from typing import Any

from a1gm._api.fit import DEFAULT_MAX_ITER, FitOptions
from a1gm._fit.scaled import ScaledTable
from a1gm._fit.totals import scale_matrix, totals_of
from a1gm._rows.frames import names_of
from a1gm._rows.rows import Rows
from a1gm._rows.seed import read_known, read_seed
from a1gm._rows.totals import labelled_totals


def scale(
    seed: Any,
    row_totals: Any = None,
    col_totals: Any = None,
    *,
    known: Any = None,
    tol: float | None = None,
    max_iter: int = DEFAULT_MAX_ITER,
) -> ScaledTable:
    """Scale a table to given totals: IPF, RAS, Furness, raking, Sinkhorn, exactly.

    Of all tables with these totals that are 0 where the seed is, find the one nearest
    to the seed under the Kullback-Leibler divergence.

    Parameters
    ----------
    seed : table of shape (n_rows, n_cols)
        Numbers of at least 0: an array, a frame, or a SciPy sparse table. 0 is a cell
        that must be 0. Missing cells are refused: ``a1gm.impute`` with totals fills
        them.
    row_totals, col_totals : array, list, Series, dict or frame, optional
        The totals, by label where both have labels, otherwise in the order of the
        seed. NaN, None or absent: not known, and the row or column keeps factor 1.
        Decimals may be rounded: sums of both sides that differ by at most a unit of the
        last decimal for each total are met as written.
    known : table like the seed, optional
        Cells that are known, and stay as they are; NaN for the others.
    tol : float, optional
        The certificate to reach: the largest relative mismatch of a total. None: 1e-10.
    max_iter : int, default=1000
        Budget of iterations.

    Returns
    -------
    ScaledTable
        ``table``, ``row_factor`` and ``col_factor``, the certificate, the blocks and
        the cells that the totals force to 0; ``round()`` gives whole numbers.

    Raises
    ------
    TotalsError
        No table has these totals. The message names rows that need more than the only
        columns they can use have, or the reverse, and the fields of the error prove it.
    NotRepresentableError
        Totals are too far apart, or too large or small, for float64.
    LabelError
        A total is that of a row or column that the seed does not have.

    Warns
    -----
    DataHintWarning
        The totals force cells to 0 that the seed allows; the sums of the totals differ
        by their rounding.
    ConvergenceWarning
        ``max_iter`` ended before the certificate was within ``tol``.

    Notes
    -----
    The table is ``w[i] * seed[i, j] * h[j]`` inside blocks of rows and columns, and 0
    between them. It is the limit of iterative proportional fitting, where that has one;
    sweeps are used where they are quick, and Newton's method elsewhere.

    Examples
    --------
    >>> import numpy as np, a1gm
    >>> seed = np.array([[1.0, 2.0], [3.0, 4.0]])
    >>> s = a1gm.scale(seed, row_totals=[30, 70], col_totals=[50, 50])
    >>> s.table.round(4)
    array([[12.8821, 17.1179],
           [37.1179, 32.8821]])
    >>> s.round()
    array([[13, 17],
           [37, 33]])
    """
    options = FitOptions(tol=tol, max_iter=max_iter)
    data = None
    if col_totals is not None:
        col_totals = labelled_totals(col_totals, "col_totals", names_of(seed))
        data = col_totals.labels
    rows, A = read_seed(seed, data)
    seed = A if isinstance(seed, Rows) else seed
    cells = read_known(known, rows)
    totals = totals_of(rows, row_totals, col_totals, "the seed")
    return scale_matrix(
        seed,
        rows,
        A,
        cells,
        totals,
        tol=options.certificate,
        max_iter=options.max_iter,
    )
