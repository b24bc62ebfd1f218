"""Texts about a fit: warnings, errors, its summary as text and as HTML."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, SupportsInt

import numpy as np

from a1gm._base.types import Floats, OnUndetermined
from a1gm._base.warn import warn_user
from a1gm._base.words import MOST_NAMED, counted, first_place, html_table, shown
from a1gm._fit.place import EMPTY, UNBOUNDED, UNDETERMINED, Left, Placed
from a1gm._rows.labels import Names, plain_text
from a1gm._rows.read import AnyRows
from a1gm._solve.cell_error import SURELY_RIGHT
from a1gm.exceptions import (
    ConvergenceWarning,
    EmptyLineWarning,
    Option,
    ParameterError,
    See,
    Text,
    UndeterminedError,
    UndeterminedWarning,
    parts_of,
    separated,
)

if TYPE_CHECKING:
    from a1gm._fit.certified import Certified
    from a1gm._fit.fit import RankOneFit

MOST_SHOWN = 12  # rows of a table


# ------------------------------------------------------------------------ about cells
def text_of_zeros(n: int, first: object = None) -> str:
    """Text about observed zeros given up."""
    where = "" if first is None else f", {first_place(n, first)},"
    return (
        f"{counted(n, 'observed zero')}{where} can only be "
        f"approached, not fitted (no minimiser exists); "
        f"{'it is' if n == 1 else 'they are'} fitted by 0."
    )


def text_of_unknown_cells(
    n_unbounded: SupportsInt,
    n_open: SupportsInt,
    first: object = None,
    *,
    of: str = "",
    how: OnUndetermined = "warn",
    is_listed: bool = True,
) -> Text:
    """Text about missing cells without a value, by kind, and where they are listed."""
    see: Text = See("fit.undetermined")
    if not is_listed:
        see = "; their rows were not kept"
    elif how == "raise":
        see = See("fit.undetermined", Option("on_undetermined", "warn"))
    counts = {"unbounded": int(n_unbounded), "undetermined": int(n_open)}
    (kind, n), *rest = ((kind, n) for kind, n in counts.items() if n)
    noun = f"missing cell{{}}{of and f' of {of}'}"
    cells = counted(n, f"{noun.format('')} is", f"{noun.format('s')} are")
    others = "".join(f" and {m:,} {other}" for other, m in rest)
    total = sum(counts.values())
    where = "" if first is None else f", {first_place(total, first)}"
    stay = "It stays" if total == 1 else "They stay"
    left = "" if how == "raise" else f". {stay} missing"
    return f"{cells} {kind}{others}{where}{left}", see, "."


def text_of_left_cells(n: int, first: object = None) -> str:
    """Text about missing cells that were not filled."""
    cells = counted(n, "missing cell stays", "missing cells stay")
    where = "" if first is None else f", {first_place(n, first)}"
    them = "it" if n == 1 else "them"
    return f"{cells} missing{where}: the data do not determine {them}."


def text_of_unplaced_rows(placed: Placed) -> str:
    """Text about rows without a factor: nothing to place them by, or several blocks."""
    texts, without = [], np.isnan(placed.factors)
    if not without.any():
        return ""
    for chosen, what in (
        (without & ~placed.has_several, "no observed cell with a known factor"),
        (placed.has_several, "positive cells in several blocks, which share no scale"),
    ):
        rows = np.flatnonzero(chosen)
        if len(rows):
            who = counted(len(rows), "row has", "rows have")
            which = "row" if len(rows) == 1 else "the first is row"
            whose = "its" if len(rows) == 1 else "their"
            texts.append(f"{who} {what} ({which} {rows[0]}); {whose} factor is NaN.")
    return " ".join(texts)


# -------------------------------------------------------------------- about one fit
@dataclass(frozen=True, slots=True)
class WarningPolicy:
    """What to warn about when a fit is made.

    ``names`` formats rows and columns, by default by their labels. Without ``cells``
    only a poor certificate is warned about; ``convergence`` is the class of that
    warning.
    """

    names: Names | None = None
    cells: bool = True
    convergence: type[Warning] = ConvergenceWarning


def warn_about(fit: RankOneFit, policy: WarningPolicy) -> None:
    """Warn about a poor certificate, empty rows and columns, and unknown cells."""
    if text := text_of_convergence(fit, policy.names):
        warn_user(policy.convergence(*parts_of(text)))
    if fit._is_plain or not policy.cells:
        return
    labels = {"row_labels": fit.row_labels, "col_labels": fit.col_labels}
    names, how = policy.names or Names(**labels), fit._on_undetermined
    empty, text = text_of_empty(fit, names), text_of_unknown(fit, names, how)
    if empty and how == "raise":
        text = separated([empty, text])
    elif empty:
        warn_user(empty, EmptyLineWarning)
    if text:
        warn_undetermined(text, how)


def check_on_undetermined(how: str | None) -> None:
    """Raise for an unknown value of ``on_undetermined``."""
    if how not in (None, "warn", "raise", "ignore"):
        raise ParameterError(
            f'on_undetermined must be None, "warn", "raise" or "ignore", got {how!r}.'
        )


def warn_undetermined(text: Text, how: OnUndetermined) -> None:
    """Warn, raise or do nothing, as the user chose."""
    if how == "raise":
        raise UndeterminedError(text)
    if how == "warn":
        warn_user(UndeterminedWarning(text))


def warn_left(
    left: Left,
    rows: AnyRows,
    how: OnUndetermined | None,
    usual: OnUndetermined,
    is_fitted: Callable[[int], bool],
) -> None:
    """Warn of cells that stay missing in filled rows; ``usual`` is how the fit did.

    By default the fit's own warning is not repeated: ``is_fitted`` is whether the rows
    are the fitted table, of which so many cells stay missing.
    """
    n, first, _ = left
    if first is None or (how is None and usual == "warn" and is_fitted(n)):
        return
    warn_undetermined(text_of_left_cells(n, rows.where(*first)), how or usual)


def text_of_budget(what: str, fit: Any) -> tuple[Text, ...]:
    """Text about a certificate above the tolerance; empty where it is not."""
    if not fit.certificate > fit.tol:
        return ()
    return (
        f"The {what} stopped after {counted(fit.n_iter, 'iteration')} with a "
        f"certificate of {fit.certificate:.2g}, above the tolerance of {fit.tol:g}. "
        "Raise ",
        Option("max_iter"),
        " or ",
        Option("tol"),
        ".",
    )


def text_of_convergence(fit: Certified, names: Names | None = None) -> Text:
    """Text about how far the fit may be off; empty where it has converged."""
    found = fit._found
    step, cut = getattr(found, "step", math.inf), getattr(found, "cut", None)
    is_sure = found.gap <= fit.tol and step < SURELY_RIGHT
    if is_sure or fit.converged:
        return ""
    if text := text_of_budget("fit", fit):
        return text
    size = "by any factor"
    if math.isfinite(fit.cell_error):
        size = f"by a share of up to {fit.cell_error:.2g}"
    between = ""
    if cut:  # two columns on either side of the cut that is too thin
        pair = (names or fit._column_names()).columns(cut, 2)
        between = f", most of all between {pair}"
    return (
        f"The {fit._sums_in_words} are fitted (certificate {fit.certificate:.2g}), but "
        "parts of this table are linked only by cells too small for these sums to fix "
        f"their relative scale: fitted cells may be off {size}{between}",
        See("fit.cell_error"),
        ". Fit such parts one by one, or add cells that join them.",
    )


def text_of_empty(fit: RankOneFit, names: Names) -> str:
    """Text about rows and columns without an observed cell; empty for none."""
    if fit._is_plain:
        return ""
    rows, n_rows = fit._fates.empty_rows(MOST_NAMED)
    columns = np.flatnonzero(np.isnan(fit.col_factor)).tolist()
    parts = names.rows(rows, n_rows), names.columns(columns, len(columns))
    if not any(parts):
        return ""
    return (
        f"Nothing is observed in {' and '.join(filter(None, parts))}: the factors "
        "there are NaN and the cells stay missing."
    )


def text_of_unknown(
    fit: RankOneFit, names: Names, how: OnUndetermined = "warn"
) -> list[Text]:
    """Text about unknown cells and zeros given up; empty for none."""
    if fit._is_plain:
        return []
    fates, totals = fit._fates, fit._fates.totals
    n_unbounded, n_open = totals.fates[UNBOUNDED], totals.fates[UNDETERMINED]
    if not (n_unbounded or n_open or totals.n_given_up):
        return []
    parts: list[Text] = []

    def first(cells: Iterable[Any]) -> str | None:
        place = fates.first(cells)
        return None if place is None else names.cell(*place)

    if fit.n_blocks > 1:
        parts.append(f"The table falls into {fit.n_blocks:,} blocks.")
    if totals.n_given_up:
        zeros = first(fates.zeros_given_up())
        parts.append(text_of_zeros(totals.n_given_up, zeros))
    if n_unbounded or n_open:
        cells = n_unbounded, n_open, first(fates.unknown_cells(below=EMPTY))
        is_listed = fates.rows.is_kept
        parts.append(text_of_unknown_cells(*cells, how=how, is_listed=is_listed))
    return separated(parts)


# ------------------------------------------------------------------------- summaries
def solver_in_words(solver: str, n_iter: int) -> str:
    """Format the solver of a fit, with its number of iterations."""
    return f"{solver}, {counted(n_iter, 'iteration')}" if n_iter else solver


class Summarised:
    """What shows its ``summary``: in one line, and as a table in notebooks."""

    _between = ", "

    def summary(self) -> dict[str, str]:
        """The most important figures in words, line by line."""
        raise NotImplementedError

    def __repr__(self) -> str:
        lines = self._between.join(f"{k}: {v}" for k, v in self.summary().items())
        return f"{type(self).__name__}({lines})"

    def _repr_html_(self) -> str:
        return html_table(type(self).__name__, self.summary())


# ------------------------------------------------------------------ columns of numbers
def number_grid(
    of: str, labels: Any, columns: Mapping[str, Any]
) -> tuple[list[list[str]], list[str]]:
    """The first rows of named columns of numbers as words, and how many are left."""
    n = len(next(iter(columns.values())))
    few = min(n, MOST_SHOWN)
    names = range(n) if labels is None else labels
    grid = [[of, *columns]]
    numbers = [aligned(np.asarray(column[:few])) for column in columns.values()]
    for k, row in enumerate(zip(*numbers, strict=True)):
        grid.append([shown(plain_text(names[k])), *row])
    return grid, [f"... {n - few:,} more"] if n > few else []


def aligned(column: Floats) -> list[str]:
    """Write numbers with the same decimals, where that keeps their digits."""
    n = decimals(column)
    if n is None:
        return [f"{x:.6g}" for x in column.tolist()]
    return [f"{x:.{n}f}" if x else "0" for x in column.tolist()]


def decimals(cells: Floats) -> int | None:
    """Decimals for all numbers of a column; None where they need different ones."""
    sizes = np.abs(cells[np.isfinite(cells) & (cells != 0.0)])
    if not len(sizes) or sizes.max() >= 1e9:
        return None
    if (sizes == np.floor(sizes)).all():
        return 0
    found = max(0, 3 - math.floor(math.log10(sizes.max())))
    # The least shall keep two digits.
    return found if found <= 6 and sizes.min() * 10.0**found >= 10.0 else None
