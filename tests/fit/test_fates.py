"""What the data say of each missing cell."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from support import oracles
from support.tables import quiet, tables

import a1gm
from a1gm._fit import place
from a1gm._fit.place import FATES, UndeterminedCell, UndeterminedCells

nan = np.nan
pytestmark = quiet


@given(tables(max_rows=10, max_cols=8, zeros=0.5))
def test_counts_and_cells_agree(X):
    fit = a1gm.fit(X)
    expected = oracles.fates(X)
    hole = np.isnan(X)
    counts = fit._fates.totals.fates
    for kind in set(FATES):
        n = sum(int(counts[k]) for k, name in enumerate(FATES) if name == kind)
        assert n == int((expected[hole] == kind).sum())
    cells = fit.undetermined
    assert len(cells) == fit.n_undetermined
    places = list(zip(cells.row.tolist(), cells.column.tolist(), strict=True))
    assert places == sorted(places)
    assert all(expected[c.row, c.column] == c.kind for c in cells)


@pytest.mark.parametrize("cells", [1, 5, 17])
def test_small_blocks_change_nothing(cells, monkeypatch):
    rng = np.random.default_rng(1)
    X = rng.integers(0, 3, (30, 7)).astype(float)
    X[rng.random(X.shape) < 0.5] = nan
    whole = list(a1gm.fit(X).undetermined)
    monkeypatch.setattr(place, "CELLS_AT_ONCE", cells)
    monkeypatch.setattr("a1gm._observe.patterns.CELLS_AT_ONCE", cells)
    assert list(a1gm.fit(X).undetermined) == whole


def test_cells_behave_like_a_list_of_tuples():
    cells = UndeterminedCells(np.array([0, 2]), np.array([1, 3]), np.array([2, 3]))
    assert len(cells) == 2
    assert cells[0] == (0, 1, "unbounded")
    assert isinstance(cells[-1], UndeterminedCell)
    assert cells[-1].kind == "undetermined"
    assert list(cells[1:]) == [cells[1]]
    assert cells.kind.tolist() == ["unbounded", "undetermined"]
    assert (2, 3, "undetermined") in cells
    assert "2 undetermined cells" in repr(cells)
    assert repr(cells[:0]) == "<0 undetermined cells>"
    with pytest.raises(IndexError):
        cells[2]


def test_the_repr_of_many_cells_is_short():
    many = np.arange(1000)
    cells = UndeterminedCells(many, many, np.full(1000, 3))
    assert len(repr(cells)) < 200
    assert "..." in repr(cells)


def test_blocks_of_rows_in_files_are_numbered_where_they_are_looked_at(
    tmp_path, monkeypatch
):
    for module in ("table", "place"):
        monkeypatch.setattr(f"a1gm._fit.{module}.ROWS_AT_ONCE", 3)
    X = np.array(
        [
            [nan, nan, nan, nan, nan],
            [0, nan, 0, nan, nan],
            [nan, nan, 3, 4, nan],
            [1, 2, nan, nan, nan],
            [nan, 0, nan, nan, nan],
            [2, nan, nan, nan, nan],
            [nan, nan, nan, 5, nan],
            [nan, nan, nan, nan, 0],
        ]
    )
    pd.DataFrame(X, columns=list("abcde")).to_parquet(tmp_path / "a.parquet")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fit, lazy = a1gm.fit(X), a1gm.fit_file(tmp_path / "a.parquet")
    assert fit.row_block.tolist() == [-1, -1, 0, 1, -1, 1, 0, -1]
    assert fit.col_block.tolist() == [1, 1, 0, 0, -1]
    assert fit.n_blocks == 2
    assert lazy.row_block[:].tolist() == fit.row_block.tolist()
    assert [lazy.row_block[k] for k in range(8)] == fit.row_block.tolist()
    assert lazy.row_block[2:7].tolist() == fit.row_block[2:7].tolist()
    assert lazy.row_block[[3, 0]].tolist() == [1, -1]
    assert lazy.col_block.tolist() == fit.col_block.tolist()
