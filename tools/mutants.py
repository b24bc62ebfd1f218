"""Break the package in small ways, one at a time; count how often the suite notices.

python tools/mutants.py --count 200 --seed 1 --out mutants.csv
python tools/mutants.py --count 20 --only _solve

A mutant changes one place of one source file: a comparison is flipped, a whole number
is one larger, a statement is dropped, or the first two arguments of a call change
places; of C++ a comparison or a whole number. The tests that mirror the file run, then
those that compare all ways in. The work tree must be clean, and is put back each time.
"""

from __future__ import annotations

import argparse
import ast
import csv
import os
import random
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

SOURCE = Path("src/a1gm")
SECONDS = 600  # for the tests of one mutant
#: Tests that mirror a package, beyond the folder of its name.
MIRRORS = {
    "_api": ["api", "ways/test_fitted.py"],
    "_base": ["base", "rows"],
    "_fit": ["fit", "ways/test_fitted.py", "ways/test_uncertainty.py"],
    "_kernel": ["kernel", "solve", "properties"],
    "_observe": ["observe", "solve", "properties"],
    "_rows": ["rows", "ways/test_columns.py"],
    "_solve": ["solve", "properties", "oracles"],
    "_write": ["write", "api"],
    "plot": ["test_plot.py"],
}
FLIPPED = {
    ast.Lt: ast.GtE,
    ast.LtE: ast.Gt,
    ast.Gt: ast.LtE,
    ast.GtE: ast.Lt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
}
SIGNS = {
    ast.Lt: "<",
    ast.LtE: "<=",
    ast.Gt: ">",
    ast.GtE: ">=",
    ast.Eq: "==",
    ast.NotEq: "!=",
    ast.Is: "is",
    ast.IsNot: "is not",
    ast.In: "in",
    ast.NotIn: "not in",
}
CPP_FLIPPED = {" < ": " >= ", " <= ": " > ", " > ": " <= ", " >= ": " < "}
CPP_FLIPPED |= {" == ": " != ", " != ": " == "}


class Mutant(NamedTuple):
    """A change of one file: the text from ``start`` to ``stop`` is replaced."""

    path: Path
    line: int
    what: str
    start: int
    stop: int
    text: str


# ---------------------------------------------------------------------------- places
def python_mutants(path: Path) -> Iterator[Mutant]:
    """Every mutant of a Python file."""
    source = path.read_text(encoding="utf-8")
    starts = line_starts(source)
    tree = ast.parse(source)
    documented = docstrings(tree)

    def offset(line: int, column: int) -> int:
        text = source[starts[line - 1] :].split("\n", 1)[0].encode()[:column]
        return starts[line - 1] + len(text.decode())

    for node in ast.walk(tree):
        if not hasattr(node, "lineno") or node in documented:
            continue
        start = offset(node.lineno, node.col_offset)
        stop = offset(node.end_lineno, node.end_col_offset)
        change = change_of(node, source[start:stop])
        if change is not None:
            what, text = change
            yield Mutant(path, node.lineno, what, start, stop, text)


def change_of(node: ast.AST, text: str) -> tuple[str, str] | None:
    """What is changed at a node, and its text afterwards; None where nothing is."""
    if isinstance(node, ast.Compare) and len(node.ops) == 1:
        left = ast.unparse(node.left)
        right = ast.unparse(node.comparators[0])
        sign = SIGNS[FLIPPED[type(node.ops[0])]]
        return "comparison", f"({left} {sign} {right})"
    if isinstance(node, ast.Constant) and type(node.value) is int:
        return "number", str(node.value + 1)
    if isinstance(node, ast.Call) and len(node.args) >= 2 and not has_star(node):
        first, second, *others = map(ast.unparse, node.args)
        options = [ast.unparse(option) for option in node.keywords]
        arguments = ", ".join([second, first, *others, *options])
        return "arguments", f"{ast.unparse(node.func)}({arguments})"
    if isinstance(node, ast.Expr | ast.AugAssign) and "\n" not in text:
        return "statement", "pass"
    return None


def has_star(call: ast.Call) -> bool:
    """Whether a call has starred arguments, which have no place to change."""
    return any(isinstance(argument, ast.Starred) for argument in call.args)


def docstrings(tree: ast.AST) -> set[ast.AST]:
    """Statements that are documentation."""
    return {
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    }


def line_starts(source: str) -> list[int]:
    """Where each line begins."""
    starts = [0]
    for line in source.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    return starts


def cpp_mutants(path: Path) -> Iterator[Mutant]:
    """Every mutant of a C++ file."""
    source = path.read_text(encoding="utf-8")
    code = re.sub(r"//[^\n]*", lambda m: " " * len(m.group()), source)
    for sign, flipped in CPP_FLIPPED.items():
        for place in re.finditer(re.escape(sign), code):
            line = source.count("\n", 0, place.start()) + 1
            yield Mutant(path, line, "comparison", *place.span(), flipped)
    for place in re.finditer(r"(?<![\w.])\d+(?![\w.])", code):
        line = source.count("\n", 0, place.start()) + 1
        if not source[:line].startswith("#"):
            number = str(int(place.group()) + 1)
            yield Mutant(path, line, "number", *place.span(), number)


def all_mutants(only: str) -> list[Mutant]:
    """Every mutant of the sources, in an order that does not change."""
    mutants: list[Mutant] = []
    for path in sorted(SOURCE.rglob("*")):
        if only not in str(path):
            continue
        if path.suffix == ".py":
            mutants += python_mutants(path)
        elif path.suffix in (".cpp", ".hpp"):
            mutants += cpp_mutants(path)
    return mutants


# ------------------------------------------------------------------------- the tests
def tests_of(path: Path) -> list[str]:
    """The tests that mirror a source file."""
    package = path.relative_to(SOURCE).parts[0].removesuffix(".py")
    names = MIRRORS.get(package, [package.lstrip("_")])
    places = [f"tests/{name}" for name in names if Path(f"tests/{name}").exists()]
    return places or ["tests/api", "tests/test_package.py"]


def is_noticed(mutant: Mutant, build: str) -> bool:
    """Whether the tests fail with the mutant in place."""
    if mutant.path.suffix in (".cpp", ".hpp"):
        built = subprocess.run(build, shell=True, capture_output=True, check=False)
        if built.returncode:
            return True
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider"]
    command += ["-m", "not nightly and not slow", *tests_of(mutant.path)]
    environment = {**os.environ, "HYPOTHESIS_PROFILE": "quick"}
    try:
        done = subprocess.run(
            command, capture_output=True, check=False, timeout=SECONDS, env=environment
        )
    except subprocess.TimeoutExpired:
        return True
    return done.returncode != 0


def tried(mutant: Mutant, build: str) -> bool:
    """Put a mutant in place, run the tests, and put the file back."""
    before = mutant.path.read_text(encoding="utf-8")
    after = before[: mutant.start] + mutant.text + before[mutant.stop :]
    mutant.path.write_text(after, encoding="utf-8")
    try:
        return is_noticed(mutant, build)
    finally:
        mutant.path.write_text(before, encoding="utf-8")


def main() -> int:
    """Try a sample of all mutants; print and write what each came to."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", default="")
    parser.add_argument("--out", type=Path, default=None)
    parser.add_argument("--build", default="pip install --no-deps -q .")
    options = parser.parse_args()
    status = ["git", "status", "--porcelain", "--untracked-files=no", "src"]
    if subprocess.run(status, capture_output=True, check=True).stdout:
        parser.error("the sources have changes that are not committed")
    mutants = all_mutants(options.only)
    chosen = random.Random(options.seed).sample(
        mutants, min(options.count, len(mutants))
    )
    rows = []
    for mutant in chosen:
        began = time.monotonic()
        noticed = tried(mutant, options.build)
        word = "noticed" if noticed else "MISSED"
        seconds = time.monotonic() - began
        place = f"{mutant.path}:{mutant.line}"
        print(f"{word:8} {mutant.what:11} {place} ({seconds:.0f} s)", flush=True)
        rows.append([word, mutant.what, place])
    if options.out is not None:
        with options.out.open("w", newline="", encoding="utf-8") as file:
            csv.writer(file).writerows(rows)
    n_noticed = sum(row[0] == "noticed" for row in rows)
    print(f"{n_noticed} of {len(rows)} mutants noticed, of {len(mutants)} in all")
    return 0


if __name__ == "__main__":
    sys.exit(main())
