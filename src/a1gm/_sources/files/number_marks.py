"""Which decimal and thousands marks would turn text cells into numbers."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from a1gm._sources.files.options import TableOptions, hint

_MARK_NAMES = {
    ",": "comma",
    ".": "point",
    " ": "space",
    "'": "apostrophe",
    "_": "underscore",
    "\u00a0": "no-break space",
    "\u202f": "narrow no-break space",
}


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


def marks_remedy(tokens: Sequence[str], options: TableOptions) -> str | None:
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
        return f"Its {ways[0][0]}: {ways[0][1]}."
    return f"I{'; '.join(f'if its {what}, {how}' for what, how in ways)[1:]}."


def _readings(tokens: Sequence[str], options: TableOptions) -> list[_Reading]:
    """List the simplest notations that read every cell that can be a number."""
    decimals = (options.decimal, "," if options.decimal == "." else ".")
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
    if reading.decimal in marks and reading.decimal != options.decimal:
        facts.append(f"{_MARK_NAMES[reading.decimal]} is the decimal mark")
    return facts


def _changes(reading: _Reading, options: TableOptions) -> str:
    """Say which options to pass or drop to have the cells read so."""
    passed, dropped = [], []
    if reading.decimal != options.decimal:
        if reading.decimal == ".":
            dropped.append(hint("decimal", options.decimal))
        else:
            passed.append(hint("decimal", reading.decimal))
    if reading.thousands != options.thousands:
        if reading.thousands is not None:
            passed.append(hint("thousands", reading.thousands))
        elif options.thousands == reading.decimal:
            dropped.append(hint("thousands", options.thousands))
    steps = [f"pass {' and '.join(passed)}"] if passed else []
    steps += [f"drop {' and '.join(dropped)}"] if dropped else []
    return " and ".join(steps)
