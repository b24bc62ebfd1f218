"""Boolean tables packed into 64-bit words, column 0 in the lowest bit."""

from __future__ import annotations

from typing import Any

import numpy as np

from a1gm._base.types import Bools, Words


def pack_bits(observed: Bools) -> Words:
    """Pack the columns of a boolean table into 64-bit words."""
    n, m = observed.shape
    padded = np.zeros((n, -(-m // 64) * 64), dtype=bool)
    padded[:, :m] = observed
    packed = np.packbits(padded, axis=1, bitorder="little")
    return np.ascontiguousarray(packed).view("<u8").astype(np.uint64)


def unpack_bits(bits: Words, n_cols: int) -> Bools:
    """Undo `pack_bits`."""
    as_bytes = np.ascontiguousarray(bits, dtype="<u8").view(np.uint8)
    return np.unpackbits(as_bytes, axis=1, bitorder="little", count=n_cols).astype(bool)


def names_of_rows(bits: Words) -> list[bytes]:
    """Return the bytes of each row, to be looked up."""
    whole: Any = np.ascontiguousarray(bits).view(f"V{8 * bits.shape[1]}")
    names: list[bytes] = whole.ravel().tolist()
    return names


def union(bits: Words) -> Words:
    """Bits that are set in some row."""
    found: Words = np.bitwise_or.reduce(bits, axis=0)
    return found


def has_bits_beyond(bits: Words, n_cols: int) -> bool:
    """Whether a bit beyond the last column is set."""
    if n_cols % 64 == 0:
        return False
    beyond = ~np.uint64((1 << n_cols % 64) - 1)
    return bool((bits[:, -1] & beyond).any())
