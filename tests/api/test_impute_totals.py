"""``impute`` with totals: fills that respect published totals."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse
from support.real_tables import REAL, hidden

import a1gm
from a1gm.exceptions import (
    DataError,
    LabelError,
    ParameterError,
    TotalsError,
    UndeterminedError,
)

nan = np.nan
#: Mean absolute error of hidden cells to totals over that of plain fills, at most.
NEARER = {"mobility": 0.35, "hair and eyes": 0.1, "passengers": 0.7}


def totals_of(table, unknown=0.0, rng=None):
    rows, cols = table.sum(axis=1), table.sum(axis=0)
    if unknown:
        for totals in (rows, cols):
            totals[rng.random(len(totals)) < unknown] = nan
    return rows, cols


@pytest.mark.parametrize("name", REAL)
@pytest.mark.parametrize("unknown", [0.0, 0.5])
def test_hidden_cells_of_real_tables(name, unknown):
    table, plain, to_totals = REAL[name], 0.0, 0.0
    for seed in range(20):
        rng = np.random.default_rng(seed)
        X = hidden(table, 0.3, rng)
        holes = np.isnan(X)
        first = a1gm.impute(X, on_undetermined="ignore")
        if np.isnan(first).any():
            continue
        rows, cols = totals_of(table, unknown, rng)
        filled = a1gm.impute(X, row_totals=rows, col_totals=cols)
        assert np.array_equal(filled[~holes], X[~holes])
        for sums, totals in ((filled.sum(axis=1), rows), (filled.sum(axis=0), cols)):
            known = ~np.isnan(totals)
            np.testing.assert_allclose(sums[known], totals[known], rtol=1e-10)
        plain += np.abs(first - table)[holes].sum()
        to_totals += np.abs(filled - table)[holes].sum()
    assert to_totals < plain * (1.0 if unknown else NEARER[name])


def test_ways_in_agree():
    table = REAL["mobility"]
    X = hidden(table, 0.3, np.random.default_rng(0))
    rows, cols = totals_of(table)
    expected = a1gm.impute(X, row_totals=rows, col_totals=cols)
    same = {"rtol": 1e-12}
    fit = a1gm.fit(X)
    np.testing.assert_allclose(
        fit.impute(X, row_totals=rows, col_totals=cols), expected, **same
    )
    names = [f"c{k}" for k in range(8)]
    frame = pd.DataFrame(X, index=list("abcdefgh"), columns=names)
    by_name = {
        "row_totals": dict(zip("hgfedcba", rows[::-1], strict=True)),
        "col_totals": pd.Series(cols[::-1], names[::-1]),
    }
    filled = a1gm.impute(frame, **by_name)
    assert filled.index.tolist() == list("abcdefgh")
    np.testing.assert_allclose(filled.to_numpy(), expected, **same)
    mine = pl.DataFrame(
        {"group": list("abcdefgh"), **dict(zip(names, X.T, strict=True))}
    )
    filled = a1gm.impute(mine.fill_nan(None), **by_name)
    np.testing.assert_allclose(filled[:, 1:].to_numpy(), expected, **same)
    S = sparse.csr_array(X)
    filled = a1gm.impute(S, absent="zero", row_totals=rows, col_totals=cols)
    np.testing.assert_allclose(filled.toarray(), expected, **same)


def test_totals_of_new_rows():
    fit = a1gm.fit([[1.0, 2.0, 3.0], [2.0, 4.0, nan]])
    filled = fit.impute([[1.0, nan, nan]], row_totals=[11])
    np.testing.assert_allclose(filled, [[1.0, 4.0, 6.0]], rtol=1e-14)


def test_totals_fill_what_the_data_do_not_determine():
    X = np.array([[1.0, nan], [nan, 1.0]])
    filled = a1gm.impute(X, row_totals=[3, 4], col_totals=[4, 3])
    np.testing.assert_allclose(filled, [[1, 2], [3, 1]], rtol=1e-12)
    X = np.array([[1.0, 2.0, nan], [nan, nan, nan], [3.0, 6.0, nan]])
    filled = a1gm.impute(X, row_totals=[6, 12, 18], col_totals=[6, 12, 18])
    np.testing.assert_allclose(filled, np.outer([1, 2, 3], [1, 2, 3]), rtol=1e-12)
    with pytest.raises(UndeterminedError, match=r"determine 5 missing cells.*lacks it"):
        a1gm.impute(X, row_totals=[6, 12, 18])


def test_a_table_without_any_cell_has_no_fills():
    """Totals alone do not say what it is like; a seed does: here that all are alike."""
    rows, cols = [10, 20, 30], [40, 20]
    with pytest.raises(DataError, match="every cell is missing"):
        a1gm.impute(np.full((3, 2), nan), row_totals=rows, col_totals=cols)
    table = a1gm.scale(np.ones((3, 2)), rows, cols).table
    np.testing.assert_allclose(table, np.outer(rows, cols) / 60, rtol=1e-14)


def test_no_fill_has_the_totals():
    X = np.array([[1.0, nan], [2.0, 3.0]])
    with pytest.raises(TotalsError, match="observed cells of row 1 sum to 5, more"):
        a1gm.impute(X, row_totals=[4, 4])
    with pytest.raises(TotalsError, match="Row 1 needs 1 besides the observed cells"):
        a1gm.impute(X, row_totals=[4, 6])
    with pytest.raises(LabelError, match="the table have no names"):
        a1gm.impute(X, row_totals={"a": 6})


def test_rounding_would_break_totals():
    fit = a1gm.fit([[1.0, 2.0], [2.0, nan]])
    with pytest.raises(ParameterError, match="Leave out round="):
        fit.impute([[1.0, nan]], row_totals=[2.5], round=0)
    with pytest.raises(ParameterError, match="Leave out interval="):
        a1gm.impute([[1.0, nan], [1, 1]], row_totals=[2.5, 2], interval=0.9)
