"""Queries as text, for databases that other programs talk to.

Ibis writes them in the dialect of the database, of a table that need not exist here.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from a1gm._base.optional import require
from a1gm._base.words import counted
from a1gm._fit.place import Columns
from a1gm._observe.patterns import Patterns
from a1gm._rows.columns import ColumnOptions
from a1gm.engines.count import wide_patterns
from a1gm.engines.place import LazyTable
from a1gm.engines.query import BITS, FENCED, cells_of, wide_lines
from a1gm.exceptions import DataError, LabelError, ParameterError


def fill_query(
    columns: Columns, names: Any, table: str, dialect: str, others: Mapping[str, str]
) -> str:
    """The query that returns a table with its holes filled.

    ``others`` are the types of its columns that are not fitted; they come first.
    """
    opened = _table(table, names, dialect, others)
    return _text(opened.filled(columns), dialect)


def lines_query(table: str, names: Any, dialect: str) -> str:
    """The query that counts the patterns of a table, for `patterns_of_rows`."""
    opened = _table(table, names, dialect, {})
    cells = cells_of(opened.frame, opened.places, may_be_nan=True)
    lines = wide_lines(cells, len(opened.names), signed=False)
    return _text(lines.to_native(), dialect)


def patterns_of_rows(rows: Iterable[Any], names: list[str]) -> Patterns:
    """The patterns that the rows of `lines_query` stand for, from any cursor."""
    pa = require("pyarrow", "sql", "PatternTable.from_rows")
    m = len(names)
    keys = [f"k{first}" for first in range(0, m, BITS)]
    sums = [f"{letter}{j}" for letter in "sa" for j in range(m)]
    fields = [*keys, "n", "zero", *sums]
    found = [tuple(row) for row in rows]
    for row in found:
        if len(row) != len(fields):
            raise DataError(
                f"A row has {counted(len(row), 'value')}, and the query of "
                f"PatternTable.sql for {counted(m, 'column')} returns {len(fields)}. "
                "Pass its rows as they are, and the columns that it was made for."
            )
    lines = {
        name: [None if row[k] is None else kind(row[k]) for row in found]
        for k, name in enumerate(fields)
        for kind in (float if name in sums else int,)
    }
    if not found:
        raise DataError("Found 0 rows while a minimum of 1 is required.")
    kinds = {name: pa.float64() if name in sums else pa.int64() for name in fields}
    table = pa.table({name: pa.array(lines[name], kinds[name]) for name in fields})
    return wide_patterns(table, tuple(names))


def _table(table: str, names: Any, dialect: str, others: Mapping[str, str]) -> Any:
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
    schema = {**others, **dict.fromkeys(names, "float64")}
    options = ColumnOptions(columns=list(names))
    unbound = ibis.table(schema, name=table)
    return LazyTable.of(unbound, options, is_fenced=dialect in FENCED)


def _text(table: Any, dialect: str) -> str:
    ibis = require("ibis", "sql", "A query as text")
    try:
        if dialect == "pyspark":  # its options are there once it is loaded
            _ = ibis.pyspark
        return str(ibis.to_sql(table, dialect=dialect))
    except (AttributeError, ValueError) as error:
        raise ParameterError(
            f"dialect={dialect!r} is not one that Ibis writes: it is the name of a "
            'database, such as "postgres", "duckdb", "sqlite" or "snowflake".'
        ) from error
