"""One pass over a table file for its statistics, reading ahead of the work."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from typing import TYPE_CHECKING, NoReturn

from a1gm._base.words import counted
from a1gm._sources import Source
from a1gm._sources.files.csv import CsvSource
from a1gm._sources.files.parts import Part, part_of_column, stacked_parts
from a1gm._sources.files.read_ahead import read_ahead
from a1gm._sources.files.reader import Block, Progress, TableReader, _located_step
from a1gm.exceptions import DataError, FileFormatError

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["Piece", "scan_table"]


@dataclass(frozen=True)
class Piece:
    """Some consecutive rows of a file, where their numbers lie."""

    first_row: int
    batch: pa.RecordBatch
    names: tuple[str, ...]
    parts: list[Part]

    @property
    def source(self) -> Source:
        """The rows as the kernel reads them."""
        n_rows, names = self.batch.num_rows, list(self.names)
        return Source(self.parts, n_rows, len(names), None, names)

    def as_block(self) -> Block:
        """The rows as an array."""
        values = stacked_parts(self.parts, self.batch.num_rows)
        return Block(self.first_row, self.batch, self.names, values)


def scan_table(
    table: TableReader,
    begin: Callable[[tuple[str, ...]], None],
    step: Callable[[Source], None],
    *,
    progress: Progress | None = None,
) -> None:
    """Go through a table once, settling which columns form it.

    Parameters
    ----------
    table : TableReader
        The table.
    begin : callable
        Told the column names before the first rows. Told again, and everything
        before is to be forgotten, when a column of text looked numeric at first.
    step : callable
        Given some rows. An error about values is raised again with the cell's place.
    progress : callable, optional
        Called with the rows done and the fraction of the file read.
    """
    while True:
        begun = False
        with closing(read_ahead(_pieces(table))) as pieces:
            for piece in pieces:
                if not piece.names or table.is_doomed:
                    continue
                if not begun:
                    begin(piece.names)
                    begun = True
                _take_step(table, piece, step)
                if progress is not None:
                    done = table.source.position / max(table.source.origin.size, 1)
                    progress(piece.first_row + piece.batch.num_rows, done)
        if table.settled and begun:
            return


def _take_step(
    table: TableReader, piece: Piece, step: Callable[[Source], None]
) -> None:
    try:
        step(piece.source)
    except DataError as error:
        _raise_located(table, piece, error)


def _pieces(table: TableReader) -> Iterator[Piece]:
    if isinstance(table.source, CsvSource):
        for block in table.blocks():
            part: Part = (block.values, None, None, 0, 0)
            yield Piece(block.first_row, block.batch, block.names, [part])
        return
    rows = 0
    table.source.origin.check_unchanged()
    for batch in table.source.batches(table.names):
        if batch.num_rows:
            parts = [part_of_column(column, table.options) for column in batch.columns]
            yield Piece(rows, batch, table.names, parts)
        rows += batch.num_rows
    table.source.origin.check_unchanged()
    if table.source.n_rows not in (None, rows):
        raise FileFormatError(
            f"{table.name} had {counted(table.source.n_rows, 'row')} and now has "
            f"{rows:,}: it changed while it was being read."
        )
    table.source.n_rows = rows


def _raise_located(table: TableReader, piece: Piece, error: DataError) -> NoReturn:
    """Raise the error again with the file, row and column of the cell."""

    def again(_: None, __: Block) -> None:
        raise error

    block = piece.as_block() if len(piece.parts) == len(piece.names) else None
    if block is None:
        values = piece.parts[0][0]
        block = Block(piece.first_row, piece.batch, piece.names, values)
    _located_step(table, again, None, block)
    raise error
