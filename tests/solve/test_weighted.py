"""Large tables with weights, which are scaled where they lie."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest
import scipy.sparse as sp
from support.kernels import native, needs_native, part

import a1gm
from a1gm._base.bits import pack_bits
from a1gm._kernel import is_compiled
from a1gm._solve.cell_error import cell_error

SHAPE = (400, 200)  # more cells than a table of patterns always has
nan = np.nan
when_compiled = pytest.mark.skipif(not is_compiled, reason="a way of that kernel")
pytestmark = [
    pytest.mark.filterwarnings("ignore::a1gm.exceptions.UndeterminedWarning"),
    pytest.mark.filterwarnings("ignore::a1gm.exceptions.EmptyLineWarning"),
]


def table(seed, *, holes=0.1, zeros=0.0):
    rng = np.random.default_rng(seed)
    X = np.outer(rng.gamma(2.0, size=SHAPE[0]), rng.gamma(2.0, size=SHAPE[1]))
    X *= rng.gamma(3.0, size=SHAPE)
    X[rng.random(SHAPE) < zeros] = 0.0
    X[rng.random(SHAPE) < holes] = nan
    return X


def weights(seed, kind="uniform"):
    rng = np.random.default_rng(seed)
    made = {
        "uniform": lambda: rng.uniform(0.5, 1.5, SHAPE),
        "whole": lambda: rng.integers(0, 5, SHAPE),
        "heavy": lambda: rng.lognormal(0.0, 2.0, SHAPE),
        "by row": lambda: np.repeat(rng.gamma(2.0, size=(SHAPE[0], 1)), SHAPE[1], 1),
        "single": lambda: rng.uniform(0.5, 1.5, SHAPE).astype("f4"),
    }
    return made[kind]()


def by_cells(X, V):
    """The same fit from a list of its cells."""
    i, j = np.nonzero(~np.isnan(X))
    S = sp.csr_array((X[i, j], (i, j)), shape=X.shape)
    fit = a1gm.fit(S, weights=np.asarray(V, float), absent="missing")
    assert fit._solved.statistics.ptr is not None
    return fit


def assert_same_fit(fit, expected, X, V):
    np.testing.assert_allclose(fit.row_factor, expected.row_factor, rtol=1e-8)
    np.testing.assert_allclose(fit.col_factor, expected.col_factor, rtol=1e-8)
    np.testing.assert_array_equal(fit.row_block, expected.row_block)
    np.testing.assert_array_equal(fit.col_block, expected.col_block)
    assert fit.divergence == pytest.approx(expected.divergence, rel=1e-9)
    assert fit.n_undetermined == expected.n_undetermined
    assert fit.attained == expected.attained
    assert fit.certificate <= 1e-10
    assert fit.converged
    right = expected.impute(X, weights=V)
    np.testing.assert_allclose(fit.impute(X), right, rtol=1e-8)


@when_compiled
@pytest.mark.parametrize("kind", ["uniform", "whole", "heavy", "by row", "single"])
@pytest.mark.parametrize("zeros", [0.0, 0.2])
def test_weights_where_they_lie(kind, zeros):
    X, V = table(1, zeros=zeros), weights(2, kind)
    for given in (V, np.asfortranarray(V), np.repeat(V, 2, axis=1)[:, ::2]):
        fit = a1gm.fit(X, weights=given)
        assert fit._solved.statistics.is_mask
        assert fit._solved.statistics.weights is given
        assert_same_fit(fit, by_cells(X, V), X, V)


@when_compiled
def test_rows_and_columns_without_data():
    X, V = table(3, zeros=0.3), weights(4)
    X[5], X[:, 7] = nan, nan
    X[9, ~np.isnan(X[9])] = 0.0
    X[~np.isnan(X[:, 11]), 11] = 0.0
    fit = a1gm.fit(X, weights=V)
    assert fit._solved.statistics.is_mask
    assert_same_fit(fit, by_cells(X, V), X, V)


def test_parts_that_do_not_hang_together():
    X, V = table(5), weights(6)
    X[:200, 100:] = nan
    X[200:, :100] = nan
    fit = a1gm.fit(X, weights=V)
    assert fit.n_blocks == 2
    assert_same_fit(fit, by_cells(X, V), X, V)


def test_a_tree_keeps_its_closed_form():
    n = 300
    X = np.full((n, n), nan)
    X[np.arange(n), np.arange(n)] = 2.0
    X[np.arange(1, n), np.arange(n - 1)] = 3.0
    V = np.random.default_rng(8).uniform(0.5, 2.0, X.shape)
    fit = a1gm.fit(X, weights=V)
    assert fit.solver == "closed form"


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
