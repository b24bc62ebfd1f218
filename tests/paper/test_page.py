"""docs/paper.md says what the code does; all pages say what was measured."""

import csv
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "paper.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", ["README.md", "docs/paper.md", "docs/performance.md"])
def test_tables_are_those_of_the_results(monkeypatch, name) -> None:
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    page = pytest.importorskip("page")
    assert page.with_tables(name) == (ROOT / name).read_text(encoding="utf-8")


def results(name: str) -> list[dict[str, str]]:
    path = ROOT / "benchmarks" / "results" / name
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def test_its_ratios_of_time_are_those_of_the_results() -> None:
    ratios = [
        float(row["a1gm_seconds"]) / float(row["fit_seconds"])
        for row in results("table1.csv")
    ]
    assert f"on all {len(ratios)} tables, up to {max(ratios):.0f} times" in PAGE
    poisson = [
        float(row["times_fit"])
        for row in results("peers.csv")
        if "oisson" in row["rival"] or "fepois" in row["rival"]
    ]
    low, high = round(min(poisson), -2), round(max(poisson), -3)
    assert f"at {low:.0f} to {high:,.0f} times the time" in PAGE


def test_its_pictures_exist() -> None:
    for picture in re.findall(r"!\[.*?\]\((.*?)\)", PAGE):
        assert (ROOT / "docs" / picture).is_file()
