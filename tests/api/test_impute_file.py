"""``a1gm.impute_file``: the same files, filled."""

from __future__ import annotations

import cProfile
import io
import os
import threading
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support.files import read_table, write
from support.suite import daily
from support.tables import gamma_table

import a1gm
from a1gm._rows.files import table as table_module
from a1gm._rows.files.source import TableOptions, find_files
from a1gm.exceptions import (
    DataError,
    FileFormatError,
    LabelError,
    NegativeValuesError,
    ParameterError,
    UndeterminedError,
    UndeterminedWarning,
)


@pytest.mark.parametrize("suffix", [".parquet", ".feather", ".csv"])
@pytest.mark.parametrize(
    ("kind", "y"),
    [
        (pa.decimal128(5, 2), [Decimal("6.60"), Decimal("3.30"), None]),
        (pa.decimal128(8, 0), [Decimal(5), Decimal(4), None]),
        (pa.float16(), np.array([50, 100, np.nan], np.float16)),
    ],
)
def test_columns_that_cannot_hold_any_fill_become_float64(
    tmp_path: Path, kind: pa.DataType, y: Any, suffix: str
) -> None:
    """Seen: 0.00 for 1019.18 in a decimal of 5 digits, inf for 200000 in float16."""
    table = pa.table({"x": [1.0, 2, 4000.1], "y": pa.array(y, kind, from_pandas=True)})
    full = pa.array([1, 2, 3], pa.decimal128(8, 2))
    single = pa.array([None, 2, 3], pa.float32())  # which keeps its type
    table = table.append_column("z", full).append_column("s", single)
    pq.write_table(table, tmp_path / "t.parquet")
    out = tmp_path / f"out{suffix}"
    a1gm.impute_file(tmp_path / "t.parquet", out)
    want = a1gm.impute(table)
    found = read_table(out)
    if suffix != ".csv":
        types = [pa.float64(), pa.float64(), full.type, single.type]
        assert found.schema.types == types
    assert found["y"].to_pylist() == pytest.approx(want["y"].to_pylist())
    assert found["y"].to_pylist()[:2] == [float(cell) for cell in y[:2]]  # to the bit


def test_a_fit_in_memory_needs_names(tmp_path: Path) -> None:
    X = gamma_table(500, 9)
    path = write(X, tmp_path / "t.parquet")
    fit = a1gm.fit(X)
    with pytest.raises(LabelError, match="Pass columns= with"):
        a1gm.impute_file(path, tmp_path / "o.parquet", fit=fit)
    names = [f"c{j}" for j in range(9)]
    a1gm.impute_file(path, tmp_path / "o.parquet", fit=fit, columns=names)
    got = read_table(tmp_path / "o.parquet")["c3"].to_numpy()
    np.testing.assert_allclose(got, fit.impute(X)[:, 3], rtol=1e-10)


def test_unknown_cells_stay_missing_and_are_counted(tmp_path: Path, way: str) -> None:
    X = np.array([[1.0, 2.0, np.nan], [2.0, np.nan, np.nan], [np.nan, np.nan, 3.0]])
    path = write(X, tmp_path / "t.parquet")
    with pytest.warns(UndeterminedWarning, match="2 blocks"):
        fit = a1gm.fit_file(path)
    assert fit.fate(0, 2) == "undetermined"
    with pytest.warns(UndeterminedWarning, match=r"2 blocks.*4 missing cells") as said:
        a1gm.impute_file(path, tmp_path / "o.parquet")
    assert len(said) == 1
    assert read_table(tmp_path / "o.parquet")["c2"].null_count == 2
    a1gm.impute_file(path, tmp_path / "q.parquet", fit=fit)  # the fit has warned of it
    with pytest.warns(UndeterminedWarning, match="4 missing cells stay missing"):
        a1gm.impute_file(path, tmp_path / "r.parquet", fit=fit, on_undetermined="warn")
    other = write(X, tmp_path / "other.parquet")
    with pytest.warns(UndeterminedWarning, match="4 missing cells stay missing"):
        a1gm.impute_file(other, tmp_path / "s.parquet", fit=fit)
    with pytest.raises(UndeterminedError, match=r"2 blocks.*4 missing"):
        a1gm.impute_file(path, tmp_path / "p.parquet", on_undetermined="raise")
    assert not (tmp_path / "p.parquet").exists()


def test_bad_places_are_refused_before_reading(tmp_path: Path) -> None:
    path = write(gamma_table(500, 9), tmp_path / "t.parquet")
    with pytest.raises(FileFormatError, match="No file matches"):
        a1gm.fit_file(str(tmp_path / "*.feather"))
    with pytest.raises(ParameterError, match="listed twice"):
        a1gm.fit_file([path, path])
    with pytest.raises(ParameterError, match="empty"):
        a1gm.fit_file([])


@pytest.mark.parametrize("fitted_first", [True, False])
def test_text_of_another_dialect_is_read_and_written_as_it_was(
    tmp_path: Path, fitted_first: bool
) -> None:
    text = "Ort;Jan;Feb\nKöln;1.000,5;2.001,0\nBonn;2,5;{}\n"
    (tmp_path / "a.csv").write_text(text.format("?"), encoding="cp1252")
    how = {"delimiter": ";", "decimal": ",", "thousands": ".", "encoding": "cp1252"}
    fit = a1gm.fit_file(tmp_path / "a.csv", missing=["?"], **how)
    np.testing.assert_allclose(fit.col_factor, [1 / 3, 2 / 3])
    (tmp_path / "b.csv").write_bytes((tmp_path / "a.csv").read_bytes())
    given = fit if fitted_first else None
    a1gm.impute_file(
        tmp_path / "b.csv", tmp_path / "c.csv", fit=given, missing=["?"], **how
    )
    filled = (tmp_path / "c.csv").read_text(encoding="cp1252")
    start, _, end = filled.rstrip().rpartition(";")
    assert start == text.rpartition(";")[0]
    assert float(end.replace(",", ".")) == pytest.approx(5.0)


@pytest.mark.parametrize("fitted_first", [True, False])
def test_whole_numbers_of_text_stay_whole_in_typed_files(
    tmp_path: Path, fitted_first: bool
) -> None:
    path = tmp_path / "a.csv"
    path.write_text("n,x,holes\n1,2,3\n3,4.5,\n5,6,9\n")
    fit = a1gm.fit_file(path) if fitted_first else None
    a1gm.impute_file(path, tmp_path / "o.parquet", fit=fit)
    kinds = read_table(tmp_path / "o.parquet").schema.types
    assert kinds == [pa.int64(), pa.float64(), pa.float64()]


def test_filled_cells_are_marked(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("id,x,y\na,1,2\nb,2,\n")
    a1gm.impute_file(tmp_path / "a.csv", tmp_path / "b.csv", mark=True, id=["id"])
    filled = "id,x,y,y_filled\na,1,2,false\nb,2,4,true\n"
    assert (tmp_path / "b.csv").read_text() == filled
    fit = a1gm.fit_file(tmp_path / "a.csv")
    files = tmp_path / "b.csv", tmp_path / "c.csv"
    with pytest.raises(LabelError, match=r"'y_filled', which mark=True would add"):
        a1gm.impute_file(*files, mark=True, fit=fit, missing=["4"])


def test_streams(tmp_path: Path, monkeypatch) -> None:
    out = io.TextIOWrapper(io.BytesIO())
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"x,y\n1,2\n2,\n")))
    monkeypatch.setattr("sys.stdout", out)
    a1gm.impute_file("-", "-")
    assert out.buffer.getvalue() == b"x,y\n1,2\n2,4\n"
    with pytest.raises(ParameterError, match="is a stream or"):
        a1gm.impute_file(["a.csv", "b.csv"], "-")
    os.mkfifo(tmp_path / "pipe")
    got = []
    sink = threading.Thread(target=lambda: got.append((tmp_path / "pipe").read_bytes()))
    sink.start()
    (tmp_path / "a.csv").write_text("x,y\n1,2\n2,\n")
    a1gm.impute_file(tmp_path / "a.csv", tmp_path / "pipe")
    sink.join()
    assert got == [b"x,y\n1,2\n2,4\n"]


def test_bad_cells_of_new_rows_are_placed(tmp_path: Path) -> None:
    fit = a1gm.fit_file(write(gamma_table(500, 9), tmp_path / "x.parquet"))
    Y = gamma_table(60, 9, seed=2)
    Y[7, 3] = -1.0
    path = write(Y, tmp_path / "y.csv")
    with pytest.raises(NegativeValuesError, match=r"y\.csv, line 9, column 'c3'"):
        a1gm.impute_file(path, tmp_path / "o.csv", fit=fit)
    a1gm.impute_file(path, tmp_path / "o.csv", fit=fit, negatives="allow")
    Y[7, 3] = np.nan
    a1gm.impute_file(path, tmp_path / "p.csv", fit=fit, missing=["-1"])
    got = read_table(tmp_path / "p.csv")["c3"].to_numpy()
    np.testing.assert_allclose(got[7], (fit.transform(Y)[7] * fit.col_factor[3]))


@pytest.mark.parametrize("cells", [0, 2000, 1 << 25])
def test_numbers_kept_between_the_passes_change_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cells: int
) -> None:
    """None, some or all of them."""
    monkeypatch.setattr(table_module, "MOST_CELLS_KEPT", cells)
    X = gamma_table(900, 4) * [1.0, 2.0, 4.0, 8.0]
    write(X, tmp_path / "t.csv")
    a1gm.impute_file(tmp_path / "t.csv", tmp_path / "o.csv", batch_rows=100)
    filled = read_table(tmp_path / "o.csv")
    got = np.column_stack([filled[f"c{j}"].to_numpy() for j in range(4)])
    np.testing.assert_allclose(got, a1gm.fit(X).impute(X), rtol=1e-9)


def test_the_limit_of_kept_numbers_is_that_of_all_files(tmp_path, monkeypatch):
    monkeypatch.setattr(table_module, "MOST_CELLS_KEPT", 5000)
    for k in range(5):
        write(gamma_table(1000, 4), tmp_path / f"{k}.csv")
    files = table_module.TableFiles(
        find_files(tmp_path), TableOptions(), are_read_twice=True
    )
    assert sum(piece.values.size for _, piece in files.pieces()) == 20_000
    assert sum(kept.size for kept in files._kept.values()) == 4000


def test_a_signed_fit_fills_files_with_negative_cells(tmp_path: Path) -> None:
    X = np.array([[100.0, 50.0, 8.0], [110.0, -4.0, np.nan], [120.0, np.nan, np.nan]])
    fit = a1gm.fit(pd.DataFrame(X, columns=list("abc")), negatives="allow")
    pd.DataFrame(X, columns=list("abc")).to_csv(tmp_path / "t.csv", index=False)
    a1gm.impute_file(tmp_path / "t.csv", tmp_path / "o.csv", fit=fit)
    np.testing.assert_allclose(pd.read_csv(tmp_path / "o.csv"), fit.impute(X))


@pytest.mark.parametrize("suffix", daily([".csv", ".parquet"], [".csv"]))
def test_work_grows_with_the_columns_not_with_their_square(tmp_path, suffix):
    def work(path):
        fit = a1gm.fit_file(path)
        a1gm.impute_file(path, path.with_stem("filled"), fit=fit, mark=True)
        a1gm.impute_file(path, path.with_stem("again"), columns=fit.col_labels)

    def calls(n_cols):
        folder = tmp_path / str(n_cols)
        folder.mkdir()
        path = write(gamma_table(12, n_cols, holes=0.1), folder / f"t{suffix}")
        profile = cProfile.Profile()
        profile.runcall(work, path)
        return sum(entry.callcount for entry in profile.getstats())

    calls(10)  # imports what is needed
    assert calls(8_000) < 8 * calls(2_000)  # 4 where linear, 16 where square


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_bounds_of_the_filled_cells_are_added(tmp_path: Path, kind: str) -> None:
    rng = np.random.default_rng(0)
    X = rng.poisson(np.outer(rng.gamma(3, 20, 12), [1.0, 2.0, 3.0])) + 1.0
    X[2, 1] = X[5, 2] = np.nan
    text = "\n".join(",".join("" if np.isnan(v) else f"{v:g}" for v in r) for r in X)
    (tmp_path / "a.csv").write_text(f"x,y,z\n{text}\n")
    out = tmp_path / f"b.{kind}"
    a1gm.impute_file(tmp_path / "a.csv", out, interval=0.9)
    table = read_table(out)
    assert table.column_names == ["x", "y", "z", "y_low", "y_high", "z_low", "z_high"]
    lower, upper = a1gm.fit(X).uncertainty().interval(X, 0.9)
    for name, j, i in (("y", 1, 2), ("z", 2, 5)):
        low, high = (table[f"{name}_{end}"].to_pylist() for end in ("low", "high"))
        assert low[i] == pytest.approx(lower[i, j])
        assert high[i] == pytest.approx(upper[i, j])
        assert [v is None for v in low] == [k != i for k in range(12)]
    with pytest.raises(ParameterError, match="interval= must be between 0 and 1"):
        a1gm.impute_file(tmp_path / "a.csv", out, interval=95)


@pytest.mark.parametrize("was_there", [False, True])
def test_when_one_of_several_files_fails_the_others_are_whole(
    tmp_path: Path, was_there: bool
) -> None:
    tables, out = tmp_path / "tables", tmp_path / "out"
    tables.mkdir()
    for k in range(3):
        (tables / f"{k}.csv").write_text("x,y\n1,2\n2,\n")
    if was_there:
        out.mkdir()
        (out / "0.csv").write_text("old")
        (out / "2.csv").write_text("old")
    calls = []

    def fail_late(rows: int, part: float) -> None:
        calls.append(rows)
        if len(calls) == 5:  # the second pass has written a file
            (tables / "2.csv").write_text("x,y\n1,2\n2,3\n4,\n5,6\n")

    with pytest.raises(FileFormatError, match="changed") as caught:
        a1gm.impute_file(tables, out, overwrite=True, progress=fail_late)
    assert caught.value.__notes__ == [f"New in {out}: 0.csv, 1.csv."]
    assert (out / "1.csv").read_text() == "x,y\n1,2\n2,4\n"
    left = {path.name: path.read_text() for path in out.iterdir()}
    assert left.keys() >= {"0.csv", "1.csv"}
    assert left.get("2.csv") == ("old" if was_there else None)


def test_large_integers_of_typed_files_are_kept_to_the_bit(tmp_path):
    cells = {"a": [2**53 + 1, 2 * 10**16 + 1], "b": [None, 4 * 10**16 + 3]}
    pq.write_table(pa.table(cells), tmp_path / "x.parquet")
    a1gm.impute_file(tmp_path / "x.parquet", tmp_path / "y.parquet")
    out = pq.read_table(tmp_path / "y.parquet")
    assert out.schema.types == [pa.int64(), pa.int64()]
    assert out["a"].to_pylist() == cells["a"]
    assert out["b"].to_pylist()[1] == cells["b"][1]
    long = [Decimal("12345678901234567.89"), None]
    table = pa.table({"a": [1.0, 2.0], "b": long})
    pq.write_table(table, tmp_path / "x.parquet")
    with pytest.raises(DataError, match="without being rounded"):
        a1gm.impute_file(tmp_path / "x.parquet", tmp_path / "z.parquet")
