"""Large arrays on their bits: the same fit as the list of their cells."""

from __future__ import annotations

import numpy as np
import pytest

import a1gm
from a1gm.exceptions import DataError, InfiniteValuesError, NegativeValuesError


def large(rng, shape, holes="random", zeros=0.0):
    """A table that is large enough not to be listed."""
    mean = 4.0
    for k, n in enumerate(shape):
        factor = rng.gamma(3.0, 1.0 / 3.0, n)
        mean = mean * factor.reshape([-1 if j == k else 1 for j in range(len(shape))])
    T = rng.poisson(mean) + 0.5
    T[rng.random(shape) < zeros] = 0.0
    if holes == "random":
        T[rng.random(shape) < 0.2] = np.nan
    elif holes == "spans":  # few patterns of fibres, none of them whole
        T[: shape[0] // 2, ..., shape[-1] // 2 :] = np.nan
        T[shape[0] // 3 :, 1] = np.nan
    else:  # whole fibres along a mode
        along = np.moveaxis(T, holes, -1)
        along[rng.random(along.shape[:-1]) < 0.2] = np.nan
    return T


def listed(T, interactions=None):
    index = np.nonzero(~np.isnan(T))
    cells = index, T[index], T.shape
    return a1gm.fit_tensor(cells, interactions, on_undetermined="ignore")


@pytest.mark.parametrize("zeros", [0.0, 0.2])
@pytest.mark.parametrize("holes", ["random", "spans", 0, 1, 2])
@pytest.mark.parametrize("shape", [(41, 43, 47), (90, 3, 70, 5), (300, 260), (99, 700)])
def test_an_array_has_the_fit_of_its_cells(shape, holes, zeros):
    rng = np.random.default_rng(len(shape))
    T = large(rng, shape, holes if holes != 2 else len(shape) - 1, zeros)
    found, expected = a1gm.fit_tensor(T, on_undetermined="ignore"), listed(T)
    assert found.certificate <= 1e-10
    assert found.converged
    assert found.cell_error_is_bound
    bound = 2.0 * (found.cell_error + expected.cell_error)
    np.testing.assert_allclose(
        found.reconstruct(), expected.reconstruct(), rtol=max(bound, 1e-12)
    )
    assert found.divergence == pytest.approx(expected.divergence, rel=1e-12)
    assert found.n_undetermined == expected.n_undetermined
    assert found.n_free == expected.n_free
    assert repr(found.summary()["missing"]) == repr(expected.summary()["missing"])


def is_array(fit):
    """Whether a fit was made without a list of its cells."""
    return fit._found.rank is not None


def test_an_array_is_not_listed_before_that_is_needed():
    T = large(np.random.default_rng(0), (40, 50, 60))
    found = a1gm.fit_tensor(T)
    assert is_array(found)
    assert "index" not in vars(found._cells)
    errors = found.uncertainty().standard_error((0, np.arange(50), 0))
    expected = listed(T).uncertainty().standard_error((0, np.arange(50), 0))
    np.testing.assert_allclose(errors, expected, rtol=1e-8)


PAIRS = [(0, 1), (0, 2), (1, 2)]
TRIPLES = [(0, 1, 2), (0, 1, 3), (2, 3)]


@pytest.mark.parametrize("zeros", [0.0, 0.3])
@pytest.mark.parametrize("holes", ["random", "spans", 0, 1])
@pytest.mark.parametrize(
    ("shape", "margins"), [((21, 23, 19), PAIRS), ((12, 9, 8, 7), TRIPLES)]
)
def test_an_array_has_the_fit_of_its_cells_with_overlapping_margins(
    shape, margins, holes, zeros, tmp_path
):
    T = large(np.random.default_rng(len(shape)), shape, holes, zeros)
    found = a1gm.fit_tensor(T, margins, on_undetermined="ignore")
    expected = listed(T, margins)
    if holes != "random":  # leaves levels without cells
        assert not is_array(found)
    elif zeros == 0.0:
        assert is_array(found)
    assert found.certificate <= 1e-10
    bound = 2.0 * (found.cell_error + expected.cell_error)
    np.testing.assert_allclose(
        found.reconstruct(), expected.reconstruct(), rtol=max(bound, 1e-12)
    )
    assert found.n_undetermined == expected.n_undetermined
    assert found.n_free == expected.n_free
    assert found.divergence == pytest.approx(expected.divergence, rel=1e-9)
    found.save(tmp_path / "fit.a1gm")
    again = a1gm.load(tmp_path / "fit.a1gm")
    np.testing.assert_allclose(
        again.reconstruct(), found.reconstruct(), rtol=1e-13, atol=0.0
    )


def test_parts_without_ties_are_left_to_the_list():
    T = large(np.random.default_rng(1), (40, 50, 60))
    T[:20, 25:] = np.nan
    T[20:, :25] = np.nan
    found = a1gm.fit_tensor(T, on_undetermined="ignore")
    assert not is_array(found)
    assert found.fate((0, 30, 0)) == "undetermined"


def test_cells_across_a_weak_cut_are_right():
    """Two halves that hang together by one tiny cell."""
    T = large(np.random.default_rng(2), (40, 50, 60))
    T[:20, 25:] = np.nan
    T[20:, :25] = np.nan
    T[0, 30, 0] = 1e-9
    with np.errstate(all="raise"):
        found = a1gm.fit_tensor(T, on_undetermined="ignore")
    assert found.reconstruct()[0, 30, 0] == pytest.approx(1e-9, rel=1e-9)


@pytest.mark.parametrize(
    ("value", "error"), [(-1.0, NegativeValuesError), (np.inf, InfiniteValuesError)]
)
def test_bad_cells_of_a_large_array_are_named(value, error):
    T = large(np.random.default_rng(3), (40, 50, 60))
    T[7, 8, 9] = value
    with pytest.raises(error, match=r"T\[7, 8, 9\]"):
        a1gm.fit_tensor(T)


def test_an_array_that_was_changed_after_the_fit_is_noticed():
    T = large(np.random.default_rng(4), (40, 50, 60))
    fit = a1gm.fit_tensor(T)
    expected = fit.reconstruct()
    T[np.isnan(T)] = 0.0
    np.testing.assert_array_equal(fit.reconstruct(), expected)  # needs no cells
    with pytest.raises(DataError, match="changed after it was fitted"):
        fit.uncertainty()


def test_cells_that_were_moved_within_fibres_after_the_fit_are_noticed():
    T = large(np.random.default_rng(4), (40, 50, 60)).round()
    fit = a1gm.fit_tensor(T)
    for fibre in T.reshape(-1, 60):
        fibre[~np.isnan(fibre)] = np.sort(fibre[~np.isnan(fibre)])
    with pytest.raises(DataError, match="changed after it was fitted"):
        fit.divergence  # noqa: B018


@pytest.mark.parametrize("margins", [[(0, 1)], [(1, 2)], [(0, 2)]])
def test_an_array_has_the_fit_of_its_cells_with_modes_that_act_together(margins):
    T = large(np.random.default_rng(3), (20, 21, 19))
    found, expected = a1gm.fit_tensor(T, margins), listed(T, margins)
    assert found.margins == expected.margins
    np.testing.assert_allclose(found.reconstruct(), expected.reconstruct(), rtol=1e-11)


def test_an_array_that_was_filled_in_place_still_shows_its_fit():
    T = large(np.random.default_rng(4), (20, 21, 19))
    fit, missing = a1gm.fit_tensor(T), np.isnan(T)
    T[missing] = fit.impute(T)[missing]
    assert fit.n_missing == missing.sum()
    assert f"{missing.sum():,} of" in repr(fit)
