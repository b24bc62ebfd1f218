"""Errors at the ends of float64: right, or refused in words."""

from __future__ import annotations

import numpy as np
import pytest

import a1gm
from a1gm.exceptions import NotRepresentableError

CALLS = {
    "dispersion": lambda u, X: np.array([u.dispersion]),
    "index": lambda u, X: u.index().se,
    "row index": lambda u, X: u.index(by="row").se,
    "totals": lambda u, X: u.totals().se,
    "column totals": lambda u, X: u.totals("column", "fitted").se,
    "whole": lambda u, X: u.totals("all").se,
    "standard error": lambda u, X: u.standard_error(*np.indices(X.shape)),
    "upper": lambda u, X: u.interval(X)[1],
    "row errors": lambda u, X: u.factor_errors().rows[:],
    "column errors": lambda u, X: u.factor_errors().columns,
}
UNITS = {"dispersion": 1, "index": 0, "row index": 0, "column errors": 0}


def table(seed):
    rng = np.random.default_rng(seed)
    X = rng.poisson(np.outer(rng.gamma(5, 4, 7), rng.gamma(5, 1, 5))) + 1.0
    X[rng.random(X.shape) < 0.2] = np.nan
    X[:, 0] = 3.0
    X[0] = 7.0
    return X


@pytest.mark.parametrize("power", range(-135, 136, 27))
@pytest.mark.parametrize("call", CALLS)
def test_errors_of_the_same_table_in_other_units(call, power):
    X = table(abs(power))
    scale = 10.0**power
    expected = CALLS[call](a1gm.fit(X).uncertainty("poisson"), X)
    # The variance of a cell is the dispersion times its mean: both have the unit.
    expected = expected * scale ** UNITS.get(call, 1)
    try:
        u = a1gm.fit(X * scale).uncertainty(scale)
        found = CALLS[call](u, X * scale)
    except NotRepresentableError:
        assert abs(power) > 90
        return
    np.testing.assert_allclose(found, expected, rtol=1e-9)


@pytest.mark.parametrize("power", range(20, 271, 50))
@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("side", ["rows", "columns"])
def test_errors_of_tables_that_span_the_range(call, power, side):
    X = table(power)
    powers = np.linspace(-power / 2, power / 2, X.shape[0 if side == "rows" else 1])
    scale = 10.0 ** (powers[:, None] if side == "rows" else powers)
    try:
        found = CALLS[call](a1gm.fit(X * scale).uncertainty("poisson"), X * scale)
    except NotRepresentableError:
        return
    assert (found >= 0.0).all()
    assert call == "upper" or np.isfinite(found).all()
    if call in ("standard error", "row errors"):
        assert (found > 0.0).all()
