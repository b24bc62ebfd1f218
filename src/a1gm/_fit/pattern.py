"""What shape the holes of a table have, in words a user reads."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any

import numpy as np

from a1gm._base.types import Absent, Ints
from a1gm._base.words import counted
from a1gm._fit.fates import fates_of
from a1gm._fit.hole_shapes import shape_of
from a1gm._fit.rows import HeldRows
from a1gm._observe.observe import observe
from a1gm._observe.patterns import Patterns
from a1gm._rows.read import AnyRows, read_input
from a1gm._solve.dispatch import solve_patterns


class MissingPattern:
    """The pattern of missing cells of a table.

    Parameters
    ----------
    X : table of shape (n_rows, n_cols)
        Anything ``a1gm.fit`` accepts; negative cells do not matter here.
    absent : {"missing", "zero"}, optional
        For SciPy sparse tables, what an absent cell is.

    Examples
    --------
    >>> import numpy as np, a1gm
    >>> X = np.array([[1.0, 2.0], [3.0, np.nan]])
    >>> a1gm.MissingPattern(X).is_grid_like
    True
    """

    def __init__(self, X: Any, *, absent: Absent | None = None) -> None:
        source = read_input(X, absent=absent)
        seen = observe(source, negatives="allow")
        n_lines = seen.n_lines
        rows_per_line = np.ones(n_lines, np.int64)
        if seen.line_of_row is not None:
            rows_per_line = np.bincount(seen.line_of_row, minlength=n_lines)
        self._set(seen, rows_per_line, lambda: _fates_of_table(source))

    def _set(
        self,
        statistics: Patterns,
        rows_per_line: Ints,
        find_blocks: Callable[[], tuple[int, int]],
    ) -> None:
        self._shape = shape_of(statistics, rows_per_line)
        self._rows_per_line = rows_per_line
        self._find_blocks = find_blocks

    # ------------------------------------------------------------------ counting
    @property
    def n_rows(self) -> int:
        """Rows of the table."""
        return int(self._rows_per_line.sum())

    @property
    def n_cols(self) -> int:
        """Columns of the table."""
        return self._shape.n_cols

    @property
    def missing_per_col(self) -> Ints:
        """Missing cells in each column."""
        return self._shape.missing_per_col

    @cached_property
    def n_missing(self) -> int:
        """Missing cells."""
        return int(self.missing_per_col.sum())

    @property
    def n_rows_with_missing(self) -> int:
        """Rows with at least one missing cell."""
        return self._shape.n_rows_with_missing

    @property
    def n_cols_with_missing(self) -> int:
        """Columns with at least one missing cell."""
        return int((self.missing_per_col > 0).sum())

    @property
    def n_row_patterns(self) -> int:
        """Distinct patterns of the rows."""
        return self._shape.n_row_patterns

    @property
    def n_col_patterns(self) -> int:
        """Distinct patterns of the columns."""
        return self._shape.n_col_patterns

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

    @property
    def is_nested(self) -> bool:
        """Whether the row patterns contain one another: a staircase."""
        return self._shape.is_nested

    @property
    def has_closed_form(self) -> bool:
        """Whether there is a formula: every cycle of six or more has two chords."""
        return self.is_nested or bool(self._shape.reduced.core_shape[0] == 0)

    @property
    def core_shape(self) -> tuple[int, int]:
        """Groups left after peeling; one cell per block if there is a closed form."""
        if self.is_nested:
            return (1, 1)
        rows, cols = self._shape.reduced.core_shape
        roots = self._shape.reduced.n_roots
        return int(rows + roots), int(cols + roots)

    # -------------------------------------------------------------- what is known
    @cached_property
    def _blocks(self) -> tuple[int, int]:
        if self._shape.n_observed == 0:
            return 0, self.n_missing
        return self._find_blocks()

    @property
    def n_blocks(self) -> int:
        """Blocks with data of their own."""
        return self._blocks[0]

    @property
    def n_undetermined(self) -> int:
        """Missing cells that the data do not determine."""
        return self._blocks[1]

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
        """Pickle the pattern without the data, but with the number of blocks."""
        return {
            "_shape": self._shape,
            "_rows_per_line": self._rows_per_line,
            "_blocks": self._blocks,
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


def _fates_of_table(source: AnyRows) -> tuple[int, int]:
    """Blocks and undetermined cells; negative cells count as positive ones."""
    seen = observe(source, negatives="allow")
    if seen.n_negative:
        source = source.observed_as_ones()
        seen = observe(source)
    # One sweep is enough: the blocks do not depend on the factors.
    solved = solve_patterns(seen, source, tol=1.0, max_iter=2)
    rows = HeldRows(seen.sum_of_row, seen.line_of_row, seen.n_lines)
    return solved.factors.n_blocks, fates_of(solved, rows).totals.n_undetermined
