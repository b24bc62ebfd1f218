"""Files that are cut off or edited while they are read: rows 51 and 73."""

from __future__ import annotations

import gzip
import os
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import csv, feather, parquet

import a1gm
from a1gm._rows.files import text as text_module
from a1gm.exceptions import FileFormatError

TEXT = "x,y\n" + "1,2\n2,\n" * 5000
SUFFIXES = [".csv", ".csv.gz", ".parquet", ".feather"]


def write(path: Path, text: str = TEXT) -> Path:
    """Write a table; the same number of rows gives the same size."""
    if path.suffix == ".gz":
        path.write_bytes(gzip.compress(text.encode(), 0, mtime=0))
    elif path.suffix == ".csv":
        path.write_text(text)
    else:
        rows = np.genfromtxt(text.splitlines()[1:], delimiter=",")
        table = pa.table({"x": rows[:, 0], "y": pa.array(rows[:, 1], from_pandas=True)})
        if path.suffix == ".parquet":
            plain = {"use_dictionary": False, "compression": "none"}
            parquet.write_table(table, path, **plain, write_statistics=False)
        else:
            feather.write_feather(table, path, compression="uncompressed")
    return path


def edit(path: Path) -> None:
    """Change a number in place; size and time of modification stay."""
    before = path.stat()
    copy = write(path.with_name(f"copy{''.join(path.suffixes)}"), TEXT[:-3] + "9,\n")
    assert copy.stat().st_size == before.st_size
    with path.open("r+b") as file:
        file.write(copy.read_bytes())
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert path.stat().st_size == before.st_size
    assert path.stat().st_mtime_ns == before.st_mtime_ns


def after(call: int, work: Callable[[], object]) -> Callable[[int, float], None]:
    """Do something when so many pieces were read."""
    calls = []

    def progress(rows: int, part: float) -> None:
        calls.append(rows)
        if len(calls) == call:
            work()

    return progress


@pytest.mark.parametrize("suffix", SUFFIXES)
@pytest.mark.parametrize(
    ("is_fitted", "words"),
    [(False, "while it was being read"), (True, "since it was fitted.*fit it again")],
)
def test_an_edit_that_hides(tmp_path, suffix, is_fitted, words):
    path = write(tmp_path / f"t{suffix}")
    fit = a1gm.fit_file(path) if is_fitted else None
    watch = after(1, lambda: edit(path))
    if is_fitted:
        edit(path)
    with pytest.raises(FileFormatError, match=f"changed {words}"):
        a1gm.impute_file(path, tmp_path / "o.csv", fit=fit, progress=watch)
    assert not (tmp_path / "o.csv").exists()


@pytest.mark.parametrize("encoding", ["utf-8", "latin-1"])
@pytest.mark.parametrize("left", [0, 7, 100, 1_000_003])
@pytest.mark.parametrize("pass_", ["first", "second"])
def test_a_file_that_is_cut_off(tmp_path, encoding, left, pass_, monkeypatch):
    monkeypatch.setattr(text_module, "BLOCK_BYTES", 1 << 15)  # 32 are read ahead
    path = tmp_path / "t.csv"
    path.write_text("t,x,y\n" + '"a, b",1,2\n' * 300_000)
    fit = a1gm.fit_file(path, encoding=encoding) if pass_ == "second" else None
    cut = after(2, lambda: os.truncate(path, left))
    with pytest.raises(FileFormatError, match="changed while it was being read"):
        a1gm.impute_file(
            path, tmp_path / "o.csv", fit=fit, progress=cut, encoding=encoding
        )
    assert [file.name for file in tmp_path.iterdir()] == ["t.csv"]


@pytest.mark.parametrize("error", [SystemError, pa.ArrowNotImplementedError, OSError])
@pytest.mark.parametrize("is_cut", [True, False])
def test_whatever_the_reader_says(tmp_path, monkeypatch, error, is_cut):
    """pyarrow was seen to end with a SystemError when a file shrank under it."""
    path = write(tmp_path / "t.csv")
    fit = a1gm.fit_file(path)

    def fail(*_: object, **__: object) -> None:
        if is_cut:
            os.truncate(path, 10)
        raise error("returned a result with an exception set")

    monkeypatch.setattr(csv, "open_csv", fail)
    words = "changed while it was being read" if is_cut else "cannot be read as a table"
    with pytest.raises(FileFormatError, match=words):
        a1gm.impute_file(path, tmp_path / "o.csv", fit=fit)
