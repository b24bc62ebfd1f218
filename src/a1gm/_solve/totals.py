"""Scale a seed to totals: the margins first, a flow only where they do not settle.

The table nearest to a seed A with totals r and c is w A h inside the components of the
graph of any table X with these totals that is 0 where A is (row -> column where A > 0,
column -> row where X > 0), and 0 between them: the graph is the residual network of X
in the transport problem, so its components do not depend on X. Sweeps that settle on
margins alone prove that there is such a table, in one component.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from a1gm._base.bits import pack_bits
from a1gm._base.types import AnyArray, Bools, Floats, Ints, SmallInts, Solver
from a1gm._kernel import kernel, threads_for
from a1gm._observe.patterns import pairs_of
from a1gm._rows.seed import cells_at
from a1gm._solve.cell_error import SETTLED, Network, free_columns
from a1gm._solve.dispatch import solve
from a1gm._solve.scaling import precision_for
from a1gm._solve.transport import Cut, Transport
from a1gm._solve.units import Units

AT_ONCE, QUICK_SWEEPS = 1 << 18, 60  # cells, and sweeps, of one call of the kernel
PATIENCE = 400  # sweeps: listing the cells of a seed for Newton costs as much
POLISHED = 2e-16
TOTAL_ROUNDING = 2.0**-53  # relative, of a total that is no decimal
MOST_SOLVED = 10**6  # cells of which the network is solved for that rounding
LAST_SWEEPS = 8
ENOUGH_CELLS = 10**6  # of a larger seed the last digits are not sought
GROUND = 1000  # of all totals: what flows where no total is known
ROUNDS, SAME = 8, 1e-14


@dataclass
class Scaled:
    """Factors of the rows and columns, their components, and how well they fit.

    A component is -1 where a total is 0, or nothing can be above 0.
    """

    w: Floats
    h: Floats
    row_block: SmallInts
    col_block: SmallInts
    gap: float
    step: float
    solver: Solver
    n_iter: int


class NoTableError(Exception):
    """No table has these totals; ``cut`` proves it.

    It counts the rows and columns whose totals are known. ``is_sum``: all of them.
    """

    def __init__(
        self, cut: Cut, needs: float, has: float, *, is_sum: bool = False
    ) -> None:
        super().__init__()
        self.cut, self.needs, self.has, self.is_sum = cut, needs, has, is_sum


# ------------------------------------------------------------------ totals not known
def scale_seed(A: Any, units: Units, *, tol: float, max_iter: int) -> Scaled:
    """Scale a seed, an array or a CSR one, to the totals that are known.

    Rows whose totals are not known keep factor 1, so they act as one row; columns
    likewise. If there are such on both sides, the cell where they meet is the ground:
    whatever its seed, enough flows through it, and it is solved again with that seed.
    """
    rows, cols = (
        np.array([t is not None for t in side], bool)
        for side in (units.rows, units.cols)
    )
    if not rows.any() and not cols.any():
        ones, zeros = (
            [make(len(side)) for side in (rows, cols)] for make in (np.ones, np.zeros)
        )
        parts = [side.astype(np.int32) for side in zeros]
        return Scaled(ones[0], ones[1], parts[0], parts[1], 0.0, 0.0, "closed form", 0)
    problem = _Problem.of(A, rows, cols, units)
    found = problem.scaled(None, tol, max_iter)
    is_grounded = not rows.all() and not cols.all()
    for _ in range(ROUNDS if is_grounded else 0):
        through = found.w[-1] * problem.A[-1, -1] * found.h[-1]
        is_same = abs(found.w[-1] * found.h[-1] - 1.0) <= SAME
        if is_same or not 0.0 < through < math.inf:
            break
        problem.A[-1, -1] = through
        again = problem.scaled(found.h, tol, max_iter)
        found = replace(again, n_iter=found.n_iter + again.n_iter)
    _normalise(found, problem)
    for name, factor, known in (("row", "w", rows), ("col", "h", cols)):
        block = f"{name}_block"
        of_all, blocks = np.ones(len(known)), np.full(len(known), -1, np.int32)
        n = int(known.sum())
        of_all[known] = getattr(found, factor)[:n]
        blocks[known] = getattr(found, block)[:n]
        if n < len(known):
            blocks[~known] = getattr(found, block)[-1]
        setattr(found, factor, of_all)
        setattr(found, block, blocks)
    return found


def _normalise(found: Scaled, problem: _Problem) -> None:
    """Set the free scale of each component.

    1 for what has no total; elsewhere the mean logarithm of the column factors is 0.
    """
    n = int(max(found.row_block.max(), found.col_block.max())) + 1
    inside = found.col_block >= 0
    label, weight = found.col_block[inside], problem.c[inside]
    sums = np.bincount(label, weight, n)
    logs = np.bincount(label, weight * np.log(found.h[inside]), n)
    scale = np.exp(np.divide(logs, sums, out=np.zeros(n), where=sums > 0.0))
    if problem.open_row and found.row_block[-1] >= 0:
        scale[found.row_block[-1]] = 1.0 / found.w[-1]
    elif problem.open_col and found.col_block[-1] >= 0:
        scale[found.col_block[-1]] = found.h[-1]
    scale = np.append(scale, 1.0)
    found.w = found.w * scale[found.row_block]
    found.h = found.h / scale[found.col_block]


# ----------------------------------------------------------------- all totals known
@dataclass
class _Problem:
    """A seed with all totals, in numbers and in units.

    With ``open_row`` the last row stands for those without a total; likewise columns.
    """

    A: Any
    r: Floats
    c: Floats
    row_units: AnyArray
    col_units: AnyArray
    units: Units
    row_error: list[int]
    col_error: list[int]
    open_row: bool
    open_col: bool
    X: tuple[Ints, Ints, Floats] | None = None

    @classmethod
    def of(cls, A: Any, rows: Bools, cols: Bools, units: Units) -> _Problem:
        """Join the rows, and the columns, without a total into one."""
        R = [t for t in units.rows if t is not None]
        C = [t for t in units.cols if t is not None]
        row_error = [
            e for e, is_known in zip(units.row_error, rows, strict=True) if is_known
        ]
        col_error = [
            e for e, is_known in zip(units.col_error, cols, strict=True) if is_known
        ]
        off = sum(R) - sum(C)
        is_off = abs(off) > sum(row_error) + sum(col_error)
        ground = GROUND * (sum(R) + sum(C)) or GROUND * units.num
        lacks_rows, lacks_cols = not rows.all(), not cols.all()
        if is_off and (off < 0 or not lacks_cols) and (off > 0 or not lacks_rows):
            side = "row" if off > 0 else "column"
            every = Cut(np.arange(len(R)), np.arange(len(C)), side)
            needs, has = units.floats(sorted((sum(R), sum(C)), reverse=True))
            raise NoTableError(every, needs, has, is_sum=True)
        if lacks_rows and lacks_cols:
            R, C = [*R, sum(C) + ground], [*C, sum(R) + ground]
        elif lacks_rows:
            R.append(-off if is_off else 0)
        elif lacks_cols:
            C.append(off if is_off else 0)
        off = sum(R) - sum(C)  # what rounding has left
        if off:
            C[int(np.argmax(units.floats(C)))] += off
        if lacks_rows:
            row_error.append(sum(row_error) + sum(col_error))
        if lacks_cols:
            col_error.append(sum(row_error) + sum(col_error))
        dtype = np.int64 if sum(R) < 2**62 else object
        A = _joined(A, rows, cols)
        if lacks_rows and lacks_cols:
            A = _grounded(A, units.floats([ground])[0])
        sides = units.floats(R), units.floats(C), np.array(R, dtype), np.array(C, dtype)
        errors = row_error, col_error
        return cls(A, *sides, units, *errors, lacks_rows, lacks_cols)

    def scaled(self, start: Floats | None, tol: float, max_iter: int) -> Scaled:
        """Scale by the margins alone, or else by a table that has them."""
        n, m = self.A.shape
        tol = min(tol, precision_for(n, m))
        budget = min(PATIENCE, max_iter)
        if start is None:
            found = self._at_once(tol, max_iter)
            if found is not None:
                return found
            # The scales of the columns of the seed do not matter.
            sums = np.asarray(self.A.sum(axis=0), np.float64).ravel()
            start = np.divide(self.c, sums, out=np.zeros(m), where=sums > 0.0)
        fine = tol if n * m > ENOUGH_CELLS else POLISHED
        w, h, sweeps, gap = sweep(self.A, self.r, self.c, start, tol, fine, budget)
        block = np.where(self.c > 0.0, 0, -1).astype(np.int32)
        if gap <= tol:
            step = self._step(self.A, w, h, block)
            if step <= SETTLED:
                rows = np.where(self.r > 0.0, 0, -1).astype(np.int32)
                return Scaled(w, h, rows, block, gap, step, "scaling", sweeps)
        return self._by_cells(h, sweeps, tol, max_iter)

    def _at_once(self, tol: float, max_iter: int) -> Scaled | None:
        """One call of the kernel for a large seed that is quick to scale."""
        A = self.A
        if not isinstance(A, np.ndarray) or A.size < AT_ONCE:
            return None
        threads = threads_for(A.size, None)
        args: Any = pack_bits(A > 0.0), [(A, None, None, 0)], self.r, self.c, tol
        found = kernel.solve_bits(*args, min(QUICK_SWEEPS, max_iter), threads)
        if found is None or found[-1] > SETTLED:
            return None
        w, _, h, sweeps, _, gap, step = found
        blocks = [np.where(t > 0.0, 0, -1).astype(np.int32) for t in (self.r, self.c)]
        w, h = np.where(self.r > 0.0, w, 0.0), np.where(self.c > 0.0, h, 0.0)
        return Scaled(w, h, blocks[0], blocks[1], gap, step, "scaling", sweeps)

    def _by_cells(self, h: Floats, sweeps: int, tol: float, max_iter: int) -> Scaled:
        if self.X is None:
            self.X = self._feasible()
        i, j, x = self.X
        (n, m), weights = self.A.shape, cells_at(self.A, i, j)
        table = pairs_of(i, j, x, weights, n, m)
        left = max(max_iter - sweeps, 1)
        factors = solve(table, tol, left, start=h).factors
        w, h = (np.nan_to_num(f) for f in (factors.pattern_factor, factors.col_factor))
        blocks = factors.pattern_block, factors.col_block
        for factor, block in zip((w, h), blocks, strict=True):
            factor[block < 0] = 0.0
        found = Scaled(
            w,
            h,
            *blocks,
            factors.gap,
            factors.step,
            factors.solver,
            sweeps + factors.n_iter,
        )
        inside = self.inside(found)
        w, h, _, gap = sweep(inside, self.r, self.c, h, POLISHED, POLISHED, LAST_SWEEPS)
        if np.isfinite(gap):
            found = replace(found, w=w, h=h, gap=gap)
        if not self.units.is_exact:
            found.step = max(found.step, self._rounded(inside, found))
        return found

    def _rounded(self, inside: Any, found: Scaled) -> float:
        """What the rounding of the totals may have changed cells by, in logarithms.

        Currents of a share of each total, into the network whose conductances are the
        cells; the heaviest column of each component is the ground.
        """
        from scipy.sparse import block_array, diags_array
        from scipy.sparse.linalg import splu

        if inside.nnz > MOST_SOLVED:
            return 0.0
        F = diags_array(found.w) @ inside @ diags_array(found.h)
        sums = np.concatenate([F.sum(axis=1), F.sum(axis=0)])
        n = len(found.w)
        free = np.concatenate(
            [found.row_block >= 0, free_columns(found.col_block, sums[n:])]
        )
        parts = block_array([[None, -F], [-F.T, None]]) + diags_array(sums)
        some = np.flatnonzero(free)
        network = parts.tocsc()[some][:, some]
        with np.errstate(all="ignore"):
            try:
                reach = splu(network.tocsc()).solve(sums[some])
            except RuntimeError:  # singular: cells that carry nothing
                return math.inf
        most = float(np.abs(reach).max(initial=0.0))
        return 4.0 * TOTAL_ROUNDING * most if math.isfinite(most) else math.inf

    def inside(self, found: Scaled) -> Any:
        """The cells of the seed inside the components, sparse."""
        from scipy.sparse import csr_array

        assert self.X is not None
        i, j, _ = self.X
        kept = (found.row_block[i] == found.col_block[j]) & (found.row_block[i] >= 0)
        cells = cells_at(self.A, i[kept], j[kept])
        return csr_array((cells, (i[kept], j[kept])), shape=self.A.shape)

    def _step(self, A: Any, w: Floats, h: Floats, block: SmallInts) -> float:
        """Bound what the cells may still be off by, in logarithms, from the margins."""
        with np.errstate(all="ignore"):
            d = np.where(self.r > 0.0, w * (w / self.r), 0.0)

            def product(x: Floats) -> Floats:
                found: Floats = h * (A.T @ (d * (A @ (h * x))))
                return found

            fitted = product(np.ones_like(h))
            network = Network(self.c, fitted, block, product, max(A.shape))
            return network.bound().step

    # --------------------------------------------------------- a table with the totals
    def _feasible(self) -> tuple[Ints, Ints, Floats]:
        """Cells that can be above 0, and a table of them with these totals.

        Raises NoTableError where there is none.
        """
        i, j = (np.asarray(places, np.int64) for places in self.A.nonzero())
        order = np.lexsort((j, i))
        i, j = i[order], j[order]
        if len(i) == self.A.shape[0] * self.A.shape[1]:
            return i, j, self.r[i] / self.r.sum() * self.c[j]
        network = Transport(i, j, self.row_units, self.col_units)
        cells = network.cells
        if any(left.any() for left in network.left(cells)):
            self._check_cuts(network)  # else the last sweeps share out the rounding
        if not self.units.is_exact:
            errors = (np.array(e, object) for e in (self.row_error, self.col_error))
            of_row, of_col = errors
            cells = np.where(cells <= np.minimum(of_row[i], of_col[j]), 0, cells)
        return i, j, self.units.floats(cells)

    def _check_cuts(self, network: Transport) -> None:
        """Raise NoTableError where more is missing than rounding has left."""
        cuts = [cut for cut in network.cuts() if self._is_beyond_rounding(network, cut)]
        if cuts:
            cut = min(cuts, key=lambda cut: cut.size)
            sums = self.row_units[cut.rows].sum(), self.col_units[cut.cols].sum()
            needs, has = sums if cut.side == "row" else sums[::-1]
            raise NoTableError(cut, *self.units.floats([int(needs), int(has)]))

    def _is_beyond_rounding(self, network: Transport, cut: Cut) -> bool:
        """Whether a cut proves that there is no table, by totals that are known."""
        if self._is_open(cut):
            return False
        rows, cols = (np.zeros(n, bool) for n in network.shape)
        rows[cut.rows], cols[cut.cols] = True, True
        here, beyond = (
            sum(np.array(self.row_error, object)[some])
            + sum(np.array(self.col_error, object)[others])
            for some, others in ((rows, cols), (~rows, ~cols))
        )
        return bool(network.missing(cut) > min(here, beyond))

    def _is_open(self, cut: Cut) -> bool:
        n, m = self.A.shape
        return (self.open_row and n - 1 in cut.rows) or (
            self.open_col and m - 1 in cut.cols
        )


def _joined(A: Any, rows: Bools, cols: Bools) -> Any:
    """The seed with its rows, and its columns, without a total added up."""
    if rows.all() and cols.all():
        return A
    from scipy import sparse

    is_dense = isinstance(A, np.ndarray)
    for known in (rows, cols):  # the rows, then, transposed, the columns
        parts = [A[known]]
        if not known.all():
            parts.append(np.asarray(A[~known].sum(axis=0)).reshape(1, -1))
        if is_dense:
            A = np.concatenate(parts).T
        else:
            A = sparse.vstack([sparse.csr_array(part) for part in parts]).T.tocsr()
    return np.ascontiguousarray(A) if is_dense else A


def _grounded(A: Any, seed: float) -> Any:
    """The seed with another one where the last row and the last column meet."""
    if not isinstance(A, np.ndarray):
        from scipy.sparse import csr_array

        n, m = A.shape
        more = csr_array(([seed - A[-1, -1]], ([n - 1], [m - 1])), shape=A.shape)
        return A + more
    A[-1, -1] = seed
    return A


def sweep(
    A: Any, r: Floats, c: Floats, h: Floats, tol: float, fine: float, budget: int
) -> tuple[Floats, Floats, int, float]:
    """Alternate w = r / (A h) and h = c / (Aᵀ w); rows are fitted exactly.

    Ends where further sweeps would pass the budget, by their measured rate, or with a
    mismatch of at most ``tol`` once they no longer help, or of ``fine``.
    """
    AT, has_row, has_col = A.T, r > 0.0, c > 0.0
    previous, k = 0.0, 0
    with np.errstate(all="ignore"):
        while True:
            k += 1
            w = np.where(has_row, r / (A @ h), 0.0)
            reach = AT @ w
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
