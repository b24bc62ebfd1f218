"""Files that are damaged, change, do not fit, or are left half-way.

Numbers of tests are rows of the list of faults.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support.tables import gamma_table

import a1gm
from a1gm._observe import gather as _gather
from a1gm.exceptions import (
    FileFormatError,
    LabelError,
    NotNumericError,
    TableTooLargeError,
)

pytestmark = pytest.mark.timeout(90)


def write(X: np.ndarray, path: Path, names: str = "abcdefgh") -> Path:
    columns = [pa.array(X[:, j], from_pandas=True) for j in range(X.shape[1])]
    table = pa.table(columns, names=list(names[: X.shape[1]]))
    pq.write_table(table, path, row_group_size=100, write_page_checksum=True)
    return path


def damage(kind: str, data: bytes) -> bytes:
    if kind == "truncated":
        return data[: len(data) // 2]
    if kind == "empty":
        return b""
    if kind == "not parquet":
        return b"a,b\n1,2\n"
    if kind == "footer":
        return data[:-400] + bytes(392) + data[-8:]
    flipped = bytearray(data)
    flipped[len(data) // 2] ^= 0x10
    return bytes(flipped)


@pytest.mark.parametrize(
    "kind", ["truncated", "empty", "not parquet", "footer", "corrupt page"]
)
def test_row_43_damaged_parquet_is_refused_by_name(tmp_path: Path, kind: str) -> None:
    path = write(gamma_table(), tmp_path / "t.parquet")
    path.write_bytes(damage(kind, path.read_bytes()))
    says = r"t\.parquet.*row group \d" if kind == "corrupt page" else r"t\.parquet"
    with pytest.raises(FileFormatError, match=says):
        a1gm.fit_file(path)
    with pytest.raises(FileFormatError, match=says):
        a1gm.impute_file(path, tmp_path / "o.parquet")
    assert [file.name for file in tmp_path.iterdir()] == ["t.parquet"]


def test_row_43_damage_between_the_passes(tmp_path: Path) -> None:
    path = write(gamma_table(), tmp_path / "t.parquet")
    fit = a1gm.fit_file(path)
    path.write_bytes(damage("corrupt page", path.read_bytes()))
    with pytest.raises(FileFormatError, match="changed since it was fitted"):
        a1gm.impute_file(path, tmp_path / "o.parquet", fit=fit)
    assert not (tmp_path / "o.parquet").exists()


def test_row_44_schemas_that_drift(tmp_path: Path) -> None:
    X = gamma_table()
    write(X[:200], tmp_path / "1.parquet")
    # The same names in another order are the same table.
    write(X[200:, ::-1], tmp_path / "2.parquet", names="fedcba")
    fit = a1gm.fit_file(tmp_path)
    np.testing.assert_allclose(fit.col_factor, a1gm.fit(X).col_factor, rtol=1e-11)
    a1gm.impute_file(tmp_path, tmp_path / "out")
    assert pq.read_schema(tmp_path / "out" / "2.parquet").names == list("fedcba")
    write(X[:, :5], tmp_path / "2.parquet")
    with pytest.raises(LabelError, match=r"2\.parquet has no column 'f'"):
        a1gm.fit_file(tmp_path)
    write(np.hstack([X, X[:, :1]]), tmp_path / "2.parquet")
    with pytest.raises(LabelError, match=r"2\.parquet has a column 'g'.*columns="):
        a1gm.fit_file(tmp_path)
    with pytest.warns(a1gm.exceptions.SkippedWarning, match="no table"):
        a1gm.fit_file(tmp_path, columns=list("abc"))
    text = pa.table({"a": ["x"], **{name: [1.0] for name in "bcdef"}})
    pq.write_table(text, tmp_path / "2.parquet")
    with pytest.raises(NotNumericError, match=r"2\.parquet: column 'a' holds string"):
        a1gm.fit_file(tmp_path)


def run(code: str, *arguments: object, **options: object) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(code), *map(str, arguments)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        **options,  # type: ignore[call-overload]
    )


PEAK = """
    import sys, a1gm
    steps = []
    fit = a1gm.fit_file(sys.argv[1], progress=lambda rows, part: steps.append(rows))
    a1gm.impute_file(sys.argv[1], sys.argv[1] + ".out.csv", fit=fit)
    # Not ru_maxrss: a child inherits it from the process that started it.
    status = dict(line.split(":") for line in open("/proc/self/status"))
    print(int(status["VmHWM"].split()[0]) // 1024, len(steps), fit.shape[0])
"""


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="needs /proc")
def test_row_48_memory_does_not_grow_with_the_rows(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    rows = np.round(rng.gamma(2.0, size=(20_000, 12)), 6).astype(str)
    rows[rng.random(rows.shape) < 0.2] = ""
    text = "\n".join(",".join(row) for row in rows) + "\n"
    header = ",".join(f"c{j}" for j in range(12)) + "\n"
    peaks = []
    for times in (30, 90):
        path = tmp_path / f"{times}.csv"
        path.write_text(header + times * text)
        out, errors = run(PEAK, path).communicate()
        assert out, errors
        peak, n_steps, n_rows = map(int, out.split())
        assert n_rows == 20_000 * times
        assert n_steps > 2
        peaks.append(peak)
        size = path.stat().st_size >> 20
        path.unlink()
    assert size > 90
    # The larger table has 170 MB of numbers.
    assert peaks[1] - peaks[0] < 60, peaks


SLOW_WRITE = """
    import sys, time, a1gm
    from pyarrow.parquet import ParquetWriter
    write = ParquetWriter.write_batch
    def slow(self, *batch):
        write(self, *batch)
        print("writing", flush=True)
        time.sleep(0.3)
    ParquetWriter.write_batch = slow
    a1gm.impute_file(sys.argv[1], sys.argv[2], batch_rows=50, overwrite=True)
"""


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGKILL])
def test_row_49_an_interrupted_write_leaves_the_old_file(
    tmp_path: Path, how: signal.Signals
) -> None:
    path = write(gamma_table(), tmp_path / "t.parquet")
    target = tmp_path / "o.parquet"
    target.write_text("old")
    process = run(SLOW_WRITE, path, target)
    assert process.stdout is not None
    assert process.stdout.readline() == "writing\n"
    process.send_signal(how)
    assert process.wait(timeout=30) != 0
    process.communicate()
    assert target.read_text() == "old"
    left = {file.name for file in tmp_path.iterdir()} - {"t.parquet", "o.parquet"}
    assert bool(left) == (how == signal.SIGKILL)
    a1gm.impute_file(path, target, overwrite=True)
    assert {file.name for file in tmp_path.iterdir()} == {"t.parquet", "o.parquet"}
    assert pq.read_table(target).num_rows == 400


FULL = """
    import resource, sys, a1gm
    fit = a1gm.fit_file(sys.argv[1])
    resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000))
    try:
        a1gm.fit_file(sys.argv[1])
    except a1gm.exceptions.OutputError as error:
        print(error)
    try:
        a1gm.impute_file(sys.argv[1], sys.argv[2], fit=fit, overwrite=True)
    except a1gm.exceptions.OutputError as error:
        print(error)
"""


def test_row_49_a_write_that_fails_leaves_the_old_file(tmp_path: Path) -> None:
    path = write(gamma_table(3000), tmp_path / "t.parquet")
    target = tmp_path / "o.parquet"
    target.write_text("old")
    out, errors = run(FULL, path, target).communicate()
    assert "Set TMPDIR to a place with more room" in out, errors
    assert "o.parquet" in out, errors
    assert target.read_text() == "old"
    assert {file.name for file in tmp_path.iterdir()} == {"t.parquet", "o.parquet"}


def test_row_49_a_killed_fit_leaves_no_rows_behind(tmp_path: Path) -> None:
    path = write(gamma_table(), tmp_path / "t.parquet")
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    code = """
        import sys, time, a1gm
        def wait(rows, part):
            print("reading", flush=True)
            time.sleep(1)
        a1gm.fit_file(sys.argv[1], batch_rows=50, progress=wait)
    """
    process = run(code, path, env=os.environ | {"TMPDIR": str(scratch)})
    assert process.stdout is not None
    assert process.stdout.readline() == "reading\n"
    process.kill()
    process.communicate()
    assert list(scratch.iterdir()) == []


@pytest.mark.parametrize("name", ["t.parquet", "t.csv"])
def test_row_51_a_file_that_changes_between_the_passes(
    tmp_path: Path, name: str
) -> None:
    X = gamma_table()
    path = tmp_path / name
    if name == "t.csv":
        rows = "\n".join(",".join(map(str, row)) for row in np.nan_to_num(X, nan=1.0))
        path.write_text("a,b,c,d,e,f\n" + rows + "\n")
    else:
        write(X, path)
    fit = a1gm.fit_file(path)
    if name == "t.csv":
        with path.open("a") as file:
            file.write("1,2,3,4,5,6\n")
    else:
        write(X[:-1], path)
    with pytest.raises(FileFormatError, match="changed since it was fitted"):
        a1gm.impute_file(path, tmp_path / "o.csv", fit=fit)
    with pytest.raises(FileFormatError, match="changed while it was being read"):
        _ = fit.divergence
    assert not (tmp_path / "o.csv").exists()


def test_row_51_a_file_that_changes_while_it_is_read(tmp_path: Path) -> None:
    X = gamma_table()
    path = write(X, tmp_path / "t.parquet")

    def grow(rows: int, part: float) -> None:
        os.utime(path, ns=(1, path.stat().st_mtime_ns + 1000))

    with pytest.raises(FileFormatError, match="changed while it was being read"):
        a1gm.fit_file(path, batch_rows=100, progress=grow)
    with pytest.raises(FileFormatError, match="changed while it was being read"):
        a1gm.impute_file(path, tmp_path / "o.parquet", batch_rows=100, progress=grow)
    assert not (tmp_path / "o.parquet").exists()


def test_row_57_masks_that_would_not_fit_on_the_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write(gamma_table(), tmp_path / "t.parquet")
    monkeypatch.setattr(_gather, "TABLE_BYTES", 1)
    little = type("Usage", (), {"free": 1000})()
    monkeypatch.setattr(_gather.shutil, "disk_usage", lambda place: little)
    with pytest.raises(
        TableTooLargeError, match=r"9,600 bytes.*1,000 are free.*TMPDIR"
    ):
        a1gm.fit_file(path)


def test_reading_ahead_stops_with_the_reader(tmp_path: Path) -> None:
    from a1gm._rows.files.read_ahead import read_ahead

    closed = []

    def endless():  # type: ignore[no-untyped-def]
        try:
            yield from range(10**9)
        finally:
            closed.append(True)

    stream = read_ahead(endless())
    assert [next(stream) for _ in range(5)] == list(range(5))
    stream.close()
    deadline = time.monotonic() + 10
    while not closed and time.monotonic() < deadline:
        time.sleep(0.01)
    assert closed

    def failing():  # type: ignore[no-untyped-def]
        yield 1
        raise OSError("gone")

    stream = read_ahead(failing())
    assert next(stream) == 1
    with pytest.raises(OSError, match="gone"):
        next(stream)
