"""Text tables (CSV, TSV, also gzipped): every cell is read as text, then cast."""

from __future__ import annotations

import codecs
import contextlib
import csv
import io
import re
from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from a1gm._base.types import Bools, Floats, Ints
from a1gm._rows.files import faults
from a1gm._rows.files.options import TableOptions
from a1gm._rows.files.paths import TAB_SUFFIXES, InputFile
from a1gm.exceptions import FileFormatError

if TYPE_CHECKING:
    import pyarrow as pa

# pyarrow reads up to 32 blocks ahead, so this is 32 MB in flight. Larger blocks are not
# faster.
BLOCK_BYTES = 1 << 20
_LONGEST_HEADER = 1 << 24

#: A plain number after the marks of the locale were taken out.
_NUMBER = r"^[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?$"
_INFINITY = r"^[+-]?(?i:inf|infinity)$"
_NAN = r"^[+-]?(?i:nan)$"
#: Numbers in any notation, 1,5 and 1.234.567 and 1 234,5 as well: a column of these is
#: not text, it needs another decimal or thousands mark.
_NUMBER_LIKE = (
    r"^\s*[+-]?([0-9]*[.,]?[0-9]+[.,]?([eE][+-]?[0-9]+)?"
    r"|[0-9]{1,3}([.,' _\x{a0}\x{2019}\x{202f}][0-9]{3})+([.,][0-9]+)?)\s*$"
)
_FEW_CELLS = 1 << 12  # not worth a search for the columns that are not plain numbers


@dataclass(frozen=True)
class Dialect:
    """What must be known to write a text table the way it was read."""

    delimiter: str = ","
    decimal: str = "."
    encoding: str = "utf-8"
    newline: str = "\n"
    bom: bool = False
    by_name: bool = False  # the delimiter follows from the name of the file alone


class TextSource:
    """A text table.

    ``schema`` has one text column per header cell, ``dialect`` is how the file is
    written, and ``n_rows`` is None before the end of a pass.
    """

    is_text, row_noun = True, "line"

    def __init__(self, file: InputFile, options: TableOptions) -> None:
        import pyarrow as pa

        self.file, self.options = file, options
        self.n_rows: int | None = None
        self.position = 0
        self.delimiter = options.delimiter or (
            "\t" if file.suffix in TAB_SUFFIXES else ","
        )
        self._end_is_checked = False
        self.names: list[str] = []
        head = self._head()
        lines = io.StringIO(head, newline="")
        first = next((line for line in lines if line.strip("\r\n")), "")
        self._header_bytes = len(first.encode())
        self.dialect = Dialect(
            self.delimiter,
            options.point,
            options.encoding,
            newline="\r\n" if first.endswith("\r\n") else "\n",
            bom=file.head.startswith(codecs.BOM_UTF8),
            by_name=options.delimiter is None,
        )
        lines.seek(0)
        records = csv.reader(lines, delimiter=self.delimiter)
        with faults.long_fields():
            self.names = next((record for record in records if record), [])
        faults.check_names(file.name, self.names)
        if not file.has_more and not lines.read(1):
            raise faults.no_rows(file.name)
        self.schema = pa.schema([(name, pa.string()) for name in self.names])

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
                    step = self.options.batch_rows or max(batch.num_rows, 1)
                    for start in range(0, batch.num_rows, step):
                        piece = batch.slice(start, step)
                        yield piece if columns is None else piece.select(list(columns))
        except FileFormatError:
            raise
        except (UnicodeError, pa.ArrowException, OSError, SystemError) as error:
            self.file.check_unchanged()  # else half a row would be the fault
            raise faults.explain(self, error) from error
        if last is None:
            raise faults.no_rows(self.file.name)
        self._check_end(last)

    def place_of(self, row: int) -> str:
        """Name a row (0-based) by its line."""
        return f"{self.file.name}, line {self.lines_of([row])[0]}"

    def lines_of(self, rows: Sequence[int]) -> list[int]:
        """Return the lines on which some rows (0-based) start."""
        if len(self.names) == 1:  # a blank line is a row there
            return [row + 2 for row in rows]
        return faults.lines_of_rows(self, rows)

    def _head(self) -> str:
        """Return the first lines as text."""
        head = self.file.head
        if self.file.has_more and not any(end in head for end in (b"\n", b"\r")):
            with self.file.open_text() as stream:
                head = stream.read(_LONGEST_HEADER)
        decoder = codecs.getincrementaldecoder(faults.codec_of(self.options))()
        try:
            text = decoder.decode(head)
        except UnicodeError as error:
            raise faults.explain(self, error) from error
        if text.count("\0") > len(text) // 3:  # of a wide encoding
            raise faults.explain(self)
        return text

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
                    strings_can_be_null=False,
                ),
            )
            yield stack.enter_context(reader), raw

    def _check_end(self, last: pa.RecordBatch) -> None:
        """Raise for a quote that is never closed, which pyarrow closes at the end.

        The sign is a last cell that is opened by a quote and not closed; the scan by
        Python's csv module decides.
        """
        if self._end_is_checked:
            return
        self.file.check_unchanged()  # a file that shrank has no such end
        cell = last.column(last.num_columns - 1)[-1].as_py()
        text = cell.rstrip("\r\n").replace('"', '""').encode(self.options.encoding)
        end = self._last_bytes(len(text) + 64).rstrip(b"\r\n")
        is_wide = faults.is_wide_codec(self.options)
        if is_wide or (end.endswith(b'"' + text) and (text or cell)):
            fault = faults.find_fault(self)
            if fault is not None:
                raise fault
        self._end_is_checked = True

    def _last_bytes(self, size: int) -> bytes:
        if not self.file.has_more:
            return self.file.head[-size:]
        with self.file.open_text() as stream:
            if not self.file.gzipped:
                stream.seek(max(0, self.file.size - size))
            end = b""
            while some := stream.read(1 << 20):
                end = (end + some)[-size:]
            return end


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
        values = np.empty((len(names), batch.num_rows))
        others: dict[str, Others] = {}
        is_plain = np.array(
            [self._has_plain_marks and name not in self._careful for name in names],
            bool,
        )
        for chosen in (np.flatnonzero(is_plain), np.flatnonzero(~is_plain)):
            if len(chosen):
                text = joined([columns[j] for j in chosen])
                self._cast(text, chosen, names, values, others)
        for number in self._options.missing_numbers:
            values[values == number] = np.nan
        return values.T, others

    def _cast(
        self,
        text: pa.Array,
        chosen: Ints,
        names: Sequence[str],
        values: Floats,
        others: dict[str, Others],
    ) -> None:
        """Cast the cells of some columns, which lie one after the other."""
        shape = len(chosen), values.shape[1]
        is_careful = names[chosen[0]] in self._careful or not self._has_plain_marks
        plain = None if is_careful else _cast_plain(text)
        if plain is not None:
            values[chosen] = plain.reshape(shape)
        elif not is_careful and len(chosen) > 1 and len(text) > _FEW_CELLS:
            for half in np.array_split(np.arange(len(chosen)), 2):
                part = text.slice(half[0] * shape[1], len(half) * shape[1])
                self._cast(part, chosen[half], names, values, others)
        else:
            self._careful.update(names[j] for j in chosen)
            numbers, other, trimmed = _cast_carefully(text, self._options)
            values[chosen] = numbers.reshape(shape)
            for k in np.flatnonzero(other.reshape(shape).any(axis=1)):
                some = slice(k * shape[1], (k + 1) * shape[1])
                others[names[chosen[k]]] = _others(trimmed[some], other[some])


def first_number_like(column: pa.Array, options: TableOptions) -> int | None:
    """Return the first cell that is a number in any notation, if there is one."""
    import pyarrow as pa
    import pyarrow.compute as pc

    found = pc.match_substring_regex(column, _NUMBER_LIKE)
    if not pc.any(found).as_py():
        return None
    tokens = pa.array(options.missing_tokens, pa.string())
    missing = pc.is_in(pc.utf8_trim_whitespace(column), tokens)
    found = pc.and_not(found, missing).to_numpy(zero_copy_only=False)
    return int(found.argmax()) if found.any() else None


def columns_of(batch: pa.RecordBatch, names: Sequence[str]) -> list[pa.Array]:
    """Return some columns, found in one go: pyarrow takes long to find one by name."""
    places = {name: place for place, name in enumerate(batch.schema.names)}
    every = batch.columns
    return [every[places[name]] for name in names]


def joined(columns: Sequence[pa.Array]) -> pa.Array:
    """Return columns of one type as one, one after the other."""
    import pyarrow as pa

    return columns[0] if len(columns) == 1 else pa.concat_arrays(columns)


def _others(trimmed: pa.Array, is_other: Bools) -> Others:
    import pyarrow.compute as pc

    strange = trimmed.filter(is_other)
    few = pc.unique(strange.slice(0, 1000)).to_pylist()[:4]
    number_like = pc.any(pc.match_substring_regex(strange, _NUMBER_LIKE)).as_py()
    return Others(int(is_other.argmax()), tuple(few), not number_like)


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
    values: Floats = numbers.to_numpy(zero_copy_only=False)
    return values


def _cast_carefully(
    text: pa.Array, options: TableOptions
) -> tuple[Floats, Bools, pa.Array]:
    """Cast columns that are not plain numbers, cell by cell.

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
