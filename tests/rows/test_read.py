"""Every container gives the same fit as the NumPy array that it holds."""

from __future__ import annotations

import datetime
import pickle
from decimal import Decimal

import narwhals as nw
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from support.frames import (
    RTOL,
    as_pandas,
    as_polars,
    assert_same_fit,
    holed_table,
    names,
)
from ways import containers

import a1gm
from a1gm import RankOneImputer, RankOneNMF
from a1gm.exceptions import DataError, LabelError, NotNumericError


def as_decimals(X):
    """Decimal numbers of 256 bits, with more digits than a float has."""
    cells = [[None if np.isnan(x) else Decimal(x) for x in column] for column in X.T]
    return pa.table([pa.array(c, pa.decimal256(76, 60)) for c in cells], names())


def in_blocks(X):
    """Columns of two types, in another order than pandas stores them."""
    frame = as_pandas(X).drop(columns="c1").assign(c0=np.ones(len(X), np.int32))
    return frame.assign(c1=X[:, 1])[names()]


CONTAINERS = {
    **{name: make for name, (make, _) in containers.CONTAINERS.items()},
    "objects": lambda X: np.where(np.isnan(X), None, X),
    "pandas mixed": in_blocks,
    "pandas object": lambda X: as_pandas(X).astype(object),
    "pandas big-endian": lambda X: as_pandas(X.astype(">f8")),
    "pandas long double": lambda X: as_pandas(X.astype(np.longdouble)),
    "pandas sparse, NaN": lambda X: as_pandas(X).astype(pd.SparseDtype(float)),
    "pandas sparse, 0": lambda X: as_pandas(X).astype(pd.SparseDtype(float, 0.0)),
    "pandas numbers as names": pd.DataFrame,
    "pandas decimals": lambda X: as_decimals(X).to_pandas(types_mapper=pd.ArrowDtype),
    "polars NaN": as_polars,
    "arrow decimals": as_decimals,
}
del CONTAINERS["float32 array"]  # which rounds


def content(table):
    """Cells and labels; what libraries remember beside them may change."""
    if hasattr(table, "to_pydict"):  # pyarrow
        return repr(table.to_pydict())
    frame = nw.from_native(table, pass_through=True)
    if frame is table:
        return pickle.dumps(table)
    return repr((frame.to_dict(as_series=False), getattr(table, "index", None)))


@pytest.mark.parametrize("kind", CONTAINERS)
def test_every_container_gives_the_same_fit_and_is_not_modified(kind):
    X = holed_table()
    expected, given = a1gm.fit(X), CONTAINERS[kind](X)
    before = content(given)
    found = a1gm.fit(given)
    assert_same_fit(found, expected)
    assert found.certificate <= 1e-10
    np.testing.assert_allclose(found.transform(given), expected.row_factor, rtol=RTOL)
    filled = found.impute(given)
    back = filled.to_pandas() if hasattr(filled, "to_pandas") else filled
    np.testing.assert_allclose(np.asarray(back, float), expected.impute(X), rtol=RTOL)
    if "sparse" in kind:
        assert filled.dtypes.equals(given.dtypes)
    pattern = a1gm.MissingPattern(given)
    assert pattern.n_missing == np.isnan(X).sum()
    assert (pattern.n_rows, pattern.n_cols) == X.shape
    assert content(given) == before


# ------------------------------------------------------------- what is not a table
DOORS = {
    "fit": a1gm.fit,
    "pattern": a1gm.MissingPattern,
    "nmf": lambda X: RankOneNMF().fit(X),
    "imputer": lambda X: RankOneImputer().fit(X),
}


doors = pytest.mark.parametrize("door", DOORS.values(), ids=DOORS)


BAD_ARRAYS = {
    "text": np.array([["a", "b"]]),
    "bytes": np.array([[b"a", b"b"]]),
    "dates": np.array([["2020-01-01"]], "M8[D]"),
    "time spans": np.array([[1, 2]], "m8[s]"),
    "complex": np.array([[1 + 2j]]),
    "structured": np.zeros((2, 2), [("x", "f8"), ("y", "i4")]),
    "object date": np.array([[1.0, datetime.date(2020, 1, 1)]], object),
}


@doors
@pytest.mark.parametrize("kind", BAD_ARRAYS)
def test_arrays_that_are_not_numbers(door, kind):
    with pytest.raises(NotNumericError):
        door(BAD_ARRAYS[kind])


@doors
def test_repeated_and_mixed_names(door):
    X = np.ones((4, 3))
    frame = pd.DataFrame(X, columns=["a", "b", "a"])
    table = pa.table([pa.array([1.0]), pa.array([2.0])], names=["a", "a"])
    for twice in (frame, table):
        with pytest.raises(LabelError, match="repeated column names: 'a'"):
            door(twice)
    frame = pd.DataFrame(X, columns=["a", 1, "b"])
    with pytest.raises(LabelError, match=r"mixed types.*\[1\]"):
        door(frame)


@doors
@pytest.mark.parametrize(
    ("table", "words"),
    [
        (np.ones((1, 2)).view(np.matrix), "np.matrix"),
        ([[1.0, 2.0], [3.0]], "different lengths"),
        (np.float64(3.0), "Expected 2D array, got scalar array"),
        ("sales.csv", r"single str.*fit_file"),
        (None, "single NoneType, not a table"),
        ({1, 2}, "single set"),
        (np.ones(3), "Expected 2D array, got 1D array"),
        (np.ones((2, 2, 2)), r"got 3D array .* a1gm.fit_tensor\(X\)"),
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
def test_not_a_table(door, table, words):
    with pytest.raises((DataError, NotNumericError), match=words):
        door(table)


@pytest.mark.parametrize("door", [d for name, d in DOORS.items() if name != "fit"])
def test_lazy_frames_are_not_loaded(door):
    with pytest.raises(NotNumericError, match=r"lazy frame.*X\.collect\(\)"):
        door(pl.LazyFrame({"a": [1.0], "b": [2.0]}))


@doors
def test_dask_objects_are_not_loaded(door):
    class Array:
        """Stands for dask.array.Array, which need not be installed."""

        def __array__(self, *args, **kwargs):
            raise AssertionError("it was loaded")

    Array.__module__ = "dask.array.core"
    with pytest.raises(NotNumericError, match=r"a1gm\.distributed"):
        door(Array())


def test_what_has_a_call_of_its_own_is_told_so():
    pairs = pd.MultiIndex.from_product([["north", "east"], ["jan", "feb"]])
    series = pd.Series([1.0, 2.0, 3.0, 6.0], pairs)
    with pytest.raises(DataError, match=r"a1gm\.fit_long\(X\)"):
        a1gm.fit(series)
    assert a1gm.fit_long(series).shape == (2, 2)
    with pytest.raises(DataError, match=r"a1gm\.fit_many\(X\)"):
        a1gm.fit(np.ones((2, 3, 4)))


def test_sparse_arrays_of_another_package():
    """Seen: a raw RuntimeError, "Cannot convert a sparse array"."""
    sparse = pytest.importorskip("sparse")
    X = np.array([[1.0, 2.0, 0.0], [2.0, 4.0, 6.0]])
    stored = sparse.COO(X)
    for door in (a1gm.fit, a1gm.assess):
        with pytest.raises(NotNumericError, match=r"X\.to_scipy_sparse\(\)"):
            door(stored)
    assert a1gm.fit(stored.to_scipy_sparse(), absent="zero").shape == X.shape
    holes = sparse.COO.from_numpy(np.where(X > 0.0, X, np.nan), fill_value=np.nan)
    assert a1gm.fit_tensor(holes).shape == X.shape
