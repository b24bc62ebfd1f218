"""Hints: warnings from the first rows, which decide nothing."""

import numpy as np
import pytest

from a1gm._rows.columns import choose
from a1gm._rows.hints import hints

nan = np.nan
RNG = np.random.default_rng(0)


def said(columns, **options):
    """Texts of the hints on some columns; lists of text are text columns."""
    kinds = {
        name: "text" if isinstance(cells[0], str) else "number"
        for name, cells in columns.items()
    }
    arrays = {
        name: np.array(cells, float) if kinds[name] == "number" else cells
        for name, cells in columns.items()
    }
    return [str(h) for h in hints(arrays, choose(kinds), name="X", **options)]


SHOPS, WEEKS = ["a", "a", "a", "b", "b", "b"], [1, 2, 3] * 2
UNITS = [5.5, 7, 9.5, 1, 3, 2]


@pytest.mark.parametrize(
    ("columns", "call"),
    [
        (
            {"shop": SHOPS, "week": WEEKS, "units": UNITS},
            "a1gm.fit_long(X, keys=['shop', 'week'], value='units')",
        ),
        (  # further number columns
            {"shop": SHOPS, "week": WEEKS, "units": UNITS, "price": UNITS[::-1]},
            "a1gm.fit_long(X, keys=['shop', 'week'], value='units')",
        ),
        (
            {
                "product": ["p"] * 6 + ["q"] * 6,
                "shop": SHOPS * 2,
                "week": WEEKS * 2,
                "units": UNITS * 2,
            },
            "a1gm.fit_groups(X, by='product', keys=['shop', 'week'], value='units')",
        ),
        (  # keys among the numbers
            {
                "a": np.repeat(np.arange(4), 5),
                "b": np.tile(np.arange(5), 4),
                "units": RNG.random(20),
            },
            "a1gm.fit_long(X, keys=['a', 'b'], value='units')",
        ),
    ],
)
def test_one_row_per_cell(columns, call):
    (text,) = said(columns)
    assert text == f"X: if it has one row per cell, fit it with {call}."
    (text,) = said(columns, in_file=True)
    assert call.replace("(X,", "(frame,") in text


@pytest.mark.parametrize(
    ("names", "is_hinted"),
    [(["4.5", "2"], True), (["3", "1", "2"], True), (["1", "2", "3"], False)],
)
def test_names_that_are_numbers(names, is_hinted):
    table = {name: [5.0, 1.0] for name in names}
    assert [("add a header" in text) for text in said(table, in_file=True)] == (
        [True] * is_hinted
    )


@pytest.mark.parametrize(
    "columns",
    [
        {"shop": list("abcdef"), "city": list("xxyyzz"), "units": UNITS},
        {"shop": SHOPS, "week": [1, 2, 2] * 2, "units": UNITS},  # a pair twice
        {"x": RNG.poisson(5, 20), "y": RNG.poisson(5, 20), "z": RNG.random(20)},
        {"a": UNITS, "b": UNITS, "c": UNITS},
    ],
)
def test_other_tables_are_not_long(columns):
    assert said(columns) == []


def test_a_column_that_only_rises():
    counts = {"x": [11, 12, 13, 17, 18, 19], "y": UNITS}
    (text,) = said(counts)
    assert "column 'x' holds whole numbers that only rise" in text
    assert "id=['x']" in text
    assert said({"x": counts["x"], "y": UNITS, "z": counts["x"]}) == []  # sorted data
    assert said({"x": [11, 12, 12, 17, 18, 19], "y": UNITS}) == []
    assert said({"x": [1, 2, 3], "y": [5, 1, 2]}) == []  # by chance
    assert said(counts, is_asked=True) == []


def test_a_cumulative_triangle():
    triangle = np.cumsum(RNG.gamma(3, 100, (4, 4)), axis=1)
    triangle[np.add.outer(range(4), range(4)) > 3] = nan
    (text,) = said(dict(zip("abcd", triangle.T, strict=True)))
    assert "fit the increments" in text
    increments = np.diff(triangle, prepend=0.0, axis=1)
    increments[0, 1] = increments[0, 0] - 1.0
    assert said(dict(zip("abcd", increments.T, strict=True))) == []


TABLE = {"shop": list("abc"), "jan": [1, 2, 3], "feb": [2, nan, 6], "mar": [3, 6, 9]}


@pytest.mark.parametrize("name", ["Total", "SUM", "Grand total", "row_total", "Summe"])
def test_totals(name):
    (text,) = said({**TABLE, name: [6, 8, 18]})
    assert f"column {name!r} looks like the total of the others" in text
    assert f"exclude=[{name!r}] leaves it out" in text
    rows = {"shop": [*"abc", name], "jan": [1, 2, 3, 6], "feb": [2, nan, 6, 8]}
    (text,) = said(rows)
    assert f"row {name!r} looks like the total of the others" in text
    assert said(rows, n_rows=5) == []  # not the last row
    assert said({**TABLE, name: [60, 8, 18]}) == []
    assert said({**TABLE, "summer": [6, 8, 18]}) == []


GERMAN = {"jan": [1.329, 821, 629, 221], "feb": [1.201, nan, 578, 195]}


def test_points_that_may_separate_thousands():
    table = {**GERMAN, "mar": [1.439, 970, nan, 239]}
    (text,) = said(table, decimal=None)
    assert "three digits behind the point (1.329, 1.201, 1.439)" in text
    assert "pass decimal=',' and thousands='.'; if not, decimal='.'" in text
    assert said(table) == []
    assert len(said(table, decimal=None, is_asked=True)) == 1


@pytest.mark.parametrize(
    "cells",
    [
        [1.329, 2.507, 0.821, 970, 5],  # below one
        [1.329, 2.507, 1.5678, 970, 5],  # another number of digits
        [1.329, 2.507, 1.125, 1, 2],  # no large whole number
        [1.329, 2.507, 1.125, 1000, 970],  # a thousand without a mark
        [1.329, 2.507, 970, 5, 7],  # only two
        [970, 5, 7, 8, 9],
    ],
)
def test_decimal_points(cells):
    assert said({"jan": cells, "feb": [5, 7, 1, 2, 1]}, decimal=None) == []


@pytest.mark.parametrize(
    ("cells", "part"),
    [
        (["$5", "$7.50"], "take the sign off"),
        (["(5)", "(7)"], "write it as -5"),
        (["5 %", "7 %"], "take the sign off"),
        (["1,5", "2,5"], "convert"),
        (["ok", "late"], None),
        (["ok", "5"], None),
    ],
)
def test_numbers_written_as_text(cells, part):
    found = said({"x": [5, 1], "y": cells})
    assert len(found) == (part is not None)
    if part:
        assert "column 'y' is text such as" in found[0]
        assert part in found[0]
