"""The best rank-1 table of a complete table, the error, and the data preparation."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from a1gm.exceptions import DataError
from a1gm.paper import kl_divergence, rank1_nmf

SHAPES = hnp.array_shapes(min_dims=2, max_dims=2, max_side=6)
CELLS = st.floats(0.01, 100)
TABLES = hnp.arrays(np.float64, SHAPES, elements=CELLS)
SAME_SHAPE = hnp.arrays(np.float64, (3, 4), elements=CELLS)


@given(TABLES, st.integers(0, 1000))
def test_margins_are_kept_and_no_other_factors_are_better(X, seed) -> None:
    w, h = rank1_nmf(X)
    R = np.outer(w, h)
    np.testing.assert_allclose(R.sum(axis=0), X.sum(axis=0), rtol=1e-12)
    np.testing.assert_allclose(R.sum(axis=1), X.sum(axis=1), rtol=1e-12)
    np.testing.assert_allclose(w.sum(), h.sum(), rtol=1e-12)
    rng = np.random.default_rng(seed)
    other = np.outer(
        w * np.exp(rng.normal(0, 0.1, w.size)), h * np.exp(rng.normal(0, 0.1, h.size))
    )
    assert kl_divergence(X, R) <= kl_divergence(X, other) + 1e-10 * X.sum()


def test_zero_rows_and_the_zero_table() -> None:
    w, _ = rank1_nmf([[0.0, 0.0], [1.0, 2.0]])
    assert w[0] == 0
    for factor in rank1_nmf(np.zeros((2, 3))):
        assert (factor == 0).all()


def test_the_definition_cell_by_cell() -> None:
    X, R = [[2.0, np.nan], [0.0, 3.0]], [[1.0, 7.0], [5.0, 4.0]]
    by_hand = (2 * np.log(2) - 2 + 1) + 5 + (3 * np.log(3 / 4) - 3 + 4)
    assert kl_divergence(X, R) == pytest.approx(by_hand, rel=1e-14)
    # A positive cell that is fitted as zero costs infinitely much.
    assert kl_divergence([[1.0, 1.0]], [[0.0, 1.0]]) == np.inf
    with pytest.raises(DataError, match=r"\(1, 2\) and R has shape \(2, 1\)"):
        kl_divergence([[1.0, 2.0]], [[1.0], [2.0]])


@given(SAME_SHAPE, SAME_SHAPE, hnp.arrays(np.bool_, (3, 4)))
def test_never_negative_and_missing_cells_do_not_count(X, R, holes) -> None:
    assert kl_divergence(X, R) >= -1e-12 * X.sum()
    assert kl_divergence(X, X) == 0
    holes[0, 0] = False
    holed = np.where(holes, np.nan, X)
    changed = np.where(holes, np.nan, R)
    assert kl_divergence(holed, changed) == kl_divergence(holed, R)
