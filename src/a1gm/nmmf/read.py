"""Tables of a joint fit, read under their names."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from a1gm._base.words import counted
from a1gm._rows import Rows, read_input
from a1gm._rows.read import is_sparse
from a1gm.exceptions import DataError, ParameterError


def open_table(table: Any, name: str) -> Rows:
    """Read a table that messages call ``name``; sparse ones are refused."""
    if is_sparse(table):
        msg = (
            f"{name} is a SciPy sparse table, which a joint fit does not read. Make it "
            "dense: toarray() gives zeros for the cells that are not stored; where "
            "these are missing and not zero, put NaN instead."
        )
        raise ParameterError(msg)
    source: Rows = replace(read_input(table, name=name), name=name)
    return source


def read_table(table: Any, name: str) -> Rows:
    """Read a table into one piece."""
    return open_table(table, name).in_one_piece()


def read_side(table: Any, name: str, axis: int, x: Rows) -> Rows | None:
    """Read a table that shares one axis with X; None when it has no entities.

    ``axis`` is the shared one. A table of no rows (or, for Z, columns) of its own is
    as good as none, but must still fit X.
    """
    if table is None:
        return None
    what, size_of_x = ("column", x.n_cols) if axis else ("row", x.n_rows)
    shape = getattr(table, "shape", None)
    if isinstance(shape, tuple) and len(shape) == 2 and shape[1 - axis] == 0:
        _check_shared(name, what, shape[axis], size_of_x)
        return None
    source = read_table(table, name)
    size = source.n_cols if axis else source.n_rows
    _check_shared(name, what, size, size_of_x)
    return source


def _check_shared(name: str, axis: str, size: int, size_of_x: int) -> None:
    if size != size_of_x:
        msg = (
            f"{name} has {counted(size, axis)}, but X has {size_of_x}: it "
            f"shares the {axis}s of X and needs the same ones in the same order."
        )
        raise DataError(msg)
