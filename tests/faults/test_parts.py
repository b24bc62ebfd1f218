"""Folders of parts and several files: empty, broken, foreign and unlike ones."""

import json
import warnings

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet as pq
import pytest
from support.commands import run
from support.files import SAME

import a1gm
from a1gm.exceptions import (
    A1gmWarning,
    DataHintWarning,
    FileFormatError,
    NotNumericError,
    SkippedWarning,
)

nan = np.nan


EMPTY = (0, 50, 120)
BROKEN = 77


@pytest.fixture
def parts(tmp_path):
    """Hive folders of 200 parts: three empty, one broken, and files beside them."""
    rng, root, tables = np.random.default_rng(0), tmp_path / "parts", []
    for k in range(200):
        folder = root / f"year={2000 + k // 50}"
        folder.mkdir(parents=True, exist_ok=True)
        X = rng.gamma(2.0, size=(0 if k in EMPTY else 5, 4))
        X[rng.random(X.shape) < 0.2] = nan
        columns = {f"c{j}": pa.array(X[:, j], from_pandas=True) for j in range(4)}
        columns = {n: c.cast(pa.float64()) for n, c in columns.items()}
        path = folder / f"part-{k % 50}.parquet"
        pq.write_table(pa.table(columns), path)
        if k == BROKEN:
            path.write_bytes(path.read_bytes()[:-30])
        else:
            tables.append((path, X))
    (root / "_SUCCESS").write_text("")
    (root / ".part-0.crc").write_bytes(b"\0\1")
    (root / "README.txt").write_text("Sales, by shop.\nAsk Ann.\n")
    tables.sort(key=lambda pair: pair[0])
    return root, np.vstack([X for _, X in tables])


def test_74_a_broken_part_stops_and_says_how_to_go_on(parts, tmp_path):
    root, _ = parts
    done = run("impute", root, "-o", tmp_path / "out", code=1)
    assert "year=2001/part-27.parquet is damaged" in done.stderr
    assert "--skip-bad goes on without the file." in done.stderr
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("given", ["folder", "glob", "files"])
def test_74_parts_are_one_table(parts, tmp_path, given):
    root, X = parts
    what = {
        "folder": [root],
        "glob": [f"{root}/*/*.parquet"],
        "files": sorted(root.glob("*/*.parquet")),
    }[given]
    out = tmp_path / "out"
    done = run("impute", *what, "-o", out, "--skip-bad", code=1)
    assert "3 files have no rows" in done.stderr
    last = done.stderr.strip().split("\n")[-1]
    assert last.startswith("a1gm: 1 file was left out: ")
    assert "part-27.parquet is damaged" in last
    if given == "folder":
        assert "1 is no table (README.txt)" in done.stderr
        assert "Hidden files left out: .part-0.crc, _SUCCESS." in done.stderr
    filled = sorted(out.glob("year=*/*.parquet"))  # hive folders keep their places
    assert len(filled) == 196
    tables = [pq.ParquetFile(path).read() for path in filled]
    found = np.vstack([table.to_pandas().values for table in tables])
    whole = a1gm.impute(X, on_undetermined="ignore")
    np.testing.assert_allclose(found, whole, rtol=1e-9)


def test_74_the_library_reads_the_same(parts):
    root, X = parts
    with (
        pytest.warns(SkippedWarning, match="part-27.parquet is damaged"),
        pytest.warns(SkippedWarning, match="3 files have no rows"),
    ):
        fit = a1gm.fit_file(root, skip_bad=True, on_undetermined="ignore")
    whole = a1gm.fit(X, on_undetermined="ignore")
    np.testing.assert_allclose(fit.col_factor, whole.col_factor, rtol=SAME)
    with pytest.raises(FileFormatError, match="skip_bad=True goes on"):
        a1gm.fit_file(root)


def test_74_every_command_and_program_is_told(parts, tmp_path):
    root, X = parts
    done = run("fit", root, "-o", tmp_path / "o", "--skip-bad", "--json", code=1)
    said = [json.loads(line) for line in done.stderr.splitlines()]
    kinds = [line.get("kind") for line in said]
    assert kinds.count("SkippedWarning") == 1
    assert (kinds[-1], said[-1]["exit_code"]) == ("SkippedWarning", 1)
    assert json.loads(done.stdout)["n_rows"] == len(X) == 196 * 5
    assert len(pd.read_csv(tmp_path / "o" / "row_factor.csv")) == len(X)
    for command in ("inspect", "assess"):
        run(command, root, "--skip-bad", code=1)
    with pytest.warns(SkippedWarning):
        a1gm.impute_file(
            root, tmp_path / "lib", skip_bad=True, on_undetermined="ignore"
        )
    assert len(sorted((tmp_path / "lib").glob("year=*/*.parquet"))) == 196


def test_74_ids_in_parts_are_not_data_and_the_first_part_decides(tmp_path):
    for k in range(3):
        folder = tmp_path / f"year={2020 + k}"
        folder.mkdir()
        frame = pd.DataFrame({"id": [3, 1, 2], "x": [1.0, 2, 4], "y": [3.0, nan, k]})
        frame[: 3 * (k > 0)].to_parquet(folder / "part.parquet")  # the first is empty
    with pytest.warns(A1gmWarning) as said:
        fit = a1gm.fit_file(tmp_path)
    assert [w.category for w in said] == [DataHintWarning, SkippedWarning]
    assert fit.col_labels == ["x", "y"]
    assert fit.row_labels == ["3", "1", "2"] * 2


def test_74_a_part_that_breaks_in_its_middle_is_not_counted_in_part(tmp_path):
    good, bad = tmp_path / "a.csv", tmp_path / "b.csv"
    good.write_text("x,y\n5,2\n3,\n")
    rows = "5,2\n3,\n" * 400_000  # several pieces, then a row of another length
    bad.write_text("x,y\n" + rows + "1,2,3\n")
    with pytest.warns(SkippedWarning, match="b.csv, line 800002: 3 cells"):
        fit = a1gm.fit_file([bad, good], skip_bad=True)
    assert fit.shape == (2, 2)


def test_74_strict_and_json(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("shop,x,y\na,1,\nb,,2\n")
    out = tmp_path / "b.csv"
    done = run("impute", path, "-o", out, "--strict", "--json", code=1)
    lines = [json.loads(line) for line in done.stderr.splitlines()]
    assert lines[-1]["level"] == "error"
    assert lines[-1]["kind"] == "UndeterminedError"
    assert lines[-1]["exit_code"] == 1
    assert not out.exists()
    done = run("impute", path, "-o", out, "--json")
    lines = [json.loads(line) for line in done.stderr.splitlines()]
    assert {"warning", "info"} == {line["level"] for line in lines}
    assert json.loads(done.stdout)["n_left"] == 2
    done = run("inspect", tmp_path / "none.csv", "--json", code=2)
    assert json.loads(done.stderr)["kind"] == "MissingFileError"


def test_74_files_that_are_no_tables_are_refused_when_named(tmp_path):
    (tmp_path / "_SUCCESS").write_text("")
    (tmp_path / "README.txt").write_text("Sales, by shop.\nAsk Ann, she knows.\n")
    for name in ("_SUCCESS", "README.txt"):
        run("inspect", tmp_path / name, code=1)
    assert "It has: README.txt" in run("inspect", tmp_path, code=1).stderr
    (tmp_path / "sub").mkdir()
    (tmp_path / "a.txt").write_text("x\ty\n5\t2\n")  # text tables alone are read
    done = run("inspect", tmp_path, "--delimiter", "\\t")
    assert "2 are no tables (README.txt, sub/)" in done.stderr


def test_74_what_is_named_decides_where_filled_files_go(tmp_path):
    folder, one = tmp_path / "parts", tmp_path / "one"
    folder.mkdir(), one.mkdir()
    (folder / "a.csv").write_text("x,y\n1.5,2\n3.5,\n")
    (folder / "b.csv").write_text("x,y\n")  # empty: only one of two is left
    (one / "a.csv").write_text("x,y\n1.5,2\n3.5,\n")
    for source in (folder, one):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            a1gm.impute_file(source, tmp_path / f"{source.name}-filled")
        filled = tmp_path / f"{source.name}-filled" / "a.csv"
        assert filled.read_text().splitlines()[2].startswith("3.5,4.6")


@pytest.mark.parametrize("columns", [None, ["p", "q", "s"]])
@pytest.mark.parametrize("more", ["", "y,1,2,4\n"])
def test_text_in_a_column_of_a_later_file_is_a_bad_cell(tmp_path, columns, more):
    first, later = tmp_path / "a.csv", tmp_path / "b.csv"
    first.write_text("shop,p,q,s\na,1,2,3\nb,2,4,7\n")
    later.write_text(f"shop,p,q,s\nz,1,2,x\n{more}")
    with pytest.raises(FileFormatError) as caught:
        a1gm.fit_file([first, later], columns=columns)
    words = str(caught.value)
    assert "b.csv, line 2, column 's': 'x' is not a number (1 such cell" in words
    assert "pass missing=['x']" in words
    leave_out = "pass exclude=['s']" if columns is None else "leave it out of columns="
    assert leave_out in words
    assert "skip_bad=True goes on without the file." in words
    assert a1gm.fit_file([first, later], columns=columns, missing=["x"]).shape[1] == 3
    with pytest.warns(SkippedWarning, match="line 2, column 's'"):
        fit = a1gm.fit_file([first, later], columns=columns, skip_bad=True)
    np.testing.assert_array_equal(fit.row_factor, a1gm.fit_file(first).row_factor)
    done = run("inspect", first, later, "--json", code=1)
    assert "line 2, column 's': 'x'" in done.stderr
    assert "internal error" not in done.stderr


def test_a_typed_later_file_may_be_told_which_column_to_leave_out(tmp_path):
    first, later = tmp_path / "a.parquet", tmp_path / "b.parquet"
    pd.DataFrame({"p": [1.0, 2.0], "q": [2.0, 4.5], "s": [3.0, 7.5]}).to_parquet(first)
    pd.DataFrame({"p": [1.0], "q": [2.5], "s": ["x"]}).to_parquet(later)
    with pytest.raises(NotNumericError, match=r"b.parquet.*pass exclude=\['s'\]"):
        a1gm.fit_file([first, later])
    assert a1gm.fit_file([first, later], exclude=["s"]).shape == (3, 2)
