"""Cells of a fit: filled, predicted, compared, listed, named."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from support.tensor_oracle import random_table

import a1gm
from a1gm.exceptions import (
    LabelError,
    ParameterError,
    UndeterminedWarning,
    WeightsError,
)

KEYS = ["site", "year", "month"]


def listed(T):
    """The observed cells of an array as a long frame."""
    index = np.nonzero(~np.isnan(T))
    frame = pd.DataFrame(dict(zip(KEYS, index, strict=True)))
    return frame.assign(n=T[index])


@pytest.fixture
def table():
    return random_table(np.random.default_rng(3), (4, 5, 3), holes=0)


def test_all_cells_are_listed_with_the_observed_ones_as_they_were(table):
    fit = a1gm.fit_long(listed(table), KEYS, "n", on_undetermined="ignore")
    every = fit.fill_long(only_missing=False, interval=0.9)
    filled = fit.fill_long(interval=0.9)
    assert len(every) == table.size
    at = tuple(every[KEYS].to_numpy().T)
    seen = ~np.isnan(table[at])
    for column in ("n", "lower", "upper"):
        np.testing.assert_array_equal(every[column][seen], table[at][seen])
        np.testing.assert_array_equal(every[column][~seen], filled[column])


@pytest.mark.parametrize("name", ["weights", "exposure"])
def test_residuals_are_those_of_two_modes(tmp_path, table, name):
    T = table[:, :, 0]
    V = np.random.default_rng(1).uniform(0.5, 2.0, T.shape)
    expected = a1gm.fit(T, **{name: V}).residuals(T, **{name: V})
    seen = np.nonzero(~np.isnan(T))
    ways = [
        a1gm.fit_tensor(T, **{name: V}),
        a1gm.fit_tensor((seen, T[seen], T.shape), **{name: V[seen]}),
    ]
    ways[0].save(tmp_path / "m")
    for fit in [*ways, a1gm.load(tmp_path / "m")]:
        np.testing.assert_allclose(fit.residuals(T), expected, rtol=1e-7, atol=1e-9)
    masked = ways[0].residuals(np.ma.masked_invalid(T))
    np.testing.assert_array_equal(masked.mask, np.isnan(T))


def test_exposures_that_are_not_known_are_asked_for(tmp_path, table):
    index = np.nonzero(~np.isnan(table))
    cells, E = (index, table[index], table.shape), np.full(len(index[0]), 2.0)
    a1gm.fit_tensor(cells, exposure=E, on_undetermined="ignore").save(tmp_path / "m")
    fit = a1gm.load(tmp_path / "m")
    hole, cell = (
        tuple(np.argwhere(is_it)[0]) for is_it in (np.isnan(table), table > 0)
    )
    assert fit.predict(cell) > 0.0
    with pytest.raises(ParameterError, match="pass exposure="):
        fit.predict(hole)
    assert fit.predict(hole, exposure=2.0) > 0.0
    with pytest.raises(WeightsError, match="one per cell"):
        fit.predict(hole, exposure=[1.0, 2.0])


def test_exposures_that_cannot_be():
    T = np.ones((2, 2, 2))
    with pytest.raises(ParameterError, match="made without exposure"):
        a1gm.fit_tensor(T).predict((0, 0, 0), exposure=2.0)
    fit = a1gm.fit_tensor(T, exposure=T)
    with pytest.raises(WeightsError, match="at least 0"):
        fit.predict((0, 0, 0), exposure=-1.0)
    assert fit.predict((0, 0, 0), exposure=0.0) == 0.0
    assert np.isnan(fit.predict((0, 0, 0), exposure=np.nan))


@pytest.mark.filterwarnings("ignore::a1gm.exceptions.EmptyLineWarning")
@pytest.mark.parametrize("name", ["weights", "exposure"])
@pytest.mark.parametrize("seed", range(6))
def test_cells_of_weight_0_are_those_of_two_modes(seed, name):
    rng = np.random.default_rng(seed)
    X = rng.poisson(3.0, (4, 5)).astype(float)
    V = rng.choice([0.0, 1.0, 2.0], X.shape, p=[0.2, 0.4, 0.4])
    X[rng.random(X.shape) < 0.3] = np.nan
    options = {name: V, "on_undetermined": "ignore"}
    two, many = a1gm.fit(X, **options), a1gm.fit_tensor(X, **options)
    np.testing.assert_allclose(many.reconstruct(), two.reconstruct(), rtol=1e-8)
    np.testing.assert_allclose(
        many.residuals(X), two.residuals(X, **{name: V}), rtol=1e-6, atol=1e-12
    )
    cells = np.indices(X.shape)
    a, b = two.uncertainty(1.0), many.uncertainty(1.0)
    np.testing.assert_allclose(
        b.standard_error(tuple(cells)), a.standard_error(*cells), rtol=1e-7, atol=1e-12
    )


def test_unknown_labels_have_no_prediction(table):
    fit = a1gm.fit_long(listed(table), KEYS, "n", on_undetermined="ignore")
    more = pd.DataFrame({"site": [0, 9], "year": [0, 0], "month": [0, 0]})
    with pytest.warns(UndeterminedWarning, match="no 'site' level 9"):
        values = fit.predict(more)
    assert np.isnan(values[1])
    assert values[0] > 0.0


def test_messages_count_levels():
    fit = a1gm.fit_tensor(np.ones((2, 3, 4)))
    with pytest.raises(LabelError, match="no mode 1 level 7: the fit has 3 mode 1 lev"):
        fit.fate((0, 7, 0))
    with pytest.raises(ParameterError, match="one label or position per mode"):
        fit.predict((0, 1))


def test_cells_without_a_value_are_listed_with_their_kind():
    T = np.full((2, 2, 2), np.nan)
    T[0, 0, 0], T[0, 1, 1] = 1.0, 2.0
    fit = a1gm.fit_tensor(T, on_undetermined="ignore")
    cells = fit.undetermined
    assert len(cells) == fit.n_undetermined == 6
    assert cells[0] == (0, 0, 1, "undetermined")
    np.testing.assert_array_equal(np.stack(cells.positions)[:, 0], [0, 0, 1])
    for cell, kind in zip(np.stack(cells.positions, axis=1), cells.kind, strict=True):
        assert fit.fate(tuple(cell)) == kind
    assert "cannot be known" in fit._repr_html_()
    assert "6 undetermined cells: (0, 0, 1, 'undetermined')" in repr(cells)


def test_a_table_without_holes_keeps_its_type():
    T = np.arange(1, 13).reshape(2, 3, 2)
    fit = a1gm.fit_tensor(T)
    for given in (T, np.ma.masked_array(T), T.astype(np.float32), T.tolist()):
        filled = fit.impute(given)
        assert type(filled) is type(given if hasattr(given, "dtype") else T)
        assert filled.dtype == np.asarray(given).dtype
        assert filled is not given
        np.testing.assert_array_equal(filled, T)
    with pytest.raises(ParameterError, match="on_undetermined"):
        fit.impute(T, on_undetermined="never")


@pytest.mark.parametrize("shape", [(2, 3, 4), (1, 3, 1)])
def test_an_exposure_that_changes_after_the_fit_changes_nothing(shape):
    T, E = np.arange(1.0, 25.0).reshape(2, 3, 4), np.full(shape, 2.0)
    fit = a1gm.fit_tensor(T, exposure=E)
    expected = fit.reconstruct()
    E *= 10.0
    np.testing.assert_array_equal(fit.reconstruct(), expected)


def test_totals_by_a_mode_twice_are_refused():
    fit = a1gm.fit_tensor(np.ones((2, 3, 4)))
    with pytest.raises(ParameterError, match="twice"):
        fit.uncertainty("poisson").totals((0, 0))
