"""Files that appear whole or not at all.

A file is written beside its target under another name, flushed to the disk, and
renamed over the target. A run that dies leaves the target as it was and a part file,
which the next run to the same target removes. Part files are locked while they are
written, so that a run never removes the part file of another one that is alive.
"""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
import shutil
import stat
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO

from a1gm.exceptions import OutputError

try:
    import fcntl

    def _flock(handle: int) -> None:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
except ImportError:  # pragma: no cover - Windows forbids removing open files anyway

    def _flock(handle: int) -> None:
        pass


_PART = ".a1gm-part"


def check_target(
    path: str | os.PathLike[str],
    *,
    overwrite: bool = False,
    source: str | os.PathLike[str] | None = None,
) -> None:
    """Refuse a place that cannot be written to, before any work is done.

    Parameters
    ----------
    path : path-like
        Where the file will go.
    overwrite : bool
        Whether a file that is already there may be replaced.
    source : path-like, optional
        The file the data come from, which is never overwritten.

    Raises
    ------
    OutputError
        The place is a folder, the input, exists, or its folder is absent or not
        writable.
    """
    target = Path(path)
    folder = target.resolve().parent
    if target.is_dir():
        raise OutputError(f"{target} is a folder; name a file in it.")
    if source is not None and _is_same(source, target):
        raise OutputError(
            f"{target} is the input itself, which is never overwritten: filled cells "
            "could not be told from observed ones any more. Choose another name."
        )
    if is_special(target):
        return
    if target.exists() and not overwrite:
        raise OutputError(f"{target} exists. Pass overwrite=True to replace it.")
    if not folder.is_dir():
        raise OutputError(
            f"{target}: its folder {folder} does not exist. Make it first."
        )
    if not os.access(folder, os.W_OK | os.X_OK):
        raise OutputError(f"{target}: its folder {folder} is not writable.")


@contextlib.contextmanager
def atomic_write(
    path: str | os.PathLike[str], *, overwrite: bool = False
) -> Iterator[IO[bytes]]:
    """Open a binary file that replaces the target when the block ends well.

    On any error, Ctrl-C included, the target stays as it was.

    Parameters
    ----------
    path : path-like
        The target.
    overwrite : bool
        Whether a file that is already there may be replaced.

    Yields
    ------
    file
        An open binary file.

    Raises
    ------
    OutputError
        The disk is full, or the target cannot be written.
    """
    check_target(path, overwrite=overwrite)
    target = Path(path)
    with _translated(target):
        if is_special(target):
            with target.open("wb") as device:
                yield device
            return
        # A link keeps pointing where it did: the file behind it is replaced.
        real = target.resolve()
        remove_stale_parts(real)
        part = real.with_name(f".{real.name}.{secrets.token_hex(8)}{_PART}")
        try:
            with _open_part(part) as file:
                yield file
                file.flush()
                os.fsync(file.fileno())
                _copy_mode(real, part)
                check_target(real, overwrite=overwrite)
                part.replace(real)
            _sync_folder(real.parent)
        except BaseException:
            part.unlink(missing_ok=True)
            raise


@contextlib.contextmanager
def atomic_folder(
    path: str | os.PathLike[str], *, overwrite: bool = False
) -> Iterator[Callable[[str], Path]]:
    """Open a folder of results: new files, each written whole.

    Yields
    ------
    callable
        Gives the path of a file in the folder, refused when it exists and
        ``overwrite`` is false.
    """
    folder = Path(path)
    if folder.exists() and not folder.is_dir():
        raise OutputError(f"{folder} is a file; name a folder for the results.")
    made = not folder.exists()
    with _translated(folder):
        folder.mkdir(parents=True, exist_ok=True)

    def place(name: str) -> Path:
        check_target(folder / name, overwrite=overwrite)
        return folder / name

    try:
        yield place
    except BaseException:
        if made:
            shutil.rmtree(folder, ignore_errors=True)
        raise


def remove_stale_parts(target: Path) -> list[Path]:
    """Remove what earlier runs to the same target left when they died."""
    removed = []
    # No glob on the name: it may contain brackets.
    prefix = f".{target.name}."
    for part in target.parent.iterdir():
        if not (part.name.startswith(prefix) and part.name.endswith(_PART)):
            continue
        with contextlib.suppress(OSError), part.open("rb") as file:
            if _lock(file):
                part.unlink()
                removed.append(part)
    return removed


def _open_part(part: Path) -> IO[bytes]:
    while True:
        file = os.fdopen(
            os.open(part, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o666), "w+b"
        )
        # Between its making and its lock another run may have taken it for stale.
        if _lock(file) and part.exists():
            return file
        file.close()


def _lock(file: IO[bytes]) -> bool:
    try:
        _flock(file.fileno())
    except BlockingIOError:
        return False
    except OSError:  # a file system without locks
        return True
    return True


@contextlib.contextmanager
def _translated(target: Path) -> Iterator[None]:
    try:
        yield
    except (OutputError, BrokenPipeError):
        raise
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise OutputError(
                error.errno,
                f"The disk is full: {target} was not written. Free some space in "
                f"{target.resolve().parent} or name another place.",
            ) from error
        if error.errno is None:
            raise
        raise OutputError(
            error.errno, f"{target} cannot be written: {os.strerror(error.errno)}."
        ) from error


def is_special(target: Path) -> bool:
    """Tell a device or a pipe, which is written to directly, from a file."""
    try:
        mode = target.stat().st_mode
    except (OSError, ValueError):  # ValueError: NUL in the name
        return False
    return not stat.S_ISREG(mode) and not stat.S_ISDIR(mode)


def _is_same(source: str | os.PathLike[str], target: Path) -> bool:
    try:
        return target.samefile(source)
    except OSError:
        return False


def _copy_mode(target: Path, part: Path) -> None:
    if target.exists():
        part.chmod(stat.S_IMODE(target.stat().st_mode))


def _sync_folder(folder: Path) -> None:
    # The rename itself must survive a power cut; not every system can sync a folder.
    with contextlib.suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
