"""Long tables that lie elsewhere, on every engine, against those in memory."""

from __future__ import annotations

import pickle

import numpy as np
import pyarrow as pa
import pytest
from engines.test_lazy import FACTORS, FILLS, quiet, random_table, same, wide
from support.lazy import ENGINES

import a1gm
from a1gm.exceptions import (
    DataError,
    InfiniteValuesError,
    LabelError,
    NegativeValuesError,
    NotNumericError,
    ParameterError,
    TableTooLargeError,
)

pytestmark = pytest.mark.filterwarnings(  # of Ibis, at every query
    "ignore:fetch_arrow_table:DeprecationWarning",
    "ignore:The 'future.infer_string' option",
)
KEYS, VALUE = ["shop", "day"], "sales"
N_PREDICTED = {"polars": 60, "DuckDB": 30, "Spark": 0}


def long_table(X: np.ndarray, *, text: bool = True) -> pa.Table:
    """Every cell, those that are missing as NULL."""
    i, j = np.indices(X.shape).reshape(2, -1)
    days = [f"d{k:03}" for k in j] if text else j.tolist()
    values = pa.array(X.ravel(), from_pandas=True)
    return pa.table({"shop": i.tolist(), "day": days, "sales": values})


def check_same(engine: str, X: np.ndarray, *, text: bool = True) -> None:
    give, _ = ENGINES[engine]
    table = long_table(X, text=text)
    memory = quiet(lambda: a1gm.fit_long(table, KEYS, VALUE))
    fit = quiet(lambda: a1gm.fit_long(give(table), KEYS, VALUE))
    assert fit.shape == memory.shape
    assert list(fit.col_labels) == list(memory.col_labels)
    same(fit.col_factor, memory.col_factor, FACTORS)
    assert fit.n_undetermined == memory.n_undetermined
    assert fit.n_blocks == memory.n_blocks


def test_tables(engine):
    check_same(engine, wide(5))
    check_same(engine, wide(5), text=False)
    if engine not in ("Spark", "SQLFrame"):
        check_same(engine, wide(130, 20))
    rng = np.random.default_rng(8)
    for _ in range({"polars": 60, "DuckDB": 60, "Spark": 1}.get(engine, 5)):
        check_same(engine, random_table(rng)[0])


def test_predict_is_a_join(engine):
    give, take = ENGINES[engine]
    table = long_table(wide(6))
    memory, given = a1gm.fit_long(table, KEYS, VALUE), give(table)
    fit = a1gm.fit_long(given, KEYS, VALUE)
    found = take(fit.predict(given)).sort_by(
        [("shop", "ascending"), ("day", "ascending")]
    )
    assert found.column_names == ["shop", "day", "sales", "predicted"]
    same(found["predicted"].to_numpy(), memory.predict(table), FILLS)
    pairs = pa.table({"day": ["d001", "nope", "d002"], "shop": [3, 3, 999]})
    found = take(fit.predict(give(pairs))).sort_by("day")
    assert found["predicted"].to_pylist()[1:] == [None, None]
    same(found["predicted"][0].as_py(), memory.predict(3, "d001"), FILLS)


def test_predict_of_several_blocks(engine):
    give, take = ENGINES[engine]
    rng = np.random.default_rng(11)
    tables = [random_table(rng)[0] for _ in range(N_PREDICTED.get(engine, 3))]
    chain = np.array([[0.0, 5.0, np.nan], [5.0, np.nan, np.nan], [np.nan, 0.0, 2.0]])
    for X in (chain, *tables):
        table = long_table(X)
        memory = quiet(lambda: a1gm.fit_long(table, KEYS, VALUE))  # noqa: B023
        given = give(table)
        fit = quiet(lambda: a1gm.fit_long(given, KEYS, VALUE))  # noqa: B023
        found = take(fit.predict(given)).sort_by(
            [("shop", "ascending"), ("day", "ascending")]
        )
        values = found["predicted"].to_numpy().astype(float)
        same(values, memory.predict(table), FILLS)


def test_pairs_that_are_there_twice(engine):
    give, take = ENGINES[engine]
    table = long_table(wide(4))
    twice = pa.concat_tables([table, table.slice(0, 6)])
    with pytest.raises(LabelError, match=r"occur twice.*duplicates='sum'"):
        a1gm.fit_long(give(twice), KEYS, VALUE)
    memory = a1gm.fit_long(twice, KEYS, VALUE, duplicates="sum")
    fit = a1gm.fit_long(give(twice), KEYS, VALUE, duplicates="sum")
    same(fit.col_factor, memory.col_factor, FACTORS)
    found = take(fit.predict(give(table)))
    found = found.sort_by([("shop", "ascending"), ("day", "ascending")])
    same(found["predicted"].to_numpy(), memory.predict(table), FILLS)


@pytest.mark.parametrize("database", ["DuckDB", "polars"])
def test_what_is_refused(database, monkeypatch):
    give, _ = ENGINES[database]
    table = long_table(wide(3))
    given = give(table)
    for options in (
        {"weights": "sales"},
        {"exposure": "sales"},
        {"negatives": "allow"},
    ):
        with pytest.raises(ParameterError, match="is for long tables in memory"):
            a1gm.fit_long(given, KEYS, VALUE, **options)
    for keys in (["shop"], [("shop", "day"), "day"], None):
        with pytest.raises(ParameterError, match=r"keys=\[row, column\]"):
            a1gm.fit_long(given, keys, VALUE)
    with pytest.raises(ParameterError, match="two keys, got 3"):
        a1gm.fit_long(given, ["shop", "day", "sales"], VALUE)
    with pytest.raises((LabelError, ParameterError), match="nope"):
        a1gm.fit_long(given, ["shop", "nope"], VALUE)
    with pytest.raises(NotNumericError, match="'day' holds String, not numbers"):
        a1gm.fit_long(given, ["shop", "sales"], "day")
    with pytest.raises(DataError, match="0 rows"):
        a1gm.fit_long(give(table.slice(0, 0)), KEYS, VALUE)
    for place in (0, 1):
        keys = table.column(place).to_pylist()
        keys[4] = None
        lost = table.set_column(place, KEYS[place], pa.array(keys))
        with pytest.raises(LabelError, match=f"The key '{KEYS[place]}' is missing"):
            a1gm.fit_long(give(lost), KEYS, VALUE)
    for bad, error in ((-1.0, NegativeValuesError), (np.inf, InfiniteValuesError)):
        X = wide(3)
        X[4, 2] = X[5, 2] = X[7, 1] = bad
        with pytest.raises(error, match="'d001' has 1, 'd002' has 2"):
            a1gm.fit_long(give(long_table(X)), KEYS, VALUE)
    fit = a1gm.fit_long(given, KEYS, VALUE)
    for other in (
        pickle.loads(pickle.dumps(fit)),
        a1gm.fit_long(table, KEYS, VALUE),
    ):
        with pytest.raises(ParameterError, match="collect the pairs first"):
            other.predict(given)
    monkeypatch.setattr("a1gm.engines.long.MOST_BLOCKS", 1)
    apart = give(long_table(np.array([[1.0, np.nan], [np.nan, 2.0]])))
    blocks = quiet(lambda: a1gm.fit_long(apart, KEYS, VALUE))
    with pytest.raises(ParameterError, match=r"has 2 blocks, and .* takes 1"):
        blocks.predict(apart)
    monkeypatch.setattr("a1gm.engines.long.MOST_COLUMNS", 2)
    with pytest.raises(TableTooLargeError, match="3 columns, more than 2"):
        a1gm.fit_long(given, KEYS, VALUE)


def test_nan_is_missing(engine):
    if engine == "SQLite":
        pytest.skip("SQLite has no NaN")
    give, _ = ENGINES[engine]
    X = wide(3)
    table = long_table(X).set_column(2, "sales", pa.array(X.ravel()))
    memory = a1gm.fit_long(table, KEYS, VALUE)
    fit = a1gm.fit_long(give(table), KEYS, VALUE)
    same(fit.col_factor, memory.col_factor, FACTORS)
