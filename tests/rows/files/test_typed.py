"""Typed files: their types, and damage."""

import datetime as dt
from decimal import Decimal

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import feather
from support.files import read_file

from a1gm.exceptions import DataHintWarning, FileFormatError, NotNumericError

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


def write(path, new):
    with new(path, TYPED.schema) as writer:
        writer.write_table(TYPED)


@pytest.mark.parametrize(
    ("name", "new"),
    [
        ("a.parquet", pq.ParquetWriter),
        ("a.feather", pa.ipc.new_file),
        ("a.arrows", pa.ipc.new_stream),
        ("no_extension", pa.ipc.new_file),
    ],
)
@pytest.mark.parametrize("batch_rows", [None, 2])
def test_typed_files(tmp_path, name, new, batch_rows):
    write(tmp_path / name, new)
    with pytest.warns(DataHintWarning, match="'day', 'yes' as not part of the table"):
        table, values = read_file(tmp_path / name, batch_rows=batch_rows)
    assert table.names == ("x", "n", "price", "empty")
    assert table.passed_through == ["name", "day", "yes"]
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


def test_files_without_a_table(tmp_path):
    for error in (FileFormatError, FileNotFoundError):
        with pytest.raises(error, match=r"nothing\.csv does not exist\. Check"):
            read_file(tmp_path / "nothing.csv")
    pq.write_table(TYPED.slice(0, 0), tmp_path / "a.parquet")
    with pytest.raises(FileFormatError, match="no rows"):
        read_file(tmp_path / "a.parquet")
    twice = pa.Table.from_arrays([pa.array([1]), pa.array([2])], names=["a", "a"])
    pq.write_table(twice, tmp_path / "b.parquet")
    with pytest.raises(FileFormatError, match="columns 1 and 2 are both called 'a'"):
        read_file(tmp_path / "b.parquet")


def damage(kind, data):
    half = len(data) // 2
    return {
        "half": data[:half],
        "start": data[:4],
        "empty": b"",
        "text": b"x,y\n1,2\n",
        "footer": data[:-400] + bytes(392) + data[-8:],
        "page": data[:half] + bytes([data[half] ^ 0x10]) + data[half + 1 :],
    }[kind]


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        *(("t.parquet", kind) for kind in ("half", "text", "footer", "page")),
        *(("t.feather", kind) for kind in ("half", "start", "empty", "text")),
    ],
)
def test_damaged_files_are_refused_by_name(tmp_path, name, kind):
    path = tmp_path / name
    numbers = pa.table({"x": np.random.default_rng(0).random(5000)})
    if name == "t.parquet":
        pq.write_table(numbers, path, row_group_size=1000, write_page_checksum=True)
    else:
        feather.write_feather(numbers, path)
    path.write_bytes(damage(kind, path.read_bytes()))
    with pytest.raises(FileFormatError, match=name):
        read_file(path)


def test_the_index_of_pandas_labels_the_rows(tmp_path):
    frame = pd.DataFrame(
        {"year": [2020, 2021], "a": [1.0, 2.0], "b": [2.0, nan]}, index=[17, 4]
    )
    frame.to_parquet(tmp_path / "a.parquet")
    with pytest.warns(DataHintWarning, match="'year' as not part"):  # as in the frame
        table, values = read_file(tmp_path / "a.parquet")
    assert (table.names, table.row_labels) == (("a", "b"), ["17", "4"])
    np.testing.assert_array_equal(values, [[1, 2], [2, nan]])
