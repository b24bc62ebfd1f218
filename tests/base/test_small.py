"""Numbers at the ends of float64, tables as bits, names in messages."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.tables import make_mask

from a1gm._base.bits import pack_bits, unpack_bits
from a1gm._base.float_range import (
    check_range,
    check_rows,
    keeps_digits,
    product,
)
from a1gm._base.words import counted, did_you_mean, first_place, listed
from a1gm.exceptions import NotRepresentableError


def test_products_round_once():
    x = np.array([1e-200, 1e200, 0.0, np.nan])
    np.testing.assert_allclose(product(x, x, over=x)[:2], x[:2])
    np.testing.assert_allclose(product(x, 2.0, over=2.0), x)
    assert product(1.0, over=0.0) == np.inf
    assert product([1e300], [1e300])[0] == np.inf


def test_numbers_without_a_square_are_refused_by_name():
    check_range(np.array([1e140, -1e140, 1e-140, 0.0, np.nan]), str)
    for number in (2e140, -2e140, 9e-141, 5e-324, np.inf):
        with pytest.raises(NotRepresentableError, match="power of ten") as e:
            check_range(np.array([1.0, number]), lambda k: f"Row {k}", "row")
        assert (e.value.row, e.value.column) == (1, None)


def test_numbers_with_all_their_digits():
    x = np.array([0.0, np.nan, 1e-300, 1e300, 1e-310, np.inf])
    assert keeps_digits(x).tolist() == [True] * 4 + [False] * 2


def test_a_row_without_a_factor_is_named():
    check_rows(np.array([0.0, 1e-320, np.nan]), np.array([0.0, 1.0, 1.0]))
    for factor in (0.0, np.inf):
        with pytest.raises(NotRepresentableError, match="factor of row 8"):
            check_rows(np.array([1.0, factor]), np.ones(2), first=7)


@given(st.integers(1, 30), st.integers(1, 200), st.integers(0, 2**31))
def test_bits_there_and_back(n, m, seed):
    observed = make_mask("at random", n, m, seed)
    packed = pack_bits(observed)
    assert packed.dtype == np.uint64
    assert packed.shape == (n, -(-m // 64))
    np.testing.assert_array_equal(unpack_bits(packed, m), observed)
    i, j = n - 1, m - 1
    assert bool(int(packed[i, j // 64]) >> (j % 64) & 1) == observed[i, j]


def test_numbers_of_numpy_have_nouns():
    assert counted(np.int64(12_345), "row") == "12,345 rows"


def test_names_that_are_merely_somewhat_alike_are_not_proposed():
    known = ["shop", "month", "sales"]
    assert did_you_mean("amount", known) == ""
    assert did_you_mean("mnth", known) == " Did you mean 'month'?"
    assert did_you_mean("sahop", known) == " Did you mean 'shop'?"
    assert did_you_mean("SHOP ", known) == " Did you mean 'shop'?"
    assert did_you_mean(2023, [2024, "2022"]) == ""  # another year is not meant
    assert listed(range(9), most=2) == "0, 1 and 7 more"
    assert listed([4, 7], total=3) == "4, 7 and 1 more"
    assert first_place(4, (0, 2)) == "the first at (0, 2)"
