"""The executable: interruptions, full disks, pipes, standard input, memory."""

import gzip
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from support.commands import A1GM, CSV
from support.commands import run_executable as run
from support.suite import daily

# FAULTS 49: interruptions and full disks


def _start_slow_run(tmp_path, **options):
    """Start a run that reads a table long enough to be interrupted while it writes."""
    source = tmp_path / "in.csv"
    if not source.exists():
        rows = "".join(
            f"{k % 97 + 1},{k % 89 + 2},{k % 83 + 3}\n" for k in range(50_000)
        )
        source.write_text("x,y,z\n" + "1,,3\n" + rows * 30)
    target = tmp_path / "out.csv"
    target.write_text("old\n")
    process = subprocess.Popen(
        [A1GM, "impute", source, "-o", target, "--overwrite"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        **options,
    )
    deadline = time.monotonic() + 30
    while process.poll() is None and time.monotonic() < deadline:
        if _parts(tmp_path):
            return process, target
        time.sleep(0.002)
    pytest.fail(f"the run ended before it wrote: {process.communicate()}")


def _parts(folder):
    return [p for p in folder.iterdir() if p.name.endswith(".a1gm-part")]


@pytest.mark.parametrize(("how", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_an_interrupt_leaves_the_old_file_and_nothing_else(tmp_path, how, code):
    process, target = _start_slow_run(tmp_path)
    process.send_signal(how)
    _, words = process.communicate(timeout=60)
    assert process.returncode == code, words
    assert "Traceback" not in words
    assert target.read_text() == "old\n"
    assert _parts(tmp_path) == []


@pytest.fixture
def small_disk(tmp_path):
    place = tmp_path / "disk"
    place.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", place],
        capture_output=True,
        check=False,
    )
    if mounted.returncode:
        pytest.skip("mounting a small tmpfs needs root")
    yield place
    subprocess.run(["umount", place], check=True)


# FAULTS 51: pipes and files that change


def test_a_closed_pipe_ends_quietly(tmp_path):
    source = tmp_path / "in.csv"
    source.write_text("x,y\n" + "1,2\n" * 400_000)
    process = subprocess.Popen(
        [A1GM, "impute", source, "-o", "-", "-q"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert process.stdout.readline() == b"x,y\n"
    process.stdout.close()
    words = process.stderr.read()
    process.stderr.close()
    assert process.wait(timeout=30) == 0
    assert words == b""


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no full device")
@pytest.mark.parametrize(
    "words",
    daily(
        [
            "--help",
            "fit --help",
            "--version",
            "inspect x.csv",
            "impute x.csv -o -",
            "impute x.parquet -o -",
            "impute large.csv -o -",
            "scale seed.csv --row-totals r.csv --col-totals c.csv -o -",
            "assess x.csv",
            "assess x.csv --json",
            "fit x.csv -o fitted --json",
            "demo -o new",
        ],
        ["--help", "inspect x.csv", "impute large.csv -o -"],
    ),
)
def test_a_full_standard_output(tmp_path, words):
    X = np.outer(np.arange(1.0, 9.0), [1.0, 2.0, 3.0])
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    frame.to_csv(tmp_path / "seed.csv", index=False)
    frame.iloc[1, 1] = np.nan
    frame.to_csv(tmp_path / "x.csv", index=False)
    frame.to_parquet(tmp_path / "x.parquet")
    pd.concat([frame] * 5000).to_csv(tmp_path / "large.csv", index=False)
    (tmp_path / "r.csv").write_text("".join(f"{x}\n" for x in X.sum(1)))
    (tmp_path / "c.csv").write_text("a,36\nb,72\nc,108\n")
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [A1GM, *words.split()],
            cwd=tmp_path,
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    assert done.returncode == 1, done.stderr
    assert "Traceback" not in done.stderr
    assert "internal" not in done.stderr
    last = done.stderr.splitlines()[-1]
    assert "standard output cannot be written: No space left on device." in last


def test_streams(tmp_path):
    text = (CSV / "plain.csv").read_text()
    done = run("impute", "-", "-o", "-", input=text)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("name,x,y,z\nann,1,2,3\n")
    zipped = run(
        "impute", "-", "-o", "-", input=gzip.compress(text.encode()), text=False
    )
    assert zipped.stdout.decode() == done.stdout


def test_a_file_that_is_redirected_to_the_command_is_not_replaced(csv):
    path = csv("x,y\n1,2\n2,\n")
    with path.open() as stdin:
        done = run("impute", "-", "-o", path, "--overwrite", stdin=stdin)
    assert done.returncode == 2
    assert path.read_text().endswith("2,\n")


@pytest.fixture
def scratch(tmp_path, monkeypatch):
    """A folder of its own for temporary files."""
    folder = tmp_path / "scratch"
    folder.mkdir()
    monkeypatch.setenv("TMPDIR", str(folder))
    return folder


@pytest.mark.parametrize("place", ["/proc/self/fd", "/nowhere"])
@pytest.mark.parametrize(
    ("text", "code"), [("", 1), ("x,y\n1,2\n3\n", 1), ("x,y\n1,2\n3,\n", 0)]
)
def test_standard_input_leaves_no_temporary_file(scratch, place, text, code):
    """Also where nameless files cannot be opened again."""
    program = (
        "import sys, pathlib\n"
        "from a1gm._rows.files import source\n"
        f"source._OPEN_FILES = pathlib.Path({place!r})\n"
        "sys.argv = ['a1gm', 'impute', '-', '-o', '-']\n"
        "from a1gm.cli import main\n"
        "main()\n"
    )
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, input=text.encode(), check=False)
    assert done.returncode == code
    assert list(scratch.iterdir()) == []


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
@pytest.mark.parametrize("when", ["copying", "writing"])
def test_standard_input_leaves_nothing_when_it_is_ended(scratch, tmp_path, how, when):
    if how == signal.SIGKILL and not Path("/proc/self/fd").exists():
        pytest.skip("only Linux opens nameless files a second time")
    process = subprocess.Popen(
        [A1GM, "impute", "-", "-o", "-", "-q"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    process.stdin.write(b"x,y\n" + b"1,2\n" * 400_000)
    if when == "copying":
        # More than the pipe holds is taken, then the reader waits for the rest.
        process.stdin.flush()
        time.sleep(0.3)
    else:
        process.stdin.close()
        assert process.stdout.readline() == b"x,y\n"
    process.send_signal(how)
    process.wait(timeout=30)
    for stream in (process.stdin, process.stdout, process.stderr):
        stream.close()
    expected = {signal.SIGINT: 130, signal.SIGTERM: 143, signal.SIGKILL: -9}
    assert process.returncode == expected[how]
    assert list(scratch.iterdir()) == []


def test_standard_input_that_is_closed():
    done = subprocess.run(
        f"{shlex.quote(str(A1GM))} inspect - <&-",
        shell=True,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert done.stderr == "a1gm: <stdin> cannot be read: it is closed.\n"


def test_no_room_for_the_copy_of_standard_input(small_disk, monkeypatch):
    monkeypatch.setenv("TMPDIR", str(small_disk))
    done = run("inspect", "-", input="x,y\n" + "1,2\n" * 100_000)
    assert done.returncode == 1
    assert "Set TMPDIR" in done.stderr
    assert list(small_disk.iterdir()) == []


# FAULTS 48: larger than memory


# The peak of resource.getrusage would start from that of the test process.
RUN_AND_MEASURE = """
import re
from a1gm.cli import main
from a1gm._rows.files import table, text
table.MOST_CELLS_KEPT = 100_000
text.BLOCK_BYTES = 1 << 17  # pyarrow reads 32 of them ahead
try:
    main()
except SystemExit as ended:
    assert not ended.code, ended.code
print(re.search("VmHWM:\\s*([0-9]+) kB", open("/proc/self/status").read())[1])
"""


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="needs /proc")
def test_memory_does_not_grow_with_the_rows(tmp_path):
    path = tmp_path / "in.csv"
    peaks = []
    for n_rows in (300_000, 1_200_000):
        with path.open("wb") as file:
            file.write(b"name,a,b,c,d,e,f,g,h\nann,1,2,3,4,5,6,7,8\n")
            file.write(b"bob,1.5,2.25,,4.125,5.5,6,7.5,8\n" * n_rows)
        done = subprocess.run(
            [
                *(sys.executable, "-c", RUN_AND_MEASURE, "impute", path),
                *("-o", tmp_path / "out.csv", "-q", "--overwrite"),
            ],
            capture_output=True,
            text=True,
            timeout=60,
            check=True,
        )
        assert (tmp_path / "out.csv").stat().st_size > path.stat().st_size
        peaks.append(int(done.stdout))
    # 29 MB more of text, 58 MB more of numbers; the reader's own threads are worth
    # some megabytes either way.
    assert peaks[1] - peaks[0] < 20_000


def test_a_closed_standard_output(tmp_path):
    path = tmp_path / "x.csv"
    path.write_text("a,b\n1,2\n3,\n4,8.5\n")
    for arguments, code in (
        (["inspect", path], 0),
        (["impute", path, "-o", tmp_path / "y.csv"], 0),
        (["impute", path, "-o", "-"], 2),
    ):
        words = shlex.join(map(str, [A1GM, *arguments]))
        done = subprocess.run(
            f"{words} >&-", shell=True, capture_output=True, text=True, check=False
        )
        assert done.returncode == code
        assert "Traceback" not in done.stderr
        assert "internal" not in done.stderr
    assert "standard output, which is closed" in done.stderr
