"""Long chains and weak cuts; the campaigns of `test_campaigns.py` try many."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import a1gm

N = np.nan


@pytest.mark.parametrize(
    "T",
    [  # light cells that are all that a level has, and sizes of three orders
        [[[4e-12, 4.0], [4e-12, N]], [[N, N], [4e-12, 4.0]]],
        [[[N, N, 6e-5], [N, 3e-5, 2e-10]], [[6e-5, N, 6e-10], [2e-10, 3e-10, 2e-15]]],
        [
            [[[N, 6e-12], [N, 6e-12]], [[6.0, N], [N, N]]],
            [[[N, 6e-12], [3e-6, 6e-12]], [[N, N], [6.0, N]]],
        ],
    ],
)
def test_cells_of_a_product_are_met(T):
    T = np.array(T)
    fit = a1gm.fit_tensor(T, on_undetermined="ignore")
    seen = ~np.isnan(T)
    np.testing.assert_allclose(fit.reconstruct()[seen], T[seen], rtol=1e-12)
    assert fit.converged
    assert fit.cell_error <= 1e-12


def test_long_chains_converge():
    n, rng = 800, np.random.default_rng(0)
    chain = [(k, k + (k < n - 1) * j, k) for k in range(n) for j in (0, 1)]
    chain += [(k, k, k + 1) for k in range(n - 1)] + [
        (k + 1, k, k) for k in range(n - 1)
    ]
    index = tuple(np.unique(chain, axis=0).T)
    factors = np.exp(rng.normal(size=(3, n)))
    x = np.prod([own[k] for own, k in zip(factors, index, strict=True)], axis=0)
    fit = a1gm.fit_tensor((index, x, (n, n, n)), on_undetermined="ignore")
    assert fit.converged
    np.testing.assert_allclose(fit.predict(index), x, rtol=1e-9)


@pytest.mark.parametrize("epsilon", [1e-2, 1e-6, 1e-12])
def test_a_weak_cut_of_a_large_list_is_said(epsilon):
    rng, n, m = np.random.default_rng(0), 800, 400
    i = np.arange(n)
    parts = [
        np.array([i, i // m * m + rng.integers(m, size=n), rng.integers(6, size=n)])
        for _ in range(12)
    ]
    cells = np.concatenate([*parts, [[0], [m], [0]]], axis=1)
    index = tuple(np.unique(cells, axis=1))
    a, b = rng.gamma(3.0, size=(2, n)) * np.where(
        i < m, 1.0, [[1 / epsilon], [epsilon]]
    )
    c = rng.gamma(3.0, size=6)
    x = a[index[0]] * b[index[1]] * c[index[2]]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fit = a1gm.fit_tensor((index, x, (n, n, 6)))
    off = float(np.abs(fit.predict(index) / x - 1.0).max())
    assert not fit.cell_error_is_bound
    assert off <= fit.cell_error
    assert not fit.converged or off <= 1e-8
