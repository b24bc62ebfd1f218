"""Files as one table: which columns, which files, and what changes."""

import threading

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support.files import SAME, open_file, read_file

import a1gm
from a1gm._rows.files.source import TableOptions
from a1gm._rows.files.table import hole_shares, read_ahead
from a1gm.exceptions import (
    FileFormatError,
    InfiniteValuesError,
    LabelError,
    NegativeValuesError,
    NotNumericError,
    ParameterError,
    SkippedWarning,
)

nan = np.nan


# -------------------------------------------------------------------- which columns
@pytest.mark.filterwarnings("ignore")  # those of chainladder
def test_an_index_that_to_csv_wrote(tmp_path):
    """RAA, as chain-ladder projects it: a reserve of 52,135, not 54,356."""
    cl = pytest.importorskip("chainladder")
    frame = cl.load_sample("raa").cum_to_incr().to_frame()
    frame.index = range(1981, 1991)
    frame.to_csv(tmp_path / "raa.csv")
    a1gm.impute_file(tmp_path / "raa.csv", tmp_path / "out.csv", negatives="allow")
    filled = pd.read_csv(tmp_path / "out.csv", index_col=0)
    assert filled.values[np.isnan(frame.values)].sum() == pytest.approx(52135.2, abs=1)
    assert list(filled.index) == list(frame.index)


def test_unknown_columns_are_refused(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("x,y\n1,2\n")
    for field in ("columns", "exclude", "id"):
        with pytest.raises(LabelError, match=rf"no column 'q'.*{field}=.*'x', 'y'"):
            read_file(path, **{field: ["q"]})


@pytest.mark.parametrize(
    ("options", "word"),
    [
        ({"decimal": ";"}, "decimal"),
        ({"delimiter": ";;"}, "delimiter"),
        ({"thousands": "1"}, "thousands"),
        ({"thousands": "."}, "both '.'"),
        ({"encoding": "klingon"}, "encoding"),
        ({"columns": [["x"]]}, "not the name of one column"),
        ({"columns": ["x"], "id": ["x"]}, "'x'"),
        ({"columns": ["x", "x"]}, "twice"),
        ({"batch_rows": 0}, "batch_rows"),
    ],
)
def test_bad_options(options, word):
    with pytest.raises(ParameterError, match=word):
        TableOptions(**options)


@pytest.mark.parametrize(
    ("cell", "error", "words"),
    [
        ("-2.5", NegativeValuesError, "-2.5 is negative"),
        ("inf", InfiniteValuesError, "inf"),
    ],
)
def test_bad_values_are_placed_in_the_file(tmp_path, cell, error, words):
    path = tmp_path / "a.csv"
    path.write_text(f'note,x,y\n"two\nlines",1,2\nb,3,{cell}\n')
    _, (_, piece) = open_file(path, batch_rows=1).pieces()
    with pytest.raises(error, match=rf"a\.csv, line 4, column 'y': {words}"):
        piece.check_cells("raise")


# -------------------------------------------------------------------- several files
@pytest.fixture
def parts(tmp_path):
    """Hive folders of parts: two empty, one broken, and files beside them."""
    rng, root, tables = np.random.default_rng(0), tmp_path / "parts", []
    for k in range(12):
        folder = root / f"year={2000 + k // 6}"
        folder.mkdir(parents=True, exist_ok=True)
        X = rng.gamma(2.0, size=(0 if k in (0, 5) else 5, 4))
        X[rng.random(X.shape) < 0.2] = nan
        columns = {f"c{j}": pa.array(X[:, j], from_pandas=True) for j in range(4)}
        columns = {n: c.cast(pa.float64()) for n, c in columns.items()}
        path = folder / f"part-{k % 6}.parquet"
        pq.write_table(pa.table(columns), path)
        if k == 7:
            path.write_bytes(path.read_bytes()[:-30])
        else:
            tables.append(X)
    (root / "_SUCCESS").write_text("")
    (root / "README.txt").write_text("Sales, by shop.\nAsk Ann.\n")
    return root, np.vstack(tables)


@pytest.mark.parametrize("given", ["folder", "glob", "files"])
def test_parts_are_one_table(parts, given):
    root, X = parts
    what = {
        "folder": root,
        "glob": f"{root}/*/*.parquet",
        "files": sorted(root.glob("*/*.parquet")),
    }[given]
    with pytest.raises(FileFormatError, match=r"part-1\.parquet is damaged"):
        a1gm.fit_file(what)
    (root / "year=2001" / "part-1.parquet").unlink()
    what = sorted(root.glob("*/*.parquet")) if given == "files" else what
    with pytest.warns(SkippedWarning, match="2 files have no rows"):
        fit = a1gm.fit_file(what, on_undetermined="ignore")
    whole = a1gm.fit(X, on_undetermined="ignore")
    np.testing.assert_allclose(fit.col_factor, whole.col_factor, rtol=SAME)


def test_filled_parts_keep_their_places(parts, tmp_path):
    root, X = parts
    out = tmp_path / "out"
    with pytest.raises(FileFormatError, match=r"part-1\.parquet is damaged"):
        a1gm.impute_file(root, out, on_undetermined="ignore")
    assert not out.exists()
    (root / "year=2001" / "part-1.parquet").unlink()
    with pytest.warns(SkippedWarning, match=r"1 is not a table \(README\.txt\)"):
        a1gm.impute_file(root, out, on_undetermined="ignore")
    filled = sorted(out.glob("year=*/*.parquet"))
    assert len(filled) == 9
    found = np.vstack([pq.ParquetFile(p).read().to_pandas().values for p in filled])
    whole = a1gm.impute(X, on_undetermined="ignore")
    np.testing.assert_allclose(found, whole, rtol=1e-9)


def test_files_without_a_table_are_not_read(tmp_path):
    (tmp_path / "README.txt").write_text("Sales, by shop.\nAsk Ann, she knows.\n")
    with pytest.raises(FileFormatError, match=r"It has: README\.txt"):
        a1gm.fit_file(tmp_path)
    (tmp_path / "sub").mkdir()
    (tmp_path / "a.txt").write_text("x\ty\n5\t2\n")  # text tables alone are read
    with pytest.warns(SkippedWarning, match=r"2 are not tables \(README.txt, sub/\)"):
        a1gm.fit_file(tmp_path, delimiter="\t")


def test_a_file_with_two_names_is_refused(tmp_path, monkeypatch):
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "a.csv").write_text("x,y\n1,2\n3,4.5\n")
    monkeypatch.chdir(folder)
    for make in ("symlink_to", "hardlink_to"):
        getattr(folder / "b.csv", make)(folder / "a.csv")
        words = "b.csv is the same as .*a.csv; its rows would count twice"
        with pytest.raises(ParameterError, match=words):
            a1gm.fit_file(folder)
        (folder / "b.csv").unlink()
    with pytest.raises(ParameterError, match=r"is the same as a\.csv"):
        a1gm.fit_file(["a.csv", "./a.csv"])
    with pytest.raises(ParameterError, match=r"is the same as a\.csv"):
        a1gm.fit_file(["a.csv", folder / "a.csv"])
    assert a1gm.fit_file(folder).shape == (2, 2)


def test_columns_are_matched_by_name(tmp_path):
    X = np.random.default_rng(0).gamma(2.0, size=(40, 3))
    folder, second = tmp_path / "t", tmp_path / "t" / "2.parquet"
    folder.mkdir()
    pd.DataFrame(X[:20], columns=list("abc")).to_parquet(folder / "1.parquet")
    frame = pd.DataFrame(X[20:], columns=list("abc"))
    frame[list("cba")].to_parquet(second)
    fit = a1gm.fit_file(folder)
    np.testing.assert_allclose(fit.col_factor, a1gm.fit(X).col_factor, rtol=SAME)
    a1gm.impute_file(folder, tmp_path / "out")
    assert pq.read_schema(tmp_path / "out" / "2.parquet").names == list("cba")
    frame[list("ab")].to_parquet(second)
    with pytest.raises(LabelError, match=r"2\.parquet has no column 'c'"):
        a1gm.fit_file(folder)
    frame.assign(d=1.0).to_parquet(second)
    with pytest.raises(LabelError, match=r"2\.parquet has a column 'd'"):
        a1gm.fit_file(folder)
    frame.assign(b="x").to_parquet(second)
    with pytest.raises(NotNumericError, match=r"2.parquet.*exclude=\['b'\]"):
        a1gm.fit_file(folder)
    assert a1gm.fit_file(folder, exclude=["b"]).shape == (40, 2)


@pytest.mark.parametrize("columns", [None, ["p", "q", "s"]])
def test_text_in_a_column_of_a_later_file_is_a_bad_cell(tmp_path, columns):
    first, later = tmp_path / "a.csv", tmp_path / "b.csv"
    first.write_text("shop,p,q,s\na,1,2,3\nb,2,4,7\n")
    later.write_text("shop,p,q,s\nz,1,2,x\n")
    with pytest.raises(FileFormatError) as caught:
        a1gm.fit_file([first, later], columns=columns)
    words = str(caught.value)
    assert "b.csv, line 2, column 's': 'x' is not a number" in words
    assert "pass missing=['x']" in words
    assert a1gm.fit_file([first, later], columns=columns, missing=["x"]).shape[1] == 3


def test_shares_of_missing_cells_are_those_of_the_bands(tmp_path):
    rng = np.random.default_rng(0)
    X = np.where(rng.random((1000, 7)) < 0.3, nan, 1.0)
    path = tmp_path / "a.csv"
    pd.DataFrame(X, columns=list("abcdefg")).to_csv(path, index=False)
    files, progress = open_file(path, batch_rows=77), []
    assert files.n_rows is None
    list(files.pieces(progress=lambda rows, done: progress.append((rows, done))))
    assert progress[-1] == (1000, 1.0)
    assert sum(len(values) for _, values in files.in_pieces()) == files.n_rows == 1000
    rows, columns = np.arange(1000) * 10 // 1000, np.array([0, 0, 0, 1, 1, 1, 1])
    expected = [
        [np.isnan(X[rows == i][:, columns == j]).mean() for j in (0, 1)]
        for i in range(10)
    ]
    np.testing.assert_allclose(hole_shares(files, 10, 2), expected)
    np.testing.assert_array_equal(hole_shares(files, 5000, 64), np.isnan(X))


def test_reading_ahead_stops_with_the_reader():
    closed = threading.Event()

    def endless():
        try:
            yield from range(10**9)
        finally:
            closed.set()

    stream = read_ahead(endless())
    assert [next(stream) for _ in range(5)] == list(range(5))
    stream.close()
    assert closed.wait(10)

    def failing():
        yield 1
        raise OSError("gone")

    stream = read_ahead(failing())
    assert next(stream) == 1
    with pytest.raises(OSError, match="gone"):
        next(stream)


def test_a_negative_cell_may_be_in_a_column_that_is_not_data(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("x,y\n1,2\n-2,3\n")
    with pytest.raises(NegativeValuesError, match=r"exclude=\['x'\]"):
        a1gm.fit_file(path)
    path.write_text("x\n-2\n")
    with pytest.raises(NegativeValuesError) as caught:
        a1gm.fit_file(path)
    assert "exclude" not in str(caught.value)
