"""Errors against Poisson regression and published tables."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from support.tables import make_mask

import a1gm

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    sm = pytest.importorskip("statsmodels.api")
    chainladder = pytest.importorskip("chainladder")

pytestmark = pytest.mark.oracle
RTOL = 1e-8


class Regression:
    """Poisson regression on one dummy per row and column, block by block."""

    def __init__(self, X, V=None, *, E=None, blocks=None, scale="X2", groups=False):
        n, m = X.shape
        i, j = np.nonzero(~np.isnan(X))
        self.E = np.ones(X.shape) if E is None else E
        for given in (E, V):
            if given is not None:
                kept = given[i, j] > 0
                i, j = i[kept], j[kept]
        # One column of each block has no dummy.
        first = {0} if blocks is None else {min(b) for b in blocks}
        free = [k for k in range(m) if k not in first]
        self.n, self.free = n, {k: n + a for a, k in enumerate(free)}
        self.size = n + len(free)
        D = np.array([self.row(a, b) for a, b in zip(i, j, strict=True)])
        weights = {} if V is None else {"var_weights": V[i, j]}
        weights |= {} if E is None else {"exposure": E[i, j]}
        model = sm.GLM(X[i, j], D, family=sm.families.Poisson(), **weights)
        extra = {"scale": scale}
        if groups:
            extra = {
                "cov_type": "cluster",
                "cov_kwds": {"groups": i, "use_correction": True},
            }
        self.fit = model.fit(tol=1e-13, maxiter=300, tol_criterion="params", **extra)
        self.cov = self.fit.cov_params()
        if groups:  # dummies of rows are nested in the groups, and are not counted
            self.cov = self.cov * (len(i) - self.size) / (len(i) - m)

    def row(self, i, j):
        d = np.zeros(self.size)
        d[i] = 1.0
        if j in self.free:
            d[self.free[j]] = 1.0
        return d

    def value(self, i, j):
        rate = np.exp(self.row(i, j) @ self.fit.params)
        return float(rate * self.E[i, j])

    def se_of_sum(self, cells):
        gradient = np.zeros(self.size)
        for i, j in cells:
            gradient += self.value(i, j) * self.row(i, j)
        return float(np.sqrt(gradient @ self.cov @ gradient))

    def se_of_ratio(self, one, other):
        d = self.row(0, one) - self.row(0, other)
        return float(np.exp(d @ self.fit.params) * np.sqrt(d @ self.cov @ d))


def counts(n, m, seed, dispersion=1.0):
    rng = np.random.default_rng(seed)
    mean = np.outer(rng.gamma(4.0, 12.0, n), rng.gamma(4.0, 0.5, m))
    return dispersion * rng.poisson(mean / dispersion).astype(float)


def table(kind, seed, n=9, m=6, dispersion=1.0):
    X = counts(n, m, seed, dispersion) + 1.0
    observed = make_mask(kind, n, m, seed)
    observed[0] = observed[:, 0] = True
    return np.where(observed, X, np.nan)


def check(u, X, oracle, *, missing=None):
    """Compare errors of cells, totals and indices of a table."""
    missing, (n, m) = np.isnan(X) if missing is None else missing, X.shape
    phi = u.dispersion
    for i, j in np.argwhere(missing).tolist():
        se = oracle.se_of_sum([(i, j)])
        np.testing.assert_allclose(u.standard_error(i, j), se, rtol=RTOL)
        both = np.sqrt(se**2 + phi * oracle.value(i, j))
        found = u.standard_error(i, j, prediction=True)
        np.testing.assert_allclose(found, both, rtol=RTOL)
    for cells, mask in (("missing", missing), ("fitted", np.ones((n, m), bool))):
        by = {
            "row": [[(i, j) for j in range(m) if mask[i, j]] for i in range(n)],
            "column": [[(i, j) for i in range(n) if mask[i, j]] for j in range(m)],
            "all": [[(i, j) for i, j in np.argwhere(mask).tolist()]],
        }
        for name, sets in by.items():
            found = u.totals(by=name, cells=cells)
            value = [sum(oracle.value(*cell) for cell in some) for some in sets]
            se = [oracle.se_of_sum(some) for some in sets]
            np.testing.assert_allclose(found.value, value, rtol=RTOL)
            np.testing.assert_allclose(found.se_estimation, se, rtol=RTOL, atol=1e-12)
            process = np.sqrt(phi * np.array(value))
            np.testing.assert_allclose(found.se_process, process, rtol=RTOL)
            total = np.hypot(found.se_estimation, process)
            np.testing.assert_allclose(found.se, total, rtol=RTOL)
    check_index(u.index(1), oracle, 1)


def check_index(index, oracle, base, rtol=RTOL):
    se = [oracle.se_of_ratio(k, base) for k in range(len(index))]
    np.testing.assert_allclose(index.se, se, rtol=rtol, atol=1e-14)


def check_level(u, regression):
    np.testing.assert_allclose(u.dispersion, regression.scale, rtol=RTOL)
    np.testing.assert_allclose(u.deviance, regression.deviance, rtol=RTOL)
    assert u.dof == regression.df_resid


@pytest.mark.parametrize("dispersion", [0.25, 1.0, 7.5])
@pytest.mark.parametrize(
    "kind",
    ["complete", "grid", "staircase", "at random", "few patterns", "banded", "bridge"],
)
def test_errors_are_those_of_poisson_regression(kind, dispersion):
    X = table(kind, seed=3, dispersion=dispersion)
    u, oracle = a1gm.fit(X).uncertainty(), Regression(X)
    check_level(u, oracle.fit)
    np.testing.assert_allclose(u.pearson_chi2, oracle.fit.pearson_chi2, rtol=RTOL)
    check(u, X, oracle)


@pytest.mark.parametrize("kinds", [None, 3])
@pytest.mark.parametrize("kind", ["grid", "at random", "few patterns"])
def test_with_exposure(kind, kinds):
    X = table(kind, seed=11)
    rng = np.random.default_rng(4)
    E = rng.uniform(0.3, 3.0, X.shape)
    if kinds:  # rows of proportional exposures are twins
        E = E[rng.integers(kinds, size=len(E))] * rng.uniform(0.5, 4.0, (len(E), 1))
    E[1, 2], E[4, 4], X[4, 4] = 0.0, 0.0, np.nan
    fit = a1gm.fit(X, exposure=E)
    u, oracle = fit.uncertainty(), Regression(X, E=E)
    check_level(u, oracle.fit)
    fitted = [[oracle.value(i, j) for j in range(X.shape[1])] for i in range(len(X))]
    np.testing.assert_allclose(fit.reconstruct(), fitted, rtol=RTOL)
    check(u, X, oracle, missing=np.isnan(X) | (E == 0.0))
    robust = fit.uncertainty(robust=True).index(base=2)
    check_index(robust, Regression(X, E=E, groups=True), 2, rtol=1e-7)


@pytest.mark.parametrize("kind", ["at random", "few patterns", "product"])
def test_with_weights(kind):
    if kind == "product":
        X = table("at random", seed=6)
        V = np.outer(np.arange(1.0, 10.0), [1.0, 2.0, 4.0, 0.5, 3.0, 1.5])
    else:
        X = table(kind, seed=5)
        V = np.random.default_rng(2).uniform(0.3, 3.0, X.shape)
        V[1, 2], V[4, 4] = 0.0, 0.0
    u = a1gm.fit(X, weights=V).uncertainty()
    oracle = Regression(X, V)
    np.testing.assert_allclose(u.dispersion, oracle.fit.scale, rtol=RTOL)
    check(u, X, oracle, missing=np.isnan(X) | (V == 0))


def test_two_blocks():
    X = np.full((9, 7), np.nan)
    X[:5, :3], X[5:, 3:] = counts(5, 3, 1) + 1.0, counts(4, 4, 2) + 1.0
    X[0, 1] = X[6, 5] = np.nan
    fit = a1gm.fit(X, on_undetermined="ignore")
    u = fit.uncertainty()
    oracle = Regression(X, blocks=[range(3), range(3, 7)])
    assert u.dof == oracle.fit.df_resid
    for i, j in ((0, 1), (6, 5), (2, 2), (8, 3)):
        expected = oracle.se_of_sum([(i, j)])
        np.testing.assert_allclose(u.standard_error(i, j), expected, rtol=RTOL)
    assert np.isnan(u.standard_error(0, 4))
    known = oracle.value(0, 1) + oracle.value(6, 5)
    np.testing.assert_allclose(u.totals(by="all").value[0], known, rtol=RTOL)
    np.testing.assert_array_equal(np.isnan(u.index().se), [False] * 3 + [True] * 4)


@pytest.mark.parametrize("kind", ["at random", "staircase"])
def test_robust_indices_are_cluster_robust(kind):
    X = table(kind, seed=4, n=30, m=5, dispersion=3.0)
    u = a1gm.fit(X).uncertainty(robust=True)
    oracle = Regression(X, groups=True)
    check_index(u.index(), oracle, 0, rtol=1e-7)
    assert u.index()._errors_dof == oracle.fit.df_resid_inference == 29


# --------------------------------------------------------------------- several tables
@pytest.mark.parametrize(("alpha", "beta"), [(1.0, 1.0), (2.0, 0.5), (3.0, 0.25)])
def test_joint_fits_are_one_regression(alpha, beta):
    X, Y = table("at random", 1, 7, 5), table("grid", 2, 4, 5)
    Z = table("at random", 3, 7, 3)
    u = a1gm.fit_nmmf(X, Y, Z, alpha=alpha, beta=beta).joint.uncertainty()
    block = np.full((11, 8), np.nan)
    block[:7, :5], block[7:, :5], block[:7, 5:] = X, Y, Z
    V = np.ones(block.shape)
    V[7:, :5], V[:7, 5:] = alpha, beta
    oracle = Regression(block, V)
    check_level(u, oracle.fit)
    # Cells of the joint table are those of Y and Z times their weights.
    for i, j in np.ndindex(7, 8):
        expected = V[i, j] * oracle.se_of_sum([(i, j)])
        np.testing.assert_allclose(u.standard_error(i, j), expected, rtol=RTOL)
    for i, j in np.ndindex(4, 5):
        expected = alpha * oracle.se_of_sum([(7 + i, j)])
        np.testing.assert_allclose(u.standard_error(7 + i, j), expected, rtol=RTOL)
    se = [oracle.se_of_ratio(k, 1) for k in range(5)]
    np.testing.assert_allclose(u.index(1).se[:5], se, rtol=RTOL, atol=1e-14)


# --------------------------------------------------------------------------- published
def triangle(name):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        sample = chainladder.load_sample(name).set_backend("numpy")
    cumulative = np.array(sample.values[0, 0], float)
    n, m = cumulative.shape
    cumulative[np.arange(m) > n - 1 - np.arange(n)[:, None]] = np.nan
    return np.diff(cumulative, axis=1, prepend=0.0)


def test_taylor_and_ashe():
    # England & Verrall (2002), errors of the over-dispersed Poisson by year; in total.
    fit = a1gm.fit(triangle("genins"))
    u = fit.uncertainty()
    assert round(u.totals("row").se[1]) == 110099
    assert round(u.totals("row").se[-1]) == 1980091
    assert round(u.totals("all").se[0]) == 2945646
    by_deviance = fit.uncertainty("deviance").totals("all")
    assert by_deviance.se[0] == pytest.approx(2952921.04, rel=1e-8)
    assert by_deviance.se_process[0] == pytest.approx(993729.4, rel=1e-7)


def test_draws_of_taylor_and_ashe():
    # The formulas are first order, the draws are not.
    u = a1gm.fit(triangle("genins")).uncertainty()
    draws, total = u.simulate(10_000, "all", random_state=1), u.totals("all")
    assert draws.mean() == pytest.approx(total.value[0], rel=0.02)
    assert draws.std() == pytest.approx(total.se[0], rel=0.04)
    assert (draws >= 0.0).all()


def test_the_raa_triangle():
    # Dispersion and total error of the over-dispersed Poisson for these data.
    u = a1gm.fit(triangle("raa"), negatives="allow").uncertainty()
    assert u.dispersion == pytest.approx(983.64, abs=5e-3)
    assert round(u.totals("all").se[0]) == 17613


def test_squirrel_monkeys():
    # Ploog's monkeys in Fienberg (1980): quasi-independence off the diagonal.
    x = np.nan
    X = np.array(
        [
            [x, 1, 5, 8, 9, 0],
            [29, x, 14, 46, 4, 0],
            [0, 0, x, 0, 0, 0],
            [2, 3, 1, x, 38, 2],
            [0, 0, 0, 0, x, 1],
            [9, 25, 4, 6, 13, x],
        ]
    )
    u = a1gm.fit(X, on_undetermined="ignore").uncertainty("poisson")
    assert u.dof == 15
    assert u.deviance == pytest.approx(135.169, abs=5e-4)
