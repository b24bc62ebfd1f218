"""Every odd text table is read exactly, or refused with its line and a remedy."""

from pathlib import Path

import numpy as np
import pytest
from support.files import read_file

from a1gm.exceptions import FileFormatError, NotNumericError

DATA = Path(__file__).parents[2] / "data" / "csv"
nan = np.nan


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
    ("semicolon.csv", {"delimiter": ";"}, "xy", [[1, 2], [3, nan]]),
    (
        "semicolon_decimal_comma.csv",
        {"delimiter": ";", "decimal": ","},
        "xy",
        [[1.5, 2.25], [3, nan]],
    ),
    ("quoted_newlines_good.csv", {}, "xy", [[1, 2], [2, nan], [3, 6]]),
    ("latin1.csv", {"encoding": "latin-1"}, "xy", [[1, 2], [2, 3]]),
    ("latin1_header.csv", {"encoding": "cp1252"}, ["größe", "y"], [[1, 2]]),
    ("utf16.csv", {"encoding": "utf-16"}, "xy", [[1, 2], [2, nan]]),
    ("question_marks.csv", {"missing": ["?"]}, "xy", [[1, 2], [nan, 4], [3, nan]]),
    (
        "null_tokens.csv",
        {"missing": ["NULL", "null"]},
        "xy",
        [[1, 2], [nan, 4], [3, nan]],
    ),
    ("dashes.csv", {"missing": ["-"]}, "xy", [[1, nan], [2, 4]]),
    ("na_tokens.csv", {}, "xy", [[nan, 2], [2, nan], [3, 6]]),
    ("sentinel.csv", {"missing": ["-999"]}, "xy", [[nan, 2], [2, nan], [3, 6]]),
    ("thousands.csv", {"thousands": ","}, "xy", [[1234.5, 2], [12000, 4]]),
    ("thousands_ambiguous.csv", {"thousands": ","}, "xy", [[1234, 2], [17, 4]]),
    ("thousands_ambiguous.csv", {"decimal": ","}, "xy", [[1.234, 2], [17, 4]]),
    ("thousands_space.csv", {"thousands": " "}, "xy", [[1234, 2], [17, 4]]),
    ("spaces.csv", {}, [" x", " y"], [[1, 2], [2, nan]]),
    ("mostly_text.csv", {}, "xy", [[1, 2], [2, nan], [3, 6]]),
    ("one_column.csv", {}, "x", [[1], [nan], [3]]),
    (
        "numbers_as_names.csv",
        {"id": ["year"]},
        "123",
        [[10, 5, 2], [12, 6, nan], [11, nan, nan]],
    ),
    ("plain.csv", {"columns": ["z", "x"]}, "zx", [[3, 1], [6, 2], [nan, 4]]),
    ("plain.csv", {"exclude": ["y"]}, "xz", [[1, 3], [2, 6], [4, nan]]),
    (
        "question_marks.csv",
        {"columns": ["y"], "missing": ["?"]},
        "y",
        [[2], [4], [nan]],
    ),
]


@pytest.mark.parametrize(("name", "options", "names", "values"), ACCEPTED)
@pytest.mark.parametrize("batch_rows", [None, 1])
def test_accepted(name, options, names, values, batch_rows):
    table, found = read(name, batch_rows=batch_rows, **options)
    assert table.names == tuple(names)
    np.testing.assert_array_equal(found, values)


REFUSED = [
    ("duplicate_header.csv", {}, "line 1", "both called 'x'"),
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
    ("dashes.csv", {}, "line 2, column 'y': '-'", "missing=['-']"),
    ("semicolon.csv", {}, "line 1", "delimiter=';'"),
    (
        "semicolon_decimal_comma.csv",
        {},
        "line 2",
        "delimiter=';' and decimal=','",
    ),
    (
        "semicolon_decimal_comma.csv",
        {"delimiter": ";"},
        "line 2, column 'x'",
        "decimal=','",
    ),
    ("thousands.csv", {}, "line 2, column 'x'", "thousands=','"),
    ("thousands_ambiguous.csv", {}, "line 2, column 'x'", "decimal=','"),
    ("thousands_ambiguous.csv", {}, "line 2, column 'x'", "thousands=','"),
    ("thousands_space.csv", {}, "line 2, column 'x'", "thousands=' '"),
    ("quoted_newlines.csv", {}, "line 5, column 'y': '?'", "missing=['?']"),
    ("mostly_text.csv", {"columns": ["note"]}, "line 2", "'ok' is not a number"),
    ("text_only.csv", {}, "text_only.csv", "no numeric column"),
]


@pytest.mark.parametrize(("name", "options", "where", "remedy"), REFUSED)
@pytest.mark.parametrize("batch_rows", [None, 1])
def test_refused(name, options, where, remedy, batch_rows):
    with pytest.raises((FileFormatError, NotNumericError)) as caught:
        read(name, batch_rows=batch_rows, **options)
    assert name in str(caught.value)
    assert where in str(caught.value)
    assert remedy in str(caught.value)


def test_a_point_is_not_believed_under_a_decimal_comma(tmp_path):
    path = tmp_path / "points.csv"
    path.write_text("x;y\n1.5;2,5\n2.5;3\n")
    with pytest.raises(FileFormatError, match="decimal mark: drop decimal="):
        read(path, decimal=",", delimiter=";")


def test_a_column_that_proves_to_be_text_late_restarts_the_pass(tmp_path):
    path = tmp_path / "late.csv"
    path.write_text("x,note\n" + "1,\n" * 5 + "2,word\n" * 5)
    table, values = read(path, batch_rows=2)
    assert table.names == ("x",)
    np.testing.assert_array_equal(values[:, 0], [1] * 5 + [2] * 5)


def test_numeric_but_for_a_few_is_judged_on_the_whole_file(tmp_path):
    path = tmp_path / "few.csv"
    path.write_text("x,y\n" + "word,1\n" * 3 + "7,2\n" * 30)
    for batch_rows in (None, 1, 4):
        with pytest.raises(
            FileFormatError, match=r"line 2, column 'x': 'word'.*3 such cells"
        ):
            read(path, batch_rows=batch_rows)


def test_a_text_column_says_how_many_of_its_cells_are_numbers():
    table, _ = read("mostly_text.csv")
    assert table.passed_through == ("note",)
    assert table.text_columns["note"].n_numbers == 1


@pytest.mark.parametrize("head", [b"x\n", b"x,y\n", b"x\n1\n", b"longer,y\n"])
def test_the_line_of_a_foreign_byte_is_counted_after_short_lines(tmp_path, head):
    path = tmp_path / "short.csv"
    path.write_bytes(head + b"K\xf6ln,1\n")
    line = head.count(b"\n") + 1
    with pytest.raises(FileFormatError, match=rf"line {line}: byte 0xf6 .*\('Köln,1'"):
        read(path)
