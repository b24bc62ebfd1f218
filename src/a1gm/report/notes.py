"""What a reader must know before the numbers, in the words of the terminal."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from a1gm._api.fit_file import files_of
from a1gm._base.words import counted, listed
from a1gm._fit.messages import text_of_convergence
from a1gm.exceptions import ConvergenceWarning, Part

if TYPE_CHECKING:
    from a1gm._fit.fit import RankOneFit
    from a1gm._rows.files.table import TableFiles
    from a1gm.report.findings import Findings


def notes_of(
    fit: RankOneFit,
    X: Any = None,
    files: TableFiles | None = None,
    style: Callable[[Part], str] = str,
) -> Iterator[str]:
    """Tell what the numbers are not: the best fit, of data only, of every column.

    ``X`` is the table of the fit where it lies in memory; ``files`` are those it was
    read from where the fit does not know them.
    """
    if doubt := text_of_convergence(fit):
        yield ConvergenceWarning(doubt).render(style)
    choice, own = fit._table.choice, files_of(fit)
    files = files or own
    if files is not None:
        for warning in files.told:
            words = warning.at("").render(style)
            yield words[0].upper() + words[1:]
        if hidden := files.hidden:
            yield f"Hidden files left out: {listed(hidden, 5)}."
    names = [] if choice is None else [str(name) for name in choice.kept]
    if own is not None:
        names = own.left_out
    if names:
        yield f"Columns that are not part of the table: {listed(names)}."


def ignored_in_words(findings: Findings) -> Iterator[str]:
    """Tell of known cells that were not fitted."""
    if n := int(findings.is_ignored.sum()):
        kind = "no exposure" if findings.fit.has_exposure else "weight 0"
        cells = counted(n, f"known cell has {kind}", f"known cells have {kind}")
        words = f"{cells} and {'was' if n == 1 else 'were'} not fitted"
        counts = f"; here {'it counts' if n == 1 else 'they count'} as missing"
        yield f"{words}{counts * (not findings.fit.has_exposure)}."
