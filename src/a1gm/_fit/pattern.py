"""``MissingPattern``: counts and shape of the holes of a table."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from itertools import pairwise
from typing import Any, TypeAlias

import numpy as np

from a1gm._base.types import Absent, Ints, SmallInts
from a1gm._base.words import counted, html_table
from a1gm._fit.place import Fates
from a1gm._fit.table import FitRows
from a1gm._kernel import kernel
from a1gm._observe.observe import observe
from a1gm._observe.patterns import Patterns
from a1gm._rows.columns import ColumnOptions
from a1gm._rows.read import AnyRows, read_input
from a1gm._solve.dispatch import solve_patterns

FindBlocks: TypeAlias = Callable[[], tuple[int, int]]

#: Explains ``MissingPattern.shape_name``.
_SHAPES = {
    "complete": "complete: nothing is missing, solved in closed form",
    "grid": "grid (some rows × some columns): solved in closed form",
    "staircase": "staircase: solved in closed form",
    "closed form": "neither grid nor staircase, but solved in closed form",
}
#: Explains the number of blocks, if it is 0 or 1.
_BLOCKS = (
    "0: no cell is above 0",
    "1: all rows and columns with a cell above 0 can be compared",
)


class MissingPattern:
    """The pattern of missing cells of a table.

    Parameters
    ----------
    X : table of shape (n_rows, n_cols)
        Anything ``a1gm.fit`` accepts; negative cells do not matter here.
    id, columns, exclude : name or list of names, optional
        For frames, as in ``a1gm.fit``.
    absent : {"missing", "zero"}, optional
        For SciPy sparse tables, what an absent cell is.

    Examples
    --------
    >>> import numpy as np, a1gm
    >>> X = np.array([[1.0, 2.0], [3.0, np.nan]])
    >>> a1gm.MissingPattern(X).is_grid_like
    True
    """

    def __init__(
        self,
        X: Any,
        *,
        id: Any = None,
        columns: Any = None,
        exclude: Any = None,
        absent: Absent | None = None,
    ) -> None:
        wanted = ColumnOptions(id, columns, exclude)
        source = read_input(X, absent=absent, columns=wanted)
        seen = observe(source, negatives="allow")
        rows = FitRows(seen, seen.sum_of_row)
        self._set(seen, rows, lambda: _blocks_of(source))

    def _set(self, patterns: Patterns, rows: FitRows, find_blocks: FindBlocks) -> None:
        """Describe the holes of a table that was observed.

        ``find_blocks`` gives the number of blocks, and of cells not determined.
        """
        self.n_cols, self._find_blocks = patterns.n_cols, find_blocks
        every = slice(0, patterns.n_patterns)
        self._rows_per_pattern, _ = rows.pattern_counts(every)
        # Without the sums, which a pattern does not need.
        self._observed = Patterns(
            patterns.n_cols, patterns.keys, ptr=patterns.ptr, cols=patterns.cols
        )

    @cached_property
    def _cells(self) -> Any:
        """Observed columns of each pattern, as a sparse array of ones."""
        from scipy.sparse import csr_array, vstack

        found = [P for _, P in self._observed.matrices()]
        return csr_array(vstack([csr_array(P).astype(bool) for P in found]))

    @cached_property
    def _degrees(self) -> Ints:
        """Observed columns of each pattern."""
        return self._observed.degrees()

    # ------------------------------------------------------------------ counting
    @property
    def n_rows(self) -> int:
        """Rows of the table."""
        return int(self._rows_per_pattern.sum())

    @cached_property
    def missing_per_col(self) -> Ints:
        """Missing cells in each column."""
        observed: Ints = self._rows_per_pattern @ self._cells
        return self.n_rows - observed

    @cached_property
    def n_missing(self) -> int:
        """Missing cells."""
        return self.n_rows * self.n_cols - int(self._rows_per_pattern @ self._degrees)

    @property
    def n_rows_with_missing(self) -> int:
        """Rows with at least one missing cell."""
        return int(self._rows_per_pattern[self._degrees < self.n_cols].sum())

    @property
    def n_cols_with_missing(self) -> int:
        """Columns with at least one missing cell."""
        return int((self.missing_per_col > 0).sum())

    @cached_property
    def n_row_patterns(self) -> int:
        """Distinct patterns of the rows."""
        return len(_distinct(self._cells))

    @cached_property
    def n_col_patterns(self) -> int:
        """Distinct patterns of the columns."""
        return len(_distinct(self._cells.T.tocsr()))

    # --------------------------------------------------------------------- shape
    @property
    def is_complete(self) -> bool:
        """Whether no cell is missing."""
        return self.n_missing == 0

    @property
    def is_grid_like(self) -> bool:
        """Whether the holes are all cells of some rows and some columns."""
        return self.n_missing == self.n_rows_with_missing * self.n_cols_with_missing

    @cached_property
    def is_nested(self) -> bool:
        """Whether the row patterns contain one another: a staircase."""
        # Nested rows observe the first columns, if the fullest come first.
        ptr, cols = self._cells.indptr, self._cells.indices
        rank = np.empty(self.n_cols, np.int64)
        fullest = np.argsort(-np.bincount(cols, minlength=self.n_cols), kind="stable")
        rank[fullest] = np.arange(self.n_cols)
        some = self._degrees > 0
        if not some.any():
            return True
        furthest = np.maximum.reduceat(rank[cols], ptr[:-1][some])
        return bool((furthest == self._degrees[some] - 1).all())

    @cached_property
    def _reduced(self) -> tuple[int, int, int]:
        """Rows and columns of the core, and single cells, after peeling the pattern."""
        found = _distinct(self._cells)
        ptr = np.cumsum([0, *map(len, found)])
        cols = np.concatenate([np.zeros(0, np.int32), *found])
        made = kernel.reduce_pairs(ptr, cols, np.ones(len(cols)), None, self.n_cols)
        return (*made.core_shape, made.n_roots)

    @property
    def has_closed_form(self) -> bool:
        """Whether there is a formula: every cycle of six or more has two chords."""
        return self.is_nested or self._reduced[0] == 0

    @property
    def core_shape(self) -> tuple[int, int]:
        """Groups left after peeling; one cell per block if there is a closed form."""
        if self.is_nested:
            return (1, 1)
        rows, cols, roots = self._reduced
        return int(rows + roots), int(cols + roots)

    # -------------------------------------------------------------- what is known
    @cached_property
    def _blocks(self) -> tuple[int, int]:
        if not self._cells.nnz:
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
        blocks = self._blocks
        kept = {k: v for k, v in self.__dict__.items() if k != "_find_blocks"}
        kept.pop("_cells", None)
        return {**kept, "_blocks": blocks}

    def __repr__(self) -> str:
        unknown = self.n_undetermined
        known = f", {counted(unknown, 'cell')} cannot be known" if unknown else ""
        return (
            f"MissingPattern({self.n_rows:,} x {self.n_cols:,}, "
            f"{self.n_missing:,} missing, "
            f"{counted(self.n_row_patterns, 'row pattern')}, {self.shape_name}, "
            f"{counted(self.n_blocks, 'block')}{known})"
        )

    def _summary(self) -> dict[str, str]:
        """Every property in words, by name."""
        n, m = self.n_rows, self.n_cols
        n_cells, n_blocks = n * m, self.n_blocks
        share = self.n_missing / n_cells
        core = "core of {:,} × {:,}: solved iteratively, to a certificate"
        apart = f"{n_blocks:,}: their scales cannot be compared"
        lines = {
            "table": f"{counted(n, 'row')} × {counted(m, 'column')}",
            "missing": f"{self.n_missing:,} of {n_cells:,} cells ({share:.1%})",
            "patterns": f"{self.n_row_patterns:,} among the rows, "
            f"{self.n_col_patterns:,} among the columns",
            "shape": _SHAPES.get(self.shape_name) or core.format(*self.core_shape),
            "blocks": _BLOCKS[n_blocks] if n_blocks < 2 else apart,
        }
        if self.n_undetermined:
            cells = counted(self.n_undetermined, "missing cell")
            lines["not determined"] = f"{cells}; these stay missing"
        return lines

    def _repr_html_(self) -> str:
        return html_table("MissingPattern", self._summary())


def _distinct(cells: Any) -> list[SmallInts]:
    """Different lists of columns of a sparse array."""
    ends, cols = pairwise(cells.indptr.tolist()), cells.indices.astype(np.int32)
    return list({cols[a:b].tobytes(): cols[a:b] for a, b in ends}.values())


def _blocks_of(source: AnyRows) -> tuple[int, int]:
    """Blocks and undetermined cells; negative cells count as positive ones."""
    seen = observe(source, negatives="allow")
    if seen.n_negative:
        source = source.observed_as_ones()
        seen = observe(source)
    # One sweep is enough: the blocks do not depend on the factors.
    solved = solve_patterns(seen, source, tol=1.0, max_iter=2)
    fates = Fates(solved, FitRows(seen, seen.sum_of_row))
    return solved.factors.n_blocks, fates.totals.n_undetermined
