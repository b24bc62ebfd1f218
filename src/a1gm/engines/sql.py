"""Queries as text, for databases that other programs talk to.

Ibis writes them in the dialect of the database, of a table that need not exist here.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from a1gm._base.optional import require
from a1gm._base.words import counted
from a1gm._fit.place import Columns
from a1gm._observe.patterns import Patterns
from a1gm._rows.columns import ColumnOptions
from a1gm.engines.count import BITS, pattern_lines, patterns_of_sums
from a1gm.engines.place import FENCED, LazyTable
from a1gm.exceptions import DataError, LabelError, ParameterError

#: Those in which Ibis can write these queries; others have no infinite number.
DIALECTS = (
    "athena", "bigquery", "clickhouse", "databricks", "datafusion", "duckdb", "impala",
    "materialize", "oracle", "postgres", "pyspark", "risingwave", "snowflake", "sqlite",
    "trino",
)  # fmt: skip


def fill_query(
    columns: Columns, names: Any, table: str, dialect: str, others: Mapping[str, str]
) -> str:
    """The query that returns a table with its holes filled.

    ``others`` are the types of its columns that are not fitted; they come first.
    """
    opened = _table(table, names, dialect, others)
    return _text(opened.fill(columns), dialect)


def lines_query(table: str, names: Any, dialect: str) -> str:
    """The query that counts the patterns of a table, for `patterns_of_rows`."""
    cells = _table(table, names, dialect, {}).cells()
    lines = pattern_lines(cells, len(names), signed=False)
    return _text(lines.to_native(), dialect)


def patterns_of_rows(rows: Iterable[Any], names: list[str]) -> Patterns:
    """The patterns that the rows of `lines_query` stand for, from any cursor."""
    pa = require("pyarrow", "sql", "PatternTable.from_rows")
    m = len(names)
    whole = [*(f"k{first}" for first in range(0, m, BITS)), "n", "zero"]
    sums = [f"{letter}{j}" for letter in "sa" for j in range(m)]
    kinds = dict.fromkeys(whole, int) | dict.fromkeys(sums, float)
    found = [tuple(row) for row in rows]
    if not found:
        raise DataError("Found 0 rows while a minimum of 1 is required.")
    for row in found:
        if len(row) != len(kinds):
            raise DataError(
                f"A row has {counted(len(row), 'value')}, and the query of "
                f"PatternTable.sql for {counted(m, 'column')} returns {len(kinds)}. "
                "Pass its rows as they are, and the columns that it was made for."
            )
    lines = {
        name: [None if x is None else kind(x) for x in values]
        for (name, kind), values in zip(
            kinds.items(), zip(*found, strict=True), strict=True
        )
    }
    types = {int: pa.int64(), float: pa.float64()}
    schema = pa.schema([(name, types[kind]) for name, kind in kinds.items()])
    seen, low = patterns_of_sums(pa.table(lines, schema=schema), m)
    bad = np.flatnonzero((low < 0.0) | ~np.isfinite(seen.sums).all(axis=0))
    if len(bad):
        columns = ", ".join(repr(names[j]) for j in bad[:8])
        raise DataError(
            f"The table has negative values in {columns}, or values that do not add up "
            "in float64. Mark them as NULL.",
            column=int(bad[0]),
        )
    return seen


def _table(
    table: str, names: Any, dialect: str, others: Mapping[str, str]
) -> LazyTable:
    if dialect not in DIALECTS:
        raise ParameterError(
            f"dialect={dialect!r} is not supported. The dialects are "
            f"{', '.join(DIALECTS)}."
        )
    ibis = require("ibis", "sql", "A query as text")
    if names is None or not all(isinstance(name, str) for name in names):
        raise ParameterError(
            "A query names its columns, and this table has no names. Fit a frame, "
            "whose columns have names."
        )
    repeated = [name for name in others if name in set(names)]
    if repeated:
        raise LabelError(
            f"{repeated} are columns of the fit; others= are further ones."
        )
    options = ColumnOptions(columns=list(names))
    try:
        schema = {**others, **dict.fromkeys(names, "float64")}
        unbound = ibis.table(schema, name=table)
    except (TypeError, ibis.common.annotations.ValidationError) as error:
        raise ParameterError(
            f"others={others!r} is not a mapping of names to types of Ibis, such as "
            '{"shop": "string", "id": "int64"}.'
        ) from error
    return LazyTable.of(unbound, options, is_fenced=dialect in FENCED)


def _text(table: Any, dialect: str) -> str:
    ibis = require("ibis", "sql", "A query as text")
    if dialect == "pyspark":  # its options are there once it is loaded
        _ = ibis.pyspark
    return str(ibis.to_sql(table, dialect=dialect))
