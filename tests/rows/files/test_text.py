"""Every odd text table is read exactly, or refused with its line and a remedy."""

import gzip
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from support.commands import run
from support.files import read_file

import a1gm
from a1gm._rows.files.source import TableOptions
from a1gm._rows.files.text import Cells
from a1gm.exceptions import (
    A1gmError,
    DataHintWarning,
    FileFormatError,
    NotNumericError,
)

DATA = Path(__file__).parents[2] / "data" / "csv"
nan = np.nan
SEMICOLON = {"delimiter": ";"}
GERMAN = {"delimiter": ";", "decimal": ","}
MARKS, NULLS = {"missing": ["?"]}, {"missing": ["NULL", "null"]}
YEARS = [[10, 5, 2], [12, 6, nan], [11, nan, nan]]


def read(name, **options):
    return read_file(DATA / name, **options)


ACCEPTED = [
    ("plain.csv", {}, "xyz", [[1, 2, 3], [2, nan, 6], [4, 8, nan]]),
    ("bom.csv", {}, "xyz", [[1, 2, 3], [2, nan, 6]]),
    ("crlf.csv", {}, "xyz", [[1, 2, 3], [2, nan, 6]]),
    ("old_mac_line_ends.csv", {}, "xy", [[1, 2], [2, nan]]),
    ("no_final_newline.csv", {}, "xy", [[1, 2], [2, nan]]),
    ("blank_lines.csv", {}, "xy", [[1, 2], [2, nan]]),
    ("tabs.tsv", {}, "xy", [[1, 2], [2, nan]]),
    ("semicolon.csv", SEMICOLON, "xy", [[1, 2], [3, nan]]),
    ("semicolon_decimal_comma.csv", GERMAN, "xy", [[1.5, 2.25], [3, nan]]),
    ("quoted_newlines_good.csv", {}, "xy", [[1, 2], [2, nan], [3, 6]]),
    ("latin1.csv", {"encoding": "latin-1"}, "xy", [[1, 2], [2, 3]]),
    ("latin1_header.csv", {"encoding": "cp1252"}, ["größe", "y"], [[1, 2]]),
    ("utf16.csv", {"encoding": "utf-16"}, "xy", [[1, 2], [2, nan]]),
    ("question_marks.csv", MARKS, "xy", [[1, 2], [nan, 4], [3, nan]]),
    ("null_tokens.csv", NULLS, "xy", [[1, 2], [nan, 4], [3, nan]]),
    ("dashes.csv", {"missing": ["-"]}, "xy", [[1, nan], [2, 4]]),
    ("na_tokens.csv", {}, "xy", [[nan, 2], [2, nan], [3, 6]]),
    ("sentinel.csv", {"missing": ["-999"]}, "xy", [[nan, 2], [2, nan], [3, 6]]),
    ("thousands.csv", {"thousands": ","}, "xy", [[1234.5, 2], [12000, 4]]),
    ("thousands_ambiguous.csv", {"thousands": ","}, "xy", [[1234, 2], [17, 4]]),
    ("thousands_ambiguous.csv", {"decimal": ","}, "xy", [[1.234, 2], [17, 4]]),
    ("thousands_space.csv", {"thousands": " "}, "xy", [[1234, 2], [17, 4]]),
    ("spaces.csv", {}, [" x", " y"], [[1, 2], [2, nan]]),
    ("mostly_text.csv", {"id": ["note"]}, "xy", [[1, 2], [2, nan], [3, 6]]),
    ("one_column.csv", {}, "x", [[1], [nan], [3]]),
    ("numbers_as_names.csv", {"id": ["year"]}, "123", YEARS),
    ("plain.csv", {"columns": ["z", "x"]}, "xz", [[1, 3], [2, 6], [4, nan]]),
    ("plain.csv", {"exclude": ["y"]}, "xz", [[1, 3], [2, 6], [4, nan]]),
    ("question_marks.csv", {**MARKS, "columns": ["y"]}, "y", [[2], [4], [nan]]),
]


@pytest.mark.parametrize(("name", "options", "names", "values"), ACCEPTED)
@pytest.mark.parametrize("batch_rows", [None, 1])
def test_accepted(name, options, names, values, batch_rows):
    table, found = read(name, batch_rows=batch_rows, **options)
    assert table.names == tuple(names)
    np.testing.assert_array_equal(found, values)


REFUSED = [
    ("duplicate_header.csv", {}, "columns 2 and 4", "both called 'x'"),
    ("ragged_short.csv", {}, "line 3", "2 cells, but the header has 3"),
    ("ragged_long.csv", {}, "line 3", "4 cells, but the header has 3"),
    ("trailing_commas.csv", {}, "line 2", "4 cells"),
    ("unterminated_quote.csv", {}, "line 3", "never closed"),
    ("unterminated_last_cell.csv", {}, "line 3", "never closed"),
    ("header_only.csv", {}, "header_only.csv", "no rows"),
    ("empty.csv", {}, "empty.csv", "is empty"),
    ("latin1.csv", {}, "line 3", "encoding='cp1252'"),
    ("latin1_header.csv", {}, "line 1", "encoding='cp1252'"),
    ("utf16.csv", {}, "line 1", "encoding='utf-16'"),
    ("question_marks.csv", {}, "line 3, column 'x': '?'", "missing=['?']"),
    ("null_tokens.csv", {}, "line 3, column 'x': 'NULL'", "missing=['NULL']"),
    ("dashes.csv", {}, "column 'y': ", "exclude=['y']"),
    ("semicolon.csv", {}, "line 1", "delimiter=';'"),
    ("semicolon_decimal_comma.csv", {}, "line 2", "delimiter=';' and decimal=','"),
    ("semicolon_decimal_comma.csv", SEMICOLON, "line 2, column 'x'", "decimal=','"),
    ("thousands.csv", {}, "line 2, column 'x'", "thousands=','"),
    ("thousands_ambiguous.csv", {}, "line 2, column 'x'", "decimal=','"),
    ("thousands_ambiguous.csv", {}, "line 2, column 'x'", "thousands=','"),
    ("thousands_space.csv", {}, "line 2, column 'x'", "thousands=' '"),
    ("quoted_newlines.csv", {}, "line 5, column 'y': '?'", "missing=['?']"),
    ("mostly_text.csv", {"columns": ["note"]}, "line 2", "'ok' is not a number"),
    ("mostly_text.csv", {}, "column 'note'", "exclude=['note']"),
    ("text_only.csv", {}, "text_only.csv", "no number column"),
    ("text_only.csv", {}, "delimiter=", "decimal= or thousands="),
]


@pytest.mark.parametrize(("name", "options", "where", "remedy"), REFUSED)
@pytest.mark.parametrize("batch_rows", [None, 1])
def test_refused(name, options, where, remedy, batch_rows):
    with pytest.raises((FileFormatError, NotNumericError)) as caught:
        read(name, batch_rows=batch_rows, **options)
    assert name in str(caught.value)
    assert where in str(caught.value)
    assert remedy in str(caught.value)


@pytest.mark.parametrize(
    ("data", "options", "words"),
    [
        # A point is not believed under a decimal comma.
        (b"x;y\n1.5;2,5\n2.5;3\n", GERMAN, r"number, pass decimal='\.'"),
        # The line of a foreign byte is counted after short lines.
        *(
            (head + b"K\xf6ln,1\n", {}, rf"line {line}: byte 0xf6 .*\('Köln,1'")
            for head, line in ((b"x\n", 2), (b"x,y\n", 2), (b"x\n1\n", 3))
        ),
        (b"longer,y\nK\xf6ln,1\n", {}, r"line 2: byte 0xf6 .*\('Köln,1'"),
    ],
)
def test_refused_text(tmp_path, data, options, words):
    (tmp_path / "a.csv").write_bytes(data)
    with pytest.raises(FileFormatError, match=words):
        read(tmp_path / "a.csv", **options)


@pytest.mark.parametrize(
    ("cells", "where"),
    [
        (["word"] * 3 + ["7"] * 30, "line 2, column 'x': 'word' is not a number"),
        (["7"] * 30 + ["word"], "line 32, column 'x': 'word' is not a number"),
        ([""] * 9 + ["word", "7"], "line 11, column 'x': 'word' is not a number"),
        ([""] * 9 + ["7", "word"], "line 12, column 'x': 'word' is not a number"),
    ],
)
def test_the_first_cell_that_disagrees_is_named(tmp_path, cells, where):
    path = tmp_path / "few.csv"
    path.write_text("x,y\n" + "".join(f"{cell},5\n" for cell in cells))
    for batch_rows in (None, 1, 4):
        with pytest.raises(FileFormatError, match="column 'x'") as caught:
            read(path, batch_rows=batch_rows)
        assert batch_rows != 1 or where in str(caught.value)
        assert "id=['x'] if it labels the rows" in str(caught.value)
    assert read(path, exclude=["x"])[0].names == ("y",)


def test_a_label_may_be_numbers_and_text(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("shop,x,region\n7,1,5\nseven,2,b\n")
    with pytest.raises(FileFormatError, match="column 'region': 'b' is not a number"):
        read(path)
    table, _ = read(path, exclude=["region"])
    assert (table.id, table.names) == (("shop",), ("x",))


@pytest.mark.filterwarnings("ignore::a1gm.exceptions.DataHintWarning")
def test_hints_look_at_the_first_of_many_text_columns(tmp_path):
    names = [f"note {letter}" for letter in "abcdefghijklmnop"]
    path = tmp_path / "a.csv"
    lines = [",".join(["$5"] * len(names) + [f"{k}", "2"]) for k in (3, 1)]
    path.write_text("\n".join([",".join([*names, "x", "y"]), *lines]) + "\n")
    with pytest.warns(DataHintWarning, match="'note b' is text such as '\\$5'"):
        assert read(path)[0].names == ("x", "y")


def test_a_header_longer_than_a_block_is_read(tmp_path):
    path = tmp_path / "wide.csv"
    names = [f"column_{k:06d}a" for k in range(30_000)]
    path.write_text(",".join(names) + "\n" + ",".join("1" for _ in names) + "\n")
    table, _ = read(path)
    assert len(table.names) == 30_000


def test_gzip(tmp_path):
    path = tmp_path / "a.tsv.gz"
    path.write_bytes(gzip.compress(b"x\ty\n1\t2\n3\t\n"))
    table, values = read(path)
    np.testing.assert_array_equal(values, [[1, 2], [3, nan]])
    assert table.first.position == path.stat().st_size
    path.write_bytes(path.read_bytes()[:-12])
    with pytest.raises(FileFormatError, match="damaged"):
        read(path)


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("x,y\n1,2\n3,4\n5,6\n", [2, 3, 4]),
        ("x,y\n1,2\n3,4\n5,6", [2, 3, 4]),
        ("x,y\r\n1,2\r\n3,4\r\n5,6\r\n", [2, 3, 4]),
        # A blank line and no line end at the end: as many line ends as rows.
        ("x,y\n1,2\n\n3,4\n5,6", [2, 4, 5]),
        ("\n\nx,y\n1,2\n3,4\n\n\n5,6\n\n", [4, 5, 8]),
        ('x,y,"a\nb"\n1,2,c\n3,4,"d\n\ne"\n5,6,f\n', [3, 4, 7]),
        ("x,y\r1,2\r3,4\r5,6\r", [2, 3, 4]),
        ("x\n1\n\n3\n", [2, 3, 4]),
    ],
)
@pytest.mark.parametrize("kind", ["plain", "gzip", "utf-16"])
@pytest.mark.filterwarnings("ignore::a1gm.exceptions.DataHintWarning")
def test_rows_are_on_the_lines_that_an_editor_shows(tmp_path, text, lines, kind):
    data = text.encode("utf-16" if kind == "utf-16" else "utf-8")
    path = tmp_path / "a.csv"
    path.write_bytes(gzip.compress(data) if kind == "gzip" else data)
    table, _ = read(path, encoding="utf-16" if kind == "utf-16" else "utf-8")
    assert table.first.lines_of([0, 1, 2]) == lines
    assert table.first.lines_of([2, 0]) == [lines[2], lines[0]]
    assert table.place_of(2).endswith(f"line {lines[2]}")


# ------------------------------------------------------------------- text as numbers
SORTS = {
    "plain": ["1", "2.5", "-3", "1e3"],
    "holes": ["1", "", "2", ""],
    "words for holes": ["NA", "4", "NaN", "nan"],
    "spaces": [" 1", "2 ", " NA ", " "],
    "signs": ["+1", "inf", "-Infinity", "NAN"],
    "foreign": ["1,5", "2", "1.234.567", "3"],
    "text": ["ann", "1", "", "bob"],
    "sentinel": ["-999", "-999.0", "7", ""],
}


@pytest.mark.parametrize(("n_copies", "repeats"), [(1000, 1), (2, 2000)])
@pytest.mark.parametrize(
    "how", [{}, {"missing": ["-999"]}, {"decimal": ","}, {"thousands": ","}]
)
def test_many_columns_are_cast_as_each_alone(how, n_copies, repeats):
    options = TableOptions(**how)
    sorts = {name: cells * repeats for name, cells in SORTS.items()}
    copies = range(n_copies)
    columns = {f"{name} {k}": cells for name, cells in sorts.items() for k in copies}
    batch = pa.RecordBatch.from_pydict(columns)
    values, others = Cells(options).cast(batch, list(columns))
    assert values.flags.f_contiguous
    for j, (name, cells) in enumerate(sorts.items()):
        alone = pa.RecordBatch.from_pydict({name: cells})
        numbers, found = Cells(options).cast(alone, [name])
        own = values[:, j * n_copies : (j + 1) * n_copies]
        np.testing.assert_array_equal(own, np.repeat(numbers, n_copies, axis=1))
        assert all(others.get(f"{name} {k}") == found.get(name) for k in copies)


def test_files_without_a_header(tmp_path):
    lines = "3,5,8\n6,,16\n9,15,24\n"
    path, out = tmp_path / "a.csv", tmp_path / "filled.csv"
    path.write_text(lines)
    with pytest.warns(DataHintWarning, match="pass header=False"):
        assert a1gm.fit_file(path).shape == (2, 3)
    fit = a1gm.fit_file(path, header=False)
    assert list(fit.col_labels) == ["column_1", "column_2", "column_3"]
    assert fit.shape == (3, 3)
    a1gm.impute_file(path, out, header=False)
    assert out.read_text() == lines.replace(",,", ",10,")
    run("impute", path, "--no-header", "-o", out, "--overwrite")
    assert out.read_text() == lines.replace(",,", ",10,")
    for bad, words in (
        ("3,-5,8\n", "line 1"),
        ("3,5,8\n\n6,7\n", "line 3: 2 cells, but the first line has 3"),
        ("3,5,8\n6,x,16\n", "line 2"),
    ):
        path.write_text(bad)
        with pytest.raises(A1gmError, match=words):
            a1gm.fit_file(path, header=False)
    path.write_text("3,3\n")
    with pytest.raises(FileFormatError, match="header=False"):
        a1gm.fit_file(path)
