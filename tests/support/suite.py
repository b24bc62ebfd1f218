"""What runs when, and what must be there."""

from __future__ import annotations

import importlib
import os
from collections.abc import Collection, Iterable
from typing import Any, NoReturn

import pytest

#: Engines of every run; the others repeat the same tests at night.
DAILY_ENGINES = {"polars", "DuckDB", "SQLite"}
#: Other names of engines in tests.
DIALECTS = {
    "duckdb": "DuckDB",
    "sqlite": "SQLite",
    "postgres": "PostgreSQL",
    "pyspark": "Spark",
}


def daily(values: Iterable[Any], chosen: Collection[Any]) -> list[Any]:
    """Parameters of a test: those chosen in every run, the others at night."""
    return [
        pytest.param(value, marks=() if value in chosen else pytest.mark.nightly)
        for value in values
    ]


def missing(reason: str) -> NoReturn:
    """Skip a test that lacks an engine or a browser; where they must be, fail it."""
    if os.environ.get("A1GM_REQUIRE"):
        pytest.fail(f"{reason}, and A1GM_REQUIRE is set")
    pytest.skip(reason)


def need(module: str) -> Any:
    """Import a package of an engine or of the browser."""
    try:
        return importlib.import_module(module)
    except ImportError:
        missing(f"{module} is not installed")
