"""What the benchmarks share: clocks, tables on paper, the machine's description."""

from __future__ import annotations

import csv
import gc
import platform
import re
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import numpy as np

Call = Callable[[], object]
Clock = Callable[[], float]
Row = Mapping[str, object]


def fastest(
    calls: Mapping[str, Call], budget: float = 0.5, clock: Clock = time.perf_counter
) -> dict[str, float]:
    """Time calls in turns and return the fastest run of each, in seconds.

    Turns, because a noisy machine is slow for a while and then fast again: taken one
    after the other, the calls would not be compared under the same conditions. Each
    call runs until it has used up `budget` seconds, and at least three times unless
    it takes more than a second.
    """
    times: dict[str, list[float]] = {name: [] for name in calls}
    open_calls = dict(calls)
    while open_calls:
        for name, call in list(open_calls.items()):
            times[name].append(_one_run(call, clock))
            enough = len(times[name]) >= 3 or times[name][-1] > 1
            if enough and sum(times[name]) >= budget:
                del open_calls[name]
    return {name: min(runs) for name, runs in times.items()}


def one_trial(call: Call, at_least: float = 0.01, budget: float = 0.15) -> float:
    """Time a call: the fastest of several tries, each long enough for the clock.

    The fastest, because on a shared machine the others measure its other users.
    """
    n_runs, elapsed = 1, _one_run(call)
    while elapsed < at_least:
        n_runs = max(2 * n_runs, int(at_least / max(elapsed / n_runs, 1e-7)))
        elapsed = _one_run(lambda n=n_runs: [call() for _ in range(n)])
    tries = [elapsed]
    while len(tries) < 3 or sum(tries) < budget:
        tries.append(_one_run(lambda: [call() for _ in range(n_runs)]))
    return min(tries) / n_runs


def _one_run(call: Call, clock: Clock = time.perf_counter) -> float:
    enabled = gc.isenabled()
    gc.disable()
    try:
        start = clock()
        call()
        return clock() - start
    finally:
        if enabled:
            gc.enable()


def machine() -> str:
    """Say what the figures were measured on."""
    from os import cpu_count

    return (
        f"{platform.system()} {platform.machine()}, {cpu_count()} cores, "
        f"Python {platform.python_version()}, NumPy {np.__version__}"
    )


def write_csv(rows: Sequence[Row], path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, fieldnames=list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


def read_csv(path: Path) -> list[dict[str, str]]:
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def markdown(rows: Sequence[Row]) -> str:
    """Write rows as a Markdown table, the first column to the left.

    A number is not parted from its unit where a line ends.
    """
    names = list(rows[0])
    lines = [names, ["---"] + ["--:"] * (len(names) - 1)]
    lines += [[str(row[name]) for name in names] for row in rows]
    text = "\n".join("| " + " | ".join(line) + " |" for line in lines)
    return re.sub(r"(?<=\d) (?=(?:s|ms|µs)\b)", "\N{NO-BREAK SPACE}", text)


def duration(seconds: float) -> str:
    """Write a duration with three digits and the unit a reader would use."""
    for unit, size in (("s", 1.0), ("ms", 1e-3)):
        if seconds >= size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds / 1e-6:.3g} µs"
