"""``a1gm.fit_file``: the fit in memory, in bounded memory."""

from __future__ import annotations

import io
import os
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest
from support.commands import run_python
from support.files import SAME, assert_same_fit, write
from support.tables import gamma_table

import a1gm
from a1gm._observe import accumulate
from a1gm.exceptions import (
    ConvergenceWarning,
    DataError,
    EmptyLineWarning,
    NegativeValuesError,
    ParameterError,
    TableTooLargeError,
)


@pytest.mark.parametrize(
    "name", ["t.parquet", "t.feather", "t.csv", "t.tsv", "t.csv.gz"]
)
def test_every_format_gives_the_fit_in_memory(
    tmp_path: Path, name: str, way: str
) -> None:
    X = gamma_table(500, 9)
    fit = a1gm.fit_file(write(X, tmp_path / name), batch_rows=97)
    assert fit.col_labels == [f"c{j}" for j in range(9)]
    assert_same_fit(fit, X)
    assert fit.pattern.n_missing == int(np.isnan(X).sum())


def test_a_poorly_joined_table_is_solved_by_newton(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(accumulate, "TABLE_BYTES", 1)
    rng = np.random.default_rng(0)
    X = gamma_table(2000, 12, holes=0.3)
    X[:1000, 6:] = np.nan
    X[1000:, :6] = np.nan
    X[1000:, 6] = rng.gamma(2.0, size=1000)
    X[3, 7], X[1500, 2] = 1.0, 2.0
    path = write(X, tmp_path / "t.parquet")
    fit = a1gm.fit_file(path)
    whole = a1gm.fit(X)
    assert fit.solver == whole.solver == "newton"
    assert fit.certificate <= 1e-10
    np.testing.assert_allclose(fit.col_factor, whole.col_factor, rtol=1e-6)
    with pytest.warns(ConvergenceWarning, match="iteration"):
        a1gm.fit_file(path, max_iter=1)


def test_row_factors_are_looked_at_in_pieces(tmp_path: Path, way: str) -> None:
    X = gamma_table(500, 9)
    fit = a1gm.fit_file(write(X, tmp_path / "t.parquet"))
    w = a1gm.fit(X).row_factor
    rows = fit.row_factor
    assert len(rows) == 500
    assert rows.shape == (500,)
    np.testing.assert_allclose(rows[10:20], w[10:20], rtol=SAME)
    np.testing.assert_allclose(rows[::7], w[::7], rtol=SAME)
    np.testing.assert_allclose(rows[[3, 499, -1]], w[[3, 499, -1]], rtol=SAME)
    np.testing.assert_allclose(rows[w > 10], w[w > 10], rtol=SAME)
    np.testing.assert_allclose(list(rows), w, rtol=SAME)
    assert rows[-1] == pytest.approx(w[-1])
    assert rows[5:5].shape == (0,)
    with pytest.raises(IndexError):
        rows[500]


def test_rows_go_by_their_names_or_lines(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("shop,x,y\nA,1,2\n\nB,,\nC,2,\n")
    with pytest.warns(EmptyLineWarning, match="in line 4:"):
        a1gm.fit_file(path, exclude=["shop"])
    with pytest.warns(EmptyLineWarning, match="in row 'B':"):
        fit = a1gm.fit_file(path, id=["shop"])
    assert fit.col_labels == ["x", "y"]
    files = fit._table.source
    assert files.row_labels == ["A", "B", "C"]
    assert (files.n_rows, files.n_cols, files.col_labels) == (3, 2, ["x", "y"])
    assert files.place_of(2) == f"{path}, line 5"
    rows = [(rows, values.shape) for rows, values in files.in_pieces()]
    assert rows == [(slice(0, 3), (3, 2))]


def test_negative_increments_can_be_allowed(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("x,y,z\n10,5,1\n20,-1,\n30,14,\n")
    X = np.array([[10, 5, 1], [20, -1, np.nan], [30, 14, np.nan]])
    with pytest.raises(NegativeValuesError, match=r"missing=\['-1'\].*negatives='all"):
        a1gm.fit_file(path)
    fit = a1gm.fit_file(path, negatives="allow")
    expected = a1gm.fit(X, negatives="allow")
    np.testing.assert_allclose(fit.col_factor, expected.col_factor)
    path.write_text("x,y,z\n5,5,6\n-5,-5,8\n9,6,\n")
    with pytest.raises(DataError, match=r"column 'z'.*sum to 0.*exclude=\['z'\]"):
        a1gm.fit_file(path, negatives="allow")
    path.write_text("x,y,z\n,5,6\n7,,8\n9,-6,\n")
    with pytest.raises(DataError, match=r"a\.csv: .* no closed form"):
        a1gm.fit_file(path, negatives="allow")


def test_standard_input_and_pipes(tmp_path: Path, monkeypatch) -> None:
    text = b"x,y\n1,2\n3,\n"
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(text)))
    np.testing.assert_allclose(a1gm.fit_file("-").col_factor, [1 / 3, 2 / 3])
    os.mkfifo(tmp_path / "pipe")
    feed = threading.Thread(target=(tmp_path / "pipe").write_bytes, args=(text,))
    feed.start()
    fit = a1gm.fit_file(tmp_path / "pipe")
    feed.join()
    np.testing.assert_allclose(fit.col_factor, [1 / 3, 2 / 3])
    assert fit.divergence == pytest.approx(0.0)  # the copy is read again


def test_options_are_checked(tmp_path: Path) -> None:
    path = write(gamma_table(500, 9), tmp_path / "t.csv")
    with pytest.raises(TypeError, match="sep"):
        a1gm.impute_file(path, tmp_path / "out.csv", sep=";")
    with pytest.raises(ParameterError, match="tol"):
        a1gm.fit_file(path, tol=-1.0)


def test_too_many_patterns_for_negative_cells(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(accumulate, "SIGNED_BYTES", 1000)
    path = write(gamma_table(500, 9), tmp_path / "t.parquet")
    with pytest.raises(TableTooLargeError, match=r"negatives='allow'.*exclude="):
        a1gm.fit_file(path, negatives="allow")


def test_a_killed_fit_leaves_no_rows_behind(tmp_path: Path) -> None:
    path, scratch = (
        write(gamma_table(500, 9), tmp_path / "t.parquet"),
        tmp_path / "scratch",
    )
    scratch.mkdir()
    code = (
        "import sys, time, a1gm\n"
        "def wait(rows, part):\n"
        "    print('reading', flush=True); time.sleep(1)\n"
        "a1gm.fit_file(sys.argv[1], batch_rows=50, progress=wait)\n"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", code, str(path)],
        stdout=subprocess.PIPE,
        text=True,
        env=os.environ | {"TMPDIR": str(scratch)},
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "reading\n"
    process.kill()
    process.communicate()
    assert list(scratch.iterdir()) == []


FULL = """
import resource, sys, a1gm
fit = a1gm.fit_file(sys.argv[1])
resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000))
for work in (
    lambda: a1gm.fit_file(sys.argv[1]),
    lambda: a1gm.impute_file(sys.argv[1], sys.argv[2], fit=fit, overwrite=True),
):
    try:
        work()
    except a1gm.exceptions.OutputError as error:
        print(error)
"""


def test_no_room_for_rows_or_results(tmp_path: Path) -> None:
    path, target = (
        write(gamma_table(3000, 9), tmp_path / "t.parquet"),
        tmp_path / "o.csv",
    )
    target.write_text("old")
    done = run_python(FULL, path, target)
    assert "Set TMPDIR to a place with more room" in done.stdout, done.stderr
    assert "o.csv" in done.stdout
    assert target.read_text() == "old"
    assert {file.name for file in tmp_path.iterdir()} == {"t.parquet", "o.csv"}
