"""Saved models and bytes of pattern tables, taken apart and packed again.

What is packed is a valid container (sizes, checksums), whatever it holds. This file is
the only place of the tests that knows how the two are laid out.
"""

from __future__ import annotations

import io
import json
import zipfile
from typing import Any

import numpy as np

Header = dict[str, Any]
Arrays = dict[str, np.ndarray]

MODEL_HEADER = "header.json"


def unpack(data: bytes) -> tuple[Header, Arrays]:
    """Header and arrays of a saved model or of the bytes of a pattern table."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        header = json.loads(archive.read(MODEL_HEADER))
        arrays = {
            name.removesuffix(".npy"): np.load(io.BytesIO(archive.read(name)))
            for name in archive.namelist()
            if name != MODEL_HEADER
        }
    return header, arrays


def pack(header: Header, arrays: Arrays) -> bytes:
    """The container again, with the checksums of what it now holds."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr(MODEL_HEADER, json.dumps(header))
        for name, array in arrays.items():
            entry = io.BytesIO()
            np.save(entry, array, allow_pickle=False)
            archive.writestr(f"{name}.npy", entry.getvalue())
    return file.getvalue()
