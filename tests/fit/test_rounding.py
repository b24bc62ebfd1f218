"""Fills that look like the numbers beside them."""

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import feather
from support.commands import run

import a1gm
from a1gm.exceptions import DataError, ParameterError

nan = np.nan
X = np.array([[3.0, 7.0, 0.1], [2.0, nan, 0.25], [nan, 5.0, nan], [4.0, 9.0, 0.3]])


@pytest.mark.parametrize("kind", [np.asarray, pd.DataFrame, pa.table])
def test_only_filled_cells_of_whole_columns_are_rounded(kind):
    table = (
        kind(X)
        if kind is not pa.table
        else pa.table(dict(zip("abc", X.T, strict=True)))
    )
    fit = a1gm.fit(table)
    plain = np.asarray(fit.impute(table)) if kind is not pa.table else fit.impute(X)
    found = fit.impute(table, round="auto")
    found = np.column_stack([found[c] for c in "abc"]) if kind is pa.table else found
    found = np.asarray(found, float)
    known = ~np.isnan(X)
    np.testing.assert_array_equal(found[known], X[known])
    np.testing.assert_array_equal(found[:, :2], np.round(plain[:, :2]))
    np.testing.assert_allclose(found[:, 2], plain[:, 2])
    assert found[2, 2] != round(found[2, 2], 3)


def test_digits():
    found = a1gm.fit(X).impute(X, round=2)
    holes = np.isnan(X)
    plain = a1gm.impute(X)
    np.testing.assert_array_equal(found[holes], np.round(plain[holes], 2))
    np.testing.assert_array_equal(found[~holes], X[~holes])
    with pytest.raises(ParameterError, match="round must be"):
        a1gm.fit(X).impute(X, round="up")


def test_sparse_tables_are_rounded():
    from scipy.sparse import csr_array

    S = csr_array(X)
    fit = a1gm.fit(S, absent="zero")
    found = fit.impute(S, round="auto").toarray()
    assert found[1, 1] == round(found[1, 1])


@pytest.mark.parametrize("name", ["b.csv", "b.parquet"])
def test_files(tmp_path, name):
    path, out = tmp_path / "a.csv", tmp_path / name
    path.write_text("shop,a,b,c\nA,3,7,0.10\nB,2,,0.25\nC,,5,\nD,4,9,0.30\n")
    a1gm.impute_file(path, out, round="auto")
    plain = a1gm.impute(X)
    if name == "b.csv":
        lines = out.read_text().split()
        assert lines[1] == "A,3,7,0.10"  # observed digits stay
        assert lines[2] == f"B,2,{round(plain[1, 1])},0.25"
        run("impute", path, "-o", out, "--round", 2, "--overwrite")
        assert out.read_text().split()[2] == f"B,2,{round(plain[1, 1], 2)},0.25"
        run("impute", path, "-o", out, "--round", "none", "--overwrite")
        assert float(out.read_text().split()[2].split(",")[2]) == plain[1, 1]
    else:
        kinds = pq.read_schema(out).types
        assert kinds[1:] == [pa.int64(), pa.int64(), pa.float64()]


@pytest.mark.parametrize(
    ("kind", "x", "y"),
    [
        (pa.uint8(), [50, 45, 120], [200, 180, None]),
        (pa.int8(), [1, 2, 100], [3, 6, None]),
        (pa.int64(), [1, 2, 10**12], [10**4, 20_000, None]),
    ],
)
@pytest.mark.parametrize("name", ["out.parquet", "out.feather", "out.csv"])
def test_integers_are_filled_as_int64(tmp_path, kind, x, y, name):
    """Seen: 216 for 472 in a column of uint8."""
    table = pa.table({"x": pa.array(x, kind), "y": pa.array(y, kind)})
    pq.write_table(table, tmp_path / "a.parquet", row_group_size=1)
    out = tmp_path / name
    a1gm.impute_file(tmp_path / "a.parquet", out, round="auto", batch_rows=1)
    want = [*y[:2], round(x[2] * y[0] / x[0])]
    if name == "out.csv":
        cells = [float(line.split(",")[1]) for line in out.read_text().split()[1:]]
        assert cells == want
        return
    read = pq.read_table if name == "out.parquet" else feather.read_table
    found = read(out)
    assert found.schema.types == [kind, pa.int64()]
    assert found["y"].to_pylist() == want


def test_a_fill_that_int64_cannot_hold_is_refused(tmp_path):
    path, out = tmp_path / "a.csv", tmp_path / "b.parquet"
    path.write_text("name,x,y\na,1,10000\nb,2,20000\nc,1000000000000000,\n")
    with pytest.raises(DataError, match="do not fit in int64"):
        a1gm.impute_file(path, out, round="auto")
    assert not out.exists()


def test_a_table_of_whole_numbers_of_rank_one_is_filled_with_whole_numbers():
    """Seen: 9.999999999894333 for 10, in holes without a closed form."""
    T = np.outer([1, 2, 3, 5, 7], [2, 5, 4, 9]).astype(float)
    holes = T.copy()
    holes[[0, 1, 2, 3, 4], [1, 0, 3, 2, 1]] = nan
    found = a1gm.impute(holes)
    np.testing.assert_allclose(found, T, rtol=2e-12)


@pytest.mark.parametrize("digits", [308, 400, -320])
def test_more_digits_than_there_are_are_refused(digits):
    X = np.array([[1.0, 2.0], [2.0, np.nan]])
    with pytest.raises(ParameterError, match="between -17 and 17"):
        a1gm.fit(X).impute(X, round=digits)
