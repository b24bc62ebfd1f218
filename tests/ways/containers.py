"""The containers that hold a table in memory, and its cells taken out again."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import scipy.sparse as sp

from ways.tables import is_whole

Table = np.ndarray


def names_of(X: Table) -> list[str]:
    return [f"c{j}" for j in range(X.shape[1])]


def as_floats(frame: Any) -> Table:
    """The cells of a pandas frame of any kind as floats, NaN where missing."""
    columns = [frame[name].to_numpy(dtype=float, na_value=np.nan) for name in frame]
    return np.column_stack(columns)


# ---------------------------------------------------------------------- arrays
def c_array(X: Table) -> Table:
    """Counts without a hole come as integers."""
    is_integer = is_whole(X) and not np.isnan(X).any()
    return X.astype(np.int64) if is_integer else X.copy(order="C")


def masked_array(X: Table) -> Any:
    return np.ma.MaskedArray(np.nan_to_num(X, nan=-7.0), mask=np.isnan(X))


# ---------------------------------------------------------------------- frames
def pandas_frame(X: Table) -> pd.DataFrame:
    frame = pd.DataFrame(X, columns=names_of(X))
    if is_whole(X):
        whole = [name for name in frame if not frame[name].isna().any()]
        frame = frame.astype(dict.fromkeys(whole, "int64"))
    return frame


def nullable_frame(X: Table) -> pd.DataFrame:
    return pd.DataFrame(X, columns=names_of(X)).astype(
        "Int64" if is_whole(X) else "Float64"
    )


def arrow_backed_frame(X: Table) -> pd.DataFrame:
    whole = is_whole(X)
    return nullable_frame(X).astype("int64[pyarrow]" if whole else "double[pyarrow]")


def arrow_table(X: Table) -> pa.Table:
    kind = pa.int64() if is_whole(X) else pa.float64()
    columns = [
        pa.array([None if np.isnan(x) else x for x in column.tolist()], pa.float64())
        for column in X.T
    ]
    return pa.table([column.cast(kind) for column in columns], names=names_of(X))


def arrow_batch(X: Table) -> pa.RecordBatch:
    (batch,) = arrow_table(X).combine_chunks().to_batches()
    return batch


def polars_frame(X: Table) -> pl.DataFrame:
    found = pl.from_arrow(arrow_table(X))
    assert isinstance(found, pl.DataFrame)
    return found


def from_arrow(table: Any) -> Table:
    columns = [
        np.array([np.nan if x is None else x for x in column.to_pylist()], float)
        for column in table.columns
    ]
    return np.column_stack(columns)


def from_polars(frame: pl.DataFrame) -> Table:
    return from_arrow(frame.to_arrow())


#: What makes a container of an array, and what takes the cells out again.
CONTAINERS: dict[str, tuple[Callable[[Table], Any], Callable[[Any], Table]]] = {
    "C array": (c_array, np.asarray),
    "Fortran array": (np.asfortranarray, np.asarray),
    "float32 array": (lambda X: X.astype(np.float32), np.asarray),
    "lists": (lambda X: X.tolist(), np.asarray),
    "masked array": (masked_array, lambda filled: filled.filled(np.nan)),
    "pandas": (pandas_frame, as_floats),
    "pandas nullable": (nullable_frame, as_floats),
    "pandas Arrow-backed": (arrow_backed_frame, as_floats),
    "polars": (polars_frame, from_polars),
    "pyarrow table": (arrow_table, from_arrow),
    "pyarrow record batch": (arrow_batch, from_arrow),
}


def sparse_table(X: Table) -> sp.csr_array:
    """The observed cells; zeros are stored."""
    rows, cols = np.nonzero(~np.isnan(X))
    return sp.csr_array((X[rows, cols], (rows, cols)), shape=X.shape)
