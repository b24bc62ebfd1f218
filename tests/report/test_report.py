"""What the report says."""

import re
from xml.etree import ElementTree

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_array

import a1gm
from a1gm._rows.labels import are_ordered
from a1gm.exceptions import DataError, DataHintWarning, OutputError, ParameterError
from a1gm.report import report_html, write_report
from a1gm.report.findings import Findings
from a1gm.report.tables import _shades, factor_table, table

nan = np.nan
SVG = "{http://www.w3.org/2000/svg}"
HOSTILE = "<script>alert(1)</script>"


def test_it_says_what_it_should(page):
    for words in (
        "<h1>Sales</h1>",
        "Rank 1 is better than the last value.",
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


def test_it_needs_no_network(page):
    links = re.findall(r'(?:src|href|url)\s*[=(]\s*["\']?([^"\')\s>]+)', page)
    assert all(link.startswith(("#", "data:")) for link in links), links


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


def test_equal_cells_have_one_shade_and_the_ends_those_of_the_legend():
    filled = np.array([[0.0, 0, 0, 0, 0], [0, 0, 1, 2, 3], [4, 9, 9, 9, nan]])
    shades = _shades(filled)
    for value in np.unique(filled[~np.isnan(filled)]):
        assert len(np.unique(shades[filled == value])) == 1
    assert (shades[filled == 0.0] == 0).all()
    assert (shades[filled == 9.0] == 9).all()


def test_a_large_table_stays_small(monkeypatch):
    monkeypatch.setattr("a1gm._api.assess.MOST_OBSERVED", 27_000)
    rng = np.random.default_rng(0)
    X = rng.poisson(np.outer(rng.gamma(2, 2, 20_000), rng.gamma(2, 2, 30))).astype(
        float
    )
    X[rng.random(X.shape) < 0.1] = nan
    page = report_html(X, a1gm.fit(X, on_undetermined="ignore"))
    assert len(page.encode()) < 2_000_000
    assert "The map shows the first 60 of 20,000 rows." in page
    assert re.search(r"Judged: (1,0\d\d|9\d\d) of 20,000 rows, drawn at random", page)


def test_the_page_is_about_a_sample_of_the_rows():
    rng = np.random.default_rng(0)
    X = rng.poisson(np.outer(rng.gamma(3, 20, 300), rng.gamma(3, 1, 6))).astype(float)
    X[rng.random(X.shape) < 0.1] = nan
    fit, E = a1gm.fit(X, exposure=np.full((300, 6), 2.0)), np.full((300, 6), 2.0)
    page = report_html(X, fit, sample=40)
    assert "This page is about 40 of the 300 rows, drawn at random" in page
    expected = a1gm.assess(X, sample=40, random_state=0, exposure=E)
    assert expected.comparison[1:] in page
    assert "<strong>40 × 6</strong>" in page
    assert report_html(None, fit, sample=40) == page
    with pytest.raises(ParameterError, match="sample must be a whole number >= 2"):
        report_html(X, fit, sample=1)
    assert "This page is about" not in report_html(X, fit)


@pytest.mark.parametrize("name", ["weights", "exposure"])
def test_a_long_fit_has_a_page(name):
    rng = np.random.default_rng(0)
    X = rng.poisson(np.outer(rng.gamma(3, 20, 30), rng.gamma(3, 1, 6))).astype(float)
    frame = pd.DataFrame(X, columns=range(2001, 2007)).rename_axis("shop")
    frame = frame.reset_index().melt("shop", var_name="year", value_name="sales")
    frame = frame.sample(frac=0.9, random_state=0).assign(v=2.0)
    long = {"keys": ["shop", "year"], "value": "sales", name: "v"}
    page = report_html(None, a1gm.fit_long(frame, **long))
    found = a1gm.assess(frame, random_state=0, **long)
    assert f'<p class="head">{found.headline}.</p>' in page
    assert "last value" in page


def test_a_loaded_fit_needs_its_table(tmp_path):
    X = np.outer([1.0, 2.0, 3.0], [1.0, 2.0, 4.0])
    a1gm.fit(X).save(tmp_path / "model.a1gm")
    fit = a1gm.load(tmp_path / "model.a1gm")
    with pytest.raises(ParameterError, match="has not kept its table"):
        report_html(None, fit)
    assert "exactly" in report_html(X, fit)


def test_a_fit_of_a_file_brings_its_warnings(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("shop,city,a,b\nA,Ulm,1,2\nB,Ulm,2,\nC,Ulm,5,9\ntotal,,8,11\n")
    with pytest.warns(a1gm.exceptions.DataHintWarning):
        fit = a1gm.fit_file(path)
    X = np.array([[1, 2], [2, nan], [5, 9], [8, 11]])
    total = "looks like the total of the others"
    assert report_html(X, fit).count(total) == 1
    assert total not in report_html(X, fit, notes=[])


def test_a_fit_that_is_not_the_best_is_told():
    rng = np.random.default_rng(3)
    X = rng.poisson(20.0, (12, 9)).astype(float)
    X[rng.random(X.shape) < 0.5] = nan
    with pytest.warns(a1gm.exceptions.ConvergenceWarning) as told:
        fit = a1gm.fit(X, max_iter=1, tol=1e-15)
    words = str(told[0].message)
    assert words.startswith("The fit stopped after")
    assert f"<li>{words}</li>" in report_html(X, fit)


@pytest.mark.parametrize("side", ["row", "col"])
@pytest.mark.parametrize("names", [["a"], list("abcde"), "abc"])
def test_names_are_one_for_each_line(side, names):
    X = np.outer([1.0, 2, 3], [1.0, 2, 3])
    with pytest.raises(ParameterError, match=f"{side}_names"):
        report_html(X, a1gm.fit(X), **{f"{side}_names": names})


def test_what_is_no_fit_of_one_table_is_refused(tmp_path):
    X = np.outer([1.0, 2, 3], [1.0, 2, 3])
    for other in (a1gm.fit_nmmf(X, X), a1gm.RankOneNMF().fit(X), X):
        with pytest.raises(ParameterError, match="fit must be a RankOneFit, got"):
            report_html(X, other)
    with pytest.raises(ParameterError, match="one of its fits, many"):
        write_report(tmp_path / "page.html", X, a1gm.fit_many([X, X]))
    with pytest.raises(TypeError, match=r"write_report\(\) got an unexpected"):
        write_report(tmp_path / "page.html", X, a1gm.fit(X), heading="X")
    assert list(tmp_path.iterdir()) == []


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
        ([nan, nan], []),  # a column without any number is left out
    ],
)
def test_numbers_of_a_column_have_the_same_decimals(values, words):
    columns = {"row": ["a"] * len(values), "x": np.array(values)}
    page = table("t", columns, len(values))
    assert re.findall(r'class="n" data-value="[^"]*">([^<]*)<', page) == words


COUNTS = np.random.default_rng(0).poisson(50.0, (8, 5)).astype(float)
COUNTS[1, 1] = COUNTS[4, 2] = nan
ONES, OFF = np.ones((8, 5)), np.ones((8, 5))
OFF[2, 2] = 0.0
NEAR = np.outer([1.0, 2, 3, 4], [1.0, 2, 3]) + np.eye(4, 3)
MIXED = np.array([[0.0, 5, nan], [5, nan, nan], [nan, nan, 2], [nan, nan, nan]])
BLOCKS = np.array([[1.0, 3, nan], [2, 6, nan], [nan, nan, 8]])
SIGNED = np.random.default_rng(0).poisson(30, (12, 5)).astype(float)
SIGNED[3] *= -4.0
SIGNED[:4, 3:] = nan
LEFT_OUT = pd.DataFrame({"shop": list("uvw"), "city": list("xyz"), "size": [9, 8, 7]})
LEFT_OUT[["a", "b"]] = [[1.0, 2.0], [2.0, nan], [5.0, 9.0]]
LARGE = np.array([[1.0, 2, 4], [3, nan, 7], [2, nan, nan]]) * 1e120
UNTESTED = "could not be tested. "


@pytest.mark.filterwarnings("ignore::a1gm.exceptions.A1gmWarning")
@pytest.mark.parametrize(
    ("X", "options", "words", "absent"),
    [
        (
            np.column_stack([40.0 + np.arange(40) % 7, 900 + 9 * (np.arange(40) % 5)]),
            {},
            ["The column means are better than rank 1.", 'class="verdict bad"'],
            [],
        ),
        (
            np.full((6, 5), 7.0),
            {},
            ["Rank 1 is as good as the column means", "Both fill "],
            [],
        ),
        (NEAR, {}, [], ["cannot be known<", 'class="notes"', "<dt>Cells", "#totals"]),
        ([[1.0]], {}, ["Every observed cell is fitted exactly"], []),
        ([[1.0, 2, 3]], {}, ["Every observed cell is fitted exactly"], []),
        ([[0.0] * 2] * 2, {}, ["Every observed cell is fitted exactly"], []),
        (
            COUNTS,
            {"exposure": ONES},
            [
                "Means are rates, times the exposure of the hidden cell.",
                "the product of its two and its exposure",
                "estimated total at exposure 1, in the units",
                "<dt>Cells</dt><dd>counts, each with its exposure",
            ],
            [],
        ),
        (COUNTS, {"weights": ONES}, ["<dt>Cells</dt><dd>weighted"], ["rates"]),
        (
            COUNTS,
            {"weights": OFF},
            ["1 known cell has weight 0: not fitted and counted as missing here."],
            ["fitted value of 0 or less"],
        ),
        (
            COUNTS,
            {"exposure": np.where(OFF, 1.0, nan)},
            ["1 known cell has no exposure: not fitted."],
            ["fitted value of 0 or less"],
        ),
        (
            csr_array(NEAR * (NEAR != 3.0)),
            {"absent": "missing"},
            ["sum of 2 filled cells"],
            [],
        ),
        (
            MIXED,
            {},
            [
                "unbounded: because of an observed zero, a larger value",
                "undetermined: no chain of observed cells connects",
            ],
            [">-1<"],  # a row without data is in no block
        ),
        (
            BLOCKS,
            {},
            [
                "has 2 blocks with separate scales",
                "factor, to compare within a block only",
                "the number of a row times that share is its estimated",
            ],
            ["sum to 1"],
        ),
        (
            LEFT_OUT,
            {"id": "shop", "exclude": ["city", "size"]},
            [">u</", ": city, size."],
            [],
        ),
        ([[5.0, 3, 2], [4, -1, nan], [6, nan, nan]], {"negatives": "allow"}, [], []),
        ([[1.0, nan, nan], [nan, 2, nan], [nan, nan, nan]], {}, [], []),
        *((X, {}, [], []) for X in ([[0.0, 5], [5, nan]], [[nan, 0.0], [0, 0]])),
        ([[1.0, 2], [3, nan]], {}, [], []),
        ([[1.0, 2], [1, nan], [3, nan]], {}, ["errors. The table has 0 degrees"], []),
        (LARGE, {}, ["without errors. Errors of data"], []),
        (
            [[2.0, 1.0, 3.0, 7.0], [4.0, -1.0, 6.0, 9.0]],
            {"negatives": "allow"},
            [
                "2 cells have a fitted value of 0 or less and no deviation.",
                "<dt>Cells</dt><dd>1 is below 0: row and column sums are fitted",
            ],
            [],
        ),
        (
            [[3.0, nan, 5.0]],
            {},
            [UNTESTED + "No cell can be hidden", ">1</strong> <span>cell cannot be"],
            [],
        ),
        # A trial that fails is not about the table itself.
        (
            SIGNED,
            {"negatives": "allow"},
            [UNTESTED + "With some of its cells hidden", "<dd>closed form</dd>"],
            ["Leave out such rows"],
        ),
        *(
            (COUNTS * scale, {}, ["Median relative error", "sum of 2 filled cells"], [])
            for scale in (1e135, 1e110, 1e-110, 1e-135)
        ),
    ],
)
def test_sentences(X, options, words, absent):
    X = np.array(X) if isinstance(X, list) else X
    page = report_html(X, a1gm.fit(X, **options))
    shown = re.sub(r"(?s)<(style|script)\b.*?</\1>|<[^>]*>", " ", page)
    assert not re.search(r"(?i)\b(nan|inf|None)\b", shown), shown
    for text in words:
        assert text in page
    for text in absent:
        assert text not in page


def test_the_number_of_a_row_times_the_share_of_its_block_is_its_total():
    fit = a1gm.fit(BLOCKS, on_undetermined="ignore")
    for block, total in enumerate(([4, 8], [8])):
        share = fit.col_factor[fit.col_block == block].sum()
        assert share == pytest.approx(sum(total) / 20)
        rows = fit.row_factor[fit.row_block == block]
        np.testing.assert_allclose(rows * share, total)
    cells = factor_table(
        Findings.of(BLOCKS, fit, None, None), "column", is_ordered=True
    )
    assert re.findall(r'data-value="([01].0)">[01]</td></tr>', cells) == [
        "0.0",
        "0.0",
        "1.0",
    ]


def test_cells_that_cannot_be_known(demo):
    X, fit, rows, columns = demo
    found = list(Findings.of(X, fit, rows, columns).unknown())
    assert found == [("row S40", 24, "nothing is observed in it")]
    fit = a1gm.fit(BLOCKS, on_undetermined="ignore")
    found = list(Findings.of(BLOCKS, fit, None, list("abc")).unknown())
    assert [line[:2] for line in found] == [
        ("2 rows (row 0, row 1) × column c", 2),
        ("row 2 × 2 columns (a, b)", 2),
    ]


@pytest.mark.parametrize(
    ("notes", "words"),
    [
        ([f"{HOSTILE}\x1b[31m"], "&lt;script&gt;alert(1)&lt;/script&gt;\\x1b[31m"),
        ("or --id-of a--b.", 'or <span class="nowrap">--id-of</span> a--b.'),
    ],
)
def test_names_and_notes_are_escaped_and_options_do_not_break(notes, words):
    X = np.array([[1.0, 2], [3, nan]])
    names = {"row_names": [HOSTILE, '"><img src=x>'], "col_names": ["a&b", r"\1 $x$"]}
    page = report_html(X, a1gm.fit(X), title=HOSTILE, notes=notes, **names)
    assert HOSTILE not in page
    assert "<img" not in page
    assert "a&amp;b" in page
    assert f"<li>{words}</li>" in page


def test_what_is_refused(tmp_path):
    X = FRAME.to_numpy().copy()
    fit, path = a1gm.fit(X), tmp_path / "a.html"
    write_report(path, X, fit)
    with pytest.raises(OutputError, match="exists"):
        write_report(path, X, fit)
    write_report(path, X, fit, overwrite=True)
    a1gm.fit(X, weights=np.ones((4, 3))).save(tmp_path / "a.npz")
    with pytest.raises(ParameterError, match="has not kept those of every cell"):
        report_html(X, a1gm.load(tmp_path / "a.npz"))
    X *= 7
    with pytest.raises(ParameterError, match="changed after it was fitted"):
        report_html(X, fit)


@pytest.mark.parametrize(
    ("names", "ordered"),
    [
        (["2023-11", "2023-12", "2024-01"], True),
        (["2023Q4", "2024Q1", "2024Q2"], True),
        (["2024-01-31 00:00:00", "2024-02-29 00:00:00", "2024-03-31"], True),
        (["Jan", "Feb", "Mar"], True),
        (["Nov-2023", "Dec-2023", "Jan-2024"], True),
        (["2023 Nov", "2023 Dec", "2024 Jan"], True),
        (["Nov 23", "Dec 23", "Jan'24"], True),
        (["Jan-2024", "Dec-2023", "Nov-2023"], False),
        (["Marta 1", "Marta 2", "Marta 3"], False),
        (["dev 1", "dev 2", "dev 10"], True),
        (["0.5", "1", "2.5"], True),
        (["row 0", "row 1", "row 2"], False),
        (["Jan", "Marta", "Mayor"], False),
        (["3", "2", "1"], False),
        (["1", "2"], False),
    ],
)
def test_which_names_have_an_order(names, ordered):
    assert are_ordered(names) == ordered


@pytest.mark.parametrize(
    ("names", "ordered"),
    [
        (["1001", "1008", "1015"], False),
        (["1999", "2000", "2002"], True),
        (["1999.5", "2000", "2002"], False),
        (["2023-11", "2023-12", "2024-01"], True),
    ],
)
def test_plain_numbers_order_rows_only_if_they_are_years(names, ordered):
    assert are_ordered(names, of_rows=True) == ordered
    X = np.outer([1.0, 2, 4], [1.0, 3, 5]) + np.eye(3)
    page = report_html(X, a1gm.fit(X), row_names=names)
    assert ("Rows, in table order" in page) == ordered


def test_names_are_text_in_every_picture():
    """Seen: a row called "font: 12px x" became another in two pictures."""
    names = [
        "$x_1$",
        "font: 12px x",
        "<b>b</b>",
        "a & b",
        'id="x" url(#a)',
        "#0f766e",
        "\U0001f600 emoji",
        "two\nlines",
        "very long " * 30,
    ]
    X = np.random.default_rng(0).poisson(20.0, (9, 9)) + 1.0
    X[[3, 7, 8], [2, 5, 6]] = nan
    page = report_html(X, a1gm.fit(X), row_names=names, col_names=names)
    pictures = re.findall(r"<svg.*?</svg>", page, flags=re.DOTALL)
    assert len(pictures) == 5
    ids, texts = [], []
    for picture in pictures:
        root = ElementTree.fromstring(picture)
        texts += ["".join(text.itertext()) for text in root.iter(f"{SVG}text")]
        ids += [element.get("id") for element in root.iter() if element.get("id")]
        for element in root.iter():
            target = element.get("{http://www.w3.org/1999/xlink}href", "#")
            assert target[:1] != "#" or len(target) == 1 or target[1:] in ids
        drawn = " ".join(filter(None, (x.get("style") for x in root.iter())))
        assert "#010203" not in drawn
    assert len(set(ids)) == len(ids)
    for name in names[:7]:  # both factors, and both sides of the map
        assert texts.count(name) >= 4


# -------------------------------------------------------------------------- warnings
RAA = np.array(
    [
        [5012, 8269, 10907, 11805, 13539, 16181, 18009, 18608, 18662, 18834],
        [106, 4285, 5396, 10666, 13782, 15599, 15496, 16169, 16704, nan],
        [3410, 8992, 13873, 16141, 18735, 22214, 22863, 23466, nan, nan],
        [5655, 11555, 15766, 21266, 23425, 26083, 27067, nan, nan, nan],
        [1092, 9565, 15836, 22169, 25955, 26180, nan, nan, nan, nan],
        [1513, 6445, 11702, 12935, 15852, nan, nan, nan, nan, nan],
        [557, 4020, 10946, 12314, nan, nan, nan, nan, nan, nan],
        [1351, 6947, 13112, nan, nan, nan, nan, nan, nan, nan],
        [3133, 5395, nan, nan, nan, nan, nan, nan, nan, nan],
        [2063, nan, nan, nan, nan, nan, nan, nan, nan, nan],
    ]
)


def test_a_table_that_may_be_misread_gets_no_green_verdict(tmp_path):
    """A cumulative triangle: the whole warning comes first, the verdict is grey."""
    frame = pd.DataFrame(RAA).rename(columns="age {}".format)
    path = tmp_path / "raa.csv"
    frame.to_csv(path, index=False)
    for read, given in ((a1gm.fit, frame), (a1gm.fit_file, path)):
        with pytest.warns(DataHintWarning, match="rise from left to right"):
            fit = read(given)
        html = report_html(None, fit)
        assert '<div class="verdict unclear doubtful">' in html
        assert html.index("fit the increments: the first column") < html.index(
            '<div class="verdict'
        )
    array = report_html(RAA, a1gm.fit(RAA))  # its fit says nothing, its page does
    assert '<div class="verdict unclear doubtful">' in array
    assert "fit the increments" in array
    increments = np.diff(RAA, axis=1, prepend=0.0)
    plain = report_html(increments, a1gm.fit(increments, negatives="allow"))
    assert "increments" not in plain
