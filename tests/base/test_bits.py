"""Boolean tables as bits, and back."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from support.tables import make_mask

from a1gm._base.bits import pack_bits, unpack_bits


@given(st.integers(1, 30), st.integers(1, 200), st.integers(0, 2**31))
def test_bits_there_and_back(n, m, seed):
    observed = make_mask("at random", n, m, seed)
    packed = pack_bits(observed)
    assert packed.dtype == np.uint64
    assert packed.shape == (n, -(-m // 64))
    np.testing.assert_array_equal(unpack_bits(packed, m), observed)
    i, j = n - 1, m - 1
    assert bool(int(packed[i, j // 64]) >> (j % 64) & 1) == observed[i, j]
