"""Names in messages."""

import numpy as np

from a1gm._base.words import counted, did_you_mean


def test_numbers_of_numpy_have_nouns():
    assert counted(np.int64(12_345), "row") == "12,345 rows"


def test_names_that_are_merely_somewhat_alike_are_not_proposed():
    known = ["shop", "month", "sales"]
    assert did_you_mean("amount", known) == ""
    assert did_you_mean("mnth", known) == " Did you mean 'month'?"
    assert did_you_mean("sahop", known) == " Did you mean 'shop'?"
