"""Names that terminals and pages would obey, and consoles without UTF-8: 70, 77."""

from __future__ import annotations

import io
import os
from pathlib import Path

import pandas as pd
import pytest
from support.commands import run, run_executable

import a1gm
from a1gm._base.words import listed, shown
from a1gm.cli import options
from a1gm.exceptions import A1gmError

ESCAPE, RIGHT_TO_LEFT = "\x1b[2J", "\u202e"
BAD = ESCAPE + RIGHT_TO_LEFT
SHOWN = r"\x1b[2J\u202e"


def is_clean(text: str) -> bool:
    return all(c.isprintable() or c == "\n" for c in text)


@pytest.fixture
def table(tmp_path: Path) -> Path:
    path = tmp_path / f"t{BAD}.csv"
    header = f'"x{BAD}","y\nwarning: all is well",z\0\n'
    path.write_text(header + "1,2,3\n2,,6\n", encoding="utf-8")
    return path


def test_70_names_are_escaped_and_nothing_else():
    assert shown(f"a{BAD}\0b\nc") == rf"a{SHOWN}\x00b\nc"
    assert shown("año × 日本 \\x1b") == "año × 日本 \\x1b"
    assert shown("a\nb", keep="\n") == "a\nb"
    assert shown("\udcff") == r"\udcff"
    assert listed([f"a{BAD}", 3], most=5) == f"a{SHOWN}, 3"


@pytest.mark.parametrize(
    "arguments",
    [
        ("inspect",),
        ("inspect", "--columns", "q"),
        ("impute", "-o", "{}/out.csv"),
        ("impute", "-o", "{}/out\x1b[1m"),
        ("impute", "-o", "{}"),
        ("impute", "-o", "{}/nowhere\x1b[1m/a.csv"),
        ("impute", "-o", "{}/out.csv", "--model", "{}/model\x1b[1m"),
        ("fit", "-o", "{}/fit\x1b[1m"),
        ("report", "-o", "{}/page\x1b[1m.html"),
    ],
)
def test_70_commands_print_nothing_that_a_terminal_obeys(table, arguments, tmp_path):
    command, *options = (a.replace("{}", str(tmp_path)) for a in arguments)
    done = run_executable(command, table, *options)
    assert is_clean(done.stdout), done.stdout
    assert is_clean(done.stderr), done.stderr
    assert not [x for x in done.stderr.splitlines() if x == "warning: all is well"]
    assert "Traceback" not in done.stderr


def test_70_errors_of_the_library_too(table, tmp_path):
    absent = str(table) + ".csv"
    for call in (
        lambda: a1gm.fit_file(absent),
        lambda: a1gm.fit_file(table, columns=["q"]),
        lambda: a1gm.fit_file([table, table]),
        lambda: a1gm.load(absent),
        lambda: a1gm.load(table),
        lambda: a1gm.impute_file(table, table),
        lambda: a1gm.impute_file(table, f"{tmp_path}/{BAD}/x.csv"),
        lambda: a1gm.fit(pd.DataFrame([[-1.0]], columns=[BAD])),
        lambda: a1gm.fit(pd.DataFrame([["a"]], columns=[BAD])),
    ):
        with pytest.raises(A1gmError) as refused:
            call()
        assert is_clean(str(refused.value)), refused.value
        assert SHOWN in str(refused.value)


@pytest.mark.skipif(os.name == "nt", reason="names that Windows forbids")
def test_70_files_keep_their_names(table, tmp_path):
    other = tmp_path / "u.csv"
    other.write_bytes(table.read_bytes())
    a1gm.impute_file([table, other], tmp_path / "out")
    assert {p.name for p in (tmp_path / "out").iterdir()} == {table.name, "u.csv"}


# -------------------------------------------------------------------------- fault 77
def test_77_what_has_no_plain_character_is_escaped(monkeypatch):
    stream = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    monkeypatch.setattr("sys.stdout", stream)
    options.replace_unprintable()
    stream.write("2 × 3 é")
    stream.flush()
    assert stream.buffer.getvalue() == rb"2 x 3 \xe9"


def test_77_json_is_plain_in_any_case(table):
    done = run("impute", table, "-o", str(table) + "out.csv", "--json")
    assert done.stdout.isascii()
    assert is_clean(done.stdout)
