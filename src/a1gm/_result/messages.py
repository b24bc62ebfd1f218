"""What a user is told of cells that cannot be known, sentence by sentence."""

from __future__ import annotations

from collections.abc import Sequence
from typing import SupportsInt

from a1gm._base.words import counted, first_place, listed

__all__ = [
    "MOST_LINES",
    "named_lines",
    "text_of_empty_lines",
    "text_of_left_cells",
    "text_of_unknown_cells",
    "text_of_unknown_rows",
    "text_of_zeros",
]

MOST_LINES = 5  # empty rows or columns that are named one by one


def text_of_zeros(n: int, first: object = None, *, of: str = "") -> str:
    """Say that observed zeros are given up; ``of`` names the table among several."""
    where = "" if first is None else f", {first_place(n, first)},"
    return (
        f"{counted(n, 'observed zero')}{_of(of)}{where} can only be approached, not "
        f"fitted (no minimiser exists); {'it is' if n == 1 else 'they are'} fitted by "
        "0."
    )


def text_of_unknown_cells(
    n_unbounded: SupportsInt,
    n_open: SupportsInt,
    first: object = None,
    *,
    of: str = "",
    see: str = "see fit.undetermined",
) -> str:
    """Say how many missing cells have no value, by kind, and where to see them."""
    kinds = _kinds(n_unbounded, n_open)
    (n, kind), rest = kinds[0], kinds[1:]
    name = f"missing cell{_of(of)}"
    cells = counted(n, f"{name} is", f"missing cells{_of(of)} are")
    others = "".join(f" and {m:,} {other}" for m, other in rest)
    total = sum(m for m, _ in kinds)
    where = "" if first is None else f", {first_place(total, first)}"
    stay = "It stays" if total == 1 else "They stay"
    return f"{cells} {kind}{others}{where}. {stay} missing; {see}."


def text_of_left_cells(
    n: int,
    first: object = None,
    kinds: tuple[SupportsInt, SupportsInt] | None = None,
) -> str:
    """Say which missing cells were not filled, and why: unbounded or undetermined."""
    cells = counted(n, "missing cell stays", "missing cells stay")
    where = "" if first is None else f", {first_place(n, first)}"
    if kinds is None:
        why = f"the data do not determine {'it' if n == 1 else 'them'}"
    elif n == 1:
        why = f"it is {_kinds(*kinds)[0][1]}"
    else:
        why = " and ".join(
            f"{counted(m, 'is', 'are')} {kind}" for m, kind in _kinds(*kinds)
        )
    return f"{cells} missing{where}: {why}."


def named_lines(noun: str, places: Sequence[object], total: int | None = None) -> str:
    """Name some rows or columns; ``total`` counts them if only the first are given."""
    if not places:
        return ""
    n = len(places) if total is None else total
    return f"{noun if n == 1 else noun + 's'} {listed(places, MOST_LINES, n)}"


def text_of_empty_lines(rows: str, columns: str) -> str:
    """Say in which named lines nothing is observed; empty when in none."""
    where = " and ".join(lines for lines in (rows, columns) if lines)
    if not where:
        return ""
    return (
        f"Nothing is observed in {where}: the factors there are NaN and the cells stay "
        "missing."
    )


def text_of_unknown_rows(rows: Sequence[int]) -> str:
    """Say that some rows have no factor."""
    who = counted(len(rows), "row has", "rows have")
    which = f"row {rows[0]}" if len(rows) == 1 else f"the first is row {rows[0]}"
    whose = "its" if len(rows) == 1 else "their"
    return (
        f"{who} no observed cell with a known factor ({which}); {whose} factor is NaN."
    )


def _of(name: str) -> str:
    return f" of {name}" if name else ""


def _kinds(n_unbounded: SupportsInt, n_open: SupportsInt) -> list[tuple[int, str]]:
    kinds = [(int(n_unbounded), "unbounded"), (int(n_open), "undetermined")]
    return [(n, kind) for n, kind in kinds if n]
