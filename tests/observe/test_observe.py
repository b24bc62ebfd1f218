"""One pass over a table finds what its cells say."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from scipy.sparse import csr_array
from support.tables import make_table, tables

from a1gm._observe.observe import TABLE_CELLS, observe
from a1gm._rows import read_input
from a1gm.exceptions import (
    InfiniteValuesError,
    NegativeValuesError,
    NotRepresentableError,
)


def by_hand(X: np.ndarray) -> dict[bytes, tuple[int, np.ndarray]]:
    """Rows and column sums of every distinct pattern."""
    found: dict[bytes, tuple[int, np.ndarray]] = {}
    for row in X:
        key = (~np.isnan(row)).tobytes()
        count, sums = found.get(key, (0, np.zeros(X.shape[1])))
        found[key] = count + 1, sums + np.nan_to_num(row)
    return found


@given(tables(max_rows=40, max_cols=9, zeros=0.2))
def test_the_pattern_table_is_that_of_the_rows(X):
    table = seen = observe(read_input(X))
    assert table.is_table
    expected = by_hand(X)
    assert table.n_patterns == len(expected)
    observed_cells = table.observed_cells(slice(0, table.n_patterns))
    found = zip(observed_cells, table.counts, table.sums, strict=True)
    for observed, count, sums in found:
        n, total = expected[observed.tobytes()]
        assert count == n
        np.testing.assert_allclose(sums, total, rtol=1e-13)
    np.testing.assert_allclose(seen.sum_of_row, np.nansum(X, axis=1), rtol=1e-13)
    np.testing.assert_array_equal(
        table.observed_cells(seen.pattern_of_row), ~np.isnan(X)
    )
    assert seen.n_negative == 0
    assert seen.n_rows == len(X)


def test_patterns_are_numbered_in_order_of_appearance():
    X = make_table("at random", 200, 5, seed=1)
    of_row = observe(read_input(X)).pattern_of_row
    _, first = np.unique(of_row, return_index=True)
    assert (np.diff(first) > 0).all()


@pytest.mark.parametrize("n_threads", [1, 2, 5])
@pytest.mark.parametrize("zeros", [0.0, 0.01])
def test_a_wide_table_keeps_margins_and_bits(n_threads, zeros):
    X = make_table("at random", 3_000, 400, seed=2, zeros=zeros)
    wide = observe(read_input(X), n_threads=n_threads)
    kept = observe(read_input(X), n_threads=n_threads, keep_table=True)
    assert wide.is_mask
    assert kept.is_table
    assert wide.pattern_of_row is None
    np.testing.assert_array_equal(wide.observed_cells(slice(0, len(X))), ~np.isnan(X))
    np.testing.assert_allclose(wide.row_sums, np.nansum(X, axis=1), rtol=1e-12)
    for found in (wide, kept):
        np.testing.assert_allclose(found.col_sums, np.nansum(X, axis=0), rtol=1e-12)
    assert (wide.positive is not None) == (zeros > 0.0)


def test_few_patterns_stay_a_table_however_large():
    X = make_table("few patterns", 20_000, 100, seed=3)
    table = observe(read_input(X))
    assert table.is_table
    assert table.n_patterns * table.n_cols < TABLE_CELLS
    assert table.counts.sum() == 20_000


@pytest.mark.parametrize("bad", [2e140, -2e140, 9e-141, 5e-324])
@pytest.mark.parametrize("form", [np.asarray, np.asfortranarray, csr_array])
def test_cells_and_sums_out_of_range_are_named(bad, form):
    X = form(np.array([[1.0, 2.0, 0.0], [0.0, 0.0, bad]]))
    rows = read_input(X, absent="zero" if form is csr_array else None)
    with pytest.raises(NotRepresentableError, match="power of ten") as error:
        observe(rows, negatives="allow", row_offset=10)
    assert error.value.where == ("X[11, 2]" if abs(bad) > 1.0 else "Row 11")


def test_negative_cells_are_counted_when_allowed():
    X = np.array([[1.0, -2.0], [-3.0, 9.0]])
    assert observe(read_input(X), negatives="allow").n_negative == 2
    with pytest.raises(NegativeValuesError, match=r"X\[0, 1\] = -2 \(2 in all\)"):
        observe(read_input(X))


def test_rows_of_a_later_piece_are_named_by_their_place_in_the_whole():
    X = np.array([[1.0, 2.0], [1.0, np.inf]])
    with pytest.raises(InfiniteValuesError, match=r"X\[1001, 1\]"):
        observe(read_input(X), row_offset=1000)
    with pytest.raises(NegativeValuesError, match=r"X\[1001, 1\]"):
        observe(read_input(-np.sign(X) * [[0, 0], [0, 1]]), row_offset=1000)
