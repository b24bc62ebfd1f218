"""Hints: warnings from the first rows, which decide nothing."""

import numpy as np
import pytest

from a1gm._rows.columns import choose
from a1gm._rows.hints import hints

nan = np.nan
RNG = np.random.default_rng(0)


def said(columns, n_rows=None, **options):
    """Texts of the hints on some columns; lists of text are text columns."""
    kinds = {
        name: "text" if isinstance(cells[0], str) else "number"
        for name, cells in columns.items()
    }
    arrays = {
        name: np.array(cells, float) if kinds[name] == "number" else cells
        for name, cells in columns.items()
    }
    n_rows = n_rows or len(next(iter(arrays.values())))
    return [str(h) for h in hints(arrays, choose(kinds), n_rows, **options)]


SHOPS = ["a", "a", "a", "b", "b", "b"]
WEEKS = ["w1", "w2", "w3"] * 2
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
            "a1gm.fit_long(X, keys=['product', 'shop', 'week'], value='units')",
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
    assert text == f"X: it may have one row per cell. Then fit it with {call}."
    (text,) = said(columns, in_file=True)
    assert call.replace("(X,", "(frame,") in text


TABLE = {"shop": list("abc"), "jan": [1, 2, 3], "feb": [2, nan, 6], "mar": [3, 6, 9]}
RANDOM = {"x": RNG.poisson(5, 20), "y": RNG.poisson(5, 20), "z": 9 * RNG.random(20)}
RISING = [11, 12, 13, 17, 18, 19]
TRIANGLE = np.cumsum(RNG.gamma(3, 100, (4, 4)), axis=1)
TRIANGLE[np.add.outer(range(4), range(4)) > 3] = nan
INCREMENTS = np.diff(TRIANGLE, prepend=0.0, axis=1)
INCREMENTS[0, 1] = INCREMENTS[0, 0] - 1.0
RECOVERED = np.where(np.add.outer(range(8), range(8)) < 8, np.arange(1.0, 9.0), nan)
RECOVERED[1, 3] = 2.5  # less than the year before: a recovery
RATINGS = {
    "user": [f"u{k}" for k in RNG.integers(1, 40, 200)],
    "item": [f"i{k}" for k in RNG.integers(1, 25, 200)],
    "rating": RNG.integers(1, 6, 200).tolist(),
}
SUMS = "All", "Total", "SUM", "Grand total", "row_total", "Summe"
TOTAL = "looks like the total of the others"


PAID = np.where(np.add.outer(range(8), range(8)) < 8, RNG.gamma(3, 100, (8, 8)), nan)
PAID[3, 2] = nan
SCATTERED = np.where(RNG.random((12, 8)) < 0.3, nan, RNG.gamma(3, 100, (12, 8)))
MEANS = np.outer(RNG.gamma(1, 1, 60), RNG.gamma(2, 1, 8))
INTENSITIES = np.exp(RNG.normal(13, 1.5, (60, 1)) + RNG.normal(0, 0.3, (60, 8)))
INTENSITIES.ravel()[RNG.permutation(480)[:130]] = 0.0
COUNTS = RNG.poisson(2 * MEANS)
CODES = RNG.integers(0, 3, (60, 8)) * RNG.integers(0, 2, (60, 1))
LOGARITHMS = RNG.normal(20, 3, (60, 1)) + RNG.normal(0, 0.5, (60, 8))
MEASURES = RNG.lognormal(np.log([1000, 20, 0.5, 7, 300]), 0.5, (60, 5))
CITIES = np.repeat(["Oslo", "Rome", "Bern", "Kiel", "Lyon"], 12).tolist()
MONTHS = [f"m{k}" for k in range(12)] * 5
PANEL = {"city": CITIES, "month": MONTHS, **dict(zip("abcde", MEASURES.T, strict=True))}
SALES = {"city": CITIES, "shop": MONTHS, **dict(zip("abcdefgh", MEANS.T, strict=True))}


def with_total(name):
    return {"shop": [*"abc", name], "jan": [1, 2, 3, 6], "feb": [2, nan, 6, 8]}


def columns_of(table):
    return dict(zip("abcdefgh"[: table.shape[1]], table.T, strict=True))


@pytest.mark.parametrize(
    ("columns", "options", "words"),
    [
        # Names that are numbers.
        ({"4.5": [5, 1], "2": [5, 1]}, {"in_file": True}, "header=False"),
        ({"3": [5, 1], "1": [5, 1], "2": [5, 1]}, {"in_file": True}, "header=False"),
        ({"1": [5, 1], "2": [5, 1]}, {"in_file": True}, "header=False"),
        ({"1": [5, 1], "": [2, 1], "3": [5, 1]}, {"in_file": True}, "header=False"),
        ({"1": [5, 1], "": [2, 1], "3": [5, 1]}, {"in_file": True}, "(1, '', 3)"),
        ({"1": [5, 1], "2": [5, 1], "4": [5, 1]}, {"in_file": True}, "header=False"),
        *(
            ({name: [5, 1] for name in names.split(",")}, {"in_file": True}, None)
            for names in ("1,2,3", "0,1,2", "2020,2021,2022")
        ),
        (RATINGS, {}, "keys=['user', 'item'], value='rating'); pairs that occur again"),
        # Not one row per cell.
        ({"shop": list("abcdef"), "city": list("xxyyzz"), "n": UNITS}, {}, None),
        (
            {"shop": SHOPS, "week": ["w1", "w2", "w2"] * 2, "n": UNITS},
            {},
            None,
        ),  # a pair twice
        (RANDOM, {}, None),
        ({"a": UNITS, "b": UNITS, "c": UNITS}, {}, None),
        # A column that only rises.
        ({"x": RISING, "y": UNITS}, {}, "column 'x' holds whole numbers that only"),
        ({"x": RISING, "y": UNITS}, {}, "id=['x']"),
        ({"x": RISING, "y": UNITS}, {"is_asked": True}, None),
        ({"x": RISING, "y": UNITS, "z": RISING}, {}, None),  # sorted data
        ({"x": [11, 12, 12, 17, 18, 19], "y": UNITS}, {}, None),
        ({"x": [1, 2, 3], "y": [5, 1, 2]}, {}, None),  # by chance
        # A cumulative triangle.
        (columns_of(TRIANGLE), {}, "fit the increments"),
        (columns_of(RECOVERED), {}, "fit the increments"),
        (columns_of(INCREMENTS), {}, None),
        # Totals.
        *(
            ({**TABLE, name: [6, 8, 18]}, {}, f"column {name!r} {TOTAL}")
            for name in SUMS
        ),
        *((with_total(n), {}, f"row {n!r} {TOTAL}") for n in SUMS),
        ({**TABLE, "SUM": [6, 8, 18]}, {}, "exclude=['SUM'] leaves it out"),
        (with_total("Summe"), {"n_rows": 5}, None),  # not the last row
        ({**TABLE, "SUM": [60, 8, 18]}, {}, None),
        ({**TABLE, "summer": [6, 8, 18]}, {}, None),
        # Holes inside a triangle.
        (columns_of(PAID), {}, "with 1 more hole before known cells"),
        (columns_of(PAID), {}, "write 0. The frames of chainladder have NaN for 0"),
        (columns_of(PAID), {}, "the Triangle itself to a1gm.fit or a1gm.fit_many."),
        (columns_of(SCATTERED), {}, None),
        (columns_of(SCATTERED[:, ::-1]), {}, None),
        # Zeros that mean missing.
        (columns_of(INTENSITIES), {}, "27% of its cells are 0"),
        (columns_of(INTENSITIES), {}, "RankOneImputer(missing_values=0)"),
        (columns_of(INTENSITIES), {"in_file": True}, "pass missing=['0']"),
        (columns_of(INTENSITIES), {"is_asked": True}, None),
        (columns_of(COUNTS), {}, None),
        (columns_of(CODES), {}, None),
        # Logarithms, and measures of several kinds.
        (columns_of(LOGARITHMS), {}, "as logarithms do. If they are, fit the amounts"),
        (columns_of(LOGARITHMS), {}, "a1gm.assess(X)"),
        (columns_of(np.exp(LOGARITHMS)), {}, None),
        (columns_of(np.round(LOGARITHMS)), {}, None),
        (columns_of(np.log(RNG.lognormal(10, 1, (60, 8)))), {}, "as logarithms do"),
        (columns_of(np.log(RNG.lognormal(10, 2, (200, 8)))), {}, "as logarithms do"),
        (columns_of(np.round(10 + 8 * RNG.random((40, 5)), 2)), {}, None),  # prices
        (columns_of(np.round(RNG.normal(14, 1.5, (40, 5)), 2)), {}, None),
        (columns_of(15 + 5 * RNG.random((30, 8))), {}, None),  # degrees
        (columns_of(8 + 12 * RNG.random((30, 8))), {}, None),
        (columns_of(MEASURES), {}, "look like different measures"),
        (columns_of(MEASURES), {}, "See a1gm.assess(X)."),
        (columns_of(MEASURES[:10]), {}, None),  # too few rows to see it
        (PANEL, {}, "Then fit each measure with a1gm.fit_long(X, keys=['city', 'mon"),
        (SALES, {}, None),
        # Numbers written as text.
        ({"x": [5, 1], "y": ["$5", "$7.50"]}, {}, "column 'y' is text such as"),
        ({"x": [5, 1], "y": ["$5", "$7.50"]}, {}, "Take the sign off"),
        ({"x": [5, 1], "y": ["(5)", "(7)"]}, {}, "Write it as -5"),
        ({"x": [5, 1], "y": ["5 %", "7 %"]}, {}, "Take the sign off"),
        ({"sku": ["SKU01", "SKU02"], "x": [5, 1], "y": [3, 1]}, {}, None),
        ({"x": [5, 1], "y": ["SKU01", "SKU02"]}, {}, None),
        ({"x": [5, 1], "y": ["<38", ">40"]}, {}, None),
        ({"plot": ["001", "002"], "x": [5, 1], "y": [3, 1]}, {}, None),
        ({"price": ["1,5", ""], "x": [5, 1], "y": [3, 1]}, {}, None),
        ({"version": ["1.0", "1.1"], "x": [5, 1], "y": [3, 1]}, {}, None),
        ({"x": [5, 1], "y": ["1,5", "2,5"]}, {}, "Convert"),
        ({"x": [5, 1], "y": ["ok", "late"]}, {}, None),
        ({"x": [5, 1], "y": ["ok", "5"]}, {}, None),
    ],
)
def test_at_most_one_hint(columns, options, words):
    found = said(columns, **options)
    assert len(found) == (words is not None)
    assert all(words in text for text in found)
