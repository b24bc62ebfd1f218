"""Numbers of any size."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from a1gm._base.float_range import (
    Wide,
    check_narrow,
    concatenated,
    log2_of,
    narrow,
    narrow_if_exact,
    product,
    sum_groups,
    wide,
    wide_product,
)
from a1gm.exceptions import NotRepresentableError

NUMBERS = st.floats(min_value=5e-324, max_value=1.7e308)


@given(st.lists(NUMBERS, min_size=1, max_size=6))
def test_numbers_survive_being_taken_apart(x):
    np.testing.assert_array_equal(narrow(wide(np.array(x))), x)


def test_products_leave_the_range_and_come_back():
    x = np.array([1e-200, 1e200, 0.0, np.nan])
    far = wide_product(x, x, x)
    np.testing.assert_allclose(log2_of(far[:2]) * np.log10(2.0), [-600.0, 600.0])
    np.testing.assert_allclose(product(far, over=wide_product(x, x))[:2], x[:2])
    assert product(1.0, over=0.0) == np.inf


@given(st.lists(NUMBERS, min_size=1, max_size=9), st.integers(-3000, 3000))
def test_sums_of_groups_at_any_scale(x, power):
    x = np.array(x) * 1e-10
    place = np.arange(len(x)) % 2
    got = sum_groups(wide_product(x, exponent=power), place, 3)
    expected = np.bincount(place, x, minlength=3)
    np.testing.assert_allclose(product(got, exponent=-power), expected, rtol=1e-12)


def test_plain_numbers_come_back_only_if_no_digit_is_lost():
    exact = wide(np.array([1.0, 0.0, np.nan, 1e-300]))
    assert isinstance(narrow_if_exact(exact), np.ndarray)
    for lost in (wide(np.array([1.0, 5e-324])), wide_product([1e300], [1e300])):
        assert isinstance(narrow_if_exact(lost), Wide)


def test_what_float64_does_not_have_is_refused_when_read():
    np.testing.assert_array_equal(check_narrow(np.array([0.0, 2.0]), "row"), [0.0, 2.0])
    small = wide_product(np.array([0.5, 1e-200, 0.0]), np.array([1.0, 1e-200, 1.0]))
    with pytest.raises(NotRepresentableError, match="row 8 is about 1e-400"):
        check_narrow(small, "row", 7)


def test_plain_and_wide_numbers_one_after_the_other():
    both = concatenated([np.array([1.0, 2.0]), wide(np.array([3.0]))])
    np.testing.assert_array_equal(narrow(both), [1.0, 2.0, 3.0])
