"""The true fit of a table, without any code of the package.

Each component is a convex problem in the logarithms of its factors. Newton's method
solves it, in long double where a bound on its rounding says that this is enough, else
in ball arithmetic (python-flint) with as many digits as the table needs, at least 60:
every number carries a proven bound, and a step that is not known well enough is taken
again with twice the digits.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from support.oracles import FINITE, UNDETERMINED, ZERO, fates

Long = np.longdouble
U = float(np.finfo(Long).eps)
ENOUGH = 1e-13  # long double is good enough where it is right to this
KNOWN = 1e-40  # the step that ends Newton's method in ball arithmetic


@dataclass
class Truth:
    """What is right: long doubles, which hold 1e±4900."""

    fate: np.ndarray
    cells: np.ndarray  # fitted values of finite and zero cells, else NaN
    row_factor: np.ndarray
    col_factor: np.ndarray
    divergence: Any
    total: Any
    digits: int  # 19 for long double


class NoTruth(ArithmeticError):
    """The oracle itself gives up."""


def truth_of(
    X: np.ndarray, V: np.ndarray | None, start: Any, *, signed: bool, exact: bool
) -> Truth:
    """Solve a table; ``start`` are column factors near the answer, or None."""
    n, m = X.shape
    X = X if V is None else np.where(V > 0.0, X, np.nan)
    V = np.ones_like(X) if V is None else V
    mask = np.where(np.isnan(X), 0.0, V).astype(Long)
    data = np.nan_to_num(X).astype(Long) * mask
    fate = signed_fates(X, data) if signed else fates(X)
    cells = np.full((n, m), np.nan, Long)
    cells[fate == ZERO] = 0.0
    w, h = np.full(n, np.nan, Long), np.full(m, np.nan, Long)
    seen = mask > 0.0
    w[seen.any(axis=1)], h[seen.any(axis=0)] = 0.0, 0.0
    divergence, digits, total = Long(0.0), 19, data.sum()
    for rows, cols in components(fate == FINITE):
        at = np.ix_(rows, cols)
        r, c = data[at].sum(axis=1), data[at].sum(axis=0)
        if signed:  # lines of sum 0 count in the margins that they cross
            r, c = data[rows].sum(axis=1), data[:, cols].sum(axis=0)
        near = None if start is None else np.asarray(start, float)[cols]
        found = _solve(data[at], mask[at], r, c, near, exact, signed)
        a, b, cells[at], part, used = found
        digits = max(digits, used)
        divergence = divergence + part
        with np.errstate(all="ignore"):  # factors may leave even long double
            share = c.sum() / total / b.sum()
            w[rows], h[cols] = a / share, b * share
    if not data.any():
        h[seen.any(axis=0)] = Long(1.0) / max(1, seen.any(axis=0).sum())
    return Truth(fate, cells, w, h, divergence, total, digits)


def signed_fates(X: np.ndarray, data: np.ndarray) -> np.ndarray:
    """Margins only: any observed cell ties; lines of sum 0 have factor 0."""
    seen = ~np.isnan(X)
    zero_row, zero_col = data.sum(axis=1) == 0.0, data.sum(axis=0) == 0.0
    live = np.where(seen & ~zero_row[:, None] & ~zero_col, 1.0, np.nan)
    fate = fates(live)
    dead = (zero_row & seen.any(axis=1))[:, None] | (zero_col & seen.any(axis=0))
    fate[dead] = ZERO
    fate[~seen.any(axis=1)], fate[:, ~seen.any(axis=0)] = UNDETERMINED, UNDETERMINED
    return fate


def components(finite: np.ndarray) -> list[tuple[np.ndarray, np.ndarray]]:
    """Rows and columns that have finite cells with each other."""
    found = {}
    for i in np.flatnonzero(finite.any(axis=1)):
        found.setdefault(finite[i].tobytes(), []).append(i)
    return [
        (np.array(rows), np.flatnonzero(np.frombuffer(key, bool)))
        for key, rows in found.items()
    ]


def _solve(data, mask, r, c, start, exact, signed):
    """Factors of one component, its cells, its divergence, and the digits used."""
    if data.shape[1] > 2 * data.shape[0]:  # Newton on the smaller side
        b, a, cells, *more = _solve(data.T, mask.T, c, r, None, exact, signed)
        return a, b, cells.T, *more
    if (r <= 0.0).any() and signed:
        return _solve_twins(data, mask, r, c, start, exact)
    if (r <= 0.0).any() or (c <= 0.0).any():
        raise NoTruth("a row or a column sums to nothing")
    h = np.ones_like(c) if start is None else start.astype(Long)
    if start is None or not (np.isfinite(h) & (h > 0.0)).all():
        h = np.ones_like(c)
        for _ in range(30):
            h = c / (mask.T @ (r / (mask @ h)))
    found = None if exact else _newton_long(mask, r, c, h)
    if found is None:
        return _newton_balls(data, mask, h, (r, c) if signed else None)
    w, h = found
    cells = w[:, None] * h
    inside = mask > 0.0
    part = Long(0) if signed else _kl(data[inside], (mask * cells)[inside]).sum()
    return w, h, cells, part, 19


def _solve_twins(data, mask, r, c, start, exact):
    """Rows of one pattern as one row: each has its share of their sum, of any sign."""
    patterns, twin = np.unique(mask, axis=0, return_inverse=True)
    n, twin = len(patterns), twin.ravel()
    if n == len(r):
        raise NoTruth("a row sums to nothing, and has no twin")
    one = (twin == np.arange(n)[:, None]).astype(Long)
    found = _solve(one @ data, patterns, one @ r, c, start, exact, signed=True)
    h = found[1]
    w = r / (mask @ h)
    return w, h, w[:, None] * h, *found[3:]


def _kl(x, f):
    d = (x - f) / f  # without cancellation where x and f are close
    with np.errstate(divide="ignore", invalid="ignore"):
        log = np.where(x > 0.0, (1.0 + d) * np.log1p(d), 0.0)
    series = d * d * (0.5 - d / 6.0 + d * d / 12.0)
    return f * np.where(np.abs(d) < 1e-5, series, log - d)


def _newton_long(mask, r, c, h):
    """Newton in long double; None where its rounding is not small enough."""
    at = int(np.argmax(c))
    for _ in range(12):
        w = r / (mask @ h)
        F = mask * w[:, None] * h
        A = F.T @ (F / r[:, None])
        rhs = np.stack([c - F.sum(axis=0), c], axis=1)
        found = _grounded(A, rhs, at)
        if not np.isfinite(found).all():
            return None
        step, slack = found[:, 0], found[:, 1].max() * 2.0 * U * sum(mask.shape)
        if slack > ENOUGH:
            return None
        if np.ptp(step) <= 4.0 * slack + 1e-17:
            return w, h
        h = h * np.exp(step * min(1.0, 2.0 / np.ptp(step)))
    return None


def _grounded(A, rhs, ground):
    """Solve the Laplacian with conductances A, one column held at 0; no subtraction."""
    order = np.concatenate([[ground], np.delete(np.arange(len(A)), ground)])
    A, y = A[np.ix_(order, order)].copy(), rhs[order].copy()
    np.fill_diagonal(A, 0.0)
    sums = np.zeros(len(A), Long)
    with np.errstate(all="ignore"):
        for k in range(len(A) - 1, 0, -1):
            sums[k] = A[k, :k].sum()
            p = A[k, :k] / sums[k]
            A[:k, :k] += p[:, None] * A[k, :k]
            y[:k] += p[:, None] * y[k]
        v = np.zeros_like(y)
        for k in range(1, len(A)):
            v[k] = (A[k, :k] @ v[:k] + y[k]) / sums[k]
    out = np.empty_like(v)
    out[order] = v
    return out


# --------------------------------------------------------------------- ball arithmetic
def _newton_balls(data, mask, h, margins):
    import flint

    positive = np.abs(data[data != 0.0])
    span = float(np.log2(positive.max() / positive.min()))
    bits = 256 + int(2.5 * span)
    before = flint.ctx.prec
    try:
        for _ in range(4):
            flint.ctx.prec = bits
            try:
                return _try_balls(data, mask, h, margins, flint)
            except ZeroDivisionError:  # a matrix that may be singular: not known enough
                bits, h = 2 * bits, np.ones_like(h)
    finally:
        flint.ctx.prec = before
    raise NoTruth("not enough digits")


def _try_balls(data, mask, h, margins, flint):
    n, m = data.shape
    M = flint.arb_mat([[_ball(x, flint) for x in line] for line in mask])
    D = [[_ball(x, flint) for x in line] for line in data]
    r = [sum(line, flint.arb(0)) for line in D]
    c = [sum((line[j] for line in D), flint.arb(0)) for j in range(m)]
    if margins is not None:  # of a signed table: other lines count, too
        r, c = ([_ball(x, flint) for x in sums] for sums in margins)
    at = max(range(m), key=lambda j: float(np.log(_long(c[j]))))
    free = [j for j in range(m) if j != at]
    H = [_ball(x, flint) for x in h]
    Mt = M.transpose()

    def flows(H):
        S = M * flint.arb_mat(m, 1, H)
        w = [r[i] / S[i, 0] for i in range(n)]
        T = Mt * flint.arb_mat(n, 1, w)
        return w, [c[j] - H[j] * T[j, 0] for j in range(m)]

    w, g = flows(H)
    for _ in range(800):
        if m == 1:
            break
        step = _ball_step(M, w, H, r, g, free, flint)
        size = max(abs(x) for x in step)
        if size < KNOWN:
            break
        step = _tamed(step, flint)
        slope = sum((a * b for a, b in zip(step, g, strict=True)), flint.arb(0))
        t, best = flint.arb(1), None
        while True:  # longer while it still descends, shorter when it has overshot
            trial = [(H[j] * (step[j] * t).exp()).mid() for j in range(m)]
            w_t, g_t = flows(trial)
            left = sum((a * b for a, b in zip(step, g_t, strict=True)), flint.arb(0))
            if left < -slope / 2 or not left.is_finite():
                if best is not None:
                    break
                t /= 4
                if t < 1e-30:
                    raise ZeroDivisionError
            else:
                best = (trial, w_t, g_t)
                if not left > slope / 1000 or t > 4:
                    break
                t *= 2
        H, w, g = best
    else:
        raise NoTruth("Newton does not end")
    w, g = flows(H)
    part = flint.arb(0)
    cells = [[w[i] * H[j] for j in range(m)] for i in range(n)]
    for i, j in np.argwhere(mask > 0.0).tolist() if margins is None else []:
        f, x = cells[i][j] * M[i, j], D[i][j]
        part += f - x + (x * (x / f).log() if data[i, j] > 0.0 else 0)
    digits = int(flint.ctx.prec * math.log10(2.0))
    as_long = np.vectorize(_long, otypes=[Long])
    found = [as_long(np.array(x, object)) for x in (w, H, cells)]
    return *found, _long(part), digits


def _ball_step(M, w, H, r, g, free, flint):
    n, m = M.nrows(), M.ncols()
    F = [[M[i, j] * w[i] * H[j] for j in range(m)] for i in range(n)]
    left = flint.arb_mat([[F[i][j] / r[i] for j in free] for i in range(n)])
    right = flint.arb_mat([[F[i][j] for j in free] for i in range(n)])
    A = left.transpose() * right
    for k, j in enumerate(free):
        A[k, k] = A[k, k] - sum((F[i][j] for i in range(n)), flint.arb(0))
    v = (-A).solve(flint.arb_mat(len(free), 1, [g[j] for j in free]))
    step = [flint.arb(0)] * m
    for k, j in enumerate(free):
        step[j] = v[k, 0].mid() if v[k, 0].rad() < abs(v[k, 0]) / 2 + KNOWN else None
        if step[j] is None:
            raise ZeroDivisionError
    return step


def _tamed(step, flint):
    """Shorten long gaps between steps; their order, and so the descent, is kept."""
    order = sorted(range(len(step)), key=lambda j: step[j])
    out = [flint.arb(0)] * len(step)
    for j, k in itertools.pairwise(order):
        gap = step[k] - step[j]
        out[k] = out[j] + (gap if gap < 20 else 20)
    return out


def _ball(x: Any, flint: Any) -> Any:
    """A long double as an exact ball."""
    part, exponent = np.frexp(Long(x))
    return flint.arb(int(part * Long(2.0) ** 64)) * flint.arb(2) ** (int(exponent) - 64)


def _long(x: Any) -> Any:
    """The middle of a ball as a long double."""
    whole, exponent = x.mid().man_exp()
    whole, exponent = int(whole), int(exponent)
    extra = max(0, abs(whole).bit_length() - 64)
    with np.errstate(over="ignore", under="ignore"):  # beyond 1e±4900: 0 or inf
        return np.ldexp(Long(whole >> extra), max(-40000, min(40000, exponent + extra)))
