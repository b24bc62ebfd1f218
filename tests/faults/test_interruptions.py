"""Interruptions, full disks, pipes and standard input of the real executable."""

import gzip
import shlex
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from support.commands import A1GM, CSV
from support.commands import run_executable as run

from a1gm._base.bits import pack_bits
from a1gm._kernel import is_compiled, kernel

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


def test_kill_leaves_the_old_file_and_the_next_run_cleans_up(tmp_path):
    process, target = _start_slow_run(tmp_path)
    process.send_signal(signal.SIGKILL)
    process.communicate(timeout=10)
    assert process.returncode == -signal.SIGKILL
    assert target.read_text() == "old\n"
    assert _parts(tmp_path)
    done = run("impute", CSV / "plain.csv", "-o", target, "--overwrite")
    assert done.returncode == 0, done.stderr
    assert target.read_text().startswith("name,x,y,z\n")
    assert _parts(tmp_path) == []


def test_interrupt_leaves_the_old_file_and_nothing_else(tmp_path):
    process, target = _start_slow_run(tmp_path)
    process.send_signal(signal.SIGINT)
    _, words = process.communicate(timeout=10)
    assert process.returncode == 130, words
    assert "interrupted" in words
    assert "Traceback" not in words
    assert target.read_text() == "old\n"
    assert _parts(tmp_path) == []


def test_termination_leaves_the_old_file_and_nothing_else(tmp_path):
    process, target = _start_slow_run(tmp_path)
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=10)
    assert process.returncode == 128 + signal.SIGTERM
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


@pytest.mark.skipif(shutil.which("mount") is None, reason="no mount command")
@pytest.mark.parametrize("name", ["out.csv", "out.parquet", "out.csv.gz"])
def test_a_full_disk_is_told_in_words(small_disk, tmp_path, name):
    source = tmp_path / "in.csv"
    numbers = np.random.default_rng(0).random((20_000, 3))
    np.savetxt(source, numbers, delimiter=",", header="x,y,z", comments="")
    done = run("impute", source, "-o", small_disk / name)
    assert done.returncode == 1
    assert "disk is full" in done.stderr
    assert "Traceback" not in done.stderr
    assert list(small_disk.iterdir()) == []


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


def test_standard_input_at_its_end():
    done = run("impute", "-", "-o", "-", input="")
    assert done.returncode == 1
    assert "<stdin> is empty" in done.stderr
    assert done.stdout == ""


def test_streams(tmp_path):
    text = (CSV / "plain.csv").read_text()
    done = run("impute", "-", "-o", "-", input=text)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("name,x,y,z\nann,1,2,3\n")
    zipped = run(
        "impute", "-", "-o", "-", input=gzip.compress(text.encode()), text=False
    )
    assert zipped.stdout.decode() == done.stdout


def test_a_file_that_changes_between_the_passes_is_refused(tmp_path):
    process, target = _start_slow_run(tmp_path)
    with (tmp_path / "in.csv").open("a") as file:
        file.write("1,2,3\n")
    _, words = process.communicate(timeout=30)
    assert process.returncode == 1, words
    assert "changed while" in words
    assert target.read_text() == "old\n"
    assert _parts(tmp_path) == []


@pytest.fixture
def scratch(tmp_path, monkeypatch):
    """A folder of its own for temporary files."""
    folder = tmp_path / "scratch"
    folder.mkdir()
    monkeypatch.setenv("TMPDIR", str(folder))
    return folder


@pytest.mark.parametrize(
    ("text", "code"), [("", 1), ("x,y\n1,2\n3\n", 1), ("x,y\n1,2\n3,\n", 0)]
)
def test_standard_input_leaves_no_temporary_file(scratch, text, code):
    done = run("impute", "-", "-o", "-", input=text)
    assert done.returncode == code, done.stderr
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


def test_a_named_copy_of_standard_input_is_removed_on_errors(scratch):
    """Where nameless files cannot be opened again."""
    code = (
        "import sys, pathlib\n"
        "from a1gm._rows.files import origin\n"
        "origin._OPEN_FILES = pathlib.Path('/nowhere')\n"
        "sys.argv = ['a1gm', 'inspect', '-']\n"
        "from a1gm.cli import main\n"
        "main()\n"
    )
    for text, returned in (("", 1), ("x,y\n1,2\n3\n", 1), ("x,y\n1,2\n3,\n", 0)):
        done = subprocess.run(
            [sys.executable, "-c", code],
            input=text,
            text=True,
            capture_output=True,
            check=False,
        )
        assert done.returncode == returned, done.stderr
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


# FAULTS 78: Ctrl-C inside a long native step


class _Enough(Exception):
    """What a signal raises here in place of KeyboardInterrupt."""


@pytest.fixture
def stopped_after():
    """Send a signal after some seconds; tell how long the work went on."""

    def raise_enough(*_):
        raise _Enough

    def measure(seconds, work):
        signal.setitimer(signal.ITIMER_REAL, seconds)
        started = time.monotonic()
        with pytest.raises(_Enough):
            work()
        return time.monotonic() - started - seconds

    before = signal.signal(signal.SIGALRM, raise_enough)
    yield measure
    signal.setitimer(signal.ITIMER_REAL, 0)
    signal.signal(signal.SIGALRM, before)


needs_compiler = pytest.mark.skipif(
    not is_compiled, reason="NumPy is interrupted anyway"
)


@needs_compiler
@pytest.mark.parametrize("n_threads", [1, 2])
@pytest.mark.parametrize("holes", [0.0, 0.1])
def test_a_pass_is_interrupted(stopped_after, holes, n_threads):
    rng = np.random.default_rng(0)
    row = np.where(rng.random((1, 20_000)) < holes, np.nan, 1.0)
    part = (np.broadcast_to(row, (400_000, 20_000)), None, None, 0, 0)  # seconds long
    late = stopped_after(
        0.1, lambda: kernel.observe([part], 1, n_threads, 1.0, 1 << 20, False)
    )
    assert late < 1.0
    few = (part[0][:100], *part[1:])  # the next call is not stopped
    row_sums, *_ = kernel.observe([few], 1, n_threads, 1.0, 1 << 20, False)
    np.testing.assert_array_equal(row_sums, np.full((1, 100), np.nansum(row)))


@needs_compiler
def test_peeling_is_interrupted(stopped_after):
    n = 2_000_000
    first = np.random.default_rng(0).integers(0, n - 2, n)
    cols = (first[:, None] + np.arange(3)).astype(np.int32).ravel()
    ptr, sums = np.arange(0, 3 * n + 1, 3), np.ones(3 * n)
    late = stopped_after(0.3, lambda: kernel.reduce_pairs(ptr, cols, sums, None, n))
    assert late < 1.0


@needs_compiler
@pytest.mark.parametrize("n_threads", [1, 2])
@pytest.mark.parametrize("work", ["row_factors", "fill_rows", "divergence", "pearson"])
def test_placing_is_interrupted(stopped_after, work, n_threads):
    n, m = 400_000, 20_000  # seconds long
    h, nans = np.full(m, 1.0 / m), np.full(m, np.nan)
    part = (np.broadcast_to(np.ones((1, m)), (n, m)), None, None, 0, 0)
    target = np.lib.stride_tricks.as_strided(np.empty((1, m)), (n, m), (0, 8))
    given = {
        "row_factors": (False, n_threads),
        "fill_rows": (nans, [target], False, n_threads),
        "divergence": (n_threads,),
        "pearson": (False, n_threads),
    }
    run = getattr(kernel, work)
    assert stopped_after(0.1, lambda: run([part], h, *given[work])) < 1.0


@needs_compiler
@pytest.mark.parametrize("factors", [0, 10**9])
def test_a_large_network_is_interrupted(stopped_after, factors):
    n = 400_000
    cols = np.random.default_rng(0).integers(0, n, (n, 4), np.int32)
    cols.sort(axis=1)
    cols += np.arange(4, dtype=np.int32)  # no column twice
    ptr, sums = np.arange(0, 4 * n + 1, 4), np.ones(4 * n)
    core = kernel.reduce_pairs(ptr, cols.ravel(), sums, None, n + 4)
    flow = kernel.Flow(core, *core.scale(core.start, 1e-9, 2, 2)[:2])
    c = core.core_col_sums  # no solution is good enough
    assert (
        stopped_after(0.2, lambda: flow.solve(c, None, 0.0, 0.0, factors, 4, 2000))
        < 1.0
    )


@needs_compiler
def test_settling_is_interrupted(stopped_after):
    n = 1200  # 10 seconds
    rng = np.random.default_rng(0)
    bits = pack_bits(rng.random((n, n)) < 0.5)
    core = kernel.reduce_mask(bits, np.ones(n), np.ones(n), False, True)
    w, h = np.ones(n), np.ones(n)
    assert stopped_after(0.1, lambda: core.settle(w, h, None, 100)) < 1.0
