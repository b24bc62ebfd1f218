"""What is told of an optional package that is not installed."""

from __future__ import annotations

import re
import shlex
import tomllib
from pathlib import Path

import pytest

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


def test_an_absent_package():
    # Not a1gm[excel]: that is found only where a release of a1gm is.
    with pytest.raises(MissingExtraError) as caught:
        require("no_such_module.part", "excel", "Reading a spreadsheet")
    assert str(caught.value) == (
        "Reading a spreadsheet needs no_such_module, which is not installed. "
        "Install it with: pip install python-calamine pyarrow"
    )
    assert caught.value.name == "no_such_module"
