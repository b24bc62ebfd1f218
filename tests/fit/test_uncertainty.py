"""Errors of a fit: what they are where nothing is ordinary."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_array
from ways.containers import CONTAINERS

import a1gm
from a1gm._fit.sure.gamma import quantiles
from a1gm.exceptions import (
    DataError,
    EmptyLineWarning,
    NotRepresentableError,
    ParameterError,
    UndeterminedWarning,
)
from a1gm.report import report_html

nan = np.nan


def counts(n=12, m=6, seed=0, holes=0.25):
    rng = np.random.default_rng(seed)
    X = rng.poisson(np.outer(rng.gamma(4, 12, n), rng.gamma(4, 0.5, m))) + 1.0
    hidden = rng.random(X.shape) < holes
    hidden[0] = hidden[:, 0] = False
    X[hidden] = nan
    return X


# ------------------------------------------------------------------- the dispersion
def test_a_number_needs_no_data_and_scales_all_errors():
    fit = a1gm.fit(counts())
    one, four = fit.uncertainty("poisson"), fit.uncertainty(4)
    i, j = np.nonzero(np.isnan(counts()))
    np.testing.assert_allclose(four.standard_error(i, j), 2 * one.standard_error(i, j))
    assert one.pearson_p < four.pearson_p
    assert one.dispersion == 1.0


FIT = a1gm.fit(counts())
REFUSED = {
    "dispersion must be": (
        FIT.uncertainty,
        ["normal", -1.0, np.inf, nan, None, True, 10**400],
    ),
    "level must be between 0 and 1": (
        lambda level: FIT.uncertainty().interval(counts(), level),
        [0.0, 1.0, -1, 95, 10**400],
    ),
    "whole number of draws": (FIT.uncertainty().simulate, [0, -1, 2.5]),
    "by must be": (FIT.uncertainty().totals, ["rows"]),
    "cells must be": (lambda cells: FIT.uncertainty().totals(cells=cells), ["all"]),
    'by must be "col': (lambda by: FIT.uncertainty().index(by=by), ["rows"]),
    "base must be one column": (FIT.uncertainty().index, [[], [0, 1]]),
    "kind must be": (lambda kind: FIT.residuals(counts(), kind), ["raw"]),
}


@pytest.mark.parametrize("words", REFUSED)
def test_options_out_of_range_are_refused(words):
    ask, values = REFUSED[words]
    for value in values:
        with pytest.raises(ParameterError, match=words):
            ask(value)


def test_a_perfect_fit_has_no_errors():  # and says so: tests/ways
    X = np.outer([1.0, 2.0, 5.0], [3.0, 1.0, 4.0])
    X[2, 2] = nan
    u = a1gm.fit(X).uncertainty()
    assert u.standard_error(2, 2) == 0.0
    lower, upper = u.interval(X)
    assert lower[2, 2] == upper[2, 2] == pytest.approx(20.0)
    assert u.simulate(3, by="all", random_state=0) == pytest.approx(20.0)


# ---------------------------------------------------------------------- no value
def test_cells_without_a_value_have_no_error():
    X = np.array([[0.0, 5.0, 2.0], [5.0, nan, nan], [4.0, nan, nan], [6.0, nan, nan]])
    fit = a1gm.fit(X, on_undetermined="ignore")
    u = fit.uncertainty(1.0)
    assert fit.fate(1, 1) == "unbounded"
    errors = (u.standard_error(1, 1, prediction=ahead) for ahead in (False, True))
    bounds = (bound[1, 1] for bound in u.interval(X))
    assert np.isnan([*errors, *bounds, *u.totals("all").se]).all()
    assert np.isnan(u.totals("row").se).tolist() == [False, True, True, True]
    assert u.totals("all", cells="fitted").value[0] > 0.0


def test_a_hole_that_is_0_beside_unknown_ones_has_a_total():
    X = np.full((5, 4), nan)
    X[:3, :2], X[3:, 2:] = (
        [[5.0, 3.0], [0.0, nan], [2.0, 4.0]],
        [[3.0, 4.0], [6.0, nan]],
    )
    u = a1gm.fit(X, on_undetermined="ignore").uncertainty(1.0)
    np.testing.assert_allclose(u.totals("row").value, [nan, 0, nan, nan, 8])
    np.testing.assert_allclose(u.totals("column").value, [nan, 0, nan, 8])
    np.testing.assert_allclose(u.totals("all").value, [8.0])


def test_cells_of_weight_0_count_as_missing_in_totals_and_are_kept_by_impute():
    X, V = counts(), np.ones_like(counts())
    i, j = np.argwhere(~np.isnan(X))[0]
    V[i, j] = 0.0
    fit = a1gm.fit(X, weights=V)
    hidden = X.copy()
    hidden[i, j] = nan
    wanted = a1gm.fit(hidden).uncertainty().totals("row")
    np.testing.assert_allclose(fit.uncertainty().totals("row").value, wanted.value)
    assert fit.impute(X)[i, j] == X[i, j]


# --------------------------------------------------------------------- containers
@pytest.mark.parametrize("kind", ["C array", "pandas", "polars"])
def test_intervals_are_tables_like_the_one_given(kind):
    X = counts()
    make, take = CONTAINERS[kind]
    given = make(X)
    lower, upper = map(take, a1gm.fit(given).uncertainty().interval(given))
    for found, right in zip((lower, upper), FIT.uncertainty().interval(X), strict=True):
        np.testing.assert_allclose(found, right)
    hole, fill = np.isnan(X), a1gm.impute(X)
    np.testing.assert_array_equal(lower[~hole], X[~hole])
    assert ((lower < fill) & (fill < upper))[hole].all()
    assert (lower >= 0.0).all()


def test_rows_that_were_not_fitted_have_intervals_of_their_own():
    X = counts(30)
    u = a1gm.fit(X).uncertainty()
    wide = np.array([[10.0, nan, nan, nan, nan, nan]])
    narrow = np.array([[1000.0, nan, nan, nan, nan, nan]])
    share = [
        float(np.subtract(*u.interval(x)[::-1])[0, 1] / a1gm.fit(X).impute(x)[0, 1])
        for x in (wide, narrow)
    ]
    assert share[0] > 3 * share[1]


def test_totals_and_indices_are_frames_on_request():
    X = pd.DataFrame(counts(), columns=list("abcdef"), index=list("mnopqrstuvwx"))
    u = a1gm.fit(X).uncertainty()
    assert u.interval(X)[0].index.equals(X.index)
    frame = u.totals("column").to_frame()
    assert list(frame.index) == list("abcdef")
    assert set(frame) == {"value", "se", "se_estimation", "se_process"}
    index = u.index("b")
    assert index.value[1] == 1.0
    assert index.se[1] == 0.0
    assert "<table>" in index._repr_html_()
    assert "se_process" in repr(u.totals("row"))
    with pytest.raises(ParameterError, match="backend must be one of"):
        a1gm.fit(counts()).uncertainty().index().to_frame()
    polars = a1gm.fit(counts()).uncertainty().index().to_frame("polars")
    assert polars.columns == ["column", "value", "se"]


# ----------------------------------------------------------------------- residuals
@pytest.mark.parametrize("kind", ["pearson", "deviance", "response"])
def test_residuals_sum_to_the_statistics(kind):
    X = counts()
    fit = a1gm.fit(X)
    found, u = fit.residuals(X, kind), fit.uncertainty()
    np.testing.assert_array_equal(np.isnan(found), np.isnan(X))
    if kind == "response":
        np.testing.assert_allclose(np.nansum(found, axis=0), 0.0, atol=1e-6)
    else:
        statistic = u.pearson_chi2 if kind == "pearson" else u.deviance
        np.testing.assert_allclose(np.nansum(found**2), statistic)
    x = X[~np.isnan(X)]
    constant = 2 * np.sum(x * np.log(x / x.mean()))
    assert fit.deviance == 2 * fit.divergence
    assert fit.deviance_explained == pytest.approx(1 - fit.deviance / constant)


# ----------------------------------------------------------------------- simulation
@pytest.mark.parametrize(
    ("by", "table_cells"),
    [("row", 1 << 16), ("column", 1 << 16), ("all", 1 << 16), ("all", 1)],
)
@pytest.mark.parametrize("weighted", [False, True])
def test_draws_scatter_as_the_formulas_say(by, table_cells, weighted, monkeypatch):
    monkeypatch.setattr("a1gm._observe.observe.TABLE_CELLS", table_cells)
    X = 1e4 * counts(8, 5, seed=3)
    V = np.random.default_rng(1).uniform(0.5, 2.0, X.shape) if weighted else None
    u = a1gm.fit(X, weights=V).uncertainty("poisson")
    n = 1500 if weighted or by != "column" else 10_000
    draws, totals = u.simulate(n, by=by, random_state=7), u.totals(by)
    assert draws.shape == (n, len(totals))
    assert (draws >= 0.0).all()
    some = totals.value > 0.0
    off = np.abs(draws.mean(0) - totals.value)[some] / totals.se[some] * np.sqrt(n)
    assert off.max() < 4.0
    ratio = draws.std(0)[some] / totals.se[some]
    assert np.abs(ratio - 1.0).max() < 4.0 / np.sqrt(2 * n)
    np.testing.assert_array_equal(u.simulate(2, by, random_state=7), draws[:2])


def two_parts(bridge):
    A = np.array([[5.0, 3, 4], [2, 4, 6], [7, 1, 2]])
    B = np.array([[7.0, 2, 5], [3, 9, 4], [6, 2, 8]])
    none = np.full((3, 3), nan)
    X = np.block([[A, none], [none, B]])
    X[0, 3] = bridge
    return A, B, X


@pytest.mark.parametrize("level", [1e-9, 0.01, 0.3, 0.5, 0.8, 0.95, 0.999, 1 - 1e-15])
@pytest.mark.parametrize("phi", [0.0, 1e-3, 1.0, 50.0])
def test_intervals_hold_the_fill_and_widen_as_certainty_falls(level, phi):
    tails = (1 - level) / 2, (1 + level) / 2
    of_log = np.concatenate([[0.0], np.geomspace(1e-12, 1e12, 4000), [np.inf]])
    for mean in (1e-6, 0.02, 1.0, 30.0, 1e8):
        f = np.full(len(of_log), mean)
        with np.errstate(all="ignore"):
            lower, upper = (quantiles(f, of_log, phi, tail) for tail in tails)
        assert ((lower <= f) & (f <= upper)).all()
        assert (lower >= 0.0).all()
        assert (np.diff(lower) <= 1e-9 * mean).all()
        assert (upper[1:] >= upper[:-1] * (1 - 1e-9)).all()


@pytest.mark.parametrize("tail", [1e-3, 0.025, 0.25, 0.75, 0.975, 0.999])
def test_ordinary_bounds_are_quantiles_of_the_gamma_distribution(tail):
    gamma = pytest.importorskip("scipy.stats").gamma
    deviation = np.concatenate(
        [np.geomspace(1e-6, 1.0, 999), np.linspace(1e-3, 1.0, 999)]
    )
    mean, of_log = np.full(len(deviation), 700.0), deviation**2
    expected = gamma.ppf(tail, 1 / of_log, scale=700.0 * of_log)
    found = quantiles(mean, of_log, 0.0, tail)
    np.testing.assert_allclose(found, expected, rtol=1e-12)


def test_a_bridge_that_says_little_gives_a_bound_that_says_little():
    uppers = []
    for bridge in (1.0, 0.1, 0.01, 1e-3, 1e-6):
        X = two_parts(bridge)[2]
        fit = a1gm.fit(X)
        lower, upper = fit.uncertainty().interval(X)
        fill = fit.reconstruct()[3, 0]
        assert lower[3, 0] <= fill <= upper[3, 0]
        uppers.append(upper[3, 0] / fill)
    assert (np.array(uppers)[1:] >= np.array(uppers)[:-1]).all()
    assert uppers[-1] == np.inf


def correction(X):
    """CR1: what a few rows and cells add to the robust covariance."""
    n, m = X.shape
    n_cells = np.isfinite(X).sum()
    return n / (n - 1) * (n_cells - 1) / (n_cells - m)


def test_robust_bounds_of_a_few_rows_are_wider():
    X = counts()[:4]
    u = a1gm.fit(X).uncertainty(robust=True)
    holes = u._holes(X)
    as_if_many = replace(holes, errors_dof=np.inf)
    i, j = np.nonzero(np.isnan(X))
    assert (holes.quantiles(0.975, i, j) > as_if_many.quantiles(0.975, i, j)).all()
    assert (holes.quantiles(0.025, i, j) <= as_if_many.quantiles(0.025, i, j)).all()


def test_robust_errors_say_that_they_are():
    """Seen: both looked the same."""
    X = np.array([[3.0, 4, 8], [6, 9, 11], [2, 5, 7], [9, 8, 20]])
    plain, robust = (a1gm.fit(X).uncertainty(robust=how) for how in (False, True))
    assert "robust" not in repr(plain)
    assert repr(robust).replace(", errors: robust, from 4 rows", "") == repr(plain)
    assert "from 4 rows" in robust._repr_html_()


def test_one_row_has_no_robust_errors():
    fit = a1gm.fit(np.array([[3.0, 4.0, 5.0]]))
    with pytest.raises(DataError, match="only 1 row has data"):
        fit.uncertainty(1.0, robust=True)


@pytest.mark.parametrize("robust", [False, True])
@pytest.mark.parametrize("bridge", [1e-3, 1e-6, 1e-8, 1e-10, 1e-12])
def test_each_side_of_a_thin_bridge_has_the_errors_of_its_own_table(bridge, robust):
    A, B, X = two_parts(bridge)
    sure = a1gm.fit(X).uncertainty(1.0, robust=robust)
    assert (sure.covariance.diagonal() >= 0.0).all()
    for own, first in ((A, 0), (B, 3)):
        alone = a1gm.fit(own).uncertainty(1.0, robust=robust).index(0).se
        if robust:
            alone = alone * np.sqrt(correction(X) / correction(own))
        found = sure.index(first).se[first : first + 3]
        np.testing.assert_allclose(found, alone, rtol=max(1e-3, 2e-15 / bridge))


@pytest.mark.parametrize("scale", [1e-135, 1e-60, 1e60, 1e138])
def test_errors_do_not_depend_on_the_unit_of_exposures(scale):
    X = counts()
    E = np.random.default_rng(5).uniform(0.5, 2.0, X.shape)
    E[2, 3], E[4, 1] = nan, 0.0
    rows = np.where(np.arange(12) < 6, scale, 1.0)[:, None]
    u = a1gm.fit(X, exposure=E).uncertainty()
    for scales in (scale, rows):
        found = a1gm.fit(X, exposure=scales * E).uncertainty()
        for by in ("row", "column", "all"):
            for cells in ("missing", "fitted"):
                a, b = found.totals(by, cells), u.totals(by, cells)
                np.testing.assert_allclose(a.value, b.value, rtol=1e-8)
                np.testing.assert_allclose(a.se, b.se, rtol=1e-8)


def test_absent_zeros_scatter_as_zeros_do():
    X = np.random.default_rng(0).poisson(2.0, (30, 5)).astype(float)
    X[3, 2] = nan
    dense = a1gm.fit(X).uncertainty(robust=True)
    sparse = a1gm.fit(csr_array(X), absent="zero").uncertainty(robust=True)
    np.testing.assert_allclose(sparse.index().se, dense.index().se, rtol=1e-9)


@pytest.mark.parametrize("scale", [1.0, 1e-90, 1e90])
@pytest.mark.parametrize("bridge", [1e-14, 1e-16, 1e-18, 1e-40])
def test_a_bridge_that_is_lost_in_rounding_is_refused_in_words(bridge, scale):
    fit = a1gm.fit(scale * two_parts(bridge)[2])
    with pytest.raises(NotRepresentableError, match="Leave these cells out"):
        fit.uncertainty(1.0)


@pytest.mark.parametrize("scale", [1e-139, 1e-90, 1e90, 1e136])
@pytest.mark.parametrize("robust", [False, True])
def test_indices_do_not_depend_on_the_unit(scale, robust):
    X = counts()
    u = a1gm.fit(X).uncertainty(robust=robust)
    found = a1gm.fit(scale * X).uncertainty(robust=robust)
    np.testing.assert_allclose(found.index().se, u.index().se, rtol=1e-8)


def test_draws_that_leave_a_cell_without_a_value_are_repeated_and_counted():
    # The hole hangs on two small cells; either may be drawn as 0.
    X = np.array([[1.0, 500.0, 400.0], [2.0, nan, nan], [nan, 300.0, 200.0]])
    u = a1gm.fit(X).uncertainty(2000.0)
    with pytest.warns(a1gm.exceptions.ConvergenceWarning, match="repeated"):
        draws = u.simulate(50, by="column", random_state=0)
    assert np.isfinite(draws).all()
    assert (draws >= 0.0).all()


# ------------------------------------------------------------------------ odd tables
ODD = {
    "one row": np.array([[3.0, 1.0, nan]]),
    "one column": np.array([[3.0], [1.0], [nan]]),
    "one cell": np.array([[3.0]]),
    "no freedom": np.array([[1.0, 2.0], [3.0, nan]]),
    "zeros": np.zeros((4, 3)),
    "zeros and holes": np.array([[0.0, 0.0], [nan, 0.0], [0.0, nan]]),
    "unbounded": np.array([[0.0, 5.0, 2.0], [5.0, nan, nan], [4.0, nan, nan]]),
    "two blocks": np.array([[1.0, 2.0, nan], [3.0, 5.0, nan], [nan, nan, 4.0]]),
    "empty lines": np.array([[1.0, nan, 2.0], [nan, nan, nan], [2.0, nan, 5.0]]),
    "perfect": np.outer([1.0, 2.0, 5.0], [3.0, 1.0, 4.0]),
    "a row of zeros": np.array([[1.0, 2.0, 4.0], [0.0, 0.0, nan], [2.0, 3.0, 9.0]]),
    "huge": 1e139 * np.array([[1.0, 2.0, nan], [2.0, 5.0, 3.0], [1.0, 1.0, 1.5]]),
    "tiny": 1e-139 * np.array([[1.0, 2.0, nan], [2.0, 5.0, 3.0], [1.0, 1.0, 1.5]]),
}


@pytest.mark.filterwarnings("ignore::a1gm.exceptions.A1gmWarning")
@pytest.mark.parametrize("dispersion", ["pearson", "deviance", "poisson", 0.0, 2.5])
@pytest.mark.parametrize("name", ODD)
@pytest.mark.parametrize("way", ["memory", "pieces"])
def test_odd_tables_get_an_answer_or_a_word(way, name, dispersion):
    """No warning of NumPy (they are errors here), and never an error below zero."""
    X = ODD[name]
    fit = a1gm.fit(X)
    if way == "pieces":
        fit = a1gm.PatternTable(uncertainty=True).update(X[:1]).update(X).solve()
    if dispersion in ("pearson", "deviance") and fit.uncertainty(1.0).dof < 1:
        with pytest.raises(DataError, match=r"degrees of freedom.*Pass dispersion="):
            fit.uncertainty(dispersion)
        return
    u = fit.uncertainty(dispersion)
    assert u.dispersion >= 0.0
    i, j = np.indices(fit.shape)
    if name in ("huge", "tiny"):
        for ask in (lambda: u.totals("all"), lambda: u.standard_error(0, 0)):
            with pytest.raises(NotRepresentableError, match="power of ten"):
                ask()
        assert np.isfinite(u.index().se).all()
        return
    errors = [u.standard_error(i, j), u.standard_error(i, j, prediction=True)]
    for by in ("row", "column", "all"):
        for cells in ("missing", "fitted"):
            errors.append(u.totals(by, cells).se)
            draws = u.simulate(2, by, cells, random_state=0)
            assert not (draws < 0.0).any()
    errors.append(u.index(None).se)
    if name.startswith("zeros"):
        with pytest.raises(ParameterError, match="so there is no index"):
            u.index(None, by="row")
    else:
        errors.append(u.index(None, by="row").se)
    assert not any((found < 0.0).any() for found in errors)
    lower, upper = u.interval(X)
    assert not (lower > upper).any()
    assert repr(u)
    assert 0.0 <= u.pearson_p <= 1.0 or np.isnan(u.pearson_p)
    assert np.isfinite(fit.deviance)
    assert fit.deviance_explained <= 1.0 or np.isnan(fit.deviance_explained)


@pytest.mark.parametrize("exposed", [False, True])
def test_lines_without_cells_have_no_total(exposed):
    cells = np.array([[3.0, nan, 4.0, 5.0]])
    for X, by in ((cells, "column"), (cells.T, "row")):
        E = np.ones_like(X) if exposed else None
        with pytest.warns(EmptyLineWarning):
            u = a1gm.fit(X, exposure=E).uncertainty("poisson")
        found = u.totals(by, "fitted")
        assert np.isnan(found.value).tolist() == np.isnan(X).ravel().tolist()
        assert np.isnan(found.se).tolist() == np.isnan(X).ravel().tolist()


@pytest.mark.parametrize("axis", ["column", "row"])
@pytest.mark.parametrize("cell", [0.0, nan])
def test_a_base_without_a_factor_is_refused_by_name(axis, cell):
    X = pd.DataFrame([[cell, cell, cell], [cell, 3.0, 5.0], [cell, 2.0, 4.0]])
    X.columns, X.index = ["a", "b", "c"], ["r", "s", "t"]
    if np.isnan(cell):
        with pytest.warns(EmptyLineWarning):
            fit = a1gm.fit(X, on_undetermined="ignore")
    else:
        fit = a1gm.fit(X)
    u, name = fit.uncertainty("poisson"), {"column": "a", "row": "r"}[axis]
    for base in (0, name):
        with pytest.raises(ParameterError, match=f"{axis} '{name}'.*Choose another"):
            u.index(base, axis)
    found = u.index(None, axis).value
    np.testing.assert_array_equal(found, u.index(1, axis).value)
    assert np.isnan(found).tolist() == [True, False, False]


@pytest.mark.parametrize("cells", ["missing", "fitted"])
@pytest.mark.parametrize("by", ["row", "column", "all"])
@pytest.mark.parametrize(
    "X",
    [
        [[5.0, 6.0, nan], [7.0, 8.0, 9.0], [nan] * 3],
        [[5.0, 6.0, nan, 4.0], [7.0, 8.0, nan, 3.0], [nan] * 4, [0.0, 0.0, nan, 0.0]],
    ],
    ids=["a row", "a row and a column"],
)
def test_draws_have_no_value_where_totals_have_none(X, by, cells):
    with pytest.warns(EmptyLineWarning):
        fit = a1gm.fit(X, on_undetermined="ignore")
    u = fit.uncertainty("poisson")
    draws = u.simulate(2, by, cells, random_state=0)
    unknown = np.isnan(u.totals(by, cells).value)
    np.testing.assert_array_equal(np.isnan(draws), [unknown, unknown])
    factors, errors = (fit.row_factor, fit.col_factor), u.factor_errors()
    for factor, error in zip(factors, errors, strict=True):
        np.testing.assert_array_equal(np.isnan(error[:]), np.isnan(factor))
        assert (np.asarray(error)[factor == 0.0] == 0.0).all()


@pytest.mark.parametrize("word", ["weights", "exposure", None])
def test_bounds_of_some_cells_are_those_of_all(word, monkeypatch):
    rng = np.random.default_rng(0)
    X = rng.poisson(np.outer(rng.gamma(3, 5, 40), rng.gamma(3, 1, 6))).astype(float)
    X[rng.random(X.shape) < 0.2] = np.nan
    V = rng.uniform(0.5, 2.0, X.shape)
    sure = a1gm.fit(X, **({word: V} if word else {})).uncertainty()
    i, j = (places[::3] for places in np.nonzero(np.isnan(X)))
    monkeypatch.setattr("a1gm._fit.sure.intervals.CELLS_AT_ONCE", 18)  # three rows
    found = sure._bounds(X, i, j, 0.9)
    for one, other in zip(found, sure.interval(X, 0.9), strict=True):
        np.testing.assert_array_equal(one, other[i, j])


@pytest.mark.parametrize("by", ["row", "column", "all"])
@pytest.mark.parametrize("cells", ["missing", "fitted"])
def test_totals_say_how_many_cells_are_in_none(by, cells):
    X = np.array([[3.0, 5.0, nan], [4.0, nan, nan], [2.0, 3.0, nan], [nan, nan, 7.0]])
    with pytest.warns(UndeterminedWarning):
        u = a1gm.fit(X).uncertainty("poisson")
    words = "5 cells without a value are in no total"
    totals = u.totals(by, cells)
    assert repr(totals).splitlines()[-1] == words
    assert words in totals._repr_html_()
    assert list(totals.columns()) == ["value", "se", "se_estimation", "se_process"]
    whole = a1gm.fit(X[:3, :2]).uncertainty("poisson").totals(by, cells)
    assert "without" not in repr(whole) + whole._repr_html_()


# ----------------------------------------------------------------------- small means
def test_small_means_have_no_p_values(tmp_path):
    rng = np.random.default_rng(0)
    sparse = rng.poisson(0.2, (200, 20)).astype(float)
    table = a1gm.PatternTable(keep_rows=False, uncertainty=True).update(sparse)
    path = tmp_path / "x.csv"
    np.savetxt(path, sparse, delimiter=",", header=",".join("abcdefghijklmnopqrst"))
    quiet = {"on_undetermined": "ignore"}
    for fit in (a1gm.fit(sparse, **quiet), a1gm.fit_file(path, **quiet), table.solve()):
        u = fit.uncertainty()
        assert np.isnan([u.pearson_p, u.deviance_p]).all()
        assert "no p-value: 100% of the fitted means are below 1" in repr(u)
        # In units of a known dispersion, they are large enough.
        assert not np.isnan(fit.uncertainty(0.01).pearson_p)


def test_a_few_small_means_do_not_matter():
    X = np.outer([1.0, 8.0, 9.0, 10.0, 12.0], [1.0, 8.0, 9.0, 10.0, 12.0]).round()
    X[0, 0] = 0.0
    u = a1gm.fit(X).uncertainty()
    assert 0.0 < u._share_of_small < 0.2
    assert 0.0 <= u.pearson_p <= 1.0
    weights = np.full(X.shape, 0.01)
    u = a1gm.fit(X, weights=weights).uncertainty()
    assert np.isnan(u.pearson_p)  # what counts is the weight times the mean
    rates = a1gm.fit(X, exposure=weights).uncertainty()
    assert not np.isnan(rates.pearson_p)


# --------------------------------------------------------------------------- outliers
def with_outlier():
    rng = np.random.default_rng(3)
    X = rng.poisson(np.outer(rng.uniform(20, 60, 15), rng.uniform(1, 2, 8)))
    X = X.astype(float)
    X[4, 2], X[5, 3], X[1, 1] = 4 * X[4, 2], nan, nan
    return X


@pytest.mark.parametrize("how", ["array", "frame", "weights", "exposure", "file"])
def test_a_cell_that_decides_the_dispersion_is_named(how, tmp_path):
    X = with_outlier()
    options, at = {}, (4, 2)
    table = X
    if how == "frame":
        table = pd.DataFrame(X, [f"r{i}" for i in range(15)], list("abcdefgh"))
        at = "r4", "c"
    if how in ("weights", "exposure"):
        options[how] = np.random.default_rng(0).uniform(1.0, 2.0, X.shape)
    if how == "file":
        pd.DataFrame(X, columns=list("abcdefgh")).to_csv(
            tmp_path / "x.csv", index=False
        )
        fit, at = a1gm.fit_file(tmp_path / "x.csv"), (4, "c")
    else:
        fit = a1gm.fit(table, **options)
    u = fit.uncertainty()
    assert (u.outlier.row, u.outlier.column) == at
    squares = np.asarray(fit.residuals(table, "pearson")) ** 2
    assert u.outlier.share == pytest.approx(squares[4, 2] / np.nansum(squares))
    assert u.outlier.dispersion == u.dispersion
    left = np.where(np.indices(X.shape)[0] * 8 + np.arange(8) == 34, nan, X)
    without = a1gm.fit(left, **options).uncertainty()
    assert u.outlier.dispersion_without == pytest.approx(without.dispersion, rel=0.1)
    assert without.outlier is None
    words = f"row {at[0]}, column {at[1]} carries .*% of Pearson's chi-square; without"
    assert re.search(words, repr(u))
    assert "outlier" not in without.summary()


def test_assess_and_the_report_name_the_outlier(tmp_path):
    X = pd.DataFrame(with_outlier(), columns=list("abcdefgh"))
    X.insert(0, "shop", [f"s{i}" for i in range(15)])
    found = a1gm.assess(X, id="shop", random_state=0)
    assert re.search("s4.*c.* carries .*% of Pearson", found.outlier)
    assert found.outlier in repr(found)
    assert " carries " in found._repr_html_()
    fit = a1gm.fit(X, id="shop")
    assert "row s4, column c carries" in report_html(X, fit)
    X.loc[4, "c"] = nan
    assert not a1gm.assess(X, id="shop", random_state=0).outlier


def test_a_fit_without_cells_has_no_outlier(monkeypatch):
    X = with_outlier()
    table = a1gm.PatternTable(keep_rows=False, uncertainty=True).update(X)
    assert table.solve().uncertainty().outlier is None
    monkeypatch.setattr("a1gm._fit.sure.scatter.MOST_LOOKED_AT", 100)
    assert a1gm.fit(X).uncertainty().outlier is None


def test_an_exact_fit_has_no_outlier():
    X = np.outer([0.1, 0.2, 0.7], [0.3, 0.6, 0.9])
    u = a1gm.fit(X).uncertainty()
    assert u.dispersion == 0.0
    assert u.outlier is None


@pytest.mark.parametrize("side", ["row", "column"])
@pytest.mark.parametrize("scale", [1e16, 1e30, 1e40])
def test_rows_of_far_scales_do_not_hide_the_scatter_of_others(scale, side):
    """Seen: a dispersion of 0."""
    X = [[1, 2, nan, 4], [2, nan, 6, 8], [3, 6, 9, nan]]
    X = np.array([*X, [1, 1, 5, 2], [nan, 2, 2, 1], [2, 1, nan, 1]])
    # In the limit, the first row alone decides the columns 0, 1 and 3.
    near = X.copy()
    near[0] *= 1e9
    expected = a1gm.fit(near)
    X[0] *= scale
    found = a1gm.fit(X if side == "row" else X.T)
    for name in ("dispersion", "deviance"):
        right = getattr(expected.uncertainty(), name)
        assert getattr(found.uncertainty(), name) == pytest.approx(right, rel=1e-6)
    assert found.divergence == pytest.approx(expected.divergence, rel=1e-6)


def test_a_p_value_that_float64_cannot_hold():
    """Seen: "(p = 0)"."""
    u = a1gm.fit(np.random.default_rng(0).gamma(0.3, 1e5, (30, 30))).uncertainty()
    assert u.pearson_p == 0.0
    assert u.summary()["Pearson's chi-square"].endswith("(p < 1e-300)")
