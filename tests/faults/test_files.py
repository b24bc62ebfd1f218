"""Bad files and bad places; interruptions and streams of the real executable."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from support.commands import CSV
from support.commands import run as run_here
from support.commands import run_executable as run


def assert_refused(source, tmp_path, *words):
    """One line of words, no traceback, no file."""
    done = run_here("impute", source, "-o", tmp_path / "out.csv", code=1)
    assert done.stdout == ""
    assert "Traceback" not in done.stderr
    for word in words:
        assert word in done.stderr
    assert [p.name for p in tmp_path.iterdir() if "out" in p.name] == []


# FAULTS 45-47: text tables


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("semicolon.csv", ["line 1", "--delimiter ';'"]),
        ("semicolon_decimal_comma.csv", ["--delimiter ';'", "--decimal ','"]),
        ("thousands.csv", ["line 2, column 'x': '1,234.5'", "--thousands ','"]),
        ("ragged_short.csv", ["line 3: 2 cells"]),
        ("unterminated_quote.csv", ["line 3", "never closed"]),
        ("unterminated_last_cell.csv", ["line 3", "never closed"]),
        ("latin1.csv", ["line 3", "--encoding cp1252"]),
        ("header_only.csv", ["no rows"]),
        ("empty.csv", ["is empty"]),
        ("duplicate_header.csv", ["line 1", "both called 'x'"]),
        ("question_marks.csv", ["line 3, column 'x': '?'", "--missing '?'"]),
        ("null_tokens.csv", ["line 3, column 'x': 'NULL'", "--missing NULL"]),
        ("dashes.csv", ["line 2, column 'y': '-'", "--missing '-'"]),
        ("negative.csv", ["line 3, column 'x': -2.5", "Negative values in data"]),
        ("infinite.csv", ["line 3, column 'x': inf"]),
        ("text_only.csv", ["no numeric column"]),
    ],
)
def test_refused_text_tables(name, words, tmp_path):
    assert_refused(CSV / name, tmp_path, name, *words)


@pytest.mark.parametrize(
    ("name", "options", "expected"),
    [
        ("bom.csv", [], b"\xef\xbb\xbfname,x,y,z\nann,1,2,3\nbob,2,4,6\n"),
        ("crlf.csv", [], b"name,x,y,z\r\nann,1,2,3\r\nbob,2,4,6\r\n"),
        ("question_marks.csv", ["--missing", "?"], None),
        ("null_tokens.csv", ["--missing", "NULL", "--missing", "null"], None),
        ("dashes.csv", ["--missing", "-"], None),
        ("sentinel.csv", ["--missing", "-999"], None),
        (
            "semicolon_decimal_comma.csv",
            ["--delimiter", ";", "--decimal", ","],
            b"name;x;y\nann;1,5;2,25\nbob;3,0;4,5\n",
        ),
        ("latin1.csv", ["--encoding", "latin-1"], (CSV / "latin1.csv").read_bytes()),
        (
            "quoted_newlines_good.csv",
            [],
            b'note,x,y\n"first\nsecond",1,2\n"he said ""no"", twice",2,4\nplain,3,6\n',
        ),
        ("na_tokens.csv", [], b"name,x,y\nann,1,2\nbob,2,4\nNA,3,6\n"),
    ],
)
def test_accepted_text_tables(name, options, expected, tmp_path):
    run_here("impute", CSV / name, "-o", tmp_path / "out.csv", *options)
    written = (tmp_path / "out.csv").read_bytes()
    if expected is None:
        assert b"?" not in written
        assert b"-" not in written
        assert b"NULL" not in written.upper()
    else:
        assert _rounded(written) == expected


def _rounded(text):
    """Filled cells carry the last bits of a floating point division."""
    return re.sub(
        rb"\d+[.,]\d{6,}", lambda m: b"%g" % float(m[0].replace(b",", b".")), text
    ).replace(b"4.5", b"4,5")


# FAULTS 48: larger than memory


# The peak of resource.getrusage would start from that of the test process.
RUN_AND_MEASURE = """
import re
from a1gm.cli import main
from a1gm._rows.files import csv as csv_source, table_file
table_file.MOST_CELLS_KEPT = 100_000
csv_source._BLOCK_BYTES = 1 << 17  # pyarrow reads 32 of them ahead
try:
    main()
except SystemExit as ended:
    assert not ended.code, ended.code
print(re.search("VmHWM:\\s*([0-9]+) kB", open("/proc/self/status").read())[1])
"""


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="needs /proc")
def test_memory_does_not_grow_with_the_rows(tmp_path):
    path = tmp_path / "in.csv"
    peaks = []
    for n_rows in (300_000, 1_200_000):
        with path.open("wb") as file:
            file.write(b"name,a,b,c,d,e,f,g,h\nann,1,2,3,4,5,6,7,8\n")
            file.write(b"bob,1.5,2.25,,4.125,5.5,6,7.5,8\n" * n_rows)
        done = subprocess.run(
            [
                *(sys.executable, "-c", RUN_AND_MEASURE, "impute", path),
                *("-o", tmp_path / "out.csv", "-q", "--overwrite"),
            ],
            capture_output=True,
            text=True,
            timeout=60,
            check=True,
        )
        assert (tmp_path / "out.csv").stat().st_size > path.stat().st_size
        peaks.append(int(done.stdout))
    # 29 MB more of text, 58 MB more of numbers; the reader's own threads are worth
    # some megabytes either way.
    assert peaks[1] - peaks[0] < 20_000


# FAULTS 50: places


def test_an_output_that_exists_needs_overwrite(tmp_path):
    target = tmp_path / "filled.csv"
    target.write_text("old")
    # Refused before the data are read: the input does not matter.
    done = run("impute", CSV / "ragged_short.csv", "-o", target)
    assert done.returncode == 2
    assert "exists" in done.stderr
    assert "--overwrite" in done.stderr
    assert target.read_text() == "old"
    done = run("impute", CSV / "plain.csv", "-o", target, "--overwrite")
    assert done.returncode == 0
    assert target.read_text().startswith("name,")


def test_impossible_outputs(tmp_path):
    source = tmp_path / "in.csv"
    shutil.copy(CSV / "plain.csv", source)
    before = source.read_bytes()
    for target, word in [
        (tmp_path, "is the input itself"),  # a folder gets a file of the same name
        (source, "is the input itself"),
        (tmp_path / "nowhere" / "x.csv", "does not exist"),
        (tmp_path / "x.xlsx", "spreadsheets are read, not written"),
    ]:
        done = run("impute", source, "-o", target, "--overwrite")
        assert done.returncode == 2, done.stderr
        assert word in done.stderr
        assert "Traceback" not in done.stderr
    assert source.read_bytes() == before


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_folder_that_is_not_writable(tmp_path):
    folder = tmp_path / "locked"
    folder.mkdir(mode=0o555)
    done = run("impute", CSV / "plain.csv", "-o", folder / "x.csv")
    assert done.returncode == 2
    assert "not writable" in done.stderr


# Usage


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        (["impute", CSV / "nothing.csv", "-o", "-"], "does not exist"),
        (["impute", CSV / "plain.csv", "-o", "-", "--columns", "q"], "no column 'q'"),
        (["impute", CSV / "plain.csv", "-o", "-", "--decimal", ";"], "decimal"),
        (["impute", CSV / "plain.csv", "-o", "-", "--json"], "standard output"),
        (["impute", CSV / "plain.csv"], "--out"),
        (["inspect", CSV / "plain.csv", "--negatives", "maybe"], "--negatives"),
    ],
)
def test_bad_usage(arguments, word):
    done = run_here(*arguments, code=2)
    assert word in done.stderr
    assert "Traceback" not in done.stderr
    assert done.stdout == ""
