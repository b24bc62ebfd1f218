"""Stand-in for ``a1gm._solve.dispatch``, which has the same ``solve``."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from a1gm._api.fit import solve_plain_table, solve_wide_table
from a1gm._observe.statistics import PairStatistics, Statistics, TableStatistics
from a1gm._solve.components import Components, find_components
from a1gm._solve.core import solve_core
from a1gm._solve.expand import Factors, expand_factors
from a1gm._solve.reduce import reduce_statistics

__all__ = ["Solved", "solve"]


@dataclass(frozen=True, slots=True)
class Solved:
    """Factors, the statistics they fit, and how the table falls apart."""

    factors: Factors
    statistics: Statistics
    components: Components | None = None


def solve(
    statistics: Statistics,
    *,
    tol: float,
    max_iter: int,
    n_threads: int | None = None,
    read_cells: Callable[[], PairStatistics],
) -> Solved:
    """Solve a table; ``read_cells`` gives its cells where the margins do not do."""
    if isinstance(statistics, TableStatistics):
        plain = solve_plain_table(statistics, tol=tol, max_iter=max_iter)
    else:
        plain = solve_wide_table(
            statistics, tol=tol, max_iter=max_iter, n_threads=n_threads
        )
    if plain is not None:
        return Solved(plain, statistics)
    components = find_components(statistics)
    reduced = reduce_statistics(statistics, components)
    if reduced is None:
        statistics = read_cells()
        components = find_components(statistics)
        reduced = reduce_statistics(statistics, components)
    core = solve_core(reduced, tol=tol, max_iter=max_iter)
    factors = expand_factors(
        reduced, core, statistics.row_sums, lambda: statistics.has_observed()[1]
    )
    return Solved(factors, statistics, components)
