"""Where the bytes of a table come from: a file that can be read more than once."""

from __future__ import annotations

import contextlib
import errno
import gzip
import os
import shutil
import sys
import tempfile
import weakref
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any, Literal

from a1gm._base.atomic import is_special
from a1gm._base.words import shown
from a1gm._rows.files.foreign import (
    HEAD_BYTES,
    Foreign,
    foreign_kind,
    zip_kind,
)
from a1gm._rows.files.formats import FORMATS, Format, suffix_of
from a1gm.exceptions import FileFormatError, MissingFileError, OutputError

_MAGIC: tuple[tuple[bytes, Format], ...] = (
    (b"PAR1", "parquet"),
    (b"ARROW1", "feather"),
    (b"\xff\xff\xff\xff", "arrow stream"),
)
_GZIP = b"\x1f\x8b"
_NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


@dataclass(frozen=True)
class Origin:
    """A readable file, what it holds, and a stamp that tells when it changes."""

    name: str  # what messages call it: the path as given, escaped, or <stdin>
    path: Path  # where the bytes are; a nameless temporary copy for a stream
    format: Format
    gzipped: bool
    suffix: str  # the last extension without .gz, lower case
    stamp: tuple[int, ...]
    _keep: Any = field(default=None, repr=False, compare=False)

    @property
    def size(self) -> int:
        """Bytes on disk."""
        return self.stamp[0]

    def open(self) -> IO[bytes]:
        """Open the bytes as they are on disk."""
        return _open(self.path, self.name)

    @contextlib.contextmanager
    def open_text(self) -> Iterator[IO[bytes]]:
        """Open the bytes of a text table, which may be gzipped."""
        with self.open() as raw:
            yield gzip.GzipFile(fileobj=raw) if self.gzipped else raw  # type: ignore[misc]

    def check_unchanged(self, *, is_fitted: bool = False) -> None:
        """Raise FileFormatError if the file has changed since it was opened."""
        if _stamp(self.path, self.name) == self.stamp:
            return
        if is_fitted:
            raise FileFormatError(
                f"{self.name} changed since it was fitted. Nothing was written; fit it "
                "again."
            )
        raise FileFormatError(
            f"{self.name} changed while it was being read. "
            "Nothing was written; run again when it is no longer written to."
        )


def find_origin(path: str | os.PathLike[str]) -> Origin:
    """Open a path, or standard input for ``"-"``, and tell what it holds.

    A stream (standard input, a pipe) is copied to a temporary file, because the table
    is read twice: once to fit it and once to fill it.

    Raises FileFormatError when it is absent, a folder, empty, or not what its name
    says.
    """
    if os.fspath(path) == "-":
        if sys.stdin is None:
            raise FileFormatError("<stdin> cannot be read: it is closed.")
        spool = _spool(sys.stdin.buffer, "<stdin>")
        return _describe("<stdin>", spool.path, suffix="", keep=spool)
    place, name, keep = Path(path), shown(path), None
    if is_special(place):
        with _open(place, name) as stream:
            keep = _spool(stream, name)
    found = place if keep is None else keep.path
    return _describe(name, found, suffix=suffix_of(place), keep=keep)


def _describe(name: str, path: Path, *, suffix: str, keep: Any) -> Origin:
    with _open(path, name) as file:
        head = file.read(HEAD_BYTES)
        gzipped = head.startswith(_GZIP)
        found = _format_of(name, file, head)
    if not head:
        raise empty_file(f"{name} is empty: it has no header and no rows.")
    expected = FORMATS.get(suffix, "csv")
    if expected not in ("csv", found):
        raise FileFormatError(
            f"{name} is not a {expected.capitalize()} file: its first bytes are "
            f"{head[:4]!r}. It is damaged, or it is another format under a wrong name "
            "(rename a text table to .csv)."
        )
    return Origin(
        name=name,
        path=path,
        format=found or "csv",
        gzipped=gzipped,
        suffix=suffix,
        stamp=_stamp(path, name),
        _keep=keep,
    )


def _format_of(name: str, file: IO[bytes], head: bytes) -> Format | None:
    """What the bytes of a file tell; None for text. Raise for what is no table."""
    found = next((kind for magic, kind in _MAGIC if head.startswith(magic)), None)
    if found is not None:
        return found
    what: Foreign | Literal["spreadsheet"] | None
    if head.startswith(b"PK\x03\x04"):
        what = zip_kind(file)
    elif head.startswith(_GZIP):
        file.seek(0)
        with contextlib.suppress(OSError, EOFError, zlib.error):
            head = gzip.GzipFile(fileobj=file).read(HEAD_BYTES)
        what = foreign_kind(head)
        packed = any(head.startswith(magic) for magic, _ in _MAGIC)
        if packed or what == "spreadsheet" or head.startswith(b"PK\x03\x04"):
            what = Foreign(
                "a gzipped file that is no text", "Unpack it: gunzip -k {!r}"
            )
    else:
        what = foreign_kind(head)
    if isinstance(what, Foreign):
        remedy = what.remedy.format(name)
        raise FileFormatError(f"{name} is {what.kind}, not a table file. {remedy}.")
    return what


def empty_file(words: str) -> FileFormatError:
    """The error for a file without rows: one of several files may be."""
    return FileFormatError(words, is_empty=True)


def missing_file(path: str | os.PathLike[str]) -> MissingFileError:
    """The error for a file that does not exist."""
    return MissingFileError(f"{shown(path)} does not exist. Check the path.")


def _open(path: Path, name: str) -> IO[bytes]:
    try:
        return path.open("rb")
    except IsADirectoryError:
        raise FileFormatError(f"{name} is a folder; name a file in it.") from None
    except FileNotFoundError:
        raise missing_file(path) from None
    except (OSError, ValueError) as error:  # ValueError: NUL in the name
        why = getattr(error, "strerror", None) or error
        raise FileFormatError(f"{name} cannot be read: {why}.") from error


def _stamp(path: Path, name: str) -> tuple[int, ...]:
    try:
        found = path.stat()
    except OSError as error:
        raise FileFormatError(f"{name} cannot be read: {error.strerror}.") from error
    # The time of the last change of anything (ctime) cannot be set back.
    return found.st_size, found.st_mtime_ns, found.st_ino, found.st_ctime_ns


def _spool(stream: IO[bytes], name: str) -> _Spool:
    """Copy a stream to a file that can be read more than once."""
    spool = _Spool()
    try:
        shutil.copyfileobj(stream, spool.file, 1 << 20)
        spool.file.flush()
    except OSError as error:
        if error.errno not in _NO_ROOM:
            raise FileFormatError(
                f"{name} cannot be read: {error.strerror}."
            ) from error
        raise OutputError(
            f"The temporary copy of {name} cannot grow in {tempfile.gettempdir()}: "
            f"{error.strerror}. Set TMPDIR to a place with more room, or name a file "
            "instead of a stream.",
            errno=error.errno,
        ) from error
    return spool


class _Spool:
    """A temporary file: nameless where such a file can be opened again.

    A process that is killed, or ends without cleaning up, leaves nothing behind then.
    """

    def __init__(self) -> None:
        self.file: Any = tempfile.TemporaryFile()  # noqa: SIM115 - kept by the Origin
        self.path = _OPEN_FILES / str(self.file.fileno())
        if not self.path.exists():
            self.file.close()
            self.file = tempfile.NamedTemporaryFile(prefix="a1gm-stdin-")  # noqa: SIM115
            self.path = Path(self.file.name)
            _named_spools.add(self)
        weakref.finalize(self, self.file.close)


#: Where Linux lets a process open its nameless files a second time. The /dev/fd of
#: other systems shares one reading position among all who open it.
_OPEN_FILES = Path("/proc/self/fd")
_named_spools: weakref.WeakSet[_Spool] = weakref.WeakSet()


def remove_spools() -> None:
    """Remove temporary files with a name, before a process ends at once."""
    for spool in list(_named_spools):
        spool.file.close()
