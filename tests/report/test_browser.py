"""How the report behaves in a real browser."""

import re
from pathlib import Path

import numpy as np
import pytest
from support.browser import leaving, listen

import a1gm
from a1gm.report import report_html

nan = np.nan
HOSTILE = "<script>alert(1)</script>"


@pytest.fixture
def tab(browser, page_file):
    tab = browser.new_page()
    tab.goto(page_file.as_uri())
    yield tab
    tab.close()


@pytest.mark.parametrize("width", [1280, 1100, 800, 390])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_it_opens_cleanly(browser, page_file, width, scheme):
    context = browser.new_context(
        viewport={"width": width, "height": 900}, color_scheme=scheme
    )
    page = context.new_page()
    words, requests = listen(page)
    page.goto(page_file.as_uri())
    assert words == []
    assert leaving(requests) == []
    # Nothing sticks out sideways, not even on a phone.
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    # No column of a table is cut off, either.
    cut = page.locator(".scroll:not(.heat)").evaluate_all(
        "boxes => boxes.filter(box => box.scrollWidth > box.clientWidth)"
        ".map(box => box.ariaLabel)"
    )
    assert cut == []
    if width > 1000:  # the map of 40 rows does not scroll
        heat = "e => e.scrollHeight - e.clientHeight"
        assert page.eval_on_selector(".heat", heat) <= 0
    ink, paper = page.evaluate(
        "[getComputedStyle(document.body).color,"
        " getComputedStyle(document.body).backgroundColor]"
    )
    ink, paper = (_luminance(_channels(colour)) for colour in (ink, paper))
    assert (ink > paper) == (scheme == "dark")
    context.close()


def test_tables_sort(tab):
    found = tab.locator("#misfits table")
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
    names = tab.locator("#factors table", has_text="Rows")
    names.locator("thead th", has_text="row").locator("button").click()
    shown = names.locator("tbody th").all_inner_texts()
    assert shown == sorted(shown)


def test_a_filter_keeps_the_order_and_sorting_the_filter(tab):
    found = tab.locator("#misfits table")
    head = found.locator("thead th", has_text="residual")
    cells = found.locator("tbody tr td:nth-child(5)")
    field = tab.locator("#misfits .tools input")

    def values():
        return [
            float(v) for v in cells.evaluate_all("t => t.map(c => c.dataset.value)")
        ]

    head.locator("button").click()
    field.fill("2024")
    assert 1 < len(values()) < 50
    assert values() == sorted(values())
    assert head.get_attribute("aria-sort") == "ascending"
    n = len(values())
    head.locator("button").click()
    assert values() == sorted(values(), reverse=True)
    assert len(values()) == n
    field.fill("")
    assert len(values()) == 50
    assert values() == sorted(values(), reverse=True)


def test_tables_filter_and_download(tab):
    tools = tab.locator("#misfits .tools")
    assert "50 lines" in tools.inner_text()
    tools.locator("input").fill("s08")
    n = int(tools.inner_text().partition(" of 50 lines")[0])
    assert 0 < n < 50
    with tab.expect_download() as download:
        tools.locator("button").click()
    assert download.value.suggested_filename == "worst-fitting-cells.csv"
    text = Path(download.value.path()).read_text(encoding="utf-8")
    head, line, *_, end = text.split("\n")
    assert head.strip() == "row,column,observed,fitted,residual"
    assert line.startswith("S08,2024-05,")
    assert text.count("\n") == 1 + n
    assert end == ""
    tools.locator("input").fill("")
    assert tab.locator("#misfits tbody tr:has(td.n)").count() == 50


@pytest.mark.parametrize("is_phone", [False, True])
def test_cells_tell_their_values(browser, page_file, is_phone):
    context = browser.new_context(
        viewport={"width": 390 if is_phone else 1100, "height": 844}, has_touch=is_phone
    )
    page = context.new_page()
    page.goto(page_file.as_uri())
    tip = page.locator("#tip")
    assert not tip.is_visible()
    cell = page.locator(".heat tbody tr:nth-child(4) td:nth-child(3)")
    if is_phone:
        cell.tap()
    else:
        cell.hover()
    assert (
        tip.inner_text() == "S04, 2023-02: filled with 167.5, 95 % from 132.9 to 206.1"
    )
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    page.locator(".heat").press("Escape")
    assert not tip.is_visible()
    page.locator(".heat").press("ArrowRight")
    assert tip.inner_text().startswith("S01, 2023-01: filled with")
    page.locator(".heat").press("ArrowDown")
    assert tip.inner_text() == "S02, 2023-01: 309"
    page.locator(".heat tbody tr:last-child td:last-child").click()
    assert tip.inner_text() == "S40, 2024-12: cannot be known"
    context.close()


def test_hostile_names_stay_text(browser):
    X = np.outer([1.0, 2, 3, 4], [1.0, 2, 3])
    X[1, 1] = X[3, 2] = nan
    names = [HOSTILE, '"><img src=x onerror=alert(2)>', "\x1b[31mred", "\u202egpj.exe"]
    page = browser.new_page()
    alerts = []
    page.on("dialog", lambda dialog: (alerts.append(dialog.message), dialog.dismiss()))
    page.set_content(
        report_html(
            X,
            a1gm.fit(X),
            title=f"{HOSTILE} $style",
            row_names=names,
            col_names=names[:3],
            source=f"{HOSTILE}.csv",
        )
    )
    page.locator(".heat td.fill").first.hover()
    assert (
        page.locator("#tip").inner_text().startswith('"><img src=x onerror=alert(2)>')
    )
    words = page.inner_text("body")
    assert "\\u202egpj.exe" in words
    assert "\u202e" not in words
    assert page.locator("script").count() == 1
    assert page.locator("img").count() == 0
    assert alerts == []
    page.close()


def test_paper_has_the_first_lines_and_breaks_no_listing(tab):
    tab.emulate_media(media="print")
    lines = tab.locator("#misfits table.sortable tbody tr")
    shown = lines.evaluate_all(
        "rows => rows.filter(row => row.offsetHeight > 0).length"
    )
    assert shown == 15
    assert "the first 15 are printed" in tab.locator("#misfits .tools").inner_text()
    assert not tab.locator("nav").is_visible()
    how = "all => all.map(e => getComputedStyle(e).breakInside)"
    found = tab.locator(".listing, .notes, .verdict").evaluate_all(how)
    assert set(found) == {"avoid"}


def test_it_is_accessible(tab):
    assert (
        tab.locator("svg[role=img] > title").count() == tab.locator("svg").count() == 5
    )
    assert tab.locator("table caption").count() == tab.locator("table").count()
    assert tab.locator("thead th:not([scope=col])").count() == 0
    assert tab.locator("tbody th:not([scope=row])").count() == 0
    assert tab.locator("h1").count() == 1
    assert tab.locator("html[lang]").count() == 1
    ids = tab.evaluate("[...document.querySelectorAll('[id]')].map(e => e.id)")
    assert len(ids) == len(set(ids))


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_values_in_the_map_can_be_read(browser, scheme):
    X = np.arange(1.0, 41.0).reshape(10, 4)
    X[0, 0] = nan
    page = browser.new_page(color_scheme=scheme)
    page.set_content(report_html(X, a1gm.fit(X)))
    found = page.locator("body, .heat td[data-v]")
    styles = "all => all.map(e => getComputedStyle(e))"
    (paper, _), *cells = found.evaluate_all(
        f"{styles}.map(s => [s.backgroundColor, s.color])"
    )
    assert len({ground for ground, _ in cells}) == 10
    for ground, ink in cells:
        *colour, share = _channels(ground)
        below = zip(colour, _channels(paper)[:3], strict=True)
        seen = [share * over + (1 - share) * under for over, under in below]
        light, dark = sorted(map(_luminance, (seen, _channels(ink)[:3])), reverse=True)
        assert (light + 0.05) / (dark + 0.05) >= 4.5  # WCAG 2, level AA
    page.close()


def _channels(colour):
    """Red, green, blue and opacity of a colour as a browser writes it."""
    numbers = [float(x) for x in re.findall(r"[\d.]+", colour)]
    return [*numbers, 1.0][:4]


def _luminance(colour):
    parts = [x / 255 for x in colour]
    parts = [x / 12.92 if x <= 0.03928 else ((x + 0.055) / 1.055) ** 2.4 for x in parts]
    return 0.2126 * parts[0] + 0.7152 * parts[1] + 0.0722 * parts[2]
