"""What commands share: options, output on any terminal, advice as options."""

import os
import time

import pytest
from support.commands import CSV, run, run_executable
from support.suite import daily

from a1gm.cli import options
from a1gm.cli.options import UsageError, command_style, split_names
from a1gm.exceptions import Call, Option, See


def test_debug_shows_the_traceback():
    for more in ([], ["--debug"]):
        words = run("inspect", CSV / "ragged_short.csv", *more, code=1).stderr
        assert ("Traceback" in words) == bool(more)


def test_names_are_split_at_commas_outside_quotes():
    assert split_names(["a,b", "c"]) == ["a", "b", "c"]
    assert split_names(['"a,b",c']) == ["a,b", "c"]
    assert split_names(None) == []
    assert split_names(['"x\ny",b']) == ["x\ny", "b"]
    with pytest.raises(UsageError, match="a line break must be in double quotes"):
        split_names(["x\ny"])


@pytest.mark.parametrize("name", ["Reading a.csv", "Reading [/red].csv"])
def test_progress_is_shown_on_a_terminal_after_a_second(monkeypatch, capsys, name):
    monkeypatch.setattr(options, "_SHOW_AFTER_SECONDS", 0.0)
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm")
    with options.progress_bar(name, quiet=False) as show:
        show(1000, 0.5)
        show(2000, 1.0)
    words = capsys.readouterr().err
    assert name in words  # the name of a file is not markup
    assert "rows/s" in words


def test_progress_is_shown_before_anything_is_done(monkeypatch, capsys):
    monkeypatch.setattr(options, "_SHOW_AFTER_SECONDS", 0.01)
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm")
    with options.progress_bar("Fitting a.csv", quiet=False):
        time.sleep(0.3)
    assert "Fitting a.csv" in capsys.readouterr().err


@pytest.mark.parametrize("encoding", daily(["cp1252", "ascii", "cp437"], ["ascii"]))
@pytest.mark.parametrize(
    ("command", "out"),
    [
        ("inspect", None),
        ("impute", "o.csv"),
        ("fit", "o"),
        ("assess", None),
        ("report", "o.html"),
        ("demo", "d"),
    ],
)
def test_every_command_speaks_plainly(tmp_path, command, out, encoding):
    (tmp_path / "a.csv").write_text(
        "shop,a,b,c\nA,10,20,\nB,20,,60\nC,30,61,92\nD,,80,119\nE,9,19,31\n"
    )
    arguments = [command] if command == "demo" else [command, "a.csv"]
    done = run_executable(
        *arguments,
        *([] if out is None else ["-o", out]),
        cwd=tmp_path,
        env={**os.environ, "PYTHONIOENCODING": encoding},
        encoding=encoding,
    )
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr
    if command == "inspect":
        assert ("█" if encoding == "cp437" else "#") in done.stdout


GROUPS = Option("by", "g"), Option("keys", ["a", "b"]), Option("value", "c d")


@pytest.mark.parametrize(
    ("part", "words"),
    [
        (Option("missing", ["NULL"]), "--missing NULL"),
        (Option("missing", ["-"]), "--missing '-'"),
        (Option("missing", ["it's"]), """--missing 'it'"'"'s'"""),
        (Option("missing", ["?\x01"]), r"--missing $'?\x01'"),
        (Option("missing", ["it's\x85"]), r"--missing $'it\'s\U00000085'"),
        (Option("max_iter"), "--max-iter"),
        (Option("columns", ["x y", "z"]), "--columns 'x y,z'"),
        (Option("columns", ["a,b", "c"]), "--columns '\"a,b\",c'"),
        (Option("missing", ["a,b", "c"]), "--missing a,b --missing c"),
        (Option("delimiter", "\t"), "--delimiter '\t'"),  # escaped when printed
        (Option("decimal", ","), "--decimal ','"),
        (Option("overwrite", True), "--overwrite"),
        (Option("n_threads", 2), "--threads 2"),
        (
            Call("fit_long", "X", (Option("keys", ["a,b", "c"]), Option("value", "d"))),
            "--long '\"a,b\",c,d'",
        ),
        (
            Call("fit_groups", "X", GROUPS),
            "--long 'a,b,c d' --by g (fit, impute and assess)",
        ),
        (Call("fit_many", "X"), "a1gm.fit_many(X)"),
        (See("fit.undetermined"), "; a1gm report lists them"),
        (See("many.failed"), ""),
    ],
)
def test_parts_are_written_as_options(part, words):
    assert command_style(part) == words


def test_names_of_columns_are_printed_as_they_are(csv):
    path = csv("\"decimal=','\",x\n-1,2\n3,4\n")
    words = run("inspect", path, code=1).stderr
    assert "column \"decimal=','\": -1 is negative" in words
    assert "--missing -1" in words
