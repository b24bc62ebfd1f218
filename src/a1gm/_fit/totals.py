"""Tables scaled, or filled, to totals; in words where there is none."""

from __future__ import annotations

from functools import partial
from typing import Any, TypeAlias

import numpy as np

from a1gm._base.float_range import check_range
from a1gm._base.types import Floats
from a1gm._base.warn import warn_user
from a1gm._base.words import counted
from a1gm._fit.messages import text_of_budget
from a1gm._fit.place import Fills, Placed
from a1gm._fit.scaled import ScaledTable
from a1gm._rows.labels import Names, label_at
from a1gm._rows.read import AnyRows
from a1gm._rows.rows import check_values
from a1gm._rows.seed import (
    cells_at,
    known_cells,
    listed_cells,
    without_cells,
)
from a1gm._rows.totals import read_totals
from a1gm._solve.totals import NoTableError, scale_seed, sides_of
from a1gm.exceptions import (
    ConvergenceWarning,
    DataHintWarning,
    NotRepresentableError,
    Option,
    ParameterError,
    See,
    TotalsError,
    UndeterminedError,
)

#: Those of the rows and of the columns; NaN where they are not known.
Totals: TypeAlias = tuple[Floats, Floats]
MOST_ITERATIONS = 1000
ROUNDED = 1e-8  # relative: sums of totals that differ by less do so by computing
LEAST_SHARE = 2.0**-53  # of a total in the sum of all
# By what is scaled.
_KNOWN = {"seed": "known cells", "fill": "observed cells"}
_REMEDY = {
    "seed": "give a positive seed to more of their cells",
    "fill": "the observed cells; a cell that the data fill with 0 stays 0",
}


def totals_of(rows: AnyRows, row_totals: Any, col_totals: Any, name: str) -> Totals:
    """Totals of the rows and columns of a table that messages call ``name``."""
    of_rows = read_totals(row_totals, "row", rows.row_labels, rows.n_rows, name)
    of_cols = read_totals(col_totals, "column", rows.col_labels, rows.n_cols, name)
    with np.errstate(over="ignore"):
        largest = max(np.nansum(of_rows), np.nansum(of_cols))
    for side, labels, totals in (
        ("row", rows.row_labels, of_rows),
        ("column", rows.col_labels, of_cols),
    ):
        _check_sizes(totals, largest, side, labels)
    return of_rows, of_cols


def _check_sizes(totals: Floats, largest: float, side: str, labels: Any) -> None:
    """Raise for a total that is lost to rounding in the ``largest`` sum."""
    name = partial(_total_of, side, labels)
    check_range(totals, name)
    is_lost = (totals > 0.0) & (totals < LEAST_SHARE * largest)
    if is_lost.any():
        at = int(is_lost.argmax())
        raise NotRepresentableError(
            f"{name(at)} is {totals[at]:.3g}, which is lost to rounding in a sum of "
            f"{largest:.3g}.",
            advice="Scale the rows and columns with such small totals separately.",
        )


def check_plain_fills(round: Any, interval: float | None = None) -> None:
    """Raise for options that fills to totals do not have."""
    name = "interval" if round is None else "round"
    if round is not None or interval is not None:
        raise ParameterError(
            "Fills to totals cannot be rounded and have no intervals. Leave out ",
            Option(name),
            ". For whole numbers that keep all totals scale the filled table, with the "
            "observed cells as ",
            Option("known"),
            ", and round the result.",
        )


def _total_of(side: str, labels: Any, at: int) -> str:
    return f"The total of {side} {label_at(labels, at)}"


def fills_to_totals(
    placed: Placed, row_totals: Any, col_totals: Any, name: str, tol: float
) -> Fills:
    """Scale the fills of rows so that the filled rows have totals.

    The rank-1 fills are the seed, and what is observed is known. Cells without a fill
    take any scale between their blocks where scaling absorbs it.
    """
    rows = placed.rows
    totals = totals_of(rows, row_totals, col_totals, name)
    check_values(rows, rows.cells, None)
    i, j, _ = known_cells(rows, missing=True)
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
        w, h = map(_with_typical, (placed.factors, placed.columns.factor))
        fills[left] = w[i[left]] * h[j[left]]
    A = listed_cells(i, j, fills, (rows.n_rows, rows.n_cols))
    options: Any = {"tol": tol, "max_iter": MOST_ITERATIONS, "of": "fill"}
    scaled = scale_matrix(None, rows, A, rows, totals, **options)
    return Fills(rows, partial(cells_at, listed_cells(*scaled._cells, scaled.shape)))


def _with_typical(factors: Floats) -> Floats:
    """Factors with the median in place of those that are 0 or not there."""
    is_there = factors > 0.0
    typical = float(np.median(factors[is_there])) if is_there.any() else 1.0
    return np.where(is_there, factors, typical)


def scale_matrix(
    seed: Any,
    rows: AnyRows,
    A: Any,
    known: AnyRows | None,
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
    cells = known_cells(known)
    if known is not None:
        A = without_cells(A, *cells[:2])
    try:
        scaled = scale_seed(A, *sides_of(totals, cells), tol=tol, max_iter=max_iter)
    except NoTableError as proof:
        besides = f" besides the {_KNOWN[of]}" if len(cells[0]) else ""
        raise _error_of(proof, names, totals, besides, of) from None
    result = ScaledTable(seed, rows, A, known, totals, scaled, tol)
    _warn(result, names, of)
    return result


def _error_of(
    proof: NoTableError, names: Names, totals: Totals, besides: str, of: str
) -> TotalsError:
    """Say in the user's words why no table has the totals."""
    rows, cols, side = proof.rows.tolist(), proof.cols.tolist(), proof.side
    needs, has = proof.needs, proof.has
    lines = names.rows(rows, len(rows)), names.columns(cols, len(cols))
    advice = f"Correct these totals, or {_REMEDY[of]}."
    if proof.why == "known":
        side = "row" if rows else "column"
        total = float(totals[0][rows[0]] if rows else totals[1][cols[0]])
        needs, has = total + needs - has, total
        text = (
            f"The {_KNOWN[of]} of {''.join(lines)} sum to {needs:.15g}, more than its "
            f"total of {has:.15g}."
        )
        advice = f"Correct the total, or the {_KNOWN[of]}."
    elif proof.why == "sum":
        r, c = (float(np.nansum(total)) for total in totals)  # with known cells
        has, needs = sorted([r, c])
        text = f"The row totals sum to {r:.15g}, the column totals to {c:.15g}."
        advice = "Correct them: the totals that are not known cannot be below 0."
        if not np.isnan(np.concatenate(totals)).any():
            advice = (
                "Correct them, or bring one side to the other: multiply the column "
                f"totals by {r:.15g} / {c:.15g}."
            )
    else:
        is_row = side == "row"
        (who, them), other = (lines, "column") if is_row else (lines[::-1], "row")
        n, m = (len(rows), len(cols)) if is_row else (len(cols), len(rows))
        verb, they = ("needs", "it") if n == 1 else ("need", "they")
        text = f"{who[0].upper()}{who[1:]} {verb} {needs:.15g}{besides}"
        if m == 0:
            text += ", but there is no cell that can be above 0."
        elif m == 1:
            text += f"; the only {other} that {they} can use, {them}, has {has:.15g}."
        else:
            text += f"; the only {other}s that {they} can use ({them}) have {has:.15g}."
    cut: Any = {"rows": tuple(rows), "cols": tuple(cols), "side": side}
    return TotalsError(text, advice=advice, needs=needs, has=has, **cut)


def _warn(result: ScaledTable, names: Names, of: str) -> None:
    """Warn about cells of a seed that are forced to 0, and totals that are not met."""
    zeros = result.forced_zeros
    rows, cols = result.row_totals[zeros[:, 0]], result.col_totals[zeros[:, 1]]
    zeros = zeros[(rows != 0.0) & (cols != 0.0)]
    if len(zeros) and of == "seed":
        noun = "cell that the seed allows", "cells that the seed allows"
        warn_user(
            DataHintWarning(
                f"The totals force {counted(len(zeros), *noun)} to 0, such as "
                f"{names.cell(*zeros[0])}",
                See("s.forced_zeros"),
                ".",
            )
        )
    r = float(np.nansum(result.row_totals))
    c = float(np.nansum(result.col_totals))
    if result._scaled.written_off and abs(r - c) > ROUNDED * max(r, c):
        warn_user(
            f"The row totals sum to {r:.15g}, the column totals to {c:.15g}: taken for "
            "totals that were rounded. Each is met to a unit of its last decimal.",
            DataHintWarning,
        )
    if text := text_of_budget("scaling", result):
        warn_user(ConvergenceWarning(*text))
    elif not result.converged:
        warn_user(
            "The totals are met, but small cells that join parts of the table may be "
            f"off by {result.cell_error:.1g} of their values: they follow from "
            "differences of totals, which float64 has rounded. Totals with few "
            "decimals are exact.",
            ConvergenceWarning,
        )
