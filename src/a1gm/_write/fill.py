"""The second pass over files: their holes are filled, all else stays as it was."""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator
from contextlib import closing
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

import numpy as np

from a1gm._base.atomic import output_folder
from a1gm._base.types import AnyArray, Bools, Floats, OnUndetermined
from a1gm._base.warn import warn_user
from a1gm._base.words import listed
from a1gm._fit.fill import Rounding, rounded
from a1gm._fit.fit import RankOneFit
from a1gm._fit.messages import text_of_left_cells
from a1gm._fit.place import Columns
from a1gm._rows.files.source import Source
from a1gm._rows.files.table import Piece, Progress, TableFiles
from a1gm._rows.files.text import joined
from a1gm._rows.frames import with_types
from a1gm._write.writers import as_text, format_of, open_writer
from a1gm.exceptions import (
    DataError,
    LabelError,
    Option,
    ParameterError,
    See,
    Text,
    UndeterminedError,
    UndeterminedWarning,
)

if TYPE_CHECKING:
    import pyarrow as pa

MARK, BOUNDS = "_filled", ("_low", "_high")  # behind the names of columns


@dataclass
class FillFiles:
    """Writes files that were read once with their holes filled."""

    files: TableFiles
    fit: RankOneFit
    on_undetermined: OnUndetermined
    progress: Progress | None
    takes_negatives: bool
    mark: bool  # add a column per column with holes: which cells were filled
    interval: float | None  # add two: the bounds of the filled cells
    round: Rounding
    overwrite: bool
    n_filled: int = 0
    n_left: int = 0  # holes that stay because nothing can be known
    is_filled: Bools = field(init=False)  # columns of the table with a filled cell

    def write(self, dst: str | os.PathLike[str]) -> None:
        """Write all files: one to its target, several to a folder."""
        self.is_filled = np.zeros(self.files.n_cols, bool)
        if not self.files.found.go_to_folder(dst):
            self._write_file(0, dst)
        else:
            with output_folder(dst, overwrite=self.overwrite) as place:
                for at, path in enumerate(self.files.paths):
                    self._write_file(at, place(self.files.found.names[path]))
        if self.n_left and self.on_undetermined == "warn":
            warn_user(UndeterminedWarning(self._left_over()))

    def _write_file(self, at: int, target: str | os.PathLike[str]) -> None:
        source = self.files.sources[at]
        filler = _Filler(self, source, to_text=format_of(target, source) == "csv")
        pieces = self.files.pieces_of(at, all_columns=True, progress=self.progress)
        how: Any = {"like": source, "overwrite": self.overwrite}
        with closing(pieces), open_writer(target, filler.schema, **how) as writer:
            for piece in pieces:
                writer.write(filler.fill(piece))
            if self.n_left and self.on_undetermined == "raise":
                raise UndeterminedError(self._left_over())

    @cached_property
    def bounds(self) -> Callable[[Floats], tuple[Floats, Floats]] | None:
        """What gives the bounds of the holes of rows, if they are asked for."""
        return None if self.interval is None else bounds_of(self.fit, self.interval)

    @cached_property
    def columns(self) -> Columns:
        """A row is placed by its own cells, whether it was fitted or not."""
        columns = self.fit._columns
        return (
            replace(columns, takes_negatives=True) if self.takes_negatives else columns
        )

    def _left_over(self) -> Text:
        text = text_of_left_cells(self.n_left)
        if self.files is not self.fit._table.source:
            return text
        return text[:-1], See("fit.undetermined"), "."


def bounds_of(
    fit: RankOneFit, level: float
) -> Callable[[Floats], tuple[Floats, Floats]]:
    """What gives the bounds of the holes of rows; raise if nothing is known of them."""
    try:
        sure = fit.uncertainty()
    except (DataError, ParameterError) as error:
        raise error.advised("Leave out ", Option("interval"), ".") from error
    return partial(sure.interval, level=level)


class _Filler:
    """Turns the pieces of one file into batches to write, with columns ``schema``.

    Integers, decimals and float16 with missing cells become float64, which can hold any
    fill, and integers that are filled with whole numbers int64. Text that goes from a
    text file to another is kept letter by letter.
    """

    def __init__(self, job: FillFiles, source: Source, *, to_text: bool) -> None:
        import pyarrow as pa

        counts, before, names = job.files.counts, source.schema, job.files.names
        assert counts is not None
        self._job, self._source, self._to_text = job, source, to_text
        self._has_holes = counts.missing > 0
        self._is_whole = counts.is_whole
        if not source.is_text:
            kinds = [before.field(name).type for name in names]
            self._is_whole = np.array([pa.types.is_integer(kind) for kind in kinds])
        self._suffixes = [MARK] * job.mark
        self._suffixes += BOUNDS if job.interval is not None else ()
        position = {name: j for j, name in enumerate(names)}
        # Columns with the same types before and after are filled at once: for each,
        # its place in the file and in the table.
        self._alike: dict[tuple[Any, Any], list[tuple[int, int]]] = defaultdict(list)
        fields, changed = list(before), {}
        for place, old in enumerate(before):
            j = position.get(old.name)
            if j is None:
                continue
            new = self._type(old.type, j)
            self._alike[old.type, new].append((place, j))
            if new != old.type:
                fields[place] = old.with_type(new)
                changed[old.name] = new.to_pandas_dtype().__name__
        metadata = before.metadata and with_types(before.metadata, changed)
        self.schema = pa.schema([*fields, *self._more_fields()], metadata=metadata)

    def _type(self, own: pa.DataType, j: int) -> pa.DataType:
        """Return the type of a filled column: its own, or one that holds any fill."""
        import pyarrow as pa

        has_holes, is_text = self._has_holes[j], self._source.is_text
        if is_text and self._to_text:
            return own
        if not is_text and (not has_holes or own in (pa.float32(), pa.float64())):
            return own
        is_integer = self._is_whole[j] and (not has_holes or self._job.round == "auto")
        return pa.int64() if is_integer else pa.float64()

    def _more_fields(self) -> Iterator[pa.Field]:
        """Yield the columns that are added: for each with holes, one per suffix."""
        import pyarrow as pa

        known = set(self._source.names)
        for j in np.flatnonzero(self._has_holes):
            for suffix in self._suffixes:
                name = self._job.files.names[j] + suffix
                check_new_column(self._source.file.name, name, known)
                kind = pa.bool_() if suffix == MARK else pa.float64()
                yield pa.field(name, pa.string() if self._to_text else kind)

    def fill(self, piece: Piece) -> pa.RecordBatch:
        """Fill the holes of a piece, which has all columns of the file."""
        import pyarrow as pa

        job, values = self._job, piece.values
        holes = np.isnan(values)
        if holes.any():
            values = job.columns.fill(values)
            if job.round is not None:
                whole = rounded(values, self._is_whole, job.round)
                values = np.where(holes, whole, values)
        filled = holes & ~np.isnan(values)
        is_filled = np.asarray(filled.any(axis=0))
        job.n_filled += int(filled.sum())
        job.n_left += int(holes.sum()) - int(filled.sum())
        job.is_filled |= is_filled
        columns = piece.batch.columns
        for (old, new), places in self._alike.items():
            chosen = [at for at in places if old != new or is_filled[at[1]]]
            if chosen:
                self._fill_columns(columns, chosen, new, values, filled)
        if self._suffixes:
            columns += self._more_columns(piece.values, filled)
        return pa.RecordBatch.from_arrays(columns, schema=self.schema)

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
        import pyarrow.compute as pc

        places, positions = map(list, zip(*chosen, strict=True))
        numbers, where = values.T[positions].ravel(), filled.T[positions].ravel()
        try:
            if self._source.is_text and not self._to_text:
                cells = pa.array(numbers, target, from_pandas=True)
            else:
                fills = pa.array(numbers[where])
                if pa.types.is_string(target):
                    fills = as_text(fills, self._source.options.point)
                else:
                    fills = fills.cast(target, safe=pa.types.is_integer(target))
                same = joined([columns[place] for place in places]).cast(target)
                cells = pc.replace_with_mask(same, pa.array(where), fills)
        except pa.ArrowInvalid as error:
            some = [self._source.names[place] for place in places]
            raise DataError(
                f"{listed(list(map(repr, some)), 3)}: the cells and the fills do not "
                f"fit in {target} without being rounded. Leave columns out with ",
                Option("exclude", some[:1]),
                ", or store them as float64.",
                where=self._source.file.name,
            ) from error
        for k, place in enumerate(places):
            columns[place] = cells.slice(k * len(values), len(values))

    def _more_columns(self, values: Floats, filled: Bools) -> Iterator[pa.Array]:
        import pyarrow as pa

        job = self._job
        tables: list[AnyArray] = [filled] * job.mark
        if job.bounds is not None:
            for bound in job.bounds(values):
                whole = rounded(bound, self._is_whole, job.round)
                tables.append(np.where(filled, whole, np.nan))
        for j in np.flatnonzero(self._has_holes):
            for table in tables:
                cells = pa.array(table[:, j], from_pandas=True)
                point = self._source.options.point
                yield as_text(cells, point) if self._to_text else cells


def check_new_column(file: str, name: str, known: Collection[str]) -> None:
    """Raise if a file already has a column that is to be added to it."""
    if name in known:
        by = Option("mark", True) if name.endswith(MARK) else Option("interval")
        raise LabelError(
            f"{file} already has a column {name!r}, which ",
            by,
            " would add. Rename it.",
        )
