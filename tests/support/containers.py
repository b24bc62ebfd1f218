"""Saved models and bytes of pattern tables, taken apart and packed again.

What is packed is a valid container (sizes, checksums), whatever it holds. This file is
the only place of the tests that knows how the two are laid out.
"""

from __future__ import annotations

import io
import json
import zipfile
import zlib
from pathlib import Path
from typing import Any

import numpy as np

Header = dict[str, Any]
Arrays = dict[str, np.ndarray]

MODEL_HEADER = "header.json"
TABLE_MAGIC = b"a1gm pattern table\n"
LENGTH_BYTES, CHECKSUM_BYTES = 8, 4


def unpack(data: bytes) -> tuple[Header, Arrays]:
    """Header and arrays of a saved model or of the bytes of a pattern table."""
    if data.startswith(TABLE_MAGIC):
        return _unpack_table(data)
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        header = json.loads(archive.read(MODEL_HEADER))
        arrays = {
            name: np.load(io.BytesIO(archive.read(f"{name}.npy")))
            for name in header["arrays"]
        }
    return header, arrays


def pack(header: Header, arrays: Arrays) -> bytes:
    """The container again, its layout and checksums right for what it now holds."""
    if isinstance(header.get("arrays"), dict):
        return _pack_model(header, arrays)
    return _pack_table(header, arrays)


def _pack_model(header: Header, arrays: Arrays) -> bytes:
    layout = {
        name: {"dtype": a.dtype.str, "shape": list(a.shape)}
        for name, a in arrays.items()
    }
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        text = json.dumps({**header, "arrays": layout})
        archive.writestr(MODEL_HEADER, text)
        for name, array in arrays.items():
            entry = io.BytesIO()
            np.save(entry, array, allow_pickle=False)
            archive.writestr(f"{name}.npy", entry.getvalue())
    return file.getvalue()


def _unpack_table(data: bytes) -> tuple[Header, Arrays]:
    start = len(TABLE_MAGIC) + LENGTH_BYTES
    length = int.from_bytes(data[len(TABLE_MAGIC) : start], "little")
    header = json.loads(data[start : start + length])
    at, arrays = start + length, {}
    for name, kind, shape in header["arrays"]:
        count = int(np.prod(shape))
        values = np.frombuffer(data, np.dtype(kind), count, at)
        arrays[name] = values.reshape(shape).copy()
        at += values.nbytes
    return header, arrays


def _pack_table(header: Header, arrays: Arrays) -> bytes:
    layout = [(name, a.dtype.str, list(a.shape)) for name, a in arrays.items()]
    head = json.dumps({**header, "arrays": layout}).encode()
    body = b"".join(np.ascontiguousarray(a).tobytes() for a in arrays.values())
    data = TABLE_MAGIC + len(head).to_bytes(LENGTH_BYTES, "little") + head + body
    return data + zlib.crc32(data).to_bytes(CHECKSUM_BYTES, "little")


def rewrite(path: Path, header: Header, arrays: Arrays) -> Path:
    """Put a container in the place of the one it was made from."""
    path.write_bytes(pack(header, arrays))
    return path
