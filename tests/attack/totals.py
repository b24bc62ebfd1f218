"""Random seeds and totals against a linear program and 50 digits.

``PYTHONPATH=tests python -m attack.totals 5000`` tries so many tables, from seed 0 on.
A linear program decides whether there is a table with the totals, and which cells can
be above 0; inside them the scaling is solved again in 50 digits.
"""

from __future__ import annotations

import sys
import warnings
from collections import Counter
from decimal import Decimal
from fractions import Fraction
from typing import Any

import flint
import numpy as np
from flint import arb, arb_mat
from scipy.optimize import linprog

import a1gm
from a1gm.exceptions import DataHintWarning, NotRepresentableError, TotalsError

KINDS = "integer", "decimal", "float", "far"
PLACES = "interior", "boundary", "any"


def random_problem(rng: np.random.Generator) -> tuple[Any, Any, Any, str, str]:
    """A seed, totals, what numbers these are, and where in the polytope they are."""
    n, m = rng.integers(1, 6 if rng.random() < 0.9 else 12, 2)
    seed = rng.lognormal(0, 1.5, (n, m)) * (rng.random((n, m)) < rng.uniform(0.3, 1))
    kind, place = rng.choice(KINDS), rng.choice(PLACES)
    some = seed > 0
    if place == "boundary":  # only some of the cells that may be are used
        some &= rng.random((n, m)) < 0.6
    x = rng.integers(1, 200, (n, m)) * some
    r, c = x.sum(axis=1), x.sum(axis=0)
    if place == "any":  # often impossible, with the same sums
        if rng.random() < 0.5:
            r = rng.permutation(r)
        moved = min(int(rng.integers(0, 3)), int(r[0]))
        r[0], r[-1] = r[0] - moved, r[-1] + moved
        c[0] += rng.random() < 0.05  # another sum
    if kind == "integer":
        factor = int(rng.choice([1, 1, 10**6, 2**31, 2**40]))
        return seed, (r * factor).astype(float), (c * factor).astype(float), kind, place
    if kind == "decimal":
        digits = int(rng.integers(1, 5))
        return seed, r / 10**digits, c / 10**digits, kind, place
    if kind == "far":  # some totals beyond what float64 adds up
        power = float(rng.choice([-320, -310, -200, -30, -16, 16, 30, 200, 290]))
        r, c = r.astype(float), c.astype(float)
        r[0], c[0] = r[0] * 10.0**power, c[0] * 10.0**power
        return seed, r, c, kind, place
    return seed, r / 3.0, c / 3.0, kind, place


def is_far(r: Any, c: Any) -> bool:
    """Whether totals span more than float64 adds up, or are near its ends."""
    totals = np.concatenate([r, c])
    totals = totals[totals > 0]
    if not len(totals):
        return False
    lost = totals.min() < 2.0**-53 * max(r.sum(), c.sum())
    return bool(lost or totals.min() < 1e-140 or totals.max() > 1e140)


def as_written(
    R: list[Fraction], C: list[Fraction], totals: Any
) -> tuple[list[Fraction], list[Fraction]]:
    """Totals with one sum, if theirs differ by a unit of the last digit of each."""
    written = (Decimal(repr(float(t))).normalize() for t in totals)
    digits = max(-t.as_tuple().exponent for t in written)
    off, n = sum(R) - sum(C), sum(t > 0 for t in [*R, *C])
    unit = Fraction(1, 10 ** max(digits, 0))
    if digits < 1 or not off or abs(off) > n * unit:
        return R, C
    part = off / n
    if abs(part) >= min(t for t in [*R, *C] if t > 0):
        return R, C
    return [t - part * (t > 0) for t in R], [t + part * (t > 0) for t in C]


def exact(totals: Any, kind: str) -> list[Fraction]:
    """The totals without the rounding of their division."""
    if kind == "float":
        return [Fraction(round(t * 3)) for t in totals.tolist()]
    return [Fraction(repr(t)) for t in totals.tolist()]


def support(seed: Any, r: Any, c: Any) -> Any:
    """Cells above 0 in some table with the totals; None if there is no table.

    Maximise the cells, each counted to 1 at most, over all multiples of such tables.
    """
    i, j = np.nonzero(seed > 0)
    k, (n, m) = len(i), seed.shape
    if not k:
        return None if any(r) or any(c) else seed > 0
    scale = float(max(sum(r), 1))
    r, c = (np.array([float(t) for t in side]) / scale * 1000 for side in (r, c))
    equal = np.zeros((n + m, 2 * k + 1))
    equal[i, np.arange(k)] = 1
    equal[n + j, np.arange(k)] = 1
    equal[:, -1] = -np.concatenate([r, c])
    below = np.hstack([-np.eye(k), np.eye(k), np.zeros((k, 1))])
    bounds = [(0, None)] * k + [(0, 1)] * k + [(1, None)]
    cost = np.concatenate([np.zeros(k), -np.ones(k), [0.0]])
    found = linprog(
        cost,
        A_ub=below,
        b_ub=np.zeros(k),
        A_eq=equal,
        b_eq=np.zeros(n + m),
        bounds=bounds,
        options={
            "primal_feasibility_tolerance": 1e-10,
            "dual_feasibility_tolerance": 1e-10,
        },
    )
    if found.status != 0:
        return None
    cells = np.zeros((n, m), bool)
    cells[i, j] = found.x[k : 2 * k] > 0.5
    return cells


def fifty_digits(seed: Any, some: Any, r: Any, c: Any, near: Any) -> Any:
    """The scaling of the cells ``some``, by Newton's method from near cells."""
    flint.ctx.dps = 150
    rows, cols = np.flatnonzero(some.any(axis=1)), np.flatnonzero(some.any(axis=0))
    place = {int(i): a for a, i in enumerate(rows)}
    other = {int(j): len(rows) + b for b, j in enumerate(cols)}
    cells = [(int(i), int(j)) for i, j in zip(*np.nonzero(some), strict=True)]
    x = [arb(float(near[cell])) for cell in cells]
    totals = [r[i] for i in rows] + [c[j] for j in cols]
    totals = [arb(t.numerator) / arb(t.denominator) for t in totals]
    size, tiny = len(totals), arb(10) ** -50
    for _ in range(100):
        off, H = list(totals), [[arb(0)] * size for _ in totals]
        for (i, j), value in zip(cells, x, strict=True):
            for a, b in ((place[i], other[j]), (other[j], place[i])):
                off[a] -= value
                H[a][a] += value
                H[a][b] += value
        if all(abs(o).mid() < tiny * t for o, t in zip(off, totals, strict=True)):
            return dict(zip(cells, x, strict=True))
        for k in range(size):  # the free scale of each block
            H[k][k] *= 1 + tiny
        step = arb_mat(H).solve(arb_mat([[o] for o in off]))
        x = [
            (value * (step[place[i], 0] + step[other[j], 0]).exp()).mid()
            for (i, j), value in zip(cells, x, strict=True)
        ]
    raise AssertionError("no 50 digits")


def judge(number: int) -> str:
    """Try one table; raise AssertionError where the answer is wrong."""
    rng = np.random.default_rng(number)
    seed, r, c, kind, _ = random_problem(rng)
    if is_far(r, c):
        try:
            a1gm.scale(seed, r, c)
        except NotRepresentableError:
            return "refused"
        raise AssertionError("too far apart, and not refused")
    if kind == "far":  # too far for a linear program
        return "near"
    R, C = exact(r, kind), exact(c, kind)
    is_off = sum(R) != sum(C)
    if kind == "decimal":
        R, C = as_written(R, C, [*r, *c])
    some = support(seed, R, C)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            warnings.simplefilter("ignore", DataHintWarning)
            s = a1gm.scale(seed, r, c)
    except TotalsError as error:
        is_sure = not is_off or (seed > 0).all()
        assert some is None or not is_sure, "refused, but there is a table"
        check_proof(error, seed, r, c)
        return "impossible"
    assert some is not None, "scaled, but there is no table"
    table = s.table
    assert np.array_equal(table > 0, some), "another support"
    assert np.array_equal((seed > 0) & ~some, _mask(s.forced_zeros, seed.shape))
    r, c = (np.array([float(t) for t in side]) for side in (R, C))
    if kind == "float":
        r, c = r / 3, c / 3
    sums = zip((table.sum(axis=1), table.sum(axis=0)), (r, c), strict=True)
    gap = max(np.max(np.abs(a - b) / np.where(b > 0, b, 1)) for a, b in sums)
    assert gap <= 1e-10, f"certificate {gap}"
    assert s.certificate <= 1e-10
    truth = fifty_digits(seed, some, R, C, table)
    unit = 3 if kind == "float" else 1
    for (i, j), x in truth.items():
        error = abs(float((arb(float(table[i, j])) * unit / x - 1).mid()))
        assert error <= max(s.cell_error, 1e-14), f"cell off by {error}"
        assert error <= 1e-8, f"cell off by {error}"
    return "boundary" if ((seed > 0) & ~some).any() else "interior"


def check_proof(error: TotalsError, seed: Any, r: Any, c: Any) -> None:
    """Add up the fields of an error again."""
    rows, cols = list(error.rows), list(error.cols)
    sums = r[rows].sum(), c[cols].sum()
    needs, has = sums if error.side == "row" else sums[::-1]
    assert np.isclose(error.needs, needs, rtol=1e-13, atol=0)
    assert np.isclose(error.has, has, rtol=1e-13, atol=0)
    assert error.needs > error.has
    table = seed if error.side == "row" else seed.T
    own, others = (rows, cols) if error.side == "row" else (cols, rows)
    outside = np.setdiff1d(np.arange(table.shape[1]), others)
    assert not table[np.ix_(own, outside)].any()


def _mask(cells: Any, shape: tuple[int, int]) -> Any:
    mask = np.zeros(shape, bool)
    mask[cells[:, 0], cells[:, 1]] = True
    return mask


def main() -> int:
    """Try as many tables as asked for; return the number of wrong answers."""
    n, first = (int(a) for a in [*sys.argv[1:], "1000", "0"][:2])
    if len(sys.argv) > 2:
        first = int(sys.argv[2])
    seen, wrong = Counter[str](), 0
    for number in range(first, first + n):
        try:
            seen[judge(number)] += 1
        except Exception as error:  # noqa: BLE001 - all wrong answers are counted
            wrong += 1
            print(f"{number}: {type(error).__name__}: {error}")
    print(dict(seen), "wrong:", wrong)
    return wrong


if __name__ == "__main__":
    sys.exit(bool(main()))
