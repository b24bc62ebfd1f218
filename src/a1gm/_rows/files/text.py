"""Text tables (CSV, TSV, also gzipped): every cell is read as text, then cast."""

from __future__ import annotations

import codecs
import contextlib
import csv
import io
import re
import sys
from collections.abc import Generator, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy as np

from a1gm._base.types import Bools, Floats
from a1gm._rows.files import faults
from a1gm._rows.files.source import (
    TAB_SUFFIXES,
    Dialect,
    InputFile,
    Source,
    TableOptions,
)
from a1gm.exceptions import FileFormatError

if TYPE_CHECKING:
    import pyarrow as pa

# pyarrow reads up to 32 blocks ahead, so this is 32 MB in flight. Larger blocks are not
# faster.
BLOCK_BYTES = 1 << 20
_LONGEST_HEADER = 1 << 24

#: A plain number after the marks of the locale were taken out.
_NUMBER = r"^[+-]?(([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?|(?i:inf|infinity))$"
_NAN = r"^[+-]?(?i:nan)$"
#: Numbers in any notation, 1,5 and 1.234.567 and 1 234,5 as well: a column of these is
#: not text, it needs another decimal or thousands mark.
_NUMBER_LIKE = (
    r"^\s*[+-]?([0-9]*[.,]?[0-9]+[.,]?([eE][+-]?[0-9]+)?"
    r"|[0-9]{1,3}([.,' _\x{a0}\x{2019}\x{202f}][0-9]{3})+([.,][0-9]+)?)\s*$"
)


class TextSource(Source):
    """A text table; an empty cell is null."""

    row_noun = "line"

    def __init__(self, file: InputFile, options: TableOptions) -> None:
        import pyarrow as pa

        super().__init__(file, options)
        codec = options.encoding.lower().replace("_", "-")
        is_utf8 = codec in ("utf-8", "utf8", "utf-8-sig")
        self.codec = "utf-8-sig" if is_utf8 else codec  # skips a mark at the start
        is_tabbed = file.suffix in TAB_SUFFIXES
        self.delimiter = options.delimiter or ("\t" if is_tabbed else ",")
        self.names = []
        lines = io.StringIO(self._head(), newline="")
        first = next((line for line in lines if line.strip("\r\n")), "")
        self._header_bytes = len(first.encode())
        self.dialect = Dialect(
            self.delimiter,
            options.point,
            options.encoding,
            newline="\r\n" if first.endswith("\r\n") else "\n",
            bom=file.head.startswith(codecs.BOM_UTF8),
            by_name=options.delimiter is None,
            has_header=options.header,
        )
        lines.seek(0)
        _, record = next(_records(lines, self.delimiter), (1, []))
        self.names = self.header_of(record)
        self.check_names()
        if options.header and not file.has_more and not lines.read(1):
            raise self.no_rows()
        self.schema = pa.schema([(name, pa.string()) for name in self.names])

    def records(self, errors: str = "replace") -> Iterator[tuple[int, list[str]]]:
        """Yield (line, record) of all that are not blank, and ``faults.END`` last."""
        with self.file.open_text() as stream:
            text = io.TextIOWrapper(stream, self.codec, errors, newline="")
            yield from _records(chain(text, [faults.END]), self.delimiter)

    def _head(self) -> str:
        """Return the first lines as text."""
        head = self.file.head
        if self.file.has_more and not any(end in head for end in (b"\n", b"\r")):
            with self.file.open_text() as stream:
                head = stream.read(_LONGEST_HEADER)
        decoder = codecs.getincrementaldecoder(self.codec)()
        try:
            text = decoder.decode(head)
        except UnicodeError as error:
            raise faults.explain(self, error) from error
        if text.count("\0") > len(text) // 3:  # of a wide encoding
            raise faults.explain(self)
        return text

    def batches(
        self, columns: Sequence[str] | None = None
    ) -> Generator[pa.RecordBatch]:
        """Read the file from its start; a fault is raised with its line."""
        import pyarrow as pa

        last = None
        try:
            with self._reading() as (reader, raw):
                if reader.schema.names != self.names:
                    raise faults.explain(self)
                for batch in reader:
                    last = batch if batch.num_rows else last
                    self.position = raw.tell()
                    yield from self.slices(batch, columns, batch.num_rows)
        except FileFormatError:
            raise
        except (UnicodeError, pa.ArrowException, OSError, SystemError) as error:
            self.file.check_unchanged()  # else half a row would be the fault
            raise faults.explain(self, error) from error
        if last is None:
            raise self.no_rows()
        # pyarrow closes a quote that is never closed: the rest of the file, with the
        # line end, is the last cell then.
        end = last.column(last.num_columns - 1)[-1].as_py() or ""
        if self.n_rows is None and ("\n" in end or "\r" in end):
            self.file.check_unchanged()
            fault = faults.find_fault(self)
            if fault is not None:
                raise fault

    @contextlib.contextmanager
    def _reading(self) -> Iterator[tuple[Any, Any]]:
        import pyarrow as pa
        from pyarrow import csv as arrow_csv

        # Files of pyarrow, not of Python: its threads read ahead, and a call into
        # Python from there can swallow a Ctrl-C or outlive the interpreter.
        with contextlib.ExitStack() as stack:
            raw = stack.enter_context(pa.OSFile(str(self.file.path), "rb"))
            stream = raw
            if self.file.gzipped:
                stream = stack.enter_context(pa.CompressedInputStream(raw, "gzip"))
            reader = arrow_csv.open_csv(
                stream,
                # A block must hold the header and some rows, however wide the table.
                read_options=arrow_csv.ReadOptions(
                    block_size=max(BLOCK_BYTES, 32 * self._header_bytes),
                    encoding=self.options.encoding,
                    column_names=None if self.options.header else self.names,
                ),
                parse_options=arrow_csv.ParseOptions(
                    delimiter=self.delimiter,
                    newlines_in_values=True,
                    # In a table of one column a blank line is the only way to leave a
                    # cell empty; elsewhere it separates paragraphs or ends the file.
                    ignore_empty_lines=len(self.names) > 1,
                ),
                convert_options=arrow_csv.ConvertOptions(
                    column_types=dict.fromkeys(self.names, pa.string()),
                    null_values=[""],
                    strings_can_be_null=True,
                ),
            )
            yield stack.enter_context(reader), raw

    def lines_of(self, rows: Sequence[int]) -> list[int]:
        """Return the lines on which some rows (0-based) start; the header is line 1."""
        above = int(self.options.header)
        if len(self.names) == 1:  # a blank line is a row there
            return [row + above + 1 for row in rows]
        wanted, last = set(rows), max(rows, default=-1)
        found: dict[int, int] = {}
        for index, (line, _) in enumerate(self.records(), start=-above):
            if index in wanted:
                found[index] = line
            if index >= last:
                break
        return [found.get(row, row + above + 1) for row in rows]


def _records(lines: Iterable[str], delimiter: str) -> Generator[tuple[int, list[str]]]:
    # The usual limit is lifted: an open quote makes one cell of the file.
    before = csv.field_size_limit(min(sys.maxsize, 2**31 - 1))
    try:
        reader, line = csv.reader(lines, delimiter=delimiter), 1
        for record in reader:
            if record:
                yield line, record
            line = reader.line_num + 1
    finally:
        csv.field_size_limit(before)


# ------------------------------------------------------------------- text as numbers
@dataclass(frozen=True)
class Others:
    """The cells of a column that are neither numbers nor missing."""

    first: int  # the first of them, from 0 in the batch
    texts: tuple[str, ...]  # the first few distinct ones
    are_words: bool  # none of them is a number in another notation


class Cells:
    """Casts columns of text to numbers, batch by batch.

    The cells of all columns are cast in one call: a call costs as much as a hundred
    cells, and a table may have more columns than rows.
    """

    def __init__(self, options: TableOptions) -> None:
        self._options = options
        self._has_plain_marks = options.point == "." and options.thousands is None
        self._careful: set[str] = set()  # columns that were not plain numbers

    def cast(
        self, batch: pa.RecordBatch, names: Sequence[str]
    ) -> tuple[Floats, dict[str, Others]]:
        """Cast some columns: NaN where a cell is missing or not a number.

        Returns the array, whose columns lie one after the other, and what else is in
        the columns that have more than numbers.
        """
        columns = columns_of(batch, names)
        values, others = np.empty((len(names), batch.num_rows)), dict[str, Others]()
        if not self._has_plain_marks:
            self._careful.update(names)
        plain = [j for j, name in enumerate(names) if name not in self._careful]
        numbers = _cast_plain([columns[j] for j in plain])
        if numbers is None:
            self._careful.update(names[j] for j in _odd_columns(columns, plain))
            plain = [j for j in plain if names[j] not in self._careful]
            numbers = _cast_plain([columns[j] for j in plain])
        values[plain] = np.asarray(numbers).reshape(len(plain), batch.num_rows)
        careful = [j for j, name in enumerate(names) if name in self._careful]
        if careful:
            shape = len(careful), batch.num_rows
            text = joined([columns[j] for j in careful])
            numbers, other, trimmed = _cast_carefully(text, self._options)
            values[careful] = numbers.reshape(shape)
            for k in np.flatnonzero(other.reshape(shape).any(axis=1)):
                some = slice(k * shape[1], (k + 1) * shape[1])
                others[names[careful[k]]] = _others(trimmed[some], other[some])
        for number in self._options.missing_numbers:
            values[values == number] = np.nan
        return values.T, others


def has_numbers(column: pa.Array, options: TableOptions) -> bool:
    """Whether a cell is a number in any notation."""
    import pyarrow as pa
    import pyarrow.compute as pc

    like = pc.match_substring_regex(column, _NUMBER_LIKE)
    if not pc.any(like).as_py():
        return False
    tokens = pa.array(options.missing_tokens, pa.string())
    missing = pc.is_in(pc.utf8_trim_whitespace(column), tokens)
    return bool(pc.any(pc.and_not(like, missing)).as_py())


def is_number_like(text: str, options: TableOptions) -> bool:
    """Whether a cell is a number in any notation, or a mark of a missing one."""
    import pyarrow as pa

    cell = pa.array([text])
    is_other = _cast_carefully(cell, options)[1]
    return bool(text.strip()) and (not is_other[0] or has_numbers(cell, options))


def columns_of(batch: pa.RecordBatch, names: Sequence[str]) -> list[pa.Array]:
    """Return some columns, found in one go: pyarrow takes long to find one by name."""
    places = {name: place for place, name in enumerate(batch.schema.names)}
    every = batch.columns
    return [every[places[name]] for name in names]


def joined(columns: Sequence[pa.Array]) -> pa.Array:
    """Return columns of one type as one, one after the other."""
    import pyarrow as pa

    return columns[0] if len(columns) == 1 else pa.concat_arrays(columns)


def _cast_plain(columns: Sequence[pa.Array]) -> Floats | None:
    """Cast columns at once; None when some cell is not a plain number."""
    import pyarrow as pa

    if not columns:
        return np.empty(0)
    try:
        numbers = joined(columns).cast(pa.float64())
    except pa.ArrowInvalid:
        return None
    values: Floats = numbers.to_numpy(zero_copy_only=False)
    return values


def _odd_columns(columns: Sequence[pa.Array], among: list[int]) -> list[int]:
    """Return the columns that are not plain numbers, found by halving."""
    if _cast_plain([columns[j] for j in among]) is not None:
        return []
    if len(among) == 1:
        return among
    half = len(among) // 2
    return _odd_columns(columns, among[:half]) + _odd_columns(columns, among[half:])


def _cast_carefully(
    column: pa.Array, options: TableOptions
) -> tuple[Floats, Bools, pa.Array]:
    """Cast cells that are not plain numbers, one by one.

    Returns the numbers, which cells are neither numbers nor missing, and the text
    without white space around it.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    text = pc.utf8_trim_whitespace(pc.fill_null(column, ""))
    plain, in_locale = _without_marks(text, options)
    missing = pc.is_in(text, pa.array(options.missing_tokens, pa.string()))
    missing = pc.or_(missing, pc.match_substring_regex(plain, _NAN))
    number = pc.and_(in_locale, pc.match_substring_regex(plain, _NUMBER))
    number = pc.and_not(number, missing)
    other = pc.invert(pc.or_(number, missing)).to_numpy(zero_copy_only=False)
    numbers = pc.if_else(number, plain, pa.scalar(None, pa.string())).cast(pa.float64())
    return numbers.to_numpy(zero_copy_only=False), other, text


def _others(text: pa.Array, is_other: Bools) -> Others:
    import pyarrow.compute as pc

    strange = text.filter(is_other)
    few = pc.unique(strange.slice(0, 1000)).to_pylist()[:4]
    number_like = pc.any(pc.match_substring_regex(strange, _NUMBER_LIKE)).as_py()
    return Others(int(is_other.argmax()), tuple(few), not number_like)


def _without_marks(text: pa.Array, options: TableOptions) -> tuple[pa.Array, pa.Array]:
    """Return numbers with a plain point, and whether each cell keeps to the locale.

    Without the second, ``1,5`` under ``thousands=","`` would become 15, and ``1.5``
    under ``decimal=","`` would be accepted.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    allowed = pa.array(np.ones(len(text), dtype=bool))
    plain = text
    if options.thousands is not None:
        plain = pc.replace_substring(text, options.thousands, "")
        mark, point = re.escape(options.thousands), re.escape(options.point)
        grouped = rf"^[+-]?([0-9]+|[0-9]{{1,3}}({mark}[0-9]{{3}})+)([^0-9{mark}]|$)"
        allowed = pc.or_(
            pc.invert(pc.match_substring(text, options.thousands)),
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
