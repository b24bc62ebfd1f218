"""Every container gives the same fit as the NumPy array that it holds."""

from __future__ import annotations

import warnings
from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse as sp

import a1gm
from a1gm._kernel import is_compiled
from a1gm._observe.observe import observe
from a1gm._rows import SparseRows, frames, read_input
from a1gm._rows.sparse import lines_of_pairs

RTOL = 1e-9  # two roads to the same optimum, both certified to 1e-10


def table(n=60, m=6, share=0.2, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.gamma(2.0, size=(n, m)) * rng.uniform(0.5, 2.0, size=m)
    X[rng.random(X.shape) < share] = np.nan
    X[0], X[:, 0] = 1.0, 1.0
    return X


def names(m=6):
    return [f"c{j}" for j in range(m)]


def as_pandas(X):
    return pd.DataFrame(X, columns=names(X.shape[1]))


def as_polars(X):
    return pl.DataFrame(X, schema=names(X.shape[1]))


def as_nulls(X):
    return as_polars(X).fill_nan(None)


def as_arrow(X):
    return as_nulls(X).to_arrow()


def as_batch(X):
    return as_arrow(X).combine_chunks().to_batches()[0]


def as_masked(X):
    return np.ma.MaskedArray(np.where(np.isnan(X), -7.0, X), mask=np.isnan(X))


def as_missing_cells(X):
    rows, cols = np.nonzero(~np.isnan(X))
    return sp.coo_array((X[rows, cols], (rows, cols)), shape=X.shape)


def as_decimals(X):
    """Decimal numbers of 256 bits, with more digits than a float has."""
    cells = [[None if np.isnan(x) else Decimal(x) for x in column] for column in X.T]
    return pa.table([pa.array(c, pa.decimal256(76, 60)) for c in cells], names())


CONTAINERS = {
    "array": lambda X: X,
    "fortran": np.asfortranarray,
    "list": lambda X: X.tolist(),
    "objects": lambda X: np.where(np.isnan(X), None, X),
    "masked": as_masked,
    "pandas": as_pandas,
    "pandas mixed": lambda X: as_pandas(X).assign(c0=np.ones(len(X), np.int64)),
    "pandas nullable": lambda X: as_pandas(X).astype("Float64"),
    "pandas arrow": lambda X: as_pandas(X).astype("double[pyarrow]"),
    "pandas object": lambda X: as_pandas(X).astype(object),
    "pandas big-endian": lambda X: as_pandas(X.astype(">f8")),
    "pandas long double": lambda X: as_pandas(X.astype(np.longdouble)),
    "pandas sparse, NaN": lambda X: as_pandas(X).astype(pd.SparseDtype(float)),
    "pandas sparse, 0": lambda X: as_pandas(X).astype(pd.SparseDtype(float, 0.0)),
    "pandas numbers as names": pd.DataFrame,
    "pandas decimals": lambda X: as_decimals(X).to_pandas(types_mapper=pd.ArrowDtype),
    "polars NaN": as_polars,
    "polars null": as_nulls,
    "arrow": as_arrow,
    "batch": as_batch,
    "arrow decimals": as_decimals,
}


@pytest.mark.parametrize("kind", CONTAINERS)
def test_every_container_gives_the_same_fit(kind):
    X = table()
    expected = a1gm.fit(X)
    found = a1gm.fit(CONTAINERS[kind](X))
    np.testing.assert_allclose(found.row_factor, expected.row_factor, rtol=RTOL)
    np.testing.assert_allclose(found.col_factor, expected.col_factor, rtol=RTOL)
    assert found.divergence == pytest.approx(expected.divergence, rel=RTOL)
    assert found.certificate <= 1e-10


@pytest.mark.parametrize("kind", CONTAINERS)
def test_every_container_is_filled_alike(kind):
    X = table()
    given = CONTAINERS[kind](X)
    filled = a1gm.impute(given)
    back = filled.to_pandas() if hasattr(filled, "to_pandas") else filled
    np.testing.assert_allclose(np.asarray(back, float), a1gm.impute(X), rtol=RTOL)
    if "sparse" in kind:
        assert filled.dtypes.equals(given.dtypes)


@pytest.mark.skipif(not hasattr(pl, "Int128"), reason="not in this polars")
def test_whole_numbers_of_128_bits():
    X = pl.DataFrame({"a": [1, 2, 3], "b": [2, None, 6]}).cast(pl.Int128)
    assert a1gm.impute(X)["b"].to_list() == [2.0, 4.0, 6.0]


@pytest.mark.parametrize(
    "empty",
    [
        lambda: pd.DataFrame({"a": [1, 2], "b": [None, None]}),
        lambda: pd.DataFrame({"a": [1, 2], "b": pd.array([pd.NA] * 2)}),
        lambda: pl.DataFrame({"a": [1, 2], "b": [None, None]}),
        lambda: pa.table({"a": [1, 2], "b": pa.nulls(2)}),
    ],
)
def test_a_column_without_values_and_type_is_empty(empty):
    with pytest.warns(a1gm.exceptions.EmptyLineWarning):
        assert np.isnan(a1gm.fit(empty()).col_factor[1])


@pytest.mark.parametrize("kind", CONTAINERS)
def test_every_container_shows_the_same_pattern(kind):
    X = table()
    found = a1gm.MissingPattern(CONTAINERS[kind](X))
    assert found.n_missing == np.isnan(X).sum()
    assert (found.n_rows, found.n_cols) == X.shape


# ----------------------------------------------------------------------- columns
def test_blocks_of_a_pandas_frame_are_read_as_matrices_without_a_copy():
    X = table(share=0.0)
    frame = as_pandas(X)
    source = read_input(frame)
    assert [part[0].shape for part in source.parts] == [X.shape]
    assert np.shares_memory(source.parts[0][0], frame.to_numpy())


def test_arrow_columns_are_read_where_they_lie():
    column = as_arrow(table()).column("c3").chunk(0)
    source = read_input(as_arrow(table()).slice(5, 40))
    assert source.n_rows == 40
    values, mask, validity, offset, _ = source.parts[3]
    assert mask is None
    assert offset == 5
    assert validity is not None
    assert values.base is not None
    np.testing.assert_array_equal(
        source.rows(slice(0, 40))[:, 3],
        column.slice(5, 40).to_numpy(zero_copy_only=False),
    )


def test_frames_in_chunks_are_read_in_pieces(monkeypatch):
    monkeypatch.setattr(frames, "PIECE_ROWS", 8)
    X = table()
    whole = as_nulls(X)
    chunked = pl.concat([whole[:7], whole[7:20], whole[20:]], rechunk=False)
    source = read_input(chunked)
    assert source.steps == (0, 20, 60)
    np.testing.assert_array_equal(source.rows(slice(3, 33)), X[3:33])
    np.testing.assert_array_equal(np.vstack([b for _, b in source.blocks()]), X)
    expected, found = a1gm.fit(X), a1gm.fit(chunked)
    np.testing.assert_allclose(found.row_factor, expected.row_factor, rtol=RTOL)
    assert found.divergence == pytest.approx(expected.divergence, rel=RTOL)
    filled = found.impute(chunked).to_numpy()
    np.testing.assert_allclose(filled, expected.impute(X), rtol=RTOL)


def test_pieces_with_too_many_patterns_are_joined(monkeypatch):
    from a1gm._observe import accumulate

    monkeypatch.setattr(frames, "PIECE_ROWS", 8)
    monkeypatch.setattr(accumulate, "TABLE_BYTES", 1)
    X = table()
    chunked = pl.concat([as_nulls(X)[:20], as_nulls(X)[20:]], rechunk=False)
    found = a1gm.fit(chunked)
    np.testing.assert_allclose(found.row_factor, a1gm.fit(X).row_factor, rtol=RTOL)


def test_a_bad_cell_in_pieces_is_named_and_counted_as_in_one(monkeypatch):
    monkeypatch.setattr(frames, "PIECE_ROWS", 8)
    X = table(share=0.0)
    X[33, 2], X[50, 4] = -1.5, -2.0
    chunked = pl.concat([as_polars(X)[:20], as_polars(X)[20:]], rechunk=False)
    with pytest.raises(
        a1gm.exceptions.NegativeValuesError, match=r"X\[33, 'c2'\] = -1.5 \(2 in all\)"
    ):
        a1gm.fit(chunked)
    assert observe(
        read_input(chunked),
        n_threads=1,
        negatives="allow",
        keep_table=True,
        row_offset=0,
    )


def test_piece_steps_follow_chunks_and_join_tiny_ones(monkeypatch):
    monkeypatch.setattr(frames, "PIECE_ROWS", 10)
    assert frames.piece_steps([], 100) == (0, 100)
    assert frames.piece_steps([30, 50, 100], 100) == (0, 30, 50, 100)
    assert frames.piece_steps([1, 2, 3, 12, 100], 100) == (0, 12, 100)


def test_frames_work_without_pyarrow(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "pyarrow", None)
    X = table()
    expected = a1gm.fit(X)
    for frame in (as_nulls(X), as_pandas(X).astype("Float64")):
        found = a1gm.fit(frame)
        np.testing.assert_allclose(found.row_factor, expected.row_factor, rtol=RTOL)


def test_labels_are_kept():
    frame = as_pandas(table()).set_index(pd.Index([f"r{i}" for i in range(60)]))
    fit = a1gm.fit(frame)
    assert list(fit.row_labels) == list(frame.index)
    assert list(fit.col_labels) == names()
    fit = a1gm.fit(as_arrow(table()))
    assert fit.row_labels is None
    assert list(fit.col_labels) == names()


def test_messages_use_the_labels():
    frame = as_pandas(table(share=0.0)).set_index(
        pd.Index([f"r{i}" for i in range(60)])
    )
    frame.loc["r7", "c2"] = -1.0
    with pytest.raises(ValueError, match=r"X\['r7', 'c2'\] = -1"):
        a1gm.fit(frame)
    frame.loc["r7", "c2"] = np.inf
    with pytest.raises(ValueError, match=r"X\['r7', 'c2'\] = inf"):
        a1gm.fit(frame)


# ------------------------------------------------------------------------ sparse
SPARSE = [
    sp.csr_array,
    sp.csr_matrix,
    sp.csc_array,
    sp.csc_matrix,
    sp.coo_array,
    sp.lil_array,
]


@pytest.mark.parametrize("make", SPARSE)
def test_absent_cells_may_be_missing(make):
    X = table(share=0.5)
    S = make(as_missing_cells(X))
    expected, found = a1gm.fit(X), a1gm.fit(S, absent="missing")
    np.testing.assert_allclose(found.row_factor, expected.row_factor, rtol=RTOL)
    np.testing.assert_allclose(found.col_factor, expected.col_factor, rtol=RTOL)
    assert found.divergence == pytest.approx(expected.divergence, rel=RTOL)
    np.testing.assert_allclose(found.transform(S), expected.transform(X), rtol=RTOL)


@pytest.mark.parametrize("make", SPARSE)
@pytest.mark.parametrize("n_holes", [0, 9])
def test_absent_cells_may_be_zero(make, n_holes):
    rng = np.random.default_rng(5)
    X = rng.poisson(0.7, size=(70, 8)).astype(float)
    X.ravel()[rng.choice(X.size, n_holes, replace=False)] = np.nan
    S = make(sp.coo_array(X))
    expected, found = a1gm.fit(X), a1gm.fit(S, absent="zero")
    np.testing.assert_allclose(found.row_factor, expected.row_factor, rtol=RTOL)
    np.testing.assert_allclose(found.col_factor, expected.col_factor, rtol=RTOL)
    assert found.divergence == pytest.approx(expected.divergence, rel=RTOL)
    np.testing.assert_allclose(found.transform(S), expected.transform(X), rtol=RTOL)
    pattern = a1gm.MissingPattern(S, absent="zero")
    assert pattern.n_missing == n_holes


def test_many_patterns_of_stored_nan_use_the_mask(monkeypatch):
    from a1gm._observe import sparse as _sparse

    monkeypatch.setattr(_sparse, "TABLE_CELLS", 0)
    rng = np.random.default_rng(5)
    X = rng.poisson(0.02, size=(300, 120)).astype(float)
    X.ravel()[rng.choice(X.size, 150, replace=False)] = np.nan
    S = sp.csr_array(X)
    expected = a1gm.fit(X)
    found = a1gm.fit(S, absent="zero")
    np.testing.assert_allclose(found.row_factor, expected.row_factor, rtol=RTOL)
    monkeypatch.setattr(_sparse, "MAX_MASK_BYTES", 10)
    with pytest.raises(a1gm.exceptions.TableTooLargeError, match="different patterns"):
        a1gm.fit(S, absent="zero")


def test_rows_of_cells_of_a_sparse_source():
    S = sp.csr_array(np.array([[0, 1, 0], [0, 0, 0], [2, 0, 3], [0, 4, 0]], float))
    source = read_input(S, absent="missing")
    assert isinstance(source, SparseRows)
    for start in range(4):
        for stop in range(start + 1, 5):
            np.testing.assert_array_equal(
                lines_of_pairs(source.ptr, slice(start, stop)),
                source.lines[start:stop],
            )


@pytest.mark.parametrize("exponent", [-1020, 1000])
def test_sparse_tables_of_any_scale(exponent):
    X = table(share=0.3)
    S = as_missing_cells(X)
    expected = a1gm.fit(X)
    found = a1gm.fit(as_missing_cells(np.ldexp(X, exponent)), absent="missing")
    del S
    np.testing.assert_allclose(found.col_factor, expected.col_factor, rtol=1e-6)


def test_sparse_must_say_what_absent_means():
    with pytest.raises(a1gm.exceptions.ParameterError, match="sparse"):
        a1gm.fit(sp.eye_array(3, format="csr"))
    with pytest.raises(a1gm.exceptions.ParameterError, match="is dense"):
        a1gm.fit(np.ones((2, 2)), absent="zero")
    with pytest.raises(a1gm.exceptions.ParameterError, match="absent must be"):
        a1gm.fit(np.ones((2, 2)), absent="nothing")


def test_sparse_bad_cells_are_named():
    S = sp.csr_array(np.array([[1.0, 2.0, 0.0], [0.0, -3.0, -1.0]]))
    with pytest.raises(
        a1gm.exceptions.NegativeValuesError, match=r"X\[1, 1\] = -3 \(2 in all\)"
    ):
        a1gm.fit(S, absent="zero")
    S = sp.csr_array(np.array([[1.0, np.inf, 0.0], [0.0, 3.0, -1.0]]))
    with pytest.raises(a1gm.exceptions.InfiniteValuesError, match=r"X\[0, 1\] = inf"):
        a1gm.fit(S, absent="missing")


def test_import_stays_light():
    import subprocess
    import sys

    heavy = ["sklearn", "scipy", "pandas", "polars", "pyarrow", "narwhals", "dask"]
    code = f"import a1gm, sys; print([m for m in {heavy} if m in sys.modules])"
    out = subprocess.check_output([sys.executable, "-c", code], text=True)
    assert out.strip() == "[]"


@pytest.mark.skipif(not is_compiled, reason="the NumPy kernel works on dense masks")
def test_large_sparse_tables_sweep_by_rows():
    rng = np.random.default_rng(2)
    n, m, k = 40_000, 3_000, 400_000
    cells = rng.gamma(2.0, size=k), (rng.integers(0, n, k), rng.integers(0, m, k))
    S = sp.csr_array(sp.coo_array(cells, shape=(n, m)))
    S.sum_duplicates()
    with pytest.warns(a1gm.exceptions.EmptyLineWarning):
        fit = a1gm.fit(S, absent="missing")
    assert fit.certificate <= 1e-10
    assert fit.solver == "scaling"
    with pytest.warns(a1gm.exceptions.EmptyLineWarning):
        other = a1gm.fit(S, absent="missing", n_threads=3)
    np.testing.assert_allclose(other.col_factor, fit.col_factor, rtol=1e-8)
    n_empty = int((np.diff(S.indptr) == 0).sum())
    assert fit.n_undetermined == n_empty * m


@pytest.mark.parametrize("seed", range(6))
def test_sparse_blocks_and_zeros_count_as_dense_ones(seed):
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 3, size=(9, 8)).astype(float)
    X[rng.random(X.shape) < 0.65] = np.nan
    S = as_missing_cells(X)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        dense, found = a1gm.fit(X), a1gm.fit(S, absent="missing")
    assert found.n_undetermined == dense.n_undetermined
    assert found.attained == dense.attained
    assert found.certificate <= 1e-10
    np.testing.assert_array_equal(found.row_block, dense.row_block)
    np.testing.assert_allclose(found.row_factor, dense.row_factor, rtol=1e-8)
    assert list(found.undetermined) == list(dense.undetermined)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("kind", ["random", "staircase", "grid", "complete"])
def test_the_pattern_of_a_sparse_table_is_that_of_the_dense_one(kind, seed):
    rng = np.random.default_rng(seed)
    X = rng.gamma(2.0, size=(12, 7))
    hole = {
        "random": rng.random(X.shape) < 0.4,
        "staircase": np.add.outer(np.arange(12) // 2, np.arange(7)) > 7,
        "grid": np.outer(np.arange(12) < 5, np.arange(7) > 3),
        "complete": np.zeros(X.shape, bool),
    }[kind]
    X[hole] = np.nan
    order = rng.permutation(7)
    X = X[rng.permutation(12)][:, order]
    dense = a1gm.MissingPattern(X)
    found = a1gm.MissingPattern(as_missing_cells(X), absent="missing")
    assert repr(found) == repr(dense)
    for name in (
        "n_missing",
        "n_rows_with_missing",
        "n_cols_with_missing",
        "n_row_patterns",
        "n_col_patterns",
        "is_nested",
        "is_grid_like",
        "has_closed_form",
        "core_shape",
        "increase_rate",
    ):
        assert getattr(found, name) == getattr(dense, name), name
    np.testing.assert_array_equal(found.missing_per_col, dense.missing_per_col)


@pytest.mark.parametrize("n_cols", [4, 5, 7, 8, 10])
@pytest.mark.parametrize("offset", [0, 1, 5, 63])
def test_arrow_columns_at_any_offset(n_cols, offset):
    rng = np.random.default_rng(n_cols + offset)
    X = rng.gamma(2.0, size=(333, n_cols))
    X[rng.random(X.shape) < 0.3] = np.nan
    X[offset], X[:, 1] = 1.0, 1.0
    frame = as_nulls(X).to_arrow().slice(offset, 201)
    rows = X[offset : offset + 201]
    found, expected = a1gm.fit(frame), a1gm.fit(rows)
    np.testing.assert_allclose(found.row_factor, expected.row_factor, rtol=1e-12)
    np.testing.assert_allclose(found.col_factor, expected.col_factor, rtol=1e-12)


@pytest.mark.parametrize("kind", ["decimal32", "decimal64", "decimal128", "decimal256"])
def test_decimals_of_every_width_are_numbers(kind):
    if not hasattr(pa, kind):
        pytest.skip("not in this pyarrow")
    table = pa.table({"a": pa.array([1, 2, None], getattr(pa, kind)(5, 1))})
    table = table.append_column("b", pa.array([1.0, 2.0, 3.0]))
    np.testing.assert_allclose(a1gm.fit(table).col_factor, 0.5)


@pytest.mark.parametrize("library", [pd, pl])
def test_a_subclass_of_a_frame_is_a_frame(library):
    class Own(library.DataFrame):
        pass

    X = {"a": [1.0, 2.0, 3.0], "b": [2.0, 4.0, 6.0], "c": [5.0, 10.0, 15.0]}
    fit = a1gm.fit(Own(X))
    assert list(fit.col_labels) == ["a", "b", "c"]
    other = Own({"c": [5.0, 10.0, np.nan], "b": X["b"], "a": X["a"]})
    filled = fit.impute(other)
    assert isinstance(filled, library.DataFrame)
    np.testing.assert_allclose(filled["c"].to_numpy(), X["c"])
    assert list(a1gm.fit(Own(X), exclude="a").col_labels) == ["b", "c"]
