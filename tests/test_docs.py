"""Everything a reader may copy runs: the README, the pages, the docstrings."""

from __future__ import annotations

import doctest
import importlib
import inspect
import pkgutil
import re
import warnings
from pathlib import Path

import pytest

import a1gm

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]


def modules() -> list[str]:
    found = pkgutil.walk_packages(a1gm.__path__, prefix="a1gm.")
    return [name for _, name, _ in found if not name.endswith("_native")]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_examples_of_a_page_run(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with warnings.catch_warnings():
        if "chainladder" in page.read_text(encoding="utf-8"):
            warnings.simplefilter("ignore")  # it has its own
        failed, _ = doctest.testfile(str(page), module_relative=False)
    assert failed == 0


@pytest.mark.parametrize("name", modules())
def test_examples_of_a_module_run(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    module = importlib.import_module(name)
    failed, _ = doctest.testmod(module)
    assert failed == 0


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_between_pages_lead_somewhere(page):
    text = page.read_text(encoding="utf-8")
    pictures = re.findall(r' src(?:set)?="([^"]+)"', text)
    for target in re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", text) + pictures:
        if "://" not in target:
            assert (page.parent / target).exists(), target


def test_every_public_name_is_in_the_api_page():
    text = (ROOT / "docs" / "api.md").read_text(encoding="utf-8")
    missing = [
        name
        for name in a1gm.__all__
        if f"`{name}" not in text and f"a1gm.{name}" not in text
    ]
    assert missing == []


@pytest.mark.parametrize("home", [a1gm, a1gm.paper, a1gm.paper.geometry, a1gm.plot])
def test_every_public_thing_has_a_docstring_and_functions_an_example(home):
    for name in home.__all__:
        thing = getattr(home, name)
        assert thing.__doc__, name
        if inspect.isfunction(thing):
            assert ">>> " in thing.__doc__, name


def test_every_way_in_has_every_option_or_a_reason(monkeypatch):
    monkeypatch.syspath_prepend(ROOT / "docs")
    import ways_in

    assert list(ways_in.unexplained()) == []
    taken = {way: ways_in.options_of(way) for way in ways_in.ways()}
    for way, option in ways_in.REASONS:  # a reason that is no longer needed
        assert not taken[way] & {option, *ways_in.OPTIONS[option]}, (way, option)
    page = (ROOT / "docs" / "api.md").read_text(encoding="utf-8")
    assert "<!-- ways -->" in page
    assert ways_in.table().count("\n| `a1gm") == len(ways_in.ways())
    monkeypatch.delitem(ways_in.REASONS, ("a1gm.assess", "tol"))
    assert list(ways_in.unexplained()) == [("a1gm.assess", "tol")]
