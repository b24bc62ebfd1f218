"""Imports point one way, and importing the package costs next to nothing."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from pathlib import Path

import pytest

import a1gm

ROOT = Path(a1gm.__file__).parent

# From what users touch down to what touches the data. A module may import, when it is
# loaded, only modules of its own layer or of layers further down.
LAYERS = [
    {"exceptions", "_types", "_words", "_warn"},
    {"_bits", "_kernel", "_labels", "_range"},
    {"_input", "_statistics", "_shown", "_unknown", "_names"},
    {"_blocks", "_observe", "_divergence", "_sparse", "_pattern_sums"},
    {"_knowledge", "_peel", "_core", "_transform", "_fill", "_fill_frames"},
    {"_expand", "_given_up"},
    {"_certificate"},
    {"result", "pattern", "_solved"},
    {"_fit", "_weights", "_pattern_table", "_table_bytes", "_pieces"},
]


def imports_of(path: Path) -> set[str]:
    """First parts of the package's modules that a file imports when it is loaded."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    found = set()
    for node in _loaded_nodes(tree.body):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("a1gm"):
            rest = (node.module or "").split(".")[1:]
            found |= {rest[0]} if rest else {alias.name for alias in node.names}
        elif isinstance(node, ast.Import):
            found |= {
                alias.name.split(".")[1]
                for alias in node.names
                if alias.name.startswith("a1gm.")
            }
    return found


def _loaded_nodes(body: list[ast.stmt]):
    """Statements run at import: not those in functions, nor for type checkers only."""
    for node in body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        if isinstance(node, ast.If):
            if "TYPE_CHECKING" not in ast.dump(node.test):
                yield from _loaded_nodes(node.body)
            yield from _loaded_nodes(node.orelse)
        elif isinstance(node, ast.ClassDef):
            yield from _loaded_nodes(node.body)
        else:
            yield node


def module_files() -> dict[str, list[Path]]:
    files: dict[str, list[Path]] = {}
    for path in ROOT.rglob("*.py"):
        first = path.relative_to(ROOT).parts[0].removesuffix(".py")
        files.setdefault(first, []).append(path)
    return files


@pytest.mark.parametrize("level", range(len(LAYERS)))
def test_imports_point_one_way(level):
    below = set().union(*LAYERS[: level + 1])
    files = module_files()
    for module in LAYERS[level] & set(files):
        for path in files[module]:
            upwards = imports_of(path) - below
            assert not upwards, f"{path.relative_to(ROOT)} imports {sorted(upwards)}"


def test_the_kernel_knows_nothing_of_what_is_above_it():
    below = {"_kernel", "_types", "_bits", "_warn", "exceptions"}
    for path in (ROOT / "_kernel").rglob("*.py"):
        assert imports_of(path) <= below, path


def test_the_engine_does_not_know_files_clusters_or_the_terminal():
    outside = {"io", "cli", "distributed", "estimators", "plot", "report"}
    engine = set().union(*LAYERS)
    for module, paths in module_files().items():
        if module in engine:
            for path in paths:
                assert not imports_of(path) & outside, path


def test_the_paper_stands_apart_from_the_engine():
    below = {"paper", "exceptions", "_types", "_warn", "_words"}
    for path in (ROOT / "paper").rglob("*.py"):
        assert imports_of(path) <= below, path


# ------------------------------------------------------------- what gets loaded
def run(code: str) -> str:
    result = subprocess.run(
        [sys.executable, "-W", "error", "-c", code],
        capture_output=True,
        text=True,
        check=False,
        env=dict(os.environ),
    )
    assert result.returncode == 0, result.stderr
    return result.stdout


HEAVY = "scipy sklearn pandas polars pyarrow narwhals matplotlib dask distributed typer"


def loaded_after(code: str) -> set[str]:
    names = run(
        f"import sys\n{code}\nprint(*(m for m in {HEAVY.split()} if m in sys.modules))"
    )
    return set(names.split())


def test_importing_loads_nothing_heavy():
    assert loaded_after("import a1gm") == set()


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
    run(code)


# ------------------------------------------------------------------ public names
ENGINE_NAMES = {"MissingPattern", "PatternTable", "RankOneFit", "exceptions", "fit"}
FIT_NAMES = {
    "attained",
    "certificate",
    "col_block",
    "col_factor",
    "col_labels",
    "divergence",
    "divergence_of",
    "fate",
    "impute",
    "converged",
    "n_blocks",
    "n_iter",
    "n_undetermined",
    "pattern",
    "reconstruct",
    "row_block",
    "row_factor",
    "row_labels",
    "shape",
    "solver",
    "summary",
    "tol",
    "transform",
    "undetermined",
}
PATTERN_NAMES = {
    "core_shape",
    "has_closed_form",
    "increase_rate",
    "is_complete",
    "is_grid_like",
    "is_nested",
    "n_col_patterns",
    "n_missing",
    "n_row_patterns",
    "n_rows",
    "n_cols",
    "of",
}


def test_public_names_are_there():
    import numpy as np

    assert set(a1gm.__all__) >= ENGINE_NAMES | {"paper"}
    for name in a1gm.__all__:
        assert getattr(a1gm, name) is not None
    assert dir(a1gm) == sorted(dir(a1gm))
    assert set(dir(a1gm)) >= set(a1gm.__all__)
    fit = a1gm.fit(np.ones((2, 2)))
    assert set(dir(fit)) >= FIT_NAMES
    assert set(dir(fit.pattern)) >= PATTERN_NAMES
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = a1gm.nothing


def test_nothing_else_of_a_fit_is_public():
    import numpy as np

    fit = a1gm.fit(np.ones((2, 2)))
    public = {name for name in dir(fit) if not name.startswith("_")}
    assert public - FIT_NAMES <= {"say_what_is_unknown", "save", "to_frame"}


def test_the_version_is_that_of_the_package():
    from importlib.metadata import version

    assert a1gm.__version__ == version("a1gm")
