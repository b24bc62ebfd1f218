"""What is written reads back the same."""

import datetime as dt
import gzip
import io
from decimal import Decimal
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyarrow import feather
from support.commands import run

import a1gm
from a1gm._rows.files.source import Dialect
from a1gm._write.fill import dialect_for, format_of, open_writer
from a1gm.exceptions import DataError, EmptyLineWarning, OutputError, ParameterError


def write(path, table, dialect=None):
    like = None if dialect is None else SimpleNamespace(dialect=dialect)
    with open_writer(path, table.schema, like=like) as writer:
        for batch in table.to_batches(max_chunksize=max(2, len(table) // 2)):
            writer.write(batch)


MIXED = pa.table(
    {
        "text": ["plain", 'say "no", twice', "two\nlines", ""],
        "x": [1.5, None, 1e-7, 1e22],
        "n": pa.array([1, 2, None, 4], pa.int64()),
        "day": [dt.date(2024, 1, 2)] * 4,
        "price": pa.array([Decimal("1.10"), None, Decimal(2), Decimal(3)]),
        "yes": [True, False, None, True],
        "kind": pa.array(["a", "b", "a", None]).dictionary_encode(),
    }
)


@pytest.mark.parametrize(
    ("columns", "dialect", "expected"),
    [
        (
            dict(zip(MIXED.column_names, MIXED.columns, strict=True)),
            None,
            b"text,x,n,day,price,yes,kind\n"
            b"plain,1.5,1,2024-01-02,1.10,true,a\n"
            b'"say ""no"", twice",,2,2024-01-02,,false,b\n'
            b'"two\nlines",1e-7,,2024-01-02,2.00,,a\n'
            b",1e+22,4,2024-01-02,3.00,true,\n",
        ),
        (
            {"größe": [1.5, 2.0], "b;c": ["x", "y;z"]},
            Dialect(";", ",", "latin-1", "\r\n"),
            'größe;"b;c"\r\n1,5;x\r\n2;"y;z"\r\n'.encode("latin-1"),
        ),
        # Marks are written once.
        ({"a": ["é"] * 3}, Dialect(bom=True), "\ufeffa\né\né\né\n".encode()),
        ({"a": ["é"] * 3}, Dialect(encoding="utf-16"), "a\né\né\né\n".encode("utf-16")),
    ],
)
def test_text(tmp_path, columns, dialect, expected):
    write(tmp_path / "a.csv", pa.table(columns), dialect=dialect)
    assert (tmp_path / "a.csv").read_bytes() == expected


def test_a_letter_outside_the_encoding(tmp_path):
    table = pa.table({"a": ["€"]})
    with pytest.raises(DataError, match="'€' cannot be written in latin-1"):
        write(tmp_path / "a.csv", table, dialect=Dialect(encoding="latin-1"))
    assert not (tmp_path / "a.csv").exists()


def test_gzip_and_tabs(tmp_path):
    write(tmp_path / "a.tsv.gz", pa.table({"a": [1, 2], "b": ["x", "y"]}))
    with gzip.open(tmp_path / "a.tsv.gz", "rt") as file:
        assert file.read() == "a\tb\n1\tx\n2\ty\n"


@pytest.mark.parametrize(
    ("name", "read"), [("a.parquet", pq.read_table), ("a.feather", feather.read_table)]
)
def test_typed_files_read_back(tmp_path, name, read):
    write(tmp_path / name, MIXED)
    assert read(tmp_path / name).to_pylist() == MIXED.to_pylist()


def test_parquet_has_page_checksums(tmp_path):
    path = tmp_path / "a.parquet"
    write(path, pa.table({"x": np.random.default_rng(0).random(5000)}))
    damaged = bytearray(path.read_bytes())
    damaged[len(damaged) // 2] ^= 0xFF
    path.write_bytes(damaged)
    with pytest.raises((OSError, pa.ArrowException)):
        pq.ParquetFile(path, page_checksum_verification=True).read()


def test_nested_columns_do_not_fit_in_text(tmp_path):
    with pytest.raises(OutputError, match="'a' holds list"):
        write(tmp_path / "a.csv", pa.table({"a": [[1, 2]]}))
    with pytest.raises(OutputError, match="'b' holds binary"):
        write(tmp_path / "a.csv", pa.table({"b": [b"\xff"]}))


def test_formats():
    assert format_of("a.CSV") == format_of("a.tsv.gz") == "csv"
    assert format_of("a.parquet") == "parquet"
    assert format_of("a.arrow") == "feather"
    for name in ("a", "a.parquet.gz"):
        with pytest.raises(ParameterError, match="extension"):
            format_of(name)
    with pytest.raises(ParameterError, match="are read, not written"):
        format_of("a.xlsx")
    assert dialect_for("a.tsv", Dialect(";")).delimiter == "\t"
    assert dialect_for("a.csv", Dialect(";")).delimiter == ";"
    assert dialect_for("a.csv", Dialect("\t", by_name=True)).delimiter == ","
    assert dialect_for("a.txt", Dialect("\t", by_name=True)).delimiter == "\t"


def test_an_empty_cell_of_the_only_column_is_no_blank_line(tmp_path):
    """Readers skip blank lines, so a missing cell would take its row away."""
    write(tmp_path / "a.csv", pa.table({"x": [1.5, None, 3.0]}))
    assert (tmp_path / "a.csv").read_text() == 'x\n1.5\n""\n3\n'
    assert len(pd.read_csv(tmp_path / "a.csv")) == 3
    with pytest.warns(EmptyLineWarning, match="line 3"):
        fit = a1gm.fit_file(tmp_path / "a.csv", on_undetermined="ignore")
    assert fit.shape == (3, 1)


cell = st.text(
    st.characters(blacklist_categories=["Cs"], blacklist_characters="\0\r"), max_size=8
)


@given(st.lists(st.tuples(cell, cell), min_size=1, max_size=5))
def test_any_text_reads_back(tmp_path_factory, rows):
    path = tmp_path_factory.mktemp("csv") / "a.csv"
    table = pa.table({"a": [r[0] for r in rows], "b": [r[1] for r in rows]})
    write(path, table)
    back = pyarrow.csv.read_csv(
        path,
        parse_options=pyarrow.csv.ParseOptions(newlines_in_values=True),
        convert_options=pyarrow.csv.ConvertOptions(
            column_types=dict.fromkeys("ab", pa.string())
        ),
    )
    assert back.to_pylist() == table.to_pylist()


@given(st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=1))
def test_any_number_reads_back(tmp_path_factory, numbers):
    path = tmp_path_factory.mktemp("csv") / "a.csv"
    write(path, pa.table({"a": pa.array(numbers, pa.float64())}))
    back = np.loadtxt(path, skiprows=1, ndmin=1)
    np.testing.assert_array_equal(back, numbers)


@pytest.mark.parametrize(
    ("times", "expected"),
    [
        (["2020-01-01", None, "2020-02-01"], ["2020-01-01", "", "2020-02-01"]),
        (["2020-01-01T00:00", "2020-01-01T12:30"], ["2020-01-01 00:00:00", ...]),
        (["2020-01-01T00:00:00.5", "2020-01-02"], ["2020-01-01 00:00:00.500000", ...]),
    ],
)
def test_times_have_no_more_digits_than_they_need(tmp_path, times, expected):
    values = [
        None if time is None else dt.datetime.fromisoformat(time) for time in times
    ]
    cells = pa.array(values, pa.timestamp("us"))
    write(tmp_path / "a.csv", pa.table({"when": cells, "x": [1.0] * len(times)}))
    lines = (tmp_path / "a.csv").read_text().splitlines()[1:]
    found = [line.split(",")[0] for line in lines]
    assert found[0] == expected[0]
    again = [pd.NaT if text == "" else pd.Timestamp(text) for text in found]
    assert [None if when is pd.NaT else when for when in again] == values


def test_a_file_is_written_where_standard_output_has_no_bytes(tmp_path, monkeypatch):
    monkeypatch.setattr("sys.stdout", io.StringIO())  # as in notebooks
    write(tmp_path / "a.csv", pa.table({"a": [1, 2]}))
    assert (tmp_path / "a.csv").read_text() == "a\n1\n2\n"


FORMULAS = ["=1+1", "+a", "-a", "@x", "-1-2", '"=a,b"']
ESCAPED = ["'=1+1", "'+a", "'-a", "'@x", "'-1-2", '"\'=a,b"']
OTHERS = ["plain", "-3.5", "+4", "-1e-05", "-0", "+.5", "-1e+300"]


def test_text_that_a_spreadsheet_would_run_is_escaped_where_asked(tmp_path):
    path, out = tmp_path / "in.csv", tmp_path / "out.csv"
    rows = [f"{cell},1,2" for cell in (*FORMULAS, *OTHERS)]
    path.write_text("\n".join(["=name,x,@y", *rows, "last,2,", ""]))
    options = {"exclude": ["=name"], "round": "auto"}
    a1gm.impute_file(path, out, **options)
    assert out.read_text() == path.read_text().replace("last,2,", "last,2,4")
    a1gm.impute_file(path, out, **options, escape_formulas=True, overwrite=True)
    head, *lines = out.read_text().splitlines()
    assert head == "'=name,x,'@y"
    found = [line.rpartition(",1,2")[0] for line in lines[:-1]]
    assert found == [*ESCAPED, *OTHERS]
    options = "--exclude", "=name", "--escape-formulas"
    run("impute", path, "-o", out, *options, "--overwrite")
    assert out.read_text().startswith("'=name,x,'@y\n'=1+1,1,2\n")
    run("fit", path, "-o", tmp_path, "--id", "=name", "--escape-formulas")
    factors = (tmp_path / "row_factor.csv").read_text()
    assert factors.splitlines()[1].startswith("'=1+1,")
    path.write_text("a,b,v\n=1,x,-3\n=1,y,-4\nn,x,-5\n")
    long = "--long", "a,b,v", "--negatives", "allow", "--escape-formulas"
    run("impute", path, "-o", out, *long, "--overwrite")
    assert out.read_text().splitlines()[1] == "'=1,x,-3"
