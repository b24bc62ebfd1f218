"""What the report says."""

import re

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_array

import a1gm
from a1gm.exceptions import DataError, OutputError, ParameterError
from a1gm.report import report_html, write_report
from a1gm.report.findings import Findings
from a1gm.report.tables import _shades, number, table

nan = np.nan
HOSTILE = "<script>alert(1)</script>"


def test_it_says_what_it_should(page):
    for words in (
        "<h1>Sales</h1>",
        "Rank 1 is better than the column means.",
        "Median relative error",
        "40 × 24",
        "14.4 % of the cells",
        "the sum of 114 filled cells",
        "core of 25 x 23",
        "Worst-fitting cells: the first 50 of 822",
        "Filled totals by row",
        "Columns, in table order, with the 95 % band",
        "Rows, largest first",
        "not that rank 1 suits the table",
        "sales.csv",
        f"by a1gm {a1gm.__version__}",
    ):
        assert words in page
    order = re.findall(r'<section id="(\w+)"', page)
    assert order == ["totals", "table", "factors", "misfits", "unknown", "method"]
    assert re.findall(r'<a href="#(\w+)">', page) == order
    assert len(page.encode()) < 2_000_000


def test_totals_have_their_errors(demo):
    X, fit, _, _ = demo
    found = Findings.of(X, fit, None, None)
    value, error, total, total_error = found.totals()
    np.testing.assert_allclose(np.nansum(value), total)
    filled = np.where(np.isnan(X), found.filled, 0.0)
    np.testing.assert_allclose(np.nansum(filled), total)
    expected = fit.uncertainty().totals("all")
    assert total_error == expected.se[0]
    assert np.nanmax(error) < total_error


def test_the_outlier_comes_first(demo):
    X, fit, rows, columns = demo
    found = Findings.of(X, fit, rows, columns)
    row, column, observed, fitted, residual = (c[0] for c in found.misfits(5).values())
    assert (row, column) == ("S08", "2024-05")
    at = rows.index(row), columns.index(column)
    assert observed == X[at]
    assert fitted == pytest.approx(fit.reconstruct()[at])
    # In standard deviations: a Poisson cell with the dispersion of the table.
    phi = fit.uncertainty().dispersion
    assert residual == pytest.approx((observed - fitted) / np.sqrt(phi * fitted))


def test_an_empty_row_is_one_line(demo):
    X, fit, rows, columns = demo
    found = list(Findings.of(X, fit, rows, columns).unknown())
    assert found == [("row S40", 24, "nothing is observed in it")]


def test_blocks_are_told_once():
    X = np.full((5, 4), nan)
    X[:3, :2] = [[1, 2], [3, 4], [5, 6]]
    X[3:, 2:] = [[1, 2], [3, 4]]
    with pytest.warns(a1gm.exceptions.UndeterminedWarning):
        fit = a1gm.fit(X)
    found = list(Findings.of(X, fit, None, list("abcd")).unknown())
    assert [line[:2] for line in found] == [
        ("3 rows (row 0, row 1, row 2) × 2 columns (c, d)", 6),
        ("2 rows (row 3, row 4) × 2 columns (a, b)", 4),
    ]


def test_a_table_that_rank_1_does_not_suit():
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.normal(5, 0.5, 60), rng.normal(900, 10, 60)])
    X = np.column_stack([X, 40 - 6 * X[:, 0]]) + 20
    page = report_html(X, a1gm.fit(X))
    assert "The column means are better than rank 1." in page
    assert 'class="verdict bad"' in page


@pytest.mark.parametrize(
    "X", [np.full((6, 5), 7.0), np.outer([1.0, 2, 3, 4], [1, 2, 3])]
)
def test_a_table_that_is_rank_1(X):
    page = report_html(X, a1gm.fit(X))
    assert "Rank 1 suits this table: it fills hidden cells exactly." in page


def test_a_section_without_content_is_left_out():
    X = np.outer([1.0, 2, 3, 4], [1.0, 2, 3]) + np.eye(4, 3)
    page = report_html(X, a1gm.fit(X))
    order = re.findall(r'<section id="(\w+)"', page)
    assert order == ["table", "factors", "misfits", "method"]
    assert ">holes<" not in page
    assert "cannot be known" not in page.partition("<script>")[0]


@pytest.mark.filterwarnings("ignore::a1gm.exceptions.A1gmWarning")
@pytest.mark.parametrize(
    ("X", "negatives"),
    [
        ([[5.0, 3, 2], [4, -1, nan], [6, nan, nan]], "allow"),
        ([[1.0, nan, nan], [nan, 2, nan], [nan, nan, nan]], "raise"),
        ([[0.0, 5], [5, nan]], "raise"),
        ([[1.0, 2], [3, nan]], "raise"),
        ([[nan, 0.0], [0, 0]], "raise"),
    ],
)
def test_it_never_says_nan(X, negatives, browser):
    X = np.array(X)
    page = report_html(X, a1gm.fit(X, negatives=negatives))
    tab = browser.new_page()
    tab.set_content(page)
    words = tab.inner_text("body")
    tab.close()
    assert not re.search(r"\b(nan|inf|None)\b", words, re.IGNORECASE), words


def test_it_needs_no_network(page):
    links = re.findall(r'(?:src|href|url)\s*[=(]\s*["\']?([^"\')\s>]+)', page)
    assert all(link.startswith(("#", "data:")) for link in links), links


def test_names_are_escaped():
    X = np.array([[1.0, 2], [3, nan]])
    page = report_html(
        X,
        a1gm.fit(X),
        title=HOSTILE,
        row_names=[HOSTILE, '"><img src=x>'],
        col_names=["a&b", r"\1 $x$"],
    )
    assert HOSTILE not in page
    assert "<img" not in page
    assert "a&amp;b" in page


def test_numbers_of_several_blocks_are_not_called_totals():
    X = np.array([[1.0, 3, nan], [2, 6, nan], [nan, nan, 8]])
    with pytest.warns(a1gm.exceptions.UndeterminedWarning):
        fit = a1gm.fit(X)
    page = report_html(X, fit)
    assert "sum to 1" not in page
    assert "has 2 blocks with separate scales" in page
    assert "factor, to compare within a block only" in page
    # What the page says of the numbers of a row holds.
    assert "the number of a row times that share is its estimated" in page
    for block, total in enumerate(([4, 8], [8])):
        share = fit.col_factor[fit.col_block == block].sum()
        assert share == pytest.approx(sum(total) / 20)
        rows = fit.row_factor[fit.row_block == block]
        np.testing.assert_allclose(rows * share, total)


def test_a_fit_with_exposure_is_told_as_one():
    rng = np.random.default_rng(0)
    E = rng.uniform(0.2, 3, (9, 5))
    X = rng.poisson(E * np.outer(rng.gamma(3, 20, 9), np.arange(1, 6))).astype(float)
    X[[1, 4], [2, 3]] = nan
    page = report_html(X, a1gm.fit(X, exposure=E))
    found = a1gm.assess(X, random_state=0, exposure=E)
    assert f"{found.n_hidden} observed cells were hidden" in page
    error = 100 * found.scores["column means"].median_relative_error
    assert f"<b>{error:.2g} %</b>" in page
    assert "Means are rates, times the exposure of the hidden cell." in page
    assert "the product of its two and its exposure" in page
    assert "estimated total at exposure 1, in the units" in page


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("weights", "weight 0: not fitted and counted as missing here."),
        ("exposure", "no exposure: not fitted."),
    ],
)
def test_known_cells_that_do_not_count_are_told(name, words):
    rng = np.random.default_rng(0)
    V = rng.integers(1, 4, (9, 5)).astype(float)
    X = rng.poisson(V * np.outer(rng.gamma(3, 20, 9), np.arange(1, 6))).astype(float)
    X[[1, 4], [2, 3]] = nan
    V[[1, 2], [2, 2]] = nan if name == "exposure" else 0.0
    page = report_html(X, a1gm.fit(X, **{name: V}))
    assert f"1 known cell has {words}" in page
    assert "fitted value of 0 or less" not in page


@pytest.mark.parametrize("name", ["weights", "exposure"])
def test_totals_are_those_of_the_filled_cells(name):
    rng = np.random.default_rng(3)
    X = rng.poisson(np.outer(rng.gamma(3, 20, 8), rng.gamma(3, 1, 5)) + 1).astype(float)
    X[rng.random(X.shape) < 0.2] = nan
    V = np.ones(X.shape)
    V[0, 0] = 0.0
    fit = a1gm.fit(X, **{name: V})
    found = Findings.of(X, fit, None, None)
    values, _, total, _ = found.totals()
    filled = np.where(found.is_filled, found.filled, 0.0)
    np.testing.assert_allclose(np.nan_to_num(values), filled.sum(axis=1))
    assert total == pytest.approx(filled.sum())
    n = int(np.isnan(X).sum()) + (name == "weights")
    assert f"the sum of {n} filled cells" in report_html(X, fit)
    both = filled.sum() + np.nansum(found.known)
    assert both == pytest.approx(np.nansum(found.filled))
    low, high = found.bounds
    assert (low[found.is_filled] < high[found.is_filled]).all()


def test_sparse_tables_and_weights_that_were_not_kept(tmp_path):
    X = np.outer([1.0, 2, 3, 4], [1.0, 2, 3]) + np.eye(4, 3)
    X[1, 2] = 0.0
    sparse = csr_array(X)
    fit = a1gm.fit(sparse, absent="missing")
    assert "the sum of 1 filled cell" in report_html(sparse, fit)
    a1gm.fit(X, weights=np.ones((4, 3))).save(tmp_path / "a.npz")
    with pytest.raises(ParameterError, match="has not kept those of every cell"):
        report_html(X, a1gm.load(tmp_path / "a.npz"))


def test_equal_cells_have_one_shade_and_the_ends_those_of_the_legend():
    filled = np.array([[0.0, 0, 0, 0, 0], [0, 0, 1, 2, 3], [4, 9, 9, 9, nan]])
    shades = _shades(filled)
    for value in np.unique(filled[~np.isnan(filled)]):
        assert len(np.unique(shades[filled == value])) == 1
    assert (shades[filled == 0.0] == 0).all()
    assert (shades[filled == 9.0] == 9).all()


@pytest.mark.filterwarnings("ignore::a1gm.exceptions.A1gmWarning")
def test_what_cannot_be_known_is_explained():
    X = np.array([[0.0, 5, nan], [5, nan, nan], [nan, nan, 2], [nan, nan, nan]])
    page = report_html(X, a1gm.fit(X))
    assert "unbounded: because of an observed zero, a larger value" in page
    assert "undetermined: no chain of observed cells connects" in page
    assert ">-1<" not in page  # a row without data is in no block


@pytest.mark.parametrize("X", [[[1.0]], [[1.0, 2, 3]], [[0.0] * 2] * 2])
def test_small_tables(X):
    X = np.array(X)
    assert "Every observed cell is fitted exactly" in report_html(X, a1gm.fit(X))


def test_a_large_table_stays_small(monkeypatch):
    monkeypatch.setattr("a1gm.report.findings.MOST_ASSESSED", 30_000)
    rng = np.random.default_rng(0)
    X = rng.poisson(np.outer(rng.gamma(2, 2, 20_000), rng.gamma(2, 2, 30))).astype(
        float
    )
    X[rng.random(X.shape) < 0.1] = nan
    page = report_html(X, a1gm.fit(X, on_undetermined="ignore"))
    assert len(page.encode()) < 2_000_000
    assert "The map shows the first 60 of 20,000 rows." in page
    assert re.search(r"Filled cells: the first 500 of \d\d,\d{3}", page)
    assert "in 1,000 of the 20,000 rows" in page


def test_frames_keep_their_names():
    frame = pd.DataFrame({"tea": [1.0, 2], "milk": [3, nan]}, index=["ann", "bob"])
    page = report_html(frame, a1gm.fit(frame))
    for name in ("tea", "milk", "ann", "bob"):
        assert name in page


def test_a_fit_of_a_file_brings_its_warnings(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("shop,city,a,b\nA,Ulm,1,2\nB,Ulm,2,\nC,Ulm,5,9\ntotal,,8,11\n")
    with pytest.warns(a1gm.exceptions.DataHintWarning):
        fit = a1gm.fit_file(path)
    X = np.array([[1, 2], [2, nan], [5, 9], [8, 11]])
    total = "looks like the total of the others"
    assert report_html(X, fit).count(total) == 1
    assert total not in report_html(X, fit, notes=[])


def test_columns_of_a_frame_that_were_left_out_are_told():
    frame = pd.DataFrame({"shop": list("uvw"), "city": list("xyz"), "size": [9, 8, 7]})
    frame[["a", "b"]] = [[1.0, 2.0], [2.0, nan], [5.0, 9.0]]
    fit = a1gm.fit(frame, id="shop", exclude=["city", "size"])
    page = report_html(frame, fit)
    assert "Columns that are not part of the table: city, size." in page
    assert ">u</" in page
    fit = a1gm.fit(frame[["a", "b"]])
    assert 'class="notes"' not in report_html(frame[["a", "b"]], fit)


def test_a_fit_that_is_not_the_best_is_told():
    rng = np.random.default_rng(3)
    X = rng.poisson(20.0, (12, 9)).astype(float)
    X[rng.random(X.shape) < 0.5] = nan
    with pytest.warns(a1gm.exceptions.ConvergenceWarning) as told:
        fit = a1gm.fit(X, max_iter=1, tol=1e-15)
    words = str(told[0].message)
    assert words.startswith("The fit stopped after")
    assert f"<li>{words}</li>" in report_html(X, fit)


@pytest.mark.parametrize("scale", [1e300, 1e150, 1e-288, 1e-300, 1e-321, 5e-324])
def test_data_at_the_ends_of_the_range_have_a_page(scale):
    X = np.random.default_rng(0).poisson(50.0, (8, 5)) * scale
    X[1, 1] = nan
    page = report_html(X, a1gm.fit(X))
    assert "Median relative error" in page
    assert "sum of 1 filled cell" in page


@pytest.mark.parametrize(
    ("X", "why"),
    [
        ([[1.0, 2], [1, nan], [3, nan]], "The table has 0 degrees"),
        ([[1e150, 2e150, 4e150], [3e150, nan, 7e150], [2e150, nan, nan]], "Errors are"),
    ],
)
def test_why_totals_have_no_errors_is_told(X, why):
    X = np.array(X)
    assert f"These totals come without errors. {why}" in report_html(X, a1gm.fit(X))


def test_cells_off_a_fit_of_0_have_no_deviation():
    X = np.array([[2.0, 1.0, 3.0, 7.0], [4.0, -1.0, 6.0, 9.0]])
    page = report_html(X, a1gm.fit(X, negatives="allow"))
    assert "2 cells have a fitted value of 0 or less and no deviation." in page


@pytest.mark.parametrize(
    ("notes", "words"),
    [
        ([f"{HOSTILE}\x1b[31m"], "&lt;script&gt;alert(1)&lt;/script&gt;\\x1b[31m"),
        ("or --id-of a--b.", 'or <span class="nowrap">--id-of</span> a--b.'),
    ],
)
def test_notes_are_escaped_and_options_do_not_break(notes, words):
    X = np.outer([1.0, 2, 3], [1.0, 2, 3])
    assert f"<li>{words}</li>" in report_html(X, a1gm.fit(X), notes=notes)


def test_blocks_are_numbered_as_those_of_the_fit():
    X = np.array([[1.0, 2, nan], [2, 3, nan], [nan, nan, 4]])
    page = report_html(X, a1gm.fit(X, on_undetermined="ignore"))
    cells = re.findall(r'<th scope="row">column \d</th>.*?</tr>', page)
    found = [float(re.findall(r'data-value="([^"]*)"', x)[-1]) for x in cells]
    assert sorted(found) == [0.0, 0.0, 1.0]


@pytest.mark.parametrize("side", ["row", "col"])
@pytest.mark.parametrize("names", [["a"], list("abcde"), "abc"])
def test_names_are_one_for_each_line(side, names):
    X = np.outer([1.0, 2, 3], [1.0, 2, 3])
    with pytest.raises(ParameterError, match=f"{side}_names"):
        report_html(X, a1gm.fit(X), **{f"{side}_names": names})


FRAME = pd.DataFrame(
    {"jan": [10.0, 20, 30, 41], "feb": [100, 200, 300, nan], "mar": [1.0, 2, 3, 4]},
    index=list("pqrs"),
)


@pytest.mark.parametrize("kind", ["plain", "loaded", "weights", "exposure"])
def test_the_page_is_of_the_fitted_table(tmp_path, kind):
    is_weighted = kind in ("weights", "exposure")
    fit = a1gm.fit(FRAME, **({kind: np.ones((4, 3))} if is_weighted else {}))
    if kind == "loaded":
        fit.save(tmp_path / "fit.npz")
        fit = a1gm.load(tmp_path / "fit.npz")
    page = report_html(FRAME, fit)
    # Columns are found by name, and those of an array by place.
    assert report_html(FRAME[["feb", "jan", "mar"]], fit) == page
    assert report_html(FRAME.to_numpy(), fit) == page
    cell = FRAME.copy()
    cell.loc["q", "jan"] = 21.0
    renamed = FRAME.rename(index={"p": "q", "q": "p"})
    moved = FRAME.iloc[[1, 0, 2, 3]]
    for other in (moved, moved.to_numpy(), FRAME * 7, FRAME.fillna(1), cell, renamed):
        with pytest.raises(ParameterError, match="not the table that was fitted"):
            report_html(other, fit)
    with pytest.raises(DataError, match="4 × 2"):
        report_html(np.ones((4, 2)), fit)


def test_a_table_that_was_changed_is_refused():
    X = FRAME.to_numpy().copy()
    fit = a1gm.fit(X)
    X *= 7
    with pytest.raises(ParameterError, match="changed after it was fitted"):
        report_html(X, fit)


def test_the_file_is_not_replaced_unasked(tmp_path):
    X = np.ones((2, 2))
    path = tmp_path / "a.html"
    write_report(path, X, a1gm.fit(X))
    with pytest.raises(OutputError, match="exists"):
        write_report(path, X, a1gm.fit(X))
    write_report(path, X, a1gm.fit(X), overwrite=True)


def test_misfits_are_the_largest_residuals():
    rng = np.random.default_rng(0)
    X = rng.poisson(5, (9000, 4)).astype(float)
    X[:, 1:][rng.random((9000, 3)) < 0.2] = nan
    fit = a1gm.fit(X, on_undetermined="ignore")
    found = Findings.of(X, fit, None, None).misfits(20)
    size = np.sort(np.nan_to_num(np.abs(fit.residuals(X))).ravel())[::-1][:20]
    phi = fit.uncertainty().dispersion
    np.testing.assert_allclose(np.abs(found["residual"]), size / np.sqrt(phi))
    off = found["observed"] - found["fitted"]
    np.testing.assert_array_equal(np.sign(found["residual"]), np.sign(off))


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ([699.61, 95.0, 0.0, nan], ["699.6", "95.0", "0", "–"]),
        ([54.474, 11.2], ["54.47", "11.20"]),
        ([1540.4, 12.3], ["1,540", "12"]),
        ([3.0, 12.0, 1234567.0], ["3", "12", "1,234,567"]),
        # Too far apart for the same decimals: each has its four digits.
        ([1540.4, 1.234], ["1,540", "1.234"]),
        ([2e9, 1.5], ["2.000e+09", "1.5"]),
        ([1.25e-7, 2e-7], ["1.250e-07", "2.000e-07"]),
    ],
)
def test_numbers_of_a_column_have_the_same_decimals(values, words):
    columns = {"row": ["a"] * len(values), "x": np.array(values)}
    page = table("t", columns, len(values))
    assert re.findall(r'class="n" data-value="[^"]*">([^<]*)<', page) == words


def test_a_table_too_small_to_be_tried_is_told_in_words():
    X = np.array([[3.0, nan, 5.0]])
    with pytest.warns(a1gm.exceptions.EmptyLineWarning):
        page = report_html(X, a1gm.fit(X))
    assert "could not be tested. No cell can be hidden" in page
    assert "<strong>1</strong> <span>cell cannot be known</span>" in page


def test_a_trial_that_fails_is_not_told_of_the_table_itself():
    X = np.random.default_rng(0).poisson(30, (12, 5)).astype(float)
    X[3] *= -1.0
    X[:4, 3:] = nan
    page = report_html(X, a1gm.fit(X, negatives="allow"))
    assert "be tested. With some of its cells hidden, this table cannot be fit" in page
    assert "Leave out such rows" not in page
    assert "<dd>closed form</dd>" in page


def test_the_method_tells_of_cells_that_count_otherwise():
    X = np.outer([1.0, 2, 3, 4], [1.0, 2, 3]) + np.eye(4, 3)
    ones = np.ones((4, 3))
    cells = "<dt>Cells</dt><dd>"
    assert cells not in report_html(X, a1gm.fit(X))
    assert f"{cells}weighted" in report_html(X, a1gm.fit(X, weights=ones))
    assert f"{cells}counts, each with its" in report_html(X, a1gm.fit(X, exposure=ones))
    X[1, 1] = -0.5
    page = report_html(X, a1gm.fit(X, negatives="allow"))
    assert f"{cells}1 is below 0: row and column sums are fitted" in page


def test_numbers_for_people():
    assert [number(x) for x in (0.0, 1.5, 1234567.0, 1e-9, nan, 123.456)] == [
        *("0", "1.5", "1,234,567", "1.000e-09", "–", "123.5")
    ]
    assert "<td>a&lt;b</td>" in table("t", {"x": ["k"], "y": ["a<b"]}, 1)
    # A column without any number is left out.
    assert ">none<" not in table("t", {"x": ["k"], "none": np.array([nan])}, 1)
