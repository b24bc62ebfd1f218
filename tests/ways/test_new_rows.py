"""New rows over every table, by every way in: one rule, never by position."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import a1gm
from a1gm import RankOneImputer, RankOneNMF
from a1gm.exceptions import EmptyLineWarning, UndeterminedWarning
from ways.oracle import Oracle
from ways.tables import TABLES, new_rows
from ways.ways import WAYS, noted, ways_with

nan = np.nan
SEVERAL = "positive in two blocks"

tables = pytest.mark.parametrize("table", TABLES)
filling = pytest.mark.parametrize("way", ways_with("fill"))
placing = pytest.mark.parametrize("way", ways_with("transform"))


def rows_for(way: str, right: Oracle) -> dict[str, np.ndarray]:
    """The new rows as this way sees them."""
    found = new_rows(right.X, right)
    return {kind: WAYS[way].seen(rows) for kind, rows in found.items()}


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
    if way != "command":  # which has printed it
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
    assert found.classes == {EmptyLineWarning}


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
    assert found.classes == {EmptyLineWarning}


# ------------------------------------------------------------- the rule by example
def two_blocks():
    return np.array(
        [[1, 2, nan, nan], [2, 4, nan, nan], [nan, nan, 3, 1], [nan, nan, 6, 2]]
    )


def test_each_hole_is_filled_by_its_own_block():
    fit = a1gm.fit(two_blocks(), on_undetermined="ignore")
    row = np.array([[1.0, nan, 3.0, nan]])
    np.testing.assert_allclose(fit.impute(row), [[1.0, 2.0, 3.0, 1.0]], rtol=1e-12)
    with pytest.warns(EmptyLineWarning, match="block"):
        assert np.isnan(fit.transform(row)).all()


def test_another_table_of_the_same_shape():
    X = np.array([[1.0, 2.0], [2.0, nan]])
    fit = a1gm.fit(X)
    other = np.array([[1.0, 2.0], [100.0, nan]])
    np.testing.assert_allclose(fit.impute(other), [[1.0, 2.0], [100.0, 200.0]])


def test_labels_of_rows_do_not_matter_and_columns_are_found_by_name():
    frame = pd.DataFrame(
        {"x": [1.0, 2.0], "y": [2.0, nan], "z": [3.0, 6.0]}, index=["a", "b"]
    )
    fit = a1gm.fit(frame)
    rows = pd.DataFrame({"x": [5.0], "y": [nan], "z": [15.0]}, index=["new"])
    filled = fit.impute(rows)
    assert list(filled.index) == ["new"]
    assert filled["y"].tolist() == pytest.approx([10.0])
    assert fit.transform(rows) == pytest.approx([30.0])


def test_the_rule_is_the_same_for_every_number_of_rows():
    fit = a1gm.fit(TABLES["random holes"])
    rows = 3.0 * TABLES["random holes"]
    whole = fit.impute(rows)
    one_by_one = np.vstack([fit.impute(rows[[i]]) for i in range(len(rows))])
    np.testing.assert_allclose(one_by_one, whole, rtol=1e-12)


def test_estimators_follow_the_rule_of_the_fit():
    X, row = two_blocks(), np.array([[1.0, nan, 3.0, nan]])
    np.testing.assert_allclose(
        RankOneImputer().fit(X).transform(row), [[1.0, 2.0, 3.0, 1.0]], rtol=1e-12
    )
    with noted():
        model = RankOneNMF().fit(X)
    with pytest.warns(EmptyLineWarning):
        assert np.isnan(model.transform(row)).all()
