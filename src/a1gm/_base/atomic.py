"""Files that appear whole or not at all.

A file is written beside its target under another name, flushed to the disk, and
renamed over the target. A run that is killed leaves the target as it was and a part
file with the number of its process, which the next run to the same target removes. Part
files are never more readable than the file they replace.
"""

from __future__ import annotations

import contextlib
import errno
import glob
import os
import secrets
import shutil
import stat
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import IO

from a1gm._base.words import listed, shown
from a1gm.exceptions import Option, OutputError


def check_target(
    path: str | os.PathLike[str],
    *,
    overwrite: bool = False,
    sources: Iterable[str | os.PathLike[str]] = (),
) -> None:
    """Raise OutputError for a path that cannot be written to, before any work.

    ``sources`` are the files that the data come from; they are never replaced.
    """
    target = Path(path)
    name = shown(target)
    if "\0" in str(target):
        raise OutputError(f"{name} has a NUL character in it. Choose another name.")
    if target.is_dir():
        raise OutputError(f"{name} is a folder; name a file in it.")
    if is_special(target):
        return
    for source in sources:
        if _is_same(target, source):
            raise OutputError(
                f"{name} is the input itself, which is never replaced. Choose another "
                "name."
            )
    # A link that leads nowhere is there, too.
    if os.path.lexists(target) and not overwrite:
        raise OutputError(
            f"{name} exists. Pass ", Option("overwrite", True), " to replace it."
        )
    folder = _real(target).parent
    if not folder.is_dir():
        raise OutputError(
            f"{name}: its folder {shown(folder)} does not exist. Make it first."
        )
    if not os.access(folder, os.W_OK | os.X_OK):
        raise OutputError(f"{name}: its folder {shown(folder)} is not writable.")


def _is_same(target: Path, source: str | os.PathLike[str]) -> bool:
    try:
        return target.samefile("/dev/stdin" if source == "-" else source)
    except OSError:  # one of them does not exist
        return False


@contextlib.contextmanager
def atomic_write(
    path: str | os.PathLike[str], *, overwrite: bool = False
) -> Iterator[IO[bytes]]:
    """Open a binary file that replaces the target when the block ends well.

    On any error, Ctrl-C included, the target stays as it was.
    """
    check_target(path, overwrite=overwrite)
    target = Path(path)
    with _as_output_error(target):
        if is_special(target):
            with target.open("wb") as device:
                yield device
            return
        # A link keeps pointing where it did: the file behind it is replaced.
        real = _real(target)
        _remove_dead_parts(real)
        number = f"{os.getpid()}.{secrets.token_hex(8)}"
        part = real.with_name(f".{real.name}.{number}.a1gm-part")
        mode = 0o600 if real.exists() else 0o666
        try:
            handle = os.open(part, os.O_RDWR | os.O_CREAT | os.O_EXCL, mode)
            with os.fdopen(handle, "w+b") as file:
                yield file
                file.flush()
                os.fsync(file.fileno())
            if real.exists():
                before = real.stat()
                with contextlib.suppress(OSError, AttributeError):  # not everybody may
                    os.chown(part, before.st_uid, before.st_gid)
                part.chmod(stat.S_IMODE(before.st_mode))
            check_target(real, overwrite=overwrite)
            part.replace(real)
        except BaseException:
            part.unlink(missing_ok=True)
            raise
        # The rename must survive a power cut; not every system can sync a folder.
        with contextlib.suppress(OSError):
            handle = os.open(real.parent, os.O_RDONLY)
            try:
                os.fsync(handle)
            finally:
                os.close(handle)


@contextlib.contextmanager
def output_folder(
    path: str | os.PathLike[str], *, overwrite: bool = False
) -> Iterator[Callable[[str], Path]]:
    """Open a folder of results, each of which is whole.

    Yields what gives the path of a file in the folder, and raises if that may not be
    written. An error that ends the block gets a note with the files that are new.
    """
    folder, before = Path(path), dict[str, int]()  # file numbers, 0 for none
    is_new = not os.path.lexists(folder)
    if not is_new and not folder.is_dir():
        raise OutputError(f"{shown(folder)} is a file; name a folder for the results.")

    def file_number(name: str) -> int:
        file = folder / name
        return file.stat().st_ino if file.exists() else 0

    def place(name: str) -> Path:
        target = folder / name
        with _as_output_error(folder):
            target.parent.mkdir(parents=True, exist_ok=True)
        check_target(target, overwrite=overwrite)
        before[name] = file_number(name)
        return target

    try:
        yield place
    except BaseException as error:
        new = [name for name, number in before.items() if file_number(name) != number]
        if new:
            error.add_note(f"New in {shown(folder)}: {listed(new)}.")
        elif is_new:
            shutil.rmtree(folder, ignore_errors=True)
        raise


def is_special(target: Path) -> bool:
    """Whether a target is a device or a pipe, which is written to directly."""
    try:
        mode = target.stat().st_mode
    except (OSError, ValueError):  # ValueError: NUL in the name
        return False
    return not stat.S_ISREG(mode) and not stat.S_ISDIR(mode)


def _remove_dead_parts(target: Path) -> None:
    """Remove the part files of killed runs to the same target."""
    if os.name == "nt":  # pragma: no cover - os.kill ends processes there
        return
    for part in target.parent.glob(f".{glob.escape(target.name)}.*.*.a1gm-part"):
        try:
            os.kill(int(part.name.split(".")[-3]), 0)
        except ProcessLookupError:
            with contextlib.suppress(OSError):
                part.unlink()
        except (ValueError, OverflowError, OSError):  # of a living run, or no part
            pass


def _real(target: Path) -> Path:
    # Not Path.resolve, which raises for links in a circle.
    return Path(os.path.realpath(target))


@contextlib.contextmanager
def _as_output_error(target: Path) -> Iterator[None]:
    try:
        yield
    except (OutputError, BrokenPipeError):
        raise
    except OSError as error:
        if error.errno is None:
            raise
        why = f"{shown(target)} cannot be written: {os.strerror(error.errno)}."
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            why = (
                f"The disk is full: {shown(target)} was not written. Free some space "
                f"in {shown(_real(target).parent)} or name another place."
            )
        raise OutputError(why, errno=error.errno) from error
