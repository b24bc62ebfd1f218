"""Tables scaled, or filled, to totals; in words where there is none."""

from __future__ import annotations

import math
from typing import Any, TypeAlias

import numpy as np

from a1gm._base.types import Floats
from a1gm._base.warn import warn_user
from a1gm._base.words import counted
from a1gm._fit.fill import fill_table
from a1gm._fit.place import Fills, Placed
from a1gm._fit.scaled import ScaledTable
from a1gm._rows.labels import Names
from a1gm._rows.read import AnyRows
from a1gm._rows.seed import Cells, known_cells, missing_cells, without_cells
from a1gm._rows.totals import read_totals
from a1gm._solve.totals import NoTableError, scale_seed
from a1gm._solve.units import Units, in_units
from a1gm.exceptions import (
    ConvergenceWarning,
    DataHintWarning,
    Option,
    See,
    TotalsError,
    UndeterminedError,
)

#: Those of the rows and of the columns; NaN where they are not known.
Totals: TypeAlias = tuple[Floats, Floats]
MOST_ITERATIONS = 1000
# By what is scaled.
_KNOWN = {"seed": "known cells", "fill": "observed cells"}
_REMEDY = {
    "seed": "give a positive seed to more of their cells",
    "fill": "the observed cells; a cell that the data fill with 0 stays 0",
}


def totals_of(rows: AnyRows, row_totals: Any, col_totals: Any, name: str) -> Totals:
    """Totals of the rows and columns of a table that messages call ``name``."""
    return (
        read_totals(row_totals, "row", rows.row_labels, rows.n_rows, name),
        read_totals(col_totals, "column", rows.col_labels, rows.n_cols, name),
    )


def fill_to_totals(X: Any, placed: Placed, totals: Totals, *, tol: float) -> Any:
    """Fill the missing cells of X so that it has totals; the others are kept."""
    fills = Fills(placed.rows, scaled_fills(placed, totals, tol=tol)._values)
    return fill_table(X, fills).table


def scaled_fills(placed: Placed, totals: Totals, *, tol: float) -> ScaledTable:
    """Scale the fills of rows so that the filled rows have totals.

    The rank-1 fills are the seed, and what is observed is known. Cells without a fill
    take any scale between their blocks where scaling absorbs it.
    """
    from scipy.sparse import csr_array

    rows = placed.rows
    i, j = missing_cells(rows)
    fills = placed.values(i, j)
    if (left := np.isnan(fills)).any():
        unknown = np.isnan(totals[0])[i] | np.isnan(totals[1])[j]
        if unknown.any():
            raise UndeterminedError(
                f"The data do not determine {counted(left.sum(), 'missing cell')}, and "
                "the totals do so only if all rows and columns with missing cells have "
                f"one: {rows.where(int(i[unknown][0]), int(j[unknown][0]))} lacks it. "
                "Give the other totals, or fill these cells first.",
                count=int(left.sum()),
            )
        w, h = placed.factors, placed.columns.factor
        w, h = (np.where(f > 0.0, f, np.nan) for f in (w, h))
        w, h = (np.where(np.isnan(f), _typical(f), f) for f in (w, h))
        fills[left] = w[i[left]] * h[j[left]]
    A = csr_array((fills, (i, j)), shape=(rows.n_rows, rows.n_cols))
    options: Any = {"tol": tol, "max_iter": MOST_ITERATIONS, "of": "fill"}
    return scale_matrix(None, rows, A, known_cells(rows), totals, **options)


def _typical(factors: Floats) -> float:
    known = factors[~np.isnan(factors)]
    return float(np.median(known)) if len(known) else 1.0


def scale_matrix(
    seed: Any,
    rows: AnyRows,
    A: Any,
    known: Cells,
    totals: Totals,
    *,
    tol: float,
    max_iter: int,
    of: str = "seed",
) -> ScaledTable:
    """Scale a matrix that was read as ``rows``; ``known`` cells stay as they are.

    ``of`` is what messages call what is scaled.
    """
    names = Names(row_labels=rows.row_labels, col_labels=rows.col_labels)
    A = without_cells(A, *known[:2])
    units = in_units(totals, known)
    _check_known(units, totals, known, names, of)
    try:
        scaled = scale_seed(A, units, tol=tol, max_iter=max_iter)
    except NoTableError as proof:
        raise _error_of(
            proof, names, totals, _KNOWN[of] if len(known[0]) else "", of
        ) from None
    result = ScaledTable(seed, rows, A, known, totals, scaled, tol)
    _warn(result, names, of)
    return result


def _check_known(
    units: Units, totals: Totals, known: Cells, names: Names, of: str
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
                f"The {_KNOWN[of]} of {where} sum to {of_known:.15g}, more than its "
                f"total of {total[k]:.15g} ({len(low)} in all).",
                advice=f"Correct the total, or the {_KNOWN[of]}.",
                rows=(k,) if side == "row" else (),
                cols=(k,) if side == "column" else (),
                needs=of_known,
                has=float(total[k]),
                side=side,
            )


def _error_of(
    proof: NoTableError,
    names: Names,
    totals: Totals,
    known_cells: str,
    of: str,
) -> TotalsError:
    """Say in the user's words why no table has the totals."""
    cut, (r, c) = proof.cut, totals
    known = [np.flatnonzero(~np.isnan(side)) for side in (r, c)]
    at = known[0][cut.rows], known[1][cut.cols]
    if proof.is_sum:  # known cells are on both sides
        own = (math.fsum(side[~np.isnan(side)]) for side in totals)
        proof.has, proof.needs = sorted(own)
    needs, has = f"{proof.needs:.15g}", f"{proof.has:.15g}"
    besides = f" besides the {known_cells}" if known_cells else ""
    if proof.is_sum:
        sums = (needs, has) if cut.side == "row" else (has, needs)
        text = f"The row totals sum to {sums[0]}, the column totals to {sums[1]}."
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
        advice = f"Correct these totals, or {_REMEDY[of]}."
    return TotalsError(
        text,
        advice=advice,
        rows=tuple(at[0].tolist()),
        cols=tuple(at[1].tolist()),
        needs=float(proof.needs),
        has=float(proof.has),
        side=cut.side,
    )


def _warn(result: ScaledTable, names: Names, of: str) -> None:
    """Warn about cells of a seed that are forced to 0, and totals that are not met."""
    zeros = result.forced_zeros if of == "seed" else np.zeros((0, 2), np.int64)
    has_totals = (result.row_totals[zeros[:, 0]] != 0.0) & (
        result.col_totals[zeros[:, 1]] != 0.0
    )
    if has_totals.any():
        zeros = zeros[has_totals]
        noun = "cell that the seed allows", "cells that the seed allows"
        warn_user(
            DataHintWarning(
                f"The totals force {counted(len(zeros), *noun)} to 0, such as "
                f"{names.cell(*zeros[0])}",
                See("s.forced_zeros"),
                ".",
            )
        )
    if result.converged:
        return
    if result.certificate <= result.tol:
        warn_user(
            "The totals are met, but small cells that join parts of the table may be "
            f"off by {result.cell_error:.1g} of their values: they follow from "
            "differences of totals, which float64 has rounded. Totals with few "
            "decimals are exact.",
            ConvergenceWarning,
        )
        return
    warn_user(
        ConvergenceWarning(
            f"The scaling stopped after {counted(result.n_iter, 'iteration')} with a "
            f"certificate of {result.certificate:.2g}, above the tolerance of "
            f"{result.tol:g}. Raise ",
            Option("max_iter"),
            " or ",
            Option("tol"),
            ".",
        )
    )
