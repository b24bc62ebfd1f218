"""Words around a number that read right for one and for many, and names in them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from html import escape
from itertools import islice
from typing import SupportsInt

MOST_NAMED = 5  # rows, columns or files that a message names one by one
MOST_COMPARED = 10_000  # names that are compared with one that does not exist
ALIKE = 0.75  # share of letters two names have in common to be taken for one


def counted(number: SupportsInt, noun: str, plural: str | None = None) -> str:
    """Write a number with its noun, and its verb if that is part of the noun.

    Examples
    --------
    >>> counted(1, "row"), counted(2000, "row"), counted(1, "cell is", "cells are")
    ('1 row', '2,000 rows', '1 cell is')
    """
    n = int(number)
    return f"{n:,} {noun if n == 1 else plural or noun + 's'}"


def listed(names: Sequence[object], most: int = 8, total: int | None = None) -> str:
    """Format some names, and how many more of the ``total`` there are.

    Examples
    --------
    >>> listed(["a", "b"]), listed(range(9), most=2), listed([4, 7], total=3)
    ('a, b', '0, 1 and 7 more', '4, 7 and 1 more')
    """
    some = ", ".join(map(shown, names[:most]))
    left = (len(names) if total is None else total) - min(most, len(names))
    return some if left <= 0 else f"{some} and {left:,} more"


def shown(name: object, keep: str = "") -> str:
    r"""Write a name with escapes for what a terminal or a page would obey or hide.

    Names are data: they may hold escape sequences, ends of lines, NUL, or marks that
    turn the direction of the text. ``keep`` are characters to leave as they are.

    Examples
    --------
    >>> print(shown("a.csv"), shown("\x1b[31mred"), shown("\u202egpj.exe"))
    a.csv \x1b[31mred \u202egpj.exe
    """
    text = str(name)
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() or c in keep else repr(c)[1:-1] for c in text)


def did_you_mean(name: object, known: Iterable[object]) -> str:
    """Suggest the known name most like one that does not exist, if any.

    Examples
    --------
    >>> did_you_mean("mounth", ["shop", "month"]), did_you_mean("x", ["shop"])
    (" Did you mean 'month'?", '')
    """
    from difflib import get_close_matches

    text = str(name).strip().casefold()
    names = {str(one).strip().casefold(): one for one in islice(known, MOST_COMPARED)}
    close = get_close_matches(text, names, n=1, cutoff=ALIKE)
    if not any(map(str.isalpha, text)):  # another number is not a slip of the pen
        close = [one for one in close if text.startswith(one) or one.startswith(text)]
    return f" Did you mean {str(names[close[0]])!r}?" if close else ""


def first_place(number: SupportsInt, place: object) -> str:
    """Return where something is, or the first of several.

    Examples
    --------
    >>> first_place(1, (0, 2)), first_place(4, (0, 2))
    ('at (0, 2)', 'the first at (0, 2)')
    """
    return f"at {place}" if int(number) == 1 else f"the first at {place}"


def named(noun: str, places: Sequence[object], total: int | None = None) -> str:
    """Name some rows or columns; ``total`` counts them if only the first are passed."""
    if not places:
        return counted(total, noun) if total else ""
    n = len(places) if total is None else total
    return f"{noun if n == 1 else noun + 's'} {listed(places, MOST_NAMED, n)}"


# ------------------------------------------------------------------------ in columns
def text_grid(grid: Sequence[Sequence[str]]) -> str:
    """Write rows of words in columns of equal width."""
    widths = [max(map(len, column)) for column in zip(*grid, strict=True)]
    return "\n".join(
        "  ".join(word.rjust(width) for word, width in zip(row, widths, strict=True))
        for row in grid
    )


def html_grid(grid: Sequence[Sequence[str]], notes: Iterable[str] = ()) -> str:
    """Write rows of words as a table; the first row and column are headings."""
    rows = [[escape(word) for word in row] for row in grid]
    head = "".join(f"<th>{word}</th>" for word in rows[0])
    body = "".join(
        f"<tr><th>{row[0]}</th>{''.join(f'<td>{word}</td>' for word in row[1:])}</tr>"
        for row in rows[1:]
    )
    below = "".join(f"<p>{escape(note)}</p>" for note in notes)
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{below}"


def html_table(name: str, summary: Mapping[str, str]) -> str:
    """Write a summary as a table of words."""
    left = " style='text-align:left'"
    rows = "".join(
        f"<tr><th{left}>{escape(k)}</th><td{left}>{escape(v)}</td></tr>"
        for k, v in summary.items()
    )
    return f"<table><caption{left}>{escape(name)}</caption>{rows}</table>"
