"""Cells across weak cuts; the campaigns of `test_campaigns.py` try many."""

from __future__ import annotations

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
