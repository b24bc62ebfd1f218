"""Fill the holes of a file's batches and leave everything else as it was."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Sized
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from a1gm._base.types import AnyArray, Bools, Floats
from a1gm._fit.rounding import Rounding, rounded
from a1gm._rows.files.table import ColumnCounts, Piece, Source
from a1gm._rows.files.text import joined
from a1gm._rows.frames import with_types
from a1gm.exceptions import DataError, LabelError, Option

if TYPE_CHECKING:
    import pyarrow as pa

MARK, BOUNDS = "_filled", ("_low", "_high")  # behind the names of columns


@dataclass
class Filler:
    """Turns pieces as read into batches to write, which have the columns ``schema``.

    ``fill_rows`` gives rows with their holes filled, NaN where nothing can be known.
    Integers, decimals and float16 with holes become float64, which can hold any fill;
    integers that stay whole become int64 if the fills do not fit their own type. Text
    that goes from a text file to another is kept letter by letter.
    """

    source: Source
    names: tuple[str, ...]  # columns of the table
    fill_rows: Callable[[Floats], Floats]
    counts: ColumnCounts  # of the whole table
    mark: bool = False  # add a column per filled one: which cells were filled
    #: Gives the bounds of the holes of rows; then each filled column gets two more.
    bounds: Callable[[Floats], tuple[Floats, Floats]] | None = None
    to_text: bool = True
    round: Rounding = None
    #: Gives the least and the greatest fill of each column; costs a pass.
    fill_range: Callable[[], tuple[Floats, Floats]] | None = None
    n_filled: int = 0  # so far
    n_left: int = 0  # holes that stay because nothing can be known
    schema: pa.Schema = field(init=False)

    def __post_init__(self) -> None:
        import pyarrow as pa

        before = self.source.schema
        self._position = {name: j for j, name in enumerate(self.names)}
        self._is_filled = np.zeros(len(self.names), bool)
        self._marked = np.flatnonzero(self.counts.missing > 0)
        self._suffixes = [MARK] * self.mark
        self._suffixes += BOUNDS if self.bounds is not None else ()
        self._is_whole = np.array(
            [self._holds_whole_numbers(before.field(name)) for name in self.names]
        )
        fields = [self._field(column) for column in before]
        pairs = list(zip(before, fields, strict=True))
        changed = {
            new.name: new.type.to_pandas_dtype().__name__
            for old, new in pairs
            if old.type != new.type
        }
        # Columns with the same types before and after are filled at once: for each,
        # its place in the file and in the table.
        self._alike: dict[tuple[Any, Any], list[tuple[int, int]]] = defaultdict(list)
        for place, (old, new) in enumerate(pairs):
            if old.name in self._position:
                at = place, self._position[old.name]
                self._alike[old.type, new.type].append(at)
        metadata = before.metadata and with_types(before.metadata, changed)
        self.schema = pa.schema([*fields, *self._more_fields()], metadata=metadata)

    @property
    def columns_filled(self) -> list[str]:
        """Columns of the table in which cells were filled."""
        named = zip(self.names, self._is_filled, strict=True)
        return [name for name, is_filled in named if is_filled]

    def fill(self, piece: Piece) -> pa.RecordBatch:
        """Fill the holes of a piece, which has all columns of the file."""
        import pyarrow as pa

        values = piece.values
        holes = np.isnan(values)
        if holes.any():
            values = self.fill_rows(values)
            if self.round is not None:
                whole = rounded(values, self._is_whole, self.round)
                values = np.where(holes, whole, values)
        filled = holes & ~np.isnan(values)
        is_filled = np.asarray(filled.any(axis=0))
        self.n_filled += int(filled.sum())
        self._is_filled |= is_filled
        self.n_left += int(holes.sum()) - int(filled.sum())
        columns = piece.batch.columns
        for (old, new), places in self._alike.items():
            chosen = [at for at in places if old != new or is_filled[at[1]]]
            if chosen:
                self._fill_columns(columns, chosen, new, values, filled)
        if self._suffixes:
            columns += self._more_columns(piece.values, filled)
        return pa.RecordBatch.from_arrays(columns, schema=self.schema)

    def _has_holes(self, name: str) -> bool:
        return bool(self.counts.missing[self._position[name]])

    def _holds_whole_numbers(self, column: pa.Field) -> bool:
        import pyarrow as pa

        if self.source.is_text:
            return bool(self.counts.is_whole[self._position[column.name]])
        return bool(pa.types.is_integer(column.type))

    def _stays_whole(self, name: str) -> bool:
        """Whether a column of whole numbers holds only such after it is filled."""
        is_kept = self.round == "auto" or not self._has_holes(name)
        return bool(self._is_whole[self._position[name]]) and is_kept

    def _field(self, column: pa.Field) -> pa.Field:
        import pyarrow as pa

        name, kind = column.name, column.type
        if name not in self._position:
            return column
        if self.source.is_text:
            if self.to_text:
                return column
            return pa.field(name, self._kind_for(name, pa.int64()))
        if kind in (pa.float32(), pa.float64()) or not self._has_holes(name):
            return column
        return pa.field(name, self._kind_for(name, kind), metadata=column.metadata)

    def _kind_for(self, name: str, own: pa.DataType) -> pa.DataType:
        """The type of a filled column: its own, or the next that holds every fill."""
        import pyarrow as pa

        if not self._stays_whole(name):
            return pa.float64()
        if self.fill_range is None or not self._has_holes(name):
            return own
        low, high = (float(ends[self._position[name]]) for ends in self.fill_range())
        for kind in (own, pa.int64()):
            holds = np.iinfo(kind.to_pandas_dtype())
            if holds.min <= low and high <= holds.max:  # Python compares them exactly
                return kind
        return pa.float64()

    def _more_fields(self) -> Iterator[pa.Field]:
        """Columns that are added: for each with holes, one per suffix."""
        import pyarrow as pa

        known = set(self.source.schema.names)
        for j in self._marked:
            for suffix in self._suffixes:
                name = self.names[j] + suffix
                check_new_column(self.source.file.name, name, known)
                kind = pa.bool_() if suffix == MARK else pa.float64()
                yield pa.field(name, pa.string() if self.to_text else kind)

    def _more_columns(self, values: Floats, filled: Bools) -> list[pa.Array]:
        import pyarrow as pa

        tables: list[AnyArray] = [filled] * self.mark
        if self.bounds is not None:
            for bound in self.bounds(values):
                whole = rounded(bound, self._is_whole, self.round)
                tables.append(np.where(filled, whole, np.nan))
        found = []
        for j in self._marked:
            for table in tables:
                column = pa.array(table[:, j], from_pandas=True)
                found.append(self._as_text(column) if self.to_text else column)
        return found

    def _as_text(self, cells: pa.Array) -> pa.Array:
        """Numbers or truths in the words of the file."""
        import pyarrow as pa
        import pyarrow.compute as pc

        text = cells.cast(pa.string())
        if self.source.options.point == ",":
            text = pc.replace_substring(text, ".", ",")
        return text

    def _fill_columns(
        self,
        columns: list[pa.Array],
        chosen: list[tuple[int, int]],
        target: pa.DataType,
        values: Floats,
        filled: Bools,
    ) -> None:
        """Put filled columns of one type into the places of those that were read."""
        import pyarrow as pa

        places, positions = map(list, zip(*chosen, strict=True))
        numbers = values.T[positions].ravel()
        if self.source.is_text and not self.to_text:
            cells = pa.array(numbers, target, from_pandas=True)
        else:
            where = filled.T[positions].ravel()
            cells = self._as_type([columns[place] for place in places], target, places)
            cells = self._replaced(cells, where, numbers[where], target)
        for place, column in zip(places, _cut(cells, places), strict=True):
            columns[place] = column

    def _as_type(
        self, columns: list[pa.Array], target: pa.DataType, places: list[int]
    ) -> pa.Array:
        import pyarrow as pa

        cells = joined(columns)
        if cells.type == target:
            return cells
        try:
            return cells.cast(target)
        except pa.ArrowInvalid as error:
            if len(columns) > 1:  # which of them?
                for column, place in zip(columns, places, strict=True):
                    self._as_type([column], target, [place])
            name = self.source.schema.names[places[0]]
            raise DataError(
                "integers above 2**53 cannot be stored beside filled fractions without "
                "being rounded. Leave the column out with ",
                Option("exclude", [name]),
                ", or store it as float64.",
                where=f"{self.source.file.name}, column {name!r}",
            ) from error

    def _replaced(
        self, cells: pa.Array, where: Bools, numbers: Floats, target: pa.DataType
    ) -> pa.Array:
        import pyarrow as pa
        import pyarrow.compute as pc

        fills = pa.array(numbers)
        if pa.types.is_string(target):
            fills = self._as_text(fills)
        elif fills.type != target:
            fills = fills.cast(target, safe=False)
        return pc.replace_with_mask(cells, pa.array(where), fills)


def check_new_column(file: str, name: str, known: Collection[str]) -> None:
    """Raise if a file already has a column that is to be added to it."""
    if name in known:
        by = Option("mark", True) if name.endswith(MARK) else Option("interval")
        raise LabelError(
            f"{file} already has a column {name!r}, which ",
            by,
            " would add. Rename it.",
        )


def _cut(cells: pa.Array, columns: Sized) -> list[pa.Array]:
    """Columns whose cells stand one after the other."""
    n_rows = len(cells) // max(len(columns), 1)
    return [cells.slice(k * n_rows, n_rows) for k in range(len(columns))]
