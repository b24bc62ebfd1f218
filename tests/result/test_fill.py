"""Filling gives back the container that was given."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse as sp

import a1gm
from a1gm._result.fill import fill_table
from a1gm._sources import read_input

X = np.array([[1.0, 2.0, 3.0], [2.0, np.nan, 6.0], [3.0, 6.0, np.nan]])
FULL = np.array([[1.0, 2.0, 3.0], [2.0, 4.0, 6.0], [3.0, 6.0, 9.0]])
UNKNOWN = np.array([[1.0, 2.0, np.nan], [2.0, 4.0, np.nan], [np.nan, np.nan, 3.0]])


def fill(table, **options):
    return a1gm.fit(table, **options).impute(table)


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.float16, ">f8"])
def test_arrays_keep_single_precision(dtype):
    out = fill(X.astype(dtype))
    assert type(out) is np.ndarray
    assert out.dtype == (np.float32 if dtype == np.float32 else np.float64)
    np.testing.assert_allclose(out, FULL, rtol=1e-6)


def test_integers_have_no_holes_and_stay():
    table = np.array([[1, 2], [3, 4]])
    out = fill(table)
    assert out.dtype == table.dtype
    assert out is not table


def test_masked_arrays_stay_masked_where_nothing_is_known():
    table = np.ma.masked_invalid(X)
    out = fill(table)
    assert isinstance(out, np.ma.MaskedArray)
    assert not out.mask.any()
    np.testing.assert_allclose(out.data, FULL)
    table = np.ma.masked_invalid(UNKNOWN)
    fit = a1gm.fit(table, on_undetermined="ignore")
    assert fit.impute(table).mask.sum() == np.isnan(UNKNOWN).sum()


def test_lists_and_objects_become_arrays():
    np.testing.assert_allclose(fill(X.tolist()), FULL)
    out = fill(np.where(np.isnan(X), None, X))
    assert out.dtype == np.float64
    np.testing.assert_allclose(out, FULL)


def test_pandas_keeps_index_columns_and_untouched_types():
    frame = pd.DataFrame(
        {
            "whole": np.array([1, 2, 3], np.int16),
            "hole": pd.array([2, None, 6], dtype="Int64"),
            "single": np.array([3, 6, np.nan], np.float32),
        },
        index=["x", "y", "y"],
    )
    out = fill(frame)
    assert list(out.index) == ["x", "y", "y"]
    assert [str(t) for t in out.dtypes] == ["int16", "Float64", "float32"]
    np.testing.assert_allclose(out.to_numpy(dtype=float), FULL)
    assert frame["hole"].isna().sum() == 1


def test_pandas_arrow_types_stay_arrow():
    frame = pd.DataFrame(X, columns=list("abc")).astype("double[pyarrow]")
    frame["b"] = frame["b"].astype("float[pyarrow]")
    out = fill(frame)
    assert [str(t) for t in out.dtypes] == [
        "double[pyarrow]",
        "float[pyarrow]",
        "double[pyarrow]",
    ]
    np.testing.assert_allclose(out.to_numpy(dtype=float), FULL)


def test_polars_fills_nulls_and_nans_alike():
    frame = pl.DataFrame(
        {
            "a": [1, 2, 3],
            "b": [2, None, 6],
            "c": pl.Series([3.0, 6.0, float("nan")], dtype=pl.Float32),
        }
    )
    out = fill(frame)
    assert out.dtypes == [pl.Int64, pl.Float64, pl.Float32]
    np.testing.assert_allclose(out.to_numpy(), FULL)


@pytest.mark.parametrize("kind", ["polars", "arrow"])
def test_what_is_unknown_stays_null(kind):
    frame = pl.DataFrame(UNKNOWN, schema=["a", "b", "c"]).fill_nan(None)
    table = frame if kind == "polars" else frame.to_arrow()
    fit = a1gm.fit(table, on_undetermined="ignore")
    out = fit.impute(table)
    nulls = (
        out.null_count().to_numpy().sum()
        if kind == "polars"
        else sum(c.null_count for c in out.columns)
    )
    assert nulls == np.isnan(UNKNOWN).sum()


def test_arrow_keeps_schema_and_metadata():
    schema = pa.schema(
        [
            pa.field("a", pa.int8(), metadata={"unit": "m"}),
            pa.field("b", pa.int64(), metadata={"unit": "s"}),
            pa.field("c", pa.float32()),
        ],
        metadata={"owner": "me"},
    )
    table = pa.table(
        {"a": [1, 2, 3], "b": [2, None, 6], "c": [3, 6, None]}, schema=schema
    )
    out = fill(table)
    assert out.schema.types == [pa.int8(), pa.float64(), pa.float32()]
    assert out.schema.metadata == {b"owner": b"me"}
    assert out.schema.field("b").metadata == {b"unit": b"s"}
    batch = table.to_batches()[0]
    assert isinstance(fill(batch), pa.RecordBatch)
    assert fill(batch).to_pydict() == out.to_pydict()


@pytest.mark.parametrize(
    "make", [sp.csr_array, sp.csc_matrix, sp.coo_array, sp.lil_matrix]
)
def test_sparse_fills_stored_nan_only(make):
    table = np.array([[0.0, 2.0, 3.0], [0.0, np.nan, 6.0], [1.0, 6.0, 0.0]])
    S = make(sp.coo_array(table))
    out = fill(S, absent="zero")
    assert type(out) is type(S)
    np.testing.assert_allclose(out.toarray(), fill(table))
    assert out.nnz == S.nnz


def test_sparse_with_missing_absent_cells_cannot_stay_sparse():
    S = sp.csr_array(FULL - np.diag([1.0, 0.0, 0.0]))
    fit = a1gm.fit(S, absent="missing")
    with pytest.raises(a1gm.exceptions.ParameterError, match="no longer be sparse"):
        fit.impute(S)


def test_in_place_writes_into_the_array_itself():
    table = X.copy()
    filled = fill_table(
        table, read_input(table), lambda i, j: FULL[i, j], in_place=True
    )
    assert filled.table is table
    np.testing.assert_array_equal(table, FULL)
    assert filled.n_left == 0


def test_cells_left_are_counted():
    filled = fill_table(X, read_input(X), lambda i, j: np.where(i == 1, np.nan, 0.0))
    assert (filled.n_left, filled.first_left) == (1, (1, 1))


def test_nullable_integers_with_holes_come_back_to_pandas():
    # pandas notes its types in Arrow's metadata; a stale note made the cast back fail.
    frame = pd.DataFrame({"a": [2, 1, 5], "b": [4, None, 7]}, dtype="Int64")
    table = pa.Table.from_pandas(frame)
    filled = a1gm.impute(table).to_pandas()
    assert filled["b"].dtype == np.float64
    np.testing.assert_allclose(filled["b"], a1gm.impute(frame)["b"].astype(float))
