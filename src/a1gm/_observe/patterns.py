"""The statistics of a table that a fit needs: `Patterns`.

A pattern stands for all rows with the same holes (and proportional weights), or for a
single row where nearly every row has its own.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any

import numpy as np

from a1gm._base.bits import (
    has_bits_beyond,
    names_of_rows,
    pack_bits,
    union,
    unpack_bits,
)
from a1gm._base.checks import is_array, is_count, need
from a1gm._base.types import Bools, Floats, Ints, SmallInts
from a1gm._kernel import kernel
from a1gm.exceptions import ParameterError

CELLS_AT_ONCE = 1 << 20
_need = partial(need, "a table of patterns")


@dataclass  # frozen would slow down small fits, slots do not work with skops
class Patterns:
    """Sums of the patterns and columns, and which cells are observed and positive.

    Fields are arrays or None: those present define the form.
    """

    n_cols: int
    keys: Any = None  # observed cells as bits, uint64, column 0 in the lowest
    # Positive cells as bits where ``sums`` is None; None if all observed ones are.
    positive: Any = None
    # Instead of ``keys``: the columns of pattern i are ``cols[ptr[i]:ptr[i + 1]]``.
    ptr: Any = None
    cols: Any = None
    sums: Any = None  # (n, n_cols) beside ``keys``, else one per listed pair
    low: Any = None  # what rounding has left out of ``sums``
    row_margin: Any = None  # sums of the patterns and columns, where ``sums`` is None
    col_margin: Any = None
    # Weights of the cells, one per listed pair; beside ``keys`` the user's array, of
    # any type and layout, in which those of missing cells do not count.
    weights: Any = None
    counts: Any = None  # rows of each pattern; None where every row is one
    zero_counts: Any = None  # those of them that sum to 0
    # Scatter of the cells: sums of ``x² / r`` by pattern and column, r being the sum of
    # the row; the divergence of all rows from their means and the sum of r log r.
    squares: Any = None
    logs: Any = None
    n_negative: int = 0  # negative cells of the data
    sum_of_row: Any = None  # of the data, where rows are kept
    pattern_of_row: Any = None  # None where every row is one

    # ----------------------------------------------------------------------- sizes
    @property
    def n_patterns(self) -> int:
        """Patterns; rows where every row is one."""
        if self.keys is not None:
            return len(self.keys)
        return len(self.ptr) - 1

    @property
    def n_rows(self) -> int:
        """Rows of the table."""
        if self.sum_of_row is not None:
            return len(self.sum_of_row)
        return self.n_patterns if self.counts is None else int(self.counts.sum())

    @property
    def is_table(self) -> bool:
        """Whether sums of all cells of all patterns are kept, observed or not."""
        return self.keys is not None and self.sums is not None

    @property
    def is_mask(self) -> bool:
        """Whether margins and bits are kept, and no sums of cells."""
        return self.keys is not None and self.sums is None

    @property
    def n_bytes(self) -> int:
        """Bytes of the arrays, without those that have a number for each row."""
        of_rows = self.sum_of_row, self.pattern_of_row
        arrays = [a for a in vars(self).values() if isinstance(a, np.ndarray)]
        return sum(a.nbytes for a in arrays if not any(a is x for x in of_rows))

    def row_of(self, pattern: int) -> int:
        """Return the first row of a pattern."""
        if self.pattern_of_row is None:
            return pattern
        return int((self.pattern_of_row == pattern).argmax())

    # ------------------------------------------------------------------------ sums
    @cached_property
    def row_sums(self) -> Floats:
        """Sum of each pattern."""
        if self.row_margin is not None:
            return np.asarray(self.row_margin)
        with np.errstate(over="ignore"):
            if self.keys is not None:
                total: Floats = self.sums.sum(axis=1)
                return total
            total, some = np.zeros(self.n_patterns), np.diff(self.ptr) > 0
            if some.any():
                total[some] = np.add.reduceat(self.sums, self.ptr[:-1][some])
        return total

    def has_row_sums(self) -> Bools:
        """Patterns with a row whose sum is not 0; those of other rows may cancel it."""
        some: Bools = self.row_sums != 0.0
        if self.zero_counts is not None:
            some |= self.counts > self.zero_counts
        elif self.sum_of_row is not None and self.pattern_of_row is not None:
            some[self.pattern_of_row[self.sum_of_row != 0.0]] = True
        return some

    @cached_property
    def col_sums(self) -> Floats:
        """Sum of each column."""
        if self.col_margin is not None:
            return np.asarray(self.col_margin)
        if self.keys is not None:
            total: Floats = self.sums.sum(axis=0)
            return total
        total = np.zeros(self.n_cols)
        step = max(CELLS_AT_ONCE, self.n_cols)
        for at in range(0, len(self.cols), step):
            some = slice(at, at + step)
            total += weighted_counts(self.cols[some], self.sums[some], self.n_cols)
        return total

    def cell_sums(self) -> Patterns | None:
        """Sums of every observed cell as listed pairs; None if they are not kept."""
        if self.keys is None:
            return self
        if self.sums is None:
            return None
        one = np.zeros(max(self.n_patterns, self.n_cols), np.int32)
        return self.inside(one[: self.n_patterns], one[: self.n_cols])

    # ----------------------------------------------------------------------- cells
    @property
    def has_zeros(self) -> bool:
        """Whether some observed cell, or sum of twin cells, is not positive."""
        if self.sums is None:
            return self.positive is not None
        if self.keys is None:
            return not (self.sums > 0.0).all()
        n_observed = int(np.bitwise_count(self.keys).sum())
        return int(np.count_nonzero(self.sums > 0.0)) != n_observed

    def observed_cells(self, some: slice | Ints) -> Bools:
        """Observed cells of some patterns."""
        if self.keys is not None:
            return unpack_bits(self.keys[some], self.n_cols)
        observed: Bools = self._listed(np.ones(len(self.cols), bool))[some].toarray()
        return observed

    def positive_cells(self, some: slice) -> Bools:
        """Positive cells of some patterns."""
        if self.sums is None:
            bits = self.keys if self.positive is None else self.positive
            return unpack_bits(bits[some], self.n_cols)
        if self.keys is None:
            return np.asarray(self._listed(self.sums)[some].toarray() > 0.0)
        return np.asarray(self.sums[some] > 0.0)

    def weights_of(self, some: slice) -> Floats:
        """Weights of the cells of some patterns; 0 where nothing is observed."""
        if self.keys is None and self.weights is not None:
            return np.asarray(self._listed(self.weights)[some].toarray())
        observed = self.observed_cells(some)
        if self.weights is None:
            return observed.astype(np.float64)
        return np.where(observed, self.weights[some], 0.0).astype(np.float64)

    def _listed(self, values: Any) -> Any:
        """Numbers of the listed pairs as a sparse matrix."""
        from scipy.sparse import csr_array

        shape = self.n_patterns, self.n_cols
        return csr_array((values, self.cols, self.ptr), shape=shape)

    def places(self, some: slice) -> tuple[Ints, Ints]:
        """Pattern, counted from the first, and column of the cells of some patterns."""
        if self.keys is not None:
            i, j = np.nonzero(self.observed_cells(some))
            return i, j
        ptr = self.ptr[some.start : some.stop + 1]
        i = np.repeat(np.arange(len(ptr) - 1), np.diff(ptr))
        return i, self.cols[ptr[0] : ptr[-1]].astype(np.int64)

    def cells(self) -> Iterator[tuple[Ints, Ints, Bools]]:
        """Yield pattern, column and sign of the observed cells, some at a time."""
        for some in self.stretches():
            i, j = self.places(some)
            if self.keys is None:
                pairs = slice(self.ptr[some.start], self.ptr[some.stop])
                positive = self.sums[pairs] > 0.0
            else:
                positive = self.positive_cells(some)[i, j]
            yield i + some.start, j, positive

    def degrees(self) -> Ints:
        """Observed columns of each pattern."""
        if self.keys is None:
            counts: Ints = np.diff(self.ptr)
        else:
            counts = np.bitwise_count(self.keys).sum(axis=1, dtype=np.int64)
        return counts

    def nonempty_patterns(self) -> Bools:
        """Patterns with at least one observed cell."""
        if self.keys is not None:
            return np.asarray(self.keys.any(axis=1))
        some: Bools = np.diff(self.ptr) > 0
        return some

    def has_observed(self) -> tuple[Bools, Bools]:
        """Patterns and columns with at least one observed cell."""
        if self.keys is not None:
            columns = unpack_bits(union(self.keys)[None], self.n_cols)[0]
        else:
            columns = np.zeros(self.n_cols, bool)
            columns[self.cols] = True
        return self.nonempty_patterns(), columns

    @property
    def patterns_at_once(self) -> int:
        """Patterns that have a bounded number of observed cells, on average."""
        if self.keys is not None:
            return max(1, CELLS_AT_ONCE // self.n_cols)
        n_pairs = max(len(self.cols), self.n_patterns)
        return max(1, CELLS_AT_ONCE * self.n_patterns // n_pairs)

    def stretches(self) -> Iterator[slice]:
        """Yield patterns that are taken together, a bounded number of cells."""
        step = self.patterns_at_once
        for start in range(0, self.n_patterns, step):
            yield slice(start, min(start + step, self.n_patterns))

    def count_cells(
        self, some: slice, pattern_label: SmallInts, col_label: SmallInts, chosen: Bools
    ) -> tuple[Ints, Ints, Ints]:
        """Count, for each pattern, its observed cells and those inside their component.

        Third, those between two components in one of the ``chosen`` columns.
        """
        i, j = self.places(some)
        same = pattern_label[i] == col_label[j]
        n = some.stop - some.start
        between = i[~same & chosen[j]]
        return (
            np.bincount(i, minlength=n),
            np.bincount(i[same], minlength=n),
            np.bincount(between, minlength=n),
        )

    # -------------------------------------------------------------------- products
    def matrices(self) -> Iterator[tuple[slice, Any]]:
        """Yield the weights of the cells as matrices, some patterns at a time."""
        if self.keys is None:
            ones = np.ones(len(self.cols)) if self.weights is None else self.weights
            yield slice(0, self.n_patterns), self._listed(ones)
            return
        for some in self.stretches():
            yield some, self.weights_of(some)

    def margins(self, w: Floats, h: Floats) -> tuple[Floats, Floats]:
        """Sums of the patterns and columns of the fitted cells."""
        rows, cols = np.zeros(self.n_patterns), np.zeros(self.n_cols)
        for some, P in self.matrices():
            rows[some] = w[some] * (P @ h)
            cols += h * (w[some] @ P)
        return rows, cols

    def product(self, d: Floats, x: Floats, n_threads: int) -> Floats:
        """Return Pᵀ (d (P x)) for the weights P of the observed cells; of bits only."""
        parts = None if self.weights is None else self.parts
        found: Floats = kernel.bits_product(self.keys, parts, d, x, n_threads)
        return found

    @property
    def parts(self) -> list[Any]:
        """The user's array of weights as the kernel reads it."""
        return [(self.weights, None, None, 0)]

    # -------------------------------------------------------------------- solving
    def inside(self, pattern_label: SmallInts, col_label: SmallInts) -> Patterns:
        """Keep the cells whose pattern and column have the same label."""
        if self.is_mask:
            n = int(col_label.max(initial=-1)) + 1
            chosen = np.zeros((n + 1, self.n_cols), bool)  # the last: nothing
            known = np.flatnonzero(col_label >= 0)
            chosen[col_label[known], known] = True
            label = np.where(
                (pattern_label < 0) | (pattern_label >= n), n, pattern_label
            )
            return replace(self, keys=self.keys & pack_bits(chosen)[label])
        every = slice(0, self.n_patterns)
        i, j = self.places(every)
        kept = pattern_label[i] == col_label[j]
        sums = self.sums[i, j] if self.keys is not None else self.sums
        weights = None if self.weights is None else self.weights[kept]
        shape = self.n_patterns, self.n_cols
        return pairs_of(i[kept], j[kept], sums[kept], weights, *shape)

    def reduce(self, *, force: bool) -> Any:
        """Merge twins and drop leaves; the kernel's `Reduced`.

        None when leaves need the sums of single cells and only margins are kept;
        ``force`` leaves such leaves to the iteration instead.
        """
        if self.keys is None:
            pairs = self.ptr, self.cols, self.sums, self.weights
            return kernel.reduce_pairs(*pairs, self.n_cols)
        if self.weights is not None:  # twins and leaves need the sums of single cells
            return None
        margins = self.row_sums, self.col_sums
        if self.sums is None:
            return kernel.reduce_mask(self.keys, *margins, False, force)
        reduced = kernel.reduce_mask(self.keys, *margins, True, False)
        return kernel.reduce_table(self.keys, self.sums) if reduced is None else reduced

    # -------------------------------------------------------------------- checking
    def check(self, *, signed: bool) -> None:
        """Raise ValueError if the arrays do not fit together; they may be foreign."""
        _need(is_count(self.n_cols, 1, 2**31), "the number of columns")
        has_bits, has_sums = self.keys is not None, self.sums is not None
        _need(has_bits == (self.ptr is None) == (self.cols is None), "cells")
        n, words = len(self.keys if has_bits else self.ptr), -(-self.n_cols // 64)
        if has_bits:
            shape: tuple[int, ...] = n, self.n_cols
        else:
            n, shape = n - 1, (len(self.cols),)
        rows = self.sum_of_row if self.pattern_of_row is None else self.pattern_of_row
        for name, dtype, size in (
            ("keys", "u8", (n, words)),
            ("positive", "u8", (n, words)),
            ("ptr", "i8", (n + 1,)),
            ("cols", "i4", shape),
            ("sums", "f8", shape),
            ("low", "f8", shape),
            ("squares", "f8", shape),
            ("row_margin", "f8", (n,)),
            ("col_margin", "f8", (self.n_cols,)),
            ("counts", "i8", (n,)),
            ("zero_counts", "i8", (n,)),
            ("logs", "f8", (2,)),
            ("sum_of_row", "f8", () if rows is None else (len(rows),)),
        ):
            array = getattr(self, name)
            is_right = array is None or is_array(array, dtype, size)
            _need(is_right and (array is None or np.isfinite(array).all()), name)
        margins = self.row_margin, self.col_margin
        _need(has_sums == (margins[0] is None) == (margins[1] is None), "margins")
        _need((self.squares is None) == (self.logs is None), "logs")
        if not signed:
            sums = self.sums if self.low is None else self.sums + self.low
            for found in (sums, *margins, self.squares, self.sum_of_row):
                _need(found is None or not (found < 0.0).any(), "a sum below zero")
        self._check_cells(n)
        self._check_rows(n)
        _need(is_count(self.n_negative), "n_negative")

    def _check_cells(self, n: int) -> None:
        if self.keys is not None:
            _need(n > 0 and not has_bits_beyond(self.keys, self.n_cols), "keys")
            if self.positive is not None:
                _need(not (self.positive & ~self.keys).any(), "positive")
        else:
            ptr, cols, lengths = self.ptr, self.cols, np.diff(self.ptr)
            _need(n > 0 and ptr[0] == 0 and ptr[-1] == len(cols), "ptr")
            _need((lengths >= 0).all() and self.positive is None, "ptr")
            starts = np.zeros(len(cols) + 1, bool)
            starts[ptr[:-1]] = True
            _need(((np.diff(cols) > 0) | starts[1:-1]).all(), "cols")
            _need(not ((cols < 0) | (cols >= self.n_cols)).any(), "cols")
        if self.is_table:
            _need(len(set(names_of_rows(self.keys))) == n, "a key")
            observed = self.observed_cells(slice(0, n))
            _need(not self.sums[~observed].any(), "a missing cell")
        if self.weights is not None:
            shape = (n, self.n_cols) if self.keys is not None else self.cols.shape
            is_number = self.weights.dtype.kind in "fiub"
            _need(is_number and self.weights.shape == shape, "weights")
            for some in self.stretches():
                own = self.weights_of(some)[self.places(some)]
                _need(((own > 0.0) & np.isfinite(own)).all(), "weights")

    def _check_rows(self, n: int) -> None:
        sums, of_row = self.sum_of_row, self.pattern_of_row
        counts, zero_counts = self.counts, self.zero_counts
        if counts is not None:
            _need(not (counts < 0).any(), "counts")
        if zero_counts is not None:
            _need(not ((zero_counts < 0) | (zero_counts > counts)).any(), "zero_counts")
        if of_row is None:
            _need(sums is None or len(sums) == n, "sum_of_row")
            return
        _need(of_row.dtype.kind in "iu" and of_row.ndim == 1, "pattern_of_row")
        _need(not ((of_row < 0) | (of_row >= n)).any(), "pattern_of_row")
        if counts is not None:
            same = np.array_equal(np.bincount(of_row, minlength=n), counts)
            _need(same, "counts")
        if zero_counts is not None and sums is not None:
            zero = np.bincount(of_row[sums == 0.0], minlength=n)
            _need(np.array_equal(zero, zero_counts), "zero_counts")


@dataclass
class PatternsGone:
    """What a model of columns keeps in place of many patterns: counts and margins.

    Whatever needs the patterns themselves is refused.
    """

    n_cols: int
    n_rows: int
    n_missing: int
    n_empty_rows: int
    n_given_up: int  # observed zeros between components
    fates: Any  # missing cells of each fate
    col_sums: Any
    n_negative: int
    squares: Any = None
    pattern_of_row: Any = None

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        raise ParameterError(
            "This model holds the columns of a file, without the patterns of its "
            "missing cells, which were many: it places and fills rows, and has no "
            "errors and no fates of the file's cells. Fit the file again for these."
        )

    def check(self) -> None:
        """Raise ValueError if the values do not fit together; they may be foreign."""
        _need(is_count(self.n_cols, 1, 2**31), "the number of columns")
        for name in ("n_rows", "n_missing", "n_empty_rows", "n_given_up", "n_negative"):
            _need(is_count(getattr(self, name)), name)
        _need(is_array(self.fates, "i8", (5,)) and not (self.fates < 0).any(), "fates")
        sums = self.col_sums
        _need(is_array(sums, "f8", (self.n_cols,)), "col_sums")
        _need(np.isfinite(sums).all(), "col_sums")
        _need(self.n_negative > 0 or not (sums < 0.0).any(), "a sum below zero")
        _need(self.squares is None and self.pattern_of_row is None, "squares")


def pairs_of(
    patterns: Ints, cols: Ints, sums: Floats, weights: Any, n_patterns: int, n_cols: int
) -> Patterns:
    """Patterns of listed cells, sorted by pattern and column."""
    counts = np.bincount(patterns, minlength=n_patterns)
    ptr = np.concatenate((np.zeros(1, np.int64), np.cumsum(counts)))
    found = Patterns(n_cols, ptr=ptr, cols=cols.astype(np.int32))
    found.sums, found.weights = sums, weights
    return found


def weighted_counts(places: Ints | SmallInts, values: Floats, n: int) -> Floats:
    """Sum the values that share a place."""
    sums: Floats = np.bincount(places, values, minlength=n).astype(np.float64)
    return sums
