"""Files that appear whole or not at all.

A file is written beside its target under another name, flushed to the disk, and
renamed over the target. A run that dies leaves the target as it was and a part file,
which the next run to the same target removes. Part files are locked while they are
written, so that a run never removes the part file of another one that is alive; and
they are never more readable than the file they replace. Files of one folder are
written to a hidden folder, and get their names together.
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

from a1gm._base.words import shown
from a1gm.exceptions import Option, OutputError

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
    name = shown(target)
    if "\0" in str(target):
        raise OutputError(f"{name} has a NUL character in it. Choose another name.")
    folder = _real(target).parent
    if target.is_dir():
        raise OutputError(f"{name} is a folder; name a file in it.")
    if source is not None and _is_same(source, target):
        raise OutputError(
            f"{name} is the input itself, which is never overwritten: filled cells "
            "could not be told from observed ones any more. Choose another name."
        )
    if is_special(target):
        return
    # A link that leads nowhere is there, too.
    if os.path.lexists(target) and not overwrite:
        advice = "Pass ", Option("overwrite", True), " to replace it."
        raise OutputError(f"{name} exists.", advice=advice)
    if not folder.is_dir():
        raise OutputError(
            f"{name}: its folder {shown(folder)} does not exist. Make it first."
        )
    if not os.access(folder, os.W_OK | os.X_OK):
        raise OutputError(f"{name}: its folder {shown(folder)} is not writable.")


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
        real = _real(target)
        remove_stale_parts(real.parent, real.name)
        parts: list[Path] = []  # before they are made: Ctrl-C may come in between
        try:
            with _open_part(real, 0o600 if real.exists() else 0o666, parts) as file:
                yield file
                file.flush()
                os.fsync(file.fileno())
                _keep_owner_and_mode(real, parts[-1])
                check_target(real, overwrite=overwrite)
                parts[-1].replace(real)
            _sync_folder(real.parent)
        except BaseException:
            for part in parts:
                part.unlink(missing_ok=True)
            raise


@contextlib.contextmanager
def atomic_folder(
    path: str | os.PathLike[str], *, overwrite: bool = False
) -> Iterator[Callable[[str], Path]]:
    """Open a folder of results, which appear together when the block ends well.

    On any error, Ctrl-C included, the folder stays as it was. A new folder appears
    whole even if the process is killed; the files of an existing one are replaced one
    right after the other.

    Yields
    ------
    callable
        Gives the path at which to write a file of the folder, refused when the folder
        has it and ``overwrite`` is false.
    """
    folder, names = Path(path), list[str]()
    if os.path.lexists(folder) and not folder.is_dir():
        raise OutputError(f"{shown(folder)} is a file; name a folder for the results.")
    real, is_new = _real(folder), not folder.exists()
    home = real.parent if is_new else real
    stage = _part(home, real.name)

    def place(name: str) -> Path:
        if (folder / name).parent.is_dir():
            check_target(folder / name, overwrite=overwrite)
        (stage / name).parent.mkdir(parents=True, exist_ok=True)
        names.append(name)
        return stage / name

    try:
        with _translated(folder):
            home.mkdir(parents=True, exist_ok=True)
            remove_stale_parts(home, real.name)
            stage.mkdir(mode=0o777 if is_new else 0o700)
        with _locked(stage):
            yield place
            with _translated(folder):
                if is_new:
                    stage.replace(real)
                else:
                    _swap_in(stage, folder, names, overwrite=overwrite)
                _sync_folder(home)
    except OutputError as error:  # where the files were meanwhile is of no interest
        words = str(error).replace(shown(stage), shown(folder))
        raise OutputError(words, errno=error.errno) from error
    finally:
        shutil.rmtree(stage, ignore_errors=True)


def _swap_in(stage: Path, folder: Path, names: list[str], *, overwrite: bool) -> None:
    """Put new files in their places, all of them or none."""
    done: list[tuple[Path, Path]] = []
    try:
        for number, name in enumerate(names):
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            check_target(folder / name, overwrite=overwrite)
            target, old = _real(folder / name), stage / f"{number}.old"
            if target.exists():
                _keep_owner_and_mode(target, stage / name)
                try:
                    os.link(target, old)  # not renamed: a kill must not lose it
                except OSError:  # not on every file system
                    shutil.copy2(target, old)
            done.append((target, old))
            (stage / name).replace(target)
    except BaseException:
        for target, old in done:
            if old.exists():
                old.replace(target)
            else:
                target.unlink(missing_ok=True)
        raise


def remove_stale_parts(folder: Path, name: str) -> list[Path]:
    """Remove what earlier runs to the target of this name left when they died."""
    removed = []
    # No glob on the name: it may contain brackets.
    for part in folder.iterdir():
        if not (part.name.startswith(f".{name}.") and part.name.endswith(_PART)):
            continue
        # A pipe or a link is not ours; opening it must neither wait nor follow.
        with contextlib.suppress(OSError), _locked(part) as (is_ours, kind):
            if is_ours and stat.S_ISREG(kind):
                part.unlink()
                removed.append(part)
            elif is_ours and stat.S_ISDIR(kind):
                shutil.rmtree(part, ignore_errors=True)
                removed.append(part)
    return removed


@contextlib.contextmanager
def _locked(part: Path) -> Iterator[tuple[bool, int]]:
    """Lock a file or folder: yield whether nobody else has it, and what it is."""
    careful = getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOFOLLOW", 0)
    handle = os.open(part, os.O_RDONLY | careful)
    try:
        yield _lock(handle), os.fstat(handle).st_mode
    finally:
        os.close(handle)


def _part(folder: Path, name: str) -> Path:
    return folder / f".{name}.{secrets.token_hex(8)}{_PART}"


def _real(target: Path) -> Path:
    # Not Path.resolve, which raises for links in a circle.
    return Path(os.path.realpath(target))


def _open_part(target: Path, mode: int, parts: list[Path]) -> IO[bytes]:
    """Open a new file beside the target; its name comes last in ``parts``."""
    while True:
        part = _part(target.parent, target.name)
        parts.append(part)
        file = os.fdopen(os.open(part, os.O_RDWR | os.O_CREAT | os.O_EXCL, mode), "w+b")
        try:
            # Between its making and its lock another run may have taken it for stale.
            is_ours = _lock(file.fileno()) and part.exists()
        except BaseException:
            file.close()
            raise
        if is_ours:
            return file
        file.close()


def _lock(handle: int) -> bool:
    try:
        _flock(handle)
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
                f"The disk is full: {shown(target)} was not written. Free some space "
                f"in {shown(_real(target).parent)} or name another place.",
                errno=error.errno,
            ) from error
        if error.errno is None:
            raise
        raise OutputError(
            f"{shown(target)} cannot be written: {os.strerror(error.errno)}.",
            errno=error.errno,
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


def _keep_owner_and_mode(target: Path, part: Path) -> None:
    if not target.exists():
        return
    found = target.stat()
    with contextlib.suppress(OSError, AttributeError):  # not everybody may
        os.chown(part, found.st_uid, found.st_gid)
    part.chmod(stat.S_IMODE(found.st_mode))


def _sync_folder(folder: Path) -> None:
    # The rename itself must survive a power cut; not every system can sync a folder.
    with contextlib.suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
