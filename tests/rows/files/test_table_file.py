"""Typed files, gzip, damage, and files that change while they are read."""

import datetime as dt
import gzip
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support.files import open_file, read_file

from a1gm._rows.files import TableOptions
from a1gm.exceptions import (
    FileFormatError,
    InfiniteValuesError,
    LabelError,
    NegativeValuesError,
    NotNumericError,
    ParameterError,
)

nan = np.nan
TYPED = pa.table(
    {
        "name": ["ann", "bob", "cid"],
        "x": [1.0, None, nan],
        "n": pa.array([1, None, 3], pa.int32()),
        "price": pa.array([Decimal("1.50"), None, Decimal(2)]),
        "day": [dt.date(2024, 1, 2)] * 3,
        "yes": [True, None, False],
        "empty": pa.nulls(3),
    }
)
VALUES = [[1, 1, 1.5, nan], [nan, nan, nan, nan], [nan, 3, 2, nan]]


def write_feather(path):
    with pa.ipc.new_file(path, TYPED.schema) as writer:
        writer.write_table(TYPED)


def write_stream(path):
    with pa.ipc.new_stream(path, TYPED.schema) as writer:
        writer.write_table(TYPED)


@pytest.mark.parametrize(
    ("name", "write"),
    [
        ("a.parquet", lambda path: pq.write_table(TYPED, path)),
        ("a.feather", write_feather),
        ("a.arrows", write_stream),
        ("no_extension", write_feather),
    ],
)
@pytest.mark.parametrize("batch_rows", [None, 2])
def test_typed_files(tmp_path, name, write, batch_rows):
    write(tmp_path / name)
    table, values = read_file(tmp_path / name, batch_rows=batch_rows)
    assert table.names == ("x", "n", "price", "empty")
    assert table.passed_through == ("name", "day", "yes")
    np.testing.assert_array_equal(values, VALUES)


def test_a_boolean_column_joins_when_asked(tmp_path):
    pq.write_table(TYPED, tmp_path / "a.parquet")
    _, values = read_file(tmp_path / "a.parquet", columns=["yes"])
    np.testing.assert_array_equal(values, [[1], [nan], [0]])
    with pytest.raises(NotNumericError, match=r"'day' holds date32"):
        read_file(tmp_path / "a.parquet", columns=["day"])


def test_a_number_can_mark_missing_cells_in_typed_files(tmp_path):
    pq.write_table(pa.table({"x": [1, -999], "y": [2.0, -999.0]}), tmp_path / "a.pq")
    _, values = read_file(tmp_path / "a.pq", missing=["-999"])
    np.testing.assert_array_equal(values, [[1, 2], [nan, nan]])


def test_gzip(tmp_path):
    path = tmp_path / "a.tsv.gz"
    path.write_bytes(gzip.compress(b"x\ty\n1\t2\n3\t\n"))
    table, values = read_file(path)
    np.testing.assert_array_equal(values, [[1, 2], [3, nan]])
    assert table.source.position == path.stat().st_size
    path.write_bytes(path.read_bytes()[:-12])
    with pytest.raises(FileFormatError, match="gzip stream"):
        read_file(path)


def test_a_damaged_feather_file_is_told_with_the_path(tmp_path):
    path = tmp_path / "a.feather"
    write_feather(path)
    whole = path.read_bytes()
    for bad in (whole[: len(whole) // 2], whole[:4], b"", b"x,y\n1,2\n"):
        path.write_bytes(bad)
        with pytest.raises(FileFormatError, match=r"a\.feather"):
            read_file(path)


def test_files_without_a_table(tmp_path):
    for error in (FileFormatError, FileNotFoundError):
        with pytest.raises(error, match=r"nothing\.csv does not exist\. Check"):
            open_file(tmp_path / "nothing.csv")
    with pytest.raises(FileFormatError, match="is a folder"):
        open_file(tmp_path)
    pq.write_table(TYPED.slice(0, 0), tmp_path / "a.parquet")
    with pytest.raises(FileFormatError, match="no rows"):
        open_file(tmp_path / "a.parquet")
    twice = pa.Table.from_arrays([pa.array([1]), pa.array([2])], names=["a", "a"])
    pq.write_table(twice, tmp_path / "b.parquet")
    with pytest.raises(FileFormatError, match="several columns called 'a'"):
        open_file(tmp_path / "b.parquet")


def test_unknown_columns_are_refused(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("x,y\n1,2\n")
    for field in ("columns", "exclude", "id"):
        with pytest.raises(LabelError, match=rf"no column 'q'.*{field}=\).*'x', 'y'"):
            open_file(path, **{field: ["q"]})


@pytest.mark.parametrize(
    ("options", "word"),
    [
        ({"decimal": ";"}, "decimal"),
        ({"delimiter": ";;"}, "delimiter"),
        ({"thousands": "1"}, "thousands"),
        ({"thousands": "."}, "both '.'"),
        ({"encoding": "klingon"}, "encoding"),
        ({"columns": "x"}, "list of names"),
        ({"columns": ["x"], "id": ["x"]}, "'x'"),
        ({"columns": ["x", "x"]}, "twice"),
        ({"batch_rows": 0}, "batch_rows"),
    ],
)
def test_bad_options(options, word):
    with pytest.raises(ParameterError, match=word):
        TableOptions(**options)


def test_a_file_that_changes_is_refused(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("x,y\n1,2\n3,4\n")
    table = open_file(path)
    list(table.pieces())
    path.write_text("x,y\n1,2\n3,4\n5,6\n")
    with pytest.raises(FileFormatError, match="changed while"):
        list(table.pieces())


def test_a_file_that_changes_during_a_pass_is_refused(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("x,y\n" + "1,2\n" * 20)
    blocks = open_file(path, batch_rows=1).pieces()
    next(blocks)  # only a few more are read ahead
    path.write_text("x,y\n1,2\n")
    with pytest.raises(FileFormatError, match="changed while"):
        list(blocks)


@pytest.mark.parametrize(
    ("cell", "error", "words"),
    [
        ("-2.5", NegativeValuesError, "-2.5 is negative"),
        ("inf", InfiniteValuesError, "inf"),
    ],
)
def test_bad_values_are_placed_in_the_file(tmp_path, cell, error, words):
    path = tmp_path / "a.csv"
    path.write_text(f'note,x,y\n"two\nlines",1,2\nb,3,{cell}\n')

    _, piece = open_file(path, batch_rows=1).pieces()
    with pytest.raises(error, match=rf"a\.csv, line 4, column 'y': {words}"):
        piece.check_cells("raise")


def test_progress_reaches_the_end(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("x,y\n" + "1,2\n" * 1000)
    calls = []
    table = open_file(path, batch_rows=100)
    list(table.pieces(progress=lambda rows, done: calls.append((rows, done))))
    assert calls[-1] == (1000, 1.0)


def test_a_header_longer_than_a_block_is_read(tmp_path):
    path = tmp_path / "wide.csv"
    names = [f"column_{k:06d}" for k in range(30_000)]
    path.write_text(",".join(names) + "\n" + ",".join("1" for _ in names) + "\n")
    table = open_file(path)
    assert len(table.names) == 30_000
