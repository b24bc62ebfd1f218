"""Hide a random share of X's cells, observe the rest once, and score any weights.

The rows are dealt to a few groups, and some groups hide neighbouring columns from a
place drawn at random. So the tables get few patterns more than they have, one pass
finds all sums that any pair of weights needs, and the score of a solution is computed
from those sums:

    sum over hidden cells of  x log x - x  -  x log w_i  -  x log h_j  +  w_i h_j,

where w_i is the row's weighted sum times the scale of its pattern.
"""

from __future__ import annotations

import math
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from a1gm._base.bits import pack_bits, unpack_bits
from a1gm._solve.components import find_components
from a1gm._sources import Source
from a1gm._sources.dense import Part
from a1gm._kernel import kernel, say_if_slow, threads_for
from a1gm._observe.one_pass import TABLE_CELLS
from a1gm._observe.statistics import TableStatistics, WideStatistics, weighted_counts
from a1gm._base.types import AnyArray, Bools, Floats, Ints
from a1gm.exceptions import DataError, NotRepresentableError, ParameterError
from a1gm.nmmf.tune.lines import KeptLines, first_columns, join_lines, lines_of
from a1gm.nmmf.layout import SharedTable
from a1gm.nmmf.observe import Fault, check_faults, check_something_observed

__all__ = ["HeldOut", "hide_cells"]

N_HIDING = 5  # groups that hide cells, about
LEAST_COL_SHARE = 0.2  # of the columns, hidden in each of those groups
SMALL_PRODUCT = 1 << 18  # multiplications of a product that BLAS does on one thread
DEALT_CELLS = 1 << 20  # rows of larger tables are dealt in runs
CELLS_WORTH_A_RUN, MOST_RUNS = 1 << 22, 50  # for each of the groups


Plan = list[tuple[slice, Bools]]  # rows of each group, and the columns it hides


@dataclass(frozen=True, slots=True)
class Group:
    """Rows that hide the same columns, and what one pass over them finds.

    Rows of ``sums`` are the kept cells of X, the hidden ones, and Z.
    """

    cells: AnyArray  # the rows of X, a view
    hidden: Bools
    sums: Floats
    line_of_row: AnyArray
    table: TableStatistics

    def has_observed(self) -> tuple[Bools, Bools]:
        """Lines and columns with at least one observed cell, hidden or not."""
        return self.table.has_observed()


@dataclass(frozen=True, slots=True)
class HeldOut:
    """What scoring needs: sums of all lines, and of the rows with scored cells.

    ``lines`` and ``cols`` are those with scored cells: hidden ones that the rest of X
    determines. What follows them is about these lines and columns only.
    """

    kept: KeptLines
    n_cols: int  # of X
    lines: Ints
    cols: Ints
    observed: Floats  # lines x (columns of X and Z), 1 where a cell is kept
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
        # not @: see _product
        return float((self.row_hidden * np.log(weighted)).sum())

    def scales(self, factors: Floats) -> Floats:
        """Scale of the lines for column factors, a solution in every row."""
        scale: Floats = 1.0 / _product(factors, self.observed)
        return scale

    def scores(
        self, betas: Floats, scale: Floats, factors: Floats, row_parts: Floats
    ) -> Floats:
        """Divergence of the hidden cells; every row of the arguments is a solution."""
        # A column without scored cells may have a factor of 0, or NaN.
        h = factors[:, self.cols]
        logs = row_parts + np.einsum("pl,l->p", np.log(scale), self.line_hidden)
        logs += np.einsum("pc,c->p", np.log(h), self.col_hidden)
        fitted = scale * _product(h, self.scored)
        alone, beside = np.einsum("pl,kl->kp", fitted, self.line_sums)
        score: Floats = self.constant - logs + alone + betas * beside
        return np.maximum(score, 0.0)  # it is below by rounding only


def _product(factors: Floats, mask: Floats) -> Floats:
    """``factors @ mask.T``, in pieces for which BLAS does not wake its threads.

    They would go on waiting busily, on the cores that the kernel needs.
    """
    out = np.empty((len(factors), len(mask)))
    step = max(1, SMALL_PRODUCT // max(1, factors.size))
    for start in range(0, len(mask), step):
        some = slice(start, start + step)
        np.matmul(factors, mask[some].T, out=out[:, some])
    return out


def plan(shape: tuple[int, int], share: float, rng: np.random.Generator) -> Plan:
    """Rows of each group, and the columns it hides.

    A small share is taken from some of the groups, the others hide nothing. Rows are
    dealt in turn, or in runs when rows far apart would be slow to read.
    """
    n_rows, n_cols = shape
    in_turn = n_rows * n_cols < DEALT_CELLS
    col_share = max(share, LEAST_COL_SHARE)
    n_groups = _without_period(round(N_HIDING * col_share / share))
    if not in_turn:  # the more runs, the less it matters where they are
        n_groups *= min(max(1, n_rows * n_cols // CELLS_WORTH_A_RUN), MOST_RUNS)
    n_groups = min(n_groups, n_rows)
    n_hiding = min(max(1, round(share / col_share * n_groups)), n_groups)
    hidden = np.zeros((n_groups, n_cols), bool)
    chosen = np.sort(rng.permutation(n_groups)[:n_hiding])
    hidden[chosen] = draw_hidden(n_cols, n_hiding, share * n_groups / n_hiding, rng)
    if in_turn:
        rows = [slice(k, n_rows, n_groups) for k in range(n_groups)]
        return list(zip(rows, hidden, strict=True))
    # Runs that hide nothing and follow one another are one run.
    hides = np.any(hidden, axis=1)
    first = np.flatnonzero(np.append(True, hides[1:] | hides[:-1]))
    edges = [n_rows * int(k) // n_groups for k in (*first, n_groups)]
    rows = [slice(a, b, 1) for a, b in pairwise(edges)]
    return list(zip(rows, hidden[first], strict=True))


def _without_period(n: int) -> int:
    """Return the next number that days, months or hours do not divide evenly.

    Otherwise every n-th row could be a Sunday, and only Sundays hide some columns.
    """
    while math.gcd(n, 2 * 3 * 5 * 7) > 1 or n == 1:
        n += 1
    return n


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
    _check_share(share, x.n_cols)
    arrays = [plain_array(table.source) for table in tables]
    threads = threads_for(x.n_rows * x.n_cols, n_threads)
    planned = plan((x.n_rows, x.n_cols), share, rng)
    first, *rest = deal(planned, x.n_rows, threads)

    # Every thread takes groups of its own: meeting after each would cost more.
    def observe_all(some: Plan) -> list[Group | KeptLines]:
        return [_observe_rows(tables, arrays, *p) for p in some]

    if not rest:
        groups = observe_all(first)
    else:
        with ThreadPoolExecutor(len(rest)) as pool:
            others = [pool.submit(observe_all, some) for some in rest]
            groups = observe_all(first)
            groups += [group for other in others for group in other.result()]
    columns = np.any([g.has_observed()[1] for g in groups], axis=0)
    check_something_observed(tables, columns)
    hiding = [g for g in groups if isinstance(g, Group)]
    plain = [g for g in groups if isinstance(g, KeptLines)]
    if not hiding:
        msg = (
            f"share={share:g} of the cells of X is less than one. Give a larger share."
        )
        raise DataError(msg)
    held_out = _gather(hiding, plain, x.n_cols)
    if held_out.n_cells == 0:
        msg = (
            "No hidden cell of X can be predicted from the others: their rows or "
            "columns have nothing left but zeros, or are cut off. Give X more observed "
            "cells, another share, or another random_state."
        )
        raise DataError(msg)
    return held_out


def _check_share(share: float, n_cols: int) -> None:
    if n_cols == 1:
        msg = (
            "X has one column: a row whose cell is hidden has nothing left to predict "
            "it from. Choose alpha and beta by hand."
        )
        raise DataError(msg)
    most = 1.0 - 1.0 / n_cols
    if share > most:
        msg = (
            f"share={share:g} is too large for {n_cols} columns: every row must keep a "
            f"cell. Give at most {most:.3g}."
        )
        raise ParameterError(msg)


def plain_array(source: Source) -> tuple[AnyArray, AnyArray | None]:
    """Values and mask as whole arrays; column frames are copied into one."""
    if len(source.parts) == 1 and source.parts[0][2] is None:
        return source.parts[0][0], source.parts[0][1]
    return source.rows(slice(0, source.n_rows)), None


def _observe_rows(
    tables: list[SharedTable],
    arrays: list[tuple[AnyArray, AnyArray | None]],
    rows: slice,
    hidden: Bools,
) -> Group | KeptLines:
    """Observe the rows of a group; those of one that hides nothing are only added."""
    hides = bool(hidden.any())
    X, *rest = arrays
    edges = np.flatnonzero(np.diff(hidden, prepend=~hidden[:1]))
    parts: list[Part] = []
    for start, stop in zip(edges, [*edges[1:], len(hidden)], strict=True):
        piece = X[0][rows, start:stop]
        mask = None if X[1] is None else X[1][rows, start:stop]
        parts.append((piece, mask, None, 0, int(hidden[start])))
    for values, mask in rest:
        mask = None if mask is None else mask[rows]  # noqa: PLW2901
        parts.append((values[rows], mask, None, 0, 2 if hides else 1))
    sums, wide, found, _, overflow, negative, infinite = kernel.observe(
        parts, 3 if hides else len(arrays), 1, 1.0, TABLE_CELLS, hides
    )
    check_faults(tables, _in_table(negative, rows), _in_table(infinite, rows))
    if overflow:
        msg = (
            "Sums of these tables are above the largest float64 (1.8e308). Divide the "
            "tables by a power of ten first."
        )
        raise NotRepresentableError(msg)
    if wide:
        bits, positive, col_sums, has_zero = found
        statistics = WideStatistics(
            bits, positive if has_zero else None, sums[0], col_sums
        )
        return lines_of(statistics, sums, len(hidden))
    ids, keys, counts, block_sums = found
    table = TableStatistics(keys, counts, block_sums)
    if not hides:
        return lines_of(table, sums, len(hidden))
    cells = X[0][rows]
    if X[1] is not None:
        cells = np.where(X[1][rows], np.nan, cells)
    return Group(cells, hidden, sums, ids, table)


def _in_table(fault: Fault, rows: slice) -> Fault:
    """A fault of a group, with the row of the whole table."""
    count, row, col, value = fault
    return count, rows.start + row * rows.step, col, value


def _gather(groups: list[Group], plain: list[KeptLines], n_cols: int) -> HeldOut:
    """Put the lines of all groups together and decide which cells can be scored."""
    starts = np.cumsum([0] + [g.table.n_lines for g in groups])
    observed = np.concatenate([g.table.observed for g in groups])
    sums = np.concatenate([g.table.sums for g in groups])
    hidden = np.concatenate([np.tile(g.hidden, (g.table.n_lines, 1)) for g in groups])
    hidden &= observed[:, :n_cols]
    kept_sums = sums.copy()
    observed[:, :n_cols] &= ~hidden
    kept_sums[:, :n_cols][hidden] = 0.0
    of_groups = KeptLines.of_cells(pack_bits(observed), kept_sums, n_cols)
    kept = join_lines([of_groups, *plain])
    scored = hidden & _determined(kept, len(observed), n_cols)
    hidden_sums = np.where(scored, sums[:, :n_cols], 0.0)
    pieces = [
        _score_rows(group, scored[a:b], hidden_sums[a:b])
        for group, (a, b) in zip(groups, pairwise(starts), strict=True)
    ]
    line_sums, row_hidden, row_sums, constants, counts = zip(*pieces, strict=True)
    lines, cols = np.flatnonzero(scored.any(axis=1)), np.flatnonzero(scored.any(axis=0))
    return HeldOut(
        kept=kept,
        n_cols=n_cols,
        lines=lines,
        cols=cols,
        observed=observed[lines].astype(np.float64),
        scored=scored[np.ix_(lines, cols)].astype(np.float64),
        line_hidden=hidden_sums.sum(axis=1)[lines],
        col_hidden=hidden_sums.sum(axis=0)[cols],
        line_sums=np.concatenate(line_sums, axis=1)[:, lines],
        row_hidden=np.concatenate(row_hidden),
        row_sums=np.concatenate(row_sums, axis=1),
        constant=math.fsum(constants),
        n_cells=sum(counts),
    )


def _determined(kept: KeptLines, n_lines: int, n_cols: int) -> Bools:
    """Cells of the first lines that the kept cells of X alone determine.

    Their line and column have a positive sum and are in one block.
    """
    positive = first_columns(kept.positive, n_cols)
    has_line: Bools = kept.sums[:, 0] > 0.0
    has_col: Bools = kept.col_sums[:n_cols] > 0.0
    both = has_line[:n_lines, None] & has_col
    # The usual case: every line shares a positive cell's column with the fullest one.
    fullest = np.argmax(np.bitwise_count(positive).sum(axis=1))
    meets = (positive & positive[fullest]).any(axis=1)
    if (meets | ~has_line).all():
        return both
    bits = first_columns(kept.bits, n_cols)
    no_sums = np.zeros(0), np.zeros(n_cols)
    blocks = find_components(WideStatistics(bits, positive, *no_sums))
    assert blocks is not None
    same: Bools = blocks.line[:n_lines, None] == blocks.col
    return both & same


def _score_rows(
    group: Group, scored: Bools, hidden_sums: Floats
) -> tuple[Floats, Floats, Floats, float, int]:
    """Sums of the rows that are scored, and the part of the score without factors.

    A row whose kept cells of X are all zero cannot be predicted from X; its hidden
    cells are taken out of ``hidden_sums``, in place.
    """
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
