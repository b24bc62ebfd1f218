"""The optimum in arithmetic of many digits and any exponent, for small tables.

Shares no code with the package: components by reachability, then Newton's method in the
logarithms of the column factors with mpmath.
"""

from __future__ import annotations

import itertools

import mpmath as mp
import numpy as np

DIGITS = 900  # cells of 1e-300 count beside cells of 1e300
STEPS = 400


def optimum(X, V=None):
    """Fitted value of every cell whose row and column are in one component.

    Returns an object array of mpmath numbers: None where the component of row and
    column differ; and the component of each row and column.
    """
    n, m = X.shape
    V = np.ones((n, m)) if V is None else V
    observed = ~np.isnan(X) & (V > 0)
    label = _components(observed, observed & (np.nan_to_num(X) > 0))
    fitted = np.full((n, m), None, object)
    with mp.workdps(DIGITS):
        for c in sorted(set(label)):
            rows = [i for i in range(n) if label[i] == c and observed[i].any()]
            cols = [j for j in range(m) if label[n + j] == c and observed[:, j].any()]
            for (i, j), value in _component(X, V, observed, rows, cols).items():
                fitted[i, j] = value
    return fitted, label


def divergence(X, exact, V=None):
    """Divergence of the fitted values of ``optimum``, rounded to float64."""
    with mp.workdps(DIGITS):
        total = mp.mpf(0)
        for cell in zip(*np.nonzero(~np.isnan(X)), strict=True):
            x, fitted = mp.mpf(float(X[cell])), exact[cell] or mp.mpf(0)
            v = 1 if V is None else mp.mpf(float(V[cell]))
            total += v * ((x * mp.log(x / fitted) if x else 0) - x + fitted)
        return float(total)


def _components(observed, positive):
    n, m = observed.shape
    reach = np.eye(n + m, dtype=bool)
    reach[:n, n:] |= observed
    reach[n:, :n] |= positive.T
    for k in range(n + m):
        reach |= reach[:, [k]] & reach[[k]]
    both = reach & reach.T
    return [int(both[k].argmax()) for k in range(n + m)]


def _component(X, V, observed, rows, cols):
    if not rows or not cols:
        return {}
    cells = [(i, j) for i, j in itertools.product(rows, cols) if observed[i, j]]
    x = {cell: mp.mpf(float(X[cell])) * mp.mpf(float(V[cell])) for cell in cells}
    R = {i: mp.fsum(x[i, j] for j in cols if (i, j) in x) for i in rows}
    C = {j: mp.fsum(x[i, j] for i in rows if (i, j) in x) for j in cols}
    if not all(R.values()) or not all(C.values()):
        return {}
    P = {cell: mp.mpf(float(V[cell])) for cell in cells}
    h = {j: C[j] / sum(P[i, j] for i in rows if (i, j) in P) for j in cols}
    for _ in range(20):
        h, _ = _sweep(P, R, C, h, rows, cols)
    h = _newton(P, R, C, h, rows, cols)
    w = _rows(P, R, h, rows, cols)
    return {(i, j): w[i] * h[j] for i in rows for j in cols}


def _rows(P, R, h, rows, cols):
    return {
        i: R[i] / mp.fsum(P[i, j] * h[j] for j in cols if (i, j) in P) for i in rows
    }


def _sweep(P, R, C, h, rows, cols):
    w = _rows(P, R, h, rows, cols)
    fitted = {
        j: h[j] * mp.fsum(P[i, j] * w[i] for i in rows if (i, j) in P) for j in cols
    }
    off = max(abs(fitted[j] / C[j] - 1) for j in cols)
    return {j: h[j] * C[j] / fitted[j] for j in cols}, off


def _newton(P, R, C, h, rows, cols):
    free = cols[1:]
    for _ in range(STEPS):
        swept, off = _sweep(P, R, C, h, rows, cols)
        if off < mp.mpf(10) ** (-DIGITS // 2):
            return swept
        step = _direction(P, R, C, h, rows, cols, free)
        longest = max((abs(s) for s in step.values()), default=mp.mpf(0))
        length = min(mp.mpf(1), 50 / longest) if longest else mp.mpf(1)
        cost = _cost(P, R, C, h, rows, cols)
        for _ in range(60):
            trial = {j: h[j] * mp.exp(length * step.get(j, 0)) for j in cols}
            if _cost(P, R, C, trial, rows, cols) <= cost:
                break
            length /= 2
        h, _ = _sweep(P, R, C, trial, rows, cols)
    raise AssertionError(f"no optimum: {mp.nstr(off, 5)}")


def _cost(P, R, C, h, rows, cols):
    reach = {i: mp.fsum(P[i, j] * h[j] for j in cols if (i, j) in P) for i in rows}
    rows_cost = mp.fsum(R[i] * mp.log(reach[i]) for i in rows)
    return rows_cost - mp.fsum(C[j] * mp.log(h[j]) for j in cols)


def _direction(P, R, C, h, rows, cols, free):
    if not free:
        return {}
    w = _rows(P, R, h, rows, cols)
    share = {(i, j): P[i, j] * h[j] * w[i] / R[i] for i, j in P}
    slope = {
        j: mp.fsum(R[i] * share[i, j] for i in rows if (i, j) in P) - C[j] for j in cols
    }
    H = mp.zeros(len(free))
    for i in rows:
        for a, j in enumerate(free):
            if (i, j) not in P:
                continue
            for b, k in enumerate(free):
                if (i, k) in P and j != k:
                    H[a, b] -= R[i] * share[i, j] * share[i, k]
            H[a, a] += R[i] * share[i, j] * (1 - share[i, j])
    found = mp.lu_solve(H, mp.matrix([-slope[j] for j in free]))
    return {j: found[a] for a, j in enumerate(free)}
