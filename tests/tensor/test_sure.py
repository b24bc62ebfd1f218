"""Errors of cells and totals, against Poisson regression."""

from __future__ import annotations

import numpy as np
import pytest
from support.tensor_oracle import MARGINS, random_table, regression

import a1gm
from a1gm.exceptions import DataError, NotRepresentableError, ParameterError

pytest.importorskip("statsmodels")


def test_modes_are_named_or_numbered():
    T = random_table(np.random.default_rng(2), (3, 4, 5))
    u = a1gm.fit_tensor(T, names=["site", "year", "month"]).uncertainty()
    assert repr(u.index()) == repr(u.index("site"))
    assert repr(u.totals(np.array([0, 1]))) == repr(u.totals(["site", "year"]))
    with pytest.raises(ParameterError, match=r"by names 'yaer'.*'year'"):
        u.totals("yaer")


def test_cells_without_a_value_are_counted_line_by_line():
    T = random_table(np.random.default_rng(2), (3, 4, 5))
    T[0, 1] = T[2, 1] = T[2, 3] = np.nan
    fit = a1gm.fit_tensor(T, [(0, 1)], on_undetermined="ignore")
    missing = np.isnan(fit.impute(T, on_undetermined="ignore"))
    totals = fit.uncertainty().totals(1)
    np.testing.assert_array_equal(totals.unknown, missing.sum(axis=(0, 2)))
    assert list(totals.to_frame("pandas").columns)[-1] == "unknown"
    assert a1gm.fit_tensor(T).uncertainty().totals(1).unknown is None


def bridge(epsilon):
    """Two corners that hang together by two tiny cells."""
    T = np.full((6, 6, 6), np.nan)
    T[:3, :3, :3] = T[3:, 3:, 3:] = random_table(np.random.default_rng(0), (3, 3, 3), 0)
    T[4, 0, 1] = T[0, 3, 2] = epsilon
    return T


@pytest.mark.parametrize("epsilon", [1e-6, 1e-9, 1e-12])
def test_a_link_is_as_sure_as_its_own_cell(epsilon):
    u = a1gm.fit_tensor(bridge(epsilon)).uncertainty("poisson")
    assert u.standard_error((4, 0, 1)) == pytest.approx(epsilon**0.5, rel=1e-9)


@pytest.mark.filterwarnings("ignore::a1gm.exceptions.ConvergenceWarning")
def test_errors_across_cells_that_are_too_small_are_refused():
    fit = a1gm.fit_tensor(bridge(1e-16))
    assert not fit.converged
    with pytest.raises(NotRepresentableError, match="so small"):
        fit.uncertainty()


def test_small_means_are_weighted():
    X, W = np.array([[3.0, 5, 4], [6, 2, 5], [4, 4, 9]]), np.full((3, 3), 0.01)
    expected = a1gm.fit(X, weights=W).uncertainty().pearson_p
    found = a1gm.fit_tensor(X, weights=W).uncertainty().pearson_p
    np.testing.assert_equal(found, expected)


@pytest.mark.parametrize("seed", range(20))
def test_errors_are_those_of_poisson_regression(seed):
    rng = np.random.default_rng(seed)
    margins = MARGINS[seed % len(MARGINS)]
    T = random_table(rng, (4, 5, 3), holes=0)
    E = rng.uniform(0.5, 2.0, T.shape) if seed % 2 else None
    fit = a1gm.fit_tensor(T, margins, exposure=E, on_undetermined="ignore")
    u = fit.uncertainty()
    values, D, model = regression(T, margins, E)
    known = ~np.isnan(fit.reconstruct().ravel())
    cells = np.unravel_index(np.arange(T.size), T.shape)
    C = model.cov_params()
    expected = values * np.sqrt(np.einsum("ij,jk,ik->i", D, C, D))
    np.testing.assert_allclose(
        fit.reconstruct().ravel()[known], values[known], rtol=1e-8
    )
    np.testing.assert_allclose(
        u.standard_error(cells)[known], expected[known], rtol=1e-8
    )
    assert u.dispersion == pytest.approx(model.scale, rel=1e-8)
    missing = np.isnan(T).ravel() & known
    for mode in range(3):
        a = np.zeros((T.shape[mode], D.shape[1]))
        np.add.at(a, cells[mode][missing], (values[:, None] * D)[missing])
        of_sum = np.sqrt(np.einsum("ij,jk,ik->i", a, C, a))
        totals = u.totals(mode)
        some = ~np.isnan(totals.value)
        np.testing.assert_allclose(
            totals.se_estimation[some], of_sum[some], rtol=1e-7, atol=1e-12
        )
    whole = u.totals().value[0]
    assert whole == pytest.approx(values[missing].sum(), rel=1e-9)


def test_two_modes_have_the_errors_of_fit():
    T = random_table(np.random.default_rng(1), (6, 5, 4), holes=0)[:, :, 0]
    many, two = a1gm.fit_tensor(T).uncertainty(), a1gm.fit(T).uncertainty()
    i, j = np.indices(T.shape)
    np.testing.assert_allclose(
        many.standard_error((i, j)), two.standard_error(i, j), rtol=1e-9
    )
    for found, expected in zip(many.interval(T), two.interval(T), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-8)
    a, b = many.totals(0), two.totals("row")
    np.testing.assert_allclose(a.value, b.value, rtol=1e-9)
    np.testing.assert_allclose(a.se, b.se, rtol=1e-9)
    a, b = many.index(1), two.index()
    np.testing.assert_allclose(a.value, b.value, rtol=1e-9)
    np.testing.assert_allclose(a.se, b.se, rtol=1e-8)


def test_what_cannot_be_asked_for():
    T = random_table(np.random.default_rng(2), (4, 4, 4), holes=0)
    u = a1gm.fit_tensor(T, [("a", "b")], names=["a", "b", "c"]).uncertainty()
    with pytest.raises(ParameterError, match="acts together"):
        u.index("a")
    with pytest.raises(ParameterError, match="'x'"):
        u.totals("x")
    with pytest.raises(ParameterError, match="missing"):
        u.totals(cells="all")
    with pytest.raises(DataError, match="degrees of freedom"):
        a1gm.fit_tensor(np.ones((1, 1, 2))).uncertainty()


def test_a_table_of_zeros_has_no_errors():
    T = np.zeros((2, 3, 2))
    totals = a1gm.fit_tensor(T).uncertainty("poisson").totals(0, "fitted")
    np.testing.assert_array_equal(totals.se, 0.0)


def blocks():
    T = np.full((4, 4, 4), np.nan)
    rng = np.random.default_rng(0)
    for part in (slice(0, 2), slice(2, 4)):
        T[part, part, part] = rng.poisson(30.0, (2, 2, 2)) + 1.0
    return T


def test_an_index_across_blocks_is_not_known():
    T = blocks()
    fit = a1gm.fit_tensor(T, on_undetermined="ignore")
    for base, others in ((0, [2, 3]), (3, [0, 1])):
        index = fit.uncertainty("poisson").index(0, base)
        assert np.isnan(index.value).nonzero()[0].tolist() == others
        assert np.isnan(index.se).nonzero()[0].tolist() == others
    alone = a1gm.fit_tensor(T[:2, :2, :2]).uncertainty("poisson").index(0)
    index = fit.uncertainty("poisson").index(0)
    np.testing.assert_allclose(index.value[:2], alone.value, rtol=1e-9)
    np.testing.assert_allclose(index.se[:2], alone.se, rtol=1e-9)


def test_indices_of_two_modes_are_those_of_fit():
    X = blocks()[:, :, 0]
    X[2:, 2:] = [[3.0, 4.0], [5.0, 0.0]]
    X[1, 1] = 0.0
    X = np.vstack([X, np.zeros((1, 4))])
    one = {"on_undetermined": "ignore"}
    two, many = a1gm.fit(X, **one), a1gm.fit_tensor(X, **one)
    for axis, mode in (("row", 0), ("column", 1)):
        for base in range(4):
            a = two.uncertainty(1.0).index(base, by=axis)
            b = many.uncertainty(1.0).index(mode, base)
            np.testing.assert_allclose(b.value, a.value, rtol=1e-9)
            np.testing.assert_allclose(b.se, a.se, rtol=1e-8, atol=1e-12)
