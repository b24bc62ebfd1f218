"""From blocks to a fit."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from a1gm._types import Floats

if TYPE_CHECKING:
    from a1gm.cli.common import Common
    from a1gm.result import RankOneFit

#: Blocks of tables up to this many cells (256 MB) are kept, in case that they have too
#: many patterns of holes for a table of patterns.
MOST_CELLS_KEPT = 1 << 25
_MANY_PATTERNS = 20_000
#: Tables up to this many cells are fitted in one piece.
_FEW_CELLS = 1 << 20


@dataclass
class Gathered:
    """The statistics of a table, and its blocks while it is small.

    Parameters
    ----------
    common : Common
        Options that concern the fit.
    keep_rows : bool
        Whether the fit must know the factor of every row.
    """

    common: Common
    keep_rows: bool
    _blocks: list[Floats] = field(default_factory=list)
    _n_cells: int = 0
    _statistics: Any = None

    def __post_init__(self) -> None:
        from a1gm import PatternTable

        self._statistics = PatternTable(
            keep_rows=self.keep_rows,
            negatives=self.common.negatives,  # type: ignore[arg-type]
            n_threads=self.common.threads,
        )

    def add(self, values: Floats) -> None:
        """Add the rows of a block."""
        self._n_cells += values.size
        has_blocks = bool(self._blocks) or self._n_cells == values.size
        if self._n_cells > MOST_CELLS_KEPT:
            self._restore_statistics()
            self._blocks, has_blocks = [], False
        if has_blocks:
            self._blocks.append(values)
            if self._statistics.n_patterns > _MANY_PATTERNS:
                # Bad cells are refused here all the same, for their place is known.
                _check_values(values, self.common.negatives)
                return
        self._statistics.update(values)

    def _restore_statistics(self) -> None:
        """Count the blocks that were only kept."""
        n_counted = len(self._statistics.blocks)
        for values in self._blocks[n_counted:]:
            self._statistics.update(values)

    @property
    def kept(self) -> list[Floats] | None:
        """The values of every block, if the table is small enough."""
        return self._blocks or None

    def fit(self) -> RankOneFit:
        """Fit the rows seen."""
        import a1gm

        skipped = len(self._blocks) > len(self._statistics.blocks)
        if self._blocks and (skipped or self._n_cells <= _FEW_CELLS):
            return a1gm.fit(
                np.concatenate(self._blocks),
                negatives=self.common.negatives,  # type: ignore[arg-type]
                n_threads=self.common.threads,
            )
        fitted: RankOneFit = self._statistics.solve()
        return fitted


def _check_values(values: Floats, negatives: str) -> None:
    from a1gm.exceptions import InfiniteValuesError, NegativeValuesError

    # fmin and fmax skip NaN without copying.
    lowest = np.fmin.reduce(values, axis=None)
    highest = np.fmax.reduce(values, axis=None)
    if np.isinf(lowest) or np.isinf(highest):
        raise InfiniteValuesError("The table contains infinity.")
    if lowest < 0 and negatives == "raise":
        raise NegativeValuesError("Negative values in data.")
