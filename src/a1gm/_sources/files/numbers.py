"""Text cells as numbers: which are numbers, which are missing, which are neither."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from a1gm._base.types import Floats
from a1gm._sources.files.options import TableOptions

if TYPE_CHECKING:
    import pyarrow as pa

#: A plain number after the marks of the locale were taken out.
_NUMBER = r"^[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?$"
_INFINITY = r"^[+-]?(?i:inf|infinity)$"
#: Numbers in other notations, 1,5 and 1.234.567 and 1 234,5: a column of these is no
#: text, it asks for another decimal or thousands mark.
_FOREIGN = (
    r"^[+-]?([0-9]+[.,][0-9]+|[0-9]{1,3}([.,' _\x{a0}\x{202f}][0-9]{3})+([.,][0-9]+)?)$"
)
_NAN = r"^[+-]?(?i:nan)$"


@dataclass
class TextColumn:
    """What the cells of a text column have shown so far."""

    n_numbers: int = 0
    n_others: int = 0  # neither a number nor missing
    n_foreign: int = 0  # of these, numbers under other marks, such as 1,5
    first_other: int = -1  # row of the first cell that is neither
    others: tuple[str, ...] = ()  # the first few distinct texts that are neither

    def add(self, more: TextColumn, first_row: int) -> None:
        """Count the cells of a piece that begins at some row."""
        self.n_numbers += more.n_numbers
        self.n_others += more.n_others
        self.n_foreign += more.n_foreign
        if more.n_others and self.first_other < 0:
            self.first_other = first_row + more.first_other
        self.others = tuple(dict.fromkeys((*self.others, *more.others)))[:4]

    @property
    def is_numeric_but_for_a_few(self) -> bool:
        """Whether numbers, in whatever notation, outweigh the words."""
        number_like = self.n_numbers + self.n_foreign
        words = self.n_others - self.n_foreign
        return self.n_others > 0 and number_like > 0 and words <= number_like


def cast_text(
    column: pa.Array, options: TableOptions
) -> tuple[Floats | None, TextColumn]:
    """Read a column of text, which has no nulls, as numbers; tell what its cells are.

    NaN is a missing cell; None stands for the numbers when some cell is neither a
    number nor missing.
    """
    if options.decimal == "." and options.thousands is None:
        values = _cast_plain(column)
        if values is not None:
            _drop_missing_numbers(values, options)
            return values, TextColumn(int(np.count_nonzero(~np.isnan(values))))
    return _cast_carefully(column, options)


def cast_numbers(column: pa.Array, options: TableOptions) -> Floats:
    """Read a column that is numeric by type; nulls become NaN."""
    import pyarrow as pa

    if pa.types.is_null(column.type):
        return np.full(len(column), np.nan)
    if column.type != pa.float64():
        # Integers above 2**53 are rounded to the nearest double, as documented.
        column = column.cast(pa.float64(), safe=False)
    values: Floats = column.to_numpy(zero_copy_only=False)
    if options.missing_numbers:
        values = values.copy()
        _drop_missing_numbers(values, options)
    return values


def is_numeric_type(kind: pa.DataType) -> bool:
    """Whether a column of this type belongs to the table by default.

    Booleans, dates, durations and categories do not: a filled 0.37 has no meaning
    there.
    """
    import pyarrow as pa

    types = pa.types
    checks = types.is_integer, types.is_floating, types.is_decimal, types.is_null
    return any(is_kind(kind) for is_kind in checks)


def _cast_plain(column: pa.Array) -> Floats | None:
    """Cast without copying the text; None when some cell is not a plain number."""
    import pyarrow as pa

    if len(column) == 0:
        return np.empty(0)
    _, offsets, data = column.buffers()
    starts = np.frombuffer(offsets, np.int32)[
        column.offset : column.offset + len(column) + 1
    ]
    filled = np.packbits(np.diff(starts) > 0, bitorder="little")
    # The same text under another validity bitmap: empty cells become null.
    text = pa.Array.from_buffers(
        pa.string(), len(column), [pa.py_buffer(filled), pa.py_buffer(starts), data]
    )
    try:
        numbers = text.cast(pa.float64())
    except pa.ArrowInvalid:
        return None
    return np.array(numbers.to_numpy(zero_copy_only=False))


def _cast_carefully(
    column: pa.Array, options: TableOptions
) -> tuple[Floats | None, TextColumn]:
    """Decide every cell of a column that is not plainly numeric."""
    import pyarrow as pa
    import pyarrow.compute as pc

    trimmed = pc.utf8_trim_whitespace(column)
    tokens = pa.array(options.missing_tokens, pa.string())
    missing = pc.or_(pc.is_in(column, tokens), pc.is_in(trimmed, tokens))
    plain, in_locale = _without_marks(trimmed, options)
    missing = pc.or_(missing, pc.match_substring_regex(plain, _NAN))
    number = pc.and_(
        in_locale,
        pc.or_(
            pc.match_substring_regex(plain, _NUMBER),
            pc.match_substring_regex(plain, _INFINITY),
        ),
    )
    number = pc.and_not(number, missing)
    other = pc.invert(pc.or_(number, missing))
    n_numbers = int(pc.sum(number).as_py() or 0)
    n_others = int(pc.sum(other).as_py() or 0)
    if n_others:
        strange = trimmed.filter(other)
        first = int(pc.index(other, value=True).as_py())
        few = tuple(pc.unique(strange.slice(0, 1000)).to_pylist()[:4])
        foreign = pc.sum(pc.match_substring_regex(strange, _FOREIGN)).as_py()
        return None, TextColumn(n_numbers, n_others, int(foreign or 0), first, few)
    numbers = pc.if_else(number, plain, pa.scalar(None, pa.string())).cast(pa.float64())
    values = np.array(numbers.to_numpy(zero_copy_only=False))
    _drop_missing_numbers(values, options)
    return values, TextColumn(n_numbers)


def _without_marks(text: pa.Array, options: TableOptions) -> tuple[pa.Array, pa.Array]:
    """Numbers with a plain point, and whether each cell keeps to the locale.

    Without the second answer ``1,5`` under ``thousands=","`` would become 15, and
    ``1.5`` under ``decimal=","`` would be believed.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    allowed = pa.array(np.ones(len(text), dtype=bool))
    plain = text
    if options.thousands is not None:
        plain = pc.replace_substring(text, options.thousands, "")
        mark, point = re.escape(options.thousands), re.escape(options.decimal)
        grouped = rf"^[+-]?([0-9]+|[0-9]{{1,3}}({mark}[0-9]{{3}})+)([^0-9{mark}]|$)"
        has_mark = pc.match_substring(text, options.thousands)
        allowed = pc.or_(
            pc.invert(has_mark),
            pc.and_(
                pc.match_substring_regex(text, grouped),
                pc.invert(pc.match_substring_regex(text, f"{point}.*{mark}")),
            ),
        )
    if options.decimal == ",":
        if options.thousands != ".":
            allowed = pc.and_not(allowed, pc.match_substring(text, "."))
        plain = pc.replace_substring(plain, ",", ".")
    return plain, allowed


def _drop_missing_numbers(values: Floats, options: TableOptions) -> None:
    for number in options.missing_numbers:
        values[values == number] = np.nan
