"""Long tables counted by the engine that has them: no pivot, and no rows come here.

The distinct columns get codes; the cells of a row add up to a key, the sum of
``2**code``; rows with the same key are one pattern. A sum of n powers of two has n bits
only if all differ, which shows pairs that are there twice.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np

from a1gm._base.bits import pack_bits
from a1gm._base.words import counted
from a1gm._fit.place import Columns
from a1gm._observe.patterns import Patterns
from a1gm._rows.labels import check_there
from a1gm._rows.long import Duplicates, labels_of
from a1gm.engines.count import bits_of, check_counts, floats, integers
from a1gm.engines.query import (
    BITS,
    MAX,
    Frame,
    collect,
    double,
    number,
    open_lazy,
    whole,
    with_plain_names,
)
from a1gm.exceptions import (
    DataError,
    LabelError,
    NotNumericError,
    NotRepresentableError,
    Option,
    ParameterError,
    TableTooLargeError,
)

MOST_COLUMNS = 100 * BITS
MOST_LINES = 1 << 24
PREDICTED = "predicted"


def observe_long(
    X: Any, keys: Sequence[Any] | None, value: Any, duplicates: Duplicates
) -> tuple[Patterns, Any, tuple[Any, Any, Any]]:
    """Count the patterns of a long table; also its columns, and the names it has."""
    cells, names = _open(X, keys, value)
    if duplicates == "sum":
        cells = _summed(cells)
    columns = _columns(cells)
    found = collect(columns, "sums the columns of a long table").sort_by("code")
    labels = labels_of(found["j"].combine_chunks())
    if len(labels) == 0:
        raise DataError("Found 0 rows while a minimum of 1 is required: X is empty.")
    if len(labels) > MOST_COLUMNS:
        raise TableTooLargeError(
            f"X has {counted(len(labels), 'column')}, more than {MOST_COLUMNS:,}. "
            "Swap the keys if it has fewer rows, or collect it first."
        )
    sums, has_zeros = _checked(found, labels, names)
    lines = collect(
        _lines(cells, columns, len(labels), has_zeros).head(MOST_LINES + 1),
        "counts the patterns of a long table",
    )
    return _patterns(lines, sums, has_zeros), labels, names


def predicted(
    X: Any,
    fitted: Any,
    columns: Columns,
    labels: Any,
    names: tuple[Any, Any, Any],
    duplicates: Duplicates,
) -> Any:
    """Pairs of keys with their fitted values, by a join with the rows of the table.

    Raises ParameterError for several blocks, whose rows have no single factor.
    """
    if not columns.graph.is_single:
        raise ParameterError(
            "The fit has several blocks or a column without data, and predict of a "
            "lazy frame needs one block. Fit the table in memory with a1gm.fit_long."
        )
    cells, _ = _open(fitted, names[:2], names[2])
    if duplicates == "sum":
        cells = _summed(cells)
    v, h = nw.col("v"), nw.col("h")
    of_cell = _factor(cells, "j", labels, columns)
    cells = cells.filter(~v.is_null()).with_columns(h=of_cell)
    rows = cells.group_by("i").agg(r=v.sum(), reach=h.sum())
    rows = rows.select("i", w=nw.col("r") / nw.col("reach"))
    pairs = open_lazy(X)
    own = pairs.collect_schema().names()
    check_there("The frame", names[:2], own)
    if PREDICTED in own:
        raise LabelError(f"The frame has a column {PREDICTED!r}. Rename it.")
    i, j = (f"c{own.index(name)}" for name in names[:2])
    found = with_plain_names(pairs).join(rows, left_on=i, right_on="i", how="left")
    value = nw.col("w") * _factor(pairs, j, labels, columns)
    kept = [nw.col(f"c{k}").alias(name) for k, name in enumerate(own)]
    return found.select(*kept, value.alias(PREDICTED)).to_native()


def _factor(frame: Frame, key: str, labels: Any, columns: Columns) -> nw.Expr:
    """Factor of the column that a key names; NULL for one that is not in the fit."""
    names, h = labels.tolist(), columns.factor.tolist()
    if frame.implementation.is_ibis():  # PostgreSQL and SQLite have no such mapping
        pairs = zip(names, h, strict=True)
        return nw.coalesce(
            *(nw.when(nw.col(key) == name).then(double(x)) for name, x in pairs)
        )
    return nw.col(key).replace_strict(names, h, default=None, return_dtype=nw.Float64)


def _open(X: Any, keys: Any, value: Any) -> tuple[Frame, tuple[Any, Any, Any]]:
    """The cells with keys i and j and value v, NULL where it is missing."""
    frame = open_lazy(X)
    schema = frame.collect_schema()
    are_two = isinstance(keys, list | tuple) and len(keys) == 2
    if not (are_two and all(isinstance(name, str) for name in (*keys, value))):
        raise ParameterError(
            "A lazy long table needs keys=[row, column], the names of two columns, and "
            "value=, that of the values."
        )
    names = (*keys, value)
    check_there("The frame", names, schema.names())
    i, j, v = (schema.names().index(name) for name in names)
    dtype = schema[value]
    if not (dtype.is_numeric() or dtype == nw.Boolean):
        raise NotNumericError(
            f"The column {value!r} holds {dtype}, not numbers. Convert it first."
        )
    plain = with_plain_names(frame)
    return plain.select(
        i=nw.col(f"c{i}"), j=nw.col(f"c{j}"), v=number(f"c{v}", dtype)
    ), names


def _summed(cells: Frame) -> Frame:
    """Each pair once; without a value if none of its rows has one."""
    v = nw.col("v")
    pairs = cells.group_by("i", "j").agg(s=v.sum(), n=v.count())
    return pairs.select("i", "j", v=nw.when(nw.col("n") > 0).then(nw.col("s")))


def _columns(cells: Frame) -> Frame:
    """Each column with its code, sum, least cell, and what is wrong in it."""
    v = nw.col("v")
    faults = {
        "neg": (v < double(0.0)) & (v >= double(-MAX)),
        "inf": (v > double(MAX)) | (v < double(-MAX)),
        "lost": nw.col("i").is_null(),
    }
    marks = {name: nw.when(fault).then(whole(1)) for name, fault in faults.items()}
    found = (
        cells.with_columns(**marks)
        .group_by("j")
        .agg(s=v.sum(), low=v.min(), **{name: nw.col(name).sum() for name in marks})
    )
    return found.with_row_index("code", order_by="j")


def _checked(found: Any, labels: Any, names: tuple[Any, Any, Any]) -> tuple[Any, bool]:
    """Sums of the columns, and whether a cell is zero; raise for what is wrong."""
    lost = int(integers(found, "lost").sum())
    if found["j"].null_count or lost:
        key = names[1] if found["j"].null_count else names[0]
        raise LabelError(
            f"The key {key!r} is missing in some rows. Every row of a long table needs "
            "all keys: drop these rows, or name the key."
        )
    check_counts(
        labels.tolist(),
        integers(found, "inf").tolist(),
        integers(found, "neg").tolist(),
    )
    sums = floats(found, "s")
    if not np.isfinite(sums.sum()):
        raise NotRepresentableError(
            "The sums of X are above the largest float64 (1.8e308). Divide the values "
            "by a power of ten first."
        )
    low = [x for x in found["low"].to_pylist() if x is not None]
    return sums, min(low, default=0.0) == 0.0


def _lines(cells: Frame, columns: Frame, m: int, has_zeros: bool) -> Frame:
    """One line per pattern: keys k* and p*, rows n, their sum r, cells of a row."""
    code, v, bits = nw.col("code"), nw.col("v"), {}
    for first in range(0, m, BITS):
        # Powers of two are exact; a chain of CASE would run on every cell.
        bit = (double(2.0) ** (code - first)).cast(nw.Int64)
        is_here = (code >= first) & (code < first + BITS)
        bits[f"k{first}"] = nw.when(is_here).then(bit).otherwise(whole(0))
    cells = cells.join(columns.select("j", **bits), on="j").with_columns(
        nw.when(~v.is_null()).then(nw.col(key)).otherwise(whole(0)).alias(key)
        for key in bits
    )
    keys = list(bits)
    if has_zeros:
        above = {
            "p" + key[1:]: nw.when(v > double(0.0))
            .then(nw.col(key))
            .otherwise(whole(0))
            for key in keys
        }
        cells, keys = cells.with_columns(**above), [*keys, *above]
    rows = cells.group_by("i").agg(
        r=v.sum(), cells=v.count(), **{key: nw.col(key).sum() for key in keys}
    )
    rows = rows.with_columns(nw.col(key).cast(nw.Int64) for key in keys)
    return rows.group_by(*keys).agg(
        n=nw.len(), r=nw.col("r").sum(), most=nw.col("cells").max()
    )


def _patterns(lines: Any, col_sums: Any, has_zeros: bool) -> Patterns:
    m, counts = len(col_sums), integers(lines, "n")
    if len(counts) > MOST_LINES:
        raise TableTooLargeError(
            f"X has more than {MOST_LINES:,} patterns of holes, which are not brought "
            "here. Collect it first."
        )
    observed = bits_of(lines, "k", m)
    if (observed.sum(axis=1) != integers(lines, "most")).any():
        raise LabelError(
            "Some pairs of keys occur twice. A cell has one value: pass ",
            Option("duplicates", "sum"),
            " to add them up, or drop the rows that repeat others.",
        )
    positive = bits_of(lines, "p", m) if has_zeros else observed
    return Patterns(
        m,
        keys=pack_bits(observed),
        positive=pack_bits(positive) if has_zeros else None,
        row_margin=floats(lines, "r"),
        col_margin=col_sums,
        counts=counts,
        zero_counts=np.where(positive.any(axis=1), 0, counts),
    )
