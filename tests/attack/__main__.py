"""Attack the package: random tables against the truth, and damaged files.

PYTHONPATH=tests python -m attack                     minutes; `make attack`
PYTHONPATH=tests python -m attack --tables 100000     half an hour and more
PYTHONPATH=tests python -m attack --kind bridge --seed 7     one table, shown
"""

from __future__ import annotations

import argparse
import math
import os
import sys
import threading
import time
from collections import Counter, defaultdict

# Nothing here loads the package: a sanitizer is loaded into the workers alone.
from .process import PATIENCE, Worker
from .zoo import ANNOUNCED, DAMAGED, KINDS, RIGHT, UNKNOWN, WRONG, Verdict, case_of

SHOWN = 5  # silently wrong tables of a kind that are printed
VERDICTS = (RIGHT, ANNOUNCED, WRONG, UNKNOWN)


def cases(names: list[str], n_tables: int, n_files: int, first: int):
    """Every case of a run, kinds mixed, so that it can be stopped at any time."""
    share = {name: KINDS[name].share for name in names if name in KINDS}
    total = sum(share.values())
    counts = {name: math.ceil(n_tables * s / total) for name, s in share.items()}
    damaged = [name for name in names if name in DAMAGED]
    counts |= {name: n_files // len(damaged) for name in damaged}
    place = [(k / n, name, first + k) for name, n in counts.items() for k in range(n)]
    return [(name, seed) for _, name, seed in sorted(place)]


def judge_apart(worker: Worker, name: str, seed: int) -> dict:
    """The verdict of a worker; a damaged file gets less time."""
    found, end = worker.ask(name, seed, 10.0 if name in DAMAGED else PATIENCE)
    return found or vars(Verdict(WRONG, end))


def new_worker() -> Worker:
    preload = os.environ.get("A1GM_ATTACK_PRELOAD", "")  # a sanitizer
    return Worker("attack.worker", LD_PRELOAD=preload)


def run(todo: list[tuple[str, int]], jobs: int) -> dict[str, list]:
    """Judge all cases on several processes; what is wrong is printed at once."""
    found: dict[str, list] = defaultdict(list)
    waiting = iter(todo)
    lock = threading.Lock()
    failed: list[int] = []

    def work() -> None:
        worker = new_worker()
        while True:
            with lock:
                case = next(waiting, None)
            if case is None:
                break
            verdict = judge_apart(worker, *case)
            with lock:
                report(case, verdict, found[case[0]])
        code = worker.close()
        if code:
            failed.append(code)

    threads = [threading.Thread(target=work) for _ in range(jobs)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failed:
        raise SystemExit(f"a process ended with {failed[0]}")
    return found


def report(case: tuple[str, int], verdict: dict, found: list) -> None:
    name, seed = case
    found.append(verdict)
    n_wrong = sum(v["verdict"] in (WRONG, UNKNOWN) for v in found)
    n_needless = sum(v["needless"] for v in found)
    is_wrong = verdict["verdict"] in (WRONG, UNKNOWN)
    if (is_wrong and n_wrong <= SHOWN) or (verdict["needless"] and n_needless <= SHOWN):
        why = " ".join(verdict["why"].split())[:300]
        what = verdict["verdict"] if is_wrong else "needless"
        print(f'{what}: --kind "{name}" --seed {seed}: {why}', flush=True)


def show(found: dict[str, list]) -> bool:
    """Print the table of kinds; whether nothing was silently wrong."""
    last = ("needless words", "worst error", "worst truth/cell_error")
    heads = ("kind", "tables", *VERDICTS, *last)
    lines, clean, sums = [heads], True, Counter()
    for name in (*KINDS, *DAMAGED):
        if name not in found:
            continue
        count = Counter(v["verdict"] for v in found[name])
        sums += count
        silent = [v for v in found[name] if v["verdict"] != ANNOUNCED]
        error = max((v["error"] for v in silent), default=0.0)
        ratio = max(v["ratio"] for v in found[name])
        needless = sum(v["needless"] for v in found[name])
        numbers = [str(needless), f"{error:.1e}", f"{ratio:.3f}"]
        numbers = numbers if name in KINDS else [""] * 3
        counts = (str(count[v]) for v in VERDICTS)
        lines.append((name, str(len(found[name])), *counts, *numbers))
        clean &= not (count[WRONG] or count[UNKNOWN])
    lines.append(
        ("all", str(sums.total()), *(str(sums[v]) for v in VERDICTS), *[""] * 3)
    )
    widths = [max(len(line[k]) for line in lines) for k in range(len(heads))]
    for line in lines:
        print("  ".join(cell.rjust(w) for cell, w in zip(line, widths, strict=True)))
    return clean


def show_one(name: str, seed: int) -> None:
    """Print one table, its fit and the verdict."""
    import numpy as np

    from .judge import Answers, fit_case
    from .worker import answer

    print(answer(name, seed))
    if name in KINDS:
        case = case_of(name, seed)
        np.set_printoptions(linewidth=120, floatmode="unique")
        print(case)
        fit = fit_case(case)
        print(fit, vars(Answers(case, fit)), sep="\n")


def main() -> None:
    parser = argparse.ArgumentParser(prog="attack", description=__doc__.split("\n")[0])
    default = int(os.environ.get("A1GM_ATTACK_TABLES", "40000"))
    parser.add_argument("--tables", type=int, default=default)
    parser.add_argument("--files", type=int, help="damaged files; a tenth by default")
    parser.add_argument("--kind", action="append", choices=[*KINDS, *DAMAGED])
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--seed", type=int, help="show the table of this seed alone")
    parser.add_argument("--jobs", type=int, default=2)
    options = parser.parse_args()
    names = options.kind or [*KINDS, *DAMAGED]
    if options.seed is not None:
        show_one(names[0], options.seed)
        return
    n_files = options.tables // 10 if options.files is None else options.files
    start = time.perf_counter()
    found = run(cases(names, options.tables, n_files, options.first), options.jobs)
    clean = show(found)
    print(f"{time.perf_counter() - start:.0f} s")
    sys.exit(0 if clean else 1)


if __name__ == "__main__":
    main()
