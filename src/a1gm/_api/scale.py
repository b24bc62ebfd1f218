"""``a1gm.scale``: the table nearest to a seed that has given totals."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from a1gm._api.fit import DEFAULT_MAX_ITER, DEFAULT_TOL, FitOptions
from a1gm._base.types import Floats
from a1gm._base.warn import warn_user
from a1gm._base.words import counted
from a1gm._fit.scaled import ScaledTable
from a1gm._rows.labels import Names
from a1gm._rows.read import AnyRows
from a1gm._rows.seed import Cells, read_known, read_seed, without_cells
from a1gm._rows.totals import read_totals
from a1gm._solve.totals import NoTableError, scale_seed
from a1gm._solve.units import Units, in_units
from a1gm.exceptions import (
    ConvergenceWarning,
    DataHintWarning,
    Option,
    See,
    TotalsError,
)


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
    LabelError
        A total is that of a row or column that the seed does not have.

    Warns
    -----
    DataHintWarning
        The totals force cells to 0 that the seed allows.
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
    rows, A = read_seed(seed)
    found = read_known(known, rows)
    r, c = (
        read_totals(given, side, labels, n, "the seed")
        for given, side, labels, n in (
            (row_totals, "row", rows.row_labels, rows.n_rows),
            (col_totals, "column", rows.col_labels, rows.n_cols),
        )
    )
    return scale_matrix(seed, rows, A, found, (r, c), tol=tol, max_iter=max_iter)


def scale_matrix(
    seed: Any,
    rows: AnyRows,
    A: Any,
    known: Cells,
    totals: tuple[Floats, Floats],
    *,
    tol: float | None,
    max_iter: int,
) -> ScaledTable:
    """Scale a matrix that was read as ``rows``; ``known`` cells stay as they are."""
    options = FitOptions(tol=DEFAULT_TOL if tol is None else tol, max_iter=max_iter)
    names = Names(row_labels=rows.row_labels, col_labels=rows.col_labels)
    A = without_cells(A, *known[:2])
    units = in_units(totals, known)
    _check_known(units, totals, known, names)
    try:
        scaled = scale_seed(A, units, tol=options.tol, max_iter=max_iter)
    except NoTableError as proof:
        raise _error_of(
            proof, names, rows, totals, has_known=len(known[0]) > 0
        ) from None
    result = ScaledTable(seed, rows, A, known, totals, scaled, options.tol)
    _warn(result, names)
    return result


def _check_known(
    units: Units, totals: tuple[Floats, Floats], known: Cells, names: Names
) -> None:
    """Raise for a total below its known cells."""
    for side, left, total, at in (
        ("row", units.rows, totals[0], known[0]),
        ("column", units.cols, totals[1], known[1]),
    ):
        low = [k for k, t in enumerate(left) if t is not None and t < 0]
        if low:
            k = low[0]
            of_known = float(known[2][at == k].sum())
            where = names.rows([k], 1) if side == "row" else names.columns([k], 1)
            raise TotalsError(
                f"The known cells of {where} sum to {of_known:.15g}, more than its "
                f"total of {total[k]:.15g} ({len(low)} in all).",
                advice="Correct the total, or the known cells.",
                rows=(k,) if side == "row" else (),
                cols=(k,) if side == "column" else (),
                needs=of_known,
                has=float(total[k]),
                side=side,
            )


def _error_of(
    proof: NoTableError,
    names: Names,
    rows: AnyRows,
    totals: tuple[Floats, Floats],
    *,
    has_known: bool,
) -> TotalsError:
    """Say in the user's words why no table has the totals."""
    cut, (r, c) = proof.cut, totals
    known = [np.flatnonzero(~np.isnan(side)) for side in (r, c)]
    at = known[0][cut.rows], known[1][cut.cols]
    if proof.is_sum:  # known cells are on both sides
        own = (math.fsum(side[~np.isnan(side)]) for side in totals)
        proof.has, proof.needs = sorted(own)
    needs, has = f"{proof.needs:.15g}", f"{proof.has:.15g}"
    besides = " besides the known cells" if has_known else ""
    if proof.is_sum:
        sums = (needs, has) if cut.side == "row" else (has, needs)
        text = (
            f"The row totals sum to {sums[0]}, the column totals to {sums[1]}{besides}."
        )
        advice = (
            f"Correct them, or bring one side to the other: col_totals * ({sums[0]} / "
            f"{sums[1]})."
        )
        if not all(len(k) == n for k, n in zip(known, (len(r), len(c)), strict=True)):
            advice = "Correct them: the totals that are not known cannot be below 0."
    else:
        lines = [
            names.rows(at[0].tolist(), len(at[0])),
            names.columns(at[1].tolist(), len(at[1])),
        ]
        if cut.side == "column":
            lines.reverse()
        (who, them), one = lines, (cut.rows if cut.side == "row" else cut.cols)
        verb = "needs" if len(one) == 1 else "need"
        they = "it" if len(one) == 1 else "they"
        other = "column" if cut.side == "row" else "row"
        who = who[0].upper() + who[1:]
        if them:
            n = len(cut.cols if cut.side == "row" else cut.rows)
            only = f"the only {other} that {they} can use, {them}, has {has}"
            if n > 1:
                only = f"the only {other}s that {they} can use ({them}) have {has}"
            text = f"{who} {verb} {needs}{besides}; {only}."
        else:
            text = (
                f"{who} {verb} {needs}{besides}, but there is no cell that can be "
                "above 0."
            )
        advice = "Correct these totals, or give a positive seed to more of their cells."
    return TotalsError(
        text,
        advice=advice,
        rows=tuple(at[0].tolist()),
        cols=tuple(at[1].tolist()),
        needs=float(proof.needs),
        has=float(proof.has),
        side=cut.side,
    )


def _warn(result: ScaledTable, names: Names) -> None:
    """Warn about cells that are forced to 0 and of totals that are not met."""
    zeros = result.forced_zeros
    if len(zeros):
        has_total = (result.row_totals[zeros[:, 0]] != 0.0) & (
            result.col_totals[zeros[:, 1]] != 0.0
        )
        zeros = zeros[has_total]
    if len(zeros):
        what = counted(
            len(zeros), "cell that the seed allows", "cells that the seed allows"
        )
        warn_user(
            DataHintWarning(
                f"The totals force {what} to 0, such as {names.cell(*zeros[0])}",
                See("s.forced_zeros"),
                ".",
            )
        )
    if not result.converged:
        warn_user(
            ConvergenceWarning(
                f"The scaling stopped after {counted(result.n_iter, 'iteration')} with "
                f"a certificate of {result.certificate:.2g} and a cell error of "
                f"{result.cell_error:.2g}. Raise ",
                Option("max_iter"),
                " or ",
                Option("tol"),
                ".",
            )
        )
