"""Tables of patterns: any cutting of the rows, any order, any place, one answer."""

from __future__ import annotations

import numpy as np
import pytest
from support.tables import gamma_table

import a1gm
from a1gm import PatternTable
from a1gm.exceptions import (
    DataError,
    NegativeValuesError,
    ParameterError,
    TableTooLargeError,
)

SAME = 1e-12  # sums are compensated: only the last division rounds


def count(X: np.ndarray, cuts: int, **options: object) -> PatternTable:
    table = PatternTable(**options)  # type: ignore[arg-type]
    for k, rows in enumerate(np.array_split(X, cuts)):
        table.update(rows, key=("file", k))
    return table


@pytest.mark.parametrize("cuts", [1, 2, 7, 300])
def test_any_cutting_gives_the_fit_of_the_whole(cuts: int) -> None:
    X = gamma_table(300)
    whole, pieces = a1gm.fit(X), count(X, cuts).solve()
    np.testing.assert_allclose(pieces.col_factor, whole.col_factor, rtol=SAME)
    np.testing.assert_allclose(pieces.row_factor, whole.row_factor, rtol=SAME)
    assert pieces.certificate <= 1e-10


def test_row_56_order_of_merging_changes_nothing() -> None:
    X = gamma_table(300)
    pieces = [
        PatternTable(keep_rows=False).update(rows, key=k)
        for k, rows in enumerate(np.array_split(X, 9))
    ]
    factors = []
    for order in (range(9), reversed(range(9)), [4, 8, 0, 1, 7, 3, 2, 6, 5]):
        table = PatternTable(keep_rows=False)
        for k in order:
            table.merge(pieces[k])
        factors.append(table.solve().col_factor)
    np.testing.assert_allclose(factors[1], factors[0], rtol=SAME)
    np.testing.assert_allclose(factors[2], factors[0], rtol=SAME)


def test_row_54_a_block_counts_once() -> None:
    X = gamma_table(300)
    table = count(X, 3)
    table.update(X[:100], key=("file", 0))  # late, and known already
    assert table.n_rows == len(X)
    table.merge(count(X, 3))
    assert table.n_rows == len(X)


def test_tables_that_overlap_in_part_are_refused() -> None:
    X = gamma_table(300)
    one, two = PatternTable(), PatternTable()
    one.update(X[:9], key=0).update(X[9:20], key=1)
    two.update(X[9:20], key=1).update(X[20:], key=2)
    with pytest.raises(DataError, match="share some of their pieces"):
        one.merge(two)
    assert one.n_rows == 20


def test_a_refused_piece_changes_nothing() -> None:
    X = gamma_table(300)
    table = count(X, 2)
    before = table.to_bytes()
    bad = X.copy()
    bad[3, 2] = -1.0
    with pytest.raises(NegativeValuesError, match=r"X\[303, 2\]"):
        table.update(bad)
    with pytest.raises(DataError, match="has 5 columns, the table has 6"):
        table.update(X[:, 1:])
    assert table.to_bytes() == before


@pytest.mark.parametrize("keep_rows", [True, False])
def test_bytes_there_and_back(keep_rows: bool) -> None:
    X = gamma_table(300, m=70)
    table = count(X, 4, keep_rows=keep_rows)
    again = PatternTable.from_bytes(table.to_bytes())
    assert again.pieces == table.pieces
    assert repr(again) == repr(table)
    fit, same = table.solve(), again.solve()
    assert np.array_equal(fit.col_factor, same.col_factor)
    if keep_rows:
        assert np.array_equal(fit.row_factor, same.row_factor)


def test_a_table_with_signs_is_merged_where_they_are_allowed() -> None:
    signed = PatternTable(negatives="allow").update(np.array([[-1.0, 3.0]]))
    plain = PatternTable().update(np.ones((1, 2)))
    with pytest.raises(DataError, match='needs negatives="allow"'):
        plain.merge(signed)
    assert plain.n_rows == 1
    again = PatternTable.from_bytes(signed.merge(plain).to_bytes())
    np.testing.assert_allclose(again.solve().col_factor, [0.0, 1.0], atol=1e-12)


def test_empty_table_travels_and_does_not_solve() -> None:
    table = PatternTable(3)
    table._pieces.add("empty")
    table = PatternTable.from_bytes(table.to_bytes())
    assert table.pieces == {"empty"}
    with pytest.raises(ParameterError, match="no rows yet"):
        table.solve()
    full = PatternTable().update(np.ones((2, 3)), key=0).merge(table)
    assert full.pieces == {"empty", 0}


def test_odd_keys_are_refused_when_written() -> None:
    table = PatternTable().update(np.ones((1, 2)), key=frozenset({1}))
    with pytest.raises(ParameterError, match="cannot be written"):
        table.to_bytes()


def test_rows_22_and_57_size_is_estimated_before_growing() -> None:
    X = gamma_table(300, m=12)
    table = PatternTable(max_bytes=20_000).update(X[:10], key=0)
    before = table.to_bytes()
    with pytest.raises(TableTooLargeError, match=r"would need [\d,]+ bytes.*max_bytes"):
        table.update(X)
    assert table.to_bytes() == before
    assert table.nbytes < 20_000


@pytest.mark.parametrize("bad", [None, "1 GB", 0, -1, np.nan, True])
def test_a_limit_that_is_none_is_refused(bad) -> None:
    """Seen: '>' not supported between instances of 'int' and 'NoneType'."""
    with pytest.raises(ParameterError, match=r"max_bytes must be .*got"):
        PatternTable(max_bytes=bad)
    assert PatternTable(max_bytes=1e6).update(np.ones((2, 3))).n_rows == 2


def test_only_tables_are_merged() -> None:
    with pytest.raises(ParameterError, match="takes a PatternTable, got NoneType"):
        PatternTable().merge(None)  # type: ignore[arg-type]
