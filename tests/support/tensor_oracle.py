"""Oracles for tables of several modes: regression, minimisation, rational programs."""

from __future__ import annotations

import itertools
import warnings
from fractions import Fraction

import numpy as np
from scipy.linalg import qr
from scipy.optimize import minimize

MARGINS = [
    ((0,), (1,), (2,)),
    ((0, 1), (2,)),
    ((0,), (1, 2)),
    ((0, 1), (1, 2)),
    ((0, 1), (1, 2), (0, 2)),
]


def random_table(rng, shape=None, zeros=0.0, holes=None):
    """Counts around a product, with some holes: at random, fibres, slices, corners."""
    if shape is None:
        shape = tuple(rng.integers(2, 6, 3))
    mean = np.ones(shape)
    for k, n in enumerate(shape):
        factor = rng.gamma(3.0, 1.0, n)
        mean = mean * factor.reshape([-1 if j == k else 1 for j in range(len(shape))])
    T = rng.poisson(mean * 5.0 / mean.mean()) + 1.0
    T[rng.random(shape) < zeros] = 0.0
    kind = rng.integers(4) if holes is None else holes
    if kind == 0:
        T[rng.random(shape) < 0.3] = np.nan
    elif kind == 1:
        T[rng.random(shape[:-1]) < 0.3] = np.nan
    elif kind == 2:
        T[-1, :, shape[2] // 2 :] = np.nan
    else:
        i = np.indices(shape)
        T[i[0] + i[1] > shape[0]] = np.nan
    if not np.nansum(T) > 0.0:
        T[(0,) * len(shape)] = 3.0
    return T


def small_table(seed):
    """A small table of three modes with holes and zeros, and some margins."""
    rng = np.random.default_rng(seed)
    shape = tuple(rng.integers(2, 4, 3)) if seed % 2 else (2, 2, 2)
    T = rng.integers(1, 9, shape).astype(float)
    T[rng.random(shape) < rng.choice([0.0, 0.3, 0.6])] = 0.0
    T[rng.random(shape) < rng.choice([0.3, 0.5])] = np.nan
    T[0, 0, 0] = 2.0
    return T, MARGINS[seed % len(MARGINS)]


def design(index, shape, margins):
    """Indicators of the levels of every margin, one row per cell."""
    parts = []
    for margin in margins:
        lengths = [shape[k] for k in margin]
        code = np.ravel_multi_index([index[k] for k in margin], lengths)
        parts.append(np.eye(int(np.prod(lengths)))[code])
    return np.hstack(parts)


def independent(A):
    """Columns of a design that are a basis of its column space."""
    order = qr(A, pivoting=True, mode="r")[1]
    return np.sort(order[: np.linalg.matrix_rank(A)])


def least_divergence(T, margins, v=None):
    """Divergence that L-BFGS reaches on the logarithms of the factors."""
    index = np.nonzero(~np.isnan(T))
    x, A = T[index], design(index, T.shape, margins)
    v = np.ones(len(x)) if v is None else v[index]
    positive = x > 0.0
    base = float((x[positive] * np.log(x[positive])).sum() - x.sum())

    def cost(theta):
        log_f = A @ theta + np.log(v)
        f = np.exp(log_f)
        return f.sum() - x[positive] @ log_f[positive], A.T @ (f - x)

    start = np.full(A.shape[1], np.log(max(x.mean(), 1e-3)) / len(margins))
    options = {"maxiter": 20000, "maxfun": 40000, "ftol": 1e-16, "gtol": 1e-12}
    found = minimize(cost, start, jac=True, method="L-BFGS-B", options=options)
    return float(found.fun) + base


def regression(T, margins, E=None, scale="X2"):
    """Poisson regression: fitted values of all cells, their design, and the model."""
    import statsmodels.api as sm

    seen = np.nonzero(~np.isnan(T))
    every = np.unravel_index(np.arange(T.size), T.shape)
    A = design(seen, T.shape, margins)
    basis = independent(A)
    offset = None if E is None else np.log(E[seen])
    model = sm.GLM(T[seen], A[:, basis], family=sm.families.Poisson(), offset=offset)
    with warnings.catch_warnings():  # of saturated tables
        warnings.simplefilter("ignore")
        found = model.fit(scale=scale, tol=1e-15, maxiter=100)
        # Its covariance is that of the weights before the last step.
        found = model.fit(scale=scale, tol=1e-15, start_params=found.params)
    D = design(every, T.shape, margins)[:, basis]
    values = np.exp(D @ found.params) * (1.0 if E is None else E.ravel())
    return values, D, found


# ----------------------------------------------------------------- rational programs
def largest(c, rows):
    """Maximum of c·y over rows·y <= 0, |y| <= 1, in rational numbers (Bland's rule)."""
    n = len(c)
    A = [
        [Fraction(int(a)) for a in row] + [Fraction(-int(a)) for a in row]
        for row in rows
    ]
    b = [Fraction(0)] * len(A)
    for k in range(2 * n):
        A.append([Fraction(int(j == k)) for j in range(2 * n)])
        b.append(Fraction(1))
    gain = [Fraction(int(a)) for a in c] + [Fraction(-int(a)) for a in c]
    basis = list(range(2 * n, 2 * n + len(A)))
    nonbasic = list(range(2 * n))
    value = Fraction(0)
    while True:  # a dictionary: basic = b - A nonbasic
        entering = min(
            (k for k in range(2 * n) if gain[k] > 0),
            key=lambda k: nonbasic[k],
            default=None,
        )
        if entering is None:
            return value
        ratios = [
            (b[i] / A[i][entering], basis[i], i)
            for i in range(len(A))
            if A[i][entering] > 0
        ]
        _, _, i = min(ratios)
        pivot = A[i][entering]
        row = [a / pivot for a in A[i]]
        row[entering] = 1 / pivot
        bound = b[i] / pivot
        for k in range(len(A)):
            factor = A[k][entering]
            if k != i and factor:
                b[k] -= factor * bound
                A[k] = [a - factor * r for a, r in zip(A[k], row, strict=True)]
                A[k][entering] = -factor * row[entering]
        factor = gain[entering]
        value += factor * bound
        gain = [g - factor * r for g, r in zip(gain, row, strict=True)]
        gain[entering] = -factor * row[entering]
        A[i], b[i] = row, bound
        basis[i], nonbasic[entering] = nonbasic[entering], basis[i]


def fates(T, margins):
    """Fates of the missing cells, by rational programs over the whole design."""
    cells = list(itertools.product(*map(range, T.shape)))
    A = design(tuple(np.array(c) for c in zip(*cells, strict=True)), T.shape, margins)
    rows = []
    for cell, a in zip(cells, A, strict=True):
        if not np.isnan(T[cell]):
            rows.append(a)
            if T[cell] > 0.0:
                rows.append(-a)
    found = {}
    for cell, a in zip(cells, A, strict=True):
        if np.isnan(T[cell]):
            up, down = largest(a, rows) > 0, largest(-a, rows) > 0
            names = {
                (True, True): "undetermined",
                (True, False): "unbounded",
                (False, True): "zero",
                (False, False): "finite",
            }
            found[cell] = names[up, down]
    return found


# ------------------------------------------------------------------------- 60 digits
def errors_in_60_digits(T, margins, found):
    """Largest relative error of fitted cells, NaN for those that are not compared."""
    import flint
    from flint import arb, arb_mat

    before, flint.ctx.dps = flint.ctx.dps, 100
    try:
        seen = np.nonzero(~np.isnan(T))
        A = design(seen, T.shape, margins)
        basis = independent(A)
        every = design(np.nonzero(~np.isnan(found)), T.shape, margins)[:, basis]
        some = A[:, basis]
        start = np.linalg.lstsq(some, np.log(found[seen]), rcond=None)[0]
        theta = arb_mat([[arb(float(x))] for x in start])
        rows = arb_mat([[arb(int(a)) for a in row] for row in some])
        x = [arb(float(a)) for a in T[seen]]
        for _ in range(200):
            f = [e.exp() for e in (rows * theta).entries()]
            weighted = arb_mat(
                [[a * e for a in row] for row, e in zip(rows.tolist(), f, strict=True)]
            )
            rest = arb_mat([[(a - e).mid()] for a, e in zip(x, f, strict=True)])
            step = (rows.transpose() * weighted).solve(rows.transpose() * rest)
            longest = max(abs(float(e.mid())) for e in (rows * step).entries())
            size = arb(min(1.0, 1.0 / longest) if longest > 0.0 else 1.0)
            theta = arb_mat(
                [
                    [(a + size * b).mid()]
                    for a, b in zip(theta.entries(), step.entries(), strict=True)
                ]
            )
            if longest < 1e-60:
                break
        else:
            raise AssertionError("no truth")
        cells = arb_mat([[arb(int(a)) for a in row] for row in every]) * theta
        own = found[~np.isnan(found)]
        return max(
            abs(float((arb(float(a)) / e.exp() - 1).mid()))
            for a, e in zip(own, cells.entries(), strict=True)
        )
    finally:
        flint.ctx.dps = before
