"""Words around a number."""

from __future__ import annotations

import numpy as np
import pytest

from a1gm._base.words import counted, did_you_mean, first_place, listed


@pytest.mark.parametrize(
    ("number", "text"),
    [(0, "0 rows"), (1, "1 row"), (2, "2 rows"), (12_345, "12,345 rows")],
)
def test_a_number_with_its_noun(number, text):
    assert counted(number, "row") == text
    assert counted(np.int64(number), "row") == text


def test_a_noun_may_carry_its_verb():
    assert counted(1, "cell stays", "cells stay") == "1 cell stays"
    assert counted(3, "cell stays", "cells stay") == "3 cells stay"


def test_names_are_listed_up_to_a_number():
    assert listed([3]) == "3"
    assert listed(["a", "b", "c"], most=3) == "a, b, c"
    assert listed(list(range(7)), most=5) == "0, 1, 2, 3, 4 and 2 more"
    assert listed([0, 1], most=5, total=1_002) == "0, 1 and 1,000 more"


def test_one_place_is_not_the_first_of_several():
    assert first_place(1, "X[0, 2]") == "at X[0, 2]"
    assert first_place(2, "X[0, 2]") == "the first at X[0, 2]"


def test_names_that_are_merely_somewhat_alike_are_not_proposed():
    known = ["shop", "month", "sales"]
    assert did_you_mean("amount", known) == ""
    assert did_you_mean("mnth", known) == " Did you mean 'month'?"
    assert did_you_mean("sahop", known) == " Did you mean 'shop'?"
