"""Advice can be followed where it is given: every option that is named exists there."""

import ast
import inspect
import re
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from support.commands import run

import a1gm
from a1gm import RankOneImputer, RankOneNMF
from a1gm._rows.files.source import TableOptions
from a1gm.cli.options import command_style
from a1gm.exceptions import Option

nan = np.nan
GOOD = np.array([[1.0, 2.0], [3.0, 6.0], [2.0, 4.0]])
NEGATIVE = np.where(GOOD == 6.0, -6.0, GOOD)
INFINITE = np.where(GOOD == 6.0, np.inf, GOOD)
SPLIT = np.array([[1.0, nan], [nan, 2.0]])
EMPTY = np.array([[1.0, nan], [2.0, nan]])
TEXT = pd.DataFrame({"shop": ["a", "b"], "x": [1.0, 2.0]})
STACK = np.ones((2, 2, 2))

#: Who gave the advice, and what made it.
LIBRARY = [
    *[
        (a1gm.fit, lambda X=X: a1gm.fit(X))
        for X in (NEGATIVE, INFINITE, SPLIT, EMPTY, TEXT, STACK, GOOD[0], [["a"]])
    ],
    (a1gm.fit, lambda: a1gm.fit(GOOD, weights=[1.0, 2.0, 3.0])),
    (a1gm.fit, lambda: a1gm.fit(NEGATIVE, weights=GOOD)),
    (a1gm.fit, lambda: a1gm.fit(GOOD, weights=-GOOD)),
    (a1gm.fit, lambda: a1gm.fit(GOOD, tol=-1)),
    (a1gm.fit, lambda: a1gm.fit(GOOD, absent="zero")),
    (a1gm.RankOneFit.impute, lambda: a1gm.fit(GOOD).impute(NEGATIVE)),
    (a1gm.RankOneFit.impute, lambda: a1gm.fit(GOOD).impute(GOOD[:, :1])),
    (a1gm.RankOneFit.transform, lambda: a1gm.fit(GOOD).transform(NEGATIVE)),
    *[
        (kind, lambda kind=kind, X=X: kind().fit(X))
        for kind in (RankOneImputer, RankOneNMF)
        for X in (NEGATIVE, INFINITE, SPLIT, EMPTY, TEXT, STACK, GOOD[0])
    ],
    (RankOneImputer, lambda: RankOneImputer().fit(GOOD).transform(NEGATIVE)),
    (RankOneImputer, lambda: RankOneImputer().fit(GOOD).transform([[nan, nan]])),
    (RankOneImputer, lambda: RankOneImputer(missing_values=-1).fit(EMPTY)),
    (RankOneNMF, lambda: RankOneNMF().fit(GOOD).transform(NEGATIVE)),
    (a1gm.fit_nmmf, lambda: a1gm.fit_nmmf(NEGATIVE, GOOD)),
]
OPTION = re.compile(r"\b([a-z_]+)=(?!=)")


def _message(make):
    """What is raised or warned; calls in it, with options of their own, are cut out."""
    texts = []
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        try:
            make()
        except (ValueError, TypeError) as error:
            texts.append(str(error))
    texts += [str(one.message) for one in told]
    return re.sub(r"[\w.]+\([^()]*\)", "", " ".join(texts))


@pytest.mark.parametrize("at", range(len(LIBRARY)))
def test_options_named_by_the_library_exist_there(at):
    owner, make = LIBRARY[at]
    message = _message(make)
    known = set(inspect.signature(owner).parameters)
    for option in OPTION.findall(message):
        assert option in known, (owner, option, message)


def test_there_is_advice_to_check():
    with_options = [OPTION.findall(_message(make)) for _, make in LIBRARY]
    assert sum(map(bool, with_options)) >= 4


def test_options_that_files_name_exist_in_the_library_and_in_the_command():
    """Of all options in messages of the source that a command can raise."""
    source = Path(a1gm.__file__).parent
    paths = [*(source / "_rows").rglob("*.py"), *(source / "_write").rglob("*.py")]
    text = "".join(path.read_text() for path in paths)
    named = set(re.findall(r"\bOption\(['\"](\w+)['\"]", text)) - {"keys", "value"}
    assert {"id", "columns", "exclude", "missing", "sheet"} <= named
    takes = {*inspect.signature(a1gm.impute_file).parameters, "by", "duplicates"}
    takes |= {*inspect.signature(a1gm.fit_file).parameters}
    assert named <= takes
    shown = run("impute", "--help").stdout
    assert [name for name in named if command_style(Option(name)) not in shown] == []


def test_every_way_of_reading_a_file_is_an_option_of_the_command():
    shown = run("inspect", "--help").stdout
    options = set(inspect.signature(TableOptions).parameters)
    for name in options - {"batch_rows"}:
        assert f"--{name.replace('_', '-')}" in shown


def test_cells_left_missing_name_the_fallback():
    imputer = RankOneImputer().fit(GOOD)
    with pytest.warns(a1gm.exceptions.UndeterminedWarning, match='fallback="column"'):
        imputer.transform([[nan, nan]])
    filled = RankOneImputer(fallback="column").fit(GOOD).transform([[nan, nan]])
    assert np.isfinite(filled).all()


def test_the_list_of_unknown_cells_is_named():
    assert "; see fit.undetermined." in _message(lambda: a1gm.fit(SPLIT))
    words = "; with on_undetermined='warn', see fit.undetermined."
    assert words in _message(lambda: a1gm.impute(SPLIT, on_undetermined="raise"))


def test_no_text_of_the_library_names_an_option():
    """Read from the source: the command renders its options itself."""
    dashes = re.compile(r"(?<![\w-])--[a-z]")
    root = Path(a1gm.__file__).parent
    found = []
    for path in sorted(root.rglob("*.py")):
        top = path.relative_to(root).parts[0]
        if top in ("cli", "report"):  # pages have style sheets
            continue
        tree = ast.parse(path.read_text(encoding="utf-8"))
        documentation = {
            id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)
        }
        found += [
            f"{path.relative_to(root)}:{node.lineno} {node.value!r}"
            for node in ast.walk(tree)
            if isinstance(node, ast.Constant)
            and isinstance(node.value, str)
            and id(node) not in documentation
            and dashes.search(node.value)
        ]
    assert not found, "\n".join(found)
