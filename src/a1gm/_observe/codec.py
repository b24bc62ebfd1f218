"""One codec for model files and for the bytes that travel between workers.

An archive is a plain, uncompressed zip of ``header.json`` and ``.npy`` arrays. Nothing
in it is executed, and no entry takes more memory than it has bytes. The callers check
what the arrays mean, before the kernel sees them.
"""

from __future__ import annotations

import io
import json
import math
import zipfile
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import fields
from typing import IO, Any, TypeVar

import numpy as np

from a1gm._base.types import AnyArray
from a1gm._rows.labels import plain_text
from a1gm.exceptions import FileFormatError

FORMAT = "a1gm model"
FORMAT_VERSION = 7
HEADER = "header.json"
ALLOWED_KINDS = "fiub"
_END_MARK, _END_BYTES = b"PK\x05\x06", 22  # how a zip archive without comment ends
SPARE_ROWS = 1 << 20  # a side of an array without cells may be this long

Made = TypeVar("Made")


# --------------------------------------------------------------------- the archive
def write_archive(
    file: IO[bytes],
    kind: str,
    content: Mapping[str, Any],
    arrays: Mapping[str, AnyArray],
    *,
    version: str,
) -> None:
    """Write content that JSON can hold, and arrays of numbers by name.

    ``kind`` is what the archive holds, ``version`` the release that writes it.
    """
    header = {
        "format": FORMAT,
        "format_version": FORMAT_VERSION,
        "package_version": version,
        "kind": kind,
        "content": content,
    }
    text = json.dumps(header).encode()  # in ASCII: a lone surrogate has no UTF-8
    with zipfile.ZipFile(file, "w", zipfile.ZIP_STORED, allowZip64=True) as archive:
        archive.writestr(zipfile.ZipInfo(HEADER), text)  # without the time of day
        for name, array in arrays.items():
            with archive.open(f"{name}.npy", "w", force_zip64=True) as entry:
                np.lib.format.write_array(
                    entry, np.ascontiguousarray(array), allow_pickle=False
                )


@contextmanager
def read_archive(
    file: Any, size: int, *kinds: str
) -> Iterator[tuple[dict[str, Any], dict[str, AnyArray]]]:
    """Read content and arrays of an archive of ``size`` bytes.

    The content has the ``kind`` of the archive, which is one of ``kinds``.
    Whatever the body raises on decoding them is an error of the archive: a
    FileFormatError with the reason alone, to which the caller adds what was read.
    """
    try:
        with zipfile.ZipFile(file) as archive:
            _check_ends(archive)
            content = _read_content(archive, size, kinds)
            arrays = {
                name.removesuffix(".npy"): _read_array(archive, name, size)
                for name in archive.namelist()
                if name != HEADER
            }
        yield content, arrays
    except (FileFormatError, OSError):
        raise
    except (zipfile.BadZipFile, EOFError) as error:
        raise FileFormatError(f"it is damaged or not of a1gm ({error})") from error
    except MemoryError as error:
        raise FileFormatError("there is not enough memory for it") from error
    except Exception as error:  # there is no list of what foreign bytes can cause
        why = f"{type(error).__name__}: {error}"
        what = " or ".join(kinds)
        raise FileFormatError(f"its parts do not make a {what} ({why})") from error


def _check_ends(archive: zipfile.ZipFile) -> None:
    """Raise for bytes before or behind the archive, which zip readers pass over."""
    starts = [entry.header_offset for entry in archive.infolist()]
    assert archive.fp is not None
    archive.fp.seek(-_END_BYTES, io.SEEK_END)
    is_end = archive.fp.read(len(_END_MARK)) == _END_MARK
    if min(starts, default=0) > 0 or not is_end:
        raise FileFormatError("there are other bytes before or behind it")


def _read_content(
    archive: zipfile.ZipFile, size: int, kinds: tuple[str, ...]
) -> dict[str, Any]:
    for entry in archive.infolist():
        # Stored entries cannot be larger than the file: no bomb to unpack.
        if entry.compress_type != zipfile.ZIP_STORED or entry.file_size > size:
            raise FileFormatError(
                f"its entry {entry.filename!r} is packed or too large"
            )
    if HEADER not in archive.namelist():
        raise FileFormatError(f"it has no {HEADER}")
    header = json.loads(archive.read(HEADER))
    if not isinstance(header, dict) or header.get("format") != FORMAT:
        raise FileFormatError("its header is not that of a1gm")
    _check_version(header)
    if header["kind"] not in kinds:
        what = " or ".join(map(repr, kinds))
        raise FileFormatError(f"it holds a {header['kind']!r}, not a {what}")
    return {**header["content"], "kind": header["kind"]}


def _check_version(header: dict[str, Any]) -> None:
    version = header.get("format_version")
    if type(version) is not int or version < 1:
        raise FileFormatError(f"its format version is {version!r}")
    if version != FORMAT_VERSION:
        remedy = "upgrade a1gm" if version > FORMAT_VERSION else "fit again and save"
        raise FileFormatError(
            f"it was written by a1gm {header.get('package_version')} in format "
            f"{version}, and this release reads format {FORMAT_VERSION}: {remedy}"
        )


def _read_array(archive: zipfile.ZipFile, name: str, size: int) -> AnyArray:
    data = archive.read(name)
    file = io.BytesIO(data)
    np.lib.format.read_magic(file)
    shape, by_columns, dtype = np.lib.format.read_array_header_1_0(file)
    is_short = all(0 <= n <= size + SPARE_ROWS for n in shape)
    if dtype.kind not in ALLOWED_KINDS or by_columns or not is_short:
        raise FileFormatError(f"its array {name!r} is not one of numbers")
    array: AnyArray = np.frombuffer(data, dtype, offset=file.tell()).reshape(shape)
    return array.copy()


# ------------------------------------------------------------- objects and arrays
def to_arrays(part: str, value: Any, arrays: dict[str, AnyArray]) -> dict[str, Any]:
    """Put the arrays of a dataclass with the others, and return the rest."""
    rest: dict[str, Any] = {}
    for field in fields(value):
        found = getattr(value, field.name)
        if isinstance(found, np.ndarray):
            arrays[f"{part}.{field.name}"] = found
        else:
            rest[field.name] = found.item() if isinstance(found, np.generic) else found
    return rest


def from_arrays(
    part: str, kind: type[Made], content: Mapping[str, Any], arrays: Mapping[str, Any]
) -> Made:
    """Rebuild the dataclass that ``to_arrays`` took apart.

    The caller must check the values: they come from a file.
    """
    values = dict(content[part])
    for field in fields(kind):  # type: ignore[arg-type]
        name = f"{part}.{field.name}"
        if name in arrays:
            values[field.name] = arrays[name]
    return kind(**values)


def join_arrays(
    parts: Sequence[Mapping[str, AnyArray]],
) -> tuple[list[dict[str, list[int]]], dict[str, AnyArray]]:
    """Join the arrays of many parts by name and type; return the shapes in each, too.

    An entry of an archive costs time and space, and there may be many small arrays.
    """
    shapes: list[dict[str, list[int]]] = []
    joined: dict[str, list[AnyArray]] = defaultdict(list)
    for arrays in parts:
        shapes.append({})
        for name, array in arrays.items():
            full = f"{name}.{array.dtype.str[1:]}"
            shapes[-1][full] = list(array.shape)
            joined[full].append(array.ravel())
    return shapes, {name: np.concatenate(own) for name, own in joined.items()}


def split_arrays(
    shapes: Sequence[Mapping[str, list[int]]], joined: Mapping[str, AnyArray]
) -> Iterator[dict[str, AnyArray]]:
    """Yield the arrays of each part, as ``join_arrays`` joined them.

    Raises for shapes that are not those of the arrays.
    """
    start = dict.fromkeys(joined, 0)
    for own in shapes:
        arrays = {}
        for name, shape in own.items():
            first, start[name] = start[name], start[name] + math.prod(shape)
            array = joined[name][first : start[name]]
            arrays[name.rpartition(".")[0]] = array.reshape(shape).copy()
        yield arrays


def labels_to_json(labels: Any) -> list[Any] | None:
    """Labels for JSON: numbers and texts stay, tuples of them are lists; else text."""
    if labels is None:
        return None
    return [labels_to_json(x) if isinstance(x, tuple) else _plain(x) for x in labels]


def _plain(label: Any) -> str | float:
    label = label.item() if isinstance(label, np.generic) else label
    return label if isinstance(label, str | int | float) else plain_text(label)


def labels_from_json(labels: Any, n: int, *, unique: bool) -> list[Any] | None:
    """Labels as they were written; raises ValueError for anything else.

    Names of columns are ``unique`` and, if some are text, all of them.
    """
    if labels is None:
        return None
    is_list = isinstance(labels, list) and len(labels) == n
    found = [_tuple_of(x) if isinstance(x, list) else x for x in labels or ()]
    types = {type(x) for x in found}
    if not is_list or not types <= {str, int, float, bool, tuple}:
        raise ValueError("its labels are not those of its table")
    if unique and (len(set(found)) < n or (str in types and len(types) > 1)):
        raise ValueError("its labels do not distinguish its columns")
    return found


def _tuple_of(parts: list[Any]) -> tuple[Any, ...]:
    """A label of several parts."""
    return tuple(labels_from_json(parts, len(parts), unique=False) or ())
