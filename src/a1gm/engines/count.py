"""The patterns of a table, counted by the engine that has it.

A line per pattern of holes, with the sum of every column.
"""

from __future__ import annotations

from collections.abc import Sequence
from operator import add, and_
from typing import Any

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
    InfiniteValuesError,
    NegativeValuesError,
    Option,
)

BITS = 62  # of a key: they fit into a signed integer of 64 bits everywhere
MOST_BYTES = 1 << 28  # of the sums of all patterns
MOST_COLUMNS = 700  # SQLite returns 2,000 columns, PostgreSQL 1,664


def observe_table(table: LazyTable, negatives: Negatives) -> Patterns | None:
    """Count the patterns of a lazy table; None if they or the columns are too many.

    Raise for cells that cannot be fitted. NaN makes a sum NaN, so it is looked for only
    then.
    """
    if len(table.names) > MOST_COLUMNS:
        return None
    signed = negatives == "allow"
    found = _counted(table, signed=signed, may_be_nan=False)
    if found is None:
        return None
    seen, low = found
    is_finite = bool(np.isfinite(seen.sums.sum()))
    n_negative = 0
    if low.min() < 0.0 or not is_finite:
        n_negative = _check_cells(table, negatives)
    if not is_finite:
        found = _counted(table, signed=signed, may_be_nan=True)
        if found is None:
            return None
        seen, _ = found
    seen.n_negative = n_negative
    if seen.n_rows == 0:
        raise DataError(
            "Found a table with 0 rows while a minimum of 1 is required: X is empty."
        )
    check_range(seen.row_sums, lambda _: "Rows with the same missing cells")
    return seen


def _counted(
    table: LazyTable, *, signed: bool, may_be_nan: bool
) -> tuple[Patterns, Floats] | None:
    """Patterns and least cells of the columns; None if the patterns are too many."""
    m = len(table.names)
    most = MOST_BYTES // bytes_needed(1, m)
    lines = pattern_lines(table.cells(may_be_nan=may_be_nan), m, signed=signed)
    found = collect(lines.head(most + 1), "counts the patterns of holes")
    return None if found.num_rows > most else patterns_of_sums(found, m)


# ------------------------------------------------------------------------- bad cells
def _check_cells(table: LazyTable, negatives: Negatives) -> int:
    """Raise for bad cells, with how many a column has; return the negative ones."""
    marks = {}
    m = len(table.names)
    for j in range(m):
        x = column("x", j)
        is_infinite = (x > double(MAX)) | (x < double(-MAX))
        is_negative = (x < double(0.0)) & (x >= double(-MAX))
        marks[f"inf{j}"] = nw.when(is_infinite).then(whole(1)).sum()
        marks[f"neg{j}"] = nw.when(is_negative).then(whole(1)).sum()
    lines = table.cells().select(**marks)
    counts = collect(lines, "counts negative and infinite cells").to_pylist()[0]
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


# ------------------------------------------------------------------------------ lines
def pattern_lines(cells: Frame, m: int, *, signed: bool) -> Frame:
    """One line per pattern of holes, with the sum of each column.

    Keys k*, rows n, rows of zeros (``signed``: that sum to zero), sums s*, least a*.
    """
    keys = _observed_keys(m)
    cell_or_zero = [column("x", j).fill_null(0) for j in range(m)]
    if signed:
        is_zero = combined(add, cell_or_zero) == 0
    else:  # stops at the first column that is not 0
        is_zero = combined(and_, [cell == 0 for cell in cell_or_zero])
    rows = cells.with_columns(**keys, zero=nw.when(is_zero).then(whole(1)))
    zeros = nw.col("zero").sum()
    sums = {f"s{j}": column("x", j).sum() for j in range(m)}
    least = {f"a{j}": column("x", j).min() for j in range(m)}
    return rows.group_by(*keys).agg(n=nw.len(), zero=zeros, **sums, **least)


def patterns_of_sums(lines: Any, m: int) -> tuple[Patterns, Floats]:
    """Patterns of lines, whatever their sums; also the least cells, or 0."""
    lines = _in_order(lines)
    observed = _bits_of(lines, m)
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


# ----------------------------------------------------------------------- keys and lines
def _observed_keys(m: int) -> dict[str, nw.Expr]:
    """Which columns are observed as bits of integers, 62 each, by the first column."""
    bits = [
        nw.when(column("x", j).is_null()).then(whole(0)).otherwise(whole(1 << j % BITS))
        for j in range(m)
    ]
    return {
        f"k{first}": combined(add, bits[first : first + BITS])
        for first in range(0, m, BITS)
    }


def _bits_of(lines: Any, m: int) -> Bools:
    """Which columns each line observes."""
    words = [
        integers(lines, f"k{first}")[:, None] >> np.arange(min(BITS, m - first))
        for first in range(0, m, BITS)
    ]
    return (np.concatenate(words, axis=1) & 1).astype(bool)


def _in_order(lines: Any) -> Any:
    """Lines in an order that does not depend on the engine."""
    keys = [name for name in lines.column_names if name[0] == "k"]
    return lines.sort_by([(key, "ascending") for key in keys])


def floats(lines: Any, name: str) -> Floats:
    """A column of sums; 0 where a pattern has none."""
    values = lines[name].cast("float64").fill_null(0.0)
    return np.asarray(values.to_numpy())


def integers(lines: Any, name: str) -> AnyArray:
    """A column of counts or keys."""
    return np.asarray(lines[name].cast("int64").fill_null(0).to_numpy())
