"""The house: imports point one way, and importing the package costs next to nothing.

The tests read the tree itself, so a new module cannot be forgotten.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import numpy as np
import pytest
from support.commands import run_python

import a1gm

ROOT = Path(a1gm.__file__).parent

# Rank of every entry at the top of the package. A module may import its own rank and
# lower ones, also inside functions.
RANKS = {
    "_base": 0,
    "exceptions": 0,
    "_kernel": 1,
    "paper": 1,
    "_rows": 2,
    "_observe": 3,
    "_solve": 4,
    "_fit": 5,
    "_write": 6,
    "_api": 7,
    "engines": 7,
    "tensor": 7,
    "nmmf": 8,
    "distributed": 9,
    "estimators": 9,
    "plot": 9,
    "report": 9,
    "__init__": 10,
    "__main__": 10,
    "cli": 10,
}
# These two import nothing but themselves and the lowest rank.
APART = {"_kernel", "paper"}


# ----------------------------------------------------------------- reading the tree
@cache
def modules() -> dict[str, Path]:
    """Every module by its dotted name inside the package; "" is the package itself."""
    found = {}
    for path in sorted(ROOT.rglob("*.py")):
        parts = path.relative_to(ROOT).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


@cache
def tree_of(module: str) -> ast.Module:
    return ast.parse(modules()[module].read_text(encoding="utf-8"))


def top_of(module: str) -> str:
    return module.partition(".")[0] or "__init__"


def run_nodes(node: ast.AST) -> Iterator[ast.AST]:
    """All nodes below this one, except what only type checkers read."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.If) and "TYPE_CHECKING" in ast.dump(child.test):
            for other in child.orelse:
                yield other
                yield from run_nodes(other)
            continue
        yield child
        yield from run_nodes(child)


@cache
def imports_of(module: str) -> tuple[tuple[str, int], ...]:
    """Modules of the package that a module imports, at any time, with the line."""
    found = []
    for node in run_nodes(tree_of(module)):
        names = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{module}:{node.lineno} is a relative import"
            for alias in node.names:
                below = f"{node.module}.{alias.name}"
                is_module = below.removeprefix("a1gm.") in modules()
                names.append(below if is_module else node.module)
        for name in names:
            top, _, target = name.partition(".")
            if top == "a1gm":
                found.append((target, node.lineno))
    return tuple(found)


# ---------------------------------------------------------------------- the layers
def test_every_entry_at_the_top_has_a_rank():
    entries = {
        path.name.removesuffix(".py")
        for path in ROOT.iterdir()
        if path.name not in ("__pycache__", "py.typed")
    }
    assert entries == set(RANKS)


@pytest.mark.parametrize("top", RANKS)
def test_imports_point_down(top):
    most = 0 if top in APART else RANKS[top]
    upwards = []
    for module in modules():
        if top_of(module) != top:
            continue
        for target, line in imports_of(module):
            assert target in modules(), f"{module}:{line} imports {target}, not there"
            if top_of(target) != top and RANKS[top_of(target)] > most:
                upwards.append(f"{module}:{line} imports {target or 'a1gm'}")
    assert not upwards, "\n".join(upwards)


def test_no_modules_import_each_other():
    graph = {
        module: {target for target, _ in imports_of(module) if target != module}
        for module in modules()
    }
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        pytest.fail(" -> ".join(name or "a1gm" for name in error.args[1]))


# ------------------------------------------------------------- what gets loaded


HEAVY = "scipy sklearn pandas polars pyarrow narwhals matplotlib dask distributed typer"


def loaded_after(code: str) -> set[str]:
    names = f"m for m in {HEAVY.split()} if m in sys.modules"
    done = run_python(f"import sys\n{code}\nprint(*({names}))")
    assert done.returncode == 0, done.stderr
    return set(done.stdout.split())


def test_a_plain_fit_loads_nothing_heavy():
    code = """
import numpy as np, a1gm
X = np.array([[1.0, 2.0, 3.0], [2.0, np.nan, 6.0]])
fit = a1gm.fit(X)
fit.impute(X), fit.certificate, fit.reconstruct(), fit.transform(X)
"""
    assert loaded_after(code) == set()


def test_no_optional_package_is_needed_to_fit():
    code = """
import sys
for name in "pandas polars pyarrow matplotlib dask distributed typer rich".split():
    sys.modules[name] = None
import numpy as np, a1gm
X = np.array([[0.0, 5.0, 1.0], [5.0, np.nan, 2.0]])
fit = a1gm.fit(X, on_undetermined="ignore")
fit.impute(X), fit.divergence, repr(fit), fit.pattern, fit._repr_html_()
"""
    done = run_python(code)
    assert done.returncode == 0, done.stderr


# ------------------------------------------------------------------ public names
FIT_NAMES = """
attained cell_error certificate col_block col_factor col_labels converged deviance
deviance_explained divergence divergence_of fate fill_long has_exposure has_weights
impute n_blocks n_iter n_undetermined pattern predict reconstruct residuals row_block
row_factor row_labels save shape solver summary to_frames to_sql tol transform
uncertainty undetermined
"""
PATTERN_NAMES = """
core_shape has_closed_form is_complete is_grid_like is_nested
n_col_patterns n_cols n_missing n_row_patterns n_rows
"""


def test_public_names_are_there():
    for name in a1gm.__all__:
        assert getattr(a1gm, name) is not None
    assert dir(a1gm) == sorted(dir(a1gm))
    assert set(dir(a1gm)) >= set(a1gm.__all__)
    fit = a1gm.fit(np.ones((2, 2)))
    assert {name for name in dir(fit) if name[0] != "_"} == set(FIT_NAMES.split())
    assert set(dir(fit.pattern)) >= set(PATTERN_NAMES.split())
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = a1gm.nothing
