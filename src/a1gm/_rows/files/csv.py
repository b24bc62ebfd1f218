"""Text tables: CSV, TSV and their gzipped forms, read by pyarrow in pieces."""

from __future__ import annotations

import codecs
import contextlib
from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from a1gm._base.words import shown
from a1gm._rows.files import csv_faults
from a1gm._rows.files.csv_lines import lines_of_rows
from a1gm._rows.files.formats import TAB_SUFFIXES
from a1gm._rows.files.headers import check_names_differ
from a1gm._rows.files.options import TableOptions
from a1gm._rows.files.origin import Origin, empty_file
from a1gm.exceptions import FileFormatError

if TYPE_CHECKING:
    import pyarrow as pa

# pyarrow reads up to 32 blocks ahead, so this is 32 MB in flight. Larger blocks are not
# faster.
_BLOCK_BYTES = 1 << 20
_HEADER_BYTES = 1 << 18
_LONGEST_HEADER = 1 << 24


@dataclass(frozen=True)
class Dialect:
    """What must be known to write a text table the way it was read."""

    delimiter: str = ","
    decimal: str = "."
    encoding: str = "utf-8"
    newline: str = "\n"
    bom: bool = False
    by_name: bool = False  # the name of the file alone told the delimiter


class CsvSource:
    """A text table; every cell is text until someone casts it.

    ``schema`` has one text column per header cell, ``dialect`` is how the file is
    written, and ``n_rows`` is None before the end of a pass.
    """

    row_noun = "line"

    def __init__(self, origin: Origin, options: TableOptions) -> None:
        import pyarrow as pa

        self.origin = origin
        self.options = options
        self.n_rows: int | None = None
        self.position = 0
        self._header_length = 0
        self._end_is_checked = False
        self.dialect = self._read_dialect()
        self._text = csv_faults.TextTable(origin, options, self.dialect.delimiter)
        names = self._read_header()
        check_names_differ(origin.name, names)
        if self._is_blank_below:
            raise no_rows(origin.name)
        self.schema = pa.schema([(name, pa.string()) for name in names])

    def batches(self) -> Generator[pa.RecordBatch]:
        """Read the file from its start.

        Raises FileFormatError, with the line, for rows of another length than the
        header, quotes that are never closed, and bytes that are not text.
        """
        with self._reading() as (reader, raw):
            last = None
            for batch in reader:
                if last is None:
                    self._check_delimiter(batch)
                last = batch if batch.num_rows else last
                self.position = raw.tell()
                yield batch
            self._check_end(last)

    def place_of(self, row: int) -> str:
        """Name a row (0-based) the way an editor finds it."""
        return f"{self.origin.name}, line {self.lines_of([row])[0]}"

    def lines_of(self, rows: Sequence[int]) -> list[int]:
        """Lines on which some rows (0-based) start."""
        if len(self.schema.names) == 1:  # a blank line is a row there
            return [row + 2 for row in rows]
        return lines_of_rows(self._text, rows, self.n_rows)

    def _read_dialect(self) -> Dialect:
        options = self.options
        try:
            with self._open() as (_, stream):
                head = stream.read_buffer(_LONGEST_HEADER).to_pybytes()
        except OSError as error:
            raise self._explained(error) from error
        first_line, _, _ = head.partition(b"\n")
        self._header_length = len(first_line)
        # In a table of one column a blank line is a row; old files end lines by \r.
        is_one_line = b"\r" not in first_line.rstrip(b"\r\n\0")
        self._is_blank_below = is_one_line and len(head) <= len(first_line) + 1
        return Dialect(
            delimiter=options.delimiter
            or ("\t" if self.origin.suffix in TAB_SUFFIXES else ","),
            decimal=options.point,
            encoding=options.encoding,
            newline="\r\n" if first_line.rstrip(b"\0").endswith(b"\r") else "\n",
            bom=head.startswith(b"\xef\xbb\xbf"),
            by_name=options.delimiter is None,
        )

    def _read_header(self) -> list[str]:
        import pyarrow as pa
        from pyarrow import csv

        try:
            options = self._read_options(_HEADER_BYTES)
            with self._open() as (_, stream):
                # pyarrow cannot skip a bad row that is not text.
                decoder = codecs.getincrementaldecoder(self.options.encoding)()
                head = bytes(stream.read(options.block_size))
                decoder.decode(head)
            with self._open() as (_, stream):
                reader = csv.open_csv(
                    self._header_alone(head) or stream,
                    read_options=options,
                    # A bad row must not stop the header from being read.
                    parse_options=self._parse_options(lambda _: "skip"),
                    convert_options=csv.ConvertOptions(check_utf8=False),
                )
                with reader:
                    return list(reader.schema.names)
        except (UnicodeError, pa.ArrowException, OSError, SystemError) as error:
            raise self._explained(error) from error

    def _header_alone(self, head: bytes) -> Any:
        """The first line where it is the header, so that no types are guessed."""
        import pyarrow as pa

        line = head[: self._header_length + 1]
        codec = self.options.encoding
        blank = not line.removeprefix(codecs.BOM_UTF8).strip()
        if blank or b'"' in line or "16" in codec or "32" in codec:
            return None
        return pa.BufferReader(line)

    def _read_options(self, block_bytes: int) -> Any:
        from pyarrow import csv

        # A block must hold the header and some rows, however wide the table is.
        return csv.ReadOptions(
            block_size=max(block_bytes, 32 * self._header_length),
            encoding=self.options.encoding,
        )

    @contextlib.contextmanager
    def _reading(self) -> Iterator[tuple[Any, Any]]:
        import pyarrow as pa
        from pyarrow import csv

        names = self.schema.names
        try:
            with self._open() as (raw, stream):
                reader = csv.open_csv(
                    stream,
                    read_options=self._read_options(_BLOCK_BYTES),
                    parse_options=self._parse_options(None),
                    convert_options=csv.ConvertOptions(
                        column_types=dict.fromkeys(names, pa.string()),
                        strings_can_be_null=False,
                    ),
                )
                with reader:
                    yield reader, raw
        except (UnicodeError, pa.ArrowException, OSError, SystemError) as error:
            if isinstance(error, FileFormatError):
                raise
            raise self._explained(error) from error

    def _parse_options(self, on_bad_row: Any) -> Any:
        from pyarrow import csv

        schema = getattr(self, "schema", None)
        return csv.ParseOptions(
            delimiter=self.dialect.delimiter,
            newlines_in_values=True,
            # In a table of one column a blank line is the only way to leave a cell
            # empty; elsewhere it separates paragraphs or ends the file.
            ignore_empty_lines=schema is None or len(schema.names) > 1,
            invalid_row_handler=on_bad_row,
        )

    @contextlib.contextmanager
    def _open(self) -> Iterator[tuple[Any, Any]]:
        """Open the file on disk, and the text in it."""
        import pyarrow as pa

        # Files of pyarrow, not of Python: its threads read ahead, and a call into
        # Python from there can swallow a Ctrl-C or outlive the interpreter.
        with pa.OSFile(str(self.origin.path), "rb") as raw:
            if self.origin.gzipped:
                with pa.CompressedInputStream(raw, "gzip") as stream:
                    yield raw, stream
            else:
                yield raw, raw

    def _explained(self, error: Exception) -> FileFormatError:
        self.origin.check_unchanged()  # else half a row would be the fault
        text = str(error)
        if isinstance(error, UnicodeError) or "UTF8" in text or "\\x00" in text:
            return csv_faults.wrong_encoding(self._text)
        if "Expected" in text and "columns" in text:
            is_utf16 = self.options.encoding.lower().startswith("utf-16")
            # Bad rows of a header are skipped, so it is not their length.
            if ("\x00" in text and not is_utf16) or not hasattr(self, "schema"):
                return csv_faults.wrong_encoding(self._text)
            return csv_faults.ragged_rows(self._text, len(self.schema.names))
        if "Empty CSV" in text:
            return no_rows(self.origin.name)
        if self.origin.gzipped:
            return FileFormatError(
                f"{self.origin.name} is damaged: its gzip stream cannot be read "
                f"({text})."
            )
        if "straddling" in text:
            return csv_faults.unterminated_quote(self._text) or FileFormatError(
                f"{self.origin.name} has a row of several megabytes; it does not look "
                "like a table."
            )
        return FileFormatError(
            f"{self.origin.name} cannot be read as a table: {shown(text)}."
        )

    def _check_delimiter(self, batch: pa.RecordBatch) -> None:
        if batch.num_columns != 1:
            return
        cells = [cell for cell in batch.column(0).slice(0, 20).to_pylist() if cell]
        fault = csv_faults.wrong_delimiter(self._text, self.schema.names[0], cells)
        if fault is not None:
            raise fault

    def _check_end(self, last: pa.RecordBatch | None) -> None:
        if last is None:
            raise no_rows(self.origin.name)
        if self._end_is_checked:
            return
        self.origin.check_unchanged()  # a file that shrank has no such end
        # pyarrow takes the end of the file for a missing quote. A last cell that is
        # opened by a quote and not closed is the sign; the strict reading decides.
        cell = last.column(last.num_columns - 1)[-1].as_py()
        if self._looks_unclosed(cell):
            fault = csv_faults.unterminated_quote(self._text)
            if fault is not None:
                raise fault
        self._end_is_checked = True

    def _looks_unclosed(self, cell: str) -> bool:
        if self.options.encoding.lower().replace("_", "-").startswith("utf-16"):
            return True
        text = cell.rstrip("\r\n").replace('"', '""').encode(self.options.encoding)
        end = self._last_bytes(len(text) + 64).rstrip(b"\r\n")
        return end.endswith(b'"' + text) and (bool(text) or cell != "")

    def _last_bytes(self, size: int) -> bytes:
        with self._open() as (raw, stream):
            if not self.origin.gzipped:
                raw.seek(max(0, self.origin.size - size))
                return bytes(raw.read())
            end = b""
            while some := stream.read(1 << 20):
                end = (end + some)[-size:]
            return end


def no_rows(name: str) -> FileFormatError:
    """The error for a table without rows."""
    return empty_file(f"{name} has a header but no rows; there is nothing to fit.")
