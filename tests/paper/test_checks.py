"""What the published algorithms refuse, and what the message says."""

import numpy as np
import pytest

from a1gm import paper
from a1gm.exceptions import (
    DataError,
    InfiniteValuesError,
    NegativeValuesError,
    NotNumericError,
    ParameterError,
)

TAKES_HOLES = [paper.a1gm, paper.kl_wnmf, paper.em]
TAKES_COMPLETE = [paper.rank1_nmf, paper.rank1_nmmf, paper.geometry.expectation]


@pytest.mark.parametrize("function", TAKES_HOLES + TAKES_COMPLETE)
@pytest.mark.parametrize(
    ("X", "error", "words"),
    [
        ([[1.0, -2.0], [-3.0, 1.0]], NegativeValuesError, r"X\[0, 1\] = -2 \(2 in all"),
        ([[1.0, 2.0], [np.inf, 1.0]], InfiniteValuesError, r"X\[1, 0\] is infinite"),
        ([1.0, 2.0], DataError, "1 dimension"),
        (np.empty((0, 3)), DataError, "empty"),
        ([["a", "b"]], NotNumericError, "not real numbers"),
        (np.array([[1j]]), NotNumericError, "complex128"),
        (np.array([[object()]]), NotNumericError, "not a real number"),
    ],
)
def test_bad_tables_are_refused(function, X, error, words) -> None:
    with pytest.raises(error, match=words):
        function(X)


@pytest.mark.parametrize("function", TAKES_HOLES)
def test_a_table_without_observed_cell_is_refused(function) -> None:
    with pytest.raises(DataError, match="every cell is NaN"):
        function([[np.nan, np.nan]])


@pytest.mark.parametrize("function", TAKES_COMPLETE)
def test_closed_forms_point_to_fit_when_a_cell_is_missing(function) -> None:
    with pytest.raises(DataError, match=r"X\[0, 1\] is missing .* a1gm\.fit"):
        function([[1.0, np.nan]])


@pytest.mark.parametrize("function", [paper.kl_wnmf, paper.em])
@pytest.mark.parametrize(("axis", "line"), [(0, "row"), (1, "column")])
def test_a_line_without_observed_cell_is_named(function, axis, line) -> None:
    X = np.ones((3, 3))
    X[(slice(None),) * axis + (1,)] = np.nan
    with pytest.raises(DataError, match=rf"no observed cell in {line} 1 .*a1gm\.fit"):
        function(X)


@pytest.mark.parametrize(
    ("function", "option", "value"),
    [
        (paper.kl_wnmf, "rank", 0),
        (paper.kl_wnmf, "max_iter", 0),
        (paper.kl_wnmf, "max_iter", 1.5),
        (paper.kl_wnmf, "tol", -1.0),
        (paper.em, "tol", np.nan),
        (paper.em, "max_iter", 0),
        (paper.rank1_nmmf, "alpha", -1.0),
        (paper.rank1_nmmf, "beta", np.inf),
        (paper.rank1_nmmf, "alpha", "1"),
        (paper.kl_wnmf, "rank", 2.0),
        (paper.kl_wnmf, "tol", "a"),
        (paper.em, "tol", None),
    ],
)
def test_options_outside_their_range_are_refused(function, option, value) -> None:
    with pytest.raises(ParameterError, match=option):
        function([[1.0, 2.0], [3.0, 4.0]], **{option: value})


@pytest.mark.parametrize(
    ("mask", "error", "words"),
    [
        ([[0, 1], [1, 0]], NotNumericError, "True where a cell is missing"),
        ([[0.0, 1.0]], NotNumericError, "True where a cell is missing"),
        ([True, False], DataError, "1 dimension"),
    ],
)
@pytest.mark.parametrize("function", [paper.grid_like, paper.complete_to_grid])
def test_a_mask_is_a_boolean_table(function, mask, error, words) -> None:
    with pytest.raises(error, match=words):
        function(mask)


@pytest.mark.parametrize("function", TAKES_HOLES)
def test_masked_arrays_are_holes_and_junk_below_the_mask_is_ignored(function) -> None:
    X = np.array([[1.0, 2.0], [3.0, -1e9]])
    masked = np.ma.MaskedArray(X, mask=X < 0)
    options = {"random_state": 0} if function is paper.kl_wnmf else {}
    holes = np.where(X < 0, np.nan, X)
    for left, right in zip(
        function(masked, **options), function(holes, **options), strict=True
    ):
        np.testing.assert_array_equal(left, right)


@pytest.mark.parametrize("function", TAKES_HOLES)
def test_the_input_is_not_modified(function) -> None:
    X = np.array([[1.0, 2.0, 0.0], [3.0, np.nan, 1.0], [1.0, 1.0, 1.0]])
    before = X.copy()
    X.flags.writeable = False
    function(X)
    np.testing.assert_array_equal(X, before)


def test_weights_and_shapes_of_joint_tables_are_checked() -> None:
    tables = [[1.0, 2.0]], [[2.0, 4.0]], None
    for weight in ("1", None, -1.0, np.nan):
        with pytest.raises(ParameterError, match="alpha"):
            paper.rank1_nmmf(*tables, alpha=weight)
    with pytest.raises(DataError, match="Y has 3 columns and X has 2"):
        paper.rank1_nmmf(np.ones((2, 2)), np.ones((1, 3)))
    with pytest.raises(DataError, match="Z has 3 rows and X has 2"):
        paper.rank1_nmmf(np.ones((2, 2)), None, np.ones((3, 1)))


@pytest.mark.parametrize("number", [np.int64(2), np.float32(0.5), 1])
def test_numbers_of_any_type_are_weights(number) -> None:
    X, Y = [[1.0, 2.0]], [[2.0, 4.0]]
    want = paper.rank1_nmmf(X, Y, alpha=float(number))
    for left, right in zip(paper.rank1_nmmf(X, Y, alpha=number), want, strict=True):
        np.testing.assert_array_equal(left, right)
