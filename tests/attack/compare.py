"""Compare two installs of the package: random tables, the same questions to both.

PYTHONPATH=tests python -m attack.compare --old PATH --new PATH --tables 20000
PYTHONPATH=tests python -m attack.compare --old PATH --new PATH --show frames:17

PATH is what PYTHONPATH must be to import that install. Each install answers in a
process of its own (``questions.py``); a crash or a hang is an answer.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections import Counter, defaultdict
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from .process import Worker

RTOL = 1e-9  # of fills and factors
RTOL_ERRORS = 1e-7  # of standard errors and what is made of them: names with "se"
SHOWN = 4  # seeds of a category that are printed
#: Differences of large sums, of which only the rounding may be left.
CANCELLING = ("divergence", "residuals", "deviance", "pearson_chi2")
ATOL = 1e-11
SMALLEST = 1e-306  # below, numbers have few digits
#: Answers that need not be equal; the first of them widens the tolerance.
NOT_COMPARED = ("cell_error", "certificate", "n_iter")

Answers = dict[str, tuple[Any, list[str], list[str]]]  # answer, warnings, their texts
Case = tuple[str, int]


@dataclass(frozen=True)
class Kind:
    """A kind of tables: its share of a run, and which kinds of the attack it is."""

    share: float
    of_zoo: tuple[str, ...] = ()


KINDS = {
    "ordinary": Kind(3, ("ordinary",)),
    "blocks": Kind(2, ("blocks", "random sparse")),
    "zeros": Kind(3, ("zeros",)),
    "staircase": Kind(1, ("staircase", "banded")),
    "weighted": Kind(2, ("weighted",)),
    "signed": Kind(2, ("signed",)),
    "bridge": Kind(1, ("bridge", "chain", "expanders", "bridge with zeros")),
    "weighted_bridge": Kind(0.5, ("weighted bridge",)),
    "spans": Kind(1, ("span 30", "span 120", "span 300", "subnormal", "odd")),
    "zero_components": Kind(1),
    "exposure": Kind(2),
    "sparse": Kind(1),
    "long": Kind(2),
    "groups": Kind(0.5),
    "nmmf": Kind(2),
    "frames": Kind(3),
    "files": Kind(1),
    "pieces": Kind(2),
    "new_rows": Kind(2),
    "uncertainty": Kind(2),
    "assess": Kind(0.3),
    "saved": Kind(1),
    "dask_collections": Kind(0.1),
    "estimators": Kind(0.5),
    "bad_inputs": Kind(0.5),
}


@dataclass
class Raised:
    """An exception: the name of its class, and its text."""

    name: str
    text: str


# ------------------------------------------------------------------------ installs


def ask_install(path: str, todo: list[Case]) -> list[Answers]:
    """The answers of one install; the end of its process is one, too."""
    where = os.pathsep.join([path, str(Path(__file__).parents[1])])
    worker, found = Worker("attack.questions", PYTHONPATH=where), []
    for case in todo:
        answers, end = worker.ask(*case)
        ended = {"question": (Raised("crash", end), [], [])}
        found.append(ended if answers is None else answers)
    worker.close()
    return found


def ask_both(paths: list[str], todo: list[Case]) -> list[tuple[Answers, Answers]]:
    with ThreadPoolExecutor(2) as pool:
        return list(zip(*pool.map(ask_install, paths, [todo, todo]), strict=True))


# ---------------------------------------------------------------------- comparison
def compare(old: Answers, new: Answers) -> dict[str, str]:
    """Differences: name of the answer -> category."""
    found = {}
    errors = (a["cell_error"][0] for a in (old, new) if "cell_error" in a)
    slack = 4.0 * sum(error for error in errors if isinstance(error, float))
    factor = old.get("row_factor", (0.0,))[0]
    factor = factor if isinstance(factor, np.ndarray) else 0.0
    with np.errstate(over="ignore"):
        rounding = 1e-14 * np.nansum(factor)
    for name in dict.fromkeys([*old, *new]):
        last = name.split()[-1]
        if last in NOT_COMPARED:
            continue
        if name not in old or name not in new:
            found[name] = "asked once"
            continue
        rtol = max(RTOL_ERRORS if name.startswith("se") else RTOL, slack)
        before, after = old[name][1], new[name][1]
        atol = max(ATOL, rounding) if last.startswith(CANCELLING) else SMALLEST
        category = differ(old[name][0], new[name][0], rtol, atol)
        if category is None and before != after:
            category = f"warns {after or 'nothing'} for {before or 'nothing'}"
        if category is not None:
            found[name] = category
    real = {k: v for k, v in found.items() if v != "asked once"}
    return real or found


def differ(a: Any, b: Any, rtol: float, atol: float = 0.0) -> str | None:
    """The category of the first difference between two plain answers."""
    if isinstance(a, Raised) or isinstance(b, Raised):
        before, after = (x.name if isinstance(x, Raised) else "nothing" for x in (a, b))
        return None if before == after else f"raises {after} for {before}"
    if isinstance(a, dict) and isinstance(b, dict):
        if list(a) != list(b):
            return "fields"
        a, b = list(a.values()), list(b.values())
    if isinstance(a, list) and isinstance(b, list):
        if len(a) != len(b):
            return "length"
        found = (differ(x, y, rtol, atol) for x, y in zip(a, b, strict=True))
        return next(filter(None, found), None)
    if is_number(a) and is_number(b):
        return differ_in_arrays(np.asarray(a), np.asarray(b), rtol, atol)
    return None if type(a) is type(b) and a == b else "value"


def is_number(value: Any) -> bool:
    return isinstance(value, np.ndarray | float | int) and not isinstance(value, bool)


def differ_in_arrays(
    a: np.ndarray, b: np.ndarray, rtol: float, atol: float
) -> str | None:
    if a.shape != b.shape or a.dtype.kind != b.dtype.kind:
        return "shape" if a.shape != b.shape else "dtype"
    a, b = a.astype(float), b.astype(float)
    if (np.isnan(a) != np.isnan(b)).any():
        return "NaN places"
    largest = np.max(np.abs(a), where=np.isfinite(a), initial=0.0)
    rounding = max(atol, 1e-15 * largest)
    with np.errstate(invalid="ignore", over="ignore"):
        off = np.abs(a - b)
        same = (off <= rtol * np.maximum(np.abs(a), np.abs(b))) | (off <= rounding)
    return None if (same | (a == b) | np.isnan(a)).all() else "numbers"


# -------------------------------------------------------------------------- report
def report(todo: list[Case], pairs: list[tuple[Answers, Answers]]) -> int:
    """Print a table of kinds and differences; the number of different tables."""
    counts: Counter[str] = Counter()
    equal: Counter[str] = Counter()
    seeds: dict[tuple[str, str, str], list[int]] = defaultdict(list)
    for (name, seed), (old, new) in zip(todo, pairs, strict=True):
        differences = compare(old, new)
        counts[name] += 1
        equal[name] += not differences
        for what, category in differences.items():
            words = [word for word in what.split() if not word[-1].isdigit()]
            where = seeds[name, " ".join(words), category]
            where += [] if seed in where[-1:] else [seed]
    for name, count in counts.items():
        print(f"{name:18} {count:6} tables {equal[name]:6} equal")
        for (of, what, category), where in seeds.items():
            if of == name:
                first = ", ".join(map(str, where[:SHOWN]))
                print(f"    {what}: {category}: {len(where)} tables, seeds {first}")
    different = counts.total() - equal.total()
    print(f"{counts.total()} tables, {different} different")
    return different


def show(case: Case, old: Answers, new: Answers) -> None:
    """Print what differs between the answers to one table."""
    np.set_printoptions(linewidth=120, precision=15)
    print(*case, *dict.fromkeys([*old, *new]), sep="; ")
    for what, category in compare(old, new).items():
        print(f"-- {what}: {category}")
        for install, answers in (("old", old), ("new", new)):
            print(f"{install}:", *answers.get(what, ("not asked",)), sep="\n    ")


def main() -> None:
    parser = argparse.ArgumentParser(prog="attack.compare")
    parser.add_argument("--old", required=True, help="PYTHONPATH of one install")
    parser.add_argument("--new", required=True, help="PYTHONPATH of the other")
    parser.add_argument("--tables", type=int, default=20000)
    parser.add_argument("--seed", type=int, default=0, help="the first seed")
    parser.add_argument("--kinds", nargs="+", choices=KINDS, default=list(KINDS))
    parser.add_argument("--show", metavar="KIND:SEED", help="one table, both answers")
    options = parser.parse_args()
    paths, start = [options.old, options.new], time.perf_counter()
    if options.show:
        name, _, seed = options.show.partition(":")
        case = (name, int(seed))
        show(case, *ask_both(paths, [case])[0])
        return
    total = sum(KINDS[name].share for name in options.kinds)
    todo = [
        (name, options.seed + k)
        for name in options.kinds
        for k in range(round(options.tables * KINDS[name].share / total))
    ]
    different = report(todo, ask_both(paths, todo))
    print(f"{time.perf_counter() - start:.0f} s")
    sys.exit(1 if different else 0)


if __name__ == "__main__":
    # Answers are pickles of the classes of the imported module, not of this one.
    from attack.compare import main as imported

    imported()
