"""Tables of several modes: what the compiled kernel does is what NumPy does."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from a1gm._base.bits import pack_bits
from a1gm._kernel import reference

native = pytest.importorskip("a1gm._kernel._native")
SAME = 1e-13


def cells(seed, sizes=(7, 5, 11), n=300):
    rng = np.random.default_rng(seed)
    starts = np.concatenate([[0], np.cumsum(sizes)])
    level = np.stack([rng.integers(a, b, n) for a, b in pairwise(starts)])
    return level.astype(np.int32), starts, rng


@pytest.mark.parametrize("seed", range(4))
def test_lists_of_cells(seed):
    level, starts, rng = cells(seed)
    v = rng.uniform(0.5, 2.0, level.shape[1]) if seed % 2 else None
    t, s = rng.uniform(0.5, 2.0, starts[-1]), rng.uniform(1.0, 2.0, level.shape[1])
    f, margins = native.fit_cells(level, None, starts, v, t, 2)
    for found, expected in zip(
        (f, margins), reference.fit_cells(level, None, starts, v, t, 1), strict=True
    ):
        np.testing.assert_allclose(found, expected, rtol=SAME)
    products = native.multiply_cells(level, None, starts, f, t, 2)
    expected = reference.multiply_cells(level, None, starts, f, t, 1)
    for found, own in zip(products, expected, strict=True):
        np.testing.assert_allclose(found, own, rtol=SAME)
    sums = sum(np.bincount(row, s, starts[-1]) for row in level)
    both = []
    for kernel in (native, reference):
        scaled = np.ones(starts[-1])
        kernel.scale_cells(level, None, starts, v, sums, scaled, 1e-12, 50, 60, 1)
        both.append(kernel.fit_cells(level, None, starts, v, scaled, 1)[0])
    np.testing.assert_allclose(*both, rtol=1e-10)


@pytest.mark.parametrize("n_cols", [1, 8, 63, 64, 65, 130])
def test_bits_of_fibres(n_cols):
    rng = np.random.default_rng(n_cols)
    bits = pack_bits(rng.random((4 * 5 * 3, n_cols)) < 0.7)
    x, d = rng.random(n_cols), rng.random(len(bits))
    np.testing.assert_allclose(
        native.reach_of_bits(bits, x, 2), reference.reach_of_bits(bits, x, 1), rtol=SAME
    )
    for n_levels, inner in ((1, 60), (4, 15), (5, 3), (3, 1)):
        found, expected = (
            kernel.collect_bits(bits, d, n_cols, n_levels, inner, 2)
            for kernel in (native, reference)
        )
        np.testing.assert_allclose(found, expected, rtol=SAME)


def test_fibres_are_lists_of_their_cells():
    rng = np.random.default_rng(3)
    n, m, k = 6, 5, 7
    starts = np.cumsum([0, n * m, n * k, m * k])
    i, j = np.indices((n, m)).reshape(2, -1)
    level = np.array([i * m + j, i * k, j * k]) + starts[:-1, None]
    level, step = level.astype(np.int32), np.array([0, 1, 1])
    v = (rng.random(n * m * k) < 0.8) * 1.0
    s = rng.uniform(1.0, 2.0, len(v)) * v
    along = np.multiply.outer(step, np.arange(k))[:, None, :]
    listed = (level[:, :, None] + along).reshape(3, -1).astype(np.int32)
    sums = sum(np.bincount(row, s, starts[-1]) for row in listed)
    for kernel in (native, reference):
        found = []
        for own in ((level, step), (listed, None)):
            t = np.ones(starts[-1])
            n_sweeps, margins = kernel.scale_cells(
                *own, starts, v, sums, t, 1e-12, 50, 60, 2
            )
            f, again = kernel.fit_cells(*own, starts, v, t, 2)
            np.testing.assert_allclose(margins, again, rtol=SAME)
            is_seen = f > 0.0 if own[1] is None else slice(None)
            level_of = own[0][:, is_seen]
            product, most = kernel.multiply_cells(
                level_of, own[1], starts, f[is_seen], t - 1.0, 2
            )
            found.append([n_sweeps, *f, *margins, *product, most])
        np.testing.assert_allclose(*found, rtol=1e-12)
        np.testing.assert_allclose(
            found[0][1 + len(v) :][: len(sums)], sums, rtol=1e-11
        )
