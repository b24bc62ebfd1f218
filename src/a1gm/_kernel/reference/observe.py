"""The one pass over the rows, in NumPy."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from a1gm._base.bits import pack_bits
from a1gm._base.float_range import keeps_digits, product
from a1gm._base.types import AnyArray, Bools, Floats, Ints, SmallInts, Words
from a1gm._kernel.reference.checks import Part, check_ids, check_table, require

NEAR = 2.0**-50  # what rounding leaves of the ratios of two products
PIECE_CELLS = 1 << 18  # rows are read in pieces of about this many cells


def observe(
    parts: list[Part],
    n_groups: int,
    n_threads: int,
    scale: float,
    table_cells: int,
    keep_table: bool,
) -> tuple[Any, ...]:
    """Observe all rows once; see ``Observation`` in ``a1gm._observe``."""
    n, m = check_table(parts, n_groups, scale, n_threads)
    require(table_cells >= 0, "table_cells must be 0 or more")
    seen = _Pass(n, m, n_groups)
    step = max(1, PIECE_CELLS // max(m, 1))
    for start in range(0, n, step):
        seen.add(read_rows(parts, start, min(start + step, n), scale), start, parts)
    wide = not keep_table and len(seen.counts) * m > table_cells
    wide = wide and len(seen.counts) * 4 > n
    with np.errstate(over="ignore", invalid="ignore"):  # the flag tells of overflow
        form = seen.wide_form() if wide else seen.table_form()
        total = float(seen.row_sums.sum())
    faults = tuple(seen.negative), tuple(seen.infinite)
    return seen.row_sums, wide, form, total, seen.overflow, *faults


def read_rows(parts: list[Part], start: int, stop: int, scale: float) -> Floats:
    """Rows as float64, NaN for missing cells."""
    columns = []
    for values, mask, validity, bit_offset, _ in parts:
        piece = values[start:stop].astype(np.float64)
        if mask is not None:
            piece[mask[start:stop].astype(bool)] = np.nan
        if validity is not None:
            valid = np.unpackbits(validity, bitorder="little")
            piece[valid[bit_offset + start : bit_offset + stop] == 0] = np.nan
        columns.append(piece)
    piece = columns[0] if len(columns) == 1 else np.hstack(columns)
    return piece * scale if scale != 1.0 else piece


def observe_weighted(
    parts: list[Part],
    weights: list[Part],
    n_threads: int,
    weight_scale: float,
    exponent: int,
    table_cells: int,
    is_exposure: bool = False,
) -> tuple[Any, ...]:
    """Observe all rows, with weights, once; see ``a1gm._observe.weights``.

    Row sums, whether there are too many kinds of rows for a table of them, that table
    or a mask, smallest and largest weight and weighted cell, and whether all can be
    used. Exposures are weights that the cells are not multiplied by.
    """
    n, m = check_table(parts, 1, 1.0, n_threads)
    shape = check_table(weights, 1, weight_scale, n_threads)
    require(shape == (n, m), "weights must be one number per cell of the table")
    require(abs(exponent) <= 1 << 14, "exponent must be within 2^14")
    require(table_cells >= 0, "table_cells must be 0 or more")
    X, V = read_rows(parts, 0, n, 1.0), read_rows(weights, 0, n, weight_scale)
    are_fit = bool(((V >= 0.0) & (np.inf > V)).all())
    used, at = (V > 0.0) & ~np.isnan(X), (V > 0.0) & (X > 0.0)
    with np.errstate(over="ignore", invalid="ignore"):
        times = np.ones(1) if is_exposure else V
        cells = product(np.where(used, X, 0.0), times, exponent=-exponent)
        cells = np.where(used, cells, 0.0)
        are_fit &= bool(((cells >= 0.0) & (cells < np.inf)).all())
        sums = cells.sum(axis=1)
        kinds = _proportional_rows(np.where(used, V, 0.0))
        wide = len(kinds.first) * m > table_cells and len(kinds.first) * 4 > n
        form: tuple[Any, ...]
        if wide:
            positive = pack_bits(at)
            bits = pack_bits(used)
            has_zero = bool((bits != positive).any())
            form = bits, positive, cells.sum(axis=0), has_zero
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
        found = product(sums, theirs, over=own)
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


class _Pass:
    """What the pass has found, piece by piece."""

    def __init__(self, n: int, m: int, n_groups: int) -> None:
        self.row_sums = np.zeros((n_groups, n))
        self.ids = np.zeros(n, dtype=np.int32)
        self.n_cols = m
        self.index: dict[bytes, int] = {}
        self.keys: list[Words] = []
        self.sums: list[Floats] = []
        self.counts: list[int] = []
        self.positive: list[Words] = []
        self.overflow = False
        self.negative: list[Any] = [0, -1, -1, 0.0]
        self.infinite: list[Any] = [0, -1, -1, 0.0]

    def add(self, piece: Floats, start: int, parts: list[Part]) -> None:
        observed = ~np.isnan(piece)
        infinite = np.isinf(piece)
        _note(self.infinite, piece, infinite, start)
        _note(self.negative, piece, (piece < 0) & ~infinite, start)
        rows = slice(start, start + len(piece))
        cells = np.where(observed, piece, 0.0)
        with np.errstate(over="ignore", invalid="ignore"):
            at = 0
            for values, _, _, _, group in parts:
                width = values.shape[1]
                self.row_sums[group, rows] += cells[:, at : at + width].sum(axis=1)
                at += width
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
        if not infinite.any():
            self.overflow |= not np.isfinite(self.row_sums[:, rows]).all()

    def _number(self, key: Words) -> int:
        number = self.index.setdefault(key.tobytes(), len(self.keys))
        if number == len(self.keys):
            self.keys.append(key)
            self.sums.append(np.zeros(self.n_cols))
            self.counts.append(0)
        return number

    def table_form(self) -> tuple[Any, ...]:
        sums = np.array(self.sums).reshape(-1, self.n_cols)
        self.overflow |= not np.isfinite(sums).all()
        keys = np.array(self.keys, np.uint64).reshape(-1, -(-self.n_cols // 64))
        return (self.ids, keys, np.array(self.counts, np.int64), sums)

    def wide_form(self) -> tuple[Any, ...]:
        bits = np.array(self.keys)[self.ids]
        positive = np.vstack(self.positive)
        col_sums = np.sum(self.sums, axis=0)
        self.overflow |= not np.isfinite(col_sums).all()
        return (bits, positive, col_sums, bool((bits != positive).any()))


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
    check_ids(row_sums, pattern_id, scale, n_threads)
    row_sums *= scale[pattern_id]
