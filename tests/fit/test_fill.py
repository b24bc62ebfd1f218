"""Filling gives back the container that was given."""

from __future__ import annotations

import warnings
from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import scipy.sparse as sp

import a1gm
from a1gm.estimators import RankOneImputer, RankOneNMF
from a1gm.exceptions import NotRepresentableError

X = np.array([[1.0, 2.0, 3.0], [2.0, np.nan, 6.0], [3.0, 6.0, np.nan]])
FULL = np.array([[1.0, 2.0, 3.0], [2.0, 4.0, 6.0], [3.0, 6.0, 9.0]])
UNKNOWN = np.array([[1.0, 2.0, np.nan], [2.0, 4.0, np.nan], [np.nan, np.nan, 3.0]])


def fill(table, **options):
    return a1gm.fit(table, **options).impute(table)


MIXED = {
    "a": np.array([1, 2, 3], np.int16),
    "b": pd.array([2, None, 6], dtype="Int64"),
    "c": np.array([3, 6, np.nan], np.float32),
}
ARROW = pd.DataFrame(X, columns=list("abc")).astype("double[pyarrow]")
NULLS = pl.Series([3.0, 6.0, float("nan")], dtype=pl.Float32)
#: A frame, and the types of its columns when they are filled.
FRAMES = {
    "pandas": (pd.DataFrame(MIXED), "int16 Float64 float32"),
    "pandas on Arrow": (
        ARROW.assign(b=ARROW["b"].astype("float[pyarrow]")),
        "double[pyarrow] float[pyarrow] double[pyarrow]",
    ),
    "polars, null and NaN": (
        pl.DataFrame({"a": [1, 2, 3], "b": [2, None, 6], "c": NULLS}),
        "Int64 Float64 Float32",
    ),
}


@pytest.mark.parametrize("name", FRAMES)
def test_columns_keep_their_types(name):
    frame, types = FRAMES[name]
    out = fill(frame)
    assert [str(kind) for kind in out.dtypes] == types.split()
    cells = out.to_numpy() if name.startswith("polars") else out.to_numpy(dtype=float)
    np.testing.assert_allclose(cells, FULL)


@pytest.mark.parametrize("kind", ["polars", "arrow"])
def test_what_is_unknown_stays_null(kind):
    frame = pl.DataFrame(UNKNOWN, schema=["a", "b", "c"]).fill_nan(None)
    table = frame if kind == "polars" else frame.to_arrow()
    fit = a1gm.fit(table, on_undetermined="ignore")
    out = fit.impute(table)
    out = out.to_arrow() if kind == "polars" else out
    nulls = sum(column.null_count for column in out.columns)
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


def test_nullable_integers_with_holes_come_back_to_pandas():
    # pandas notes its types in Arrow's metadata; a stale note made the cast back fail.
    frame = pd.DataFrame({"a": [2, 1, 5], "b": [4, None, 7]}, dtype="Int64")
    table = pa.Table.from_pandas(frame)
    filled = a1gm.impute(table).to_pandas()
    assert filled["b"].dtype == np.float64
    np.testing.assert_allclose(filled["b"], a1gm.impute(frame)["b"].astype(float))


# ------------------------------------------------------------------ in one pass
@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("dtype", ["float64", "float32", "Float64"])
def test_pandas_frames_full_of_holes_are_new_frames(order, dtype):
    cells = np.asarray(np.vstack([X, [[np.nan, 8.0, 12.0]]]), order=order)
    names = pd.Index(["b", "c", "d"], name="kind")
    frame = pd.DataFrame(cells, index=list("wxyy"), columns=names).astype(dtype)
    out = fill(frame)
    assert list(out.index) == list("wxyy")
    assert out.columns.equals(names)
    assert out.columns.name == "kind"
    assert [str(t) for t in out.dtypes] == [dtype] * 3
    expected = np.vstack([FULL, [[4.0, 8.0, 12.0]]])
    np.testing.assert_allclose(out.to_numpy(dtype=float), expected, rtol=1e-6)
    out.iloc[0, 0] = 99.0
    assert frame.iloc[0, 0] == 1.0


def test_pandas_attributes_and_flags_stay():
    frame = pd.DataFrame(np.where(np.eye(4)[:, :3] == 1.0, np.nan, 2.0))
    frame.attrs["unit"] = "m"
    assert fill(frame).attrs == {"unit": "m"}
    flagged = pd.DataFrame(frame.to_numpy()).set_flags(allows_duplicate_labels=False)
    assert not fill(flagged).flags.allows_duplicate_labels


@pytest.mark.parametrize("bad", [-1.0, np.inf])
def test_bad_cells_raise_before_anything_is_filled(bad):
    fit = a1gm.fit(X)
    rows = np.vstack([np.tile(X, (400, 1)), [[bad, 1.0, 1.0]]])
    with pytest.raises(a1gm.exceptions.DataError, match=r"X\[1200, 0\]"):
        fit.impute(rows)
    table = rows.copy()
    imputer = a1gm.RankOneImputer(copy=False).fit(X)
    with pytest.raises(a1gm.exceptions.DataError, match=r"X\[1200, 0\]"):
        imputer.transform(table)
    np.testing.assert_array_equal(table, rows)


def test_bad_integers_raise_although_nothing_is_missing():
    fit = a1gm.fit(np.ones((2, 2)))
    with pytest.raises(a1gm.exceptions.NegativeValuesError):
        fit.impute(np.array([[1, 2], [3, -4]]))
    frame = pd.DataFrame({"a": [1, 2], "b": [3, -4]})
    with pytest.raises(a1gm.exceptions.NegativeValuesError):
        a1gm.fit(frame.abs()).impute(frame)


def test_rows_of_any_size_are_filled():
    """Where the pass declines, the general way has the answer."""
    fit = a1gm.fit(X)
    for scale in (1e-320, 1e-300, 1e300, 5e306):
        found = fit.impute(X * scale)
        np.testing.assert_allclose(found / scale, FULL, rtol=1e-3)


def test_pieces_of_a_frame_are_filled_into_one():
    n = 300_000
    cells = np.tile(np.vstack([X, [[np.nan, 8.0, 12.0], [np.nan] * 3]]), (n // 5, 1))
    whole = pl.DataFrame(cells, schema=["a", "b", "c"]).fill_nan(None)
    cuts = pl.concat([whole[:140_000], whole[140_000:]], rechunk=False)
    fit = a1gm.fit(X)
    with pytest.warns(a1gm.exceptions.UndeterminedWarning, match=r"180,000|180000"):
        out = fit.impute(cuts)
    assert out.equals(fit.impute(whole, on_undetermined="ignore"))
    expected = np.vstack([FULL, [[4.0, 8.0, 12.0]], [[np.nan] * 3]])
    np.testing.assert_allclose(out.to_numpy()[:5], expected)
    np.testing.assert_allclose(
        fit.transform(whole[:4]), fit.row_factor[[0, 1, 2, 1]] * [1, 1, 1, 2]
    )


SINGLE = np.array([[1e30, 1e38], [2e38, np.nan]], np.float32)
OF_SINGLES = {
    "array": SINGLE,
    "mask": np.ma.masked_invalid(SINGLE),
    "sparse": sp.csr_array(SINGLE),
    "pandas": pd.DataFrame(SINGLE),
    "nullable": pd.DataFrame(SINGLE).astype("Float32"),
    "polars": pl.DataFrame(SINGLE, schema=["a", "b"]),
    "arrow": pa.table({"a": SINGLE[:, 0], "b": pa.array([1e38, None], pa.float32())}),
}


@pytest.mark.parametrize("kind", OF_SINGLES)
def test_a_fill_above_float32_is_refused_by_its_place(kind):
    X = OF_SINGLES[kind]
    absent = "zero" if kind == "sparse" else None
    fit = a1gm.fit(X, absent=absent)
    words = r"value of (X\[1, 1\]|row 1 of column (1|b)) is 2e\+46, above .*float32"
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(NotRepresentableError, match=words):
            fit.impute(X)


def test_a_fill_of_a_file_above_float32_is_refused(tmp_path):
    pq.write_table(OF_SINGLES["arrow"], tmp_path / "x.parquet")
    with pytest.raises(NotRepresentableError, match="missing cell of 'b' is 2e"):
        a1gm.impute_file(tmp_path / "x.parquet", tmp_path / "y.parquet")
    assert not (tmp_path / "y.parquet").exists()


@pytest.mark.parametrize("copy", [True, False])
def test_float32_of_the_estimators(copy):
    imputer = RankOneImputer(copy=copy).fit(SINGLE)
    for wrong, call in (
        (SINGLE.copy(), imputer.transform),
        (np.full((1, 2), 3e38, np.float32), RankOneNMF().fit_transform),
    ):
        before = wrong.copy()
        with pytest.raises(NotRepresentableError, match="above the largest float32"):
            call(wrong)
        np.testing.assert_array_equal(wrong, before)
    small = np.array([[1.0, 2.0], [2.0, np.nan]], np.float32)
    filled = imputer.fit(small).transform(small)
    assert filled.dtype == np.float32
    assert filled[1, 1] == np.float32(4.0)
    assert (filled is small) is not copy


# ------------------------------------------- known cells that float64 would round
LARGE = {
    "a": [2**53 + 1, 2 * 10**16 + 1, 3 * 10**16],
    "b": [None, 4 * 10**16 + 3, 6 * 10**16 + 1],
}
DIGITS = {
    "a": [Decimal("1.10"), Decimal("2.20"), Decimal("12345678901234567.89")],
    "b": [None, Decimal("4.40"), Decimal("12345678901234567.91")],
}
KINDS = {
    "pandas": lambda cells: pd.DataFrame(cells, dtype="Int64"),
    "unsigned": lambda cells: pd.DataFrame(cells, dtype="UInt64"),
    "pandas on Arrow": lambda cells: pd.DataFrame(cells, dtype="int64[pyarrow]"),
    "objects": lambda cells: pd.DataFrame(cells, dtype=object),
    "polars": pl.DataFrame,
    "arrow": pa.table,
    "batch": pa.RecordBatch.from_pydict,
}


@pytest.mark.parametrize("kind", ["pandas", "unsigned", "polars", "arrow"])
def test_the_first_integer_that_float64_rounds_is_refused(kind):
    frame = KINDS[kind]({"a": [2**53 + 1, None, 5], "b": [1, 2, 3]})
    with pytest.raises(NotRepresentableError, match=r"Column '?a'? .*9007199254740993"):
        a1gm.impute(frame)
    exact = KINDS[kind]({"a": [2**53, None, 5], "b": [1, 2, 3]})
    assert list_of(a1gm.impute(exact)["a"])[0] == 2**53


def list_of(column):
    return column.to_pylist() if hasattr(column, "to_pylist") else column.to_list()


@pytest.mark.parametrize("kind", KINDS)
def test_large_integers_beside_holes_are_refused(kind):
    frame = KINDS[kind](LARGE)
    fit = a1gm.fit(frame)
    with pytest.raises(
        NotRepresentableError, match=r"Column b has .*40000000000000003"
    ):
        fit.impute(frame)
    full = KINDS[kind]({**LARGE, "b": [7, 4 * 10**16 + 3, 1]})
    assert list_of(fit.impute(full)["b"]) == [7, 4 * 10**16 + 3, 1]
    exact = KINDS[kind]({**LARGE, "b": [None, 2**60, 5]})  # of float64, too
    out = fit.impute(exact)
    assert list_of(out["a"]) == LARGE["a"]
    assert list_of(out["b"])[1:] == [2**60, 5]


@pytest.mark.parametrize("kind", ["objects", "polars", "arrow", "batch"])
def test_long_decimals_beside_holes_are_refused(kind):
    frame = KINDS[kind](DIGITS)
    fit = a1gm.fit(frame)
    with pytest.raises(NotRepresentableError, match=r"b has .*12345678901234567\.91"):
        fit.impute(frame)
    short = {"a": [Decimal("1.10"), Decimal("2.20")], "b": [None, Decimal("6.60")]}
    assert list_of(fill(KINDS[kind](short))["b"]) == [3.3, 6.6]


def test_large_integers_of_an_array_are_refused():
    cells = np.array([[2**53 + 1, 0], [2 * 10**16 + 1, 4 * 10**16 + 3]])
    masked = np.ma.MaskedArray(cells, mask=[[0, 1], [0, 0]])
    objects = cells.astype(object)
    objects[0, 1] = None
    for table in (masked, objects):
        with pytest.raises(
            NotRepresentableError, match=r"The table .*40000000000000003"
        ):
            fill(table)


def test_a_missing_cell_that_stays_so_is_no_reason_to_refuse():
    cells = {"a": [1, 2, 3], "b": [4, None, None], "c": [None, None, 7]}
    frame = pd.DataFrame(cells, dtype="Int64")
    frame.loc[1, "a"] = pd.NA
    with pytest.warns(a1gm.exceptions.EmptyLineWarning):
        fit = a1gm.fit(frame)
    out = fit.impute(frame, on_undetermined="ignore")
    assert out["b"].isna().tolist() == [False, True, False]
    assert out["c"].dtype == "Float64"


@pytest.mark.parametrize("kind", [">f4", "<f4"])
def test_single_precision_of_any_byte_order_stays_single(kind):
    assert fill(X.astype(kind)).dtype == np.float32
