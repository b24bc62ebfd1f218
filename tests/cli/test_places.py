"""Tables in files through the command: text as it was, and bad places."""

import os
import shutil
from pathlib import Path

import pytest
from support.commands import CSV, run, run_executable

import a1gm
from a1gm.exceptions import OutputError


@pytest.mark.parametrize(
    ("name", "options", "expected"),
    [
        ("bom.csv", [], b"\xef\xbb\xbfname,x,y,z\nann,1,2,3\nbob,2,4,6\n"),
        ("crlf.csv", [], b"name,x,y,z\r\nann,1,2,3\r\nbob,2,4,6\r\n"),
        (
            "quoted_newlines_good.csv",
            [],
            b'note,x,y\n"first\nsecond",1,2\n"he said ""no"", twice",2,4\nplain,3,6\n',
        ),
    ],
)
def test_accepted_text_tables(name, options, expected, tmp_path):
    run("impute", CSV / name, "-o", tmp_path / "out.csv", *options, "--round", 6)
    assert (tmp_path / "out.csv").read_bytes() == expected


# FAULTS 50: places


@pytest.mark.parametrize(
    ("arguments", "kept"),
    [
        ("fit row_factor.csv -o .", "row_factor.csv"),
        ("fit . -o .", "row_factor.csv"),
        ("fit row_factor.csv -o . --long name,x,y", "row_factor.csv"),
        ("fit row_factor.csv -o . --long name,x,y --by z", "row_factor.csv"),
        ("impute x.csv sub/x.csv -o sub", "sub/x.csv"),
        ("impute x.csv -o .", "x.csv"),
        ("impute x.csv -o x.csv", "x.csv"),
        ("impute b.csv --model x.csv -o x.csv", "x.csv"),
        ("report page.html -o page.html", "page.html"),
        ("report page.html -o link.html", "page.html"),
        ("demo -o .", "sales.csv"),
    ],
)
def test_an_input_is_never_replaced(arguments, kept, tmp_path, monkeypatch):
    """Seen: fit wrote factors over a table that they had read."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "sub").mkdir()
    for name in ("x", "b", "row_factor", "sales", "sub/x", "sub/h"):
        shutil.copy(CSV / "plain.csv", f"{name}.csv")
    shutil.copy(CSV / "plain.csv", "page.html")
    Path("link.html").symlink_to("page.html")
    before = Path(kept).read_bytes()
    is_demo = arguments.startswith("demo")
    done = run(*arguments.split(), *["--overwrite"] * (not is_demo), code=2)
    assert ("sales.csv exists" if is_demo else "is the input itself") in done.stderr
    assert Path(kept).read_bytes() == before


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_folder_that_is_not_writable(tmp_path):
    folder = tmp_path / "locked"
    folder.mkdir(mode=0o555)
    done = run_executable("impute", CSV / "plain.csv", "-o", folder / "x.csv")
    assert done.returncode == 2
    assert "not writable" in done.stderr


def test_results_that_are_new_all_the_same_are_named(tmp_path, monkeypatch):
    def fail(*_, **__):
        raise OutputError("no more")

    monkeypatch.setattr(a1gm.RankOneFit, "save", fail)
    out = tmp_path / "out"
    words = run("fit", CSV / "plain.csv", "-o", out, code=1).stderr
    assert f"no more New in {out}: row_factor.csv, col_factor.csv, " in words
    assert "model" not in {path.stem for path in out.iterdir()}
