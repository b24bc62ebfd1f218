"""SciPy sparse tables."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from support.frames import RTOL, assert_same_fit, holed_table

import a1gm
from a1gm._kernel import is_compiled
from a1gm.exceptions import (
    DataError,
    InfiniteValuesError,
    NegativeValuesError,
    NotNumericError,
    ParameterError,
)


def as_missing_cells(X):
    rows, cols = np.nonzero(~np.isnan(X))
    return sp.coo_array((X[rows, cols], (rows, cols)), shape=X.shape)


SPARSE = [getattr(sp, f"{kind}_array") for kind in ("csr", "csc", "coo", "lil")]
SPARSE += [sp.csr_matrix, sp.csc_matrix]


@pytest.mark.parametrize("make", SPARSE)
def test_absent_cells_may_be_missing(make):
    X = holed_table(share=0.5)
    S = make(as_missing_cells(X))
    expected, found = a1gm.fit(X), a1gm.fit(S, absent="missing")
    assert_same_fit(found, expected)
    np.testing.assert_allclose(found.transform(S), expected.transform(X), rtol=RTOL)


@pytest.mark.parametrize("make", SPARSE)
@pytest.mark.parametrize("n_holes", [0, 9])
def test_absent_cells_may_be_zero(make, n_holes):
    rng = np.random.default_rng(5)
    X = rng.poisson(0.7, size=(70, 8)).astype(float)
    X.ravel()[rng.choice(X.size, n_holes, replace=False)] = np.nan
    S = make(sp.coo_array(X))
    before = S.toarray()
    expected, found = a1gm.fit(X), a1gm.fit(S, absent="zero")
    assert_same_fit(found, expected)
    np.testing.assert_allclose(found.transform(S), expected.transform(X), rtol=RTOL)
    assert a1gm.MissingPattern(S, absent="zero").n_missing == n_holes
    np.testing.assert_array_equal(S.toarray(), before)


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


@pytest.mark.parametrize(
    ("table", "absent", "error", "words"),
    [
        (sp.eye_array(3, format="csr"), None, ParameterError, "sparse"),
        (np.ones((2, 2)), "zero", ParameterError, "is dense"),
        (
            sp.csr_array([[1.0, 2.0, 0.0], [0.0, -3.0, -1.0]]),
            "zero",
            NegativeValuesError,
            r"X\[1, 1\] = -3 \(2 in all\)",
        ),
        (
            sp.csr_array([[1.0, np.inf, 0.0], [0.0, 3.0, -1.0]]),
            "missing",
            InfiniteValuesError,
            r"X\[0, 1\] = inf",
        ),
        (sp.csr_array([[1j]]), "zero", NotNumericError, "Complex data not supported"),
        (sp.csr_array((0, 3)), "zero", DataError, "at least one row"),
    ],
)
def test_refused(table, absent, error, words):
    with pytest.raises(error, match=words):
        a1gm.fit(table, absent=absent)


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


ONES = np.ones((3, 2))
DENSE = np.array([[1.0, 0.0], [3.0, 3.0]])
CELLS = np.array([1.0, 0.0, 1.0, 2.0, 3.0]), ([0, 0, 1, 1, 1], [0, 1, 0, 0, 1])


@pytest.mark.parametrize(
    ("S", "dense"),
    [
        # Explicit zeros are observed, duplicates are summed.
        (sp.coo_array(CELLS), DENSE),
        (sp.coo_matrix(CELLS), DENSE),
        (sp.csr_array(CELLS), DENSE),
        *((sp.csr_array(ONES.astype(t)), ONES) for t in (np.float32, np.int32, bool)),
    ],
)
@pytest.mark.parametrize("absent", ["missing", "zero"])
def test_stored_cells_are_those_of_the_dense_table(S, dense, absent):
    assert_same_fit(a1gm.fit(S, absent=absent), a1gm.fit(dense))
    assert a1gm.MissingPattern(S, absent=absent).n_missing == 0


@pytest.mark.parametrize("absent", ["missing", "zero"])
def test_unsorted_and_wide_indices(absent):
    S = sp.csr_array([[1.0, 2.0, 3.0], [2.0, 0.0, 6.0], [3.0, 6.0, 9.0]])
    expected = a1gm.fit(S, absent=absent)
    S.indices, S.indptr = S.indices.astype(np.int64), S.indptr.astype(np.int64)
    assert_same_fit(a1gm.fit(S, absent=absent), expected)
    for array in (S.indices, S.data):
        array[:3] = array[2::-1].copy()
    S.has_sorted_indices = S.has_canonical_format = False
    assert_same_fit(a1gm.fit(S, absent=absent), expected)


def test_indices_outside_the_table_are_refused():
    cells = np.ones(2), np.array([0, 9], np.int32), np.array([0, 1, 2])
    X = sp.csr_array(cells, shape=(2, 3))
    X.has_canonical_format = True  # SciPy looks no further
    with pytest.raises(DataError, match="not a valid sparse table"):
        a1gm.fit(X, absent="missing")
