"""Passes over the rows of a table, in NumPy.

A table is a list of parts: array, mask, validity bitmap, and its bit offset.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from a1gm._base.bits import pack_bits, unpack_bits
from a1gm._base.float_range import LARGEST, LEAST, SMALLEST, keeps_digits
from a1gm._base.types import AnyArray, Bools, Floats, Ints, SmallInts, Words

Part: TypeAlias = tuple[AnyArray, AnyArray | None, AnyArray | None, int]
MOST = float(np.finfo(np.float64).max)
NEAR = 2.0**-50  # what rounding leaves of the ratios of two products
PIECE_CELLS = 1 << 18  # rows are read in pieces of about this many cells


def _pieces(parts: list[Part]) -> Iterator[tuple[slice, Floats]]:
    """Yield some rows, and their cells as float64 with NaN for missing ones."""
    n, m = len(parts[0][0]), sum(part[0].shape[1] for part in parts)
    step = max(1, PIECE_CELLS // max(m, 1))
    for start in range(0, n, step):
        rows = slice(start, min(start + step, n))
        columns = []
        for values, mask, validity, bit_offset in parts:
            piece = values[rows].astype(np.float64)
            if mask is not None:
                piece[mask[rows].astype(bool)] = np.nan
            if validity is not None:
                valid = np.unpackbits(validity, bitorder="little")[bit_offset:]
                piece[valid[rows] == 0] = np.nan
            columns.append(piece)
        piece = columns[0] if len(columns) == 1 else np.hstack(columns)
        yield rows, piece


def read_rows(parts: list[Part]) -> Floats:
    """All rows as float64, NaN for missing cells."""
    empty = np.zeros((0, sum(part[0].shape[1] for part in parts)))
    return np.vstack([empty, *(piece for _, piece in _pieces(parts))])


# ------------------------------------------------------------------------ observing
def observe(
    parts: list[Part],
    n_threads: int,
    table_cells: int,
    keep_table: bool,
) -> tuple[Any, ...]:
    """Observe all rows once; see ``a1gm._observe``."""
    n, m = len(parts[0][0]), sum(part[0].shape[1] for part in parts)
    seen = _Pass(n, m)
    with np.errstate(over="ignore", invalid="ignore"):  # the flag reports it
        for rows, piece in _pieces(parts):
            seen.add(piece, rows)
        wide = not keep_table and len(seen.counts) * m > table_cells
        wide = wide and len(seen.counts) * 4 > n
        form = seen.wide_form() if wide else seen.table_form()
    faults = tuple(seen.negative), tuple(seen.infinite)
    return seen.row_sums, wide, form, seen.is_in_range, *faults


class _Pass:
    """What the pass has found, piece by piece."""

    def __init__(self, n: int, m: int) -> None:
        self.row_sums = np.zeros(n)
        self.ids = np.zeros(n, dtype=np.int32)
        self.n_cols = m
        self.index: dict[bytes, int] = {}
        self.keys: list[Words] = []
        self.sums: list[Floats] = []
        self.counts: list[int] = []
        self.positive: list[Words] = []
        self.is_in_range = True
        self.negative: list[Any] = [0, -1, -1, 0.0]
        self.infinite: list[Any] = [0, -1, -1, 0.0]

    def add(self, piece: Floats, rows: slice) -> None:
        observed, infinite = ~np.isnan(piece), np.isinf(piece)
        _note(self.infinite, piece, infinite, rows.start)
        _note(self.negative, piece, (piece < 0) & ~infinite, rows.start)
        cells = np.where(observed, piece, 0.0)
        self.row_sums[rows] = cells.sum(axis=1)
        keys, inverse = np.unique(pack_bits(observed), axis=0, return_inverse=True)
        inverse = inverse.ravel()
        # Patterns are numbered in the order in which they first appear.
        for k in inverse[np.sort(np.unique(inverse, return_index=True)[1])]:
            chosen = inverse == k
            number = self._number(keys[k])
            self.sums[number] = self.sums[number] + cells[chosen].sum(axis=0)
            self.counts[number] += int(chosen.sum())
            self.ids[rows][chosen] = number
        self.positive.append(pack_bits(piece > 0))
        size = np.abs(self.row_sums[rows])
        is_right = (size == 0.0) | ((size >= SMALLEST) & (size <= LARGEST))
        self.is_in_range &= bool(is_right.all() and (np.abs(cells) <= LARGEST).all())

    def _number(self, key: Words) -> int:
        number = self.index.setdefault(key.tobytes(), len(self.keys))
        if number == len(self.keys):
            self.keys.append(key)
            self.sums.append(np.zeros(self.n_cols))
            self.counts.append(0)
        return number

    def table_form(self) -> tuple[Any, ...]:
        sums = np.array(self.sums).reshape(-1, self.n_cols)
        keys = np.array(self.keys, np.uint64).reshape(-1, -(-self.n_cols // 64))
        return self.ids, keys, np.array(self.counts, np.int64), sums

    def wide_form(self) -> tuple[Any, ...]:
        bits, positive = np.array(self.keys)[self.ids], np.vstack(self.positive)
        col_sums = np.sum(self.sums, axis=0)
        return bits, positive, col_sums, bool((bits != positive).any())


def _note(fault: list[Any], piece: Floats, bad: Bools, start: int) -> None:
    count = int(bad.sum())
    if count and fault[0] == 0:
        row, col = divmod(int(bad.argmax()), piece.shape[1])
        fault[1:] = [start + row, col, float(piece[row, col])]
    fault[0] += count


def expand_rows(
    row_sums: Floats, pattern_id: AnyArray, scale: Floats, n_threads: int
) -> None:
    """Turn row sums into row factors in place."""
    row_sums *= scale[pattern_id]


def add_patterns(
    hi: Floats,
    lo: Floats,
    counts: Ints,
    zero_counts: Ints,
    places: Ints,
    sums: Floats,
    new_counts: Ints,
    pattern_id: AnyArray,
    row_sums: Floats,
) -> AnyArray:
    """Add the patterns of a piece to those of a table, in place.

    The sums are pairs ``hi + lo``. Returns the place of each row of the piece, whose
    pattern within the piece is ``pattern_id``.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        before = hi[places]
        total = before + sums
        part = total - before
        lo[places] += (before - (total - part)) + (sums - part)
    hi[places] = total
    counts[places] += new_counts
    zero_counts[places] += np.bincount(
        pattern_id[row_sums == 0.0], minlength=len(places)
    )
    patterns: AnyArray = places.astype(np.int32)[pattern_id]
    return patterns


# -------------------------------------------------------------------------- weights
def observe_weighted(
    parts: list[Part],
    weights: list[Part],
    n_threads: int,
    table_cells: int,
    is_exposure: bool = False,
) -> tuple[Any, ...]:
    """Observe all rows, with weights, once; see ``a1gm._observe``.

    Row sums, whether there are too many kinds of rows for a table of them, that table
    or a mask, smallest and largest weight and weighted cell, and whether all can be
    used. Exposures are weights that the cells are not multiplied by.
    """
    X, V = read_rows(parts), read_rows(weights)
    n, m = X.shape
    are_fit = bool(((V >= 0.0) & (np.inf > V)).all())
    used, at = (V > 0.0) & ~np.isnan(X), (V > 0.0) & (X > 0.0)
    with np.errstate(over="ignore", invalid="ignore"):
        cells = np.where(used, X if is_exposure else X * V, 0.0)
        are_fit &= bool(((cells >= 0.0) & (cells < np.inf)).all())
        sums = cells.sum(axis=1)
        kinds = _proportional_rows(np.where(used, V, 0.0))
        wide = len(kinds.first) * m > table_cells and len(kinds.first) * 4 > n
        form: tuple[Any, ...]
        if wide:
            bits, positive = pack_bits(used), pack_bits(at)
            form = bits, positive, cells.sum(axis=0), bool((bits != positive).any())
        else:
            by_kind = np.zeros((len(kinds.first), m))
            np.add.at(by_kind, kinds.number, cells)
            form = kinds.number, np.where(used, V, 0.0)[kinds.first], by_kind
            sums = kinds.alike(sums)
    return sums, wide, form, _ends(V[used]), _ends(cells[at]), are_fit


@dataclass(frozen=True)
class _Kinds:
    """Rows of proportional weights: number and first row of each, largest weights."""

    number: SmallInts
    first: Ints
    largest: Floats

    def alike(self, sums: Floats) -> Floats:
        """Sums that rows would have with the weights of the first of their kind."""
        theirs = self.largest[self.first][self.number]
        own = np.where(self.largest > 0.0, self.largest, 1.0)
        found = sums * (theirs / own)
        kept = keeps_digits(found) & ((found == 0.0) == (sums == 0.0))
        return np.where(kept, found, np.nan)


def _proportional_rows(V: Floats) -> _Kinds:
    """Number the kinds of rows in the order of their first rows."""
    largest = V.max(axis=1, initial=0.0)
    own, power = np.frexp(V)
    most, of_most = np.frexp(np.where(largest > 0.0, largest, 1.0)[:, None])
    exact, more = np.frexp(own / most)
    # 44 bits of the mantissa count; exponents have 12.
    shape = np.round(np.ldexp(exact, 40)) + np.ldexp(2.0 * (power - of_most + more), 40)
    shape[V == 0.0] = 0.0
    _, first, number = np.unique(shape, axis=0, return_index=True, return_inverse=True)
    alike = first[number.ravel()]
    # What is more than rounding keeps a row apart.
    is_near = (np.abs(exact - exact[alike]) <= NEAR * exact).all(axis=1)
    alike = np.where(is_near, alike, np.arange(len(V)))
    first, number = np.unique(alike, return_inverse=True)
    return _Kinds(number.ravel().astype(np.int32), first, largest)


def _ends(x: Floats) -> tuple[float, float]:
    return float(x.min(initial=np.inf)), float(x.max(initial=0.0))


def bits_product(
    bits: Words, weights: list[Part] | None, d: Floats, x: Floats, n_threads: int
) -> Floats:
    """Pᵀ (d (P x)) for a mask P, or the weights of its observed cells."""
    P = unpack_bits(bits, len(x)).astype(np.float64)
    if weights is not None:
        P = np.where(P > 0.0, read_rows(weights), 0.0)
    found: Floats = (d * (P @ x)) @ P
    return found


def reach_of_bits(bits: Words, x: Floats, n_threads: int) -> Floats:
    """P x for a mask P."""
    found: Floats = unpack_bits(bits, len(x)) @ x
    return found


def collect_bits(
    bits: Words, d: Floats, n_cols: int, n_levels: int, inner: int, n_threads: int
) -> Floats:
    """Sums of d over the rows of each level that observe a column, one after another.

    Rows of level l have ``i // inner % n_levels == l``.
    """
    P = unpack_bits(bits, n_cols) * d[:, None]
    found: Floats = P.reshape(-1, n_levels, inner, n_cols).sum(axis=(0, 2))
    return found.ravel()


# -------------------------------------------------------------------------- scatter
def divergence(
    parts: list[Part], h: Floats, n_threads: int
) -> tuple[float, float] | None:
    """Sum of x log(x / f) - x + f over the observed cells, and of the row factors.

    None where a cell is negative or infinite, and where a factor is out of range.
    """
    total = factors = 0.0
    with np.errstate(all="ignore"):
        for _, piece in _pieces(parts):
            observed = ~np.isnan(piece)
            sums = np.where(observed, piece, 0.0).sum(axis=1)
            w = sums / np.where(observed, h, 0.0).sum(axis=1)
            is_right = (sums == 0.0) | ((w >= LEAST) & (w * max(1.0, h.max()) <= MOST))
            if (piece < 0.0).any() or not is_right.all():
                return None
            i, j = np.nonzero(observed)
            x, f = piece[i, j], w[i] * h[j]
            is_apart = (x / f < LEAST) | (x / f > MOST) | (f < LEAST)
            logs = np.log(x) - (np.log(w[i]) + np.log(h[j]))
            logs = np.where(is_apart, logs, np.log(x / f))
            cells = np.maximum(x * logs - (x - f), 0.0)  # below by rounding only
            total += float(np.where(x == 0.0, f, cells).sum())
            factors += float(np.nansum(w))
    return (total, factors) if np.isfinite(total) else None


def square_sums(
    parts: list[Part],
    row_sums: Floats,
    patterns: SmallInts,
    n_patterns: int,
    n_threads: int,
) -> Floats:
    """Sums of x² / r by pattern and column, r being the sum of the row.

    NaN for a pattern with a row that has cells but no positive sum.
    """
    sums = np.zeros((n_patterns, sum(part[0].shape[1] for part in parts)))
    for rows, piece in _pieces(parts):
        x = np.nan_to_num(piece, nan=0.0)
        with np.errstate(all="ignore"):
            squares = x * (x / row_sums[rows, None])
        none = ~(row_sums[rows] > 0.0)
        squares[none] = np.where((x[none] != 0.0).any(axis=1)[:, None], np.nan, 0.0)
        np.add.at(sums, patterns[rows], squares)
    return sums
