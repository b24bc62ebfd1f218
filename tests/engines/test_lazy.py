"""Fits and fills of lazy frames, on every engine, against the same table in memory."""

from __future__ import annotations

import logging
import pickle
import warnings
from decimal import Decimal

import numpy as np
import polars as pl
import pyarrow as pa
import pytest
from support.lazy import ENGINES, TYPES, connected, duck, ibis_table, spark
from ways.tables import TABLES

import a1gm
from a1gm.engines import count
from a1gm.exceptions import (
    A1gmWarning,
    DataError,
    DataHintWarning,
    EngineError,
    InfiniteValuesError,
    LabelError,
    NegativeValuesError,
    NotNumericError,
    NotRepresentableError,
    ParameterError,
    TableTooLargeError,
)

pytestmark = pytest.mark.filterwarnings(  # of Ibis, at every query
    "ignore:fetch_arrow_table:DeprecationWarning",
    "ignore:The 'future.infer_string' option",
)
nan = np.nan
SOME = "random holes", "two blocks", "zero chain", "empty lines"  # plans take seconds
FACTORS, FILLS = 1e-11, 1e-9  # sums of a parallel engine differ in the last bits
N_RANDOM = {"polars": 300, "DuckDB": 100, "Spark": 2, "SQLFrame": 4}


def arrow(X: np.ndarray, names: list[str] | None = None) -> pa.Table:
    names = names or [f"c{j}" for j in range(X.shape[1])]
    columns = [pa.array(column, pa.float64(), from_pandas=True) for column in X.T]
    return pa.table(columns, names=names)


def cells(table: pa.Table) -> np.ndarray:
    columns = [
        [nan if x is None else float(x) for x in column.to_pylist()]
        for column in table.columns
    ]
    return np.array(columns).T.reshape(table.num_rows, table.num_columns)


def quiet(call):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", A1gmWarning)
        return call()


def numbered(labels: np.ndarray) -> list[int]:
    """Blocks by their first columns: engines have no first row."""
    seen: dict[int, int] = {-1: -1}
    return [seen.setdefault(int(label), len(seen) - 1) for label in labels]


def same(found, right, rtol):
    np.testing.assert_allclose(found, right, rtol=rtol, atol=rtol * 1e-3)


def check_same(engine: str, X: np.ndarray, *new: np.ndarray, names=None) -> None:
    """Compare all answers for a table and for new rows with those in memory."""
    give, take = ENGINES[engine]
    table = arrow(X, names)
    memory, lazy = quiet(lambda: a1gm.fit(table)), give(table)
    fit = quiet(lambda: a1gm.fit(lazy))
    same(fit.col_factor, memory.col_factor, FACTORS)
    assert fit.shape == memory.shape
    assert list(fit.col_labels) == table.column_names
    assert fit.n_undetermined == memory.n_undetermined
    assert fit.n_blocks == memory.n_blocks
    assert numbered(fit.col_block) == numbered(memory.col_block)
    assert fit.pattern.n_missing == memory.pattern.n_missing
    for rows in (X, *new):
        given = lazy if rows is X else give(arrow(rows, names))
        filled = take(fit.impute(given))
        assert filled.column_names == table.column_names
        right = quiet(lambda rows=rows: memory.impute(rows))
        same(cells(filled), right, FILLS)
        right = quiet(lambda rows=rows: memory.transform(rows))
        found = take(fit.transform(given))
        assert found.column_names == ["row_factor"]
        same(cells(found)[:, 0], right, FILLS)


# ------------------------------------------------------------------------ every engine
def test_tables(engine):
    slow = engine in ("Spark", "SQLFrame")
    for name in SOME if slow else TABLES:
        check_same(engine, TABLES[name])


def wide(m: int, n: int = 40) -> np.ndarray:
    rng = np.random.default_rng(m)
    X = rng.gamma(2.0, size=(n, 1)) * rng.gamma(2.0, size=m) + 0.1
    X[rng.random((n, m)) < 0.1] = nan
    X[0] = 1.0
    return X


@pytest.mark.daily("polars", "DuckDB")
@pytest.mark.parametrize("m", [1, 16, 17, 62, 63, 130])
def test_widths(engine, m):
    slow = "Spark", "SQLFrame", "Ibis DuckDB"
    if engine in slow and m > 17:
        pytest.skip("takes half a minute to plan")
    check_same(engine, wide(m))


def random_table(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """A small table with zeros and blocks, and new rows that touch any of them."""
    n, m = rng.integers(1, 9), rng.integers(1, 7)

    def some(n: int) -> np.ndarray:
        X = np.round(rng.gamma(1.0, 3.0, size=(n, m)) + 0.1, 2)
        X[rng.random((n, m)) < rng.choice([0.0, 0.2, 0.5])] = 0.0
        X[rng.random((n, m)) < rng.choice([0.2, 0.5, 0.7])] = nan
        X[0, 0] = 1.0
        return X

    return some(n), some(6)


@pytest.mark.daily("polars")
def test_random_tables_with_zeros_and_blocks(engine):
    rng = np.random.default_rng(27)
    for _ in range(N_RANDOM.get(engine, 12)):
        X, new = random_table(rng)
        check_same(engine, X, new)


NAMES = [
    'q"x', "e'f", "a b", "größe", "Sum", "x0", "k0", "select", "a.b", "b`c", "100%",
    "{x}", "line\nend", "n" * 60, "w0", "zero", "n",
]  # fmt: skip


def test_names(engine):
    if engine == "SQLFrame":
        pytest.skip("SQLFrame does not quote such names")
    check_same(engine, wide(len(NAMES)), names=NAMES)


def test_other_columns_are_untouched(engine):
    give, take = ENGINES[engine]
    X = TABLES["random holes"]
    table = arrow(X).append_column("note", pa.array([None, *"abcdefghijk"]))
    table = table.add_column(0, "customer_id", pa.array(range(100, 112)))
    with pytest.warns(DataHintWarning, match="'customer_id' as row labels and 'note'"):
        fit = a1gm.fit(give(table))
    assert list(fit.col_labels) == table.column_names[1:-1]
    given = give(table)
    filled = take(fit.impute(given))
    assert filled.column_names == table.column_names
    for name in ("customer_id", "note"):
        assert filled[name].to_pylist() == table[name].to_pylist()
    same(cells(filled.select(fit.col_labels)), a1gm.fit(X).impute(X), FILLS)
    found = take(fit.transform(given))
    assert found.column_names == ["customer_id", "note", "row_factor"]
    assert found["note"].to_pylist() == table["note"].to_pylist()
    chosen = a1gm.fit(given, columns=["c2", "c1"])
    assert list(chosen.col_labels) == ["c1", "c2"]
    assert quiet(lambda: a1gm.fit(given, exclude="c3")).shape == (12, 5)
    again = take(fit.impute(give(table.select(table.column_names[::-1]))))
    assert again.column_names == table.column_names[::-1]
    same(cells(again.select(fit.col_labels)), a1gm.fit(X).impute(X), FILLS)


def test_types(engine):
    give, take = ENGINES[engine]
    X = np.array([[1, 2, 1, 4], [2, nan, nan, nan], [3, 6, 0, nan], [4, 1, 1, 3]])
    table = pa.table(
        {
            "whole": pa.array([1, 2, 3, 4], pa.int64()),
            "float": pa.array([2, None, 6, 1], pa.float32()),
            "bool": pa.array([True, None, False, True]),
            "last": pa.array([4, None, None, 3], pa.int32()),
        }
    )
    if engine not in ("SQLite", "SQLFrame"):
        exact = [None if x is None else Decimal(x) for x in (4, None, None, 3)]
        table = table.set_column(3, "last", pa.array(exact, pa.decimal128(38, 10)))
    given = give(table)
    fit = a1gm.fit(given, columns=table.column_names)
    same(fit.col_factor, a1gm.fit(X).col_factor, FACTORS)
    filled = take(fit.impute(given))
    same(cells(filled), a1gm.fit(X).impute(X), 1e-6)
    kinds = [str(field.type) for field in filled.schema]
    is_single = str(TYPES["float"].get(engine.lower())) != "REAL"
    assert kinds[::2] == ["double", "double"]
    assert kinds[1] == ("float" if is_single and engine != "SQLite" else kinds[1])


@pytest.mark.parametrize("database", ["polars", "DuckDB"])
def test_integers_of_every_width(database):
    give, take = ENGINES[database]
    X = np.array([[1, 2, 3, 7], [2, nan, 6, nan], [3, 6, nan, 9], [200, 90, 40, nan]])
    table = arrow(X, ["huge", "large", "small", "first"])
    if database == "DuckDB":
        kinds = "huge::HUGEINT, large::UBIGINT, small::UTINYINT, first::UHUGEINT"
        given = give(table).project(kinds)
        given = given.project('#1 AS huge, #2 AS large, #3 AS small, #4 AS "first"')
    else:
        kinds = [pl.Int128, pl.UInt64, pl.UInt8, pl.UInt16]
        given = give(table).cast(dict(zip(table.column_names, kinds, strict=True)))
    memory, fit = a1gm.fit(X), a1gm.fit(given, columns=table.column_names)
    same(fit.col_factor, memory.col_factor, FACTORS)
    same(cells(take(fit.impute(given))), memory.impute(X), FILLS)


def test_columns_without_a_number(engine):
    if engine == "SQLite":
        pytest.skip("SQLite has no NaN")
    give, take = ENGINES[engine]
    table = pa.table({"a": [1.0, 2.0], "b": [nan, nan], "c": pa.nulls(2, "f8")})
    given = give(table)
    memory, fit = (quiet(lambda x=x: a1gm.fit(x)) for x in (table, given))
    same(fit.col_factor, memory.col_factor, FACTORS)
    assert fit.n_undetermined == memory.n_undetermined == 4
    filled = cells(take(fit.impute(given)))
    np.testing.assert_array_equal(filled, [[1.0, nan, nan], [2.0, nan, nan]])


def test_nan_beside_null(engine):
    if engine == "SQLite":
        pytest.skip("SQLite has no NaN")
    give, take = ENGINES[engine]
    table = pa.table({"a": [1.0, 2.0, nan, 4.0], "b": [2.0, None, 6.0, 8.0]})
    single = table.cast(pa.schema([("a", pa.float32()), ("b", pa.float32())]))
    for given in (table, single):
        lazy = give(given)
        fit = a1gm.fit(lazy)
        same(fit.col_factor, [1 / 3, 2 / 3], FACTORS)
        right = [[1.0, 2.0], [2.0, 4.0], [3.0, 6.0], [4.0, 8.0]]
        same(cells(take(fit.impute(lazy))), right, 1e-6)


@pytest.mark.parametrize("bad", [-1.0, -np.inf, np.inf])
def test_bad_cells_are_refused_by_column_and_count(engine, bad):
    X = wide(4, 9)
    X[3, 2] = X[5, 2] = X[7, 3] = bad
    give, take = ENGINES[engine]
    error = NegativeValuesError if bad == -1.0 else InfiniteValuesError
    words = "'c2'.*" if engine == "polars" else r"'c2' has 2, 'c3' has 1"
    with pytest.raises(error, match=words) as caught:
        a1gm.fit(give(arrow(X)))
    assert caught.value.count == 3
    fit = a1gm.fit(wide(4, 9))
    rows = np.array([[bad, nan, 1.0, 1.0], [1.0, nan, 1.0, 1.0]])
    given = give(arrow(rows))
    with pytest.raises(DataError, match="values in data, in 1 row of X"):
        fit.divergence_of(given)
    filled = fit.impute(given), fit.transform(given)
    errors = fit.uncertainty(1.0).errors(given)
    if engine in ("polars", "DuckDB", "Spark"):  # seen: left as they are, unsaid
        for lazy in (*filled, errors):
            with pytest.raises(Exception, match="values in data, in rows of X"):
                take(lazy)
        return
    found = cells(take(filled[0]))
    np.testing.assert_array_equal(found[0], rows[0])
    assert not np.isnan(found[1]).any()
    assert np.isnan(cells(take(filled[1]))[0, 0])
    assert np.isnan(cells(take(errors))[0, 4:]).all()


def test_bad_cells_of_columns_without_a_number():
    fit = quiet(lambda: a1gm.fit(arrow(np.array([[1.0, 2.0, nan], [2.0, 4.0, nan]]))))
    rows = pl.LazyFrame({"c0": [1.0], "c1": [None], "c2": [-1.0]})
    with pytest.raises(DataError, match="in rows of X"):
        fit.impute(rows.cast({"c1": pl.Float64})).collect()


def test_logarithms_of_databases_are_natural_ones(caplog):
    """Seen: logarithms of decimals, to a base, 50 times slower in PostgreSQL."""
    given = ibis_table("sqlite", arrow(wide(3)))
    fit = a1gm.fit(given)
    with caplog.at_level(logging.DEBUG, "a1gm"):
        _ = fit.divergence
    assert "LN(" in caplog.text
    assert "LOG(" not in caplog.text


def test_negative_cells_that_are_allowed(engine):
    give, take = ENGINES[engine]
    X = np.array([[5.0, 3.0, 1.0], [4.0, -1.0, nan], [6.0, nan, nan]])
    memory, given = a1gm.fit(X, negatives="allow"), give(arrow(X))
    fit = a1gm.fit(given, negatives="allow")
    same(fit.col_factor, memory.col_factor, FACTORS)
    assert np.isnan(fit.divergence)
    same(cells(take(fit.impute(given))), memory.impute(X), FILLS)
    same(cells(take(fit.transform(given)))[:, 0], memory.row_factor, FILLS)


@pytest.mark.parametrize("scale", [1e-165, 1e155, 1e300])
def test_what_has_squares_beyond_float64_is_refused(engine, scale):
    """Seen: a dispersion of 0, "a perfect fit", near 1e-165, and of inf near 1e155."""
    give, _ = ENGINES[engine]
    X = scale * TABLES["random holes"]
    for table in (X, give(arrow(X))):
        with pytest.raises(NotRepresentableError, match="power of ten"):
            a1gm.fit(table)


@pytest.mark.parametrize("scale", [1e-135, 1e135])
def test_dispersion_of_large_and_small_numbers(engine, scale):
    give, _ = ENGINES[engine]
    X = TABLES["random holes"]
    right = a1gm.fit(X).uncertainty().dispersion
    found = a1gm.fit(give(arrow(scale * X))).uncertainty().dispersion
    same(found / scale, right, FILLS)


def test_what_is_not_a_table(engine):
    give, _ = ENGINES[engine]
    with pytest.raises(DataError, match="0 rows"):
        a1gm.fit(give(arrow(np.empty((0, 2)))))
    with pytest.raises(NotNumericError, match="no number column"):
        a1gm.fit(give(pa.table({"a": ["x"], "b": ["y"]})))
    given = give(arrow(wide(3)))
    with pytest.raises(LabelError, match="nope"):
        a1gm.fit(given, columns=["c0", "nope"])
    for name in ("weights", "exposure"):
        with pytest.raises(ParameterError, match=f"{name}= is for tables in memory"):
            a1gm.fit(given, **{name: np.ones((40, 3))})
    with pytest.raises(DataError, match="but the fit has 3: it lacks column 'c2'"):
        a1gm.fit(given).impute(give(arrow(wide(2))))


def test_scatter_is_asked_for_later(engine):
    give, _ = ENGINES[engine]
    X = TABLES["zeros"]
    memory, given = quiet(lambda: a1gm.fit(X)), give(arrow(X))
    fit = quiet(lambda: a1gm.fit(given))
    same(fit.divergence, memory.divergence, FILLS)
    same(fit.deviance_explained, memory.deviance_explained, FILLS)
    same(fit.divergence_of(given), memory.divergence_of(X), FILLS)
    mine, right = fit.uncertainty(), memory.uncertainty()
    same(mine.dispersion, right.dispersion, FILLS)
    same(mine.pearson_p, right.pearson_p, FILLS)


@pytest.mark.parametrize("name", ["empty lines", "two blocks", "zero chain"])
def test_totals_leave_out_cells_without_a_value(engine, name):
    """Seen: one empty row, and the totals asked for rows that no engine keeps."""
    give, _ = ENGINES[engine]
    table = arrow(TABLES[name])
    right = quiet(lambda: a1gm.fit(table)).uncertainty(2.0)
    mine = quiet(lambda: a1gm.fit(give(table))).uncertainty(2.0)
    for by in ("column", "all"):
        same(mine.totals(by).value, right.totals(by).value, FILLS)
        same(mine.totals(by).se, right.totals(by).se, FILLS)
        assert str(mine.totals(by)) == str(right.totals(by))


def test_options_that_lazy_frames_do_not_have(engine):
    give, _ = ENGINES[engine]
    given = give(arrow(wide(3)))
    fit = a1gm.fit(given)
    with pytest.raises(ParameterError, match="without round="):
        fit.impute(given, round=1)
    with pytest.raises(ParameterError, match='on_undetermined="raise" cannot be used'):
        fit.impute(given, on_undetermined="raise")
    with pytest.raises(ParameterError, match="placed without weights"):
        fit.impute(given, weights=np.ones((40, 3)))
    with pytest.raises(ParameterError, match="without its rows"):
        _ = fit.row_factor
    again = pickle.loads(pickle.dumps(fit))
    assert np.array_equal(again.col_factor, fit.col_factor)
    assert np.isnan(again.divergence)


# ---------------------------------------------------------------------- many patterns
def test_duckdb_streams_what_has_too_many_patterns_or_columns(monkeypatch):
    check_same("DuckDB", wide(720, 12))
    monkeypatch.setattr(count, "MOST_BYTES", 1 << 12)
    check_same("DuckDB", wide(9, 100))
    X = wide(9, 100)
    X[3, 2] = -1.0
    give, _ = ENGINES["DuckDB"]
    with pytest.raises(NegativeValuesError, match=r"X\[3, 'c2'\] = -1"):
        a1gm.fit(give(arrow(X)))


@pytest.mark.xdist_group("SQLite")
def test_too_many_patterns_of_a_database_are_refused_with_the_call(monkeypatch):
    monkeypatch.setattr(count, "MOST_BYTES", 1 << 12)
    X = wide(9, 100)
    given = ibis_table("sqlite", arrow(X))
    with pytest.raises(TableTooLargeError, match="too many patterns"):
        a1gm.fit(given)
    fit = a1gm.fit(given.to_pyarrow_batches())
    same(fit.col_factor, a1gm.fit(X).col_factor, FACTORS)


@pytest.mark.nightly
@pytest.mark.xdist_group("SQLite")
def test_a_thousand_columns_on_sqlite():
    X = wide(1000, 12)
    memory, given = a1gm.fit(X), ibis_table("sqlite", arrow(X))
    with pytest.raises(TableTooLargeError, match="too many columns"):
        a1gm.fit(given)
    fit = a1gm.fit(given.to_pyarrow_batches())
    same(fit.col_factor, memory.col_factor, FACTORS)
    same(cells(fit.impute(given).to_pyarrow()), memory.impute(X), FILLS)


# ---------------------------------------------------------------------------- laziness
def test_fills_run_no_query():
    con = duck()
    con.execute("CREATE OR REPLACE TABLE later AS SELECT 1.0 AS a, 2.0 AS b")
    relation = con.table("later")
    fit = a1gm.fit(relation)
    filled = fit.impute(con.sql("SELECT a, b FROM later"))
    con.execute("INSERT INTO later VALUES (3.0, NULL)")
    assert len(filled.fetchall()) == 2  # a row that came after ``impute``
    assert fit.impute(relation).fetchall()[1] == (3.0, 6.0)

    reads = []

    def read(frame: pl.DataFrame) -> pl.DataFrame:
        reads.append(len(frame))
        return frame

    lazy = pl.LazyFrame({"a": [1.0, 2.0], "b": [2.0, None]}).map_batches(read)
    fit, n = a1gm.fit(lazy), len(reads)
    filled, factors = fit.impute(lazy), fit.transform(lazy)
    assert len(reads) == n
    assert filled.collect().rows() == [(1.0, 2.0), (2.0, 4.0)]
    assert factors.collect().rows() == [(3.0,), (6.0,)]


@pytest.mark.parametrize("database", ["SQLite", "PostgreSQL"])
def test_fills_run_no_query_of_a_database(database):
    give, take = ENGINES[database]
    given = give(arrow(wide(3)))
    fit, con = a1gm.fit(given), given.get_backend().con
    if database == "SQLite":
        found: list[str] = []
        con.set_trace_callback(found.append)
        filled = fit.impute(given), fit.transform(given)
        assert found == []
        con.set_trace_callback(None)
    else:
        last = f"SELECT query FROM pg_stat_activity WHERE pid = {con.info.backend_pid}"
        with connected() as beside:
            before = beside.execute(last).fetchone()
            filled = fit.impute(given), fit.transform(given)
            beside.commit()  # a transaction sees one state of all connections
            assert beside.execute(last).fetchone() == before
    assert not np.isnan(cells(take(filled[0]))).any()
    assert take(filled[1]).num_rows == 40


def gone(table):
    other = ibis_table("sqlite", arrow(wide(2)))
    other.get_backend().con.execute(f"DROP TABLE {other.get_name()}")
    return other


#: What the engine cannot compute, and a word of its message.
BROKEN = {
    "polars": (lambda frame: frame.map_batches(lambda _: 1 / 0), "division by zero"),
    "DuckDB": (
        lambda frame: frame.project("c0, if(c0 = 0, error('no luck'), c1) AS c1"),
        "no luck",
    ),
    "SQLite": (gone, "no such table"),
    "PostgreSQL": (lambda table: table.mutate(c1=1.0 / table.c0), "division by zero"),
    "Spark": (
        lambda frame: frame.selectExpr(
            "c0", "IF(c0 = 0, CAST(raise_error('no luck') AS DOUBLE), c1) AS c1"
        ),
        "no luck",
    ),
}


@pytest.mark.parametrize("database", BROKEN)
def test_a_failing_query_is_the_message_of_the_engine(database):
    give, take = ENGINES[database]
    broken, message = BROKEN[database]
    X = np.array([[1.0, 2.0], [0.0, 3.0], [2.0, nan]])
    given = give(arrow(X))
    what = "Reading the batches of X|The query that counts the patterns of holes"
    with pytest.raises(EngineError, match=f"({what}) failed.*{message}") as caught:
        a1gm.fit(broken(given))
    assert caught.value.__cause__ is not None
    # What the user has open is as usable as before.
    fit = a1gm.fit(given)
    same(cells(take(fit.impute(given))), a1gm.fit(X).impute(X), FILLS)


def test_a_lazy_frame_without_a_plan():
    with pytest.raises(EngineError, match='unable to find column "b"'):
        a1gm.fit(pl.LazyFrame({"a": [1.0]}).select("b"))


@pytest.mark.parametrize("database", ["DuckDB", "SQLite", "PostgreSQL"])
def test_nothing_is_written_of_a_table_that_is_refused(database):
    give, _ = ENGINES[database]
    X = wide(3)
    X[4, 1] = X[6, 1] = -1.0
    given = give(arrow(X))

    def tables() -> list[str]:
        if database == "DuckDB":
            return [name for (name,) in duck().sql("SHOW TABLES").fetchall()]
        return given.get_backend().list_tables()

    before = tables()
    with pytest.raises(NegativeValuesError, match="'c1' has 2"):
        a1gm.fit(given).impute(given).create("refused")
    assert tables() == before


def test_queries_are_logged(caplog):
    con = duck()
    with caplog.at_level(logging.DEBUG, "a1gm"):
        a1gm.fit(con.sql("SELECT 1.0 AS a, 2.0 AS b"))
    assert "counts the patterns of holes, on duckdb" in caplog.text
    assert "SELECT" in caplog.text


def test_objects_of_these_libraries_that_are_no_tables():
    with pytest.raises(
        NotNumericError, match=r"which is not a table\. Pass a relation"
    ):
        a1gm.fit(ibis_table("sqlite", arrow(wide(2))).c0)


@pytest.mark.nightly
@pytest.mark.xdist_group("Spark")
def test_spark_runs_nothing_before_it_is_asked():
    session = spark()
    given = session.createDataFrame([(1.0, 2.0), (2.0, None)], "a double, b double")
    fit = a1gm.fit(given)
    tracker = session.sparkContext.statusTracker()
    before = len(tracker.getJobIdsForGroup())
    filled = fit.impute(given)
    assert len(tracker.getJobIdsForGroup()) == before
    assert sorted(map(tuple, filled.collect())) == [(1.0, 2.0), (2.0, 4.0)]
