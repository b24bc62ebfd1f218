"""Compare two installs of the package: the same calls, in turns.

    python benchmarks/turns.py --old PATH --new PATH
    python benchmarks/turns.py --old PATH --new PATH --only weighted sparse

PATH is what PYTHONPATH must be to import that install. Each install runs in a process
of its own; the two take turns at every call, and the least processor time of each
counts. Prints a Markdown table of the ratios and exits with 1 when the new install is
slower than the old one by more than the limit.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
from measuring import Call, duration, machine, markdown

LIMIT = 1.10
BUDGET = 1.5  # seconds of processor time for each install and call
TURNS = 5, 60  # at least and at most


# ------------------------------------------------------------------------ the calls
def engine() -> Iterator[tuple[str, Call]]:
    from engine import TABLES, at_random, rng, staircase, with_grid, with_patterns

    import a1gm

    sizes = [(400, 8), (15, 24), (600, 20), (1000, 1000), (20_000, 20)]
    for n, m in sizes:
        for name, make in TABLES.items():
            X = make(n, m)
            yield f"fit {n} x {m}, {name}", lambda X=X: a1gm.fit(X)
    large = {
        "100000 x 500, grid": with_grid(100_000, 500),
        "1000000 x 10, 16 patterns": with_patterns(1_000_000, 10),
        "5000 x 2000, at random": at_random(5000, 2000),
        "5000 x 5000, staircase": staircase(5000, 5000),
    }
    for name, X in large.items():
        yield f"fit {name}", lambda X=X: a1gm.fit(X)
    X = with_patterns(200_000, 20)
    Y = np.where(rng().random(X.shape) < 0.3, X * 0.0, X)
    yield "fit 200000 x 20, 30 % zeros", lambda: a1gm.fit(Y)


def weighted() -> Iterator[tuple[str, Call]]:
    from engine import at_random

    import a1gm

    for n, m in ((400, 8), (20_000, 100), (20_000, 500)):
        X = at_random(n, m)
        V = np.random.default_rng(1).random(X.shape) + 0.5
        yield f"weighted {n} x {m}", lambda X=X, V=V: a1gm.fit(X, weights=V)
        yield f"exposure {n} x {m}", lambda X=X, V=V: a1gm.fit(X, exposure=V)


def paths() -> Iterator[tuple[str, Call]]:
    from engine import at_random, with_patterns

    import a1gm

    def in_pieces(X: np.ndarray) -> object:
        table = a1gm.PatternTable()
        for piece in np.split(X, 50):
            table.update(piece)
        return table.solve()

    for n, m, X in (
        (200_000, 20, with_patterns(200_000, 20)),
        (50_000, 200, at_random(50_000, 200)),
    ):
        fit = a1gm.fit(X)
        size = f"{n} x {m}"
        yield f"impute {size}", lambda X=X, fit=fit: fit.impute(X)
        yield f"transform {size}", lambda X=X, fit=fit: fit.transform(X)
        yield f"divergence {size}", lambda X=X, fit=fit: fit.divergence_of(X)
        yield f"residuals {size}", lambda X=X, fit=fit: fit.residuals(X)
        imputer = a1gm.RankOneImputer
        yield f"imputer {size}", lambda X=X, new=imputer: new().fit_transform(X)
    X = with_patterns(200_000, 20)
    yield "PatternTable in 50 pieces", lambda: in_pieces(X)
    F = X.astype(np.float32)
    yield "fit float32 200000 x 20", lambda: a1gm.fit(F)


def containers() -> Iterator[tuple[str, Call]]:
    import polars as pl

    import a1gm

    for n, m in ((15, 24), (50, 4000), (200_000, 20)):
        X = np.random.default_rng(0).gamma(2.0, size=(n, m))
        X[np.random.default_rng(1).random(X.shape) < 0.05] = np.nan
        polars = pl.DataFrame(X, orient="row").fill_nan(None)
        pandas = polars.to_pandas()
        tables = {"pandas": pandas, "polars": polars, "Arrow": polars.to_arrow()}
        for name, t in tables.items():
            yield f"fit {name} {n} x {m}", lambda t=t: a1gm.fit(t)
            yield f"impute {name} {n} x {m}", lambda t=t: a1gm.impute(t)


def sparse() -> Iterator[tuple[str, Call]]:
    from containers import sparse_table
    from zoo import KINDS

    import a1gm

    for name, make, widths, sizes in KINDS.values():
        for n in (n for n in sizes if n <= 100_000):
            S = make(n, widths[-1])
            work = f"sparse {name.format(widths[-1])}, {n} rows"
            yield work, lambda S=S: a1gm.fit(S, absent="missing")
    S = sparse_table(10)
    for absent in ("missing", "zero"):
        work = f"sparse 100000 x 10000, absent {absent}"
        yield work, lambda a=absent: a1gm.fit(S, absent=a)


def uncertainty() -> Iterator[tuple[str, Call]]:
    from uncertainty import counts

    import a1gm

    for n, m in ((120, 12), (500_000, 10)):
        X = counts(n, m)
        yield f"totals {n} x {m}", lambda X=X: a1gm.fit(X).uncertainty().totals("row")
        u = a1gm.fit(X).uncertainty()
        draw = lambda u=u: u.simulate(1000, "column", random_state=0)  # noqa: E731
        yield f"simulate {n} x {m}", draw
        if n < 1000:
            yield f"interval {n} x {m}", lambda X=X, u=u: u.interval(X)
            yield f"assess {n} x {m}", lambda X=X: a1gm.assess(X, random_state=0)


def long() -> Iterator[tuple[str, Call]]:
    from long import KEYS, long_frame

    import a1gm

    frame = long_frame(10)
    yield "fit_long 1000000 rows", lambda: a1gm.fit_long(frame, KEYS, "value")
    rng = np.random.default_rng(0)
    stack = rng.gamma(2.0, size=(500, 12, 8))
    stack[rng.random(stack.shape) < 0.15] = np.nan
    yield "loop over 500 tables", lambda: [a1gm.fit(X) for X in stack]
    yield "fit_many 500 tables", lambda: a1gm.fit_many(stack)


def files() -> Iterator[tuple[str, Call]]:
    import pandas as pd
    from engine import with_patterns

    import a1gm

    with tempfile.TemporaryDirectory() as folder:
        frame = pd.DataFrame(with_patterns(200_000, 20)).add_prefix("c")
        for suffix, write in ((".csv", frame.to_csv), (".parquet", frame.to_parquet)):
            path, out = Path(folder, f"x{suffix}"), Path(folder, f"out{suffix}")
            write(path, index=False)
            yield f"fit_file {suffix}", lambda p=path: a1gm.fit_file(p)
            fill = lambda p=path, o=out: a1gm.impute_file(p, o, overwrite=True)  # noqa: E731
            yield f"impute_file {suffix}", fill


def nmmf() -> Iterator[tuple[str, Call]]:
    from engine import at_random

    import a1gm

    for name, share in (("no holes", 0.0), ("5 % missing", 0.05)):
        X, Y, Z = (
            at_random(n, m, share) for n, m in ((2000, 300), (500, 300), (2000, 100))
        )
        call = lambda X=X, Y=Y, Z=Z: a1gm.fit_nmmf(X, Y, Z)  # noqa: E731
        yield f"fit_nmmf 2000 x 300, {name}", call


GROUPS: dict[str, Callable[[], Iterator[tuple[str, Call]]]] = {
    f.__name__: f
    for f in (
        engine,
        weighted,
        paths,
        containers,
        sparse,
        uncertainty,
        long,
        files,
        nmmf,
    )
}


# --------------------------------------------------------------------- two processes
def serve(group: str) -> None:
    """Build one call after the other, and time it whenever a line asks for that."""
    warnings.simplefilter("ignore")
    for name, call in GROUPS[group]():
        try:
            call()  # what is imported or remembered on first use
        except Exception as error:
            print(f"{name} ({type(error).__name__})", flush=True)
        else:
            print(name, flush=True)
        while sys.stdin.readline().strip() == "run":
            start = time.process_time()
            try:
                call()
            except Exception:
                print("nan", flush=True)
                continue
            print(time.process_time() - start, flush=True)
    print("end", flush=True)


class Install:
    """A process with one of the installs."""

    def __init__(self, path: str, group: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, __file__, "--serve", group],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONPATH": path},
        )

    def read(self) -> str:
        assert self.process.stdout is not None
        return self.process.stdout.readline().strip()

    def write(self, word: str) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(word + "\n")
        self.process.stdin.flush()

    def seconds(self) -> float:
        self.write("run")
        return float(self.read())


def compare(old: str, new: str, group: str) -> Iterator[dict[str, object]]:
    installs = Install(old, group), Install(new, group)
    while (names := [install.read() for install in installs])[1] not in ("end", ""):
        times: list[list[float]] = [[], []]
        while len(times[0]) < TURNS[0] or (
            sum(times[0]) < BUDGET and len(times[0]) < TURNS[1]
        ):
            for install, runs in zip(installs, times, strict=True):
                runs.append(install.seconds())
        for install in installs:
            install.write("next")
        before, after = (min(runs) for runs in times)
        ratio = after / before
        yield {
            "call": names[1],
            "old": duration(before),
            "new": duration(after),
            "ratio": f"{ratio:.2f}",
            "holds": "yes" if ratio <= LIMIT or np.isnan(ratio) else "NO",
        }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--old", help="PYTHONPATH of the old install")
    parser.add_argument("--new", help="PYTHONPATH of the new install")
    parser.add_argument("--only", choices=GROUPS, nargs="+", help="these groups only")
    parser.add_argument("--serve", choices=GROUPS, help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.serve:
        serve(chosen.serve)
        return 0
    print(machine())
    rows = []
    for group in chosen.only or GROUPS:
        for row in compare(chosen.old, chosen.new, group):
            rows.append(row)
            print(" | ".join(map(str, row.values())), flush=True)
    print(f"\n{markdown(rows)}")
    return int(any(row["holds"] == "NO" for row in rows))


if __name__ == "__main__":
    sys.exit(main())
