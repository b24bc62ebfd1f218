"""A file as blocks of numbers: which columns form the table, and their values."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

import numpy as np

from a1gm._base.optional import require_pyarrow
from a1gm._base.types import Floats
from a1gm._base.words import counted
from a1gm._sources.files import csv_faults
from a1gm._sources.files.columnar import ArrowSource, ParquetSource
from a1gm._sources.files.csv import CsvSource
from a1gm._sources.files.numbers import Cast, cast_numbers, cast_text, is_numeric_type
from a1gm._sources.files.options import TableOptions, hint
from a1gm._sources.files.origin import find_origin
from a1gm.exceptions import (
    FileFormatError,
    InfiniteValuesError,
    LabelError,
    NegativeValuesError,
    NotNumericError,
)

if TYPE_CHECKING:
    import pyarrow as pa

Source: TypeAlias = CsvSource | ParquetSource | ArrowSource
Progress: TypeAlias = Callable[[int, float], None]
_State = TypeVar("_State")


@dataclass(frozen=True)
class Block:
    """Some consecutive rows of a file.

    Attributes
    ----------
    first_row : int
        Number of the first row in the file, 0-based.
    batch : pyarrow.RecordBatch
        Every column as it stands in the file.
    names : tuple of str
        The columns of the table.
    values : ndarray of float64, shape (rows, len(names))
        Their numbers; NaN marks a missing cell.
    """

    first_row: int
    batch: pa.RecordBatch
    names: tuple[str, ...]
    values: Floats


@dataclass
class _Count:
    """What a text column has shown so far."""

    n_numbers: int = 0
    n_others: int = 0
    n_foreign: int = 0
    first_other: int = -1
    others: tuple[str, ...] = ()

    def add(self, cast: Cast, first_row: int) -> None:
        self.n_numbers += cast.n_numbers
        self.n_others += cast.n_others
        self.n_foreign += cast.n_foreign
        if cast.n_others and self.first_other < 0:
            self.first_other = first_row + cast.first_other
        self.others = tuple(dict.fromkeys((*self.others, *cast.others)))[:4]

    @property
    def is_numeric_but_for_a_few(self) -> bool:
        number_like = self.n_numbers + self.n_foreign
        words = self.n_others - self.n_foreign
        return self.n_others > 0 and number_like > 0 and words <= number_like


@dataclass
class TableReader:
    """A table file that can be read as often as needed.

    Made by :func:`open_table`. The columns of the table are the ones asked for, or
    every numeric column. In a typed file the schema says which those are. In a text
    file only a whole pass can: a column is numeric when every cell is a number or
    missing; text when most cells are neither; and refused, with the cell and the
    option that settles it, when it is numeric but for a few cells. :func:`fold_blocks`
    does that pass.

    Attributes
    ----------
    source : CsvSource, ParquetSource or ArrowSource
        The file, its schema, and how far it has been read.
    names : tuple of str
        The columns of the table as known now.
    settled : bool
        Whether ``names`` is final.
    mixed : dict of str to int
        For each text column found by reading, how many of its cells are numbers.
    samples : dict of str to str
        For each of these columns, a cell that is none.
    """

    source: Source
    options: TableOptions
    names: tuple[str, ...] = ()
    settled: bool = True
    mixed: dict[str, int] = field(default_factory=dict)
    samples: dict[str, str] = field(default_factory=dict)
    _counts: dict[str, _Count] = field(default_factory=dict)

    def __post_init__(self) -> None:
        schema = self.source.schema
        _check_known(self.name, schema.names, self.options)
        left_out = {*self.options.exclude, *self.options.id}
        wanted = self.options.columns
        if isinstance(self.source, CsvSource):
            self.names = tuple(wanted or (c for c in schema.names if c not in left_out))
            self.settled = False
        else:
            self._check_types(wanted or ())
            self.names = tuple(
                wanted
                or (
                    column.name
                    for column in schema
                    if is_numeric_type(column.type) and column.name not in left_out
                )
            )
        self._check_some()

    @property
    def name(self) -> str:
        """What messages call the file."""
        return self.source.origin.name

    @property
    def passed_through(self) -> tuple[str, ...]:
        """Columns that are not part of the table and stay untouched."""
        table = set(self.names)
        return tuple(name for name in self.source.schema.names if name not in table)

    def blocks(
        self,
        *,
        progress: Progress | None = None,
        known: Sequence[Floats] | None = None,
    ) -> Iterator[Block]:
        """Read the file from its start.

        Parameters
        ----------
        known : sequence of ndarray, optional
            The values of every block from an earlier pass, which saves casting them
            again. The columns must be settled.
        progress : callable, optional
            Called after each block with the rows done so far and the fraction of the
            file read.

        Raises
        ------
        FileFormatError
            The file is damaged, changes while it is read, or has a column that is
            numeric but for a few cells.
        """
        self._counts = {}
        rows = 0
        self.source.origin.check_unchanged()
        for number, batch in enumerate(self._batches()):
            if known is not None:
                yield Block(rows, batch, self.names, self._known(known, number, batch))
                rows += self._advance(batch, rows, progress)
                continue
            columns = self._cast(batch, rows)
            if rows == 0 and not self.settled:
                self.names = tuple(
                    name for name in self.names if columns[name] is not None
                )
            yield Block(rows, batch, self.names, _stacked(columns, self.names, batch))
            rows += self._advance(batch, rows, progress)
        self.source.origin.check_unchanged()
        if self.source.n_rows not in (None, rows):
            raise self._changed(
                f"had {counted(self.source.n_rows, 'row')} and now {rows:,}"
            )
        self.source.n_rows = rows
        self._settle()

    @property
    def is_doomed(self) -> bool:
        """Whether a column of the table has proved to be text in this pass."""
        return any(
            self._counts[name].n_others for name in self.names if name in self._counts
        )

    def _advance(
        self, batch: pa.RecordBatch, rows: int, progress: Progress | None
    ) -> int:
        if progress is not None:
            done = self.source.position / max(self.source.origin.size, 1)
            progress(rows + batch.num_rows, done)
        return int(batch.num_rows)

    def _known(
        self, known: Sequence[Floats], number: int, batch: pa.RecordBatch
    ) -> Floats:
        if number >= len(known) or len(known[number]) != batch.num_rows:
            raise self._changed("has other rows than before")
        return known[number]

    def _changed(self, how: str) -> FileFormatError:
        return FileFormatError(
            f"{self.name} {how}: it changed while it was being read. Nothing was "
            "written."
        )

    def place_of(self, row: int, column: str | None = None) -> str:
        """Name a cell the way its owner finds it: file, line, column."""
        place = self.source.place_of(row)
        return place if column is None else f"{place}, column {column!r}"

    def _batches(self) -> Iterator[pa.RecordBatch]:
        limit = self.options.batch_rows
        for batch in self.source.batches():
            if batch.num_rows == 0:
                continue
            if limit is None or batch.num_rows <= limit:
                yield batch
            else:
                for start in range(0, batch.num_rows, limit):
                    yield batch.slice(start, limit)

    def _cast(self, batch: pa.RecordBatch, first_row: int) -> dict[str, Floats | None]:
        """Cast the columns of the table, and the ones that may still be refused."""
        columns: dict[str, Floats | None] = {}
        for name in dict.fromkeys((*self.names, *self._counts)):
            if name in self.mixed:
                continue
            column = batch.column(batch.schema.get_field_index(name))
            if not isinstance(self.source, CsvSource):
                columns[name] = cast_numbers(column, self.options)
                continue
            cast = cast_text(column, self.options)
            columns[name] = cast.values
            self._counts.setdefault(name, _Count()).add(cast, first_row)
        return columns

    def _settle(self) -> None:
        """Keep the numeric columns; refuse the ones that nearly are."""
        for name, count in self._counts.items():
            asked_for = self.options.columns is not None and count.n_others > 0
            if count.is_numeric_but_for_a_few or asked_for:
                raise csv_faults.not_a_number(
                    self.place_of(count.first_other),
                    name,
                    count.others,
                    (count.n_numbers, count.n_others),
                    self.options,
                )
        if self._counts:
            # Blocks already handed out with a text column in them were one column too
            # wide, so the pass has to be repeated.
            self.settled = not self.is_doomed
            self.mixed.update(
                {n: c.n_numbers for n, c in self._counts.items() if c.n_others}
            )
            self.samples.update(
                {n: c.others[0] for n, c in self._counts.items() if c.others}
            )
            self.names = tuple(n for n in self.names if not self._counts[n].n_others)
            self._check_some()

    def _check_some(self) -> None:
        if not self.names:
            raise NotNumericError(
                f"{self.name} has no numeric column. Its columns are: "
                f"{', '.join(map(repr, self.source.schema.names[:10]))}."
            )

    def _check_types(self, wanted: Any) -> None:
        import pyarrow as pa

        for name in wanted:
            kind = self.source.schema.field(name).type
            if not is_numeric_type(kind) and not pa.types.is_boolean(kind):
                raise NotNumericError(
                    f"{self.name}: column {name!r} holds {kind}, not numbers. "
                    f"Leave it out of {hint('columns', name)}."
                )


def open_table(
    path: str | os.PathLike[str], options: TableOptions | None = None
) -> TableReader:
    r"""Open a table file for reading in blocks.

    Parameters
    ----------
    path : path-like
        A CSV, TSV, Parquet, Feather or Arrow file, gzipped text included; ``"-"`` for
        standard input. The bytes decide the format, the extension only the delimiter.
    options : TableOptions, optional
        Which columns form the table and how text becomes numbers.

    Returns
    -------
    TableReader

    Raises
    ------
    FileFormatError
        The file cannot be read as a table.
    MissingExtraError
        pyarrow is not installed.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "a.csv"
    >>> _ = path.write_text("name,x,y\nann,1,2\nbob,,4\n")
    >>> table = open_table(path)
    >>> blocks = fold_blocks(table, lambda names: [], lambda out, block: out + [block])
    >>> blocks[0].names
    ('x', 'y')
    """
    require_pyarrow()
    options = options or TableOptions()
    origin = find_origin(path)
    if origin.format == "parquet":
        return TableReader(ParquetSource(origin, options), options)
    if origin.format == "csv":
        return TableReader(CsvSource(origin, options), options)
    return TableReader(ArrowSource(origin, options), options)


def fold_blocks(
    table: TableReader,
    begin: Callable[[tuple[str, ...]], _State],
    step: Callable[[_State, Block], _State],
    *,
    progress: Progress | None = None,
) -> _State:
    """Go through a table once, settling which columns form it.

    Parameters
    ----------
    table : TableReader
        The table.
    begin : callable
        Given the column names, returns a fresh state. Called again, and everything
        before forgotten, in the rare case that a column turned out to be text after
        its first block looked numeric or empty.
    step : callable
        Given the state and a block, returns the new state. An error about the values
        is raised again with the place of the cell in the file.

    Returns
    -------
    state
        The state after the last block.
    """
    while True:
        state: _State | None = None
        for block in table.blocks(progress=progress):
            if block.names and not table.is_doomed:
                state = begin(block.names) if state is None else state
                state = _located_step(table, step, state, block)
        if table.settled and state is not None:
            return state


def _stacked(
    columns: dict[str, Floats | None], names: tuple[str, ...], batch: pa.RecordBatch
) -> Floats:
    # Column by column is how the cells arrive, so Fortran order costs no copy.
    values = np.full((batch.num_rows, len(names)), np.nan, order="F")
    for position, name in enumerate(names):
        column = columns[name]
        if column is not None:
            values[:, position] = column
    return values


def _located_step(
    table: TableReader,
    step: Callable[[_State, Block], _State],
    state: _State,
    block: Block,
) -> _State:
    try:
        return step(state, block)
    except (InfiniteValuesError, NegativeValuesError) as error:
        infinite = np.isinf(block.values)
        bad = np.argwhere(infinite if infinite.any() else block.values < 0)
        if len(bad) == 0:
            raise
        row, column = bad[0]
        place = table.place_of(block.first_row + int(row), block.names[column])
        value = block.values[row, column]
        kind = type(error)
        raise kind(
            f"{place}: {value:g} is {_VALUE_FAULT[bool(np.isinf(value))]}"
        ) from error


_VALUE_FAULT = {
    True: "not a finite number. If it marks a missing cell pass --missing with that "
    "text.",
    False: "negative (Negative values in data). If it marks a missing cell pass "
    "--missing with that number; if negative increments are meant, --negatives allow.",
}


def _check_known(name: str, known: list[str], options: TableOptions) -> None:
    for field_name in ("columns", "exclude", "id"):
        for column in getattr(options, field_name) or ():
            if column not in known:
                listed = ", ".join(map(repr, known[:10]))
                more = ", ..." if len(known) > 10 else ""
                raise LabelError(
                    f"{name} has no column {column!r} (asked for by --{field_name}). "
                    f"Its columns are: {listed}{more}."
                )
