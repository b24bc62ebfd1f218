"""Dask arrays and frames: the fit in memory, whatever the partitions."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import dask
import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
from support.clusters import local_cluster
from support.tables import gamma_table

import a1gm
from a1gm.exceptions import (
    DataError,
    EmptyLineWarning,
    LabelError,
    NegativeValuesError,
    NotNumericError,
    ParameterError,
    UndeterminedWarning,
)

SAME = 1e-11
pytestmark = pytest.mark.timeout(60)


def make_frame(n: int = 400) -> pd.DataFrame:
    X = gamma_table(n)
    frame = pd.DataFrame(X, columns=list("abcdef"), index=3 * np.arange(n))
    frame["single"] = frame["b"].astype("float32")
    frame["whole"] = (7 * np.arange(n)) % 401 + 1
    frame["nullable"] = pd.array(
        [None if k % 5 == 0 else k for k in range(n)], dtype="Int64"
    )
    return frame


@pytest.mark.parametrize("rows", [1, 7, 400])
def test_arrays(rows: int) -> None:
    X = gamma_table()
    lazy = da.from_array(X, chunks=(rows, 6))
    fit, whole = a1gm.distributed.fit(lazy), a1gm.fit(X)
    np.testing.assert_allclose(fit.col_factor, whole.col_factor, rtol=SAME)
    factors, filled = fit.row_factor, fit.impute(lazy)
    assert isinstance(factors, da.Array)
    assert factors.chunks == (filled.chunks[0],)
    np.testing.assert_allclose(factors.compute(), whole.row_factor, rtol=SAME)
    np.testing.assert_allclose(filled.compute(), whole.impute(X), rtol=SAME)
    np.testing.assert_allclose(fit.transform(lazy).compute(), whole.row_factor)
    assert fit.divergence_of(lazy) == pytest.approx(whole.divergence, rel=1e-10)
    assert "400 x 6" in repr(fit)


def test_columns_are_chosen_as_in_memory() -> None:
    frame = make_frame(40).assign(note="a")
    lazy = dd.from_pandas(frame, npartitions=3)
    for options in (
        {"columns": list("abc")},
        {"exclude": ["f", "note"]},
        {"id": ["note", "a"]},
    ):
        fit, whole = a1gm.distributed.fit(lazy, **options), a1gm.fit(frame, **options)
        assert list(fit.col_labels) == list(whole.col_labels)
        np.testing.assert_allclose(fit.col_factor, whole.col_factor, rtol=SAME)
        assert list(fit.impute(lazy).columns) == list(frame.columns)
    with pytest.raises(ParameterError, match="need a frame"):
        a1gm.distributed.fit(da.ones((4, 3), chunks=(2, 3)), columns=["a"])


def test_what_cannot_be_told_of_a_lazy_collection() -> None:
    X = np.array([[1.0, np.nan], [np.nan, 2.0]])
    lazy = da.from_array(X, chunks=(1, 2))
    with pytest.warns(UndeterminedWarning, match="rows were not kept") as said:
        fit = a1gm.distributed.fit(lazy)
    assert "fit.undetermined" not in str(said[0].message)
    with pytest.raises(ParameterError, match=r"fit\.n_undetermined"):
        fit.impute(lazy, on_undetermined="raise")
    assert fit.col_block.tolist() == [0, 1]


def test_collections_of_other_columns_are_refused() -> None:
    fit = a1gm.distributed.fit(dd.from_pandas(make_frame(), npartitions=2))
    other = make_frame().rename(columns={"whole": "other"})
    with pytest.raises(LabelError, match="column 'other' is new"):
        fit.impute(dd.from_pandas(other, npartitions=2))
    with pytest.raises(DataError, match="columns"):
        fit.impute(da.ones((4, 2)))


@pytest.mark.parametrize(
    "X",
    [
        gamma_table().astype(np.float32),
        np.arange(12).reshape(4, 3),
        np.ma.masked_invalid(gamma_table()),
    ],
    ids=["single floats", "integers", "masked"],
)
def test_cells_keep_their_type(X: np.ndarray) -> None:
    lazy = da.from_array(X, chunks=(len(X) // 2, X.shape[1]))
    fit = a1gm.distributed.fit(lazy)
    np.testing.assert_allclose(fit.col_factor, a1gm.fit(X).col_factor, rtol=SAME)
    filled = fit.impute(lazy)
    assert filled.dtype == filled.compute().dtype == X.dtype


def test_frames_keep_divisions_labels_and_types() -> None:
    frame = make_frame()
    lazy = dd.from_pandas(frame, npartitions=5)
    fit, whole = a1gm.distributed.fit(lazy), a1gm.fit(frame)
    np.testing.assert_allclose(fit.col_factor, whole.col_factor, rtol=SAME)
    assert list(fit.col_labels) == list(frame.columns)
    filled, want = fit.impute(lazy), whole.impute(frame)
    assert filled.divisions == lazy.divisions
    pd.testing.assert_frame_equal(filled.compute(), want, rtol=1e-10)
    assert dict(filled.dtypes) == dict(want.dtypes)
    factors = fit.row_factor
    assert factors.divisions == filled.divisions
    assert factors.compute().index.equals(frame.index)
    np.testing.assert_allclose(factors.compute(), whole.row_factor, rtol=SAME)


def test_a_partition_without_holes_has_the_type_of_the_others() -> None:
    frame = pd.DataFrame(
        {"x": [1.0, 2.0, 3.0, 4.0], "n": pd.array([1, 2, None, 4], dtype="Int64")}
    )
    lazy = dd.from_pandas(frame, npartitions=2)
    filled = a1gm.distributed.fit(lazy).impute(lazy)
    kinds = [part.compute().dtypes["n"] for part in filled.partitions]
    assert kinds == [pd.Float64Dtype(), pd.Float64Dtype()]


def test_negative_cells_where_they_are_allowed() -> None:
    X = np.array([[100.0, 50.0, 20.0], [110.0, 60.0, -5.0], [120.0, np.nan, np.nan]])
    lazy = da.from_array(X, chunks=(1, 3))
    with pytest.raises(NegativeValuesError, match=r"Partition 1: .*X\[1, 2\] = -5"):
        a1gm.distributed.fit(lazy)
    fit = a1gm.distributed.fit(lazy, negatives="allow")
    whole = a1gm.fit(X, negatives="allow")
    np.testing.assert_allclose(fit.col_factor, whole.col_factor, rtol=1e-9)
    np.testing.assert_allclose(fit.impute(lazy).compute(), whole.impute(X), rtol=1e-9)


DATES = pd.DataFrame({"when": pd.to_datetime(["2020-01-01"])})
TWICE = pd.DataFrame(np.ones((2, 2)), columns=["x", "x"])


@pytest.mark.parametrize(
    ("given", "error", "words"),
    [
        (np.ones((2, 2)), ParameterError, r"a1gm\.fit for a table in memory"),
        (da.ones(3), DataError, "Expected 2D array, got 1D"),
        (da.from_array(np.array([["a", "b"]])), NotNumericError, "astype"),
        (dask.delayed(np.ones)((2, 2)), DataError, "not a table"),
        (dd.from_pandas(DATES, 1), NotNumericError, "no number column"),
        (dd.from_pandas(TWICE, 1), LabelError, "repeated column names: 'x'"),
    ],
)
def test_what_is_no_table_is_refused(given: Any, error: Any, words: str) -> None:
    with pytest.raises(error, match=words):
        a1gm.distributed.fit(given)


def test_estimators_and_fit_point_here() -> None:
    lazy = da.from_array(gamma_table(), chunks=(100, 6))
    with pytest.raises(TypeError, match=r"a1gm\.distributed"):
        a1gm.fit(lazy)


# ------------------------------------------------------------------ a real cluster
@pytest.fixture(scope="module")
def client() -> Iterator[Any]:
    with local_cluster(2) as client:
        yield client


@pytest.mark.cluster
def test_separate_processes_give_the_same(client: Any) -> None:
    X = gamma_table()
    lazy = da.from_array(X, chunks=(37, 6))
    whole = a1gm.fit(X)
    fit = a1gm.distributed.fit(lazy)
    np.testing.assert_allclose(fit.col_factor, whole.col_factor, rtol=SAME)
    np.testing.assert_allclose(fit.impute(lazy).compute(), whole.impute(X), rtol=SAME)
    with dask.config.set(scheduler="threads"):
        here = a1gm.distributed.fit(lazy)
    assert np.array_equal(here.col_factor, fit.col_factor)


@pytest.mark.cluster
def test_errors_cross_the_wire(client: Any) -> None:
    X = gamma_table()
    X[150, 1] = -1.0
    with pytest.raises(NegativeValuesError, match=r"X\[150, 1\]"):
        a1gm.distributed.fit(da.from_array(X, chunks=(100, 6)))


@pytest.mark.parametrize("kind", ["array", "frame"])
def test_rows_without_a_factor_are_told_of_when_they_are_computed(kind: str) -> None:
    X = gamma_table()
    fit = a1gm.distributed.fit(da.from_array(X, chunks=(100, 6)))
    rows = np.full((4, 6), np.nan)
    rows[0] = 1.0
    if kind == "array":
        given: Any = da.from_array(rows, chunks=(2, 6))
    else:
        given = dd.from_pandas(pd.DataFrame(rows), npartitions=2)
    found = fit.transform(given)
    with (
        dask.config.set(scheduler="synchronous"),
        pytest.warns(EmptyLineWarning, match="In one partition: 1 row has"),
        pytest.warns(EmptyLineWarning, match="In one partition: 2 rows have"),
    ):
        factors = np.asarray(found.compute())
    np.testing.assert_array_equal(np.isnan(factors), [False, True, True, True])


def test_a_bad_cell_of_other_rows_is_counted_in_its_partition() -> None:
    X = gamma_table()
    fit = a1gm.distributed.fit(da.from_array(X, chunks=(100, 6)))
    rows = np.ones((4, 6))
    rows[3, 2] = -3.0
    array = da.from_array(rows, chunks=(2, 6))
    frame = dd.from_pandas(pd.DataFrame(rows, columns=[*"abcdef"]), npartitions=2)
    counted = r"In one partition, its rows counted from 0: .*X\[1, 2\] = -3"
    named = r"In one partition: .*X\[3, 'c'\] = -3"
    with dask.config.set(scheduler="synchronous"):
        for given, words in ((array, counted), (frame, named)):
            for use in (fit.impute, fit.transform, fit.divergence_of):
                with pytest.raises(NegativeValuesError, match=words):
                    dask.compute(use(given))
