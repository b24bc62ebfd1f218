"""Text cells as numbers: which are numbers, which are missing, which are neither."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from a1gm._base.types import AnyArray, Bools, Floats, Ints
from a1gm._rows.files.options import TableOptions

if TYPE_CHECKING:
    import pyarrow as pa

#: A plain number after the marks of the locale were taken out.
_NUMBER = r"^[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?$"
_INFINITY = r"^[+-]?(?i:inf|infinity)$"
#: Numbers in other notations, 1,5 and 1.234.567 and 1 234,5: a column of these is no
#: text, it asks for another decimal or thousands mark.
_FOREIGN = (
    r"^[+-]?([0-9]+[.,][0-9]+"
    r"|[0-9]{1,3}([.,' _\x{a0}\x{2019}\x{202f}][0-9]{3})+([.,][0-9]+)?)$"
)
_NAN = r"^[+-]?(?i:nan)$"
#: Words for a missing cell: a column of these and of numbers is no text either.
_MARKS_OF_HOLES = ("n/a", "#n/a", "n.a.", "null", "none", "-", "--", "–", "?", ".")
_FEW_CELLS = 1 << 12  # not worth a search for the columns that are not plain numbers


@dataclass
class TextColumn:
    """What the cells of a text column have shown so far."""

    n_numbers: int = 0
    n_others: int = 0  # neither a number nor missing
    n_foreign: int = 0  # of these, numbers under other marks, such as 1,5
    first_other: int = -1  # row of the first cell that is neither
    others: tuple[str, ...] = ()  # the first few distinct texts that are neither

    def add(self, trimmed: pa.Array, is_other: Bools, first_row: int) -> None:
        """Count the cells of a piece that begins at some row and has others."""
        import pyarrow.compute as pc

        strange = trimmed.filter(is_other)
        self.n_others += len(strange)
        foreign = pc.sum(pc.match_substring_regex(strange, _FOREIGN)).as_py()
        self.n_foreign += int(foreign or 0)
        if self.first_other < 0:
            self.first_other = first_row + int(is_other.argmax())
        few = pc.unique(strange.slice(0, 1000)).to_pylist()[:4]
        self.others = tuple(dict.fromkeys((*self.others, *few)))[:4]

    @property
    def is_numeric_but_for_a_few(self) -> bool:
        """Whether numbers, in whatever notation, outweigh the words."""
        number_like = self.n_numbers + self.n_foreign
        words = self.n_others - self.n_foreign
        return bool(self.n_others and number_like) and (
            words <= number_like or self._are_marks
        )

    @property
    def is_text_so_far(self) -> bool:
        """Whether nothing was a number, nor a word for a missing one."""
        return not (self.n_numbers or self.n_foreign or self._are_marks)

    @property
    def _are_marks(self) -> bool:
        return all(text.lower() in _MARKS_OF_HOLES for text in self.others)


class TextColumns:
    """Columns of text as numbers, and what their cells have shown so far.

    The cells of all columns are cast in one call: a call costs as much as a hundred
    cells, and a table may have more columns than rows.
    """

    def __init__(
        self, names: Sequence[str], schema: pa.Schema, options: TableOptions
    ) -> None:
        self.names = tuple(names)
        self._options = options
        places = {name: place for place, name in enumerate(schema.names)}
        self._place_in_file = [places[name] for name in names]
        self._others: dict[int, TextColumn] = {}
        self._n_numbers = np.zeros(len(names), np.int64)
        self._has_plain_marks = options.point == "." and options.thousands is None
        self._is_plain = np.full(len(names), self._has_plain_marks)  # so far

    @property
    def found(self) -> list[tuple[str, TextColumn]]:
        """Columns with cells that are neither numbers nor missing."""
        return [(self.names[j], column) for j, column in sorted(self._others.items())]

    @property
    def numeric(self) -> tuple[str, ...]:
        """All other columns."""
        if not self._others:
            return self.names
        named = enumerate(self.names)
        return tuple(name for j, name in named if j not in self._others)

    def cast(self, batch: pa.RecordBatch, first_row: int) -> Floats:
        """Read the next rows, which have no nulls; NaN where a cell is no number.

        The columns of the array lie one after the other.
        """
        cells = batch.columns
        columns = [cells[place] for place in self._place_in_file]
        values = self._cast_all(columns, first_row)
        _drop_missing_numbers(values, self._options)
        self._n_numbers += np.count_nonzero(~np.isnan(values), axis=1)
        for j, column in self._others.items():
            column.n_numbers = int(self._n_numbers[j])
        return values.T

    def _cast_all(self, columns: list[pa.Array], first_row: int) -> Floats:
        """Cast the columns that were plain numbers so far, then the others."""
        shape = len(columns), len(columns[0])
        groups = [np.flatnonzero(self._is_plain), np.flatnonzero(~self._is_plain)]
        if len(groups[0]) == len(columns):  # the usual file: no other copy
            groups = groups[:1]
            plain = _cast_plain(joined(columns))
            if plain is not None:
                return plain.reshape(shape)
        values = np.empty(shape)
        for chosen in filter(len, groups):
            text = joined([columns[j] for j in chosen])
            self._cast(text, chosen, values, first_row)
        return values

    def _cast(
        self, text: pa.Array, chosen: Ints, values: Floats, first_row: int
    ) -> None:
        """Cast the cells of some columns, which stand one after the other."""
        shape = len(chosen), values.shape[1]
        plain = _cast_plain(text) if self._has_plain_marks else None
        if plain is not None:
            values[chosen] = plain.reshape(shape)
        elif self._is_plain[chosen[0]] and len(chosen) > 1 and len(text) > _FEW_CELLS:
            for half in np.array_split(np.arange(len(chosen)), 2):
                part = text.slice(half[0] * shape[1], len(half) * shape[1])
                self._cast(part, chosen[half], values, first_row)
        else:
            self._is_plain[chosen] = False
            numbers, other, trimmed = _cast_carefully(text, self._options)
            values[chosen] = numbers.reshape(shape)
            for k in np.flatnonzero(other.reshape(shape).any(axis=1)):
                some = slice(k * shape[1], (k + 1) * shape[1])
                column = self._others.setdefault(int(chosen[k]), TextColumn())
                column.add(trimmed[some], other[some], first_row)


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


def read_cells(cells: pa.Array, options: TableOptions) -> tuple[AnyArray, bool]:
    """Read one column: its numbers, and whether some cells are text.

    Whole numbers stay whole: an id may have more digits than a float.
    """
    import pyarrow as pa

    if not options.missing_numbers:
        with contextlib.suppress(pa.ArrowInvalid):
            return cells.cast(pa.int64()).to_numpy(), False
    if is_numeric_type(cells.type):
        return cast_numbers(cells, options), False
    batch = pa.RecordBatch.from_arrays([cells], names=["cells"])
    columns = TextColumns(["cells"], batch.schema, options)
    return columns.cast(batch, 0)[:, 0], bool(columns.found)


def joined(columns: Sequence[pa.Array]) -> pa.Array:
    """Columns of one type, one after the other."""
    import pyarrow as pa

    return columns[0] if len(columns) == 1 else pa.concat_arrays(columns)


def is_numeric_type(kind: pa.DataType) -> bool:
    """Whether a column of this type belongs to the table by default.

    Booleans, dates, durations and categories do not: a filled 0.37 has no meaning
    there.
    """
    import pyarrow as pa

    types = pa.types
    checks = types.is_integer, types.is_floating, types.is_decimal, types.is_null
    return any(is_kind(kind) for is_kind in checks)


def is_text_type(kind: pa.DataType) -> bool:
    """Whether a column of this type can name rows: text, categories, dates, times."""
    import pyarrow as pa

    types = pa.types
    texts = types.is_string, types.is_large_string, types.is_string_view
    checks = (*texts, types.is_dictionary, types.is_temporal)
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
    # Where cells are missing it is a copy that may be written to.
    values: Floats = np.require(numbers.to_numpy(zero_copy_only=False), None, "W")
    return values


def _cast_carefully(
    text: pa.Array, options: TableOptions
) -> tuple[Floats, Bools, pa.Array]:
    """Decide every cell of columns that are not plainly numeric.

    Returns the numbers, which cells are neither numbers nor missing, and the text
    without white space around it.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    trimmed = pc.utf8_trim_whitespace(text)
    tokens = pa.array(options.missing_tokens, pa.string())
    missing = pc.or_(pc.is_in(text, tokens), pc.is_in(trimmed, tokens))
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
    other = pc.invert(pc.or_(number, missing)).to_numpy(zero_copy_only=False)
    numbers = pc.if_else(number, plain, pa.scalar(None, pa.string())).cast(pa.float64())
    return numbers.to_numpy(zero_copy_only=False), other, trimmed


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
        mark, point = re.escape(options.thousands), re.escape(options.point)
        grouped = rf"^[+-]?([0-9]+|[0-9]{{1,3}}({mark}[0-9]{{3}})+)([^0-9{mark}]|$)"
        has_mark = pc.match_substring(text, options.thousands)
        allowed = pc.or_(
            pc.invert(has_mark),
            pc.and_(
                pc.match_substring_regex(text, grouped),
                pc.invert(pc.match_substring_regex(text, f"{point}.*{mark}")),
            ),
        )
    if options.point == ",":
        if options.thousands != ".":
            allowed = pc.and_not(allowed, pc.match_substring(text, "."))
        plain = pc.replace_substring(plain, ",", ".")
    return plain, allowed


def _drop_missing_numbers(values: Floats, options: TableOptions) -> None:
    for number in options.missing_numbers:
        values[values == number] = np.nan
