"""Products of a bit mask with vectors, a byte of the mask at a time.

Eight columns make a byte, and a byte has 256 values: tables of 256 partial sums replace
eight multiplications by one look-up, and the mask is never unpacked.
"""

from __future__ import annotations

import numpy as np

from a1gm._base.types import Floats, Words

__all__ = ["mask_times", "times_mask"]

# _BITS[k, b]: bit k of the byte b.
_BITS = (np.arange(256) >> np.arange(8)[:, None] & 1).astype(np.float64)


def mask_times(bits: Words, h: Floats) -> Floats:
    """Sum the h_j of the observed cells of each row."""
    octets = _octets(bits)
    tables = _in_eights(h) @ _BITS
    sums = np.zeros(len(bits))
    for k, table in enumerate(tables):
        sums += table[octets[:, k]]
    return sums


def times_mask(w: Floats, bits: Words, n_cols: int) -> Floats:
    """Sum the w_i of the observed cells of each column."""
    octets = _octets(bits)
    n_octets = -(-n_cols // 8)
    by_value = np.empty((n_octets, 256))
    for k in range(n_octets):
        by_value[k] = np.bincount(octets[:, k], w, minlength=256)
    sums: Floats = (by_value @ _BITS.T).ravel()[:n_cols]
    return sums


def _octets(bits: Words) -> np.ndarray[tuple[int, int], np.dtype[np.uint8]]:
    return np.ascontiguousarray(bits, "<u8").view(np.uint8)


def _in_eights(h: Floats) -> Floats:
    padded = np.zeros(-(-len(h) // 8) * 8)
    padded[: len(h)] = h
    return padded.reshape(-1, 8)
