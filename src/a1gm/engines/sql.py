"""Queries as text, for databases that other programs talk to.

Ibis writes them in the dialect of the database, of a table that need not exist here.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from a1gm._base.optional import require
from a1gm._fit.place import Columns
from a1gm._rows.columns import ColumnOptions
from a1gm.engines.place import FENCED, LazyTable
from a1gm.exceptions import LabelError, ParameterError

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
