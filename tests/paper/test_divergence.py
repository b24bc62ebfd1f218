"""The error on the observed cells."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from a1gm.exceptions import DimensionError
from a1gm.paper import kl_divergence

TABLES = hnp.arrays(np.float64, (3, 4), elements=st.floats(0.01, 100))


def test_the_definition_cell_by_cell() -> None:
    X, R = [[2.0, np.nan], [0.0, 3.0]], [[1.0, 7.0], [5.0, 4.0]]
    by_hand = (2 * np.log(2) - 2 + 1) + 5 + (3 * np.log(3 / 4) - 3 + 4)
    assert kl_divergence(X, R) == pytest.approx(by_hand, rel=1e-14)


@given(TABLES, TABLES)
def test_never_negative_and_zero_only_on_equality(X, R) -> None:
    assert kl_divergence(X, R) >= -1e-12 * X.sum()
    assert kl_divergence(X, X) == 0


@given(TABLES, TABLES, st.floats(0.01, 100))
def test_scales_with_the_data(X, R, k) -> None:
    scale = X.sum() + R.sum()
    assert kl_divergence(k * X, k * R) == pytest.approx(
        k * kl_divergence(X, R), rel=1e-9, abs=1e-12 * k * scale
    )


@given(TABLES, TABLES, hnp.arrays(np.bool_, (3, 4)))
def test_missing_cells_do_not_count(X, R, holes) -> None:
    holes[0, 0] = False
    holed = np.where(holes, np.nan, X)
    changed = np.where(holes, np.nan, R)
    assert kl_divergence(holed, changed) == kl_divergence(holed, R)


def test_a_positive_cell_fitted_as_zero_costs_infinitely_much() -> None:
    assert kl_divergence([[1.0, 1.0]], [[0.0, 1.0]]) == np.inf


def test_other_shape_is_refused() -> None:
    with pytest.raises(DimensionError, match=r"\(1, 2\) and R has shape \(2, 1\)"):
        kl_divergence([[1.0, 2.0]], [[1.0], [2.0]])
