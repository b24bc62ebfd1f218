"""The first line of a text table: whether it can be its header."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from a1gm._base.types import AnyArray, Floats
from a1gm._base.words import listed
from a1gm._rows.files.csv_faults import title_above
from a1gm._rows.files.numbers import read_cells
from a1gm._rows.files.options import TableOptions
from a1gm._rows.files.row_names import is_unnamed
from a1gm.exceptions import FileFormatError, Option

if TYPE_CHECKING:
    import pyarrow as pa


def check_names_differ(file: str, names: Sequence[str]) -> None:
    """Raise if two columns have the same name, or none."""
    if len(names) > 2 and names[0] and not any(names[1:]):
        raise title_above(file, names[0], "the header")
    seen: dict[str, int] = {}
    for position, column in enumerate(names, start=1):
        if column in seen:
            what = f"are both called {column!r}" if column else "have no name"
            remedy = (
                "If the file has no header, add one as its first line"
                if not np.isnan(_numbers_of(names)).any()
                else "Give each its own in the header"
            )
            raise FileFormatError(
                f"{file}, line 1: columns {seen[column]} and {position} {what}. "
                f"{remedy}: names tell the columns apart."
            )
        seen[column] = position


def check_is_header(file: str, batch: pa.RecordBatch, options: TableOptions) -> None:
    """Raise if the names of the columns are numbers like those of the rows below."""
    names = batch.schema.names
    numbers = _numbers_of(names)
    first = int(np.isnan(numbers[0]))  # the name of the rows may be text
    if np.isnan(numbers[first:]).any() or (first and is_unnamed(names[0])):
        return
    numbers = numbers[first:]
    if not len(numbers) or not _are_data(numbers, batch.columns[first:], options):
        return
    such_as = ",".join(f"c{j}" for j in range(1, len(names) + 1)[:8])
    raise FileFormatError(
        "the names of the columns are numbers like those below "
        f"({listed(names, 5)}). If line 1 is data, add a header before it, such as "
        f"{such_as}{',...' if len(names) > 8 else ''}; if it is the header, pass ",
        Option("columns"),
        " with the columns to fit.",
        where=f"{file}, line 1",
    )


def _are_data(
    numbers: Floats, columns: Sequence[pa.Array], options: TableOptions
) -> bool:
    """Whether numbers are unlikely to be names: fractions, or in no order."""
    if (numbers != np.floor(numbers)).any():
        return True
    steps = np.diff(numbers)
    if len(set(steps.tolist())) <= 1:  # 1, 2, 3 or 2020, 2021 or 12, 24, 36
        return False
    if (steps > 0).all() or (steps < 0).all():
        cells = (read_cells(column, options)[0] for column in columns)
        return all(map(_is_within, numbers, cells))
    return True


def _is_within(number: float, cells: AnyArray) -> bool:
    known = cells[~np.isnan(cells)]
    return len(known) > 0 and bool(known.min() <= number <= known.max())


def _numbers_of(names: Sequence[str]) -> Floats:
    """Names as numbers; NaN for those that are none."""
    return np.array([_number(name) for name in names])


def _number(name: str) -> float:
    try:
        number = float(name)
    except ValueError:
        return np.nan
    return number if np.isfinite(number) else np.nan
