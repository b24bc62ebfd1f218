"""Which way a table takes; whichever it is, the answer is the same."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from hypothesis import given
from support import oracles
from support.tables import tables

import a1gm
from a1gm._kernel import is_compiled
from a1gm._observe.observe import observe
from a1gm._rows import read_input
from a1gm._solve import dispatch
from a1gm._solve.dispatch import solve_patterns
from a1gm.exceptions import A1gmWarning

ROUNDING = 1e-14  # of a product


@pytest.mark.skipif(not is_compiled, reason="only the compiled kernel has this way")
@given(tables(max_rows=9, max_cols=9, zeros=0.3))
def test_zeros_in_one_component_take_the_way_of_positive_cells(X):
    seen = observe(read_input(X))
    rows, cols = oracles.components(X)
    with_data = np.nansum(X, axis=1) > 0.0
    observed = ~np.isnan(X).all(axis=0)
    # Rows and columns of zeros need no graph.
    is_one = len({*rows[with_data], *cols[np.nansum(X, axis=0) > 0.0]}) == 1
    of_row = np.asarray(seen.pattern_of_row)
    has_all = set(of_row) == set(of_row[with_data]) and observed.all()
    solved = solve_patterns(seen, tol=1e-10, max_iter=1000)
    if solved.components is None and solved.factors.n_blocks == 1:
        assert is_one or not (X == 0.0).any()
    if has_all and is_one and solved.factors.gap <= 1e-12:
        assert solved.components is None


@given(X=tables(max_rows=9, max_cols=9, zeros=0.3))
def test_the_general_way_says_the_same(X):
    plain = dispatch.kernel.solve_plain
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", A1gmWarning)
        fit = a1gm.fit(X)
        try:
            dispatch.kernel.solve_plain = lambda *_: None
            general = a1gm.fit(X)
        finally:
            dispatch.kernel.solve_plain = plain
    for name in ("n_blocks", "attained", "n_undetermined", "row_block", "col_block"):
        np.testing.assert_array_equal(getattr(fit, name), getattr(general, name))
    i, j = np.indices(X.shape)
    np.testing.assert_array_equal(fit.fate(i, j), general.fate(i, j))
    assert fit.converged >= general.converged
    if general.converged:
        off = fit.cell_error + general.cell_error + ROUNDING
        np.testing.assert_allclose(fit.reconstruct(), general.reconstruct(), rtol=off)
