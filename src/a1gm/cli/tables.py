"""From a file name and options to a fitted table: what every command starts with."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

from a1gm.cli.common import Common, UsageError, split_names
from a1gm.cli.console import counted, listed, progress_bar, say, warn

if TYPE_CHECKING:
    from a1gm._base.types import Floats
    from a1gm._sources.files import Block, TableReader
    from a1gm._result.fit import RankOneFit


_State = TypeVar("_State")
#: An amount with a currency, a percentage: numbers to a person.
_WITH_SIGN = re.compile(
    r"([^\w\s.,+-]|[A-Z]{2,3}) ?-?[\d.,]+|-?[\d.,]+ ?([^\w\s.,+-]|[A-Z]{2,3})"
)


class Watch(Protocol):
    """Something that sees every block of a table go by."""

    def add(self, values: Floats) -> object:
        """See a block."""


_Watch = TypeVar("_Watch", bound=Watch)


@dataclass(frozen=True)
class FittedTable(Generic[_Watch]):
    """A table file, the fit of its table, and what was seen on the way."""

    table: TableReader
    fit: RankOneFit
    watched: _Watch
    kept: list[Floats] | None = None

    @property
    def n_rows(self) -> int:
        """Rows of the file."""
        return self.table.source.n_rows or 0


def open_file(path: str, common: Common) -> TableReader:
    """Open a table file with the options of the command line."""
    from a1gm._sources.files import TableOptions, TableReader, open_table

    if path != "-":
        _check_exists(path)
    if common.negatives not in ("raise", "allow"):
        raise UsageError(f"--negatives is raise or allow, not {common.negatives!r}.")
    delimiter = "\t" if common.delimiter == "\\t" else common.delimiter
    reading = TableOptions(
        missing=common.missing or (),
        delimiter=delimiter,
        decimal=common.decimal,
        thousands=common.thousands,
        encoding=common.encoding,
    )
    table = open_table(path, reading)
    known = table.source.schema.names
    options = replace(
        reading,
        columns=split_names(common.columns, known) or None,
        exclude=split_names(common.exclude, known),
        id=split_names(common.id, known),
    )
    return TableReader(table.source, options)


def with_columns(table: TableReader, columns: Sequence[str], whose: str) -> TableReader:
    """Take the columns of something else; ``whose`` says what has them."""
    from a1gm._sources.files import TableReader

    known = table.source.schema.names
    absent = [column for column in columns if column not in known]
    if absent:
        raise UsageError(
            f"{table.name} has no column {absent[0]!r}, which {whose}. Its columns "
            f"are: {listed([repr(name) for name in known])}."
        )
    return TableReader(table.source, replace(table.options, columns=list(columns)))


def fit_table(
    table: TableReader, common: Common, *, watch: Callable[[int], _Watch]
) -> FittedTable[_Watch]:
    """Read an open table once and fit it.

    Of a large table only its statistics stay in memory, and its rows in a nameless
    temporary file, so a file may be larger than the memory.

    Parameters
    ----------
    table : TableReader
        The file.
    common : Common
        The options.
    watch : callable
        Given the number of columns, returns something that sees every block.
    """
    from a1gm.cli.gather import Gathered
    from a1gm.cli.names import FileNames

    def begin(names: tuple[str, ...]) -> tuple[Gathered, _Watch]:
        return Gathered(common, FileNames(table)), watch(len(names))

    def step(state: tuple[Gathered, _Watch], block: Block) -> tuple[Gathered, _Watch]:
        state[0].add(block.values)
        state[1].add(block.values)
        return state

    gathered, watched = read_once(table, common, begin, step)
    return FittedTable(table, gathered.fit(), watched, gathered.kept)


def read_once(
    table: TableReader,
    common: Common,
    begin: Callable[[tuple[str, ...]], _State],
    step: Callable[[_State, Block], _State],
) -> _State:
    """Go through a table under a progress bar, and say what it is."""
    from a1gm._sources.files import fold_blocks

    with progress_bar(f"Reading {table.name}", quiet=common.quiet) as progress:
        state = fold_blocks(table, begin, step, progress=progress)
    say_table(table, common)
    return state


def read_whole(table: TableReader, common: Common) -> tuple[Floats, list[str] | None]:
    """Read a table and the names of its rows into memory."""
    import numpy as np

    from a1gm.cli.gather import check_values
    from a1gm.cli.names import ids_of_batch

    def begin(_: tuple[str, ...]) -> tuple[list[Floats], list[str]]:
        return [], []

    def step(state: Any, block: Block) -> Any:
        # Bad cells are refused here, where their place in the file is known.
        check_values(block.values, common)
        state[0].append(block.values)
        if table.options.id:
            state[1].extend(ids_of_batch(table, block.batch))
        return state

    blocks, names = read_once(table, common, begin, step)
    return np.concatenate(blocks), names or None


def say_table(table: TableReader, common: Common) -> None:
    """Say which columns form the table and which are passed through."""
    if common.quiet:
        return
    size = counted(table.source.n_rows or 0, "row")
    columns = counted(len(table.names), "numeric column")
    say(f"{table.name}: {size}, {columns} ({listed(table.names, 5)}).")
    _say_if_no_header(table)
    if table.passed_through:
        names = [_passed_name(table, name) for name in table.passed_through]
        say(f"Passed through untouched: {listed(names)}.")


def _say_if_no_header(table: TableReader) -> None:
    """Names that are numbers count something, as years do; others are data."""
    from a1gm._sources.files.csv import CsvSource, are_numbers

    names = table.source.schema.names
    if not (isinstance(table.source, CsvSource) and are_numbers(names)):
        return
    numbers = [float(name) for name in names]
    counts = all(number.is_integer() for number in numbers)
    if not (counts and sorted(numbers) == numbers):
        warn(
            f"Line 1 of {table.name} was taken for the header, and holds numbers only. "
            "If it is data, add a header before it."
        )


def _passed_name(table: TableReader, name: str) -> str:
    shown = name or "a column without a name"
    n_numbers = table.mixed.get(name, 0)
    if n_numbers:
        return f"{shown} (text, {counted(n_numbers, 'number')} in it)"
    sample = table.samples.get(name, "")
    if _WITH_SIGN.fullmatch(sample):
        return f"{shown} (text such as {sample!r}: take the sign off to have numbers)"
    return shown


def _check_exists(path: str) -> None:
    from pathlib import Path

    if not Path(path).exists():
        raise UsageError(f"{path} does not exist.")
