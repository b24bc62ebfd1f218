"""What is told of an optional package that is not installed."""

from __future__ import annotations

import re
import shlex
import sys
import tomllib
from pathlib import Path

import pandas as pd
import pytest

import a1gm
from a1gm._base.optional import PACKAGES, require
from a1gm.exceptions import MissingExtraError

PROJECT = Path(__file__).parents[2] / "pyproject.toml"


def test_the_advice_names_what_the_extras_bring():
    extras = tomllib.loads(PROJECT.read_text("utf-8"))["project"][
        "optional-dependencies"
    ]
    del extras["all"]
    brought = {
        extra: [re.sub(">=.*", "", need) for need in needs]
        for extra, needs in extras.items()
    }
    assert brought == {extra: shlex.split(names) for extra, names in PACKAGES.items()}


@pytest.mark.parametrize(
    ("file", "names"), [("a.csv", "pyarrow"), ("a.xlsx", "python-calamine pyarrow")]
)
def test_a_file_is_read_without_what_the_commands_need(
    tmp_path, monkeypatch, file, names
):
    path = tmp_path / file
    frame = pd.DataFrame({"x": [1.0, 2.0], "y": [2.0, 4.0]})
    frame.to_csv(path) if file == "a.csv" else frame.to_excel(path)
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(MissingExtraError, match=f"pip install {names}$"):
        a1gm.fit_file(path)


def test_an_absent_package():
    # Not a1gm[excel]: that is found only where a release of a1gm is.
    with pytest.raises(MissingExtraError) as caught:
        require("no_such_module.part", "excel", "Reading a spreadsheet")
    assert str(caught.value) == (
        "Reading a spreadsheet needs no_such_module, which is not installed. "
        "Install it with: pip install python-calamine pyarrow"
    )
    assert caught.value.name == "no_such_module"
