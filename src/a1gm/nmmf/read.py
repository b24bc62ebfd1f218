"""Read the tables of a joint fit."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from a1gm._base.words import counted
from a1gm._rows.columns import BY_RULE, ColumnOptions
from a1gm._rows.read import is_sparse, read_input
from a1gm._rows.rows import Rows
from a1gm.exceptions import DataError, ParameterError


def open_table(table: Any, name: str, columns: ColumnOptions = BY_RULE) -> Rows:
    """Read a table that messages call ``name``; sparse ones are refused."""
    if is_sparse(table):
        raise ParameterError(
            f"{name} is a SciPy sparse table, which a joint fit does not read. Make it "
            "dense: toarray() gives zeros for the cells that are not stored; where "
            "these are missing and not zero, put NaN instead."
        )
    rows: Rows = read_input(table, name=name, columns=columns)
    return replace(rows, name=name)


def read_table(table: Any, name: str, columns: ColumnOptions = BY_RULE) -> Rows:
    """Read a table into one piece."""
    return open_table(table, name, columns).in_one_piece()


def read_side(
    table: Any, name: str, axis: int, x: Rows, columns: ColumnOptions = BY_RULE
) -> Rows | None:
    """Read a table that shares an axis with X; None if its other axis is empty.

    ``axis`` is the shared one. A table without rows (or, for Z, without columns) must
    still have the columns (rows) of X.
    """
    if table is None:
        return None
    shape = getattr(table, "shape", None)
    is_empty = isinstance(shape, tuple) and len(shape) == 2 and shape[1 - axis] == 0
    rows = None if is_empty else read_table(table, name, columns)
    size = shape[axis] if rows is None else (rows.n_rows, rows.n_cols)[axis]  # type: ignore[index]
    what, of_x = ("column", x.n_cols) if axis else ("row", x.n_rows)
    if size != of_x:
        raise DataError(
            f"{name} has {counted(size, what)}, but X has {of_x}: it shares the "
            f"{what}s of X and needs the same ones in the same order."
        )
    return rows
