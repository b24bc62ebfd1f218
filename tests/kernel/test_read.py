"""Tables of any layout, type and mark of a hole: compiled against NumPy."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.kernels import (
    TABLE_CELLS,
    assert_same_observation,
    native,
    needs_native,
    observe_both,
    part,
)
from support.tables import make_table, tables

from a1gm._kernel import reference

pytestmark = needs_native

DTYPES = ["f8", "f4", "i8", "i4", "i2", "i1", "u8", "u4", "u2", "u1", "?"]
WIDTHS = [1, 3, 5, 20, 40, 64, 70, 130]
MANY = 1 << 30  # cells of a pattern table: always kept


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("order", ["C", "F"])
def test_observe_every_dtype(dtype, order):
    rng = np.random.default_rng(3)
    X = np.asarray(rng.integers(0, 100, (50, 9)), dtype=dtype, order=order)
    if dtype.startswith("f"):
        X[rng.random(X.shape) < 0.2] = np.nan
    assert_same_observation(*observe_both([part(X)]))


@pytest.mark.parametrize("dtype", ["f8", "f4", "i4", "u1"])
@pytest.mark.parametrize(
    "view",
    [
        lambda X: X[::-1],
        lambda X: X[:, ::-1],
        lambda X: X[::3, 1::2],
        lambda X: X.T,
        lambda X: X[5:6],
        lambda X: X[:, 5:6],
        lambda X: np.broadcast_to(X[0], (30, X.shape[1])),
        lambda X: np.broadcast_to(X[:, :1], (X.shape[0], 30)),
        lambda X: np.lib.stride_tricks.sliding_window_view(X[:, 0], 4),
    ],
)
def test_observe_any_strides(dtype, view):
    X = np.random.default_rng(4).integers(0, 100, (40, 20)).astype(dtype)
    if dtype.startswith("f"):
        X[3, ::2] = X[::5, 1] = np.nan
    got, expected = observe_both([part(view(X))])
    assert_same_observation(got, expected)
    copied = native.observe(
        [part(np.ascontiguousarray(view(X)))], 1, 1.0, TABLE_CELLS, False
    )
    assert_same_observation(got, copied)


@given(tables(max_rows=30, max_cols=8), st.sampled_from(["f8", "f4", "i4", "?"]))
def test_observe_masks(X, dtype):
    hidden = np.isnan(X)
    values = np.where(hidden, -3.0, np.ceil(X)).astype(dtype)
    assert_same_observation(*observe_both([part(values, hidden)]))
    backwards = part(values[::-1, ::-1], hidden[::-1, ::-1])
    assert_same_observation(*observe_both([backwards]))


@given(
    st.integers(1, 200),
    st.integers(0, 70),
    st.integers(1, 5),
    st.integers(0, 2**31),
)
def test_observe_validity_bitmaps(n, offset, n_cols, seed):
    rng = np.random.default_rng(seed)
    parts = []
    for k in range(n_cols):
        bits = rng.random(offset + n + 13) < 0.7
        bitmap = np.packbits(bits, bitorder="little")
        values = rng.integers(0, 50, (n, 1)).astype(["f8", "i4", "f4"][k % 3])
        parts.append(part(values, None, bitmap, offset))
    assert_same_observation(*observe_both(parts))


@given(tables(max_rows=20, max_cols=7), st.integers(0, 2**31))
def test_observe_parts(X, seed):
    rng = np.random.default_rng(seed)
    whole = np.arange(1, 1 + X.size, dtype=np.int16).reshape(X.shape)
    masked = part(np.where(np.isnan(X), np.inf, X), np.isnan(X))
    parts = [part(X), masked, part(np.asfortranarray(whole))]
    order = rng.permutation(3)
    parts = [parts[k] for k in order]
    assert_same_observation(*observe_both(parts))


@pytest.mark.parametrize("scale", [0.25, 2.0**-300, 2.0**200])
def test_scale_by_a_power_of_two_is_exact(scale):
    X = make_table("few patterns", 90, 6, seed=10)
    one, other = (
        native.observe([part(X)], 1, s, TABLE_CELLS, False) for s in (1.0, scale)
    )
    np.testing.assert_array_equal(other[0], one[0] * scale)
    np.testing.assert_array_equal(other[2][3], one[2][3] * scale)


def made_part(rng, n, width, *, layout):
    cells = rng.random((n, width))
    cells[rng.random((n, width)) < rng.choice([0.0, 0.01, 0.3])] = np.nan
    cells[rng.random((n, width)) < 0.05] = 0.0
    if layout == "float32":
        cells = cells.astype(np.float32)
    if layout == "fortran":
        cells = np.asfortranarray(cells)
    if layout == "strided":
        cells = np.repeat(cells, 2, axis=0)[::2]
    return part(cells)


@given(
    seed=st.integers(0, 10**6),
    n=st.integers(1, 200),
    widths=st.lists(st.sampled_from(WIDTHS), min_size=1, max_size=4),
    layout=st.sampled_from(["plain", "float32", "fortran", "strided"]),
    wide=st.booleans(),
)
@settings(max_examples=150, deadline=None)
def test_parts(seed, n, widths, layout, wide):
    rng = np.random.default_rng(seed)
    parts = [made_part(rng, n, width, layout=layout) for width in widths]
    cells = 0 if wide else MANY
    ours = native.observe(parts, 2, 1.0, cells, False)
    defined = reference.observe(parts, 1, 1.0, cells, False)
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
    parts = [part(table) for table in tables]
    *_, negative, infinite = native.observe(parts, 2, 1.0, MANY, False)
    found = negative if bad < 0 else infinite
    assert tuple(found) == (1, row, col + 20 * which, bad)
