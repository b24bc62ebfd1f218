"""Places to write to that are odd, and folders of results: rows 71 and 72."""

from __future__ import annotations

import errno
import os
import signal
import stat
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from support.commands import CSV, run

import a1gm
from a1gm._base import atomic
from a1gm._base.atomic import atomic_folder, atomic_write
from a1gm.exceptions import A1gmError, FileFormatError, OutputError

posix = pytest.mark.skipif(sys.platform == "win32", reason="modes and pipes of Unix")


def mode_of(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def hidden(folder: Path) -> list[Path]:
    return [p for p in folder.rglob("*") if p.name.endswith(".a1gm-part")]


def contents(folder: Path) -> dict[str, str]:
    return {p.name: p.read_text() for p in sorted(folder.iterdir())}


# ------------------------------------------------------------- fault 71: all or none
@pytest.fixture
def tables(tmp_path: Path) -> Path:
    """A folder of tables, of which the third has changed since the first pass."""
    folder = tmp_path / "tables"
    folder.mkdir()
    for k in range(3):
        (folder / f"{k}.csv").write_text("x,y\n1,2\n2,\n")
    return folder


@pytest.mark.parametrize("was_there", [False, True])
def test_71_when_one_file_fails_none_is_replaced(tables, was_there, tmp_path):
    out, fit = tmp_path / "out", a1gm.fit_file(tables)
    if was_there:
        out.mkdir()
        (out / "0.csv").write_text("old")
        (out / "other.txt").write_text("mine")
    (tables / "2.csv").write_text("x,y\n1,2\n2,3\n4,\n")
    with pytest.raises(FileFormatError, match="changed"):
        # The files are looked at before the first one is written.
        a1gm.impute_file(tables, out, fit=fit, overwrite=True)

    calls = []

    def fail_late(rows: int, part: float) -> None:
        calls.append(rows)
        if len(calls) == 5:  # the second pass has written a file
            (tables / "2.csv").write_text("x,y\n1,2\n2,3\n4,\n5,6\n")

    with pytest.raises(FileFormatError, match="changed"):
        a1gm.impute_file(tables, out, overwrite=True, progress=fail_late)
    assert len(calls) == 5
    if was_there:
        assert contents(out) == {"0.csv": "old", "other.txt": "mine"}
    else:
        assert not out.exists()
    assert hidden(tmp_path) == []


@pytest.mark.parametrize("failing", [0, 1, 2])
@pytest.mark.parametrize("links", [True, False])
def test_71_a_swap_that_fails_is_undone(tmp_path, monkeypatch, failing, links):
    (tmp_path / "a").write_text("old a")
    (tmp_path / "b").write_text("old b")
    replace, names = Path.replace, ["a", "c", "b"]

    def fail(self: Path, target: Path) -> Path:
        if self.name == names[failing]:
            raise OSError(errno.EIO, "Input/output error")
        return replace(self, target)

    def no_links(*_: object) -> None:
        raise OSError(errno.EPERM, "Operation not permitted")

    def write() -> None:
        with atomic_folder(tmp_path, overwrite=True) as place:
            for name in names:
                place(name).write_text("new")
            monkeypatch.setattr(Path, "replace", fail)
            if not links:
                monkeypatch.setattr(os, "link", no_links)

    with pytest.raises(OutputError, match="cannot be written"):
        write()
    assert contents(tmp_path) == {"a": "old a", "b": "old b"}


@posix
def test_71_files_of_a_folder_keep_their_modes_and_the_others_stay(tmp_path):
    (tmp_path / "a").write_text("old")
    (tmp_path / "a").chmod(0o600)
    (tmp_path / "other").write_text("mine")
    with atomic_folder(tmp_path, overwrite=True) as place:
        place("a").write_text("new")
        place("b").write_text("new")
        assert mode_of(hidden(tmp_path)[0]) == 0o700
        assert contents_but_hidden(tmp_path) == {"a": "old", "other": "mine"}
    assert contents(tmp_path) == {"a": "new", "b": "new", "other": "mine"}
    assert mode_of(tmp_path / "a") == 0o600


def contents_but_hidden(folder: Path) -> dict[str, str]:
    return {p.name: p.read_text() for p in folder.iterdir() if p.is_file()}


KILLED = """
import sys, time
from a1gm._base.atomic import atomic_folder
with atomic_folder(sys.argv[1], overwrite=True) as place:
    place("a").write_text("half"); print("ready", flush=True)
    time.sleep(60)
"""


@posix
@pytest.mark.parametrize("was_there", [False, True])
def test_71_a_killed_run_is_cleaned_up_by_the_next_one(tmp_path, was_there):
    out = tmp_path / "out"
    if was_there:
        out.mkdir()
    process = subprocess.Popen(
        [sys.executable, "-c", KILLED, str(out)], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    with atomic_folder(out, overwrite=True) as place:
        assert len(hidden(tmp_path)) == 2  # the other run is alive
        place("a").write_text("mine")
    process.send_signal(signal.SIGKILL)
    process.wait(timeout=10)
    process.stdout.close()
    assert contents_but_hidden(out) == {"a": "mine"}
    with atomic_folder(out, overwrite=True) as place:
        place("a").write_text("new")
    assert contents_but_hidden(out) == {"a": "new"}
    if was_there:  # beside a new folder, the next run to a new one would
        assert hidden(tmp_path) == []


def test_71_errors_name_the_folder_that_was_asked_for(tmp_path, monkeypatch):
    def fill_the_disk() -> None:
        with atomic_folder(tmp_path / "out") as place, atomic_write(place("a")):
            raise OSError(errno.ENOSPC, "No space left on device")

    with pytest.raises(OutputError, match="disk is full") as caught:
        fill_the_disk()
    assert caught.value.errno == errno.ENOSPC
    assert f"{tmp_path / 'out' / 'a'} was not written" in str(caught.value)
    assert "a1gm-part" not in str(caught.value)


def test_71_results_of_a_fit_appear_together(tmp_path, monkeypatch):
    out = tmp_path / "out"
    run("fit", CSV / "plain.csv", "-o", out)
    before = {p.name: p.read_bytes() for p in out.iterdir()}
    assert len(before) == 4

    def fail(*_: object, **__: object) -> None:
        raise OutputError("no more")

    monkeypatch.setattr(a1gm.RankOneFit, "save", fail)
    table = tmp_path / "other.csv"
    table.write_text("x,y\n7,2\n9,\n")
    run("fit", table, "-o", out, "--overwrite", code=1)
    assert {p.name: p.read_bytes() for p in out.iterdir()} == before


# ---------------------------------------------------------- fault 72: odd neighbours
@posix
@pytest.mark.parametrize("mode", [0o600, 0o640, 0o400, 0o644])
def test_72_the_part_file_is_never_more_readable_than_its_target(tmp_path, mode):
    target = tmp_path / "secret.csv"
    target.write_text("old")
    target.chmod(mode)
    with atomic_write(target, overwrite=True) as file:
        (part,) = hidden(tmp_path)
        assert mode_of(part) == 0o600
        file.write(b"new")
    assert mode_of(target) == mode


@posix
@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid(), reason="needs root")
def test_72_the_owner_stays(tmp_path):
    target = tmp_path / "secret.csv"
    target.write_text("old")
    os.chown(target, 12345, 54321)
    with atomic_write(target, overwrite=True) as file:
        file.write(b"new")
    assert (target.stat().st_uid, target.stat().st_gid) == (12345, 54321)


@posix
@pytest.mark.timeout(20)
def test_72_a_pipe_or_a_link_with_the_name_of_a_part_file(tmp_path):
    target, victim = tmp_path / "out.csv", tmp_path / "victim"
    victim.write_text("mine")
    os.mkfifo(tmp_path / ".out.csv.1.a1gm-part")
    (tmp_path / ".out.csv.2.a1gm-part").symlink_to(victim)
    (tmp_path / ".out.csv.3.a1gm-part").write_text("stale")
    (tmp_path / ".out.csv.4.a1gm-part").mkdir()
    with atomic_write(target) as file:
        file.write(b"new")
    assert target.read_text() == "new"
    assert victim.read_text() == "mine"
    left = [path.name for path in sorted(hidden(tmp_path))]
    assert left == [".out.csv.1.a1gm-part", ".out.csv.2.a1gm-part"]


@posix
def test_72_a_link_that_leads_nowhere_needs_overwrite(tmp_path):
    link = tmp_path / "link.csv"
    link.symlink_to(tmp_path / "elsewhere.csv")
    with pytest.raises(OutputError, match=r"link\.csv exists"):
        a1gm.impute_file(CSV / "plain.csv", link)
    with pytest.raises(OutputError, match=r"link\.csv exists"):
        a1gm.fit([[1.0, 2.0]]).save(link)
    assert not (tmp_path / "elsewhere.csv").exists()
    a1gm.impute_file(CSV / "plain.csv", link, overwrite=True)
    assert link.is_symlink()
    assert (tmp_path / "elsewhere.csv").exists()


@posix
def test_72_links_in_a_circle(tmp_path):
    one, two = tmp_path / "one.csv", tmp_path / "two.csv"
    one.symlink_to(two)
    two.symlink_to(one)
    with pytest.raises(OutputError, match=r"one\.csv exists"):
        a1gm.impute_file(CSV / "plain.csv", one)


def test_72_a_name_with_nul(tmp_path):
    with pytest.raises(OutputError, match="NUL"):
        a1gm.impute_file(CSV / "plain.csv", f"{tmp_path}/a\0.csv")
    with pytest.raises(A1gmError):
        a1gm.fit_file(f"{tmp_path}/a\0.csv")


def test_72_two_runs_to_one_target_leave_one_whole_file(tmp_path):
    target = tmp_path / "out.csv"

    def write(letter: str) -> None:
        for _ in range(30):
            with atomic_write(target, overwrite=True) as file:
                file.write(letter.encode() * 1000)
                time.sleep(0.0005)

    threads = [threading.Thread(target=write, args=(letter,)) for letter in "abcd"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    (letter,) = set(target.read_text())
    assert target.read_text() == letter * 1000
    assert hidden(tmp_path) == []
    assert atomic.remove_stale_parts(tmp_path, target.name) == []
