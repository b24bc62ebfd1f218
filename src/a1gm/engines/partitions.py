"""Functions that workers run on one partition of a Dask collection."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from a1gm._api.pattern_table import PatternTable
from a1gm._base.types import Bools, Floats, Negatives
from a1gm._base.warn import warn_user
from a1gm._base.words import shown
from a1gm._fit.fill import fill_table
from a1gm._fit.messages import text_of_left_cells, text_of_unplaced_rows
from a1gm._fit.place import Columns
from a1gm._fit.residuals import divergence_of_rows
from a1gm._rows.columns import BY_RULE, EVERY_COLUMN, ColumnOptions
from a1gm._rows.libraries import WHOLE, filled_dtype
from a1gm._rows.read import read_input
from a1gm.exceptions import (
    DataError,
    EmptyLineWarning,
    NotRepresentableError,
    TableTooLargeError,
    UndeterminedWarning,
)


def count_partition(
    piece: Any,
    number: int,
    first_row: int | None,
    negatives: Negatives,
    max_bytes: int,
    uncertainty: bool = False,
) -> bytes:
    """Count a partition under its number, so that a second count changes nothing.

    ``first_row`` is None when the rows before are not known.
    """
    table = PatternTable(
        keep_rows=False,
        negatives=negatives,
        max_bytes=max_bytes,
        n_threads=1,
        uncertainty=uncertainty,
    )
    if len(piece) == 0:
        table._pieces.add(number)
        return table.to_bytes()
    try:
        rows = read_input(piece, columns=EVERY_COLUMN)
        return table._add_rows(rows, number, first_row or 0).to_bytes()
    except (DataError, TableTooLargeError) as error:
        raise error.within(f"Partition {number}") from None


def merge_tables(pieces: list[bytes], max_bytes: int) -> bytes:
    """Merge the tables of some partitions, in their order."""
    tables = [PatternTable.from_bytes(piece) for piece in pieces]
    how: Any = {
        "negatives": tables[0].negatives,
        "uncertainty": tables[0].uncertainty,
        "max_bytes": max_bytes,
    }
    merged = PatternTable(keep_rows=False, **how)
    for table in tables:
        merged.merge(table)
    return merged.to_bytes()


@contextmanager
def _in_partition(piece: Any) -> Iterator[None]:
    """Raise errors about cells again with what their rows are counted in."""
    try:
        yield
    except DataError as error:
        how = ", its rows counted from 0" * isinstance(piece, np.ndarray)
        raise error.within(f"In one partition{how}") from None


def partition_factors(piece: Any, columns: Columns, warns: bool = False) -> Floats:
    """Row factors of a partition; with ``warns`` it warns of rows without one."""
    if len(piece) == 0:
        return np.zeros(0)
    with _in_partition(piece):
        placed = columns.place(read_input(piece, columns=EVERY_COLUMN))
        factors = placed.factors
    if warns and (text := text_of_unplaced_rows(placed)):
        warn_user(f"In one partition: {text}", EmptyLineWarning)
    return factors


def partition_divergence(piece: Any, columns: Columns) -> float:
    """Divergence of the rows of a partition."""
    with _in_partition(piece):
        if not len(piece):
            return 0.0
        rows = read_input(piece, columns=EVERY_COLUMN)
        return divergence_of_rows(columns, rows)


def series_of_factors(piece: Any, columns: Columns, warns: bool = False) -> Any:
    """Row factors of a partition of a frame, with its index."""
    import pandas as pd

    factors = partition_factors(piece, columns, warns)
    return pd.Series(factors, index=piece.index, name="row_factor")


def fill_partition(
    piece: Any,
    columns: Columns,
    dtypes: dict[Any, Any],
    names: list[Any] | None,
    warns: bool = False,
) -> Any:
    """Fill a partition; columns that have holes anywhere get their common type.

    ``names`` are the columns of a frame that are the table. With ``warns`` it warns of
    cells that stay missing.
    """
    filled = piece
    if len(piece):
        with _in_partition(piece):
            options = BY_RULE if names is None else ColumnOptions(columns=names)
            source = read_input(piece, columns=options)
            found = fill_table(piece, columns.place(source))
        filled = found.table
        n_left, first, _ = found.left
        if warns and first is not None:
            text = text_of_left_cells(n_left, source.where(*first))
            warn_user(f"In one partition: {text}", UndeterminedWarning)
    if not dtypes:
        return filled
    out = filled.copy(deep=False)
    for name, dtype in dtypes.items():
        if out[name].dtype != dtype:
            _check_float64(out[name])
            out[name] = out[name].astype(dtype)
    return out


def _check_float64(column: Any) -> None:
    """Raise for integers that float64 would round."""
    if column.dtype.kind in "iu" and len(column) and column.abs().max() > WHOLE:
        raise NotRepresentableError(
            f"Column {shown(column.name)} has missing cells and integers above 2**53. "
            "Its partitions need one type, float64, which would round these. Convert "
            "it first, or exclude it."
        )


def common_dtypes(meta: Any, has_holes: Bools) -> dict[Any, Any]:
    """Types of the columns of a frame that have holes and cannot keep their type."""
    types = {name: filled_dtype(old) for name, old in meta.dtypes[has_holes].items()}
    return {name: new for name, new in types.items() if new != meta.dtypes[name]}
