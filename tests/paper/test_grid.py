"""Algorithm 1 and the steps it is made of."""

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from a1gm import fit, paper
from a1gm.exceptions import DataError

SHAPES = hnp.array_shapes(min_dims=2, max_dims=2, min_side=1, max_side=8)
MASKS = hnp.arrays(np.bool_, SHAPES)
# sparse masks leave complete lines, which Algorithm 1 needs
SPARSE = hnp.arrays(np.bool_, SHAPES, elements=st.sampled_from([False] * 9 + [True]))


def table_with(holes, seed=0):
    X = np.random.default_rng(seed).random(holes.shape) + 0.01
    X[holes] = np.nan
    return X


def can_start(holes) -> bool:
    return not (holes.any(axis=1).all() or holes.any(axis=0).all())


@given(MASKS)
def test_the_grid_holds_every_hole_and_no_smaller_one_does(mask) -> None:
    rows, columns = paper.grid_like(mask)
    grown = paper.complete_to_grid(mask)
    assert grown[np.ix_(rows, columns)].all()
    assert grown.sum() == len(rows) * len(columns)
    assert not (mask & ~grown).any()
    assert all(mask[row].any() for row in rows)
    assert all(mask[:, column].any() for column in columns)
    grid = paper.grid_like(mask)
    assert grid.n_holes <= grid.n_holes_grown <= grid.n_holes**2
    assert grid.increase_rate >= 1


@given(SPARSE, st.integers(0, 1000))
def test_algorithm_1_step_by_step(holes, seed) -> None:
    """Grow, move to the corner, Theorem 1, move back gives what a1gm returns."""
    assume(can_start(holes))
    X = table_with(holes, seed)
    rows = np.argsort(holes.any(axis=1), kind="stable")
    columns = np.argsort(holes.any(axis=0), kind="stable")
    moved = X[np.ix_(rows, columns)]
    n, m = (~holes.any(axis=1)).sum(), (~holes.any(axis=0)).sum()
    w, h, a, b = paper.rank1_nmmf(moved[:n, :m], moved[n:, :m], moved[:n, m:])
    c, d = paper.a1gm(X)
    np.testing.assert_allclose(c[rows], np.r_[w, a], rtol=1e-12)
    np.testing.assert_allclose(d[columns], np.r_[h, b], rtol=1e-12)


@given(SPARSE, st.integers(0, 1000))
def test_observed_cells_inside_the_grown_grid_are_not_used(holes, seed) -> None:
    assume(can_start(holes))
    X = table_with(holes, seed)
    discarded = np.where(paper.complete_to_grid(holes), np.nan, X)
    for left, right in zip(paper.a1gm(X), paper.a1gm(discarded), strict=True):
        np.testing.assert_allclose(left, right, rtol=1e-12)


@pytest.mark.parametrize(
    ("holes", "line"), [(np.eye(3, 4), "row"), (np.eye(4, 3), "column")]
)
def test_without_a_complete_row_or_column_the_error_points_to_fit(holes, line) -> None:
    with pytest.raises(DataError, match=rf"Every {line} of X .*Use a1gm\.fit\(X\)"):
        paper.a1gm(table_with(holes.astype(bool)))


@pytest.mark.parametrize(
    "X",
    [
        [[0.0, 5.0], [0.0, np.nan]],
        [[0.0, 0.0], [5.0, np.nan]],
        [[0.0, 0.0, 2.0], [0.0, 0.0, np.nan]],
        [[0.0, 0.0], [0.0, np.nan]],
    ],
)
def test_zeros_where_complete_rows_and_columns_meet(X) -> None:
    fitted = np.outer(*paper.a1gm(X))
    assert paper.kl_divergence(X, fitted) == 0.0
    assert fit(X, on_undetermined="ignore").divergence == 0.0
    with pytest.raises(DataError, match=r"no minimum exists.*a1gm\.fit\(X\)") as error:
        paper.a1gm([[0.0, 5.0], [5.0, np.nan]])
    assert "Y" not in str(error.value)
