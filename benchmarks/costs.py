"""Fit the constants by which the solver chooses: what a step of each method costs.

    python benchmarks/costs.py                 # a minute

Times a sweep, a product with the Hessian, the making of thin factors and a product that
they precede on tables of the sparse zoo, in processor time. The last lines compare with
``FACTORS`` and ``PRECEDED`` of ``_solve/laplacian.py``, in products, and with
``LISTED_PATIENCE`` of ``_solve/scaling.py``, in sweeps.
"""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from measuring import machine, markdown
from zoo import KINDS

from a1gm._kernel import kernel
from a1gm._solve.factors import CoreSolution
from a1gm._solve.laplacian import FACTORS, PRECEDED
from a1gm._solve.scaling import LISTED_PATIENCE, _newton

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
    core = kernel.reduce_pairs(
        S.indptr.astype(np.int64), S.indices.astype(np.int32), S.data, None, S.shape[1]
    )
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
    newton = seconds(lambda: _newton(core, start, tol=TOL, max_iter=500), 1)
    return {
        "table": f"{name.format(per_row)}, {n:,} rows",
        "sweep, ns per cell": f"{sweep / cells * 1e9:.1f}",
        "product, ns per cell": f"{product / cells * 1e9:.1f}",
        "factors, products": round(factors / product),
        "preceded, products": round(preceded / product, 1),
        "Newton, sweeps": round(newton / sweep),
    }


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
    print(f"Newton's method: {newton:.0f} sweeps ({LISTED_PATIENCE=})")
    return 0


if __name__ == "__main__":
    sys.exit(main())
