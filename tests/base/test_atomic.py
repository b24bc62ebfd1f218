"""A file appears whole or not at all."""

import errno
import os
import stat
import subprocess
import sys
import threading
import time

import pytest
from support.commands import CSV

import a1gm
from a1gm._base.atomic import atomic_write, check_target, output_folder
from a1gm.exceptions import A1gmError, OutputError

posix = pytest.mark.skipif(sys.platform == "win32", reason="modes and pipes of Unix")


def parts(folder):
    return [p for p in folder.iterdir() if p.name.endswith(".a1gm-part")]


FULL = OSError(errno.ENOSPC, "No space left on device")


@pytest.mark.parametrize(
    ("error", "raised", "words"),
    [
        (ValueError("bad"), ValueError, "bad"),
        (KeyboardInterrupt("stop"), KeyboardInterrupt, "stop"),
        (FULL, OutputError, r"disk is full.*out\.csv"),
    ],
)
def test_an_error_leaves_the_old_file(tmp_path, error, raised, words):
    target = tmp_path / "out.csv"
    target.write_bytes(b"old")

    def write_half():
        with atomic_write(target, overwrite=True) as file:
            file.write(b"new")
            raise error

    with pytest.raises(raised, match=words):
        write_half()
    assert target.read_bytes() == b"old"
    assert parts(tmp_path) == []


@posix
def test_the_part_file_of_a_killed_run_is_removed_by_the_next_one(tmp_path):
    target = tmp_path / "out [1].csv"
    code = (
        "import os, signal, sys\n"
        "from a1gm._base.atomic import atomic_write\n"
        "with atomic_write(sys.argv[1]):\n"
        "    os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    subprocess.run([sys.executable, "-c", code, target], check=False)
    assert len(parts(tmp_path)) == 1
    (tmp_path / ".out [1].csv.99999999.4.a1gm-part").mkdir()  # is no file of ours
    with atomic_write(target) as file:
        with atomic_write(target):  # the other run is alive
            assert len(parts(tmp_path)) == 3
        file.write(b"new")
        target.unlink()
    assert target.read_bytes() == b"new"
    assert [part.is_dir() for part in parts(tmp_path)] == [True]


def test_links_are_kept(tmp_path):
    real = tmp_path / "real.csv"
    real.write_bytes(b"old")
    link = tmp_path / "link.csv"
    link.symlink_to(real)
    with atomic_write(link, overwrite=True) as file:
        file.write(b"new")
    assert link.is_symlink()
    assert real.read_bytes() == b"new"


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
        check_target(tmp_path / "." / "there.csv", overwrite=True, sources=[there])
    with pytest.raises(OutputError, match="is a folder"):
        check_target(tmp_path)
    with pytest.raises(OutputError, match="does not exist"):
        check_target(tmp_path / "nowhere" / "x.csv")


def test_a_folder_of_results(tmp_path):
    folder = tmp_path / "results"

    def write(n):
        with output_folder(folder, overwrite=n > 1) as place:
            for name in "abc"[:n]:
                with atomic_write(place(name), overwrite=n > 1) as file:
                    file.write(b"new")
            raise ValueError("half-way")

    with pytest.raises(ValueError, match="half-way"):
        write(0)
    assert not folder.exists()
    for n, new in ((1, "a"), (2, "a, b")):
        with pytest.raises(ValueError, match="half-way") as caught:
            write(n)
        assert caught.value.__notes__ == [f"New in {folder}: {new}."]
    with pytest.raises(OutputError, match="exists"), output_folder(folder) as place:
        place("a")
    with (
        pytest.raises(OutputError, match="is a file"),
        output_folder(folder / "a") as place,
    ):
        pass


@posix
@pytest.mark.parametrize("mode", [0o600, 0o640, 0o400, 0o644])
def test_the_part_file_is_never_more_readable_than_its_target(tmp_path, mode):
    target = tmp_path / "secret.csv"
    target.write_text("old")
    target.chmod(mode)
    with atomic_write(target, overwrite=True) as file:
        (part,) = parts(tmp_path)
        assert stat.S_IMODE(part.stat().st_mode) == 0o600
        file.write(b"new")
    assert stat.S_IMODE(target.stat().st_mode) == mode


@posix
@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid(), reason="needs root")
def test_the_owner_stays(tmp_path):
    target = tmp_path / "secret.csv"
    target.write_text("old")
    os.chown(target, 12345, 54321)
    with atomic_write(target, overwrite=True) as file:
        file.write(b"new")
    assert (target.stat().st_uid, target.stat().st_gid) == (12345, 54321)


@posix
def test_a_link_that_leads_nowhere_needs_overwrite(tmp_path):
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


def test_a_name_with_nul(tmp_path):
    with pytest.raises(OutputError, match="NUL"):
        a1gm.impute_file(CSV / "plain.csv", f"{tmp_path}/a\0.csv")
    with pytest.raises(A1gmError):
        a1gm.fit_file(f"{tmp_path}/a\0.csv")


def test_two_runs_to_one_target_leave_one_whole_file(tmp_path):
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
    assert parts(tmp_path) == []
