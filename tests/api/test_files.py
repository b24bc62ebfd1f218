"""Tables in files: the same fit in bounded memory, and the same files filled."""

from __future__ import annotations

import gzip
import pickle
import warnings
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import feather

import a1gm
from a1gm._api import gather as _gather
from a1gm.exceptions import (
    ConvergenceWarning,
    EmptyLineWarning,
    FileFormatError,
    InfiniteValuesError,
    LabelError,
    NegativeValuesError,
    NothingObservedError,
    OutputError,
    ParameterError,
    UndeterminedError,
    UndeterminedWarning,
)

SAME = 1e-11  # what the design asks of a streamed fit

WAYS = ["patterns", "masks", "both"]


@pytest.fixture(params=WAYS)
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Keep a table of patterns, never keep one, or give it up on the way."""
    limit = {"patterns": 1 << 26, "masks": 1, "both": 12_000}[request.param]
    defaults = _gather.Gatherer.__init__.__kwdefaults__
    monkeypatch.setitem(defaults, "table_bytes", limit)
    return str(request.param)


def make_table(
    n: int = 500, m: int = 9, seed: int = 0, holes: float = 0.3
) -> np.ndarray:
    rng = np.random.default_rng(seed)
    X = rng.gamma(2.0, size=(n, m))
    X[rng.random((n, m)) < holes] = np.nan
    X[:, 0] = rng.gamma(2.0, size=n)
    return X


def arrow_table(X: np.ndarray, first: int = 0) -> pa.Table:
    columns = {f"c{j}": pa.array(X[:, j], from_pandas=True) for j in range(X.shape[1])}
    names = pa.array([f"row {first + i}" for i in range(len(X))])
    return pa.table({"name": names, **columns})


def write(X: np.ndarray, path: Path, first: int = 0) -> Path:
    table = arrow_table(X, first)
    if path.suffix == ".parquet":
        pq.write_table(table, path, row_group_size=130, write_page_checksum=True)
    elif path.suffix == ".feather":
        feather.write_feather(table, path, chunksize=130)
    else:
        delimiter = "\t" if ".tsv" in path.name else ","
        lines = [delimiter.join(table.column_names)]
        for row in zip(*(c.to_pylist() for c in table.columns), strict=True):
            cells = ["" if cell is None else str(cell) for cell in row]
            lines.append(delimiter.join(cells))
        text = "\n".join(lines) + "\n"
        if path.suffix == ".gz":
            path.write_bytes(gzip.compress(text.encode()))
        else:
            path.write_text(text)
    return path


def read(path: Path) -> pa.Table:
    if path.suffix == ".parquet":
        return pq.read_table(path, page_checksum_verification=True)
    if path.suffix == ".feather":
        return feather.read_table(path)
    from pyarrow import csv

    delimiter = "\t" if ".tsv" in path.name else ","
    return csv.read_csv(path, parse_options=csv.ParseOptions(delimiter=delimiter))


def assert_same_fit(fit: a1gm.RankOneFit, X: np.ndarray, rtol: float = SAME) -> None:
    whole = a1gm.fit(X, on_undetermined="ignore")
    np.testing.assert_allclose(fit.col_factor, whole.col_factor, rtol=rtol)
    np.testing.assert_allclose(np.asarray(fit.row_factor), whole.row_factor, rtol=rtol)
    assert fit.certificate <= 1e-10
    assert fit.shape == X.shape
    assert fit.n_blocks == whole.n_blocks
    np.testing.assert_array_equal(fit.row_block, whole.row_block)
    np.testing.assert_array_equal(fit.col_block, whole.col_block)
    assert list(fit.undetermined) == list(whole.undetermined)
    assert fit.n_undetermined == whole.n_undetermined
    assert fit.attained == whole.attained
    np.testing.assert_allclose(fit.divergence, whole.divergence, rtol=1e-10)


@pytest.mark.parametrize(
    "name", ["t.parquet", "t.feather", "t.csv", "t.tsv", "t.csv.gz"]
)
def test_every_format_gives_the_fit_in_memory(
    tmp_path: Path, name: str, way: str
) -> None:
    X = make_table()
    fit = a1gm.fit_file(write(X, tmp_path / name), batch_rows=97)
    assert fit.col_labels == [f"c{j}" for j in range(9)]
    assert_same_fit(fit, X)
    assert fit.pattern.n_missing == int(np.isnan(X).sum())


def test_tables_with_odd_corners(tmp_path: Path, way: str) -> None:
    rng = np.random.default_rng(3)
    for trial in range(12):
        X = rng.poisson(0.7, size=(40, 7)).astype(float)
        X[rng.random(X.shape) < 0.55] = np.nan
        X[0, 0] = 1.0
        path, out = tmp_path / f"{trial}.parquet", tmp_path / f"f{trial}.parquet"
        write(X, path)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", a1gm.exceptions.A1gmWarning)
            fit = a1gm.fit_file(path, batch_rows=9)
            a1gm.impute_file(path, out)
            want = a1gm.fit(X).impute(X)
            # Both are solved to a certificate of 1e-10, no closer.
            assert_same_fit(fit, X, rtol=1e-9)
            np.testing.assert_allclose(fit.impute(X), want, rtol=1e-9)
        table = read(out)
        got = np.column_stack(
            [table[f"c{j}"].to_numpy(zero_copy_only=False) for j in range(7)]
        )
        np.testing.assert_allclose(got, want, rtol=1e-9)


def test_a_poorly_joined_table_is_solved_by_newton(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    defaults = _gather.Gatherer.__init__.__kwdefaults__
    monkeypatch.setitem(defaults, "table_bytes", 1)
    rng = np.random.default_rng(0)
    X = make_table(2000, 12, holes=0.3)
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
    with pytest.warns(ConvergenceWarning, match="sweeps over the mask"):
        a1gm.fit_file(path, max_iter=3)


def test_a_folder_a_list_and_a_glob_are_one_table(tmp_path: Path, way: str) -> None:
    X = make_table()
    folder = tmp_path / "parts"
    folder.mkdir()
    starts = [0, 200, 210]
    for k, (start, stop) in enumerate(zip(starts, [200, 210, 500], strict=True)):
        write(X[start:stop], folder / f"part-{k}.parquet", start)
    (folder / "_SUCCESS").write_text("")
    listed = [folder / f"part-{k}.parquet" for k in range(3)]
    for source in (folder, str(folder / "*.parquet"), listed):
        fit = a1gm.fit_file(source, batch_rows=100)
        assert_same_fit(fit, X)
    done = a1gm.impute_file(folder, tmp_path / "out", fit=fit)
    assert done is fit
    tables = [read(tmp_path / "out" / f"part-{k}.parquet") for k in range(3)]
    assert [t.num_rows for t in tables] == [200, 10, 290]
    filled = pa.concat_tables(tables)
    assert filled["name"].to_pylist()[205] == "row 205"
    want = a1gm.fit(X).impute(X)
    got = np.column_stack([filled[f"c{j}"].to_numpy() for j in range(9)])
    np.testing.assert_allclose(got, want, rtol=1e-10)


@pytest.mark.parametrize("name", ["t.parquet", "t.feather", "t.csv", "t.tsv"])
def test_filled_files_keep_everything_else(tmp_path: Path, name: str) -> None:
    X = make_table()
    path = write(X, tmp_path / name)
    out = tmp_path / f"out{path.suffix}"
    fit = a1gm.impute_file(path, out, batch_rows=90)
    before, after = read(path), read(out)
    assert after.schema.names == before.schema.names
    assert after["name"].equals(before["name"])
    want = fit.impute(X)
    for j in range(9):
        cells = after[f"c{j}"].to_numpy()
        np.testing.assert_allclose(cells, want[:, j], rtol=1e-12)
        seen = ~np.isnan(X[:, j])
        assert np.array_equal(cells[seen], X[seen, j])


def test_types_are_kept_where_they_can_hold_a_fraction(tmp_path: Path) -> None:
    table = pa.table(
        {
            "single": pa.array([1.0, None, 3.0], pa.float32()),
            "whole": pa.array([1, 2, 3], pa.int32()),
            "holes": pa.array([1, None, 3], pa.int64()),
            "text": ["a", "b", "c"],
        }
    )
    pq.write_table(table, tmp_path / "t.parquet")
    a1gm.impute_file(tmp_path / "t.parquet", tmp_path / "o.parquet")
    kinds = read(tmp_path / "o.parquet").schema.types
    assert kinds == [pa.float32(), pa.int32(), pa.float64(), pa.string()]


def test_written_parquet_has_page_checksums(tmp_path: Path) -> None:
    path = write(make_table(), tmp_path / "t.parquet")
    a1gm.impute_file(path, tmp_path / "o.parquet")
    data = bytearray((tmp_path / "o.parquet").read_bytes())
    data[len(data) // 3] ^= 1
    (tmp_path / "o.parquet").write_bytes(bytes(data))
    with pytest.raises(FileFormatError, match=r"o\.parquet is damaged: row group"):
        a1gm.fit_file(tmp_path / "o.parquet")


def test_row_factors_are_looked_at_in_pieces(tmp_path: Path, way: str) -> None:
    X = make_table()
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
    with pytest.raises(IndexError, match="outside the 500 rows"):
        rows[500]
    assert "500 rows" in repr(rows)


def test_a_fit_travels_with_its_rows(tmp_path: Path, way: str) -> None:
    X = make_table()
    fit = a1gm.fit_file(write(X, tmp_path / "t.parquet"))
    again = pickle.loads(pickle.dumps(fit))
    assert np.array_equal(np.asarray(again.row_factor), np.asarray(fit.row_factor))
    assert repr(again) == repr(fit)


def test_frames_of_the_factors(tmp_path: Path, way: str) -> None:
    X = make_table()
    fit = a1gm.fit_file(write(X, tmp_path / "t.parquet"))
    for backend in ("pandas", "polars", "pyarrow"):
        rows, columns = fit.to_frame(backend)
        assert (len(rows), len(columns)) == X.shape


def test_a_fit_of_other_rows_fills_by_their_own_cells(tmp_path: Path) -> None:
    X, Y = make_table(seed=1), make_table(60, seed=2)
    fit = a1gm.fit_file(write(X, tmp_path / "x.parquet"))
    a1gm.impute_file(write(Y, tmp_path / "y.csv"), tmp_path / "o.csv", fit=fit)
    filled = read(tmp_path / "o.csv")
    want = np.where(np.isnan(Y), np.outer(fit.transform(Y), fit.col_factor), Y)
    got = np.column_stack([filled[f"c{j}"].to_numpy() for j in range(9)])
    np.testing.assert_allclose(got, want, rtol=1e-10)


def test_a_fit_in_memory_needs_names(tmp_path: Path) -> None:
    X = make_table()
    path = write(X, tmp_path / "t.parquet")
    fit = a1gm.fit(X)
    with pytest.raises(LabelError, match=r"columns=\[\.\.\.\]"):
        a1gm.impute_file(path, tmp_path / "o.parquet", fit=fit)
    names = [f"c{j}" for j in range(9)]
    a1gm.impute_file(path, tmp_path / "o.parquet", fit=fit, columns=names)
    got = read(tmp_path / "o.parquet")["c3"].to_numpy()
    np.testing.assert_allclose(got, fit.impute(X)[:, 3], rtol=1e-10)


def test_unknown_cells_stay_missing_and_are_counted(tmp_path: Path, way: str) -> None:
    X = np.array([[1.0, 2.0, np.nan], [2.0, np.nan, np.nan], [np.nan, np.nan, 3.0]])
    path = write(X, tmp_path / "t.parquet")
    with pytest.warns(UndeterminedWarning, match="2 blocks"):
        fit = a1gm.fit_file(path)
    assert fit.fate(0, 2) == "undetermined"
    with pytest.warns(UndeterminedWarning, match="4 missing cells stay missing"):
        a1gm.impute_file(path, tmp_path / "o.parquet")
    assert read(tmp_path / "o.parquet")["c2"].null_count == 2
    a1gm.impute_file(path, tmp_path / "q.parquet", fit=fit)  # the fit has warned of it
    with pytest.warns(UndeterminedWarning, match="4 missing cells stay missing"):
        a1gm.impute_file(path, tmp_path / "r.parquet", fit=fit, on_undetermined="warn")
    other = write(X, tmp_path / "other.parquet")
    with pytest.warns(UndeterminedWarning, match="4 missing cells stay missing"):
        a1gm.impute_file(other, tmp_path / "s.parquet", fit=fit)
    with pytest.raises(UndeterminedError, match="4 missing"):
        a1gm.impute_file(path, tmp_path / "p.parquet", on_undetermined="raise")
    assert not (tmp_path / "p.parquet").exists()


def test_empty_rows_and_columns_are_named(tmp_path: Path, way: str) -> None:
    X = make_table(50, 4)
    X[7], X[:, 2] = np.nan, np.nan
    with pytest.warns(EmptyLineWarning, match="row 7 and column .c2.:"):
        fit = a1gm.fit_file(write(X, tmp_path / "t.parquet"))
    assert np.isnan(fit.row_factor[7])
    assert np.isnan(fit.col_factor[2])


def test_nothing_observed_is_refused(tmp_path: Path, way: str) -> None:
    path = write(np.full((3, 2), np.nan), tmp_path / "t.parquet")
    with pytest.raises(NothingObservedError):
        a1gm.fit_file(path)


def test_all_zero_is_accepted(tmp_path: Path, way: str) -> None:
    fit = a1gm.fit_file(write(np.zeros((3, 2)), tmp_path / "t.parquet"))
    np.testing.assert_array_equal(fit.col_factor, [0.5, 0.5])
    np.testing.assert_array_equal(np.asarray(fit.row_factor), 0.0)
    assert fit.divergence == 0.0


def test_huge_and_tiny_numbers(tmp_path: Path, way: str) -> None:
    X = make_table()
    X[:100] *= 1e305
    X[100:200] *= 1e-300
    fit = a1gm.fit_file(write(X, tmp_path / "t.parquet"), batch_rows=100)
    whole = a1gm.fit(X)
    np.testing.assert_allclose(fit.col_factor, whole.col_factor, rtol=SAME)
    np.testing.assert_allclose(fit.row_factor[:100], whole.row_factor[:100], rtol=SAME)


@pytest.mark.parametrize(
    ("value", "error"), [(-2.0, NegativeValuesError), (np.inf, InfiniteValuesError)]
)
@pytest.mark.parametrize("name", ["t.parquet", "t.csv"])
def test_bad_cells_are_placed(
    tmp_path: Path, name: str, value: float, error: type[Exception]
) -> None:
    X = make_table()
    X[333, 4] = value
    path = write(X, tmp_path / name)
    place = "line 335" if name == "t.csv" else r"row 333 \(row group 2\)"
    with pytest.raises(error, match=rf"{name}, {place}, column 'c4'"):
        a1gm.fit_file(path, batch_rows=50)
    with pytest.raises(error):
        a1gm.impute_file(path, tmp_path / "o.csv")
    assert not (tmp_path / "o.csv").exists()


def test_columns_missing_tokens_and_progress(tmp_path: Path) -> None:
    X = make_table()
    Y = np.where(np.isnan(X), -999.0, X)
    seen: list[tuple[int, float]] = []
    fit = a1gm.fit_file(
        write(Y, tmp_path / "t.parquet"),
        columns=["c0", "c3", "c1"],
        missing=["-999"],
        batch_rows=100,
        progress=lambda rows, part: seen.append((rows, part)),
    )
    np.testing.assert_allclose(fit.col_factor, a1gm.fit(X[:, [0, 3, 1]]).col_factor)
    assert [rows for rows, _ in seen][-1] == 500
    assert seen[-1][1] == pytest.approx(1.0)
    left = a1gm.fit_file(tmp_path / "t.parquet", exclude=["c0"], missing=["-999"])
    assert left.col_labels == [f"c{j}" for j in range(1, 9)]


def test_a_column_that_turns_out_to_be_text(tmp_path: Path, way: str) -> None:
    X = make_table(3000, 4)
    path = write(X, tmp_path / "t.csv")
    header, *lines = path.read_text().splitlines()
    notes = [""] * 900 + ["late"] * 2100
    text = [f"{line},{note}" for line, note in zip(lines, notes, strict=True)]
    path.write_text("\n".join([header + ",note", *text]) + "\n")
    fit = a1gm.fit_file(path, batch_rows=300)
    assert fit.col_labels == ["c0", "c1", "c2", "c3"]
    assert_same_fit(fit, X)
    a1gm.impute_file(path, tmp_path / "o.csv", fit=fit)
    assert read(tmp_path / "o.csv")["note"].to_pylist()[-1] == "late"


def test_bad_places_are_refused_before_reading(tmp_path: Path) -> None:
    path = write(make_table(), tmp_path / "t.parquet")
    (tmp_path / "old.parquet").write_text("old")
    with pytest.raises(OutputError, match="exists"):
        a1gm.impute_file(path, tmp_path / "old.parquet")
    with pytest.raises(OutputError, match="input itself"):
        a1gm.impute_file(path, path, overwrite=True)
    with pytest.raises(ParameterError, match="extension"):
        a1gm.impute_file(path, tmp_path / "t.xyz")
    with pytest.raises(FileFormatError, match="No file matches"):
        a1gm.fit_file(str(tmp_path / "*.feather"))
    with pytest.raises(ParameterError, match="given twice"):
        a1gm.fit_file([path, path])
    with pytest.raises(ParameterError, match="empty"):
        a1gm.fit_file([])
    a1gm.impute_file(path, tmp_path / "old.parquet", overwrite=True)


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


def test_zeros_given_up_are_counted_and_named(tmp_path: Path, way: str) -> None:
    X = np.array(
        [[0.0, 0.0, np.nan], [0.0, 5.0, 0.0], [5.0, np.nan, np.nan], [0.0, 3.0, np.nan]]
    )
    with pytest.warns(UndeterminedWarning) as said:
        fit = a1gm.fit_file(write(X, tmp_path / "t.parquet"))
    expected = a1gm.fit(X, on_undetermined="ignore")
    assert not fit.attained
    n = expected._given_up.n
    assert fit._given_up.n == n > 0
    assert fit._given_up.first() == expected._given_up.first() == (1, 0)
    words = str(said[-1].message)
    assert f"{n} observed zeros, the first at (1, 'c0'), can only be" in words
