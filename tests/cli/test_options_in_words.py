"""Advice of the library as the command line gives it."""

import ast
import re

import pytest
from support.commands import ROOT

from a1gm._rows.files.options import hint
from a1gm.cli.app import app
from a1gm.cli.common import Common
from a1gm.cli.options_in_words import _NAMES, in_command_words


@pytest.mark.parametrize(
    ("option", "value", "words"),
    [
        ("missing", "NULL", "--missing NULL"),
        ("missing", "-", "--missing '-'"),
        ("missing", "it's", r"--missing 'it'\''s'"),
        ("columns", ..., "--columns"),
        ("delimiter", "\t", r"--delimiter '\t'"),
        ("decimal", ",", "--decimal ','"),
        ("negatives", "allow", "--negatives allow"),
        ("overwrite", True, "--overwrite"),
    ],
)
def test_options_are_translated(option, value, words):
    text = in_command_words(
        f"Pass {hint(option, value)}. Again: {hint(option, value)}."
    )
    assert text == f"Pass {words}. Again: {words}."


def test_other_words_stay():
    for text in ("x=[1]", "fit.missing", "sales.csv: columns=2", "axis='row'"):
        assert in_command_words(text) == text


def test_every_option_that_is_named_exists():
    assert app.registered_commands
    names = {name.replace("_", "-") for name in Common.__dataclass_fields__}
    own = {"mark", "interval"}
    assert {words.removeprefix("--") for words in _NAMES.values()} <= names | own


def test_the_library_does_not_speak_of_the_command_line():
    for path in (ROOT / "src" / "a1gm").rglob("*.py"):
        if "cli" in path.parts:
            continue
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                assert not re.search(r"(?<![\w(-])--[a-z]", node.value), (
                    path,
                    node.value,
                )
