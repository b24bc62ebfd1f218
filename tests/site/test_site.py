"""The site that ``make docs`` built, opened from its folder in a real browser."""

from __future__ import annotations

import doctest
import importlib
from pathlib import Path
from urllib.parse import unquote, urlparse

import pytest
from support.browser import leaving, listen

ROOT = Path(__file__).parents[2]
SITE = ROOT / "site"
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))
PAGES = [
    "index.html",
    "quickstart.html",
    "guide-claims.html",
    "guide-monitoring.html",
    "reference/a1gm.fit.html",
    "reference/a1gm.plot.residuals.html",
    "gallery/index.html",
    "exceptions.html",
    "performance.html",
]

pytestmark = pytest.mark.skipif(
    not (SITE / "index.html").exists(), reason="no site: `make docs` builds it"
)


@pytest.mark.parametrize("width", [1280, 390])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_pages_open_cleanly(browser, width, scheme):
    context = browser.new_context(
        viewport={"width": width, "height": 844}, color_scheme=scheme
    )
    page = context.new_page()
    words, requests = listen(page)
    for name in PAGES:
        page.goto((SITE / name).as_uri())
        assert page.locator("h1").count() == 1, name
        broken = page.locator("img").evaluate_all(
            "all => all.filter(i => i.complete && !i.naturalWidth).map(i => i.src)"
        )
        assert broken == [], name
        # Nothing sticks out sideways, not even on a phone.
        fits = "document.documentElement.scrollWidth <= innerWidth"
        assert page.evaluate(fits), name
    assert words == []
    assert leaving(requests) == []
    context.close()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_pictures_follow_the_theme(browser, scheme):
    """Seen: a white picture on the dark page."""
    page = browser.new_page(color_scheme=scheme)
    for name, picture in (("index", "readme"), ("cli", "report-desktop")):
        page.goto((SITE / f"{name}.html").as_uri())
        visible = page.locator(f"article img[src*='{picture}']").evaluate_all(
            "all => all.filter(i => i.checkVisibility()).map(i => i.src)"
        )
        assert ["-dark." in url for url in visible] == [scheme == "dark"]
    page.goto((SITE / "reference" / "a1gm.plot.index.html").as_uri())
    look = "i => getComputedStyle(i).filter"
    drawn = page.locator("article img.plot-directive").first.evaluate(look)
    assert ("invert" in drawn) == (scheme == "dark")
    page.close()


def test_no_page_loads_anything_from_outside(browser):
    """Seen: formulas in four pages of the reference, which loaded a script."""
    page = browser.new_page()
    _, requests = listen(page)
    for path in sorted(SITE.rglob("*.html")):
        page.goto(path.as_uri())
    assert leaving(requests) == []
    page.close()


def test_copied_examples_run(browser):
    """Seen: the button left out the lines that begin with dots."""
    context = browser.new_context(permissions=["clipboard-read", "clipboard-write"])
    page, n_blocks = context.new_page(), 0
    for path in sorted(SITE.rglob("*.html")):
        if ">... </span>" not in path.read_text(encoding="utf-8"):
            continue
        page.goto(path.as_uri())
        blocks = page.locator("div.highlight:has(.gp)").filter(has_text="\n... ")
        for block in blocks.all():
            examples = doctest.DocTestParser().get_examples(block.inner_text() + "\n")
            block.hover()
            block.locator("button.copybtn").click()
            copied = page.evaluate("navigator.clipboard.readText()")
            expected = "".join(example.source for example in examples)
            assert copied.split() == expected.split(), path
            compile(copied, path.name, "exec")
            n_blocks += 1
    assert n_blocks > 9
    context.close()


@pytest.mark.parametrize(
    "module",
    [
        "",
        ".plot",
        ".paper",
        ".paper.geometry",
        ".distributed",
        ".report",
        ".exceptions",
    ],
)
def test_every_public_name_has_a_page(module):
    public = importlib.import_module(f"a1gm{module}").__all__
    pages = {path.stem for path in (SITE / "reference").glob("*.html")}
    assert {f"a1gm{module}.{name}" for name in public} <= pages


def test_every_example_has_a_picture_of_its_own(browser):
    page = browser.new_page()
    page.goto((SITE / "gallery" / "index.html").as_uri())
    shown = page.locator(".sphx-glr-thumbcontainer img").evaluate_all(
        "all => all.map(image => image.src)"
    )
    assert len(shown) == len(EXAMPLES)
    pictures = {Path(unquote(urlparse(url).path)).read_bytes() for url in shown}
    assert len(pictures) == len(EXAMPLES)
    page.close()


@pytest.mark.parametrize(
    ("word", "title"),
    [
        ("certificate", "How it works"),
        ("DuckDB", "Where the data already are"),
        ("PostgreSQL", "Where the data already are"),
        ("Snowflake", "Where the data already are"),
        ("Spark", "Where the data already are"),
    ],
)
def test_the_search_finds_a_word(browser, word, title):
    page = browser.new_page()
    words, requests = listen(page)
    page.goto((SITE / "index.html").as_uri())
    field = page.locator("input[name=q]").first
    field.fill(word)
    field.press("Enter")
    page.wait_for_selector(f"#search-results li a:has-text('{title}')")
    assert words == []
    assert leaving(requests) == []
    page.close()
