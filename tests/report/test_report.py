"""The report: what it says, and how it behaves in a real browser."""

import re
import shutil

import numpy as np
import pandas as pd
import pytest

import a1gm
from a1gm.cli.demo import demo_table
from a1gm.exceptions import DimensionError, OutputError
from a1gm.report import report_html, write_report
from a1gm.report.findings import Findings
from a1gm.report.tables import number, table

nan = np.nan
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
HOSTILE = "<script>alert(1)</script>"


@pytest.fixture
def demo():
    lines = [line.split(",") for line in demo_table().splitlines()]
    X = np.array([[float(c) if c else nan for c in line[2:]] for line in lines[1:]])
    with pytest.warns(a1gm.exceptions.EmptyLineWarning):
        fit = a1gm.fit(X)
    return X, fit, [line[0] for line in lines[1:]], lines[0][2:]


def demo_page(demo, **options):
    X, fit, rows, columns = demo
    return report_html(X, fit, row_names=rows, col_names=columns, **options)


def test_it_says_what_it_should(demo):
    page = demo_page(demo, title="Sales")
    for words in (
        "<h1>Sales</h1>",
        "40 × 24",
        "14.4% of the cells",
        "core of 25 × 23",
        "Largest residuals",
        "Filled cells",
        "its row has no observed cell",
        "S08",
        "2024-05",
    ):
        assert words in page
    assert len(page.encode()) < 2_000_000


def test_it_needs_no_network(demo):
    page = demo_page(demo)
    links = re.findall(r'(?:src|href|url)\s*[=(]\s*["\']?([^"\')\s>]+)', page)
    assert all(link.startswith(("#", "data:")) for link in links), links


def test_fits_with_exposure_are_reported_in_units_of_the_table():
    rng = np.random.default_rng(0)
    E = rng.uniform(1.0, 9.0, (20, 6))
    X = rng.poisson(E * np.outer(rng.gamma(4, 5, 20), rng.gamma(4, 0.5, 6))) + 1.0
    X[rng.random(X.shape) < 0.2] = nan
    fit = a1gm.fit(X, exposure=E)
    worst = Findings.of(X, fit, None, None).largest_residuals(3)
    fitted = [fit.reconstruct()[i, j] for i, j, *_ in worst]
    np.testing.assert_allclose([cell[3] for cell in worst], fitted, rtol=1e-9)
    assert "Residuals: blue below the fit" in report_html(X, fit)


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


def test_numbers_of_one_block_are_totals(demo):
    page = demo_page(demo)
    assert "the number of a row is its estimated total, in the units" in page
    assert "Rows: estimated totals" in page
    assert "within a block" not in page


def test_numbers_of_several_blocks_are_not_called_totals():
    X = np.array([[1.0, 3, nan], [2, 6, nan], [nan, nan, 8]])
    with pytest.warns(a1gm.exceptions.UndeterminedWarning):
        fit = a1gm.fit(X)
    page = report_html(X, fit)
    assert "sum to 1" not in page
    assert "falls into 2 blocks, each on a scale of its own" in page
    assert "Rows: factors, comparable within a block only" in page
    # What the page says of the numbers of a row holds.
    assert "the number of a row times that share is the row&#x27;s estimated" in page
    for block, total in enumerate(([4, 8], [8])):
        share = fit.col_factor[fit.col_block == block].sum()
        assert share == pytest.approx(sum(total) / 20)
        rows = fit.row_factor[fit.row_block == block]
        np.testing.assert_allclose(rows * share, total)


def test_a_line_without_data_is_in_no_block():
    X = np.array([[1.0, nan, nan], [nan, 2, nan], [nan, nan, nan]])
    with pytest.warns(a1gm.exceptions.A1gmWarning):
        fit = a1gm.fit(X)
    assert ">-1<" not in report_html(X, fit)


def test_what_cannot_be_known_is_explained():
    X = np.array([[0.0, 5, nan], [5, nan, nan], [nan, nan, 2]])
    with pytest.warns(a1gm.exceptions.UndeterminedWarning):
        fit = a1gm.fit(X)
    page = report_html(X, fit)
    assert "cannot be compared" in page
    assert "unbounded" in page
    assert "undetermined: nothing observed ties" in page


@pytest.mark.parametrize(
    "X",
    [
        np.array([[1.0]]),
        np.array([[1.0, 2, 3]]),
        np.zeros((2, 2)),
        np.array([[1.0, 2], [2, 4]]),
    ],
)
def test_small_tables(X):
    assert "Every observed cell is explained exactly" in report_html(X, a1gm.fit(X))


def test_a_large_table_stays_small():
    rng = np.random.default_rng(0)
    X = rng.poisson(np.outer(rng.gamma(2, 2, 20_000), rng.gamma(2, 2, 30))).astype(
        float
    )
    X[rng.random(X.shape) < 0.1] = nan
    page = report_html(X, a1gm.fit(X, on_undetermined="ignore"))
    assert len(page.encode()) < 2_000_000
    assert "the first 200 of" in page


def test_frames_keep_their_names():
    frame = pd.DataFrame({"tea": [1.0, 2], "milk": [3, nan]}, index=["ann", "bob"])
    page = report_html(frame, a1gm.fit(frame))
    for name in ("tea", "milk", "ann", "bob"):
        assert name in page


def test_another_table_is_refused():
    X = np.ones((2, 2))
    with pytest.raises(DimensionError, match="2 × 3"):
        report_html(np.ones((2, 3)), a1gm.fit(X))


def test_the_file_is_not_replaced_unasked(tmp_path):
    X = np.ones((2, 2))
    path = tmp_path / "a.html"
    write_report(path, X, a1gm.fit(X))
    with pytest.raises(OutputError, match="exists"):
        write_report(path, X, a1gm.fit(X))
    write_report(path, X, a1gm.fit(X), overwrite=True)


def test_residuals_are_the_largest_shares_of_the_divergence():
    rng = np.random.default_rng(0)
    X = rng.poisson(5, (9000, 4)).astype(float)
    X[:, 1:][rng.random((9000, 3)) < 0.2] = nan
    fit = a1gm.fit(X, on_undetermined="ignore")
    found = Findings.of(X, fit, None, None).largest_residuals(20)
    fitted = np.outer(fit.row_factor, fit.col_factor)
    with np.errstate(divide="ignore", invalid="ignore"):
        logs = np.where(X > 0, X * np.log(X / fitted), 0.0)
    share = np.nan_to_num(logs - X + fitted)
    expected = np.sqrt(2 * np.sort(share.ravel())[::-1][:20])
    np.testing.assert_allclose(
        np.abs([cell[-1] for cell in found]), expected, rtol=1e-8
    )
    for i, j, observed, mean, residual in found:
        assert observed == X[i, j]
        assert np.sign(residual) == np.sign(observed - mean)


def test_numbers_for_people():
    assert [number(x) for x in (0.0, 1.5, 1234567.0, 1e-9, nan, 123.456)] == [
        *("0", "1.5", "1,234,567", "1.000e-09", "–", "123.5")
    ]
    assert "<td>a&lt;b</td>" in table("t", ("x", "y"), [("k", "a<b")])


# In a real browser


@pytest.fixture(scope="module")
def browser():
    if CHROMIUM is None:
        pytest.skip("no chromium on this machine: apt-get install chromium")
    sync_api = pytest.importorskip("playwright.sync_api")
    with sync_api.sync_playwright() as playwright:
        running = playwright.chromium.launch(
            executable_path=CHROMIUM, args=["--no-sandbox"]
        )
        yield running
        running.close()


@pytest.fixture
def page_file(demo, tmp_path):
    path = tmp_path / "report.html"
    path.write_text(demo_page(demo, title="Sales"), encoding="utf-8")
    return path


@pytest.mark.parametrize("width", [1280, 1100, 800, 390])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_it_opens_cleanly(browser, page_file, width, scheme):
    context = browser.new_context(
        viewport={"width": width, "height": 844}, color_scheme=scheme
    )
    page = context.new_page()
    words, requests = [], []
    page.on("console", lambda message: words.append(message.text))
    page.on("pageerror", lambda error: words.append(str(error)))
    page.on("request", lambda request: requests.append(request.url))
    page.goto(page_file.as_uri())
    assert words == []
    assert [url for url in requests if not url.startswith(("file:", "data:"))] == []
    # Nothing sticks out sideways, not even on a phone.
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    # No column of a table is cut off, either.
    cut = page.locator(".scroll").evaluate_all(
        "boxes => boxes.filter(box => box.scrollWidth > box.clientWidth)"
        ".map(box => box.ariaLabel)"
    )
    assert cut == []
    ink, paper = page.evaluate(
        "[getComputedStyle(document.body).color,"
        " getComputedStyle(document.body).backgroundColor]"
    )
    assert (_brightness(ink) > _brightness(paper)) == (scheme == "dark")
    context.close()


def test_tables_sort(browser, page_file):
    page = browser.new_page()
    page.goto(page_file.as_uri())
    found = page.locator("#fit table")
    head = found.locator("thead th", has_text="residual")
    cells = found.locator("tbody tr td:nth-child(5)")

    def values():
        return [
            float(v) for v in cells.evaluate_all("t => t.map(c => c.dataset.value)")
        ]

    head.locator("button").click()
    assert values() == sorted(values())
    assert head.get_attribute("aria-sort") == "ascending"
    # With the keyboard, too.
    head.locator("button").press("Enter")
    assert values() == sorted(values(), reverse=True)
    names = page.locator("#filled table")
    names.locator("thead th", has_text="column").locator("button").click()
    shown = names.locator("tbody td:nth-child(2)").all_inner_texts()
    assert shown == sorted(shown)
    page.close()


def test_it_is_accessible(browser, page_file):
    page = browser.new_page()
    page.goto(page_file.as_uri())
    assert (
        page.locator("svg[role=img] > title").count()
        == page.locator("svg").count()
        == 7
    )
    assert page.locator("table caption").count() == page.locator("table").count()
    assert page.locator("thead th:not([scope=col])").count() == 0
    assert page.locator("h1").count() == 1
    assert page.locator("html[lang]").count() == 1
    ids = page.evaluate("[...document.querySelectorAll('[id]')].map(e => e.id)")
    assert len(ids) == len(set(ids))
    page.close()


def _brightness(colour):
    red, green, blue = map(int, re.findall(r"\d+", colour)[:3])
    return 0.3 * red + 0.6 * green + 0.1 * blue
