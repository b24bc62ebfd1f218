"""Types and containers: rows 25 to 42 of the list of faults."""

from __future__ import annotations

import datetime
import decimal

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse as sp
from sklearn.exceptions import NotFittedError

import a1gm
from a1gm import RankOneImputer, RankOneNMF
from a1gm.exceptions import (
    DataError,
    DataHintWarning,
    LabelError,
    NotNumericError,
    ParameterError,
)

X = np.array([[1.0, 2.0, 3.0], [2.0, np.nan, 6.0], [3.0, 6.0, 9.0], [1.0, 1.0, 2.0]])
WHOLE = np.array([[1, 2, 3], [2, 4, 6], [3, 5, 9]])
DOORS = {
    "fit": a1gm.fit,
    "pattern": a1gm.MissingPattern,
    "nmf": lambda X: RankOneNMF().fit(X),
    "imputer": lambda X: RankOneImputer().fit(X),
}
doors = pytest.mark.parametrize("door", DOORS.values(), ids=DOORS)


def assert_same_fit(found, expected, rtol=1e-12):
    np.testing.assert_allclose(found.row_factor, expected.row_factor, rtol=rtol)
    np.testing.assert_allclose(found.col_factor, expected.col_factor, rtol=rtol)


# --------------------------------------------------------------------------- dtypes
@pytest.mark.parametrize("dtype", ["i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "?"])
def test_25_integers_and_bools(dtype):
    table = WHOLE.astype(dtype)
    assert_same_fit(a1gm.fit(table), a1gm.fit(table.astype(float)))
    assert a1gm.fit(table).row_factor.dtype == np.float64
    assert RankOneNMF().fit_transform(table).dtype == np.float64


@pytest.mark.parametrize("dtype", [np.float32, np.float16, np.longdouble])
def test_26_other_floats(dtype):
    table = X.astype(dtype)
    assert_same_fit(a1gm.fit(table), a1gm.fit(table.astype(float)))
    kept = np.float32 if dtype == np.float32 else np.float64
    assert a1gm.fit(table).impute(table).dtype == kept
    assert RankOneNMF().fit_transform(table).dtype == kept
    assert RankOneImputer().fit_transform(table).dtype == kept


def test_27_objects_with_numbers_none_decimal_and_na():
    table = X.astype(object)
    table[1, 1] = None
    table[0, 0] = decimal.Decimal("1.0")
    assert_same_fit(a1gm.fit(table), a1gm.fit(X))
    table[1, 1] = pd.NA
    assert_same_fit(a1gm.fit(table), a1gm.fit(X))
    frame = pd.DataFrame(table)
    assert_same_fit(a1gm.fit(frame), a1gm.fit(X))
    np.testing.assert_allclose(
        RankOneImputer().fit_transform(table), a1gm.fit(X).impute(X)
    )


BAD_ARRAYS = {
    "text": np.array([["a", "b"]]),
    "bytes": np.array([[b"a", b"b"]]),
    "dates": np.array([["2020-01-01"]], "M8[D]"),
    "time spans": np.array([[1, 2]], "m8[s]"),
    "complex": np.array([[1 + 2j]]),
    "structured": np.zeros((2, 2), [("x", "f8"), ("y", "i4")]),
    "object text": np.array([[1.0, "a"]], object),
    "object date": np.array([[1.0, datetime.date(2020, 1, 1)]], object),
}


@doors
@pytest.mark.parametrize("kind", BAD_ARRAYS)
def test_28_arrays_that_are_not_numbers(door, kind):
    with pytest.raises(NotNumericError):
        door(BAD_ARRAYS[kind])


COLUMNS = {
    "text": ["a", "b"],
    "bytes": [b"a", b"b"],
    "dates": pd.to_datetime(["2020-01-01", "2020-01-02"]),
    "time spans": pd.to_timedelta([1, 2]),
    "complex": [1 + 2j, 3],
    "categories": pd.Categorical([1, 2]),
    "bools": [True, False],
    "intervals": pd.interval_range(0, 2),
}


@pytest.mark.parametrize("kind", COLUMNS)
def test_28_columns_that_are_not_numbers(kind):
    frame = pd.DataFrame({"good": [1.0, 2.0], "bad": COLUMNS[kind]})
    for read in (a1gm.fit, a1gm.MissingPattern):
        with pytest.warns(DataHintWarning, match="'bad' as not part of the table"):
            read(frame)
    if kind != "bools":
        with pytest.raises(NotNumericError, match="'bad'"):
            RankOneNMF().fit(frame)
        with pytest.raises(NotNumericError, match="'bad'"):
            a1gm.fit(frame, columns=["good", "bad"])
    with pytest.raises(NotNumericError, match=r"no number column.*'bad'"):
        a1gm.fit(frame[["bad"]])


def test_29_masked_arrays():
    junk = np.where(np.isnan(X), -1e300, X)
    table = np.ma.MaskedArray(junk, mask=np.isnan(X))
    assert_same_fit(a1gm.fit(table), a1gm.fit(X), rtol=0)
    assert a1gm.MissingPattern(table).n_missing == 1
    np.testing.assert_allclose(
        RankOneImputer().fit_transform(table), a1gm.fit(X).impute(X)
    )
    assert_same_fit(a1gm.fit(np.ma.MaskedArray(X)), a1gm.fit(X), rtol=0)


@pytest.mark.parametrize(
    "dtype", ["Float64", "Float32", "Int64", "double[pyarrow]", "int64[pyarrow]"]
)
def test_30_pandas_nullable_and_arrow(dtype):
    frame = pd.DataFrame(X, columns=list("abc")).astype(dtype)
    assert_same_fit(a1gm.fit(frame), a1gm.fit(X))
    np.testing.assert_allclose(
        RankOneImputer().fit_transform(frame), a1gm.fit(X).impute(X)
    )


@pytest.mark.parametrize("dtype", ["boolean", "bool[pyarrow]"])
def test_30_nullable_booleans(dtype):
    frame = pd.DataFrame({"a": [True, False, True], "b": [True, True, None]})
    table = np.array([[1.0, 1.0], [0.0, 1.0], [1.0, np.nan]])
    found = a1gm.fit(frame.astype(dtype), columns=["a", "b"])
    assert_same_fit(found, a1gm.fit(table))


def test_32_polars():
    frame = pl.DataFrame(X, schema=list("abc"))
    assert_same_fit(a1gm.fit(frame), a1gm.fit(X))
    assert_same_fit(a1gm.fit(frame.fill_nan(None)), a1gm.fit(X))
    decimals = frame.fill_nan(None).cast(pl.Decimal(10, 2))
    assert_same_fit(a1gm.fit(decimals), a1gm.fit(X))
    np.testing.assert_allclose(
        a1gm.fit(decimals).impute(decimals), a1gm.fit(X).impute(X)
    )


@doors
def test_32_lazy_frames_are_not_collected(door):
    with pytest.raises(NotNumericError, match=r"lazy frame.*collect\(\)"):
        door(pl.LazyFrame({"a": [1.0], "b": [2.0]}))


def test_33_pyarrow():
    table = pl.DataFrame(X, schema=list("abc")).fill_nan(None).to_arrow()
    assert_same_fit(a1gm.fit(table), a1gm.fit(X))
    batch = table.combine_chunks().to_batches()[0]
    assert_same_fit(a1gm.fit(batch), a1gm.fit(X))
    assert_same_fit(RankOneNMF().fit(batch)._fit, a1gm.fit(X))
    decimals = pa.table({n: table[n].cast(pa.decimal128(10, 2)) for n in "abc"})
    assert_same_fit(a1gm.fit(decimals), a1gm.fit(X))
    empty = table.set_column(2, "c", pa.nulls(4))
    with pytest.warns(a1gm.exceptions.EmptyLineWarning):
        assert np.isnan(a1gm.fit(empty).col_factor[2])


# --------------------------------------------------------------------------- labels
@doors
def test_34_repeated_and_mixed_names(door):
    frame = pd.DataFrame(X, columns=["a", "b", "a"])
    with pytest.raises(LabelError, match="repeated column names: 'a'"):
        door(frame)
    table = pa.table([pa.array([1.0]), pa.array([2.0])], names=["a", "a"])
    with pytest.raises(LabelError, match="repeated column names: 'a'"):
        door(table)
    frame = pd.DataFrame(X, columns=["a", 1, "b"])
    with pytest.raises(LabelError, match=r"mixed types.*\[1\]"):
        door(frame)


@pytest.mark.parametrize("model", [RankOneNMF(), RankOneImputer()], ids=str)
@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame, pa.table])
def test_35_transform_wants_the_columns_of_fit(model, make):
    columns = {"a": [1.0, 2.0], "b": [2.0, 3.0]}
    model.fit(make(columns))
    for other in (
        {"b": [1.0], "a": [1.0]},
        {"a": [1.0], "b": [1.0], "c": [1.0]},
        {"a": [1.0]},
    ):
        with pytest.raises(ValueError, match="feature names should match"):
            model.transform(make(other))
    model.fit(X)
    with pytest.raises(ValueError, match="X has 2 features, but"):
        model.transform(X[:, :2])


# --------------------------------------------------------------------------- layout
def layouts(table):
    strided = np.full((2 * len(table), 2 * table.shape[1]), -1.0)
    strided[::2, ::2] = table
    return {
        "fortran": np.asfortranarray(table),
        "strided": strided[::2, ::2],
        "reversed": np.ascontiguousarray(table[::-1, ::-1])[::-1, ::-1],
        "big endian": table.astype(">f8"),
        "unaligned": np.frombuffer(b"x" + table.tobytes(), dtype=np.uint8, offset=1)
        .view(np.float64)
        .reshape(table.shape),
    }


@pytest.mark.parametrize(
    "kind", ["fortran", "strided", "reversed", "big endian", "unaligned"]
)
def test_36_any_layout_gives_identical_answers(kind):
    table = layouts(X)[kind]
    assert_same_fit(a1gm.fit(table), a1gm.fit(X), rtol=0)
    np.testing.assert_array_equal(a1gm.fit(table).impute(table), a1gm.fit(X).impute(X))
    np.testing.assert_array_equal(
        RankOneImputer().fit_transform(table), RankOneImputer().fit_transform(X)
    )


def test_36_broadcast_arrays():
    table = np.broadcast_to(np.array([1.0, 2.0, 4.0]), (5, 3))
    assert_same_fit(a1gm.fit(table), a1gm.fit(table.copy()), rtol=0)


def snapshot(table):
    if isinstance(table, np.ndarray):
        return table.tobytes()
    if isinstance(table, pd.DataFrame):
        return table.to_numpy(dtype=float, na_value=np.nan).tobytes()
    if isinstance(table, pl.DataFrame):
        return table.hash_rows().to_list()
    if sp.issparse(table):
        return table.data.tobytes(), table.indices.tobytes(), table.indptr.tobytes()
    return table.to_pydict().__repr__()


def read_only(table):
    table = table.copy()
    table.flags.writeable = False
    return table


def unsorted_csr():
    S = sp.csr_array(np.nan_to_num(X))
    S.indices[:3] = S.indices[:3][::-1].copy()
    S.data[:3] = S.data[:3][::-1].copy()
    S.has_sorted_indices = S.has_canonical_format = False
    return S


UNTOUCHED = {
    "array": X.copy,
    "read-only": lambda: read_only(X),
    "single": lambda: X.astype(np.float32),
    "pandas": lambda: pd.DataFrame(X, columns=list("abc")),
    "nullable": lambda: pd.DataFrame(X, columns=list("abc")).astype("Float64"),
    "polars": lambda: pl.DataFrame(X, schema=list("abc")),
    "arrow": lambda: pl.DataFrame(X, schema=list("abc")).to_arrow(),
    "csr": lambda: sp.csr_array(np.nan_to_num(X)),
    "unsorted": unsorted_csr,
}


@pytest.mark.parametrize("kind", UNTOUCHED)
def test_37_the_input_is_never_modified(kind):
    table = UNTOUCHED[kind]()
    absent = {"absent": "zero"} if sp.issparse(table) else {}
    before = snapshot(table)
    fit = a1gm.fit(table, **absent)
    fit.impute(table)
    fit.transform(table)
    assert fit.divergence >= 0.0
    a1gm.MissingPattern(table, **absent)
    RankOneNMF(**absent).fit(table).transform(table)
    RankOneNMF(**absent).partial_fit(table, sample_weight=np.arange(4.0))
    RankOneImputer(add_indicator=True).fit_transform(table)
    assert snapshot(table) == before


def test_37_memory_maps(tmp_path):
    np.save(tmp_path / "x.npy", X)
    before = (tmp_path / "x.npy").read_bytes()
    table = np.load(tmp_path / "x.npy", mmap_mode="r")
    assert_same_fit(a1gm.fit(table), a1gm.fit(X), rtol=0)
    np.testing.assert_array_equal(a1gm.fit(table).impute(table), a1gm.fit(X).impute(X))
    assert (tmp_path / "x.npy").read_bytes() == before


@doors
@pytest.mark.parametrize(
    ("table", "words"),
    [
        (np.ones((1, 2)).view(np.matrix), "np.matrix"),
        ([[1.0, 2.0], [3.0]], "different lengths"),
        (np.float64(3.0), "Expected 2D array, got scalar array"),
        (np.ones(3), "Expected 2D array, got 1D array"),
        (np.ones((2, 2, 2)), "Expected 2D array, got 3D array"),
        (np.ones((0, 3)), r"0 sample\(s\)"),
        (np.ones((3, 0)), r"0 feature\(s\)"),
        (pd.Series([1.0, 2.0]), "Expected 2D array, got 1D array"),
        (pl.Series([1.0, 2.0]), "Expected 2D array, got 1D array"),
        (pd.DataFrame({"a": []}), r"0 sample\(s\)"),
        (pd.DataFrame(index=[0, 1]), r"0 feature\(s\)"),
    ],
    ids=str,
)
@pytest.mark.filterwarnings("ignore:the matrix subclass:PendingDeprecationWarning")
def test_38_not_a_table(door, table, words):
    with pytest.raises((DataError, NotNumericError), match=words):
        door(table)


# --------------------------------------------------------------------------- sparse
def test_39_explicit_zeros_are_observed():
    S = sp.csr_array((np.array([1.0, 0.0, 2.0, 3.0]), ([0, 0, 1, 1], [0, 1, 0, 1])))
    dense = np.array([[1.0, 0.0], [2.0, 3.0]])
    assert S.nnz == 4
    assert_same_fit(a1gm.fit(S, absent="missing"), a1gm.fit(dense))
    assert a1gm.MissingPattern(S, absent="missing").n_missing == 0


def test_39_duplicates_are_summed():
    cells = np.array([1.0, 2.0, 3.0, 4.0, 5.0]), ([0, 0, 0, 1, 1], [0, 0, 1, 0, 1])
    dense = np.array([[3.0, 3.0], [4.0, 5.0]])
    S = sp.coo_array(cells)
    for absent in ("missing", "zero"):
        assert_same_fit(a1gm.fit(S, absent=absent), a1gm.fit(dense))
        assert_same_fit(a1gm.fit(sp.coo_matrix(S), absent=absent), a1gm.fit(dense))


def test_39_stored_nan_is_missing():
    S = sp.csr_array(X)
    for absent in ("missing", "zero"):
        assert_same_fit(a1gm.fit(S, absent=absent), a1gm.fit(X), rtol=1e-9)


@pytest.mark.parametrize("absent", ["missing", "zero"])
def test_39_unsorted_and_wide_indices(absent):
    expected = a1gm.fit(sp.csr_array(np.nan_to_num(X)), absent=absent)
    assert_same_fit(a1gm.fit(unsorted_csr(), absent=absent), expected)
    S = sp.csr_array(np.nan_to_num(X))
    S.indices, S.indptr = S.indices.astype(np.int64), S.indptr.astype(np.int64)
    assert_same_fit(a1gm.fit(S, absent=absent), expected)


def test_39_sparse_numbers_only():
    with pytest.raises(NotNumericError, match="Complex data not supported"):
        a1gm.fit(sp.csr_array(np.array([[1j]])), absent="zero")
    for dtype in (np.float32, np.int32, bool):
        S = sp.csr_array(np.ones((3, 2), dtype))
        assert_same_fit(a1gm.fit(S, absent="zero"), a1gm.fit(np.ones((3, 2))))
    with pytest.raises(DataError):
        a1gm.fit(sp.csr_array((0, 3)), absent="zero")


@doors
def test_40_dask_objects_are_not_loaded(door):
    class Array:
        """Stands for dask.array.Array, which need not be installed."""

        def __array__(self, *args, **kwargs):
            raise AssertionError("it was loaded")

    Array.__module__ = "dask.array.core"
    with pytest.raises(NotNumericError, match=r"a1gm\.distributed"):
        door(Array())


# ---------------------------------------------------------------------- parameters
@pytest.mark.parametrize(
    "options",
    [
        {"tol": np.nan},
        {"tol": 0.0},
        {"max_iter": 0},
        {"max_iter": 1.5},
        {"n_threads": 0},
        {"negatives": "abs"},
        {"absent": "nothing"},
    ],
    ids=str,
)
def test_42_bad_parameters_are_refused_at_fit(options):
    model = RankOneNMF(**options)
    for method in ("fit", "partial_fit"):
        with pytest.raises(ValueError, match=next(iter(options))):
            getattr(model, method)(X)
    with pytest.raises(ParameterError, match=next(iter(options))):
        a1gm.fit(X, **options)
    with pytest.raises(NotFittedError):
        model.transform(X)


def test_42_markers():
    with pytest.raises(ParameterError, match="not a number"):
        RankOneImputer(missing_values="?").fit(X)
    with pytest.raises(ValueError, match="contains NaN"):
        RankOneImputer(missing_values=-1).fit(X)


def test_a_stored_index_is_not_fitted_as_data():
    frame = pd.DataFrame({"a": [1.0, 2.0, 3.0], "b": [2.0, 4.0, np.nan]}, [30, 50, 80])
    table = pa.Table.from_pandas(frame)
    with pytest.warns(DataHintWarning, match="'__index_level_0__'"):
        fit = a1gm.fit(table)
    np.testing.assert_array_equal(fit.row_factor, a1gm.fit(frame).row_factor)
    assert fit.impute(table)["b"][2].as_py() == pytest.approx(6.0)
