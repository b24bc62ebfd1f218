"""Answers found without any code of the package."""

from __future__ import annotations

from itertools import permutations

import numpy as np
from scipy.optimize import minimize
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components
from scipy.special import kl_div

FINITE, ZERO, UNBOUNDED, UNDETERMINED = "finite", "zero", "unbounded", "undetermined"


def observed_cells(X: np.ndarray) -> np.ndarray:
    return ~np.isnan(X)


def divergence(X: np.ndarray, fitted: np.ndarray) -> float:
    """Divergence on the observed cells, from its definition."""
    seen = observed_cells(X)
    return float(kl_div(X[seen], fitted[seen]).sum())


def fitted_cells(X: np.ndarray, fit: object) -> np.ndarray:
    """The fitted table on the observed cells, 0 elsewhere and between components."""
    w, h = np.nan_to_num(fit.row_factor), np.nan_to_num(fit.col_factor)
    inside = fit.row_block[:, None] == fit.col_block
    return np.where(observed_cells(X) & inside, np.outer(w, h), 0.0)


def certificate(X: np.ndarray, fit: object, weights: np.ndarray | float = 1.0) -> float:
    """Largest relative mismatch of the margins, from factors and data only."""
    fitted, data = weights * fitted_cells(X, fit), weights * X
    gap = 0.0
    for axis in (0, 1):
        sums = np.nansum(data, axis=axis)
        off = np.abs(fitted.sum(axis=axis) - sums)
        positive = sums > 0.0
        assert (off[~positive] == 0.0).all()
        if positive.any():
            gap = max(gap, float((off[positive] / sums[positive]).max()))
    return gap


def scaling(X: np.ndarray, *, sweeps: int = 20_000, tol: float = 1e-13) -> np.ndarray:
    """Plain alternating scaling; returns the fitted table."""
    seen = observed_cells(X).astype(float)
    r, c = np.nansum(X, axis=1), np.nansum(X, axis=0)
    h = np.ones(len(c))
    with np.errstate(invalid="ignore", divide="ignore"):
        for _ in range(sweeps):
            w = np.nan_to_num(r / (seen @ h))
            h = np.nan_to_num(c / (w @ seen))
            gap = np.abs(w * (seen @ h) - r)
            if (gap <= tol * r).all():
                break
    return np.outer(w, h)


def lbfgs(X: np.ndarray, weights: np.ndarray | float = 1.0) -> np.ndarray:
    """SciPy's L-BFGS in the logarithms of the factors; returns the fitted table."""
    seen = observed_cells(X)
    used = seen * weights
    n, m = X.shape
    r, c = np.nansum(used * X, axis=1), np.nansum(used * X, axis=0)
    total = r.sum()

    def cost(uv: np.ndarray) -> tuple[float, np.ndarray]:
        cells = used * np.exp(np.where(seen, uv[:n, None] + uv[n:], 0.0))
        value = cells.sum() - r @ uv[:n] - c @ uv[n:]
        slope = np.concatenate([cells.sum(axis=1) - r, cells.sum(axis=0) - c])
        return value / total, slope / total

    start = np.concatenate([np.log(r + 1e-3) - np.log(m), np.zeros(m)])
    options = {"maxiter": 5000, "maxfun": 50_000, "ftol": 1e-16, "gtol": 1e-12}
    found = minimize(cost, start, jac=True, method="L-BFGS-B", options=options)
    return np.exp(found.x[:n, None] + found.x[n:])


def has_two_chords_everywhere(observed: np.ndarray) -> bool:
    """Brute force: does every cycle of length >= 6 have two chords?"""
    n, m = observed.shape
    for k in range(3, min(n, m) + 1):
        for rows in permutations(range(n), k):
            if rows[0] != min(rows):
                continue  # the same cycle, started elsewhere
            for cols in permutations(range(m), k):
                # rows[t] - cols[t] - rows[t + 1]
                after = rows[1:] + rows[:1]
                on_cycle = all(
                    observed[i, j] and observed[i_next, j]
                    for i, j, i_next in zip(rows, cols, after, strict=True)
                )
                if on_cycle:
                    inside = observed[np.ix_(rows, cols)].sum()
                    if inside - 2 * k < 2:
                        return False
    return True


def cell_graph(X: np.ndarray) -> csr_array:
    """Row -> column for each observed cell, column -> row for each positive one."""
    n, m = X.shape
    i, j = np.nonzero(observed_cells(X))
    a, b = np.nonzero(np.nan_to_num(X) > 0.0)
    heads, tails = np.concatenate([i, b + n]), np.concatenate([j + n, a])
    ones = np.ones(len(heads))
    return csr_array((ones, (heads, tails)), shape=(n + m, n + m))


def components(X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Strong component of each row and column; -1 where nothing is observed."""
    n = len(X)
    _, label = connected_components(cell_graph(X), directed=True, connection="strong")
    rows, cols = label[:n].copy(), label[n:].copy()
    rows[~observed_cells(X).any(axis=1)] = -1
    cols[~observed_cells(X).any(axis=0)] = -1
    return rows, cols


def reach_of(X: np.ndarray) -> np.ndarray:
    """What reaches what, rows first: Warshall's algorithm on the cell graph."""
    reach = (cell_graph(X).toarray() > 0) | np.eye(sum(X.shape), dtype=bool)
    for k in range(len(reach)):
        reach |= reach[:, k, None] & reach[k]
    return reach


def fates(X: np.ndarray) -> np.ndarray:
    """What is known of every cell, from reachability alone."""
    n, m = X.shape
    reach = reach_of(X)
    there, back = reach[:n, n:], reach[n:, :n].T
    out = np.full((n, m), UNDETERMINED, dtype=object)
    out[there & back], out[there & ~back], out[~there & back] = FINITE, ZERO, UNBOUNDED
    return out


def same_partition(a: np.ndarray, b: np.ndarray) -> bool:
    """Whether two labellings put the same things together, -1 apart."""
    if ((a < 0) != (b < 0)).any():
        return False
    a, b = a[a >= 0], b[b >= 0]
    pairs = set(zip(a.tolist(), b.tolist(), strict=True))
    return len(pairs) == len(set(a.tolist())) == len(set(b.tolist()))
