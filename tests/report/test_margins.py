"""The page about a table of several modes."""

from __future__ import annotations

import re
from itertools import product

import numpy as np
import pandas as pd
import pytest
from support.browser import leaving, listen
from support.commands import run

import a1gm
from a1gm.exceptions import DataError, ParameterError
from a1gm.report import report_html

KEYS = ["site", "year", "month"]


def counts(seed=0):
    frame = pd.DataFrame(product(["a", "<b>", "c"], range(2015, 2021), range(1, 5)))
    frame.columns = KEYS
    rng = np.random.default_rng(seed)
    season = rng.gamma(2.0, 20.0, (3, 1, 4)) * np.ones((1, 6, 1))
    return frame.assign(n=rng.poisson(season).ravel(), effort=2.0)


seen = counts().drop([3, 17, 40, 41])


def sections(page):
    return re.findall(r'<section id="(\w+)"', page)


@pytest.mark.parametrize(
    "interactions", [None, ["site:month"], ["site:month", "year:site"]]
)
def test_the_page_has_totals_factors_and_the_worst_cells(interactions):
    fit = a1gm.fit_long(seen, KEYS, "n", interactions=interactions)
    page = report_html(None, fit, title="Counts")
    assert sections(page) == ["totals", "factors", "misfits", "method"]
    assert "3 × 6 × 4" in page
    assert "<b>" not in re.sub(r"<b>[\d.]+ %</b>", "", page)
    for mode in KEYS:
        assert f"Filled totals by {mode}" in page
        totals = fit.uncertainty().totals(mode)
        for value in totals.value[totals.value > 0.0].tolist():
            assert f'data-value="{value!r}"' in page
    for margin in fit.margins:
        assert f"<caption>{' × '.join(margin)}</caption>" in page
    share_a_key = sum(map(len, fit.margins)) > len(KEYS)
    assert ("one choice of many" in page) == share_a_key
    assert page.count("<figure>") == 3 + len(fit.margins) + 1
    cells = fit._observed
    worst = int(np.abs(cells.residuals("pearson")).argmax())
    assert f'data-value="{float(cells.fitted[worst])!r}"' in page
    assert "better than the means of" in page
    assert "{site} {year} {month}" in page


def test_totals_of_numbers_are_in_their_order():
    page = report_html(None, a1gm.fit_long(seen.drop([5, 10]), KEYS, "n"))
    captions = re.findall(r"<figcaption>(By .*?)</figcaption>", page)
    assert captions == ["By site, largest first", "By year", "By month"]
    listing = page.split("<caption>Filled totals by month</caption>")[1]
    listing = listing.split("</table>")[0]
    assert re.findall(r'<th scope="row">(\d+)</th>', listing) == list("1234")


def test_cells_that_cannot_be_known_are_listed():
    T = np.arange(1.0, 9.0).reshape(2, 2, 2)
    T[1, :, 1] = T[:, 1, 1] = np.nan
    T[0, 0, 0] = np.nan
    T = np.concatenate([T, np.full((1, 2, 2), np.nan)])
    fit = a1gm.fit_tensor(T, on_undetermined="ignore")
    page = report_html(T, fit)
    assert "unknown" in sections(page)
    assert f"{fit.n_undetermined} cells without a value" in page
    assert "the observed cells leave its scale free" in page
    assert "These totals come without errors" in page or "totals" not in sections(page)


def test_exposures_that_are_not_known_are_noted():
    fit = a1gm.fit_long(seen, KEYS, "n", exposure="effort", on_undetermined="ignore")
    page = report_html(None, fit)
    assert "4 missing cells have no known exposure: not filled." in page
    assert "unknown" not in sections(page)


def test_the_page_is_about_the_table_that_was_fitted():
    T = np.random.default_rng(0).poisson(9.0, (3, 4, 5)).astype(float)
    T[0, 0, 0] = np.nan
    fit = a1gm.fit_tensor(T)
    assert sections(report_html(T, fit)) == sections(report_html(None, fit))
    for other in (T + 1.0, np.where(T[1, 1, 1] == T, np.nan, T), np.nan_to_num(T)):
        with pytest.raises(ParameterError, match="not the table that was fitted"):
            report_html(other, fit)
    with pytest.raises(DataError, match="shape"):
        report_html(T[1:], fit)
    with pytest.raises(ParameterError, match="two keys"):
        report_html(T, fit, sample=2)


def test_the_command_writes_the_page(tmp_path):
    seen.to_csv(tmp_path / "counts.csv", index=False)
    options = "--long", "site,year,month,n", "--interactions", "site:month"
    done = run("report", tmp_path / "counts.csv", "-o", tmp_path / "p.html", *options)
    page = (tmp_path / "p.html").read_text()
    assert "<h1>counts.csv</h1>" in page
    assert "site × month" in page
    assert "Wrote" in done.stderr


@pytest.mark.parametrize("width", [1280, 390])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_it_opens_cleanly(browser, tmp_path, width, scheme):
    fit = a1gm.fit_long(seen, KEYS, "n", interactions=["site:month"])
    path = tmp_path / "page.html"
    path.write_text(report_html(None, fit))
    size = {"width": width, "height": 900}
    context = browser.new_context(viewport=size, color_scheme=scheme)
    page = context.new_page()
    words, requests = listen(page)
    page.goto(path.as_uri())
    assert words == []
    assert leaving(requests) == []
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    context.close()
