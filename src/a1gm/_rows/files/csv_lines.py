"""On which line of a text table a row starts."""

from __future__ import annotations

from collections.abc import Sequence

from a1gm._rows.files.csv_faults import TextTable, records

_CHUNK_BYTES = 1 << 20


def lines_of_rows(
    table: TextTable, rows: Sequence[int], n_rows: int | None
) -> list[int]:
    """Lines on which some data rows (0-based) start, the header being line 1.

    ``n_rows`` is how many rows the file has, where that is known.
    """
    if n_rows is not None and _has_a_line_per_row(table, n_rows):
        return [row + 2 for row in rows]
    wanted, last = set(rows), max(rows, default=-1)
    found: dict[int, int] = {}
    for index, (line, _) in enumerate(records(table)):
        if index - 1 in wanted:
            found[index - 1] = line
        if index - 1 >= last:
            break
    return [found.get(row, row + 2) for row in rows]


def _has_a_line_per_row(table: TextTable, n_rows: int) -> bool:
    """Whether no line is blank and no cell has a line end in it: the usual file.

    Counting line ends is a hundred times faster than parsing.
    """
    if "16" in table.options.encoding or "32" in table.options.encoding:
        return False
    n_ends, last = 0, b""
    with table.origin.open_text() as stream:
        while chunk := stream.read(_CHUNK_BYTES):
            n_ends += chunk.count(b"\n")
            last = chunk[-1:]
    return n_ends == n_rows + (last == b"\n")
