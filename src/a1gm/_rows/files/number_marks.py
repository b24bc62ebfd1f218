"""Which decimal and thousands marks would turn text cells into numbers."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from a1gm._rows.files.options import TableOptions
from a1gm.exceptions import Option, Text

_MARK_NAMES = {
    ",": "comma",
    ".": "point",
    " ": "space",
    "'": "apostrophe",
    "\u2019": "curly apostrophe",
    "_": "underscore",
    "\u00a0": "no-break space",
    "\u202f": "narrow no-break space",
}
#: An amount with a currency, a percentage, a negative amount: numbers to a person.
_SIGN = r"(?:[^\w\s.,()+-]|[A-Z]{2,3}|[A-Z]{1,2}\$|kr\.?|zł|Kč|Ft|Fr\.)"
_DIGITS = r"\d(?:[\d.,'\u2019\s]*\d)?"
_WITH_SIGN = re.compile(rf"-?{_SIGN}\s?-?{_DIGITS}|-?{_DIGITS}\s?{_SIGN}")
_NEGATIVE = re.compile(rf"\({_SIGN}?\s?({_DIGITS})\s?{_SIGN}?\)|({_DIGITS})-")
_FEWEST_GROUPED = 3  # cells that look like 1.329, to doubt the mark in them


@dataclass(frozen=True)
class _Reading:
    """A decimal mark and a mark between thousands."""

    decimal: str
    thousands: str | None

    def reads(self, token: str) -> bool:
        """Whether a text is a number in this reading."""
        digits = r"\d+"
        if self.thousands is not None:
            digits += rf"|\d{{1,3}}(?:{re.escape(self.thousands)}\d{{3}})+"
        point = re.escape(self.decimal)
        number = rf"[+-]?(?:(?:{digits})(?:{point}\d*)?|{point}\d+)"
        return re.fullmatch(number, token) is not None


def marks_remedy(tokens: Sequence[str], options: TableOptions) -> Text | None:
    """Say which marks the cells have and which options read them.

    ``tokens`` are texts that are no numbers under the options; words among them do not
    matter. None when the first text is no number in any notation.
    """
    marks = "".join(tokens)
    ways = [
        (" and its ".join(facts), _changes(reading, options))
        for reading in _readings(tokens, options)
        if (facts := _facts(reading, marks, options))
    ]
    if not ways:
        return None
    if len(ways) == 1:
        return f"Its {ways[0][0]}: ", ways[0][1], "."
    (what, how), *others = ways
    return (
        f"If its {what}, ",
        how,
        [(f"; if its {other}, ", then) for other, then in others],
        ".",
    )


def sign_remedy(token: str) -> str | None:
    """What makes a number of a text with a sign, such as $5 or (5)."""
    if found := _NEGATIVE.fullmatch(token):
        return f"write it as -{found[1] or found[2]} to have numbers"
    if _WITH_SIGN.fullmatch(token):
        return "take the sign off to have numbers"
    return None


def thousands_doubt(
    columns: Iterable[Sequence[str]], options: TableOptions
) -> Text | None:
    """Doubt a decimal mark that may stand between thousands, as 1.329 beside 821.

    ``columns`` are the cells of the table as text. The mark is doubted where it is
    always before three digits and the numbers without it are all below 1,000. None when
    some cell says otherwise, or the options tell both marks.
    """
    mark = options.point
    if options.thousands is not None or options.decimal == ".":
        return None
    grouped_cell = re.compile(rf"[+-]?[1-9]\d{{0,2}}{re.escape(mark)}\d{{3}}")
    plain_cell = re.compile(r"[+-]?(\d+)")
    missing = set(options.missing_tokens)
    grouped: list[str] = []
    is_large = has_both = has_plain = False
    for cells in columns:
        n_before, is_plain = len(grouped), False
        for cell in cells:
            text = cell.strip()
            if cell in missing or text in missing:
                continue
            if mark in text:
                if not grouped_cell.fullmatch(text):
                    return None
                grouped.append(text)
            elif found := plain_cell.fullmatch(text):
                if len(found[1]) > 3:
                    return None
                is_plain, is_large = True, is_large or len(found[1]) == 3
        has_plain |= is_plain
        has_both |= is_plain and len(grouped) > n_before
    if len(grouped) < _FEWEST_GROUPED or not (has_both or (has_plain and is_large)):
        return None
    word, few = _MARK_NAMES[mark], list(dict.fromkeys(grouped))[:3]
    swapped = _Reading("," if mark == "." else ".", mark)
    return (
        f"every number with a {word} has three digits behind it ({', '.join(few)}), "
        f"and the others are below 1,000: the {word}s may stand between thousands. If "
        "they do, ",
        _changes(swapped, options),
        "; if not, ",
        Option("decimal" if mark == "." else "thousands", "."),
        " says so.",
    )


def _readings(tokens: Sequence[str], options: TableOptions) -> list[_Reading]:
    """List the simplest notations that read every cell that can be a number."""
    decimals = (options.point, "," if options.point == "." else ".")
    all_readings = [
        _Reading(decimal, thousands)
        for thousands in (None, *_MARK_NAMES)
        for decimal in decimals
        if decimal != thousands
    ]
    if not any(reading.reads(tokens[0]) for reading in all_readings):
        return []
    numbers = [t for t in tokens if any(r.reads(t) for r in all_readings)]
    found = [r for r in all_readings if all(map(r.reads, numbers))]
    if not found:  # the cells do not agree: the first one decides
        found = [r for r in all_readings if r.reads(tokens[0])]
    plain = {reading.decimal for reading in found if reading.thousands is None}
    found = [r for r in found if r.thousands is None or r.decimal not in plain]
    return _without_free_choices(found, "".join(numbers))


def _without_free_choices(found: list[_Reading], marks: str) -> list[_Reading]:
    """Leave out readings that differ only in a decimal mark that no cell has."""
    kept: list[_Reading] = []
    for reading in found:
        same = [other for other in kept if other.thousands == reading.thousands]
        if not same or reading.decimal in marks or same[0].decimal in marks:
            kept.append(reading)
    return kept


def _facts(reading: _Reading, marks: str, options: TableOptions) -> list[str]:
    """What the marks in the cells mean, where the options say otherwise."""
    facts = []
    if reading.thousands is not None and reading.thousands != options.thousands:
        facts.append(f"{_MARK_NAMES[reading.thousands]} groups thousands")
    if reading.decimal in marks and reading.decimal != options.point:
        facts.append(f"{_MARK_NAMES[reading.decimal]} is the decimal mark")
    return facts


def _changes(reading: _Reading, options: TableOptions) -> Text:
    """Say which options to pass or drop to have the cells read so."""
    passed, dropped = [], []
    if reading.decimal != options.point:
        if reading.decimal == ".":
            dropped.append(Option("decimal", options.point))
        else:
            passed.append(Option("decimal", reading.decimal))
    if reading.thousands != options.thousands:
        if reading.thousands is not None:
            passed.append(Option("thousands", reading.thousands))
        elif options.thousands == reading.decimal:
            dropped.append(Option("thousands", options.thousands))
    steps: list[Text] = []
    for verb, some in (("pass ", passed), ("drop ", dropped)):
        for option in some:
            steps += [" and " if steps else "", "" if option in some[1:] else verb]
            steps.append(option)
    return steps
