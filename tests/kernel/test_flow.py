"""The network of a core: compiled against NumPy, and both against the Laplacian."""

from __future__ import annotations

import numpy as np
import pytest
from support.kernels import core_cells, native, needs_native, statistics_of
from support.tables import make_table

from a1gm._kernel import reference

pytestmark = needs_native
EXACT = 1e-12
KINDS = ["at random", "banded", "mostly missing", "block-diagonal"]
NEVER = 10**9


def laplacian_of(core, w, h):
    F = core_cells(core) * np.outer(w, h)
    return np.diag(F.sum(axis=0)) - F.T @ (F / core.core_row_sums[:, None])


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("factors", [0, 5, NEVER])
@pytest.mark.parametrize("extra", [0.0, 0.1])
def test_potentials_agree(kind, factors, extra):
    keys, sums = statistics_of(make_table(kind, 40, 30, seed=3))
    found = []
    for kernel in (native, reference):
        reduced = kernel.reduce_table(keys, sums)
        order = np.argsort(reduced.core_col_sums)
        w, h = reduced.scale(reduced.start, 1e-9, 50, 50)[:2]
        c = reduced.core_col_sums
        flow = kernel.Flow(reduced, w, h)
        more = extra * c if extra else None
        x, n = flow.solve(c, more, EXACT, 0.0, factors, 4, 5000)
        assert n < 5000
        found.append(x[order])
        S = laplacian_of(reduced, w, h) + np.diag(extra * c)
        free = x != 0.0
        np.testing.assert_allclose((S @ x)[free], c[free], rtol=1e-9)
    np.testing.assert_allclose(*found, rtol=1e-7)


def test_old_factors_still_precede():
    core = native.reduce_table(*statistics_of(make_table("banded", 60, 60, seed=1)))
    flow = native.Flow(core, *core.scale(core.start, 1e-9, 5, 5)[:2])
    c = core.core_col_sums
    flow.solve(c, None, EXACT, 0.0, 0, 4, 5000)
    w, h = core.scale(core.start, 1e-9, 50, 50)[:2]
    flow.move(w, h)
    x, n = flow.solve(c, None, EXACT, 0.0, NEVER, 4, 5000)
    free = x != 0.0
    assert n < 60
    np.testing.assert_allclose((laplacian_of(core, w, h) @ x)[free], c[free], rtol=1e-9)
