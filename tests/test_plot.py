"""Pictures show what they should."""

import itertools

import matplotlib as mpl
import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp

mpl.use("Agg")

from matplotlib import pyplot as plt
from matplotlib.figure import Figure

import a1gm
from a1gm import plot
from a1gm.exceptions import LabelError, ParameterError
from a1gm.plot.pictures import bars

nan = np.nan


@pytest.fixture(autouse=True)
def _close():
    yield
    plt.close("all")


@pytest.fixture
def table():
    X = np.outer([1.0, 2, 3, 4], [1.0, 2, 3])
    X[1, 1] = X[2, 2] = nan
    return X


def test_factors_of_more_modes_have_a_picture_each():
    rng = np.random.default_rng(0)
    T = rng.poisson(9.0, (3, 4, 5)).astype(float)
    T[2, 3] = np.nan
    names = ["site", "month", "year"]
    fit = a1gm.fit_tensor(T, [(0, 1)], names=names, on_undetermined="ignore")
    together, years = plot.factors(fit)
    (image,) = together.get_images()
    np.testing.assert_array_equal(image.get_array().mask, np.isnan(T).all(axis=2))
    np.testing.assert_allclose(image.get_array(), fit.factors["site", "month"])
    assert (together.get_ylabel(), together.get_xlabel()) == ("site", "month")
    assert together.get_title() == "site × month"
    assert [bar.get_width() for bar in years.patches] == sorted(
        fit.factors["year"], reverse=True
    )
    frame = pd.DataFrame(np.argwhere(T >= 0.0) + 2000, columns=names)
    frame["n"] = T[T >= 0.0]
    *_, line = plot.factors(a1gm.fit_long(frame, names, "n"))
    np.testing.assert_allclose(
        line.lines[0].get_ydata(), a1gm.fit_tensor(T).factors[2], rtol=1e-9
    )
    (many, _) = plot.factors(
        a1gm.fit_tensor(rng.poisson(9.0, (2, 2, 2, 3)), [(0, 1, 2)]), most=4
    )
    assert len(many.patches) == 4
    with pytest.raises(ParameterError, match="2 Axes"):
        plot.factors(fit, axes=[None])
    with pytest.raises(ParameterError, match="row_names"):
        plot.factors(fit, row_names=["a"])


@pytest.mark.parametrize("kind", [int, str])
def test_keys_that_are_numbers_keep_their_order(kind):
    """Seen: the months of a year as bars by size, where no season shows."""
    rng = np.random.default_rng(0)
    keys = ["site", "year", "month"]
    names = ["oak", "ash", "elm"], range(1990, 1994), range(1, 13)
    frame = pd.MultiIndex.from_product(names, names=keys).to_frame(False)
    frame["n"] = rng.poisson(20.0 * frame["month"])
    frame = frame.sample(frac=0.9, random_state=0).astype({"month": kind})
    fit = a1gm.fit_long(frame, keys, "n")
    sites, _, months = plot.factors(fit)
    assert sites.patches
    np.testing.assert_array_equal(months.lines[0].get_ydata(), fit.factors["month"])
    assert [label.get_text() for label in months.get_xticklabels()] == [
        str(month) for month in range(1, 13)
    ]
    assert not plot.index(fit.uncertainty().index("month")).patches
    totals = fit.uncertainty().totals("month")
    axes = plot.totals(totals)
    np.testing.assert_array_equal(axes.lines[0].get_ydata(), totals.value)
    _, columns = plot.factors(
        a1gm.fit_long(frame, ["year", "month"], "n", duplicates="sum")
    )
    assert columns.lines


@pytest.mark.parametrize("interactions", [None, ["day:site"]])
def test_midnights_are_days(interactions):
    """Seen: ticks such as "1990-01-…00:00"."""
    rng = np.random.default_rng(0)
    days = pd.date_range("1990-01-01", periods=5)
    frame = pd.MultiIndex.from_product([days, ["a", "b"], range(3)]).to_frame(False)
    frame.columns = ["day", "site", "hour"]
    frame["n"] = rng.poisson(9.0, len(frame))
    fit = a1gm.fit_long(frame, ["day", "site", "hour"], "n", interactions=interactions)
    axis = plot.factors(fit)[0]
    labels = axis.get_xticklabels() if interactions is None else axis.get_yticklabels()
    assert [label.get_text() for label in labels] == [
        f"1990-01-0{k}" for k in range(1, 6)
    ]


def test_totals_by_two_keys_are_named_without_brackets():
    T = np.random.default_rng(0).poisson(9.0, (2, 3, 4))
    sure = a1gm.fit_tensor(T, names=["year", "month", "site"]).uncertainty()
    axes = plot.totals(sure.totals(["year", "month"], "fitted"))
    names = [label.get_text() for label in axes.get_xticklabels()]
    assert names == ["0, 0", "0, 1", "0, 2", "1, 0", "1, 1", "1, 2"]
    assert axes.get_title() == "Totals ± one standard error"


def test_pictures_of_two_keys_refuse_fits_of_more():
    """Seen: advice to make the call just made, and "X is a single TensorFit"."""
    T = np.random.default_rng(0).poisson(9.0, (3, 4, 5))
    fit = a1gm.fit_tensor(T)
    for draw in (
        lambda: plot.pattern(fit),
        lambda: plot.observed_vs_fitted(T, fit),
        lambda: plot.residuals(T, fit),
        lambda: plot.interval(T, fit.uncertainty(), 0),
    ):
        with pytest.raises(ParameterError, match=r"two keys; .*plot\.factors\(fit\)"):
            draw()


def test_factors_are_sorted_and_named(table):
    rows, columns = plot.factors(a1gm.fit(table), col_names=["a", "$b$", "c"])
    widths = [bar.get_width() for bar in rows.patches]
    assert widths == sorted(widths, reverse=True)
    names = [label.get_text() for label in columns.get_yticklabels()]
    assert names == ["c", "$b$", "a"]
    _, columns = plot.factors(a1gm.fit(pd.DataFrame(table, columns=["a", "$b$", "c"])))
    assert [label.get_text() for label in columns.get_yticklabels()] == names
    most, _ = plot.factors(a1gm.fit(table), most=2)
    assert len(most.patches) == 2
    assert "largest 2 of 4" in most.get_xlabel()
    # A name is no formula.
    assert not any(label.get_parse_math() for label in columns.get_yticklabels())
    rows.figure.canvas.draw()


@pytest.mark.parametrize("scale", [1.0, 1e5, 1e7, 1e12])
def test_labels_of_axes_do_not_overlap(scale):
    rng = np.random.default_rng(0)
    X = scale * rng.gamma(0.1, 1.0, (30, 8))
    X[:, 3] = 0.0
    fit = a1gm.fit(X)
    for draw in (
        lambda axes: bars(axes, fit.row_factor, None, most=5, title="rows"),
        lambda axes: plot.observed_vs_fitted(X, fit, ax=axes),
    ):
        figure = Figure(figsize=(4.3, 3.6), layout="constrained", dpi=110)
        axes = figure.subplots()
        draw(axes)
        figure.canvas.draw()
        boxes = [
            label.get_window_extent()
            for label in axes.get_xticklabels()
            if label.get_text()
        ]
        left, right = axes.get_window_extent().intervalx
        shown = [box for box in boxes if left <= (box.x0 + box.x1) / 2 <= right]
        assert len(shown) >= 2
        for one, next_one in itertools.pairwise(shown):
            assert one.x1 < next_one.x0


@pytest.fixture
def counts():
    rng = np.random.default_rng(0)
    X = rng.poisson(np.outer(rng.gamma(3, 20, 12), rng.gamma(3, 1, 5))) + 1.0
    X[2, 3] = nan
    return X


def test_how_sure(counts):
    X = counts
    frame = pd.DataFrame(X, columns=list("abcde"))
    fit = a1gm.fit(frame)
    sure = fit.uncertainty()
    axes = plot.index(sure.index())
    widths = [bar.get_width() for bar in axes.patches]
    np.testing.assert_allclose(widths, np.sort(sure.index().value)[::-1])
    totals = sure.totals("column")
    axes = plot.totals(totals)
    assert axes.get_title() == "Totals of the missing cells ± one standard error"
    widths = [bar.get_width() for bar in axes.patches]
    axes = plot.totals(sure.totals("column", "fitted"))
    assert axes.get_title() == "Totals ± one standard error"
    np.testing.assert_allclose(widths, np.sort(totals.value)[::-1])
    picture = plot.residuals(frame, fit).images[0].get_array()
    np.testing.assert_allclose(picture.filled(nan), fit.residuals(X))
    V = np.arange(1.0, 61.0).reshape(12, 5)
    for options in ({}, {"weights": V}, {"exposure": V}):
        sure = a1gm.fit(X, **options).uncertainty()
        lines = plot.interval(X, sure, 2).collections[0].get_segments()
        lower, upper = (bound[2, 3] for bound in sure.interval(X))
        np.testing.assert_allclose(lines, [[[3, lower], [3, upper]]])


MONTHS = ["2023-10", "2023-11", "2023-12", "2024-01", "2024-02"]
DAYS = pd.date_range("2024-01-30", periods=5)


@pytest.mark.parametrize(
    ("labels", "by", "is_line"),
    [
        (list("abcde"), "column", False),
        (["5", "3", "4", "1", "2"], "column", False),
        (None, "column", True),
        (MONTHS, "column", True),
        (DAYS, "column", True),
        (pd.period_range("2023Q3", periods=5, freq="Q"), "column", True),
        (["1999", "2000", "2001", "2002", "2004"], "row", True),
        (["1001", "1002", "1003", "1004", "1005"], "row", False),
        (None, "row", False),
    ],
)
def test_an_index_is_a_line_over_times_and_bars_of_names(labels, by, is_line):
    """Seen: names that are no times, joined by a line."""
    rng = np.random.default_rng(0)
    n = 5 if labels is None else len(labels)
    X = rng.poisson(np.outer(rng.gamma(3, 20, n), np.linspace(1, 2, n))) + 1.0
    names = (
        {} if labels is None else {("columns" if by == "column" else "index"): labels}
    )
    index = (
        a1gm.fit(pd.DataFrame(X, **names) if names else X).uncertainty().index(by=by)
    )
    axes = plot.index(index)
    assert bool(axes.patches) != is_line
    assert axes.get_title().endswith("band" if is_line else "intervals")
    ends = axes.collections[0].get_paths()
    if is_line:
        np.testing.assert_allclose(axes.lines[0].get_ydata(), index.value)
    else:  # a whisker of each bar
        order = np.argsort(-index.value, kind="stable")
        middle = [path.vertices[:, 0].mean() for path in ends]
        np.testing.assert_allclose(middle, index.value[order])


def test_axes_have_titles_and_units(counts):
    X, fit = counts, a1gm.fit(counts)
    sure = fit.uncertainty()
    drawn = [
        plot.pattern(X),
        *plot.factors(fit),
        plot.observed_vs_fitted(X, fit),
        plot.index(sure.index()),
        plot.totals(sure.totals()),
        plot.residuals(X, fit),
        plot.interval(X, sure, 2),
    ]
    for axes in drawn:
        assert axes.get_title()
        assert axes.get_xlabel() or axes.get_ylabel()
    assert plot.pattern(X).get_title() == "Missing: 1 of 60 cells (1.7 %)"
    assert drawn[-1].get_ylabel() == "cell, in the units of the table"
    assert plot.index(sure.index(base=2)).get_ylabel() == "relative to 2"


def test_names_are_thinned_out():
    X = np.random.default_rng(0).poisson(5, (10_000, 30)) + 1.0
    frame = pd.DataFrame(X, [f"row ${i}$" for i in range(10_000)])
    fit = a1gm.fit(frame)
    for axes in (
        plot.pattern(frame),
        plot.residuals(frame, fit),
        plot.index(fit.uncertainty().index(by="row"), most=12),
    ):
        for labels in (axes.get_xticklabels(), axes.get_yticklabels()):
            assert len(labels) <= 12
        axes.figure.canvas.draw()


def test_colours_are_told_apart_by_the_colour_blind():
    from a1gm.plot.pictures import HOLE, KNOWN

    # What is left of a colour when red and green are one: its lightness and its blue.
    def seen(colour):
        red, green, blue = (int(colour[k : k + 2], 16) / 255 for k in (1, 3, 5))
        return np.array([0.6 * red + 0.4 * green, blue])

    assert np.linalg.norm(seen(KNOWN) - seen(HOLE)) > 0.3


@pytest.mark.filterwarnings("ignore::a1gm.exceptions.A1gmWarning")
def test_what_has_no_value_is_said(table):
    table[0] = nan
    fit = a1gm.fit(table)
    sure = fit.uncertainty("poisson")
    (legend,) = plot.interval(table, sure, 0).get_legend().get_texts()
    assert legend.get_text() == "missing: no value"
    rows, _ = plot.factors(fit)
    assert rows.get_xlabel().endswith("1 without a value")
    assert "largest" not in rows.get_xlabel()
    nothing = plot.totals(a1gm.fit([[1.0, nan]]).uncertainty("poisson").totals())
    assert list(nothing.get_xticks()) == []


def test_short_names_are_not_turned(table):
    for names, angle in ((list("abc"), 0), ([f"a long name {i}" for i in "abc"], 45)):
        _, ax = plt.subplots(figsize=(3, 3))
        axes = plot.pattern(pd.DataFrame(table, columns=names), ax=ax)
        assert {tick.get_rotation() for tick in axes.get_xticklabels()} == {angle}


def test_a_table_is_read_as_its_fit_reads_it():
    rng = np.random.default_rng(0)
    X = rng.poisson(20.0, (10, 4)) + 1.0
    X[[1, 5], [2, 3]] = np.nan
    frame = pd.DataFrame(X, columns=list("abcd"))
    frame.insert(0, "shop", [f"s{i}" for i in range(10)])
    i, j = np.nonzero(~np.isnan(X))
    S = sp.csr_array((X[i, j], (i, j)), X.shape)
    wants = plot.observed_vs_fitted(X, a1gm.fit(X)).collections[0].get_offsets()
    Z = sp.csr_array(np.nan_to_num(X))
    points = plot.observed_vs_fitted(Z, a1gm.fit(Z, absent="zero")).collections[0]
    assert len(points.get_offsets()) == X.size
    for table, options in ((frame, {"id": "shop"}), (S, {"absent": "missing"})):
        fit = a1gm.fit(table, **options)
        points = plot.observed_vs_fitted(table, fit).collections[0].get_offsets()
        np.testing.assert_allclose(points, wants)
        axes = plot.residuals(table, fit)
        assert axes.get_ylabel() == "10 rows"
        if "id" in options:
            assert "s0" in [t.get_text() for t in axes.get_yticklabels()]
        row = "s5" if "id" in options else 5
        axes = plot.interval(table, fit.uncertainty(), row)
        assert axes.get_title() == f"Row {row}"
    assert plot.pattern(S, absent="missing").get_title().startswith("Missing: 2 of 40")


def test_interval_refuses_what_is_not_one_row(table):
    fit = a1gm.fit(table)
    u = fit.uncertainty()
    with pytest.raises(ParameterError, match="one row"):
        plot.interval(table, u, [0, 1])
    with pytest.raises(ParameterError, match=r"fit.uncertainty\(\)"):
        plot.interval(table, fit, 0)
    for row in (3, "a"):
        with pytest.raises(LabelError):
            plot.interval(table[:3], u, row)


def test_wrong_arguments_are_refused_in_words(table):
    """Seen: plot.residuals(fit, X) was a raw AttributeError."""
    fit = a1gm.fit(table)
    u = fit.uncertainty()
    many = a1gm.fit_many([table])
    for draw, words in (
        (lambda: plot.residuals(fit, table), r"plot\.residuals\(X, fit\)"),
        (lambda: plot.observed_vs_fitted(fit, table), r"observed_vs_fitted\(X, fit\)"),
        (
            lambda: plot.interval(u, table, 0),
            r"interval\(X, fit.uncertainty\(\), row\)",
        ),
        (lambda: plot.factors(table), r"fit must be a RankOneFit, got ndarray"),
        (lambda: plot.factors(many), r"many\[key\]"),
        (lambda: plot.index(u), r"found must be an Index"),
        (lambda: plot.totals(u), r"found must be a TotalsWithErrors"),
        (lambda: plot.index(u.index(), level=95), "between 0 and 1"),
        (lambda: plot.totals(u.totals(), most=0), "most must be"),
        (lambda: plot.residuals(table, fit, kind="raw"), "kind must be"),
        (lambda: plot.factors(fit, col_names=["a"]), "1 names for 3 bars"),
        (lambda: plot.factors(fit, axes=[None]), "2 Axes"),
        (lambda: plot.pattern(table, ax=3), "Axes of matplotlib, got int"),
    ):
        with pytest.raises(ParameterError, match=words):
            draw()


@pytest.mark.parametrize("weighting", ["", "weights", "exposure"])
def test_a_long_table_is_drawn_as_its_wide_one(counts, weighting):
    names = [f"s{i:02d}" for i in range(12)]
    wide = pd.DataFrame(counts, names, MONTHS)
    V = pd.DataFrame(np.arange(1.0, 61.0).reshape(12, 5), names, MONTHS)
    long = V.stack().rename("v").rename_axis(["shop", "month"]).reset_index()
    long["sales"] = counts.ravel()
    options = {weighting: V} if weighting else {}
    fit = a1gm.fit(wide, **options)
    by_name = {"keys": ["shop", "month"], "value": "sales"}
    by_name |= {weighting: "v"} if weighting else {}
    group = pd.concat([long.assign(area=1), long[:9].assign(area=2)])
    many = a1gm.fit_groups(group, by="area", **by_name)
    for other in (a1gm.fit_long(long, **by_name), many[1]):
        for draw in (
            lambda X, fit: plot.residuals(X, fit).images[0].get_array(),
            lambda X, fit: plot.observed_vs_fitted(X, fit).collections[0].get_offsets(),
            lambda X, fit: (
                plot.interval(X, fit.uncertainty(), "s02").collections[0].get_segments()
            ),
        ):
            np.testing.assert_allclose(draw(long, other), draw(wide, fit), rtol=1e-6)
            with pytest.raises(ParameterError, match="not the long frame that was fit"):
                draw(group, other)
        axes = plot.pattern(other)
        assert axes.get_title().startswith("Missing: 1 of 60")
        assert "s00" in [label.get_text() for label in axes.get_yticklabels()]


def test_pattern(table):
    axes = plot.pattern(table)
    assert axes.get_xlabel() == "3 columns"
    frame = pd.DataFrame(table, columns=list("abc")).convert_dtypes()
    for X in (table, frame, pl.from_pandas(frame), np.ma.masked_invalid(table)):
        picture = plot.pattern(X).images[0].get_array()
        np.testing.assert_array_equal(picture, np.isnan(table))
    X = np.ones((6, 5))
    X[np.ix_([0, 3, 5], [1, 4])] = nan
    axes = plot.pattern(X, reorder=True)
    picture = axes.images[0].get_array()
    assert "reordered" in axes.get_ylabel()
    assert picture[3:, 3:].all()
    assert picture.sum() == 6


def test_large_tables_are_averaged_over_known_cells():
    X = np.random.default_rng(0).poisson(5, (1300, 4)) + 1.0
    X[1, 0] = nan
    X[650:, 3] = nan
    picture = plot.pattern(X).images[0].get_array()
    assert picture.shape == (600, 4)
    assert (picture[0, 3], picture[-1, 3]) == (0, 1)
    fit = a1gm.fit(X)
    picture = plot.residuals(X, fit).images[0].get_array()
    found = fit.residuals(X)
    ends = [k * 1300 // 600 for k in range(3)]
    expected = [np.nanmean(found[a:b], axis=0) for a, b in itertools.pairwise(ends)]
    np.testing.assert_allclose(picture[:2], expected)


def test_observed_cells_against_fitted_ones(table):
    _, axes = plt.subplots()
    assert plot.observed_vs_fitted(table, a1gm.fit(table), ax=axes) is axes
    points = np.asarray(axes.collections[0].get_offsets())
    assert len(points) == 10
    np.testing.assert_allclose(points[:, 0], points[:, 1], rtol=1e-6)
    X = np.random.default_rng(0).lognormal(0, 3, (300, 100))  # a selection of many
    axes = plot.observed_vs_fitted(X, a1gm.fit(X))
    assert len(axes.collections[0].get_offsets()) == 4000
    assert axes.get_xscale() == "symlog"
    X = np.array([[0.0, 5.0], [5.0, nan]])  # a zero between blocks is at 0
    fit = a1gm.fit(X, on_undetermined="ignore")
    points = plot.observed_vs_fitted(X, fit).collections[0].get_offsets()
    assert sorted(map(tuple, points)) == [(0.0, 0.0), (5.0, 5.0), (5.0, 5.0)]
