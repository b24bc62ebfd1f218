"""The scatter of the cells around their fit, from the sums of the first pass.

A fitted cell is ``f = r q``: the sum of its row times the share of its column, which
depends on the row's pattern only. So ``sum (x - f)² / f`` needs of the data the sums of
``x² / r`` by pattern and column, and the divergence those of ``x log(x / r)``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from a1gm._base.types import Floats, Ints
from a1gm._fit.information import ColumnInformation
from a1gm._observe.statistics import PatternStatistics, weighted_counts


@dataclass(frozen=True)
class ScatterOfSums:
    """Differences of large sums: right to the last digit of the total of the table."""

    information: ColumnInformation

    @property
    def _table(self) -> PatternStatistics:
        statistics = self.information.statistics
        assert isinstance(statistics, PatternStatistics)
        return statistics

    def _pieces(self) -> Iterator[tuple[slice, Floats, Floats]]:
        """Yield some lines, the shares of their columns, and their sums."""
        for lines in self._table.stretches():
            Q, _ = self.information.shares(lines)
            yield lines, Q, self._table.sums[lines]

    def pearson_chi2(self) -> float:
        """Sum of (x - f)² / f over the cells with a positive fit."""
        total, squares = 0.0, self._table.squares
        assert squares is not None
        for lines, Q, S in self._pieces():
            fitted = S.sum(axis=1)[:, None] * Q
            own = fitted > 0.0
            with np.errstate(over="ignore"):
                found = squares[lines][own] / Q[own]
            total += float((found - (2.0 * S - fitted)[own]).sum())
        return self.information.unit * total

    def divergence(self) -> float:
        """Sum of x log(x / f) - x + f over the cells."""
        from scipy.special import xlogy

        logs = self._table.logs
        assert logs is not None
        total = float(logs[0])
        for lines, Q, S in self._pieces():
            n = self._table.observed_lines(lines).sum(axis=1)
            total -= float(xlogy(S, n[:, None] * Q)[Q > 0.0].sum())
        return self.information.unit * total


def gain_over_constants(
    info: ColumnInformation,
    line_counts: Callable[[slice], tuple[Ints, Ints]],
    of_rows: float,
) -> float:
    """Deviance of one constant per block less that of the factors.

    ``of_rows`` is the sum of r log r over the rows. With ``f = r h / H``, H being the
    sum of the row's observed column factors, the sum of x log f needs no more of the
    cells than their margins.
    """
    from scipy.special import xlogy

    table, n = info.statistics, int(info.label.max(initial=0)) + 1
    sums, cells = np.zeros(n), np.zeros(n)
    columns = np.where(info.label >= 0, table.col_sums, 0.0)
    of_factors = of_rows + info.unit * float(xlogy(columns, info.h).sum())
    for lines in table.stretches():
        Q, reach = info.shares(lines)
        own = info.unit * np.where(reach > 0.0, table.line_sums(lines), 0.0)
        of_factors -= float(xlogy(own, np.where(reach > 0.0, reach, 1.0)).sum())
        every, zeros = line_counts(lines)
        block = np.maximum(info.component[lines], 0)
        sums += weighted_counts(block, own, n)
        cells += weighted_counts(block, (Q > 0.0).sum(axis=1) * (every - zeros), n)
    some = (sums > 0.0) & (cells > 0.0)
    return 2.0 * (of_factors - float(sums[some] @ np.log(sums[some] / cells[some])))
