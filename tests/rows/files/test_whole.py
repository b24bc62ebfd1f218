"""A small picture of the holes of a large table."""

import numpy as np
from support.files import open_file

from a1gm._rows.files.table import hole_shares


def test_shares_are_those_of_the_bands(tmp_path):
    rng = np.random.default_rng(0)
    X = np.where(rng.random((1000, 7)) < 0.3, np.nan, 1.0)
    path = tmp_path / "a.csv"
    lines = [",".join("" if np.isnan(x) else "1" for x in row) for row in X]
    path.write_text("\n".join(["a,b,c,d,e,f,g", *lines]) + "\n")
    files = open_file(path, batch_rows=77)
    assert files.n_rows is None
    assert sum(len(values) for _, values in files.blocks()) == files.n_rows == 1000
    rows, columns = np.arange(1000) * 10 // 1000, np.array([0, 0, 0, 1, 1, 1, 1])
    expected = [
        [np.isnan(X[rows == i][:, columns == j]).mean() for j in (0, 1)]
        for i in range(10)
    ]
    np.testing.assert_allclose(hole_shares(files, 10, 2), expected)
    np.testing.assert_array_equal(hole_shares(files, 5000, 64), np.isnan(X))
