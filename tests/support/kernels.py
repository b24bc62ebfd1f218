"""Both kernels on the same table."""

from __future__ import annotations

import numpy as np
import pytest

from a1gm._kernel import reference

try:
    from a1gm._kernel import _native as native
except ImportError:  # the tests that need it are skipped
    native = None

needs_native = pytest.mark.skipif(native is None, reason="needs the compiled kernel")
SAME = 1e-12  # sums of a few thousand cells: rounding only
TABLE_CELLS = 1 << 18


def part(values, mask=None, validity=None, offset=0):
    return (values, mask, validity, offset)


def observe_both(parts, *, n_threads=1, cells=TABLE_CELLS):
    options = (n_threads, cells, False)
    return native.observe(parts, *options), reference.observe(parts, *options)


def assert_same_observation(got, expected):
    np.testing.assert_allclose(got[0], expected[0], rtol=SAME)
    assert got[1] == expected[1]
    if got[1]:
        for mine, theirs in zip(got[2][:2], expected[2][:2], strict=True):
            np.testing.assert_array_equal(mine, theirs)
        np.testing.assert_allclose(got[2][2], expected[2][2], rtol=SAME)
        assert got[2][3] == expected[2][3]
    else:
        for mine, theirs in zip(got[2][:3], expected[2][:3], strict=True):
            np.testing.assert_array_equal(mine, theirs)
        np.testing.assert_allclose(got[2][3], expected[2][3], rtol=SAME)
    assert got[3] == expected[3]
    for mine, theirs in zip(got[4:], expected[4:], strict=True):
        assert tuple(mine) == tuple(theirs)


def statistics_of(X):
    _, _, found, *_ = reference.observe([(X, None, None, 0)], 1, TABLE_CELLS, True)
    _, keys, _, sums = found
    return keys, sums


def solve_core(reduced):
    """Both kernels' cores, solved by the kernel's own scaling and Newton's method."""
    if reduced.core_shape[0] == 0:
        nothing = np.zeros(0)
        return reduced.replay(nothing, nothing)
    C = reduced.core_col_sums
    w, h, _, gap, _ = reduced.scale(C / C.max(), 1e-13, 20_000, 20_000)
    Flow = (reference if isinstance(reduced, reference.Reduced) else native).Flow
    for _ in range(50):
        w, fitted = reduced.sweep(h)
        gap = np.max(np.abs(fitted / C - 1.0))
        if gap < 1e-12:
            break
        x, _ = Flow(reduced, w, h).solve(C - fitted, None, 1e-14, 0.0, 0, 4, 1000)
        h = h * np.exp(np.clip(x, -1.0, 1.0))
    assert gap < 1e-12
    return reduced.replay(w, h)


def core_cells(reduced):
    """The cells of a core: 1 or their weights, 0 where they are missing."""
    ptr, index, lists_missing, weights = reduced.core_mask
    core = np.zeros(reduced.core_shape)
    rows = np.repeat(np.arange(len(core)), np.diff(ptr))
    core[rows, index] = 1.0 if weights is None else weights
    return 1.0 - core if lists_missing else core
