"""The optimum by every route, against minimisation."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from support.tensor_oracle import MARGINS, least_divergence, random_table

import a1gm
from a1gm.exceptions import ConvergenceWarning


def fit(T, margins=None, **options):
    return a1gm.fit_tensor(T, margins, on_undetermined="ignore", **options)


@pytest.mark.parametrize("seed", range(60))
def test_no_minimiser_is_better(seed):
    rng = np.random.default_rng(seed)
    margins = MARGINS[seed % len(MARGINS)]
    T = random_table(rng, zeros=[0.0, 0.2][seed % 2])
    E = rng.uniform(0.5, 2.0, T.shape) if seed % 3 == 0 else None
    found = fit(T, margins, exposure=E)
    assert found.certificate <= 1e-10
    assert found.divergence <= least_divergence(T, margins, E) * (1 + 1e-9) + 1e-9


@pytest.mark.parametrize("seed", range(12))
def test_modes_and_cells_may_come_in_any_order(seed):
    rng = np.random.default_rng(seed)
    margins = MARGINS[seed % len(MARGINS)]
    T = random_table(rng)
    expected = fit(T, margins).reconstruct()
    for order in itertools.permutations(range(3)):
        back = np.argsort(order)
        turned = [tuple(int(back[k]) for k in margin) for margin in margins]
        found = fit(T.transpose(order), turned).reconstruct()
        np.testing.assert_allclose(found, expected.transpose(order), rtol=1e-9)
    index = np.nonzero(~np.isnan(T))
    shuffled = rng.permutation(len(index[0]))
    cells = tuple(k[shuffled] for k in index)
    found = fit((cells, T[cells], T.shape), margins).reconstruct()
    np.testing.assert_allclose(found, expected, rtol=1e-9)


@pytest.mark.parametrize("seed", range(20))
def test_two_modes_are_what_fit_gives(seed):
    rng = np.random.default_rng(seed)
    T = random_table(rng, zeros=0.2, holes=0)[0]
    T[np.arange(len(T)), rng.integers(T.shape[1], size=len(T))] = 2.0
    T[0] = 3.0
    two, many = a1gm.fit(T, on_undetermined="ignore"), fit(T)
    np.testing.assert_allclose(many.reconstruct(), two.reconstruct(), rtol=1e-9)
    assert many.n_undetermined == two.n_undetermined
    assert many.divergence == pytest.approx(two.divergence, rel=1e-9, abs=1e-12)
    np.testing.assert_allclose(many.factors[0], two.row_factor, rtol=1e-9)
    np.testing.assert_allclose(many.factors[1], two.col_factor, rtol=1e-9)


def test_whole_site_years_missing_have_a_closed_form():
    rng = np.random.default_rng(0)
    T = random_table(rng, (8, 6, 12), holes=2)
    i, j, _ = np.indices(T.shape)
    T = np.where(i + j > 8, np.nan, np.nan_to_num(T, nan=3.0))
    found = fit(T)
    assert found.n_iter == 0
    assert found.solver == "closed form"


def test_a_single_mode_is_its_own_factor():
    x = np.array([3.0, 5.0, np.nan])
    np.testing.assert_array_equal(fit(x).reconstruct(), x)


@pytest.mark.parametrize("power", [-440, -300, 300, 440])
def test_units_do_not_matter(power):
    T = random_table(np.random.default_rng(1))
    expected = fit(T).reconstruct()
    found = fit(np.ldexp(T, power)).reconstruct()
    np.testing.assert_allclose(found, np.ldexp(expected, power), rtol=1e-12)


@pytest.mark.parametrize("weight", [1e-130, 3.0, 1e130])
def test_equal_weights_do_not_matter(weight):
    T = random_table(np.random.default_rng(2))
    expected = fit(T).reconstruct()
    found = fit(T, weights=np.full(T.shape, weight)).reconstruct()
    np.testing.assert_allclose(found, expected, rtol=1e-9)


def test_an_exposure_makes_rates():
    rng = np.random.default_rng(3)
    T = random_table(rng)
    E = rng.uniform(0.5, 2.0, T.shape)
    rates = fit(T / E, weights=E).reconstruct()
    np.testing.assert_allclose(fit(T, exposure=E).reconstruct(), rates * E, rtol=1e-9)


def test_a_level_of_zeros_has_factor_0_and_is_attained():
    T = random_table(np.random.default_rng(0), (3, 4, 5), holes=0)
    T = np.where(np.isnan(T), 1.0, T + 1.0)
    T[1] = 0.0
    fit = a1gm.fit_tensor(T)  # warns of nothing, as a1gm.fit
    assert fit.attained
    assert "given up" not in repr(fit)
    assert fit.factors[0][1] == 0.0
    others = a1gm.fit_tensor(np.delete(T, 1, axis=0)).reconstruct()
    np.testing.assert_allclose(np.delete(fit.reconstruct(), 1, axis=0), others)


@pytest.mark.parametrize("epsilon", [1.0, 1e-4, 1e-8, 1e-12])
def test_cells_across_a_bridge_are_right(epsilon):
    """Two corners joined by three tiny cells: the fill across is known exactly."""
    rng = np.random.default_rng(4)
    a, b = (
        np.multiply.outer(*rng.uniform(1, 2, (2, 3)))[..., None] * rng.uniform(1, 2, 3)
        for _ in range(2)
    )
    whole = np.full((6, 6, 6), np.nan)
    whole[:3, :3, :3], whole[3:, 3:, 3:] = a, b
    # A rank-1 table whose corners are a and b has two free scales between them.
    scale = epsilon
    factors = [np.concatenate([_factor(a, k), _factor(b, k)]) for k in range(3)]
    factors[0][3:] *= scale
    factors[1][3:] *= scale
    factors[2][3:] *= 1.0 / scale**2
    truth = factors[0][:, None, None] * factors[1][:, None] * factors[2]
    T = whole.copy()
    T[:3, :3, :3], T[3:, 3:, 3:] = truth[:3, :3, :3], truth[3:, 3:, 3:]
    for cell in [(3, 0, 0), (0, 4, 1), (3, 4, 0)]:
        T[cell] = truth[cell]
    found = fit(T)
    off = np.abs(found.reconstruct() / truth - 1.0).max()
    assert off <= (1e-9 if epsilon == 1.0 else 1e-12)
    assert off <= found.cell_error + 1e-15


def _factor(table, k):
    factor = table.sum(axis=tuple(j for j in range(3) if j != k))
    return factor / factor.sum() if k else factor


def test_too_few_iterations_are_announced():
    T = random_table(np.random.default_rng(5), (5, 5, 5), holes=0)
    with pytest.warns(ConvergenceWarning, match="after 1 iteration"):
        found = a1gm.fit_tensor(T, max_iter=1)
    assert not found.converged


def test_large_tables_are_bounded_without_listing_pairs_of_cells():
    """Every cell is a tiny share of its margins here, and none is weak."""
    rng = np.random.default_rng(6)
    T = rng.poisson(5.0, (60, 50, 40)) + 0.5
    T[rng.random(T.shape) < 0.2] = np.nan
    found = fit(T)
    assert found.converged
    assert found.cell_error_is_bound
    assert found.cell_error <= 1e-10


def test_cells_of_equal_weight_in_many_overlapping_levels_have_a_bound():
    """Seen: AttributeError where no cell is light and the rank is not known."""
    T = np.full((20, 20, 12), 3.0)
    T[::3, ::4, ::5] = np.nan
    found = fit(T, [(0, 1), (0, 2), (1, 2)])
    assert found.cell_error_is_bound
    assert found.cell_error < 1e-8
    np.testing.assert_allclose(found.reconstruct(), 3.0, rtol=1e-8)
