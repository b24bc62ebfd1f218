"""Cells of a core: sparse and dense elimination agree, and bounds are bounds."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
from support.kernels import native, needs_native

pytestmark = needs_native
WORK, SMALL, STEPS, TOL = 10**9, 0, 200, 1e-10


def band(n, rng, width=3):
    X = np.zeros((n, n))
    for i in range(n):
        X[i, i : i + width] = rng.gamma(2.0, size=len(X[i, i : i + width]))
    return X


def bridge(n, rng, size):
    """Two sparse parts, joined one way by cells of this size."""
    X = np.where(rng.random((n, n)) < 0.35, rng.gamma(2.0, size=(n, n)), 0.0)
    X[: n // 2, n // 2 :] *= size
    X[n // 2 :, : n // 2] = 0.0
    return X


def graded(n, rng):
    return np.where(rng.random((n, n)) < 0.25, np.exp(rng.normal(0, 6, (n, n))), 0.0)


BRIDGES = [partial(bridge, size=size) for size in (1e-2, 1e-6, 1e-10, 1e-14)]


def pairs_of(X):
    ptr = np.concatenate([[0], np.cumsum((X > 0).sum(axis=1))])
    i, j = np.nonzero(X)
    return ptr.astype(np.int64), j.astype(np.int32), X[i, j]


def logarithms(core, w, h):
    """Of the cells inside the blocks of the core."""
    together = np.equal.outer(core.core_row_block, core.core_col_block)
    return np.add.outer(np.log(w), np.log(h))[together]


@pytest.mark.parametrize("make", [band, graded, *BRIDGES])
@pytest.mark.parametrize("seed", range(8))
def test_sparse_and_dense_elimination_agree(make, seed):
    X = make(18, np.random.default_rng(seed))
    core = native.reduce_pairs(*pairs_of(X), None, X.shape[1])
    if core.core_shape[0] == 0 or core.lists_missing:
        return
    start = core.scale(core.start, TOL, 30, 30)[:2]
    dense = core.settle(*start, *pairs_of(X), TOL, STEPS, SMALL)
    sparse = core.settle(*start, *pairs_of(X), TOL, STEPS, WORK)
    assert sparse[3] <= 5e-9
    assert sparse[4] <= TOL
    off = logarithms(core, *dense[:2]) - logarithms(core, *sparse[:2])
    assert np.abs(off).max() <= dense[3] + sparse[3]


def test_too_much_work_is_not_begun():
    X = band(12, np.random.default_rng(0))
    core = native.reduce_pairs(*pairs_of(X), None, X.shape[1])
    w, h = core.scale(core.start, TOL, 5, 5)[:2]
    assert core.settle(w, h, *pairs_of(X), TOL, STEPS, 10) is None
    assert core.settle(w, h, *pairs_of(X), TOL, STEPS, WORK)[3] <= 5e-9


def test_no_product_proves_nothing():
    """A band so long that its potentials are out of reach is not called settled."""
    n = 3000
    cols = np.arange(3 * n) // 3 + np.arange(3 * n) % 3
    sums = np.random.default_rng(5).gamma(2.0, size=3 * n)
    ptr = np.arange(0, 3 * n + 1, 3)
    core = native.reduce_pairs(ptr, cols.astype(np.int32), sums, None, n + 2)
    w, h, _, gap, _ = core.scale(core.start, TOL, 20, 20)
    assert core.cheap_step(w, h, 0.0) == np.inf
    assert core.cheap_step(w, np.zeros_like(h), gap) == np.inf
