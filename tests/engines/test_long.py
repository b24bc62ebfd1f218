"""Long tables that lie elsewhere: their columns are collected, and fitted in memory."""

from __future__ import annotations

import warnings

import numpy as np
import polars as pl
import pyarrow as pa
import pytest
from engines.test_lazy import FILLS, quiet, random_table, same, wide
from support.lazy import ENGINES

import a1gm
from a1gm.exceptions import (
    EngineError,
    LabelError,
    NegativeValuesError,
    NotNumericError,
    ParameterError,
    UndeterminedWarning,
)

pytestmark = pytest.mark.filterwarnings(  # of Ibis, at every query
    "ignore:fetch_arrow_table:DeprecationWarning",
    "ignore:The 'future.infer_string' option",
    "ignore:PySpark does not yet fully support pandas:FutureWarning",
)
KEYS, VALUE = ["shop", "day"], "sales"
APART = np.array([[0.0, 5.0, np.nan], [5.0, np.nan, np.nan], [np.nan, np.nan, 2.0]])


def long_table(X: np.ndarray) -> pa.Table:
    """Every cell, those that are missing as NULL; and a column that is not used."""
    i, j = np.indices(X.shape).reshape(2, -1)
    values = pa.array(X.ravel(), from_pandas=True)
    days = [f"2024-01-{k + 1:02}" for k in j]  # in one order, whatever the engine's
    return pa.table(
        {"note": ["x"] * X.size, "shop": i.tolist(), "day": days, "sales": values}
    )


def messages(call) -> tuple[object, list[str]]:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", a1gm.exceptions.A1gmWarning)
        found = call()
    own = [w for w in caught if issubclass(w.category, a1gm.exceptions.A1gmWarning)]
    return found, [str(w.message) for w in own]


def in_order(frame) -> list[tuple[object, ...]]:
    table = frame.to_arrow() if isinstance(frame, pl.DataFrame) else frame
    return sorted(tuple(row.values()) for row in table.to_pylist())


def check_same(engine: str, X: np.ndarray) -> a1gm.RankOneFit:
    """Compare answers with those in memory; return the fit."""
    give, _ = ENGINES[engine]
    table = long_table(X)
    given = give(table)
    memory, right = messages(lambda: a1gm.fit_long(table, KEYS, VALUE))
    fit, told = messages(lambda: a1gm.fit_long(given, KEYS, VALUE))
    assert told == right
    assert fit.shape == memory.shape
    assert list(fit.col_labels) == list(memory.col_labels)
    same(fit.col_factor, memory.col_factor, FILLS)
    same(fit.row_factor, memory.row_factor, FILLS)
    same(fit.divergence, memory.divergence, FILLS)
    assert in_order(quiet(fit.fill_long)) == in_order(quiet(memory.fill_long))
    same(quiet(lambda: fit.predict(given)), memory.predict(table), FILLS)
    return fit


def test_answers_are_those_of_memory(engine, tmp_path):
    """Seen: a divergence of NaN, and "loaded or unpickled" of a fit just made."""
    rng = np.random.default_rng(8)
    n = {"Spark": 0, "SQLFrame": 1}.get(engine, 4)
    for X in (APART, *(random_table(rng)[0] for _ in range(n))):
        check_same(engine, X)
    give, _ = ENGINES[engine]
    fit, table = check_same(engine, wide(5)), long_table(wide(5))
    fit.save(tmp_path / "long.a1gm")
    again = a1gm.load(tmp_path / "long.a1gm")
    same(again.predict(give(table)), fit.predict(table), FILLS)
    mine = fit.uncertainty()
    right = a1gm.fit_long(table, KEYS, VALUE).uncertainty()
    same(mine.dispersion, right.dispersion, FILLS)
    same(mine.totals("column").se, right.totals("column").se, FILLS)


@pytest.mark.parametrize("database", ["polars", "DuckDB"])
def test_options_are_those_of_memory(database):
    give, _ = ENGINES[database]
    table = long_table(wide(4))
    months = pa.array([k % 3 for k in range(table.num_rows)])
    weights = pa.array([k % 5 + 1.0 for k in range(table.num_rows)])
    table = table.append_column("month", months).append_column("E", weights)
    given = give(table)
    right = a1gm.fit_long(table, KEYS, VALUE, exposure="E")
    fit = a1gm.fit_long(given, KEYS, VALUE, exposure="E")
    same(fit.col_factor, right.col_factor, FILLS)
    pair = [("shop", "month"), "day"]
    right = quiet(lambda: a1gm.fit_long(table, pair, VALUE))
    fit = quiet(lambda: a1gm.fit_long(given, pair, VALUE))
    same(fit.col_factor, right.col_factor, FILLS)
    modes = [*KEYS, "month"]
    many = quiet(lambda: a1gm.fit_long(given, modes, VALUE))
    assert many.shape == (40, 4, 3)
    groups = quiet(lambda: a1gm.fit_groups(given, by="month", keys=KEYS, value=VALUE))
    assert len(groups) == 3
    twice = give(pa.concat_tables([table, table.slice(0, 6)]))
    with pytest.raises(LabelError, match=r"occurs twice.*duplicates='sum'"):
        a1gm.fit_long(twice, KEYS, VALUE)
    assert a1gm.fit_long(twice, KEYS, VALUE, duplicates="sum").shape == (40, 4)


@pytest.mark.parametrize("database", ["polars", "DuckDB"])
def test_what_is_refused(database):
    give, _ = ENGINES[database]
    table = long_table(wide(3))
    given = give(table)
    with pytest.raises(ParameterError, match="has no column 'nope'"):
        a1gm.fit_long(given, ["shop", "nope"], VALUE)
    with pytest.raises(NotNumericError):
        a1gm.fit_long(given, ["shop", "note"], "day")
    lost = table.set_column(1, "shop", pa.array([None, *table["shop"].to_pylist()[1:]]))
    with pytest.raises(LabelError, match="missing"):
        a1gm.fit_long(give(lost), KEYS, VALUE)
    X = wide(3)
    X[4, 2] = -1.0
    with pytest.raises(NegativeValuesError, match=r"sales\[4, '2024-01-03'\]"):
        a1gm.fit_long(give(long_table(X)), KEYS, VALUE)
    fit = a1gm.fit_long(given, KEYS, VALUE)
    pairs = give(pa.table({"day": ["2024-01-02", "nope"], "shop": [3, 999]}))
    with pytest.warns(UndeterminedWarning):
        found = fit.predict(pairs)
    same(found, [fit.predict(3, "2024-01-02"), np.nan], FILLS)


def test_a_query_that_fails_is_the_message_of_the_engine():
    lazy = pl.from_arrow(long_table(wide(3))).lazy()
    broken = lazy.map_batches(lambda _: 1 / 0)
    with pytest.raises(EngineError, match=r"reads the cells of a long table.*zero"):
        a1gm.fit_long(broken, KEYS, VALUE)
