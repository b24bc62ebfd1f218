"""Tables at the ends of float64: the right answer, or one refusal by name."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
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
HOLED = np.array([[1.0, 2.0, nan], [2.0, 5.0, 3.0], [1.0, nan, 1.5]])


@given(tables(max_rows=6, max_cols=6), st.sampled_from([-400, -300, 300, 400]))
def test_powers_of_two_scale_the_fit(X, power):
    one, other = a1gm.fit(X), a1gm.fit(np.ldexp(X, power))
    rows = np.ldexp(other.row_factor, -power)
    np.testing.assert_allclose(rows, one.row_factor, rtol=1e-8)
    np.testing.assert_allclose(other.col_factor, one.col_factor, rtol=1e-8)
    fills = np.ldexp(other.impute(np.ldexp(X, power)), -power)
    np.testing.assert_allclose(fills, one.impute(X), rtol=1e-8)
    assert other.certificate <= 1e-10


def fit_in_pieces(X):
    table = a1gm.PatternTable()
    for row in X:
        table.update(row[None])
    return table.solve()


def fit_sparse(X):
    i, j = np.nonzero(~np.isnan(X))
    return a1gm.fit(csr_array((X[i, j], (i, j)), X.shape), absent="missing")


WAYS = {
    "array": a1gm.fit,
    "weights": lambda X: a1gm.fit(X, weights=np.ones_like(X)),
    "exposure": lambda X: a1gm.fit(X, exposure=np.ones_like(X)),
    "frame": lambda X: a1gm.fit(pl.DataFrame(X, nan_to_null=True)),
    "pieces": fit_in_pieces,
    "sparse": fit_sparse,
}
each_way = pytest.mark.parametrize("way", WAYS)


@each_way
@pytest.mark.parametrize("size", [1e-310, 1e-165, 1e-141, 1e140, 1e155, 1e300])
def test_tables_beyond_the_limits_are_refused(way, size):
    with pytest.raises(NotRepresentableError, match="power of ten"):
        WAYS[way](size * HOLED)


@each_way
@pytest.mark.parametrize("size", [1e-140, 9e138])
def test_tables_within_the_limits_are_fitted(way, size):
    expected = a1gm.fit(HOLED)
    fit = WAYS[way](size * HOLED)
    np.testing.assert_allclose(fit.col_factor, expected.col_factor, rtol=1e-9)
    divergence = fit.divergence_of(size * HOLED) if way == "pieces" else fit.divergence
    assert divergence / size == pytest.approx(expected.divergence, rel=1e-9)


@each_way
def test_a_small_column_is_refused_by_name(way):
    with pytest.raises(NotRepresentableError, match="power of ten") as error:
        WAYS[way](HOLED * [1.0, 1e-150, 1.0])
    assert error.value.where == ("Column 'column_1'" if way == "frame" else "Column 1")
    assert error.value.column == 1


def test_rows_and_columns_are_refused_by_their_labels():
    frame = pd.DataFrame(HOLED, ["x", "y", "z"], ["a", "b", "c"])
    for table, where in (
        (frame * [1, 1, 1e-150], "Column 'c'"),
        (frame * 1e-150, "Row 'x'"),
    ):
        with pytest.raises(NotRepresentableError) as error:
            a1gm.fit(table)
        assert error.value.where == where
    with pytest.raises(NotRepresentableError) as error:
        a1gm.fit(frame * 1e150)
    assert error.value.where == "X['x', 'a']"


RIGHT = {
    "rows far apart": [[1e-100, 1e-100, nan], [1e-100, nan, nan], [nan, nan, 1e60]],
    "columns far apart": [[1e-60, 1e100], [1e100, 1e100]],
    "a small row beside a large leaf": [[1e-139, 1e-139], [1e139, nan]],
    "cells far apart in one row": [[1e-100, 1e130], [1e-100, nan], [nan, 1e130]],
    "a cell below the limit": [[1e-200, 1.0], [1.0, nan]],
    "a subnormal cell": [[1e-310, 1.0, 2.0], [1.0, 1.0, nan]],
}
REFUSED = {
    "a column by a leaf": ([[1e-139, nan], [1e139, 1e-139], [nan, 1e-139]], "row 0"),
    "a row by a leaf": ([[1e139, nan], [1e-190, 1e139], [1.0, nan]], "column 0"),
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
@pytest.mark.parametrize("way", ["array", "sparse", "pieces"])
def test_factors_out_of_range_are_refused_by_name(name, way):
    cells, which = REFUSED[name]
    with pytest.raises(NotRepresentableError, match=f"factor of {which} is outside"):
        WAYS[way](np.array(cells))


@pytest.mark.parametrize("name", ["weights", "exposure"])
@pytest.mark.parametrize("form", [np.asarray, csr_array])
@pytest.mark.parametrize("size", [1e-320, 1e-150, 1e150])
def test_weights_out_of_range_are_refused(name, form, size):
    V = np.array([[1.0, 1.0], [1.0, size]])
    options = {} if form is np.asarray else {"absent": "missing"}
    with pytest.raises(NotRepresentableError, match="weights of row 1"):
        a1gm.fit(form(np.ones((2, 2))), **{name: V}, **options)


@pytest.mark.parametrize("form", [np.asarray, csr_array])
def test_weighted_cells_never_become_zeros(form):
    X = np.array([[1e-200, 1.0], [1.0, 1.0]])
    V = np.array([[1e-130, 1.0], [1.0, 1.0]])
    options = {} if form is np.asarray else {"absent": "missing"}
    with pytest.raises(NotRepresentableError, match="weighted cells of row 0"):
        a1gm.fit(form(X), weights=V, **options)


@pytest.mark.parametrize("kind", ["complete", "staircase", "few patterns", "at random"])
def test_extreme_rows_in_a_larger_table(kind):
    rng = np.random.default_rng(0)
    w, h = 10.0 ** rng.uniform(-80, 80, 300), 10.0 ** rng.uniform(-25, 25, 12)
    exact = np.outer(w, h)
    fit = a1gm.fit(np.where(make_mask(kind, 300, 12, 0), exact, nan))
    np.testing.assert_allclose(fit.reconstruct(), exact, rtol=1e-8)


@pytest.mark.parametrize("kind", ["complete", "corner", "staircase", "grid"])
@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("size", [100, 130])
def test_rows_of_very_different_scales(kind, seed, size):
    X = make_table(kind, 8, 6, seed)
    scale = 10.0 ** np.random.default_rng(seed).uniform(-size, size, 8)
    X *= scale[:, None]
    fit = a1gm.fit(X)
    assert oracles.certificate(X, fit) <= 1e-10
    assert fit.converged
