"""The patterns of a table, counted by the engine that has it.

Wide lines have the sum of every column for each pattern. Where patterns are many, or
columns more than an engine returns, narrow lines have the sum of the row only, and the
sums of the columns are asked for before.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import add, and_
from typing import Any, TypeVar

import narwhals.stable.v2 as nw
import numpy as np

from a1gm._base.bits import pack_bits
from a1gm._base.float_range import check_range
from a1gm._base.types import AnyArray, Bools, Floats, Negatives
from a1gm._base.words import counted
from a1gm._observe.accumulate import bytes_needed
from a1gm._observe.patterns import Patterns
from a1gm._rows.lazy import Frame, collect
from a1gm.engines.place import (
    MAX,
    LazyTable,
    column,
    combined,
    double,
    whole,
)
from a1gm.exceptions import (
    DataError,
    EngineError,
    InfiniteValuesError,
    NegativeValuesError,
    Option,
    TableTooLargeError,
)

BITS = 62  # of a key: they fit into a signed integer of 64 bits everywhere
WIDE_BYTES = 1 << 28  # of the sums of all patterns
WIDE_COLUMNS = 700  # SQLite returns 2,000 columns, PostgreSQL 1,664
FEW_COLUMNS = 16  # have at most 65,536 patterns
PROBED_ROWS = 1 << 14  # first rows that show whether patterns are many
MANY_PATTERNS = 1 << 12  # among these
MOST_LINES = 1 << 24
COLUMNS_AT_ONCE = 400
SAME = 1e-9  # relative: sums of one table in two queries

Answer = TypeVar("Answer")


def observe_table(table: LazyTable, negatives: Negatives) -> Patterns:
    """Count the patterns of a lazy table; raise for cells that cannot be fitted."""
    seen = None if _has_many_patterns(table) else _wide(table, negatives)
    seen = _narrow(table, negatives) if seen is None else seen
    if seen.n_rows == 0:
        raise DataError(
            "Found a table with 0 rows while a minimum of 1 is required: X is empty."
        )
    check_range(seen.row_sums, lambda _: "Rows with the same missing cells")
    return seen


def _has_many_patterns(table: LazyTable) -> bool:
    m = len(table.names)
    if m <= FEW_COLUMNS or m > WIDE_COLUMNS:
        return m > FEW_COLUMNS
    keys = _observed_keys(m)
    some = table.cells(may_be_nan=False).head(PROBED_ROWS).select(**keys)
    lines = some.unique(list(keys)).select(n=nw.len())
    found = collect(lines, "counts the patterns of the first rows")
    return int(found["n"][0].as_py()) > MANY_PATTERNS


# ------------------------------------------------------------------------- bad cells
def _settled(
    table: LazyTable,
    negatives: Negatives,
    ask: Callable[[Frame], tuple[Answer, float, float]],
) -> tuple[Answer, bool, int]:
    """What is asked of the cells, whether some are NaN, and how many are below 0.

    ``ask`` also returns the sum of everything and the least cell, or 0. NaN makes a sum
    NaN, so it is looked for only then.
    """
    answer, total, low = ask(table.cells(may_be_nan=False))
    is_finite = bool(np.isfinite(total))
    n_negative = 0
    if low < 0.0 or not is_finite:
        n_negative = _check_cells(table, negatives)
    if not is_finite:
        answer, _, _ = ask(table.cells())
    return answer, not is_finite, n_negative


def _check_cells(table: LazyTable, negatives: Negatives) -> int:
    """Raise for bad cells, with how many a column has; return the negative ones."""
    counts: dict[str, int | None] = {}
    for some in _slices(table):
        marks = {}
        for j in some:
            x = column("x", j)
            is_infinite = (x > double(MAX)) | (x < double(-MAX))
            is_negative = (x < double(0.0)) & (x >= double(-MAX))
            marks[f"inf{j}"] = nw.when(is_infinite).then(whole(1)).sum()
            marks[f"neg{j}"] = nw.when(is_negative).then(whole(1)).sum()
        lines = table.cells().select(**marks)
        counts |= collect(lines, "counts negative and infinite cells").to_pylist()[0]
    m = len(table.names)
    infinite = [int(counts[f"inf{j}"] or 0) for j in range(m)]
    negative = [int(counts[f"neg{j}"] or 0) for j in range(m)]
    _check_counts("Infinite", InfiniteValuesError, table.names, infinite)
    if negatives == "raise":
        allow = ", or pass ", Option("negatives", "allow"), " to fit the margins only"
        _check_counts("Negative", NegativeValuesError, table.names, negative, *allow)
    return sum(negative)


def _check_counts(
    word: str,
    error: type[DataError],
    names: Sequence[Any],
    counts: list[int],
    *advice: str | Option,
) -> None:
    """Raise for bad cells, of which each column has so many."""
    bad = [j for j, n in enumerate(counts) if n]
    if not bad:
        return
    listed = ", ".join(f"{names[j]!r} has {counts[j]:,}" for j in bad[:8])
    if len(bad) > 8:
        listed += f" and {counted(len(bad) - 8, 'column')} more"
    raise error(
        f"{word} values in data: column {listed}.",
        advice=["Mark them as NULL", *advice, "."],
        column=bad[0],
        count=sum(counts),
    )


# ------------------------------------------------------------------------- wide lines
def _wide(table: LazyTable, negatives: Negatives) -> Patterns | None:
    """The patterns with the sums of their cells; None if they are too many."""
    m = len(table.names)
    most = WIDE_BYTES // bytes_needed(1, m)

    def ask(cells: Frame) -> tuple[Patterns | None, float, float]:
        lines = wide_lines(cells, m, signed=negatives == "allow").head(most + 1)
        found = collect(lines, "counts the patterns of holes")
        if found.num_rows > most:
            return None, 0.0, 0.0
        seen, low = patterns_of_sums(found, m)
        return seen, float(seen.sums.sum()), float(low.min())

    seen, _, n_negative = _settled(table, negatives, ask)
    if seen is not None:
        seen.n_negative = n_negative
    return seen


def wide_lines(cells: Frame, m: int, *, signed: bool) -> Frame:
    """One line per pattern of holes, with the sum of each column.

    Keys k*, rows n, rows of zeros (``signed``: that sum to zero), sums s*, least a*.
    """
    keys = _observed_keys(m)
    if signed:
        is_zero = _row_sum(m) == 0
    else:  # stops at the first column that is not 0
        is_zero = combined(and_, [column("x", j).fill_null(0) == 0 for j in range(m)])
    rows = cells.with_columns(**keys, zero=nw.when(is_zero).then(whole(1)))
    zeros = nw.col("zero").sum()
    return rows.group_by(*keys).agg(n=nw.len(), zero=zeros, **_margins(range(m)))


def _margins(some: range) -> dict[str, nw.Expr]:
    """Sum and least cell of some columns."""
    x = {j: column("x", j) for j in some}
    sums = {f"s{j}": x[j].sum() for j in some}
    return sums | {f"a{j}": x[j].min() for j in some}


def patterns_of_sums(lines: Any, m: int) -> tuple[Patterns, Floats]:
    """Patterns of wide lines, whatever their sums; also the least cells, or 0."""
    lines = _in_order(lines)
    observed = _bits_of(lines, "k", m)
    sums, low = (
        np.stack([floats(lines, f"{letter}{j}") for j in range(m)], axis=1)
        for letter in "sa"
    )
    seen = Patterns(
        m,
        keys=pack_bits(observed),
        sums=np.where(observed, sums, 0.0),
        counts=integers(lines, "n"),
        zero_counts=integers(lines, "zero"),
    )
    return seen, np.fmin.reduce(low, axis=0, initial=0.0)


# ----------------------------------------------------------------------- narrow lines
def _slices(table: LazyTable) -> list[range]:
    m = len(table.names)
    starts = range(0, m, COLUMNS_AT_ONCE)
    return [range(k, min(k + COLUMNS_AT_ONCE, m)) for k in starts]


def _narrow(table: LazyTable, negatives: Negatives) -> Patterns:
    """The patterns with the sums of their rows."""
    if negatives == "allow":
        raise TableTooLargeError(
            "With ",
            Option("negatives", "allow"),
            " a sum per pattern of holes is kept, and X has too many. Leave out "
            "columns with ",
            Option("exclude"),
            ".",
        )
    m = len(table.names)

    def ask(cells: Frame) -> tuple[tuple[Floats, bool], float, float]:
        found: dict[str, Any] = {}
        for some in _slices(table):
            lines = collect(cells.select(**_margins(some)), "sums the columns")
            found |= lines.to_pylist()[0]
        sums = np.array([float(found[f"s{j}"] or 0.0) for j in range(m)])
        least = [found[f"a{j}"] for j in range(m) if found[f"a{j}"] is not None]
        low = min(map(float, least), default=0.0)
        return (sums, low == 0.0), float(sums.sum()), min(low, 0.0)

    (col_sums, has_zeros), may_be_nan, _ = _settled(table, negatives, ask)
    keys = _observed_keys(m)
    if has_zeros:
        is_positive = [column("x", j).fill_null(0) > 0 for j in range(m)]
        keys |= _keys_of(is_positive, "p")
    cells = table.cells(may_be_nan=may_be_nan)
    rows = cells.select(r=_row_sum(m), **keys)
    what = "counts the patterns of holes by the sums of their rows"
    lines = rows.group_by(*keys).agg(n=nw.len(), r=nw.col("r").sum())
    found = collect(lines.head(MOST_LINES + 1), what)
    if found.num_rows > MOST_LINES:
        raise TableTooLargeError(
            f"X has more than {MOST_LINES:,} patterns of holes, which are not brought "
            "here. Collect it first; or stream the rows of a wide one: pass a reader "
            "of Arrow batches (relation.to_arrow_reader() of DuckDB, "
            "table.to_pyarrow_batches() of Ibis) to a1gm.fit."
        )
    found = _in_order(found)
    row_sums = floats(found, "r")
    if abs(row_sums.sum() - col_sums.sum()) > SAME * abs(col_sums.sum()):
        raise EngineError(
            "The sums of the rows are not those of the columns: X was changed between "
            "two queries. Fit a snapshot of it."
        )
    counts, observed = integers(found, "n"), _bits_of(found, "k", m)
    positive = _bits_of(found, "p", m) if "p0" in keys else observed
    return Patterns(
        m,
        keys=pack_bits(observed),
        positive=pack_bits(positive) if "p0" in keys else None,
        row_margin=row_sums,
        col_margin=col_sums,
        counts=counts,
        zero_counts=np.where(positive.any(axis=1), 0, counts),
    )


# ----------------------------------------------------------------------- keys and lines
def _keys_of(marks: Sequence[nw.Expr], letter: str) -> dict[str, nw.Expr]:
    """Marks of the columns as bits of integers, 62 each, by the first column."""
    bits = [
        nw.when(mark).then(whole(1 << j % BITS)).otherwise(whole(0))
        for j, mark in enumerate(marks)
    ]
    return {
        f"{letter}{first}": combined(add, bits[first : first + BITS])
        for first in range(0, len(marks), BITS)
    }


def _observed_keys(m: int) -> dict[str, nw.Expr]:
    return _keys_of([~column("x", j).is_null() for j in range(m)], "k")


def _row_sum(m: int) -> nw.Expr:
    return combined(add, [column("x", j).fill_null(0) for j in range(m)])


def _bits_of(lines: Any, letter: str, m: int) -> Bools:
    """Which columns the keys of each line mark."""
    words = [
        integers(lines, f"{letter}{first}")[:, None] >> np.arange(min(BITS, m - first))
        for first in range(0, m, BITS)
    ]
    return (np.concatenate(words, axis=1) & 1).astype(bool)


def _in_order(lines: Any) -> Any:
    """Lines in an order that does not depend on the engine."""
    keys = [name for name in lines.column_names if name[0] in "kp"]
    return lines.sort_by([(key, "ascending") for key in keys])


def floats(lines: Any, name: str) -> Floats:
    """A column of sums; 0 where a pattern has none."""
    values = lines[name].cast("float64").fill_null(0.0)
    return np.asarray(values.to_numpy())


def integers(lines: Any, name: str) -> AnyArray:
    """A column of counts or keys."""
    return np.asarray(lines[name].cast("int64").fill_null(0).to_numpy())
