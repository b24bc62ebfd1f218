"""The joint table of a layout as one ordinary table, with one ordinary fit.

Three tables are the table ``[[X, Z], [Y, nothing]]`` with cell weights
``[[1, beta], [alpha, 0]]``. Weights that are a product of a row part and a column part
are applied to the cells: a fit of ``weight * T`` has the factors times these parts.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from a1gm._api.fit import FitOptions, fit_patterns
from a1gm._base.float_range import LEAST
from a1gm._base.types import Floats, Ints, SmallInts
from a1gm._fit.fit import RankOneFit
from a1gm._fit.place import Columns, Placed
from a1gm._observe.observe import observe
from a1gm._rows import Rows
from a1gm._rows.rows import Part, check_piece, read_parts
from a1gm._solve.column_graph import ColumnGraph
from a1gm.exceptions import (
    DataError,
    InfiniteValuesError,
    NegativeValuesError,
    NotRepresentableError,
)
from a1gm.nmmf.layout import Layout, transpose

OUT_OF_RANGE = (
    "The shared factors of these tables, or their weighted cells, are outside the "
    "range of float64 (about 1e-308 to 1e308). Multiply the tables by powers of ten "
    "that bring them nearer to 1, or use weights nearer to 1."
)
NOWHERE = np.zeros(0, np.int64)
STEEP = 2.0**-60
SCALED_CELLS = 1 << 22  # of a table that is copied with its weight at once


@dataclass(frozen=True)
class Entities:
    """A set of entities: factors, blocks, and where they are in the joint table.

    ``blocks`` are those of the entities, None for a single one. Entities in tables of
    weight 0 only are not in the joint table: ``place`` gives the first entity of the
    block of each, which leads to the same cells, and -1 where there is no block.
    """

    factor: Floats
    blocks: Ints | None
    place: slice | Ints

    @property
    def is_fitted(self) -> bool:
        """Whether the entities are in the joint table."""
        return isinstance(self.place, slice)

    @property
    def block(self) -> SmallInts:
        """Block of each entity; -1 where the factor is 0 or NaN."""
        blocks = 0 if self.blocks is None else self.blocks
        return np.where(self.factor > 0.0, blocks, -1).astype(np.int32)

    def places(self, some: Ints) -> Ints:
        """Positions of some entities in the joint table; the first where none is."""
        if isinstance(self.place, slice):
            found: Ints = some + self.place.start
            return found
        return np.maximum(self.place[some], 0)


# ------------------------------------------------------------------------- the fit
def fit_joint(
    layout: Layout, options: FitOptions
) -> tuple[RankOneFit, list[Entities], list[Entities]]:
    """Fit the joint table without warnings; the row sets and the column sets."""
    rows = _joint_rows(layout)
    try:
        for table in layout.tables:
            if not any((~np.isnan(cells)).any() for _, cells in table.rows.blocks()):
                give = "Give" if table.key == "X" else "Leave the table out, or give"
                raise DataError(
                    f"Nothing is observed in {table.name}: all of its "
                    f"{table.shape_text} cells are missing. {give} it at least one "
                    "number."
                )
        seen = observe(rows, n_threads=options.n_threads, negatives=None)
        fit = fit_patterns(seen, options, rows, policy=None)
        return fit, *share_factors(layout, fit)
    except (NegativeValuesError, InfiniteValuesError):
        for table in layout.tables:  # in the words of the owner of the table
            check_cells(table.own)
        raise
    except NotRepresentableError as error:
        raise NotRepresentableError(OUT_OF_RANGE) from error


def _joint_rows(layout: Layout) -> Rows:
    """The joint table; its pieces are made when they are read."""
    n, m = layout.shape
    what, weights = "product", None
    if layout.units is None:
        cut, what = partial(_cut, layout, "weights"), "cells"
        weights = Rows([], n, m, cut=cut, steps=(0, n))
    cut = partial(_cut, layout, what)
    return Rows([], n, m, cut=cut, steps=_steps(layout), weights=weights)


def _steps(layout: Layout) -> tuple[int, ...]:
    """Where pieces begin and end: at row sets, and often where cells are copied."""
    is_copied = {t.row_set for t in layout.fitted if t.weight != 1.0}
    step = max(1, SCALED_CELLS // layout.shape[1])
    found = {layout.shape[0]}
    for r, place in enumerate(s.place for s in layout.row_sets):
        own_step = step if r in is_copied else max(1, place.stop - place.start)
        found.update(range(place.start, place.stop, own_step))
    return tuple(sorted(found))


def _cut(layout: Layout, what: str, start: int, stop: int) -> list[Part]:
    """Rows of the joint table: "cells", "weights", or the "product" of both."""
    found = []
    for r, place in enumerate(s.place for s in layout.row_sets):
        first, last = max(start, place.start), min(stop, place.stop)
        if first < last:
            rows = slice(first - place.start, last - place.start)
            found.append(_parts(layout, what, r, rows))
    if len(found) == 1:
        return found[0]
    dense = [read_parts(parts, 0, len(parts[0][0])) for parts in found]
    return [(np.concatenate(dense), None, None, 0)]


def _parts(layout: Layout, what: str, r: int, rows: slice) -> list[Part]:
    """Some rows of a row set, with the columns of the joint table."""
    parts: list[Part] = []
    tables = {table.col_set: table for table in layout.fitted if table.row_set == r}
    for c, entities in enumerate(layout.col_sets):
        if not entities.is_fitted:
            continue
        table = tables.get(c)
        if table is None or what == "weights":
            constant = np.nan
            if what == "weights":
                constant = 0.0 if table is None else table.weight
            shape = rows.stop - rows.start, entities.size
            values = np.broadcast_to(np.float64(constant), shape)
            parts.append((values, None, None, 0))
        elif what == "cells" or table.weight == 1.0:
            parts += [
                (v[rows], None if m is None else m[rows], bits, at + rows.start)
                for v, m, bits, at in table.rows.parts
            ]
        else:
            cells = _weighted(table.rows, rows, table.weight)
            parts.append((cells, None, None, 0))
    return parts


def _weighted(table: Rows, rows: slice, weight: float) -> Floats:
    """Cells times the weight of their table; raise where digits are lost."""
    cells = table.rows(rows)
    with np.errstate(over="ignore", under="ignore"):
        found: Floats = cells * weight
    is_lost = ((found < LEAST) & (cells > 0.0)) | (np.isinf(found) & np.isfinite(cells))
    if is_lost.any():
        raise NotRepresentableError(OUT_OF_RANGE)
    return found


def check_cells(table: Rows) -> None:
    """Raise for negative and infinite cells, as the owner of the table names them."""
    check_piece(table, table.rows(slice(0, table.n_rows)), 0, None)


# ------------------------------------------------------------- factors of the entities
def share_factors(
    layout: Layout, fit: RankOneFit
) -> tuple[list[Entities], list[Entities]]:
    """Factors of the row sets and of the column sets, on the scale of Theorem 1."""
    w, h = np.asarray(fit.row_factor), fit.col_factor
    if fit.n_blocks == 0:  # zeros everywhere
        h = np.where(np.isnan(h), np.nan, 0.0)
    blocks: tuple[Ints | None, Ints | None] = None, None
    if fit.n_blocks > 1:  # any number for rows and columns without data
        own = np.unique(fit.row_block[w > 0.0])
        of_rows, of_cols = fit.row_block, fit.col_block
        blocks = np.searchsorted(own, of_rows), np.searchsorted(own, of_cols)
    rows, cols = (
        [
            Entities(
                factor[s.place],
                None if block is None else block[s.place],
                s.place if s.is_fitted else NOWHERE,
            )
            for s in sets
        ]
        for factor, block, sets in zip(
            (w, h), blocks, (layout.row_sets, layout.col_sets), strict=True
        )
    )
    a, b = layout.units or ({}, {})
    with np.errstate(all="ignore"):  # what leaves the range is refused
        balance = _balance(layout, fit.n_blocks, rows, cols)
        rows = [_in_units(x, balance / a.get(r, 1.0)) for r, x in enumerate(rows)]
        cols = [_in_units(x, 1.0 / balance / b.get(c, 1.0)) for c, x in enumerate(cols)]
    # Sets in tables of weight 0 only are placed by those on the other side.
    for r, entities in enumerate(layout.row_sets):
        if not entities.is_fitted:
            tables = [t for t in layout.tables if t.row_set == r]
            sides = [(t.rows, cols[t.col_set]) for t in tables]
            rows[r] = _placed_set(sides, fit.n_blocks, rows)
    for c, entities in enumerate(layout.col_sets):
        if not entities.is_fitted:
            tables = [t for t in layout.tables if t.col_set == c]
            sides = [(transpose(t.rows), rows[t.row_set]) for t in tables]
            cols[c] = _placed_set(sides, fit.n_blocks, cols)
    return rows, cols


def _balance(
    layout: Layout, n_blocks: int, rows: list[Entities], cols: list[Entities]
) -> Floats:
    """Factor for the rows of each block that makes both sides of a table equal.

    Theorem 1 gives the factors of X the same sum. A block without entities of X on
    both sides is balanced by the first table that has entities in it on both.
    """
    balance = np.full(max(n_blocks, 1), np.nan)
    a, b = layout.units or ({}, {})
    for table in layout.fitted:
        r, c = table.row_set, table.col_set
        left, right = (np.sqrt(_totals(x, len(balance))) for x in (rows[r], cols[c]))
        units = np.sqrt(a.get(r, 1.0)) / np.sqrt(b.get(c, 1.0))
        usable = np.isnan(balance) & (left > 0.0) & (right > 0.0)
        balance[usable] = right[usable] / left[usable] * units
        if not np.isnan(balance).any():
            break
    return np.where(np.isnan(balance), 1.0, balance)


def _totals(entities: Entities, n_blocks: int) -> Floats:
    """Sum of the factors of each block."""
    factor = entities.factor
    if entities.blocks is None:
        return np.atleast_1d(np.nansum(factor))
    known = factor > 0.0
    blocks = entities.blocks[known]
    return np.bincount(blocks, factor[known], minlength=n_blocks).astype(np.float64)


def _in_units(entities: Entities, units: Floats) -> Entities:
    """The same entities with factors times the unit of their block."""
    own, blocks = entities.factor, entities.blocks
    factor = own * (units[0] if blocks is None else np.append(units, 1.0)[blocks])
    is_steep = units.min() < STEEP  # elsewhere only what is nearly 0 can lose digits
    if factor.max(initial=0.0) == np.inf or (
        is_steep and ((factor < LEAST) & (own > 0.0)).any()
    ):
        raise NotRepresentableError(OUT_OF_RANGE)
    return replace(entities, factor=factor)


# ----------------------------------------------------------------------------- placing
def place_rows(sides: list[tuple[Rows, Entities]], n_blocks: int) -> Placed:
    """Place rows that tables share by the factors of the columns of these tables."""
    factor = np.concatenate([columns.factor for _, columns in sides])
    block = np.concatenate([columns.block for _, columns in sides])
    is_zero = factor == 0.0  # a component of its own: only zeros go with it
    label = np.where(is_zero, n_blocks, block).astype(np.int32)
    graph = ColumnGraph.of_blocks(label, n_blocks + bool(is_zero.any()))
    parts = [part for rows, _ in sides for part in rows.parts]
    return Columns(factor, graph).place(Rows(parts, sides[0][0].n_rows, len(factor)))


def weighted_side(
    table: Rows, columns: Entities, weight: float
) -> tuple[Rows, Entities]:
    """A table and its columns as they count in the joint table."""
    if weight == 1.0:
        return table, columns
    cells = _weighted(table, slice(0, table.n_rows), weight)
    rows = Rows([(cells, None, None, 0)], table.n_rows, table.n_cols)
    return rows, replace(columns, factor=columns.factor * weight)


def _placed_set(
    sides: list[tuple[Rows, Entities]], n_blocks: int, fitted: list[Entities]
) -> Entities:
    """Entities in tables of weight 0 only: placed, not fitted.

    ``fitted`` are the sets on their own side of the joint table.
    """
    known = [(rows, entities) for rows, entities in sides if entities.is_fitted]
    factor = place_rows(known, n_blocks).factors
    blocks = np.zeros(len(factor), np.int64)
    for rows, entities in known:
        block = entities.block
        for some, cells in rows.blocks():
            is_tied = (cells > 0.0) & (block >= 0)
            own = block[is_tied.argmax(axis=1)]
            blocks[some] = np.where(is_tied.any(axis=1), own, blocks[some])
    found = Entities(factor, blocks, NOWHERE)
    own_side = np.concatenate([x.block for x in fitted if x.is_fitted])
    numbers, first = np.unique(own_side, return_index=True)
    first = np.append(first[numbers >= 0], -1)
    return replace(found, place=first[found.block])
