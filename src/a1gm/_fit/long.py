"""Fitted values of pairs of labels, and a long table filled."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from a1gm._base.types import AnyArray, Floats, Ints
from a1gm._base.warn import warn_user
from a1gm._fit.table import Table
from a1gm._rows.keys import Key, code_key, taken
from a1gm._rows.labels import check_there, paired
from a1gm._rows.long import open_pairs
from a1gm._rows.read import AnyRows
from a1gm._rows.sparse import SparseRows
from a1gm.exceptions import ParameterError, TableTooLargeError, UndeterminedWarning

Fitted = Callable[[Ints, Ints], Floats]
CELLS_AT_ONCE = 1 << 22


# ------------------------------------------------------------------ labelled pairs
def read_pairs(frame: Any, long: tuple[Any, Any, Any] | None) -> tuple[Key, Key]:
    """Code the two key columns of a long frame."""
    if long is None:
        raise ParameterError(
            "This fit is not one of a long table, so it does not know which columns of "
            "a frame hold the keys. Pass the labels: fit.predict(rows, columns)."
        )
    row, column = long[:2]
    opened = open_pairs(frame, (row, column))
    check_there("The frame", (row, column), opened.columns)
    return code_key(opened, row), code_key(opened, column)


def predicted(unknown: Sequence[str], places: Sequence[Ints], fitted: Fitted) -> Any:
    """Fitted values at places, NaN for negative ones; ``unknown`` are their names."""
    if any(unknown):
        warn_user(
            f"The fit does not know {' and '.join(filter(None, unknown))}: their "
            "values are NaN. Fit a table that has them, or check how they are written.",
            UndeterminedWarning,
        )
    rows, cols = paired(*places)
    values = np.full(rows.shape, np.nan)
    known = (rows >= 0) & (cols >= 0)
    values[known] = fitted(rows[known], cols[known])
    return values if values.ndim else float(values)


# ------------------------------------------------------------------------ filling
def filled_long(
    table: Table,
    shape: tuple[int, int],
    fitted: Fitted,
    *,
    only_missing: bool,
    max_rows: int,
) -> Any:
    """Make a long frame of the missing pairs, or of all, with their values."""
    source = table.source
    if table.long is None:
        raise ParameterError(
            "This fit is not one of a long table. fit.impute(X) fills the table that "
            "was fitted; a1gm.fit_long fits a long one."
        )
    if source is None:
        raise ParameterError(
            "This fit was loaded or unpickled, and the data are not in the file. "
            "fit.predict(frame) gives the fitted values of the pairs in a frame."
        )
    n_known = _count_known(source)
    n_rows = shape[0] * shape[1] - (n_known if only_missing else 0)
    if n_rows > max_rows:
        raise TableTooLargeError(
            f"fill_long would give {n_rows:,} rows: {shape[0]:,} x {shape[1]:,} pairs, "
            f"of which {n_known:,} are observed. That is more than max_rows="
            f"{max_rows:,}. fit.predict(frame) gives the values of the pairs that are "
            "needed; or raise max_rows."
        )
    parts = list(_pairs(source, fitted, only_missing=only_missing))
    rows, cols, values = (np.concatenate(part) for part in zip(*parts, strict=True))
    assert table.key_values is not None
    keys = zip(table.long[:2], table.key_values, (rows, cols), strict=True)
    return long_frame(table.backend, list(keys), {table.long[2]: values})


def _count_known(source: AnyRows) -> int:
    if isinstance(source, SparseRows):
        return int(np.count_nonzero(~source.missing))
    return sum(int(np.count_nonzero(~np.isnan(x))) for _, x in source.blocks())


def _pairs(
    source: AnyRows, fitted: Fitted, *, only_missing: bool
) -> Iterator[tuple[Ints, Ints, Floats]]:
    """Yield rows, columns and values of pairs, some rows at a time."""
    step = max(1, CELLS_AT_ONCE // source.n_cols)
    for start in range(0, source.n_rows, step):
        x = source.rows(slice(start, min(start + step, source.n_rows)))
        missing = np.isnan(x)
        rows, cols = np.nonzero(missing)
        x[rows, cols] = fitted(rows + start, cols)
        if only_missing:
            yield rows + start, cols, x[rows, cols]
        else:
            rows, cols = (np.ravel(places) for places in np.indices(x.shape))
            yield rows + start, cols, x.ravel()


def long_frame(
    backend: str | None,
    keys: Sequence[tuple[Any, Any, AnyArray]],
    columns: dict[Any, AnyArray],
) -> Any:
    """Make a frame of key columns, each distinct values and their places, and numbers.

    Numbers that are NaN become null in libraries that have it.
    """
    names = {name: taken(values, codes) for name, values, codes in keys}
    if backend == "pandas":
        import pandas as pd

        return pd.DataFrame({**names, **columns})
    if backend == "polars":
        import polars as pl

        keyed = [pl.Series(name, _plain(values)) for name, values in names.items()]
        numbers = [pl.Series(name, x, nan_to_null=True) for name, x in columns.items()]
        return pl.DataFrame([*keyed, *numbers])
    import pyarrow as pa

    arrays = {name: pa.array(_plain(values)) for name, values in names.items()}
    more = {name: pa.array(x, from_pandas=True) for name, x in columns.items()}
    return pa.table({**arrays, **more})


def _plain(values: Any) -> Any:
    """Names as another library than pandas takes them."""
    is_objects = isinstance(values, np.ndarray) and values.dtype.kind == "O"
    return list(values) if is_objects else values
