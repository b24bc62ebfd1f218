"""Many tables in one call: each is observed and solved as if it were alone."""

from __future__ import annotations

import numpy as np
import pytest
from support.kernels import part

nan = np.nan


def tables_of(n: int) -> list[np.ndarray]:
    rng = np.random.default_rng(n)
    shapes = rng.integers(1, 30, (n, 2))
    tables = [rng.gamma(2.0, size=tuple(shape)) for shape in shapes]
    for table in tables:
        table[rng.random(table.shape) < 0.2] = nan
    return tables


def test_they_are_those_that_the_single_calls_find():
    native = pytest.importorskip("a1gm._kernel._native")
    tables = tables_of(300)
    every = [[part(X)] for X in tables]
    many = native.solve_many(every, 1 << 16, 1e-12, 60, 940, 0.0, 2)
    assert many.settled.mean() > 0.8
    for k, parts in enumerate(every):
        sums, _, (ids, *table), *_ = native.observe(parts, 1, 1, 1.0, 1 << 16, False)
        keys, _, by_pattern = table
        found = native.solve_plain(keys, by_pattern, 1e-12, 60, 940)
        assert many.settled[k] == (found is not None)
        if found is None:
            with pytest.raises(ValueError, match="was not settled"):
                many.factors(k)
            continue
        for own, right in zip(many.statistics(k), (ids, *table), strict=True):
            assert own.dtype == right.dtype
            np.testing.assert_array_equal(own, right, strict=True)
        for own, right in zip(many.solution(k), found, strict=True):
            np.testing.assert_array_equal(own, right)
        native.expand_rows(sums[0], ids, found[1], 1)
        np.testing.assert_array_equal(many.factors(k)[0], sums[0])
        np.testing.assert_array_equal(many.factors(k)[1], found[2])


@pytest.mark.parametrize("bad", [nan, np.inf, -1.0, 0.0, 1.7e308, 1e-310])
def test_what_needs_more_is_left_to_others(kernel, bad):
    good, worse = np.ones((3, 3)), np.ones((3, 3))
    worse[:, 1] = bad
    if bad == 1e-310:
        worse[:] = bad
    tables = [[part(good)], [part(worse)], [part(good)]]
    many = kernel.solve_many(tables, 1 << 16, 1e-12, 60, 940, 1e-300, 1)
    is_native = kernel.__name__.endswith("_native")
    assert many.settled.tolist() == [is_native, False, is_native]
    with pytest.raises(ValueError, match="was not settled"):
        many.statistics(1)
    with pytest.raises(ValueError, match="no such table"):
        many.solution(3)


def test_no_tables(kernel):
    none = kernel.solve_many([], 1 << 16, 1e-12, 60, 940, 0.0, 2)
    assert none.settled.shape == (0,)
