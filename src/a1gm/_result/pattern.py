"""What shape the holes of a table have, in words a user reads."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from a1gm._base.bits import pack_bits
from a1gm._sources import read_input
from a1gm._kernel import kernel
from a1gm._observe.one_pass import observe
from a1gm._observe.statistics import PairStatistics, Statistics, TableStatistics
from a1gm._base.types import Absent, Bools, Ints
from a1gm._base.words import counted

if TYPE_CHECKING:
    from a1gm._result.solved import SolvedTable

__all__ = ["MissingPattern", "make_pattern"]


class MissingPattern:
    """The pattern of missing cells of a table.

    Use ``MissingPattern.of(X)``, or ``fit.pattern``.

    Examples
    --------
    >>> import numpy as np, a1gm
    >>> X = np.array([[1.0, 2.0], [3.0, np.nan]])
    >>> a1gm.MissingPattern.of(X).is_grid_like
    True
    """

    def __init__(
        self,
        statistics: Statistics,
        rows_per_line: Ints,
        make_fit: Callable[[], SolvedTable],
    ) -> None:
        self._statistics = statistics
        self._rows_per_line = rows_per_line
        self._make_fit = make_fit

    @classmethod
    def of(cls, X: Any, *, absent: Absent | None = None) -> MissingPattern:
        """Observe a table and describe its holes.

        Parameters
        ----------
        X : table of shape (n_rows, n_cols)
            Anything ``a1gm.fit`` accepts; negative cells do not matter here.
        absent : {"missing", "zero"}, optional
            For SciPy sparse tables, what an absent cell is.

        Returns
        -------
        MissingPattern
        """
        from a1gm._api.fit import fit_pattern

        source = read_input(X, absent=absent)
        seen = observe(source, negatives="allow")
        n_lines = seen.statistics.n_lines
        if seen.line_of_row is None:
            rows_per_line = np.ones(n_lines, np.int64)
        else:
            rows_per_line = np.bincount(seen.line_of_row, minlength=n_lines)
        return make_pattern(
            seen.statistics, rows_per_line, lambda: fit_pattern(seen, source)
        )

    @cached_property
    def _fit(self) -> SolvedTable:
        return self._make_fit()

    # ------------------------------------------------------------------ counting
    @property
    def n_rows(self) -> int:
        """Rows of the table."""
        return int(self._rows_per_line.sum())

    @property
    def n_cols(self) -> int:
        """Columns of the table."""
        return self._statistics.n_cols

    @cached_property
    def _observed(self) -> Bools:
        """Distinct row patterns."""
        if isinstance(self._statistics, TableStatistics):
            return self._statistics.observed
        return np.unique(self._observed_lines, axis=0)

    @cached_property
    def _observed_lines(self) -> Bools:
        return self._statistics.observed_lines(slice(0, self._statistics.n_lines))

    @property
    def _has_observed(self) -> bool:
        return bool(self._observed.any())

    @cached_property
    def missing_per_col(self) -> Ints:
        """Missing cells in each column."""
        counts: Ints = self._rows_per_line @ (~self._observed_lines).astype(np.int64)
        return counts

    @cached_property
    def n_missing(self) -> int:
        """Missing cells."""
        return int(self.missing_per_col.sum())

    @cached_property
    def n_rows_with_missing(self) -> int:
        """Rows with at least one missing cell."""
        return int(self._rows_per_line[~self._observed_lines.all(axis=1)].sum())

    @property
    def n_cols_with_missing(self) -> int:
        """Columns with at least one missing cell."""
        return int((self.missing_per_col > 0).sum())

    @property
    def n_row_patterns(self) -> int:
        """Distinct patterns of the rows."""
        return len(self._observed)

    @cached_property
    def n_col_patterns(self) -> int:
        """Distinct patterns of the columns."""
        return len(np.unique(self._observed.T, axis=0))

    # --------------------------------------------------------------------- shape
    @property
    def is_complete(self) -> bool:
        """Whether no cell is missing."""
        return self.n_missing == 0

    @property
    def is_grid_like(self) -> bool:
        """Whether the holes are all cells of some rows and some columns."""
        return self.n_missing == self.n_rows_with_missing * self.n_cols_with_missing

    @property
    def increase_rate(self) -> float:
        """Holes after growing them to a grid, per hole (the paper's figure)."""
        if self.n_missing == 0:
            return 1.0
        return self.n_rows_with_missing * self.n_cols_with_missing / self.n_missing

    @cached_property
    def is_nested(self) -> bool:
        """Whether the row patterns contain one another: a staircase."""
        by_size = self._observed[np.argsort(self._observed.sum(axis=1))]
        return not (by_size[:-1] & ~by_size[1:]).any()

    @cached_property
    def _reduced(self) -> Any:
        """The peeling of the pattern alone, as if every observed cell were 1."""
        observed = self._observed
        rows, cols = observed.sum(axis=1), observed.sum(axis=0)
        reduced = kernel.reduce_mask(
            pack_bits(observed), rows.astype(float), cols.astype(float), True, False
        )
        if reduced is not None:
            return reduced
        ptr = np.concatenate(([0], np.cumsum(rows))).astype(np.int64)
        met = np.nonzero(observed)[1].astype(np.int32)
        return kernel.reduce_pairs(ptr, met, np.ones(len(met)), None, self.n_cols)

    @property
    def has_closed_form(self) -> bool:
        """Whether there is a formula: every cycle of six or more has two chords."""
        return self.is_nested or bool(self._reduced.core_shape[0] == 0)

    @property
    def core_shape(self) -> tuple[int, int]:
        """Groups left after peeling; one cell per block if there is a closed form."""
        if self.is_nested:
            return (1, 1)
        rows, cols = self._reduced.core_shape
        roots = self._reduced.n_roots
        return int(rows + roots), int(cols + roots)

    # -------------------------------------------------------------- what is known
    @cached_property
    def n_blocks(self) -> int:
        """Blocks with data of their own."""
        return self._fit.n_blocks if self._has_observed else 0

    @cached_property
    def n_undetermined(self) -> int:
        """Missing cells that the data do not determine."""
        return self._fit.n_undetermined if self._has_observed else self.n_missing

    @property
    def shape_name(self) -> str:
        """The shape of the holes in a word or two."""
        if self.is_complete:
            return "complete"
        if self.is_grid_like:
            return "grid"
        if self.is_nested:
            return "staircase"
        if self.has_closed_form:
            return "closed form"
        rows, cols = self.core_shape
        return f"core of {rows} x {cols}"

    def __getstate__(self) -> dict[str, Any]:
        """Leave the data behind: what a fit says of them travels."""
        return {
            "_statistics": self._statistics.without_values(),
            "_rows_per_line": self._rows_per_line,
            "n_blocks": self.n_blocks,
            "n_undetermined": self.n_undetermined,
        }

    def __repr__(self) -> str:
        unknown = self.n_undetermined
        known = f", {counted(unknown, 'cell')} cannot be known" if unknown else ""
        return (
            f"MissingPattern({self.n_rows:,} x {self.n_cols:,}, "
            f"{self.n_missing:,} missing, "
            f"{counted(self.n_row_patterns, 'row pattern')}, {self.shape_name}, "
            f"{counted(self.n_blocks, 'block')}{known})"
        )


def make_pattern(
    statistics: Statistics, rows_per_line: Ints, make_fit: Callable[[], SolvedTable]
) -> MissingPattern:
    """Describe the holes, by the observed cells alone where those are listed."""
    if isinstance(statistics, PairStatistics):
        from a1gm._result.sparse_pattern import SparsePattern

        return SparsePattern(statistics, rows_per_line, make_fit)
    return MissingPattern(statistics, rows_per_line, make_fit)
