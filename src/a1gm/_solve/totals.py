"""Scale a seed to totals: the margins first, a flow only where they do not settle.

The table nearest to a seed A with totals r and c is w A h inside the components of the
graph of any table X with these totals that is 0 where A is (row -> column where A > 0,
column -> row where X > 0), and 0 between them: the graph is the residual network of X
in the transport problem, so its components do not depend on X. Sweeps that settle on
margins alone prove that there is such a table, in one component.

What is possible is decided in whole numbers: 0.1 + 0.2 against 0.3 decides between a
table that exists and one that does not. Totals that are decimals are counted in their
last digit; others may be off by their rounding. Sums that differ by at most a unit of
the last digit for each total are those of totals that were rounded when written.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from operator import itemgetter
from typing import Any

import numpy as np

from a1gm._base.types import Floats, Ints, SmallInts, Solver
from a1gm._observe.patterns import pairs_of
from a1gm._rows.seed import Cells, cells_at, listed_cells, positive_cells
from a1gm._solve.cell_error import SETTLED, Network, Solve, free_columns
from a1gm._solve.dispatch import solve
from a1gm._solve.scaling import precision_for
from a1gm._solve.transport import cuts, transport

DECIMAL, MOST_DECIMAL, MOST_DIGITS = 1e-14, 1e12, 25
MOST_WHOLE, MOST_UNITS = 2.0**53, 2.0**61
ROUNDED = 2.0**-46  # relative: what the sum of a line of a table may be off by
SCALED = 1e-10  # the same, where cells are known: they may have been scaled
WRITTEN = 1e-12  # relative: the last digit of totals that are not decimals
GROUND = 999.0  # times all totals, besides units: flows where no total is known
ROUNDS, SAME = 8, 1e-14
PATIENCE = 400  # sweeps: listing the cells of a seed for Newton costs as much
AT_ONCE = 1 << 18  # cells of a dense seed that stay in the cache
POLISHED, LAST_SWEEPS = 2e-16, 8
ENOUGH_CELLS = 10**6  # of a larger seed the last digits are not sought
MOST_SOLVED = 10**6  # cells whose network is solved directly


# ------------------------------------------------------------------------------- totals
@dataclass
class Side:
    """What rows, or columns, still need besides known cells.

    With ``is_open`` the last one stands for all whose totals are not known.
    """

    needs: Floats
    units: Ints  # the same in whole numbers, ``per`` to one
    error: Floats  # what rounding may have changed of ``units``
    per: float
    is_exact: bool
    lines: Ints  # of the table that have a total
    place: Ints  # of each line of the table among these
    is_open: bool

    @classmethod
    def of(
        cls, total: Floats, at: Ints, known: Floats, per: float, is_exact: bool
    ) -> Side:
        """Subtract known cells, those of line ``at``, from totals."""
        if is_exact:
            units = np.rint(total * per)
            units -= np.bincount(at, np.rint(known * per), len(total))
            needs, error = units / per, np.zeros(len(total))
        else:
            sums, n_known = (np.bincount(at, x, len(total)) for x in (known, None))
            share = np.where(n_known > 0, SCALED, ROUNDED)
            error = share * per * np.fmax(total, sums) + 1.0
            units = np.rint((total - sums) * per)
            units[np.abs(units) <= error] = 0.0
            needs = np.where(units == 0.0, 0.0, total - sums)
        has = ~np.isnan(total)
        place = np.where(has, np.cumsum(has) - 1, has.sum())
        found = needs[has], units[has].astype(np.int64), error[has], per, is_exact
        return cls(*found, np.flatnonzero(has), place, not has.all())

    def close(self, units: int, ground: float) -> None:
        """Let the lines without a total need so much."""
        self.needs = np.append(self.needs, units / self.per + ground)
        self.units = np.append(self.units, np.int64(units))
        self.error = np.append(self.error, math.inf)
        self.lines = np.append(self.lines, -1)


def sides_of(totals: tuple[Floats, Floats], known: Cells) -> tuple[Side, Side]:
    """Totals of the rows and of the columns in units of one size."""
    *places, x = known
    values = np.concatenate([*totals, x])
    values = values[values > 0.0]
    size = 4.0 * float(values.sum())
    per = _units_of_decimals(values)
    is_exact = size * per < MOST_UNITS
    if not is_exact:
        per = 2.0 ** min(61 - math.frexp(size)[1], 1000)
    rows, cols = (
        Side.of(total, at, x, per, is_exact)
        for total, at in zip(totals, places, strict=True)
    )
    return rows, cols


def _units_of_decimals(values: Floats) -> float:
    """Return how many last digits of the values are 1; infinity if not decimals."""
    most = values.max(initial=0.0)
    for digits in range(MOST_DIGITS):
        per = 10.0**digits
        if most * per >= MOST_DECIMAL:
            break
        units = values * per
        if (np.abs(units - np.rint(units)) <= DECIMAL * units).all():
            return per
    is_whole = most <= MOST_WHOLE and (values == np.rint(values)).all()
    return 1.0 if is_whole else math.inf


class NoTableError(Exception):
    """No table has these totals: some lines need more than those they can use have.

    ``why`` is "cut", "sum" if those are all lines with a total, or "known" if one line
    has known cells that sum to more than its total.
    """

    def __init__(self, why: str, rows: Side, cols: Side, *cut: Any) -> None:
        super().__init__()
        pairs = list(zip((rows, cols), cut, strict=True))
        sums = [float(side.units[some].sum()) / side.per for side, some in pairs]
        self.rows, self.cols = (side.lines[some] for side, some in pairs)
        self.why, self.side = why, "row" if sums[0] > sums[1] else "column"
        self.has, self.needs = sorted(sums)


# ------------------------------------------------------------------------------ scaling
@dataclass
class Scaled:
    """Factors of the rows and columns, their components, and how well they fit.

    A component is -1 where a total is 0, or nothing can be above 0.
    """

    w: Floats
    h: Floats
    row_block: SmallInts
    col_block: SmallInts
    step: float
    solver: Solver
    n_iter: int
    written_off: float = 0.0  # from each total, so that the sums of both sides agree


def scale_seed(A: Any, rows: Side, cols: Side, *, tol: float, max_iter: int) -> Scaled:
    """Scale a seed, an array or a CSR one, to the totals that are known.

    Rows whose totals are not known keep factor 1, so they act as one row; columns
    likewise. If there are such on both sides, the cell where they meet is the ground:
    whatever its seed, enough flows through it, and it is solved again with that seed.
    """
    problem = _Problem.of(A, rows, cols)
    found = problem.scaled(None, tol, max_iter)
    found.written_off = problem.written_off
    for _ in range(ROUNDS if rows.is_open and cols.is_open else 0):
        ratio = found.w[-1] * found.h[-1]
        through = ratio * problem.A[-1, -1]
        if abs(ratio - 1.0) <= SAME or not 0.0 < through < math.inf:
            break
        problem.A[-1, -1] = through
        again = problem.scaled(found.h, tol, max_iter)
        found = replace(again, n_iter=found.n_iter + again.n_iter)
    scale = _free_scale(found, rows, cols)
    w, h = found.w * scale[found.row_block], found.h / scale[found.col_block]
    if rows.is_open:
        w[-1] = 1.0
    if cols.is_open:
        h[-1] = 1.0
    blocks = found.row_block[rows.place], found.col_block[cols.place]
    found.row_block, found.col_block = blocks
    found.w, found.h = w[rows.place], h[cols.place]
    return found


def _free_scale(found: Scaled, rows: Side, cols: Side) -> Floats:
    """What multiplies the rows and divides the columns of each component.

    1 for what has no total; elsewhere the mean logarithm of the column factors is 0.
    """
    n = int(max(found.row_block.max(), found.col_block.max())) + 1
    inside = found.col_block >= 0
    label, weight = found.col_block[inside], cols.needs[inside]
    sums = np.bincount(label, weight, n + 1)  # the last: of no component
    logs = np.bincount(label, weight * np.log(found.h[inside]), n + 1)
    scale = np.exp(np.divide(logs, sums, out=np.zeros(n + 1), where=sums > 0.0))
    if rows.is_open and found.w[-1] > 0.0:
        scale[found.row_block[-1]] = 1.0 / found.w[-1]
    elif cols.is_open and found.h[-1] > 0.0:
        scale[found.col_block[-1]] = found.h[-1]
    return scale


def _write_off(rows: Side, cols: Side, off: int) -> float:
    """Take what the sums of two sides differ by from all totals, in equal parts.

    Returns the part; 0 where it is more than a unit of the last written decimal.
    """
    is_whole = rows.is_exact and rows.per == 1.0
    units = np.concatenate([rows.units, cols.units])
    units = units[units > 0]
    part = abs(off) / len(units)
    last = 1.0 if rows.is_exact else WRITTEN * units.max()
    if is_whole or part > last or part >= units.min():
        return 0.0
    for side, share in ((rows, -off), (cols, off)):
        side.needs[side.units > 0] += share / len(units) / side.per
    return part / rows.per


@dataclass
class _Problem:
    """A seed with all totals; lines without one are joined into the last."""

    A: Any
    rows: Side
    cols: Side
    ground: float = 0.0  # what flows where the joined lines meet, besides units
    written_off: float = 0.0
    X: Cells | None = None

    @classmethod
    def of(cls, A: Any, rows: Side, cols: Side) -> _Problem:
        """Join lines without a total; raise NoTableError if the sums differ."""
        none, every = np.zeros(0, np.int64), slice(None)
        if (low := np.flatnonzero(rows.units < 0)[:1]).size:
            raise NoTableError("known", rows, cols, low, none)
        if (low := np.flatnonzero(cols.units < 0)[:1]).size:
            raise NoTableError("known", rows, cols, none, low)
        sums = [int(side.units.sum()) for side in (rows, cols)]
        off = sums[0] - sums[1]
        if abs(off) <= rows.error.sum() + cols.error.sum():
            off = 0
        written_off = 0.0
        if off and not rows.is_open and not cols.is_open:
            written_off = _write_off(rows, cols, off)
            off = 0 if written_off else off
        if (off > 0 and not cols.is_open) or (off < 0 and not rows.is_open):
            raise NoTableError("sum", rows, cols, every, every)
        if not rows.is_open and not cols.is_open:
            return cls(A, rows, cols, written_off=written_off)
        from scipy.sparse import coo_array, csr_array

        more, ground = [max(-off, 0), max(off, 0)], 0.0
        if rows.is_open and cols.is_open:
            through = sum(sums) or 1
            more = [sums[1] + through, sums[0] + through]
            ground = GROUND * through / rows.per
        for side, units in zip((rows, cols), more, strict=True):
            if side.is_open:
                side.close(units, ground)
        P, Q = (
            csr_array(
                (np.ones(len(side.place)), (side.place, np.arange(len(side.place))))
            )
            for side in (rows, cols)
        )
        A = P @ A @ Q.T
        if rows.is_open and cols.is_open:
            corner = [ground + through / rows.per], ([A.shape[0] - 1], [A.shape[1] - 1])
            A = A + coo_array(corner, shape=A.shape)
        return cls(A, rows, cols, ground)

    def scaled(self, start: Floats | None, tol: float, max_iter: int) -> Scaled:
        """Scale by the margins alone, or else by a table that has them."""
        (n, m), (r, c) = self.A.shape, (self.rows.needs, self.cols.needs)
        tol = min(tol, precision_for(n, m))
        if start is None:  # the scales of the columns of the seed do not matter
            sums = np.asarray(self.A.sum(axis=0), np.float64).ravel()
            start = np.divide(c, sums, out=np.zeros(m), where=sums > 0.0)
        fine = tol if n * m > ENOUGH_CELLS else POLISHED
        budget = min(PATIENCE, max_iter)
        w, h, sweeps, gap = sweep(self.A, r, c, start, tol, fine, budget)
        rows, cols = (np.where(side > 0.0, 0, -1).astype(np.int32) for side in (r, c))
        if gap <= tol:
            step = self._step(self.A, w, h, cols)
            if step <= SETTLED:
                return Scaled(w, h, rows, cols, step, "scaling", sweeps)
        return self._by_cells(h, sweeps, tol, max_iter)

    def _by_cells(self, h: Floats, sweeps: int, tol: float, max_iter: int) -> Scaled:
        """Fit a table that has the totals, with the seed as the weights of its cells.

        Sweeps share out what rounding has left of the totals.
        """
        if self.X is None:
            self.X = self._feasible()
        i, j, x = self.X
        seed, (r, c) = cells_at(self.A, i, j), (self.rows.needs, self.cols.needs)
        table = pairs_of(i, j, x, seed, *self.A.shape)
        found = solve(table, tol, max(max_iter - sweeps, 1), start=h).factors
        rows, cols = found.pattern_block, found.col_block
        kept = (rows[i] == cols[j]) & (rows[i] >= 0)
        inside = listed_cells(i[kept], j[kept], seed[kept], self.A.shape)
        w, h = np.nan_to_num(found.pattern_factor), np.nan_to_num(found.col_factor)
        near = sweep(inside, r, c, h, POLISHED, POLISHED, LAST_SWEEPS)
        if near[-1] < math.inf:
            w, h = near[:2]
        step = found.step
        if not self.rows.is_exact:
            step = max(step, self._step(inside, w, h, cols, MOST_SOLVED))
        return Scaled(w, h, rows, cols, step, found.solver, sweeps + found.n_iter)

    def _step(
        self, A: Any, w: Floats, h: Floats, block: SmallInts, most: int = 0
    ) -> float:
        """Bound what the cells may still be off by, in logarithms, from the margins.

        At most ``most`` cells are solved by an elimination, if need be.
        """
        r, c = self.rows.needs, self.cols.needs
        with np.errstate(all="ignore"):
            d = np.where(r > 0.0, w * (w / r), 0.0)

            def product(x: Floats) -> Floats:
                return h * _there_and_back(A, h * x, lambda y, some: d[some] * y)[1]

            fitted = product(np.ones_like(h))
            network = Network(c, fitted, block, product, max(A.shape))
            step = network.bound().step
            if step > SETTLED and most and A.nnz <= most:
                step = min(step, network.bound(_elimination(network, A, d, h)).step)
            return step

    # --------------------------------------------------------- a table with the totals
    def _feasible(self) -> Cells:
        """Cells that can be above 0, and a table of them with these totals.

        Raises NoTableError where there is none.
        """
        i, j, _ = positive_cells(self.A)
        rows, cols = self.rows, self.cols
        if len(i) == self.A.shape[0] * self.A.shape[1]:
            return i, j, rows.needs[i] / rows.needs.sum() * cols.needs[j]
        if self.written_off:  # no cut of such totals proves anything
            raise NoTableError("sum", rows, cols, slice(None), slice(None))
        cells, *left = transport(i, j, rows.units, cols.units)
        if any(part.any() for part in left):
            self._check_cuts(i, j, cells, *left)
        error = np.minimum(rows.error[i], cols.error[j])
        cells[(cells <= error) & (error < math.inf)] = 0
        X = cells / rows.per
        X[-1:] += self.ground
        return i, j, X

    def _check_cuts(
        self, i: Ints, j: Ints, cells: Ints, of_rows: Ints, of_cols: Ints
    ) -> None:
        """Raise NoTableError where more is missing than rounding explains.

        Of all proofs that with fewest names is chosen.
        """
        rows, cols, proofs = self.rows, self.cols, []
        found = list(cuts(i, j, cells, of_rows, of_cols))
        found += [(a, b) for b, a in cuts(j, i, cells, of_cols, of_rows)]
        for a, b in found:
            lacks = int(rows.units[a].sum()) - int(cols.units[b].sum())
            if abs(lacks) > rows.error[a].sum() + cols.error[b].sum():
                proofs.append((int(a.sum() + b.sum()), a, b))
        if proofs:
            _, *cut = min(proofs, key=itemgetter(0))
            raise NoTableError("cut", rows, cols, *cut)


def _elimination(network: Network, A: Any, d: Floats, h: Floats) -> Solve:
    """Solve with the Laplacian of the columns of a sparse seed."""
    from scipy.sparse import diags_array
    from scipy.sparse.linalg import splu

    F = A @ diags_array(h)
    laplacian = diags_array(network.fitted) - F.T @ diags_array(d) @ F
    free = np.flatnonzero(free_columns(network.block, network.sums))
    try:
        solve = splu(laplacian.tocsc()[:, free][free]).solve
    except RuntimeError:  # singular: cells that carry nothing
        solve = partial(np.full_like, fill_value=math.inf)

    def potentials(rhs: Floats, _: Any) -> Floats:
        x = np.zeros_like(rhs)
        x[free] = solve(rhs[free])
        return x

    return potentials


def sweep(
    A: Any, r: Floats, c: Floats, h: Floats, tol: float, fine: float, budget: int
) -> tuple[Floats, Floats, int, float]:
    """Alternate w = r / (A h) and h = c / (Aᵀ w); rows are fitted exactly.

    Ends where further sweeps would pass the budget, by their measured rate, or with a
    mismatch of at most ``tol`` once they no longer help, or of ``fine``.
    """
    has_row, has_col = r > 0.0, c > 0.0
    previous, k = 0.0, 0

    def factors(sums: Floats, some: slice) -> Floats:
        return np.where(has_row[some], r[some] / sums, 0.0)

    with np.errstate(all="ignore"):
        while True:
            k += 1
            w, reach = _there_and_back(A, h, factors)
            off = np.abs(h * reach - c)[has_col] / c[has_col]
            gap = float(off.max(initial=0.0))
            rate = gap / previous if previous > 0.0 else 0.0
            if not gap < 1e300 or gap <= fine or k >= budget:
                break
            if gap <= tol and rate > 0.5:
                break
            if k >= 8 and gap > tol:
                left = math.log(tol / gap) / math.log(rate) if rate < 1.0 else math.inf
                if k + left > budget:
                    break
            previous = gap
            h = np.where(has_col, c / reach, 0.0)
    return w, h, k, gap if gap < 1e300 else math.inf


def _there_and_back(
    A: Any, x: Floats, of_rows: Callable[[Floats, slice], Floats]
) -> tuple[Floats, Floats]:
    """Return y, which ``of_rows`` makes of A x, and Aᵀ y, reading A only once."""
    n, m = A.shape
    height = max(1, AT_ONCE // m) if isinstance(A, np.ndarray) else n
    y, back = np.empty(n), np.zeros(m)
    for k in range(0, n, height):
        some = slice(k, k + height)
        rows = A if height >= n else A[some]
        y[some] = of_rows(rows @ x, some)
        back += rows.T @ y[some]
    return y, back
