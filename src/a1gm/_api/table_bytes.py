"""Pattern tables as bytes: a JSON header, the arrays, and a checksum."""

from __future__ import annotations

import json
import zlib
from collections.abc import Hashable, Iterator
from typing import Any

import numpy as np

from a1gm._observe.sums import PatternSums
from a1gm._api.pattern_table import PatternTable
from a1gm._base.types import AnyArray
from a1gm.exceptions import FileFormatError, ParameterError

__all__ = ["read_table", "write_table"]

MAGIC = b"a1gm pattern table\n"
VERSION = 1
_LENGTH = 8  # bytes of the length of the header
_CHECKSUM = 4


def write_table(table: PatternTable) -> bytes:
    """Write a table down."""
    sums = table._sums
    arrays = [] if sums is None else list(_arrays(sums, table))
    header = {
        "version": VERSION,
        "n_columns": table.n_columns,
        "n_rows": table.n_rows,
        "n_negative": table._n_negative,
        "keep_rows": table.keep_rows,
        "negatives": table.negatives,
        "exponent": 0 if sums is None else sums.exponent,
        "blocks": [_key_to_json(key) for key in table._blocks],
        "labels": _labels_to_json(table._col_labels),
        "row_blocks": [(len(r), e) for r, _, e in table._rows],
        "arrays": [(name, a.dtype.str, a.shape) for name, a in arrays],
    }
    head = json.dumps(header, separators=(",", ":")).encode()
    body = b"".join(np.ascontiguousarray(a).tobytes() for _, a in arrays)
    data = MAGIC + len(head).to_bytes(_LENGTH, "little") + head + body
    return data + zlib.crc32(data).to_bytes(_CHECKSUM, "little")


def _arrays(sums: PatternSums, table: PatternTable) -> Iterator[tuple[str, AnyArray]]:
    yield "keys", sums.key_words.astype("<u8", copy=False)
    yield "counts", sums.counts.astype("<i8", copy=False)
    yield "zero_counts", sums.zero_counts.astype("<i8", copy=False)
    yield "hi", sums.hi.astype("<f8", copy=False)
    yield "lo", sums.lo.astype("<f8", copy=False)
    if table._rows:
        yield "row_sums", np.concatenate([r for r, _, _ in table._rows]).astype("<f8")
        yield "lines", np.concatenate([k for _, k, _ in table._rows]).astype("<i4")


def read_table(data: bytes) -> PatternTable:
    """Read a table, or say why it is none."""
    header, body = _split(bytes(data))
    try:
        arrays = _read_arrays(header["arrays"], body)
        table = PatternTable(
            header["n_columns"],
            keep_rows=header["keep_rows"],
            negatives=header["negatives"],
        )
        table.n_rows = int(header["n_rows"])
        table._n_negative = int(header["n_negative"])
        table._blocks = {_key_from_json(key) for key in header["blocks"]}
        table._col_labels = header["labels"]
        if arrays:
            table._sums = _read_sums(arrays, int(header["exponent"]), table)
            _read_rows(arrays, header["row_blocks"], table)
    except (KeyError, TypeError, ValueError, IndexError) as error:
        if isinstance(error, FileFormatError):
            raise
        raise FileFormatError(
            f"This pattern table cannot be read: its parts do not fit together "
            f"({error!r}). Write it again with to_bytes."
        ) from error
    return table


def _split(data: bytes) -> tuple[dict[str, Any], memoryview]:
    """Header and arrays, once checksum and version are known to be right."""
    start = len(MAGIC) + _LENGTH
    if not data.startswith(MAGIC) or len(data) < start + _CHECKSUM:
        raise FileFormatError(
            "These bytes are not a pattern table: they do not begin as "
            "PatternTable.to_bytes does."
        )
    length = int.from_bytes(data[len(MAGIC) : start], "little")
    end = len(data) - _CHECKSUM
    if zlib.crc32(data[:end]).to_bytes(_CHECKSUM, "little") != data[end:]:
        raise FileFormatError(
            "This pattern table is damaged: its checksum is wrong. Count its rows "
            "again."
        )
    if start + length > end:
        raise FileFormatError("This pattern table is damaged: its header is cut off.")
    try:
        header = json.loads(data[start : start + length])
    except ValueError as error:
        raise FileFormatError(
            "This pattern table is damaged: its header is not JSON."
        ) from error
    if not isinstance(header, dict) or header.get("version") != VERSION:
        found = header.get("version") if isinstance(header, dict) else None
        raise FileFormatError(
            f"This pattern table has format version {found!r}; this release of a1gm "
            f"reads version {VERSION}. Install the release that wrote it."
        )
    return header, memoryview(data)[start + length : end]


def _read_arrays(
    layout: list[tuple[str, str, list[int]]], body: memoryview
) -> dict[str, AnyArray]:
    arrays: dict[str, AnyArray] = {}
    at = 0
    for name, kind, shape in layout:
        if kind not in {"<f8", "<i8", "<i4", "<u8"} or min(shape, default=0) < 0:
            raise FileFormatError(f"This pattern table has an odd array {name!r}.")
        dtype = np.dtype(kind)
        count = int(np.prod([int(side) for side in shape], dtype=object))
        # Sizes are checked against the bytes there are, before memory is taken.
        if at + count * dtype.itemsize > len(body):
            raise FileFormatError("This pattern table is damaged: arrays are cut off.")
        values = np.frombuffer(body, dtype, count, at).reshape(shape)
        arrays[name] = values.astype(dtype.newbyteorder("="))
        at += count * dtype.itemsize
    return arrays


def _read_sums(
    arrays: dict[str, AnyArray], exponent: int, table: PatternTable
) -> PatternSums:
    hi, keys = arrays["hi"], arrays["keys"]
    n, n_cols = hi.shape
    counts, zero_counts = arrays["counts"], arrays["zero_counts"]
    if keys.shape != (n, -(-n_cols // 64)) or n_cols != table.n_columns:
        raise FileFormatError("This pattern table has keys of another width.")
    names = [row.tobytes() for row in keys]
    if len(set(names)) != n or int(counts.sum()) != table.n_rows:
        raise FileFormatError("This pattern table does not add up to its rows.")
    sums = PatternSums(n_cols)
    places = sums.places(names)
    sums.exponent = exponent
    sums.add(places, hi, counts, zero_counts)
    sums.lo[places] += arrays["lo"]
    return sums


def _read_rows(
    arrays: dict[str, AnyArray], layout: list[list[int]], table: PatternTable
) -> None:
    if not layout:
        return
    row_sums, lines = arrays["row_sums"], arrays["lines"]
    total = sum(length for length, _ in layout)
    in_range = lines.size == 0 or (
        int(lines.min()) >= 0 and int(lines.max()) < table.n_patterns
    )
    if not (len(row_sums) == len(lines) == total == table.n_rows and in_range):
        raise FileFormatError("This pattern table does not add up to its rows.")
    at = 0
    for length, exponent in layout:
        piece = slice(at, at + length)
        table._rows.append((row_sums[piece], lines[piece], int(exponent)))
        at += length


def _key_to_json(key: Hashable) -> Any:
    if isinstance(key, tuple):
        return [_key_to_json(part) for part in key]
    if isinstance(key, bool) or not isinstance(key, int | str | float):
        raise ParameterError(
            f"The block key {key!r} cannot be written: use numbers, texts or tuples "
            "of them as keys."
        )
    return key


def _key_from_json(key: Any) -> Hashable:
    if isinstance(key, list):
        return tuple(_key_from_json(part) for part in key)
    if not isinstance(key, int | str | float):
        raise FileFormatError("This pattern table has block keys of an unknown kind.")
    return key


def _labels_to_json(labels: Any) -> list[Any] | None:
    if labels is None:
        return None
    plain = [x.item() if isinstance(x, np.generic) else x for x in labels]
    return [x if isinstance(x, str | int | float) else str(x) for x in plain]
