"""The paper's preparation of its real data."""

import numpy as np
import pytest

from a1gm.exceptions import DimensionError, InfiniteValuesError
from a1gm.paper import prepare


def test_holes_count_as_one_in_the_mean_and_stay_holes() -> None:
    X = np.array([[0.0, -3.0, np.nan], [4.0, 0.0, np.nan]])
    mean = (0 + 3 + 1 + 4 + 0 + 1) / 6
    np.testing.assert_array_equal(prepare(X), [[mean, 3, np.nan], [4, mean, np.nan]])


def test_negative_zero_is_zero() -> None:
    assert prepare([[-0.0, 2.0]]).tolist() == [[1.0, 2.0]]


def test_positive_tables_stay_as_they_are() -> None:
    X = np.array([[1.0, np.nan], [3.0, 4.0]])
    np.testing.assert_array_equal(prepare(X), X)


@pytest.mark.parametrize(
    ("X", "error"),
    [(np.empty((0, 2)), DimensionError), ([[np.inf, 1.0]], InfiniteValuesError)],
)
def test_refused(X, error) -> None:
    with pytest.raises(error):
        prepare(X)
