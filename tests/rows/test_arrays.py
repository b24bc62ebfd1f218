"""Arrays of every kind, and what each one gets."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction
from functools import partial

import numpy as np
import pandas as pd
import pytest
from support import frames
from support.tables import make_table

import a1gm
from a1gm.exceptions import NotNumericError

nan = np.nan
X = make_table("at random", 40, 7, seed=1)
COUNTS = np.array([[1, 2, 3], [4, 0, 6], [7, 8, 1]])
assert_same_fit = partial(frames.assert_same_fit, rtol=1e-12)


@pytest.mark.parametrize("dtype", ["i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8"])
@pytest.mark.parametrize("byte_order", ["<", ">"])
def test_integers(dtype, byte_order):
    table = COUNTS.astype(byte_order + dtype)
    fit = a1gm.fit(table)
    assert_same_fit(fit, a1gm.fit(COUNTS.astype(np.float64)))
    np.testing.assert_array_equal(fit.impute(table), COUNTS)
    np.testing.assert_allclose(fit.transform(table), fit.row_factor)


@pytest.mark.parametrize("dtype", [np.float32, np.float16, np.longdouble])
def test_other_floats(dtype):
    table = X.astype(dtype)
    fit = a1gm.fit(table)
    assert_same_fit(fit, a1gm.fit(table.astype(np.float64)))
    filled = fit.impute(table)
    assert filled.dtype == (np.float32 if dtype is np.float32 else np.float64)
    seen = ~np.isnan(X)
    np.testing.assert_array_equal(filled[seen], table[seen].astype(filled.dtype))
    assert np.isfinite(filled).all()


def test_a_longdouble_beyond_float64_is_infinite():
    table = np.array([[1, "1e400"]], dtype=np.longdouble)
    if not np.isfinite(table).all():
        pytest.skip("longdouble is float64 here")
    with pytest.raises(a1gm.exceptions.InfiniteValuesError, match=r"X\[0, 1\]"):
        a1gm.fit(table)


@pytest.mark.parametrize(
    "bad", ["1", "x", b"2", 1j, [1], {}, Decimal("sNaN"), object()]
)
def test_objects_that_are_no_numbers(bad):
    table = np.empty((2, 2), dtype=object)
    table[:] = 1.0
    table[1, 0] = bad
    with pytest.raises(NotNumericError, match=r"X\[1, 0\]"):
        a1gm.fit(table)


MIXED = [
    [1, 2.5, Decimal("3.25")],
    [None, np.float32(4), Fraction(1, 2)],
    [True, Decimal("NaN"), float("nan")],
]
WHOLE = np.array([[1, 2, 3], [2, 9, 6], [4, 8, 9]])
HOLES = np.where(WHOLE == 9, nan, WHOLE)
HOLE = [[1.0, 2.0], [nan, 4.0]]
OTHERS = {
    "booleans": (np.array([[True, False], [True, True]]), [[1, 0], [1, 1]]),
    "objects": (
        np.array(MIXED, object),
        [[1, 2.5, 3.25], [nan, 4, 0.5], [1, nan, nan]],
    ),
    "missing values of pandas": (
        np.array([[1, 2], [3, pd.NA], [pd.NaT, 4]], object),
        [[1, 2], [3, nan], [nan, 4]],
    ),
    "a list with None": ([[1, 2], [2, None]], [[1, 2], [2, nan]]),
    "NaN beside a mask": (np.ma.masked_array(HOLE, [[0, 0], [0, 0]]), HOLE),
    "NaN without a mask": (np.ma.masked_array(HOLE), HOLE),
    "integers under a mask": (np.ma.masked_equal(WHOLE, 9), HOLES),
    "a view of a mask": (np.ma.masked_equal(WHOLE, 9)[::-1, ::-1], HOLES[::-1, ::-1]),
    "text under a mask": (
        np.ma.masked_array(np.array([["n/a", 1], [2, 3]], object), [[1, 0], [0, 0]]),
        [[nan, 1], [2, 3]],
    ),
}


@pytest.mark.parametrize("kind", OTHERS)
def test_other_arrays(kind):
    table, plain = OTHERS[kind]
    fit, expected = a1gm.fit(table), a1gm.fit(np.array(plain, float))
    assert_same_fit(fit, expected)
    filled = np.ma.getdata(fit.impute(table)).astype(float)
    np.testing.assert_allclose(filled, expected.impute(np.array(plain, float)))


def _as_field(T: np.ndarray) -> np.ndarray:
    records = np.zeros(T.shape, dtype=[("pad", "u1"), ("x", "f8")])
    records["x"] = T
    return records["x"]


def _not_aligned(T: np.ndarray) -> np.ndarray:
    raw = np.zeros(T.nbytes + 1, np.uint8)
    out = raw[1:].view(np.float64).reshape(T.shape)
    out[...] = T
    assert not out.flags.aligned
    return out


def _inside(T: np.ndarray) -> np.ndarray:
    large = np.full((T.shape[0] + 4, T.shape[1] + 9), np.inf)
    large[2:-2, 4:-5] = T
    return large[2:-2, 4:-5]


LAYOUTS = {
    "C": np.ascontiguousarray,
    "Fortran": np.asfortranarray,
    "every second row": lambda T: np.repeat(T, 2, axis=0)[::2],
    "every third column": lambda T: np.repeat(T, 3, axis=1)[:, ::3],
    "backwards": lambda T: np.ascontiguousarray(T[::-1, ::-1])[::-1, ::-1],
    "transposed": lambda T: np.ascontiguousarray(T.T).T,
    "big-endian": lambda T: T.astype(">f8"),
    "field of a record": _as_field,
    "not aligned": _not_aligned,
    "subclass": lambda T: T.view(type("Sub", (np.ndarray,), {})),
    "inside a larger array": _inside,
}


@pytest.mark.parametrize("layout", sorted(LAYOUTS))
@pytest.mark.parametrize("read_only", [False, True])
def test_layouts(layout, read_only):
    table = LAYOUTS[layout](X)
    table.flags.writeable = not read_only
    before = table.tobytes()
    fit = a1gm.fit(table)
    assert_same_fit(fit, a1gm.fit(X))
    np.testing.assert_allclose(fit.impute(table), a1gm.fit(X).impute(X), rtol=1e-13)
    np.testing.assert_allclose(fit.transform(table), fit.row_factor, rtol=1e-9)
    assert fit.divergence == pytest.approx(fit.divergence_of(table))
    a1gm.MissingPattern(table)
    assert table.tobytes() == before


@pytest.mark.parametrize("mode", ["r", "c", "r+"])
def test_memory_maps(tmp_path, mode):
    path = tmp_path / "table.npy"
    np.save(path, X)
    before = path.read_bytes()
    table = np.load(path, mmap_mode=mode)
    fit = a1gm.fit(table)
    assert_same_fit(fit, a1gm.fit(X))
    filled = fit.impute(table)
    assert not np.isnan(filled).any()
    assert type(filled) is not np.memmap or not np.shares_memory(filled, table)
    table.flush()
    assert path.read_bytes() == before


def test_the_filled_table_is_a_copy():
    for table in (X.copy(), np.ones((3, 3)), COUNTS.copy(), X.astype(np.float32)):
        kept = table.copy()
        filled = a1gm.fit(table).impute(table)
        assert not np.shares_memory(filled, table)
        filled[...] = 99
        np.testing.assert_array_equal(table, kept)
