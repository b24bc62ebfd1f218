"""Many small tables: in NumPy they all take the ordinary way."""

from __future__ import annotations

from typing import Any, NoReturn

import numpy as np

from a1gm._base.types import Bools
from a1gm._kernel.reference.checks import Part, check_sweeps, check_table, require


class SmallFits:
    """None of the tables is settled: only the compiled kernel has this fast way."""

    def __init__(self, n_tables: int) -> None:
        self.settled: Bools = np.zeros(n_tables, bool)

    def _refuse(self, k: int) -> NoReturn:
        require(0 <= k < len(self.settled), "there is no such table")
        raise ValueError("this table was not settled")

    def factors(self, k: int) -> Any:
        """Row and column factors of a table that was settled."""
        self._refuse(k)

    def statistics(self, k: int) -> Any:
        """The pattern of each row and the pattern table, as ``observe`` gives them."""
        self._refuse(k)

    def solution(self, k: int) -> Any:
        """What ``solve_plain`` gives."""
        self._refuse(k)


def solve_many(
    tables: list[list[Part]],
    table_cells: int,
    tol: float,
    max_sweeps: int,
    max_steps: int,
    least: float,
    n_threads: int,
) -> SmallFits:
    """Settle none of the tables, as ``solve_plain`` does."""
    for parts in tables:
        check_table(parts, 1, 1.0, 1)
    require(table_cells >= 0, "table_cells must be 0 or more")
    check_sweeps(tol, max_sweeps)
    require(max_steps >= 0, "max_steps must be 0 or more")
    check_sweeps(tol, max_sweeps, n_threads)
    return SmallFits(len(tables))
