"""Hide a random share of X's cells, observe the rest once, and score any weights.

The rows are dealt to a few groups, and some groups hide neighbouring columns from a
place drawn at random. So the tables keep few patterns, one pass finds all sums that any
pair of weights needs, and the score of a solution is computed from those sums:

    sum over hidden cells of  x log x - x  -  x log w_i  -  x log h_j  +  w_i h_j,

where w_i is the row's weighted sum times the scale of its pattern.
"""

from __future__ import annotations

import math
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from a1gm._bits import pack_bits, unpack_bits
from a1gm._blocks import Components, find_components
from a1gm._input import Source
from a1gm._input.source import Part
from a1gm._kernel import kernel, say_if_slow, threads_for
from a1gm._observe import TABLE_CELLS
from a1gm._peel import reduce_statistics
from a1gm._statistics import TableStatistics, weighted_counts
from a1gm._types import AnyArray, Bools, Floats, Ints
from a1gm.exceptions import NotRepresentableError
from a1gm.nmmf._layout import SharedTable
from a1gm.nmmf._observe import Fault, check_faults, check_something_observed

__all__ = ["HeldOut", "hide_cells"]

N_HIDING = 5  # groups that hide cells; a prime, so that no period in the rows meets it
LEAST_COL_SHARE = 0.2  # of the columns, hidden in each of those groups
DEALT_CELLS = 1 << 20  # rows of larger tables are dealt in runs


Plan = list[tuple[slice, Bools]]  # rows of each group, and the columns it hides


@dataclass(frozen=True, slots=True)
class Group:
    """Some of the rows, and what one pass over them finds.

    Rows of ``sums`` are the kept cells of X, the hidden ones, and Z; a group that hides
    nothing has their total only.
    """

    cells: AnyArray  # the rows of X, a view
    hidden: Bools
    sums: Floats
    line_of_row: AnyArray
    table: TableStatistics


@dataclass(frozen=True, slots=True)
class HeldOut:
    """What scoring needs: sums of the lines of all groups, and of their rows.

    ``lines`` and ``cols`` are those with scored cells: hidden ones that the rest of X
    determines. What follows them is about these lines and columns only.
    """

    observed: Bools  # lines x (columns of X and Z), hidden cells removed
    sums: Floats
    n_cols: int  # of X
    lines: Ints
    cols: Ints
    scored: Floats  # lines x columns, 1 where cells are scored
    line_hidden: Floats
    col_hidden: Floats
    line_sums: Floats  # 2 x lines: X and Z over the scored rows
    row_hidden: Floats  # hidden sum of each scored row
    row_sums: Floats  # kept X and Z sums of those rows
    constant: float
    n_cells: int

    def row_part(self, beta: float) -> float:
        """Sum of x log(weighted row sum) over the scored cells."""
        weighted = self.row_sums[0]
        if beta:
            weighted = weighted + beta * self.row_sums[1]
        # not @: a threaded BLAS takes longer to wake than to multiply
        return float((self.row_hidden * np.log(weighted)).sum())

    def scores(
        self, betas: Floats, scales: Floats, factors: Floats, row_parts: Floats
    ) -> Floats:
        """Divergence of the hidden cells; every row of the arguments is a solution."""
        # A line or column without scored cells may have scale or factor 0, or NaN.
        scale, h = scales[:, self.lines], factors[:, self.cols]
        logs = row_parts + np.log(scale) @ self.line_hidden
        logs += np.log(h) @ self.col_hidden
        fitted = scale * (self.line_sums[0] + betas[:, None] * self.line_sums[1])
        of_lines = h @ self.scored.T
        return self.constant - logs + (fitted * of_lines).sum(axis=1)  # type: ignore[no-any-return]


def plan(shape: tuple[int, int], share: float, rng: np.random.Generator) -> Plan:
    """Rows of each group, and the columns it hides.

    A small share is taken from some of the groups, the others hide nothing. Rows are
    dealt in turn, or in runs when rows far apart would be slow to read.
    """
    n_rows, n_cols = shape
    col_share = max(share, LEAST_COL_SHARE)
    n_groups = min(round(N_HIDING * col_share / share), n_rows)
    n_hiding = min(N_HIDING, n_groups)
    hidden = np.zeros((n_groups, n_cols), bool)
    chosen = rng.permutation(n_groups)[:n_hiding]
    hidden[np.sort(chosen)] = draw_hidden(n_cols, n_hiding, col_share, rng)
    if n_rows * n_cols < DEALT_CELLS:
        rows = [slice(k, n_rows, n_groups) for k in range(n_groups)]
        return list(zip(rows, hidden, strict=True))
    # Runs that hide nothing and follow one another are one run.
    hides = np.any(hidden, axis=1)
    first = np.flatnonzero(np.append(True, hides[1:] | hides[:-1]))
    edges = [n_rows * int(k) // n_groups for k in (*first, n_groups)]
    rows = [slice(a, b, 1) for a, b in pairwise(edges)]
    return list(zip(rows, hidden[first], strict=True))


def deal(planned: Plan, n_rows: int, n_hands: int) -> list[Plan]:
    """Share the groups out, about as many rows to each.

    A run that hides nothing may be cut: its rows are only added.
    """
    hands: list[Plan] = [[] for _ in range(n_hands)]
    dealt = 0
    for rows, hidden in planned:
        start, stop, step = rows.indices(n_rows)
        can_cut = step == 1 and not hidden.any()
        while start < stop:
            hand = dealt * n_hands // n_rows
            room = -(-(hand + 1) * n_rows // n_hands) - dealt
            end = min(start + room, stop) if can_cut else stop
            hands[hand].append((slice(start, end, step), hidden))
            dealt += len(range(start, end, step))
            start = end
    return [hand for hand in hands if hand]


def draw_hidden(
    n_cols: int, n_groups: int, share: float, rng: np.random.Generator
) -> Bools:
    """Columns hidden by each group, so that all are hidden about equally often.

    The stretches of the groups, in an order drawn at random, follow one another around
    the columns. Neighbours, because few stretches of columns are quick to read.
    """
    around = share * n_cols
    first = rng.random() * n_cols + around * rng.permutation(n_groups)
    start = np.floor(first).astype(np.int64)
    width = np.minimum(np.floor(first + around).astype(np.int64) - start, n_cols - 1)
    place = (np.arange(n_cols) - start[:, None]) % n_cols
    hidden: Bools = place < width[:, None]
    return hidden


def hide_cells(
    tables: list[SharedTable],
    *,
    share: float,
    rng: np.random.Generator,
    n_threads: int | None,
) -> HeldOut:
    """Observe X, and Z if it is given, once, with a share of X's cells set apart."""
    say_if_slow()
    x = tables[0].source
    arrays = [plain_array(table.source) for table in tables]
    threads = threads_for(x.n_rows * x.n_cols, n_threads)
    planned = plan((x.n_rows, x.n_cols), share, rng)
    first, *rest = deal(planned, x.n_rows, threads)

    # Every thread takes groups of its own: meeting after each would cost more.
    def observe_all(some: Plan) -> list[Group]:
        return [_observe_group(tables, arrays, *p) for p in some]

    if not rest:
        groups = observe_all(first)
    else:
        with ThreadPoolExecutor(len(rest)) as pool:
            others = [pool.submit(observe_all, some) for some in rest]
            groups = observe_all(first)
            groups += [group for other in others for group in other.result()]
    columns = np.any([g.table.has_observed()[1] for g in groups], axis=0)
    check_something_observed(tables, columns)
    return _gather(groups, x.n_cols)


def plain_array(source: Source) -> tuple[AnyArray, AnyArray | None]:
    """Values and mask as whole arrays; column frames are copied into one."""
    if len(source.parts) == 1 and source.parts[0][2] is None:
        return source.parts[0][0], source.parts[0][1]
    return source.rows(slice(0, source.n_rows)), None


def _observe_group(
    tables: list[SharedTable],
    arrays: list[tuple[AnyArray, AnyArray | None]],
    rows: slice,
    hidden: Bools,
) -> Group:
    X, *rest = arrays
    edges = np.flatnonzero(np.diff(hidden, prepend=~hidden[:1]))
    parts: list[Part] = []
    for start, stop in zip(edges, [*edges[1:], len(hidden)], strict=True):
        piece = X[0][rows, start:stop]
        mask = None if X[1] is None else X[1][rows, start:stop]
        parts.append((piece, mask, None, 0, int(hidden[start])))
    for values, mask in rest:
        mask = None if mask is None else mask[rows]  # noqa: PLW2901
        parts.append((values[rows], mask, None, 0, 2))
    if not hidden.any():  # its rows are not scored, so one sum is enough
        parts = [(*part[:4], 0) for part in parts]
    n_sums = 3 if hidden.any() else 1
    sums, _, found, _, overflow, negative, infinite = kernel.observe(
        parts, n_sums, 1, 1.0, TABLE_CELLS, True
    )
    check_faults(tables, _in_table(negative, rows), _in_table(infinite, rows))
    if overflow:
        msg = (
            "Sums of these tables are above the largest float64 (1.8e308). Divide the "
            "tables by a power of ten first."
        )
        raise NotRepresentableError(msg)
    ids, keys, counts, block_sums = found
    cells = X[0][rows]
    if X[1] is not None:
        cells = np.where(X[1][rows], np.nan, cells)
    return Group(cells, hidden, sums, ids, TableStatistics(keys, counts, block_sums))


def _in_table(fault: Fault, rows: slice) -> Fault:
    """A fault of a group, with the row of the whole table."""
    count, row, col, value = fault
    return count, rows.start + row * rows.step, col, value


def _gather(groups: list[Group], n_cols: int) -> HeldOut:
    """Put the lines of all groups together and decide which cells can be scored."""
    starts = np.cumsum([0] + [g.table.n_lines for g in groups])
    seen = np.concatenate([g.table.observed for g in groups])
    sums = np.concatenate([g.table.sums for g in groups])
    hidden = np.concatenate([np.tile(g.hidden, (g.table.n_lines, 1)) for g in groups])
    hidden &= seen[:, :n_cols]
    observed, kept = seen.copy(), sums.copy()
    observed[:, :n_cols] &= ~hidden
    kept[:, :n_cols][hidden] = 0.0
    components = _components(observed[:, :n_cols], kept[:, :n_cols])
    same = components.line[:, None] == components.col
    positive = (kept[:, :n_cols].sum(axis=1) > 0.0)[:, None]
    positive = positive & (kept[:, :n_cols].sum(axis=0) > 0.0)
    scored = hidden & same & positive
    hidden_sums = np.where(scored, sums[:, :n_cols], 0.0)
    pieces = [
        _score_rows(group, scored[a:b], hidden_sums[a:b])
        for group, (a, b) in zip(groups, pairwise(starts), strict=True)
    ]
    line_sums, row_hidden, row_sums, constants, counts = zip(*pieces, strict=True)
    lines, cols = np.flatnonzero(scored.any(axis=1)), np.flatnonzero(scored.any(axis=0))
    observed, kept, place = _merge_twins(observed, kept)
    return HeldOut(
        observed=observed,
        sums=kept,
        n_cols=n_cols,
        lines=place[lines],
        cols=cols,
        scored=scored[np.ix_(lines, cols)].astype(np.float64),
        line_hidden=hidden_sums.sum(axis=1)[lines],
        col_hidden=hidden_sums.sum(axis=0)[cols],
        line_sums=np.concatenate(line_sums, axis=1)[:, lines],
        row_hidden=np.concatenate(row_hidden),
        row_sums=np.concatenate(row_sums, axis=1),
        constant=math.fsum(constants),
        n_cells=sum(counts),
    )


def _merge_twins(observed: Bools, sums: Floats) -> tuple[Bools, Floats, Ints]:
    """Lines with the same kept cells made one, and the place of each.

    They have the same scale whatever the weights.
    """
    _, first, place = np.unique(
        pack_bits(observed), axis=0, return_index=True, return_inverse=True
    )
    merged = np.zeros((len(first), sums.shape[1]))
    np.add.at(merged, place.ravel(), sums)
    return observed[first], merged, place.ravel()


def _components(observed: Bools, sums: Floats) -> Components:
    """Blocks of X alone without the hidden cells, as fitted with weights of zero."""
    lines = observed.any(axis=1)
    table = TableStatistics(
        pack_bits(observed),
        np.ones(len(observed), np.int64),
        np.ascontiguousarray(sums),
    )
    found = find_components(table)
    if found is not None:
        return found
    reduced = reduce_statistics(table, None)
    nothing = np.ones(reduced.core_shape[0]), np.ones(reduced.core_shape[1])
    _, _, line, col = reduced.replay(*nothing)
    return Components(np.where(lines, line, -1).astype(np.int32), col)


def _score_rows(
    group: Group, scored: Bools, hidden_sums: Floats
) -> tuple[Floats, Floats, Floats, float, int]:
    """Sums of the rows that are scored, and the part of the score without factors.

    A row whose kept cells of X are all zero cannot be predicted from X; its hidden
    cells are taken out of ``hidden_sums``, in place.
    """
    if not group.hidden.any():
        nothing = np.zeros((2, group.table.n_lines)), np.zeros(0), np.zeros((2, 0))
        return *nothing, 0.0, 0
    kept, row_hidden, side = group.sums
    line = group.line_of_row
    n_lines = group.table.n_lines
    cells = group.cells[:, group.hidden].astype(np.float64)
    known = scored[:, group.hidden]
    lost = (unpack_bits(group.table.keys, scored.shape[1]) & group.hidden) & ~scored
    takes_part = kept > 0.0
    unusable = ~takes_part & (row_hidden > 0.0)
    if lost.any() or not takes_part.all():
        if unusable.any():
            gone = np.where(known[line[unusable]], cells[unusable], 0.0)
            columns = np.flatnonzero(group.hidden)
            for j, values in zip(columns, np.nan_to_num(gone).T, strict=True):
                taken = weighted_counts(line[unusable], values, n_lines)
                hidden_sums[:, j] = np.maximum(hidden_sums[:, j] - taken, 0.0)
        cells = np.where(known[line] & takes_part[:, None], cells, np.nan)
        row_hidden = np.nansum(cells, axis=1)
    line_sums = np.stack(
        [
            weighted_counts(line, kept, n_lines),
            weighted_counts(line, np.where(takes_part, side, 0.0), n_lines),
        ]
    )
    used = row_hidden > 0.0
    positive = cells[cells > 0.0]
    constant = float((positive * (np.log(positive) - 1.0)).sum())
    n_cells = int(np.count_nonzero(~np.isnan(cells)))
    rows = (kept, side) if used.all() else (kept[used], side[used])
    return line_sums, row_hidden[used], np.stack(rows), constant, n_cells
