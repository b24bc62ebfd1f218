"""Several parts side by side, in several row sums: compiled against NumPy."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from a1gm._kernel import is_compiled, kernel, reference

pytestmark = pytest.mark.skipif(not is_compiled, reason="needs the compiled kernel")
WIDTHS = [1, 3, 5, 20, 40, 64, 70, 130]
MANY = 1 << 30  # cells of a pattern table: always kept


def part(rng, n, width, group, *, layout):
    cells = rng.random((n, width))
    cells[rng.random((n, width)) < rng.choice([0.0, 0.01, 0.3])] = np.nan
    cells[rng.random((n, width)) < 0.05] = 0.0
    if layout == "float32":
        cells = cells.astype(np.float32)
    if layout == "fortran":
        cells = np.asfortranarray(cells)
    if layout == "strided":
        cells = np.repeat(cells, 2, axis=0)[::2]
    return (cells, None, None, 0, group)


@given(
    seed=st.integers(0, 10**6),
    n=st.integers(1, 200),
    widths=st.lists(st.sampled_from(WIDTHS), min_size=1, max_size=4),
    n_groups=st.integers(1, 3),
    layout=st.sampled_from(["plain", "float32", "fortran", "strided"]),
    wide=st.booleans(),
)
@settings(max_examples=150, deadline=None)
def test_parts_and_groups(seed, n, widths, n_groups, layout, wide):
    rng = np.random.default_rng(seed)
    parts = [
        part(rng, n, width, int(rng.integers(n_groups)), layout=layout)
        for width in widths
    ]
    cells = 0 if wide else MANY
    ours = kernel.observe(parts, n_groups, 2, 1.0, cells, False)
    defined = reference.observe(parts, n_groups, 1, 1.0, cells, False)
    np.testing.assert_allclose(ours[0], defined[0], rtol=1e-13)
    if ours[1] != defined[1]:
        return  # the compiled one decides before it has seen all rows
    for a, b in zip(ours[2], defined[2], strict=True):
        np.testing.assert_allclose(np.asarray(a), np.asarray(b), rtol=1e-12)
    assert ours[3] == pytest.approx(defined[3])


@pytest.mark.parametrize("bad", [-1.0, np.inf])
@pytest.mark.parametrize("place", [(0, 3, 0), (1, 9, 2), (1, 64, 4), (0, 99, 19)])
def test_bad_cells_are_found_in_any_part(bad, place):
    tables = [np.ones((100, 20)), np.ones((100, 5))]
    which, row, col = place
    tables[which][row, col] = bad
    for n_groups in (1, 2):
        parts = [(T, None, None, 0, k % n_groups) for k, T in enumerate(tables)]
        *_, negative, infinite = kernel.observe(parts, n_groups, 2, 1.0, MANY, False)
        found = negative if bad < 0 else infinite
        assert tuple(found) == (1, row, col + 20 * which, bad)


def test_a_group_whose_sum_overflows_is_reported():
    X, Z = np.full((3, 4), 1e300), np.full((3, 4), 1.0)
    Z[1] = 1e308
    parts = [(X, None, None, 0, 0), (Z, None, None, 0, 1)]
    *_, overflow, _, infinite = kernel.observe(parts, 2, 1, 1.0, MANY, False)
    assert overflow
    assert infinite[0] == 0
