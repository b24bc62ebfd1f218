"""Models in files: an npz archive without pickle, and a JSON header.

The archive is a plain, uncompressed zip of ``header.json`` and ``.npy`` arrays. Nothing
in it is executed; every size is checked against the header and the file before memory
is taken, so a hostile file is refused, not obeyed.
"""

from __future__ import annotations

import io
import json
import os
import zipfile
from pathlib import Path
from typing import Any

import numpy as np

from a1gm._base.types import AnyArray
from a1gm.exceptions import MissingFileError, ModelFileError
from a1gm._base.atomic import atomic_write

__all__ = ["FORMAT_VERSION", "read_model", "write_model"]

FORMAT = "a1gm model"
FORMAT_VERSION = 1
HEADER = "header.json"
MAX_HEADER_BYTES = 1 << 28
MAX_ARRAYS = 64
ALLOWED_KINDS = "fiub"


def write_model(
    path: str | os.PathLike[str],
    kind: str,
    content: dict[str, Any],
    arrays: dict[str, AnyArray],
    *,
    overwrite: bool = False,
) -> None:
    """Write a model whole or not at all.

    Parameters
    ----------
    path : path-like
        The target.
    kind : str
        What the model is.
    content : dict
        What JSON can hold.
    arrays : dict
        Arrays of numbers by name.
    overwrite : bool
        Whether a file that is already there may be replaced.
    """
    from a1gm import __version__

    header = {
        "format": FORMAT,
        "format_version": FORMAT_VERSION,
        "package_version": __version__,
        "kind": kind,
        "arrays": {
            name: {"dtype": a.dtype.str, "shape": list(a.shape)}
            for name, a in arrays.items()
        },
        "content": content,
    }
    text = json.dumps(header, ensure_ascii=False).encode()
    with (
        atomic_write(path, overwrite=overwrite) as file,
        zipfile.ZipFile(file, "w", zipfile.ZIP_STORED, allowZip64=True) as archive,
    ):
        archive.writestr(HEADER, text)
        for name, array in arrays.items():
            with archive.open(f"{name}.npy", "w", force_zip64=True) as entry:
                np.lib.format.write_array(
                    entry, np.ascontiguousarray(array), allow_pickle=False
                )


def read_model(
    path: str | os.PathLike[str],
) -> tuple[str, dict[str, Any], dict[str, AnyArray]]:
    """Read a model: its kind, its content and its arrays.

    Raises
    ------
    ModelFileError
        The file is damaged, hostile, of something else, or of a newer release.
    MissingFileError
        There is no such file.
    """
    place = Path(path)
    try:
        with zipfile.ZipFile(place) as archive:
            header = _read_header(archive, place)
            arrays = {
                name: _read_array(archive, place, name, entry)
                for name, entry in header["arrays"].items()
            }
    except ModelFileError:
        raise
    except FileNotFoundError:
        msg = f"{place} does not exist. Check the path; save() of a fit writes a model."
        raise MissingFileError(msg) from None
    except IsADirectoryError:
        raise _refusal(place, "it is a folder", "Name a file in it.") from None
    except OSError as error:
        why = f"it cannot be read ({error.strerror or error})"
        raise _refusal(place, why, "Check the file and its permissions.") from error
    except (zipfile.BadZipFile, zipfile.LargeZipFile, EOFError) as error:
        raise _refusal(place, f"it is damaged or not a model file ({error})") from error
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise _refusal(
            place, f"its content is not that of a model ({error})"
        ) from error
    return header["kind"], header["content"], arrays


def _read_header(archive: zipfile.ZipFile, place: Path) -> dict[str, Any]:
    entries = archive.infolist()
    size = place.stat().st_size
    if len(entries) > MAX_ARRAYS + 1:
        raise _refusal(place, f"it has {len(entries)} entries")
    for entry in entries:
        # Stored entries cannot be larger than the file: no bomb to unpack.
        if entry.compress_type != zipfile.ZIP_STORED or entry.file_size > size:
            raise _refusal(
                place, f"its entry {entry.filename!r} is packed or too large"
            )
    if HEADER not in archive.namelist():
        raise _refusal(place, f"it has no {HEADER}")
    if archive.getinfo(HEADER).file_size > MAX_HEADER_BYTES:
        raise _refusal(place, "its header is too large")
    header = json.loads(archive.read(HEADER))
    if not isinstance(header, dict) or header.get("format") != FORMAT:
        raise _refusal(place, "its header is not that of a model")
    version = header.get("format_version")
    if not isinstance(version, int) or version < 1:
        raise _refusal(place, f"its format version is {version!r}")
    if version > FORMAT_VERSION:
        raise _refusal(
            place,
            f"it was written by a1gm {header.get('package_version')} in format "
            f"{version}, and this release reads formats up to {FORMAT_VERSION}",
            "Upgrade a1gm to read it.",
        )
    expected = {HEADER, *(f"{name}.npy" for name in header["arrays"])}
    if expected != set(archive.namelist()):
        raise _refusal(place, "its entries are not those that its header names")
    return header


def _read_array(
    archive: zipfile.ZipFile, place: Path, name: str, entry: dict[str, Any]
) -> AnyArray:
    dtype, shape = np.dtype(str(entry["dtype"])), tuple(entry["shape"])
    if dtype.kind not in ALLOWED_KINDS or not all(
        isinstance(n, int) and n >= 0 for n in shape
    ):
        raise _refusal(place, f"its array {name!r} is not one of numbers")
    n_bytes = dtype.itemsize
    for n in shape:
        n_bytes *= n
    stored = archive.getinfo(f"{name}.npy").file_size
    if not 0 <= stored - n_bytes <= 4096:
        raise _refusal(place, f"its array {name!r} has another size than it says")
    data = io.BytesIO(archive.read(f"{name}.npy"))
    array: AnyArray = np.lib.format.read_array(data, allow_pickle=False)
    if array.dtype != dtype or array.shape != shape:
        raise _refusal(place, f"its array {name!r} has another shape than it says")
    return array


def _refusal(
    place: Path, why: str, what_to_do: str = "Save the model again with its save()."
) -> ModelFileError:
    return ModelFileError(f"{place} is refused: {why}. {what_to_do}")
