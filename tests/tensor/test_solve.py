"""Long chains and weak cuts; the campaigns of `test_campaigns.py` try many."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import a1gm
from a1gm.exceptions import ConvergenceWarning, NotRepresentableError

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
        [  # a step leaves float64
            [[1e-30, N], [3e-20, N], [N, N]],
            [[3e-30, N], [N, N], [9e-30, 1.8e-19]],
            [[3e-30, 6e-20], [9e-20, 1.8e-9], [N, N]],
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


def linked(n: int, m: int, extra: int, eps: float, repeats: int = 1):
    """Cells of two blocks that share their last mode, and of the cell that links them.

    The last one must be fitted by its own value.
    """
    rng = np.random.default_rng(0)
    cells = set()
    for first in (0, n):
        i, j = rng.integers(n, size=(2, repeats * n)) + first
        own = np.tile(np.arange(n), repeats) + first
        last = rng.integers(m, size=(3, repeats * n))
        cells |= {
            *zip(own, j, last[0], strict=True),
            *zip(i, own, last[1], strict=True),
        }
        i, j = rng.integers(n, size=(2, m + extra)) + first
        last = np.concatenate([np.arange(m), rng.integers(m, size=extra)])
        cells |= set(zip(i, j, last, strict=True))
    index = np.array(sorted(cells)).T
    shape = 2 * n, 2 * n, m
    factors = [rng.gamma(3.0, 1.0, k) + 0.2 for k in shape]
    mean = np.prod([f[k] for f, k in zip(factors, index, strict=True)], axis=0)
    x = np.append(rng.poisson(2.0 * mean) + 0.5, eps)
    link = (0, n, 0)
    return (tuple(np.column_stack([index, link])), x, shape), link


@pytest.mark.parametrize(
    "sizes", [(175, 350, 150, 1e-8), (175, 350, 150, 1e-12), (500, 1500, 1000, 1e-4, 2)]
)
def test_weak_links_of_many_classes_are_not_hidden(sizes):
    cells, link = linked(*sizes)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        fit = a1gm.fit_tensor(cells, on_undetermined="ignore")
    off = abs(fit.predict(link) / sizes[3] - 1.0)
    assert off <= fit.cell_error
    try:
        u = fit.uncertainty("poisson")
    except NotRepresentableError:
        return
    error = u.standard_error(link) / fit.predict(link)
    assert error == pytest.approx(sizes[3] ** -0.5, rel=1e-4)
    assert u.dof == len(cells[1]) - sum(cells[2]) + 2


def test_the_solver_is_newton_once_a_step_was_taken():
    cells, _ = linked(175, 350, 150, 1e-8)
    for max_iter, solver in ((1, "scaling"), (100, "newton")):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            fit = a1gm.fit_tensor(cells, max_iter=max_iter, on_undetermined="ignore")
        assert fit.solver == solver
        assert fit.n_iter <= max_iter


def test_factors_beyond_float64_are_said():
    k = np.arange(40)
    i, j = np.r_[k, k[:-1], 0, 0], np.r_[k, k[1:], 0, 1]
    last = np.r_[0 * k, 0 * k[1:] + 1, 2, 2]
    x = np.r_[0.0 * k + 1.0, 0.0 * k[1:] + 1e20, 1.0, 1e20]
    for index, shape in (((i, j, last), (40, 40, 3)), ((last, j, i), (3, 40, 40))):
        with pytest.warns(ConvergenceWarning, match="off by any factor"):
            fit = a1gm.fit_tensor((index, x, shape), on_undetermined="ignore")
        assert fit.cell_error == np.inf
