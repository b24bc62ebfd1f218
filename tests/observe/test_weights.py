"""Fits with cell weights; those of large tables stay where they lie."""

from __future__ import annotations

import copy
import pickle
from unittest import mock

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import kl_div
from support import oracles
from support.kernels import native, needs_native, part
from support.tables import make_table, quiet, tables

import a1gm
from a1gm._base.bits import pack_bits
from a1gm._kernel import is_compiled
from a1gm._solve.cell_error import cell_error
from a1gm.exceptions import DataError, NegativeValuesError, ParameterError, WeightsError

nan = np.nan
pytestmark = quiet


def random_weights(shape: tuple[int, int], seed: int) -> np.ndarray:
    return np.random.default_rng(seed).uniform(0.2, 3.0, shape)


def same_fit(one: a1gm.RankOneFit, other: a1gm.RankOneFit) -> None:
    assert one.certificate <= 1e-10
    assert one.converged
    assert one.divergence == pytest.approx(other.divergence, rel=1e-7, abs=1e-10)
    for name in ("row_factor", "col_factor"):
        np.testing.assert_allclose(getattr(one, name), getattr(other, name), rtol=1e-8)
    for name in ("n_undetermined", "attained", "row_block", "col_block"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name))


@pytest.mark.parametrize("zeros", [0.0, 0.3])
@given(data=st.data(), seed=st.integers(0, 2**31))
def test_weighted_margins_hold(zeros, data, seed):
    X = data.draw(tables(max_rows=10, max_cols=8, zeros=zeros))
    V = random_weights(X.shape, seed)
    fit = a1gm.fit(X, weights=V)
    assert oracles.certificate(X, fit, V) <= 1e-10
    assert fit.certificate <= 1e-10


@given(tables(max_rows=7), st.integers(0, 2**31))
def test_the_scale_of_the_weights_does_not_matter(X, seed):
    V = random_weights(X.shape, seed)
    one, other = a1gm.fit(X, weights=V), a1gm.fit(X, weights=1024.0 * V)
    np.testing.assert_allclose(other.row_factor, one.row_factor, rtol=1e-8)
    np.testing.assert_allclose(other.col_factor, one.col_factor, rtol=1e-8)
    assert other.divergence == pytest.approx(1024.0 * one.divergence, rel=1e-6)


@given(tables(max_rows=7), st.integers(0, 2**31))
def test_weight_zero_is_missing(X, seed):
    drop = np.random.default_rng(seed).random(X.shape) < 0.3
    drop[np.unravel_index(np.nanargmax(X), X.shape)] = False
    weighted = a1gm.fit(X, weights=np.where(drop, 0.0, 1.0))
    same_fit(weighted, a1gm.fit(np.where(drop, nan, X)))


@given(tables(max_rows=6, max_cols=6), st.integers(0, 2**31))
def test_whole_weights_are_repeated_observations(X, seed):
    # A row of weights k is the same as k rows of that value, each of weight 1.
    times = np.random.default_rng(seed).integers(1, 4, len(X))
    weighted = a1gm.fit(X, weights=np.repeat(times[:, None], X.shape[1], axis=1))
    repeated = a1gm.fit(np.repeat(X, times, axis=0))
    np.testing.assert_allclose(
        weighted.col_factor, repeated.col_factor, rtol=1e-8, atol=1e-300
    )


def test_weights_that_are_a_product_are_in_closed_form():
    X = make_table("complete", 9, 6, seed=1)
    rng = np.random.default_rng(2)
    V = np.outer(rng.uniform(0.5, 2.0, 9), rng.uniform(0.5, 2.0, 6))
    fit = a1gm.fit(X, weights=V)
    assert fit.solver == "closed form"
    assert fit.n_iter == 0
    assert oracles.certificate(X, fit, V) <= 1e-12


def test_proportional_rows_and_columns_are_twins():
    rng = np.random.default_rng(3)
    base = rng.uniform(0.5, 2.0, (2, 4))
    rows = np.repeat(base, [500, 700], axis=0) * rng.uniform(0.1, 9.0, (1200, 1))
    V = rows * rng.uniform(0.1, 9.0, 4)
    X = rng.uniform(0.5, 2.0, V.shape)
    fit = a1gm.fit(X, weights=V)
    assert fit._solved.statistics.n_patterns == 2
    assert oracles.certificate(X, fit, V) <= 1e-10


@pytest.mark.oracle
@pytest.mark.parametrize("seed", range(5))
def test_no_other_solver_does_better(seed):
    X = make_table("at random", 7, 6, seed)
    X[0], X[:, 0] = 1.0, 1.0
    V = random_weights(X.shape, seed)
    fitted, found = a1gm.fit(X, weights=V).reconstruct(), oracles.lbfgs(X, V)
    ours, theirs = (np.nansum(V * kl_div(X, f)) for f in (fitted, found))
    assert ours <= theirs + 1e-9 * abs(theirs)
    np.testing.assert_allclose(found, fitted, rtol=1e-4)


def test_bad_cells_are_refused_under_weights():
    with pytest.raises(DataError):
        a1gm.fit([[1.0, nan]], weights=[[0.0, 1.0]])
    with pytest.raises(NegativeValuesError, match=r"X\[0, 0\]"):
        a1gm.fit([[-1.0, 2.0]], weights=[[1.0, 1.0]])


def test_weights_are_not_modified_and_any_array_will_do():
    X = make_table("at random", 8, 5, seed=4)
    V = np.asfortranarray(random_weights(X.shape, 5))
    before = V.copy()
    V.flags.writeable = False
    fit = a1gm.fit(X, weights=V)
    np.testing.assert_array_equal(V, before)
    other = a1gm.fit(X, weights=before.tolist())
    np.testing.assert_allclose(other.row_factor, fit.row_factor, rtol=1e-12)


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
def test_junk_under_weight_0_does_not_matter(form):
    X = np.array([[1.0, 2.0], [3.0, -np.inf], [5.0, -7.0]])
    V = np.array([[1.0, 1.0], [1.0, 0.0], [1.0, 0.0]])
    options = {} if form is np.asarray else {"absent": "missing"}
    fit = a1gm.fit(form(X), weights=V, **options)
    same_fit(fit, a1gm.fit(np.where(V > 0.0, X, nan)))


# ------------------------------------------------------------------ sparse tables
def stored(X: np.ndarray, values: np.ndarray, kind: type = sp.csr_array) -> sp.sparray:
    """A sparse table of some values, in the cells where X has a number."""
    rows, cols = np.nonzero(~np.isnan(X))
    return kind((values[rows, cols], (rows, cols)), shape=X.shape)


@pytest.mark.parametrize("kind", [None, sp.csr_array, sp.csc_array, sp.coo_matrix])
@given(tables(max_rows=9, max_cols=8, zeros=0.2), st.integers(0, 2**31))
def test_sparse_tables_take_weights(kind, X, seed):
    V = random_weights(X.shape, seed)
    V[np.random.default_rng(seed).random(X.shape) < 0.2] = 0.0
    V[np.unravel_index(np.nanargmax(X), X.shape)] = 1.0
    S = stored(X, X, kind or sp.csr_array)
    weights = V if kind is None else stored(X, V, kind)
    before = None if kind is None else weights.toarray().tobytes()
    fit = a1gm.fit(S, weights=weights, absent="missing")
    dense = a1gm.fit(X, weights=V)
    same_fit(fit, dense)
    assert oracles.certificate(X, fit, V) <= 1e-10
    np.testing.assert_allclose(fit.reconstruct(), dense.reconstruct(), rtol=1e-8)
    for table, v in ((S, None), (S, weights), (X, V)):
        found = fit.divergence_of(table, weights=v)
        assert found == pytest.approx(fit.divergence, rel=1e-9, abs=1e-12)
    assert kind is None or weights.toarray().tobytes() == before


def test_sparse_weights_may_store_other_cells_than_the_table():
    X = make_table("at random", 20, 10, seed=5)
    V = random_weights(X.shape, 6)
    fit = a1gm.fit(stored(X, X), weights=sp.csr_array(V), absent="missing")
    same_fit(fit, a1gm.fit(X, weights=V))
    V[np.isnan(X)] = 0.0  # a stored NaN needs no weight
    fit = a1gm.fit(sp.csr_array(X), weights=sp.csr_array(V), absent="missing")
    same_fit(fit, a1gm.fit(X, weights=V))


def test_bad_weights_of_sparse_tables_are_refused():
    X = np.array([[1.0, nan, 3.0], [4.0, 5.0, nan]])
    S, V = stored(X, X), np.ones(X.shape)
    few = sp.csr_array(([1.0, 1.0], ([0, 1], [0, 1])), shape=X.shape)
    negative = stored(X, np.where(X == 5.0, -1.0, 1.0))
    below = stored(X, np.where(X == 5.0, -5.0, X))
    for table, weights, error, words in (
        (S, few, WeightsError, r"X\[0, 2\] is stored.*absent \(2 in all\)"),
        (S, negative, WeightsError, r"weights\[1, 1\] = -1.0 is negative"),
        (S, sp.csr_array(V.T), WeightsError, r"shape \(3, 2\).*shape \(2, 3\)"),
        (S, 0.0 * negative, WeightsError, "All weights are zero"),
        (S, np.isnan(X).astype(float), DataError, None),
        (below, V, NegativeValuesError, r"X\[1, 1\]"),
    ):
        with pytest.raises(error, match=words):
            a1gm.fit(table, weights=weights, absent="missing")
    with pytest.raises(ParameterError, match=r"X\.toarray\(\)"):
        a1gm.fit(S, weights=V, absent="zero")
    with pytest.raises(WeightsError, match=r"weights\.toarray\(\)"):
        a1gm.fit(np.nan_to_num(X), weights=S)


# --------------------------------------- large tables: weights stay where they lie
SHAPE = (400, 200)  # more cells than a table of patterns always has
when_compiled = pytest.mark.skipif(not is_compiled, reason="a way of that kernel")


def table(seed, *, holes=0.1, zeros=0.0):
    rng = np.random.default_rng(seed)
    X = np.outer(rng.gamma(2.0, size=SHAPE[0]), rng.gamma(2.0, size=SHAPE[1]))
    X *= rng.gamma(3.0, size=SHAPE)
    X[rng.random(SHAPE) < zeros] = 0.0
    X[rng.random(SHAPE) < holes] = nan
    return X


def weights(seed, kind="uniform"):
    rng = np.random.default_rng(seed)
    if kind == "whole":
        return rng.integers(0, 5, SHAPE)
    if kind == "heavy":
        return rng.lognormal(0.0, 2.0, SHAPE)
    if kind == "by row":
        return np.repeat(rng.gamma(2.0, size=(SHAPE[0], 1)), SHAPE[1], 1)
    return rng.uniform(0.5, 1.5, SHAPE).astype("f4" if kind == "single" else "f8")


def assert_same_as_cells(fit, X, V):
    """The same fit as from a list of its cells."""
    module = "a1gm._observe.observe"
    with mock.patch.multiple(module, MOST_ABSENT=0, FEW_CELLS=0):
        listed = a1gm.fit(stored(X, X), weights=np.asarray(V, float), absent="missing")
    assert listed._solved.statistics.ptr is not None
    same_fit(fit, listed)
    assert fit.divergence == pytest.approx(listed.divergence, rel=1e-9)
    right = listed.impute(X, weights=V)
    np.testing.assert_allclose(fit.impute(X), right, rtol=1e-8)


@when_compiled
@pytest.mark.parametrize("kind", ["uniform", "whole", "heavy", "by row", "single"])
@pytest.mark.parametrize("zeros", [0.0, 0.2])
def test_weights_where_they_lie(kind, zeros):
    X, V = table(1, zeros=zeros), weights(2, kind)
    for view in (V, np.asfortranarray(V), np.repeat(V, 2, axis=1)[:, ::2]):
        fit = a1gm.fit(X, weights=view)
        assert fit._solved.statistics.is_mask
        assert fit._solved.statistics.weights is view
        assert_same_as_cells(fit, X, V)


@pytest.mark.parametrize("n_blocks", [None, 2])
def test_rows_and_columns_without_data_and_blocks(n_blocks):
    X, V = table(3, zeros=0.0 if n_blocks else 0.3), weights(4)
    if n_blocks:
        X[:200, 100:] = X[200:, :100] = nan
    else:
        X[5], X[:, 7] = nan, nan
        X[9] *= 0.0
        X[:, 11] *= 0.0
    fit = a1gm.fit(X, weights=V)
    assert fit.n_blocks == n_blocks or not n_blocks
    assert n_blocks or not is_compiled or fit._solved.statistics.is_mask
    assert_same_as_cells(fit, X, V)


def test_a_tree_keeps_its_closed_form():
    n = 300
    X = np.full((n, n), nan)
    X[np.arange(n), np.arange(n)] = 2.0
    X[np.arange(1, n), np.arange(n - 1)] = 3.0
    V = np.random.default_rng(8).uniform(0.5, 2.0, X.shape)
    fit = a1gm.fit(X, weights=V)
    assert fit.solver == "closed form"


@pytest.mark.parametrize("holes", [0.05, 0.9])
@pytest.mark.parametrize("name", ["weights", "exposure"])
def test_arrays_and_sparse_tables_have_one_solver(name, holes):
    rng = np.random.default_rng(3)
    X = rng.uniform(0.5, 2.0, (3000, 10))
    X[rng.random(X.shape) < holes] = np.nan
    X[:, 0] = 1.0
    V = rng.uniform(0.5, 2.0, X.shape)
    i, j = np.nonzero(~np.isnan(X))
    S, W = (sp.csr_array((table[i, j], (i, j)), X.shape) for table in (X, V))
    array = a1gm.fit(X, **{name: V})
    sparse = a1gm.fit(S, **{name: W}, absent="missing")
    assert sparse.solver == array.solver
    assert sparse.converged
    np.testing.assert_allclose(sparse.col_factor, array.col_factor, rtol=1e-9)
    np.testing.assert_allclose(sparse.row_factor, array.row_factor, rtol=1e-9)


@needs_native
@pytest.mark.parametrize("kind", ["uniform", "by row", "heavy"])
@pytest.mark.parametrize("tol", [1e-2, 1e-4, 1e-7])
@pytest.mark.parametrize("holes", [0.02, 0.3])
def test_the_bound_of_the_cells_is_never_too_small(kind, tol, holes):
    """Stopped early, factors are off by at most what the kernel says."""
    for seed in range(5):
        X, V = table(seed, holes=holes), weights(seed + 50, kind)
        seen = ~np.isnan(X)
        cells = np.where(seen, V * X, 0.0)
        sums = cells.sum(axis=1), cells.sum(axis=0)
        found = native.solve_bits(pack_bits(seen), [part(V)], *sums, tol, 400, 1)
        step, off = found[6], np.log(found[2]) - np.log(scaled(V * seen, *sums))
        assert cell_error(step) >= np.ptp(off)
        if kind != "heavy" and found[3] > 2:  # and it tells something
            assert step < 40.0 * found[5] + 1e-13


def scaled(P, R, C):
    """Column factors by sweeps without end."""
    h = C / C.sum()
    for _ in range(1000):
        h = C / (P.T @ (R / (P @ h)))
    return h


def test_such_fits_travel(tmp_path):
    X, V = table(9, zeros=0.1), weights(10, "whole")
    fit = a1gm.fit(X, weights=V)
    fit.save(tmp_path / "fit")
    new = table(11)[:5]
    for again in (
        a1gm.load(tmp_path / "fit"),
        pickle.loads(pickle.dumps(fit)),
        copy.deepcopy(fit),
    ):
        assert again.certificate == pytest.approx(fit.certificate, abs=1e-14)
        assert again.cell_error == fit.cell_error
        np.testing.assert_array_equal(again.row_factor, fit.row_factor)
        np.testing.assert_array_equal(
            again.impute(new, weights=V[:5]), fit.impute(new, weights=V[:5])
        )
        assert again.pattern.n_missing == np.sum(np.isnan(X) | (V == 0))
