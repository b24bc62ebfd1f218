"""What of files may not be meant: totals, columns left out, long tables."""

from __future__ import annotations

import numpy as np

from a1gm._base.types import Floats
from a1gm._base.words import counted, listed, shown
from a1gm._rows.files.find import is_hidden
from a1gm._rows.files.number_marks import sign_remedy
from a1gm._rows.files.row_names import is_total
from a1gm._rows.files.table_files import TableFiles
from a1gm._rows.frames import open_frame
from a1gm._rows.long_hint import call_for_keys, long_call
from a1gm.exceptions import DataHintWarning, LabelError, Option, Text

_NEAR = 0.25  # totals may be rounded, or count cells that are missing here


def refuse_long(files: TableFiles, *, is_read: bool = True) -> None:
    """Raise for a file that looks as if it had one row per cell.

    One that is not read to its end is refused if no further row can clear it.
    """
    if not is_read and files.first.may_change:
        return
    options, keys = files.options, [key for key in files.first.passed_through if key]
    is_told = options.columns or options.exclude or options.id
    if files.n_cols != 1 or len(keys) < 2 or is_told:
        return
    import pyarrow as pa

    value = files.names[0]
    first = next(files.first.batches_of(keys))
    frame = open_frame(pa.table(first), "frame")
    raise LabelError(
        f"{files.name} has one numeric column, {shown(value)}, beside {listed(keys)}. "
        "If it has one row per cell, fit it with ",
        call_for_keys("frame", frame, keys, value),
        "; if it is a table of one column pass ",
        Option("columns", [value]),
        ".",
    )


@np.errstate(over="ignore")
def say_doubts(files: TableFiles, sums: Floats) -> None:
    """Warn of totals among the data, and of keys.

    A total is called so, and is about the sum of the others. ``sums`` are those of
    the observed cells of each column.
    """
    _say_totals(files, sums)
    if files.long_columns and files.options.columns is None:
        row, column, value = files.long_columns
        files.warn(
            DataHintWarning(
                f"every row has another pair of {row!r} and {column!r}, and no cell is "
                "missing. If it has one row per cell, fit it with ",
                long_call("frame", [row, column], value),
                ".",
                where=files.name,
            )
        )


def _say_totals(files: TableFiles, sums: Floats) -> None:
    if files.options.columns is None:
        named = [is_total(name) for name in files.names]
        others = sums[~np.array(named)].sum()
        for name in np.array(files.names, object)[named]:
            if _are_near(sums[files.names.index(name)], others):
                leave = Option("exclude", [name]), " leaves it"
                _warn(files, f"column {name!r}", leave)
    last, n_rows = files.last_row, files.n_rows or 0
    if last is None or n_rows < 3:
        return
    known = ~np.isnan(last)
    total = last[known].sum()
    if not _are_near(total, sums[known].sum() - total):
        return
    noun, (name,) = files.name_rows([n_rows - 1])
    if any(map(is_total, (name, *files.last_texts))):
        _warn(files, f"{noun} {name}", "delete that row to leave it")


def _are_near(total: float, others: float) -> bool:
    return bool(others > 0.0 and abs(total - others) <= _NEAR * others < np.inf)


def _warn(files: TableFiles, which: str, remedy: Text) -> None:
    files.warn(
        DataHintWarning(
            f"{which} looks like the total of the others and counts as one of them; ",
            remedy,
            " out.",
            where=files.name,
        )
    )


# -------------------------------------------------------------------- what is left out
def hidden_files(files: TableFiles) -> list[str]:
    """Files of folders that were not read because they are hidden."""
    return [name for name in files.found.not_tables if is_hidden(name)]


def left_out(files: TableFiles) -> list[str]:
    """Columns that are not fitted and name no rows, with what may be meant as data."""
    passed = files.first.passed_through
    return [_with_numbers(files, name) for name in passed if name not in files.id]


def title_of(name: str) -> str:
    """What messages call a column."""
    return shown(name) or "a column without a name"


def _with_numbers(files: TableFiles, name: str) -> str:
    seen = files.first.text_columns.get(name)
    if seen is not None and seen.n_numbers:
        return f"{title_of(name)} (text, {counted(seen.n_numbers, 'number')} in it)"
    if seen is not None and (remedy := sign_remedy(seen.others[0])):
        return f"{title_of(name)} (text such as {seen.others[0]!r}: {remedy})"
    return title_of(name)
