"""A file appears whole or not at all."""

import errno
import os
import signal
import subprocess
import sys
import time

import pytest

from a1gm._base.atomic import atomic_folder, atomic_write, check_target
from a1gm.exceptions import OutputError


def parts(folder):
    return [p for p in folder.iterdir() if p.name.endswith(".a1gm-part")]


def test_the_file_appears_at_the_end(tmp_path):
    target = tmp_path / "out.csv"
    with atomic_write(target) as file:
        file.write(b"whole")
        assert not target.exists()
    assert target.read_bytes() == b"whole"
    assert parts(tmp_path) == []


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
def test_an_error_leaves_the_old_file(tmp_path, error):
    target = tmp_path / "out.csv"
    target.write_bytes(b"old")

    def write_half():
        with atomic_write(target, overwrite=True) as file:
            file.write(b"new")
            raise error

    with pytest.raises(error):
        write_half()
    assert target.read_bytes() == b"old"
    assert parts(tmp_path) == []


def test_a_full_disk_is_told_in_words(tmp_path):
    target = tmp_path / "out.csv"

    def write_too_much():
        with atomic_write(target):
            raise OSError(errno.ENOSPC, "No space left on device")

    with pytest.raises(OutputError, match=r"disk is full.*out\.csv"):
        write_too_much()
    assert list(tmp_path.iterdir()) == []


def test_a_killed_run_is_cleaned_up_by_the_next_one(tmp_path):
    target = tmp_path / "out [1].csv"
    target.write_bytes(b"old")
    code = (
        "import sys, time\n"
        "from a1gm._base.atomic import atomic_write\n"
        "with atomic_write(sys.argv[1], overwrite=True) as file:\n"
        "    file.write(b'half'); file.flush(); print('ready', flush=True)\n"
        "    time.sleep(60)\n"
    )
    run = subprocess.Popen(
        [sys.executable, "-c", code, str(target)], stdout=subprocess.PIPE, text=True
    )
    assert run.stdout.readline() == "ready\n"
    with atomic_write(target, overwrite=True) as file:
        # The other run is alive: its part file is not touched.
        assert len(parts(tmp_path)) == 2
        file.write(b"mine")
    assert len(parts(tmp_path)) == 1
    run.send_signal(signal.SIGKILL)
    run.wait(timeout=10)
    run.stdout.close()
    assert target.read_bytes() == b"mine"
    deadline = time.monotonic() + 5
    while parts(tmp_path) and time.monotonic() < deadline:
        with atomic_write(target, overwrite=True) as file:
            file.write(b"new")
    assert parts(tmp_path) == []
    assert target.read_bytes() == b"new"


def test_mode_and_links_are_kept(tmp_path):
    real = tmp_path / "real.csv"
    real.write_bytes(b"old")
    real.chmod(0o640)
    link = tmp_path / "link.csv"
    link.symlink_to(real)
    with atomic_write(link, overwrite=True) as file:
        file.write(b"new")
    assert link.is_symlink()
    assert real.read_bytes() == b"new"
    assert real.stat().st_mode & 0o777 == 0o640


def test_a_device_is_written_to_directly():
    with atomic_write(os.devnull) as file:
        file.write(b"gone")


def test_places_refused_before_any_work(tmp_path):
    there = tmp_path / "there.csv"
    there.write_bytes(b"x")
    with pytest.raises(OutputError, match=r"exists.*overwrite=True"):
        check_target(there)
    check_target(there, overwrite=True)
    with pytest.raises(OutputError, match="is the input itself"):
        check_target(tmp_path / "." / "there.csv", overwrite=True, source=there)
    with pytest.raises(OutputError, match="is a folder"):
        check_target(tmp_path)
    with pytest.raises(OutputError, match="does not exist"):
        check_target(tmp_path / "nowhere" / "x.csv")


def test_a_folder_made_for_a_failed_run_disappears(tmp_path):
    folder = tmp_path / "results"

    def write_half():
        with atomic_folder(folder) as place:
            place("a.csv").write_text("1")
            raise ValueError("half-way")

    with pytest.raises(ValueError, match="half-way"):
        write_half()
    assert not folder.exists()


def test_a_folder_keeps_what_it_had(tmp_path):
    (tmp_path / "a.csv").write_text("old")
    with pytest.raises(OutputError, match="exists"), atomic_folder(tmp_path) as place:
        place("a.csv")
    assert (tmp_path / "a.csv").read_text() == "old"


def test_an_interrupt_right_after_the_part_is_made_leaves_none(tmp_path, monkeypatch):
    from a1gm._base import atomic

    def interrupted(_handle):
        raise KeyboardInterrupt

    monkeypatch.setattr(atomic, "_lock", interrupted)
    with pytest.raises(KeyboardInterrupt), atomic.atomic_write(tmp_path / "out.csv"):
        pass
    assert list(tmp_path.iterdir()) == []
