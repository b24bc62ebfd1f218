"""Many small tables, observed and solved in one call of the kernel."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from a1gm._base.types import Bools, Floats
from a1gm._kernel import kernel, say_if_slow, threads_for
from a1gm._observe.observation import TABLE_CELLS, TINY, Observation
from a1gm._observe.statistics import PatternStatistics
from a1gm._rows.rows import Rows
from a1gm._solve.dispatch import Solved, plain_factors, plain_options

WORTH_A_THREAD = 1 << 12  # cells; a small table takes 50 times as long per cell


class SmallTables:
    """Those of many tables that the kernel settles as ``solve_observation`` does.

    Left to others are large tables, tables that do not lie in memory in one piece, and
    those with cells that cannot be fitted, several components, or a core that is hard
    to settle. So there is nothing to warn of in those that are settled.

    Attributes
    ----------
    settled : ndarray of bool
        Which of the tables are.
    """

    def __init__(
        self,
        sources: Sequence[Any],
        *,
        tol: float,
        max_iter: int,
        n_threads: int | None,
    ) -> None:
        say_if_slow()
        small = [k for k, source in enumerate(sources) if _is_small(source)]
        n_cells = sum([sources[k].n_rows * sources[k].n_cols for k in small])
        options = plain_options(tol, max_iter, TABLE_CELLS, 1)
        threads = threads_for(n_cells, n_threads, WORTH_A_THREAD)
        parts = [sources[k].parts for k in small]
        self._found = kernel.solve_many(parts, TABLE_CELLS, *options, TINY, threads)
        self.settled: Bools = np.zeros(len(sources), bool)
        self._place = np.zeros(len(sources), np.int64)
        self.settled[small] = self._found.settled
        self._place[small] = np.arange(len(small))

    def factors(self, k: int) -> tuple[Floats, Floats]:
        """Factors of the rows and columns of a table that is settled."""
        w, h = self._found.factors(int(self._place[k]))
        return w, h

    def solved(self, k: int) -> tuple[Observation, Solved]:
        """A table that is settled; its row factors stand for the sums of its rows."""
        place = int(self._place[k])
        ids, keys, counts, sums = self._found.statistics(place)
        found = self._found.solution(place)
        factor, _ = self._found.factors(place)
        statistics = PatternStatistics(keys, counts, sums)
        seen = Observation(factor, ids, statistics, 0, 0)
        return seen, Solved(plain_factors(found, found[-1]), statistics)


def _is_small(source: Any) -> bool:
    if not isinstance(source, Rows) or source.cut is not None:
        return False
    return 0 < source.n_rows * source.n_cols <= TABLE_CELLS
