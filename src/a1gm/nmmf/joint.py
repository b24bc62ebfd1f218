"""The joint table of a layout as one ordinary table, with one ordinary fit.

Three tables are the table ``[[X, Z], [Y, nothing]]`` with cell weights
``[[1, beta], [alpha, 0]]``. Weights that are a product of a row part and a column part
are applied to the cells: a fit of ``weight * T`` has the factors times these parts.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from a1gm._api.fit import FitOptions, fit_patterns
from a1gm._base.float_range import LEAST, keeps_digits, product
from a1gm._base.types import Floats
from a1gm._fit.fit import RankOneFit
from a1gm._fit.place import Columns, Placed
from a1gm._observe.observe import observe
from a1gm._observe.patterns import weighted_counts
from a1gm._rows.rows import Rows, check_values, table_of
from a1gm._solve.components import ColumnGraph
from a1gm.exceptions import (
    DataError,
    InfiniteValuesError,
    NegativeValuesError,
    NotRepresentableError,
)
from a1gm.nmmf.layout import OUT_OF_RANGE, Entities, Layout, transpose, weighted

STEEP = 2.0**-60

Sets = dict[Hashable, Entities]


# ------------------------------------------------------------------------- the fit
def fit_joint(layout: Layout, options: FitOptions) -> tuple[RankOneFit, Layout]:
    """Fit the joint table without warnings; the layout gets the factors."""
    rows = _joint_rows(layout)
    try:
        for table in layout.tables:
            start = table.rows.rows(slice(0, 1))  # nearly always enough
            if np.isnan(start).all() and all(
                np.isnan(cells).all() for _, cells in table.rows.in_pieces()
            ):
                give = "Give" if table.key == "X" else "Leave the table out, or give"
                raise DataError(
                    f"Nothing is observed in {table.name}: all of its "
                    f"{table.shape_text} cells are missing. {give} it at least one "
                    "number."
                )
        seen = observe(rows, n_threads=options.n_threads, negatives=None)
        fit = fit_patterns(seen, options, rows, policy=None)
        return fit, replace(layout, sets=share_factors(layout, fit))
    except (NegativeValuesError, InfiniteValuesError):
        for table in layout.tables:  # with the name of the table
            check_cells(table.rows)
        raise
    except NotRepresentableError as error:
        raise NotRepresentableError(OUT_OF_RANGE) from error


def _joint_rows(layout: Layout) -> Rows:
    """The joint table; its pieces are made when they are read."""
    n, m = layout.shape
    what, weights = "product", None
    if layout.units is None:
        cut, what = partial(layout.cut, "weights"), "cells"
        weights = Rows([], n, m, cut=cut, steps=(0, n))
    cut = partial(layout.cut, what)
    return Rows([], n, m, cut=cut, steps=layout.steps, weights=weights)


def check_cells(table: Rows) -> None:
    """Raise for negative and infinite cells, by their names in the table."""
    check_values(table, table.cells, None)


# ------------------------------------------------------------- factors of the entities
def share_factors(layout: Layout, fit: RankOneFit) -> Sets:
    """The entity sets with their factors, on the scale of Theorem 1."""
    w, h = np.asarray(fit.row_factor), fit.col_factor
    if fit.n_blocks == 0:  # zeros everywhere
        h = np.where(np.isnan(h), np.nan, 0.0)
    own = np.unique(fit.row_block[w > 0.0]) if fit.n_blocks > 1 else None
    sets, unit = {}, layout.units or {}
    for name, entities in layout.sets.items():
        if entities.is_fitted:
            place, is_column = entities.place, entities.is_column
            factor = (h if is_column else w)[place]
            blocks: Any = 0
            if own is not None:
                block = fit.col_block if is_column else fit.row_block
                blocks = np.searchsorted(own, block[place])
            sets[name] = replace(entities, factor=factor, blocks=blocks)
    with np.errstate(all="ignore"):  # what leaves the range is refused
        balance = _balance(layout, fit.n_blocks, sets)
        for name, entities in sets.items():
            scale = 1.0 / balance if entities.is_column else balance
            sets[name] = _in_units(entities, scale, unit.get(name, 1.0))
    placed = {
        name: _placed_set(layout, entities, sets, fit.n_blocks)
        for name, entities in layout.sets.items()
        if not entities.is_fitted
    }
    return {name: (sets | placed)[name] for name in layout.sets}


def _balance(layout: Layout, n_blocks: int, sets: Sets) -> Floats:
    """Factor for the rows of each block that makes both sides of a table equal.

    Theorem 1 gives the factors of X the same sum. A block without entities of X on
    both sides is balanced by the first table that has entities in it on both.
    """
    balance = np.full(max(n_blocks, 1), np.nan)
    unit = layout.units or {}
    for table in layout.fitted:
        row, col = table.sets[::-1] if table.is_turned else table.sets
        left, right = (np.sqrt(_totals(sets[s], len(balance))) for s in (row, col))
        units = np.sqrt(unit.get(row, 1.0)) / np.sqrt(unit.get(col, 1.0))
        usable = np.isnan(balance) & (left > 0.0) & (right > 0.0)
        balance[usable] = right[usable] / left[usable] * units
        if not np.isnan(balance).any():
            break
    return np.where(np.isnan(balance), 1.0, balance)


def _totals(entities: Entities, n_blocks: int) -> Floats:
    """Sum of the factors of each block."""
    factor, known = entities.factor, entities.factor > 0.0
    block = np.broadcast_to(entities.blocks, factor.shape)
    return weighted_counts(block[known], factor[known], n_blocks)


def _in_units(entities: Entities, scale: Floats, unit: float) -> Entities:
    """The same entities with factors times the scale of their block, over a unit."""
    own, ratio = entities.factor, scale / unit
    if keeps_digits(ratio).all():
        factor = own * np.append(ratio, 1.0)[entities.blocks]
    else:  # rounded once: in any order, a product of two of the three may lose digits
        factor = product(own, np.append(scale, 1.0)[entities.blocks], over=unit)
    is_steep = ratio.min() < STEEP  # elsewhere only what is nearly 0 can lose digits
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
    graph = ColumnGraph(label, n_blocks + bool(is_zero.any()))
    parts = [part for rows, _ in sides for part in rows.parts]
    return Columns(factor, graph).place(Rows(parts, sides[0][0].n_rows, len(factor)))


def weighted_side(
    table: Rows, columns: Entities, weight: float
) -> tuple[Rows, Entities]:
    """A table and its columns as they count in the joint table."""
    if weight == 1.0:
        return table, columns
    cells = weighted(table, slice(0, table.n_rows), weight)
    return table_of(cells), replace(columns, factor=columns.factor * weight)


def _placed_set(
    layout: Layout, entities: Entities, sets: Sets, n_blocks: int
) -> Entities:
    """Entities in tables of weight 0 only: placed by the fitted sets, not fitted."""
    sides = []
    for table in layout.tables:
        if table.row == entities.name and table.col in sets:
            sides.append((table.rows, sets[table.col]))
        elif table.col == entities.name and table.row in sets:
            sides.append((transpose(table.rows), sets[table.row]))
    factor = place_rows(sides, n_blocks).factors
    blocks = np.zeros(len(factor), np.int64)
    for rows, across in sides:
        block = across.block
        for some, cells in rows.in_pieces():
            is_tied = (cells > 0.0) & (block >= 0)
            own = block[is_tied.argmax(axis=1)]
            blocks[some] = np.where(is_tied.any(axis=1), own, blocks[some])
    found = replace(entities, factor=factor, blocks=blocks)
    beside = [sets[s.name] for s in layout.fitted_sets(columns=entities.is_column)]
    numbers, first = np.unique(
        np.concatenate([s.block for s in beside]), return_index=True
    )
    stand_ins = np.append(first[numbers >= 0], -1)
    return replace(found, stand_in=stand_ins[found.block])
