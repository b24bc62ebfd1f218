"""Put the same random tables through two builds of the package; print what differs.

PYTHONPATH=tools python -m net --old PATH --new PATH --tables 20000
PYTHONPATH=tools python -m net --old PATH --new PATH --kind frames --seed 7

PATH is what PYTHONPATH must be to import that build. Numbers must agree to 1e-9;
fates, warnings, exceptions, types and labels exactly. Exits with 1 where an answer
differs that ``moved.py`` does not list with its reason.
"""

from __future__ import annotations

import argparse
import os
import pickle
import subprocess
import sys
from collections import defaultdict
from pathlib import Path
from typing import Any

from .moved import reason_for
from .plain import differences

TOOLS = Path(__file__).parents[1]
MOST_SHOWN = 3  # seeds shown for each difference


class Build:
    """One build of the package in a process of its own."""

    def __init__(self, path: str, python: str) -> None:
        environment = {**os.environ, "PYTHONPATH": f"{path}{os.pathsep}{TOOLS}"}
        environment["PYTHONHASHSEED"] = "0"
        self._process = subprocess.Popen(
            [python, "-m", "net.worker"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=environment,
        )
        self.shares: dict[str, int] = pickle.load(self._process.stdout)  # noqa: S301

    def send(self, name: str, seed: int) -> None:
        """Ask for the answers of a case."""
        self._process.stdin.write(f"{name} {seed}\n".encode())
        self._process.stdin.flush()

    def receive(self) -> dict[str, Any]:
        """The answers of the case asked for last."""
        return pickle.load(self._process.stdout)  # noqa: S301


def cases_of(shares: dict[str, int], n_tables: int, first: int) -> list[tuple]:
    """Names and seeds of all cases of a run, kinds mixed."""
    total = sum(shares.values())
    counts = {name: -(-n_tables * share // total) for name, share in shares.items()}
    order = [
        (k / count, name, first + k)
        for name, count in counts.items()
        for k in range(count)
    ]
    return [(name, seed) for _, name, seed in sorted(order)]


def main() -> int:
    """Run the cases; print a line for each kind of difference."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--old", required=True)
    parser.add_argument("--new", required=True)
    parser.add_argument("--old-python", default=sys.executable)
    parser.add_argument("--new-python", default=sys.executable)
    parser.add_argument("--tables", type=int, default=2000)
    parser.add_argument("--kind", default="")
    parser.add_argument("--seed", type=int, default=None)
    parser.add_argument("--first", type=int, default=0)
    options = parser.parse_args()
    old = Build(options.old, options.old_python)
    new = Build(options.new, options.new_python)
    shares = old.shares
    if options.kind:
        shares = {options.kind: 1}
    if options.seed is None:
        cases = cases_of(shares, options.tables, options.first)
    else:
        cases = [(options.kind, options.seed)]
    seeds: dict[tuple[str, str, str], list[int]] = defaultdict(list)
    for name, seed in cases:
        old.send(name, seed)
        new.send(name, seed)
        before = old.receive()
        after = new.receive()
        for place in differences(before, after):
            seeds[name, place, sketch(before, after, place)].append(seed)
        if options.seed is not None:
            for question in sorted({*before, *after}):
                print(question, "\n  old", before.get(question, "not asked"))
                print("  new", after.get(question, "not asked"))
    return report(seeds, len(cases))


def sketch(before: dict[str, Any], after: dict[str, Any], place: str) -> str:
    """Which errors or warnings stand on each side, "values" where neither does."""
    question = place.split(".", maxsplit=1)[0]
    question = question.removesuffix(" only old").removesuffix(" only new")
    sides = (before.get(question), after.get(question))
    if question == "warnings":
        return f"{sides[0]} -> {sides[1]}"
    words = [side if isinstance(side, str) else "values" for side in sides]
    return words[0] if words[0] == words[1] else f"{words[0]} -> {words[1]}"


def report(seeds: dict[tuple[str, str, str], list[int]], n_cases: int) -> int:
    """Print differences with and without a reason; 1 where one has none."""
    unexplained = 0
    for (name, question, words), where in sorted(seeds.items()):
        reason = reason_for(name, question, words)
        unexplained += not reason
        shown = ", ".join(map(str, where[:MOST_SHOWN]))
        place = f"{name}: {question}: {words}"
        print(f"{reason or 'DIFFERS':8} {place} ({len(where)}: {shown})")
    print(f"{n_cases} tables, {unexplained} differences without a reason")
    return 1 if unexplained else 0


if __name__ == "__main__":
    sys.exit(main())
