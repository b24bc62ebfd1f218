"""docs/paper.md says what the code does and what was measured."""

import contextlib
import io
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "paper.md").read_text(encoding="utf-8")


def test_its_example_prints_what_it_shows() -> None:
    (code,) = re.findall(r"```python\n(.*?)```", PAGE, flags=re.DOTALL)
    shown = re.findall(r"^print.*# (.*)$", code, flags=re.MULTILINE)
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        exec(code, {})
    assert printed.getvalue().split() == shown


def test_its_tables_are_those_of_the_results(monkeypatch) -> None:
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    page = pytest.importorskip("page")
    assert page.with_tables(PAGE) == PAGE


def test_its_pictures_exist() -> None:
    for picture in re.findall(r"!\[.*?\]\((.*?)\)", PAGE):
        assert (ROOT / "docs" / picture).is_file()
