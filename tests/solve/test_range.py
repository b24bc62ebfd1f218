"""Tables at the ends of float64: the right answer, or a named refusal."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_array
from support import oracles
from support.tables import make_mask, make_table, quiet, tables

import a1gm
from a1gm.exceptions import NotRepresentableError

nan = np.nan
pytestmark = quiet


@given(tables(max_rows=6, max_cols=6), st.sampled_from([-1000, -900, 900, 960]))
def test_powers_of_two_scale_the_fit(X, power):
    one, other = a1gm.fit(X), a1gm.fit(np.ldexp(X, power))
    rows = np.ldexp(other.row_factor, -power)
    np.testing.assert_allclose(rows, one.row_factor, rtol=1e-8)
    np.testing.assert_allclose(other.col_factor, one.col_factor, rtol=1e-8)
    fills = np.ldexp(other.impute(np.ldexp(X, power)), -power)
    np.testing.assert_allclose(fills, one.impute(X), rtol=1e-8)
    assert other.certificate <= 1e-10


RIGHT = {
    "rows far apart": [[1e-200, 1e-200, nan], [1e-200, nan, nan], [nan, nan, 1e60]],
    "columns far apart": [[1e-60, 1e200], [1e200, 1e200]],
    "a small row beside a large leaf": [[1e-300, 1e-300], [1e300, nan]],
    "cells far apart in one row": [[1e-100, 1e200], [1e-100, nan], [nan, 1e200]],
    "subnormal": [[5e-324, 1e-323, nan], [nan, 1.5e-323, 5e-324]],
}
REFUSED = {
    "a column of 1e-400": ([[1e-200, 1e200]], "column 0"),
    "a column by a leaf": ([[1e-200, nan], [1e200, 1e-200]], "column 0"),
    "a row above": ([[1.7e308, 1.7e308]], "row 0"),
    "a row by a leaf": ([[1e300, nan], [1.0, 1e300]], "row 0"),
}


@pytest.mark.parametrize("name", RIGHT)
def test_cells_far_apart(name):
    pytest.importorskip("flint")
    from attack.oracle import truth_of

    X = np.array(RIGHT[name])
    fit = a1gm.fit(X)
    cells = truth_of(X, None, None, signed=False, exact=True).cells.astype(float)
    for got in (fit.reconstruct(), np.where(np.isnan(X), fit.impute(X), nan)):
        known = ~np.isnan(got)
        np.testing.assert_allclose(got[known], cells[known], rtol=1e-12, atol=5e-324)
    assert fit.certificate <= 1e-10


@pytest.mark.parametrize("name", REFUSED)
@pytest.mark.parametrize("way", ["dense", "sparse", "pieces"])
def test_factors_out_of_range_are_refused_by_name(name, way):
    cells, which = REFUSED[name]
    X, table = np.array(cells), a1gm.PatternTable(len(cells[0]), keep_rows=True)
    for row in X:
        table.update(row[None])
    solve = {
        "dense": partial(a1gm.fit, X),
        "sparse": partial(a1gm.fit, csr_array(X), absent="missing"),
        "pieces": table.solve,
    }[way]
    with pytest.raises(NotRepresentableError, match=f"factor of {which} is outside"):
        solve()


@pytest.mark.parametrize("name", ["weights", "exposure"])
@pytest.mark.parametrize("form", [np.asarray, csr_array])
@pytest.mark.parametrize("size", [1e-320, 1e308])
def test_weights_that_lose_digits_are_refused(name, form, size):
    V = np.array([[1.0, 1.0], [1.0, size]])
    options = {} if form is np.asarray else {"absent": "missing"}
    with pytest.raises(NotRepresentableError, match="weights of row 1"):
        a1gm.fit(form(np.ones((2, 2))), **{name: V}, **options)


def test_weights_out_of_range():
    X = np.array([[1e-60, 1e-60, nan], [nan, 1e200, 1e200]])
    V = np.array([[1.0, 1.0, 1.0], [1.0, 2.0, 1.0]])
    fit = a1gm.fit(X, weights=V)
    np.testing.assert_allclose(fit.row_factor, [3e-60, 3e200], rtol=1e-12)
    X = np.array([[1e-200, 1e200], [1.0, nan]])
    with pytest.raises(NotRepresentableError, match="weighted cells of row 0"):
        a1gm.fit(X, weights=np.array([[1e-200, 1e200], [1.0, 1.0]]))


def test_an_infinite_divergence_is_refused():
    X = np.full((40, 40), 1e290)
    X[np.diag_indices(40)] = 1.5e308
    fit = a1gm.fit(X)
    with pytest.raises(NotRepresentableError, match="divergence is above"):
        _ = fit.divergence


@pytest.mark.parametrize("kind", ["complete", "staircase", "few patterns", "at random"])
def test_extreme_rows_in_a_larger_table(kind):
    rng = np.random.default_rng(0)
    w, h = 10.0 ** rng.uniform(-100, 100, 300), 10.0 ** rng.uniform(-50, 50, 12)
    exact = np.outer(w, h)
    fit = a1gm.fit(np.where(make_mask(kind, 300, 12, 0), exact, nan))
    np.testing.assert_allclose(fit.reconstruct(), exact, rtol=1e-8)


@pytest.mark.parametrize("kind", ["complete", "staircase", "at random"])
def test_column_sums_that_overflow(kind):
    X = make_table(kind, 40, 2, seed=5)
    small = a1gm.fit(X)
    k = 1e308 / np.nanmax(small.row_factor)
    fit = a1gm.fit(k * X)
    assert np.nansum(X / 1e9) * 1e9 * (k / 1e308) > 2.0  # the total is no float64
    np.testing.assert_allclose(fit.col_factor, small.col_factor, rtol=1e-9)
    np.testing.assert_allclose(fit.row_factor / k, small.row_factor, rtol=1e-9)


@pytest.mark.parametrize("kind", ["complete", "corner", "staircase", "grid"])
@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("size", [200, 300])
def test_rows_of_very_different_scales(kind, seed, size):
    X = make_table(kind, 8, 6, seed)
    scale = 10.0 ** np.random.default_rng(seed).uniform(-size, size, 8)
    X *= scale[:, None]
    fit = a1gm.fit(X)
    assert oracles.certificate(X, fit) <= 1e-10
    assert fit.converged
