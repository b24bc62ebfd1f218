"""Columns of frames as the parts that the kernel reads."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import numpy as np

from a1gm._base.types import AnyArray
from a1gm._rows.rows import Part

MANY_COLUMNS = 2  # joining pays when this many columns lie side by side


def piece_steps(
    ends_of_columns: list[list[int] | None], n_rows: int, piece_rows: int
) -> tuple[int, ...]:
    """Rows where pieces begin and end.

    They end where chunks do, and hold at least ``piece_rows`` rows: tiny chunks are
    joined, which copies no more than a piece at a time.
    """
    ends = {end for ends in ends_of_columns if ends for end in ends}
    steps = [0]
    for end in sorted(ends):
        if end - steps[-1] >= piece_rows and end < n_rows:
            steps.append(end)
    return (*steps, n_rows)


def arrow_part(chunked: Any, start: int, stop: int) -> Part:
    """Rows of an Arrow column: its values and validity bits, where they lie."""
    piece = chunked.slice(start, stop - start)
    array = piece.chunk(0) if piece.num_chunks == 1 else _joined(piece)
    validity, data = array.buffers()[:2]
    dtype = np.dtype(array.type.to_pandas_dtype())
    values = np.frombuffer(data, dtype)[array.offset : array.offset + len(array), None]
    if validity is None or array.null_count == 0:
        return (values, None, None, 0, 0)
    return (values, None, np.frombuffer(validity, np.uint8), array.offset, 0)


def _joined(piece: Any) -> Any:
    import pyarrow as pa

    joined = piece.combine_chunks()
    return pa.concat_arrays(joined.chunks) if hasattr(joined, "chunks") else joined


def join_neighbours(parts: list[Part]) -> list[Part]:
    """Make one matrix of columns that lie at equal distances in the same memory.

    The blocks of a pandas frame are such matrices; the kernel reads one faster than
    its columns one by one.
    """
    joined: list[Part] = []
    at = 0
    while at < len(parts):
        n, stride = _run_length(parts, at)
        if n < MANY_COLUMNS:
            joined.append(parts[at])
        else:
            joined.append(_matrix(parts[at][0], n, stride))
        at += n
    return joined


def _run_length(parts: list[Part], at: int) -> tuple[int, int]:
    """How many columns from here on are equally spaced views of one array."""
    owner = _owner(parts[at])
    n, stride = 1, 0
    while owner is not None and at + n < len(parts):
        left, right = parts[at + n - 1][0], parts[at + n][0]
        if _owner(parts[at + n]) is not owner or left.dtype != right.dtype:
            break
        step = _address(right) - _address(left)
        if left.strides[0] != right.strides[0] or (n > 1 and step != stride):
            break
        n, stride = n + 1, step
    return n, stride


def _owner(part: Part) -> AnyArray | None:
    """The array whose memory a plain column without a mask is a view of."""
    values, mask, validity, _, _ = part
    if mask is not None or validity is not None:
        return None
    owner = values
    while isinstance(owner.base, np.ndarray):
        owner = owner.base
    return owner if owner is not values else None


def _address(array: AnyArray) -> int:
    address: int = array.__array_interface__["data"][0]
    return address


def _matrix(first: AnyArray, n_cols: int, stride: int) -> Part:
    # Every column was seen to lie in the memory of the same array, which `first` keeps
    # alive, so the strided view stays inside it.
    shape = (first.shape[0], n_cols)
    values = np.lib.stride_tricks.as_strided(
        first, shape, (first.strides[0], stride), writeable=False
    )
    return (values, None, None, 0, 0)


def with_types(metadata: Any, kinds: Mapping[str, str]) -> Any:
    """Metadata of an Arrow table some of whose columns have become of other types.

    pandas notes its own types there and would cast the columns back to them.
    """
    if not metadata or b"pandas" not in metadata or not kinds:
        return metadata
    noted = json.loads(metadata[b"pandas"])
    for column in noted.get("columns", ()):
        if kind := kinds.get(column.get("field_name")):
            column["pandas_type"] = column["numpy_type"] = kind
    return {**metadata, b"pandas": json.dumps(noted).encode()}
