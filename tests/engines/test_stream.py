"""Tables that are read once, batch by batch."""

from __future__ import annotations

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
from engines.test_lazy import arrow, cells, wide
from support.lazy import duck

import a1gm
from a1gm._observe import accumulate
from a1gm.exceptions import (
    DataError,
    DataHintWarning,
    EngineError,
    LabelError,
    NegativeValuesError,
    NotNumericError,
    ParameterError,
)

nan = np.nan


def reader_of(table: pa.Table, rows: int = 7) -> pa.RecordBatchReader:
    return pa.RecordBatchReader.from_batches(table.schema, table.to_batches(rows))


def test_one_pass_over_an_iterator():
    X, reads = wide(5), []

    def frames():
        for start in range(0, len(X), 9):
            reads.append(start)
            yield pl.DataFrame(X[start : start + 9])

    fit = a1gm.fit(frames())
    assert reads == [0, 9, 18, 27, 36]
    np.testing.assert_allclose(fit.col_factor, a1gm.fit(X).col_factor, rtol=1e-11)
    arrays = a1gm.fit(X[start : start + 9] for start in range(0, len(X), 9))
    np.testing.assert_array_equal(arrays.col_factor, fit.col_factor)
    with pytest.raises(
        ParameterError, match=r"\[fit\.impute\(batch\) for batch in X\]"
    ):
        fit.impute(frames())


def test_readers_of_any_class(tmp_path):
    """Seen: the class of a reader was compared by its name."""
    X = wide(4)
    table, path = arrow(X), tmp_path / "table.csv"
    pacsv.write_csv(table, path)
    fit = a1gm.fit(pacsv.open_csv(path))
    np.testing.assert_allclose(fit.col_factor, a1gm.fit(X).col_factor, rtol=1e-11)


def test_a_dataset_of_files(tmp_path):
    X = wide(6, 300)
    table = arrow(X).append_column("note", pa.array(["x"] * 300))
    for k in range(3):
        rows = table.slice(100 * k, 100)
        pq.write_table(rows, tmp_path / f"part-{k}.parquet", row_group_size=30)
    memory, found = a1gm.fit(X), ds.dataset(tmp_path)
    for given in (found, found.scanner(), pl.scan_parquet(tmp_path / "*.parquet")):
        with pytest.warns(DataHintWarning, match="'note' as not part of the table"):
            fit = a1gm.fit(given)
        assert fit.shape == (300, 6)
        np.testing.assert_allclose(fit.col_factor, memory.col_factor, rtol=1e-11)


@pytest.mark.parametrize("zeros", [False, True])
def test_many_patterns_are_kept_as_bits(monkeypatch, zeros):
    X = wide(9, 200)
    if zeros:
        X[::3, 2] = 0.0
        X[5] = 0.0
    memory = a1gm.fit(X)
    monkeypatch.setattr(accumulate, "TABLE_BYTES", 1 << 13)  # reached on the way
    fit = a1gm.fit(reader_of(arrow(X), 11))
    assert fit._patterns.is_mask
    np.testing.assert_allclose(fit.col_factor, memory.col_factor, rtol=1e-10)
    assert fit.shape == memory.shape
    assert fit.pattern.n_missing == memory.pattern.n_missing
    assert fit.n_undetermined == memory.n_undetermined
    np.testing.assert_allclose(fit.transform(X), memory.row_factor, rtol=1e-9)
    with pytest.raises(ParameterError, match="without its rows"):
        _ = fit.row_factor


def test_readers_are_closed_and_connections_usable_after_an_error():
    X = wide(3)
    X[30, 1] = -2.0
    con = duck()
    con.register("bad", arrow(X))
    reader = con.table("bad").to_arrow_reader(8)
    words = r"X\[30, 'c1'\] = -2 "
    with pytest.raises(NegativeValuesError, match=words):
        a1gm.fit(reader)
    assert con.sql("SELECT count(*) FROM bad").fetchall() == [(40,)]

    closed = []

    def frames():
        try:
            yield arrow(X[:20])
            yield arrow(X[20:])
        finally:
            closed.append(True)

    with pytest.raises(NegativeValuesError, match=words):
        a1gm.fit(frames())
    assert closed


def test_errors_of_the_reader():
    table = arrow(wide(3))

    def batches():
        yield table.to_batches()[0]
        raise OSError("the disk is gone")

    broken = pa.RecordBatchReader.from_batches(table.schema, batches())
    with pytest.raises(EngineError, match="failed after 40 rows: the disk is gone"):
        a1gm.fit(broken)
    with pytest.raises(OSError, match="the disk is gone"):  # of the caller's own
        a1gm.fit(batches())


def test_what_is_not_a_stream_of_tables():
    for empty in (iter(()), reader_of(arrow(wide(3)).slice(0, 0))):
        with pytest.raises(DataError, match="0 rows"):
            a1gm.fit(empty)
    with pytest.raises(DataError, match="Expected 2D array"):
        a1gm.fit(iter([1.0, 2.0]))
    with pytest.raises(DataError, match="batch of X has 2 columns, the first one 3"):
        a1gm.fit(X for X in (wide(3), wide(2)))
    with pytest.raises(LabelError, match="this batch"):
        a1gm.fit(iter([arrow(wide(2)), arrow(wide(2), ["a", "b"])]))
    with pytest.raises(NotNumericError, match="no number column"):
        a1gm.fit(reader_of(pa.table({"a": ["x"], "b": ["y"]})))
    with pytest.raises(ParameterError, match="weights= is for tables in memory"):
        a1gm.fit(reader_of(arrow(wide(3))), weights=np.ones((40, 3)))


def test_options_and_order():
    table = arrow(wide(5))
    fit = a1gm.fit(reader_of(table), exclude=["c4"])
    assert list(fit.col_labels) == ["c0", "c1", "c2", "c3"]
    filled = fit.impute(table)
    assert filled["c4"].null_count == table["c4"].null_count
    again = a1gm.fit(table.select(["c0", "c1", "c2", "c3"]))
    np.testing.assert_allclose(fit.col_factor, again.col_factor, rtol=1e-11)
    right = again.impute(table.select(["c0", "c1", "c2", "c3"]))
    np.testing.assert_allclose(cells(filled.drop(["c4"])), cells(right), rtol=1e-9)


def test_hints_look_at_the_first_batch():
    table = pa.table({"q": range(1, 21), "b": np.tile([3.0, 1.0], 10)})
    with pytest.warns(DataHintWarning, match="'q' holds whole numbers that only rise"):
        a1gm.fit(reader_of(table))
