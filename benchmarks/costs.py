"""Fit the constants by which the solver chooses: what a step of each method costs.

    python benchmarks/costs.py                 # a minute

Times on tables of the sparse zoo, in processor time: a sweep, a product with the
Hessian, the making of thin factors and a product that they precede; Newton's method; an
elimination that is given up, where sweeps are slow; and where they are not, the proof
of a solution that is only good enough for the margins. The last lines compare with the
constants of the solver:

FACTORS, PRECEDED   _solve/newton.py, in products
PATIENCE            _solve/scaling.py, in sweeps: what Newton's method takes
WORK_PER_CELL       _solve/settle.py: as little as lets bands of 10 be eliminated;
                    what it takes to give up is lost
kFewSweeps          scale/sweeps.cpp: below the sweeps that the proof takes
kShare              scale/cell_error.cpp: near the share that products prove
"""

from __future__ import annotations

import re
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from measuring import machine, markdown
from zoo import KINDS

import a1gm
from a1gm._kernel import kernel
from a1gm._solve.cell_error import SETTLED
from a1gm._solve.factors import CoreSolution
from a1gm._solve.newton import FACTORS, PRECEDED, Hessian
from a1gm._solve.scaling import PATIENCE, _newton
from a1gm._solve.settle import WORK_PER_CELL, _settle_by_steps

TABLES = [
    *(("random", n, per_row) for n in (10_000, 100_000) for per_row in (3, 4, 10)),
    *(("lattice", n, 5) for n in (10_000, 100_000)),
    ("ratings", 100_000, 4),
    ("trees", 100_000, 5),
    ("chains", 100_000, 4),
]
NEVER, EXACT, TOL = 10**9, 1e-300, 1e-10


def seconds(call: Callable[[], object], runs: int = 5) -> float:
    """Least processor time of some runs."""
    times = []
    for _ in range(runs):
        started = time.process_time()
        call()
        times.append(time.process_time() - started)
    return min(times)


def measure(kind: str, n: int, per_row: int) -> dict[str, Any]:
    name, make, _, _ = KINDS[kind]
    S = make(n, per_row)
    S.sort_indices()
    pairs = S.indptr.astype(np.int64), S.indices.astype(np.int32), S.data
    core = kernel.reduce_pairs(*pairs, None, S.shape[1])
    c, cells = core.core_col_sums, core.n_listed
    w, h, *_ = core.scale(core.start, TOL, 8, 8)
    sweep = seconds(lambda: core.scale(h, EXACT, 20, NEVER)) / 20

    def products(factors: int, n: int) -> float:
        flow = kernel.Flow(core, w, h)
        return seconds(lambda: flow.solve(c, None, EXACT, 0.0, factors, PRECEDED, n), 1)

    product = (products(NEVER, 21) - products(NEVER, 1)) / 20
    preceded = (products(0, 21) - products(0, 1)) / 20
    factors = products(0, 1) - preceded
    start = CoreSolution(w, h, "scaling", 8, np.inf)
    newton = seconds(
        lambda: _newton(core, Hessian(core), start, tol=TOL, max_iter=500), 1
    )
    proof, share, is_slow = proofs(core, sweep)
    lost = ""
    if is_slow:  # then an elimination is tried first
        work = WORK_PER_CELL * (cells + sum(core.core_shape))
        given_up = seconds(lambda: core.settle(w, h, *pairs, TOL, 1, work), 1)
        lost = f"{given_up / newton:.2f}"
    return {
        "table": f"{name.format(per_row)}, {n:,} rows",
        "sweep, ns per cell": f"{sweep / cells * 1e9:.1f}",
        "product, ns per cell": f"{product / cells * 1e9:.1f}",
        "factors, products": round(factors / product),
        "preceded, products": round(preceded / product, 1),
        "Newton, sweeps": round(newton / sweep),
        "elimination given up, of Newton": lost,
        "proof, sweeps": proof,
        "provable share": share,
    }


def proofs(core: Any, sweep: float) -> tuple[str, str, bool]:
    """What proving the cells of a coarse solution takes, in sweeps.

    Second the mismatch that products prove to be right, in units of ``provable_gap``
    without its share. Nothing of both where sweeps are slow, which is said last.
    """
    w, h, n, gap, done = core.scale(core.start, TOL, 500, PATIENCE)
    if not done:
        return "", "", True
    # One that is good enough for the margins alone.
    coarse_w, coarse_h, *_ = core.scale(core.start, EXACT, max(1, n * 3 // 4), NEVER)
    coarse = CoreSolution(coarse_w, coarse_h, "scaling", n, TOL)
    proof = seconds(lambda: _settle_by_steps(core, coarse, 500, None), 1)
    C = core.core_col_sums
    per_gap = core.cheap_step(w, h, gap) / gap
    return f"{proof / sweep:.1f}", f"{C.sum() / C.max() / per_gap:.2f}", False


def constant(file: str, name: str) -> float:
    """The value of a constant in the kernel's source."""
    text = (Path(a1gm.__file__).parent / "_kernel" / file).read_text(encoding="utf-8")
    found = re.search(rf"{name} = ([0-9.e+-]+)", text)
    assert found is not None, f"{file} has no constant {name}"
    return float(found[1])


def numbers(rows: list[dict[str, Any]], name: str) -> list[float]:
    """What was measured of this, table by table."""
    return [float(row[name]) for row in rows if row[name]]


def main() -> int:
    print(machine())
    rows = [measure(*table) for table in TABLES]
    print(markdown(rows))
    factors, preceded, newton = (
        statistics.median(float(row[name]) for row in rows)
        for name in ("factors, products", "preceded, products", "Newton, sweeps")
    )
    print()
    print(
        f"factors and 15 of their products: {factors + 15 * preceded:.0f} ({FACTORS=})"
    )
    print(f"a product that they precede: {preceded:.1f} ({PRECEDED=})")
    print(f"Newton's method: {newton:.0f} sweeps ({PATIENCE=})")
    lost = numbers(rows, "elimination given up, of Newton")
    print(
        f"an elimination that is given up: {min(lost)} to {max(lost)} of it "
        f"({WORK_PER_CELL=})"
    )
    proof = min(numbers(rows, "proof, sweeps"))
    few = constant("scale/sweeps.cpp", "kFewSweeps")
    print(
        f"the proof of a coarse solution: {proof} sweeps or more (kFewSweeps={few:g})"
    )
    share = statistics.median(numbers(rows, "provable share"))
    own = constant("scale/cell_error.cpp", "kShare")
    print(f"the share that products prove: {share} (kShare={own:g}, {SETTLED=})")
    return 0


if __name__ == "__main__":
    sys.exit(main())
