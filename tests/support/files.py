"""Tables in files: written, read back, and compared with the fit in memory."""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import feather

import a1gm
from a1gm._rows.files.source import TableOptions, find_files
from a1gm._rows.files.table import TableFiles

SAME = 1e-11  # what the design asks of a streamed fit


def open_file(path: Path, **options: object) -> TableFiles:
    """Find one file, or several."""
    return TableFiles(find_files(path), TableOptions(**options))


def read_file(path: Path, **options: object) -> tuple[TableFiles, np.ndarray]:
    """Read files: the table, and its numbers."""
    table = open_file(path, **options)
    arrays = []
    for first_row, piece in table.pieces():
        if first_row == 0:  # the pass may start over
            arrays = []
        arrays.append(piece.values)
    return table, np.vstack(arrays)


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


def read_table(path: Path) -> pa.Table:
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
