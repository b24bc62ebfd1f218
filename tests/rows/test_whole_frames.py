"""Frames that are read in one step, and made anew from one array."""

from __future__ import annotations

import gc
import pickle

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import a1gm
from a1gm._kernel import is_compiled
from a1gm._rows import read_input
from a1gm._rows.frames import EVERY_COLUMN
from a1gm.exceptions import EmptyLineWarning, LabelError


def table() -> np.ndarray:
    rng = np.random.default_rng(0)
    X = rng.gamma(2.0, size=(70, 5))
    X[rng.random(X.shape) < 0.2] = np.nan
    X[:, 0] = np.arange(70.0)[::-1]  # without holes
    return X


NAMES = list("vwxyz")


def fragmented(X: np.ndarray) -> pd.DataFrame:
    """Columns in blocks of several types, in another order than the blocks."""
    frame = pd.DataFrame(X, columns=NAMES)
    frame["v"] = X[:, 0].astype(np.int32)
    frame["x"] = X[:, 2].astype(np.float32)
    frame["late"] = X[:, 1]
    return frame


def nulls(X: np.ndarray) -> pl.DataFrame:
    return pl.DataFrame(X, schema=NAMES, orient="row").fill_nan(None)


@pytest.mark.parametrize("order", ["C", "F"])
def test_blocks_of_pandas_are_read_where_they_lie(order: str) -> None:
    X = np.array(table(), order=order)
    frame = pd.DataFrame(X, columns=NAMES, copy=False)
    source = read_input(frame)
    assert len(source.parts) == 1
    assert np.shares_memory(source.parts[0][0], X)
    np.testing.assert_array_equal(source.rows(slice(0, 70)), X)


def test_blocks_in_any_order() -> None:
    X = table()
    frame = fragmented(X)
    source = read_input(frame)
    read = source.rows(slice(0, 70))
    np.testing.assert_array_equal(read, frame.to_numpy(np.float64))
    assert source.col_labels == (*NAMES, "late")
    reordered = frame[["late", "z", "v", "y", "x", "w"]]
    read = read_input(reordered).rows(slice(0, 70))
    np.testing.assert_array_equal(read, reordered.to_numpy(np.float64))


@pytest.mark.parametrize("start", [0, 3, 9])
@pytest.mark.parametrize("kind", ["polars", "arrow", "batch"])
def test_columns_by_address(kind: str, start: int) -> None:
    X = table()
    frame = nulls(X)[start:]
    given = {
        "polars": frame,
        "arrow": nulls(X).to_arrow().slice(start),
        "batch": nulls(X).to_arrow().to_batches()[0].slice(start),
    }[kind]
    source = read_input(given)
    if is_compiled:
        assert not isinstance(source.parts, list)
    parts = list(source.parts)
    assert len(parts) == len(source.parts) == 5
    del frame, given
    gc.collect()
    np.testing.assert_array_equal(source.rows(slice(0, 70 - start)), X[start:])
    again = pickle.loads(pickle.dumps(source))
    np.testing.assert_array_equal(again.rows(slice(0, 70 - start)), X[start:])


@pytest.mark.parametrize(
    "dtype", ["Int8", "Int16", "Int32", "Int64", "UInt8", "UInt16", "UInt32", "UInt64"]
)
def test_integers_by_address_keep_their_type_when_full(dtype: str) -> None:
    full = pl.Series("a", [1, 2, 3], getattr(pl, dtype))
    frame = pl.DataFrame([full, pl.Series("b", [2, None, 6], getattr(pl, dtype))])
    filled = a1gm.fit(frame).impute(frame)
    assert filled.dtypes == [getattr(pl, dtype), pl.Float64]
    np.testing.assert_allclose(filled["b"].to_numpy(), [2.0, 4.0, 6.0], rtol=1e-12)


def test_what_has_no_address_is_read_all_the_same() -> None:
    frame = pl.DataFrame({"a": [True, False, True], "b": [2.0, None, 1.0]})
    np.testing.assert_array_equal(
        read_input(frame, columns=EVERY_COLUMN).rows(slice(0, 3)),
        [[1.0, 2.0], [0.0, np.nan], [1.0, 1.0]],
    )


@pytest.mark.parametrize("kind", ["pandas", "polars", "arrow"])
def test_a_frame_of_float64_is_made_anew(kind: str) -> None:
    X = table()
    frame = nulls(X)
    metadata = {b"of": b"a table"}
    given = {
        "pandas": pd.DataFrame(X, index=range(7, 77), columns=NAMES),
        "polars": frame,
        "arrow": frame.to_arrow().replace_schema_metadata(metadata),
    }[kind]
    fit = a1gm.fit(given)
    filled = fit.impute(given)
    assert type(filled) is type(given)
    want = a1gm.fit(X).impute(X)
    columns = [np.asarray(filled[name]) for name in NAMES]
    np.testing.assert_allclose(np.column_stack(columns), want, rtol=1e-12)
    if kind == "pandas":
        assert filled.index.equals(given.index)
        assert filled.columns.equals(given.columns)
        filled.iloc[0, 0] = -1.0  # a copy
        assert given.iloc[0, 0] == 69.0
    elif kind == "polars":
        assert filled.schema == given.schema
        assert filled.null_count().sum_horizontal()[0] == 0
    else:
        assert filled.schema.equals(given.schema, check_metadata=True)
    del fit, given, frame
    gc.collect()
    columns = [np.asarray(filled[name]) for name in NAMES]
    np.testing.assert_allclose(np.column_stack(columns)[1:], want[1:], rtol=1e-12)


def test_a_field_that_says_more_keeps_it() -> None:
    values = pa.array([1.0, None, 3.0])
    fields = [
        pa.field("a", pa.float64(), metadata={b"unit": b"m"}),
        pa.field("b", pa.float64()),
    ]
    given = pa.table([pa.array([2.0, 4.0, 6.0]), values], schema=pa.schema(fields))
    filled = a1gm.fit(given).impute(given)
    assert filled.schema.equals(given.schema, check_metadata=True)
    np.testing.assert_allclose(np.asarray(filled["b"]), [1.0, 2.0, 3.0], rtol=1e-12)


def test_cells_that_stay_missing_are_nulls() -> None:
    frame = pl.DataFrame({"a": [1.0, None], "b": [None, 2.0]})
    filled = a1gm.fit(frame, on_undetermined="ignore").impute(frame)
    assert filled.null_count().row(0) == (1, 1)


def test_names_that_c_cannot_hold() -> None:
    # polars ends the process when it is asked to hand on the first of them
    frame = pl.DataFrame({"a\0b": [1.0, 2.0], "ü": [2.0, None], "": [3.0, 6.0]})
    filled = a1gm.fit(frame).impute(frame)
    assert filled.columns == frame.columns
    assert filled["ü"][1] == pytest.approx(4.0)


def test_a_short_frame_of_many_columns_is_made_from_its_rows() -> None:
    X = np.random.default_rng(0).gamma(2.0, size=(3, 200))
    X[1, ::3] = X[2, 5] = np.nan
    names = [f"ü{j}" for j in range(200)]
    frame = pl.DataFrame(X, schema=names, orient="row").fill_nan(None)
    filled = a1gm.fit(frame).impute(frame)
    assert filled.schema == frame.schema
    np.testing.assert_allclose(filled.to_numpy(), a1gm.impute(X), rtol=1e-12)
    assert a1gm.impute(frame).equals(filled)
    empty = frame.with_columns(pl.lit(None, pl.Float64).alias("ü7"))
    with pytest.warns(EmptyLineWarning):
        left = a1gm.fit(empty, on_undetermined="ignore").impute(empty)
    assert left["ü7"].null_count() == 3
    assert left.drop("ü7").null_count().sum_horizontal()[0] == 0


def test_names_are_those_of_now() -> None:
    frame = pd.DataFrame(table(), columns=NAMES)
    first = a1gm.fit(frame)
    frame.columns = ["a", "b", "c", "d", "e"]
    second = a1gm.fit(frame)
    assert list(first.col_labels) == NAMES
    assert list(second.col_labels) == list("abcde")
    frame.columns = ["a", "a", "c", "d", "e"]
    for _ in range(2):  # refused each time
        with pytest.raises(LabelError, match="repeated column names: 'a'"):
            a1gm.fit(frame)
