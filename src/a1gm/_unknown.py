"""What a user is told of cells that cannot be known, sentence by sentence."""

from __future__ import annotations

from collections.abc import Sequence
from typing import SupportsInt

from a1gm._words import counted, first_place, listed

__all__ = [
    "MOST_LINES",
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
    n_unbounded: SupportsInt, n_open: SupportsInt, first: object, *, of: str = ""
) -> str:
    """Say how many missing cells have no value, by kind."""
    kinds = _kinds(n_unbounded, n_open)
    (n, kind), rest = kinds[0], kinds[1:]
    name = f"missing cell{_of(of)}"
    cells = counted(n, f"{name} is", f"missing cells{_of(of)} are")
    others = "".join(f" and {m:,} {other}" for m, other in rest)
    total = sum(m for m, _ in kinds)
    stay = "It stays" if total == 1 else "They stay"
    return (
        f"{cells} {kind}{others}, {first_place(total, first)}. {stay} missing; see "
        "fit.undetermined."
    )


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


def text_of_empty_lines(
    rows: Sequence[int], columns: Sequence[int], n_rows: int | None = None
) -> str:
    """Say in which rows and columns nothing is observed; empty when in none.

    ``n_rows`` counts the rows when only the first few of them are given.
    """
    totals = (len(rows) if n_rows is None else n_rows, len(columns))
    texts = [
        f"{what if n == 1 else what + 's'} {listed(empty, MOST_LINES, n)}"
        for what, empty, n in zip(
            ("row", "column"), (rows, columns), totals, strict=True
        )
        if len(empty)
    ]
    if not texts:
        return ""
    return (
        f"Nothing is observed in {' and '.join(texts)}: the factors there are NaN and "
        "the cells stay missing."
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
