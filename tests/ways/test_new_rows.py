"""New rows over every table, by every way in: one rule, never by position."""

from __future__ import annotations

import numpy as np
import pytest

from a1gm.exceptions import EmptyLineWarning, UndeterminedWarning
from ways import containers
from ways.oracle import Oracle
from ways.tables import TABLES, new_rows
from ways.ways import MAKERS, WAYS, noted, ways_with

SEVERAL = "positive in two blocks"

tables = pytest.mark.parametrize("table", TABLES)
filling = pytest.mark.parametrize("way", ways_with("fill"))
placing = pytest.mark.parametrize("way", ways_with("transform"))

#: Ways whose new rows are an array.
NAMELESS = {
    *("C array", "Fortran array", "float32 array", "lists", "masked array", "sparse"),
    *("pieces without rows", "Dask array", "RankOneImputer", *MAKERS),
}


def rows_for(way: str, right: Oracle) -> dict[str, np.ndarray]:
    """The new rows as this way sees them."""
    found = new_rows(right.X, right)
    return {kind: WAYS[way].seen(rows) for kind, rows in found.items()}


def warns(way: str) -> bool:
    """Whether a way warns about rows: a lazy one does not know them."""
    return "warnings of rows" not in WAYS[way].lacks


def compare_by_kind(kinds, found, right, rtol, settled=None):
    start = 0
    for kind, rows in kinds.items():
        part = slice(start, start + len(rows))
        start = part.stop
        ours, truth = found[part], right[part]
        if settled is not None:
            ours = np.where(settled[part], ours, truth)
        np.testing.assert_allclose(ours, truth, rtol=rtol, atol=0.0, err_msg=kind)


@tables
@filling
def test_holes_are_filled_by_the_cells_of_their_row(asked, way, table):
    answers, right = asked(way, table)
    kinds = rows_for(way, right)
    rows = np.vstack(list(kinds.values()))
    before = rows.copy()
    with noted() as found:
        filled = answers.fill(rows)
    truth = right.fill(rows)
    np.testing.assert_array_equal(rows, before)
    compare_by_kind(kinds, filled, truth, WAYS[way].rtol, right.settled(rows))
    if warns(way) and way != "command":  # which has printed it
        assert UndeterminedWarning in found.classes  # one row has no cell at all


@tables
@placing
def test_rows_are_placed_by_their_own_cells(asked, way, table):
    answers, right = asked(way, table)
    kinds = rows_for(way, right)
    rows = np.vstack(list(kinds.values()))
    with noted() as found:
        factors = answers.transform(rows)
    compare_by_kind(kinds, factors, right.transform(rows), WAYS[way].rtol)
    assert found.classes == ({EmptyLineWarning} if warns(way) else set())


@pytest.mark.parametrize("table", ["random holes", "whole numbers", "three blocks"])
@pytest.mark.parametrize("way", sorted(set(ways_with("fill")) - NAMELESS))
def test_columns_are_matched_by_name(asked, way, table, monkeypatch):
    answers, right = asked(way, table)
    rows = np.vstack(list(rows_for(way, right).values()))
    order = np.roll(np.arange(rows.shape[1])[::-1], 1)
    names = np.array(containers.names_of(rows))[order].tolist()
    monkeypatch.setattr(containers, "names_of", lambda _: names)
    with noted():
        filled = answers.fill(rows[:, order])
    settled = right.settled(rows)
    truth = right.fill(rows)
    ours = np.where(settled[:, order], filled, truth[:, order])
    rtol = WAYS[way].rtol
    np.testing.assert_allclose(ours, truth[:, order], rtol=rtol, atol=0.0)
    if "transform" not in WAYS[way].lacks:
        with noted():
            factors = answers.transform(rows[:, order])
        np.testing.assert_allclose(factors, right.transform(rows), rtol=rtol, atol=0.0)


@tables
@filling
def test_another_table_of_the_same_shape_gets_its_own_factors(asked, way, table):
    answers, right = asked(way, table)
    for other in (50.0 * right.X, right.X[::-1].copy()):
        with noted():
            filled = answers.fill(other)
        truth = right.fill(other)
        np.testing.assert_allclose(filled, truth, rtol=WAYS[way].rtol, atol=0.0)


@pytest.mark.parametrize("name", [n for n in TABLES if n.endswith("blocks")])
@placing
def test_rows_of_several_blocks_have_no_single_factor(asked, way, name):
    answers, right = asked(way, name)
    rows = rows_for(way, right)[SEVERAL]
    with noted() as found:
        factors = answers.transform(rows)
    assert np.isnan(factors).all()
    assert found.classes == ({EmptyLineWarning} if warns(way) else set())
