"""Sparse ratings
=================

A sparse table of ratings: absent cells are missing, and nothing is made dense.

Every user has a level, every film has a share; the fit finds both from the ratings
that were given, and says how sure it may be.
"""

from __future__ import annotations

import time

import numpy as np
import scipy.sparse as sp

import a1gm

N_USERS, N_FILMS, N_RATINGS = 50_000, 2_000, 1_000_000


def make_ratings() -> tuple[sp.csr_array, np.ndarray]:
    """Return Poisson counts around a rank-1 truth, and the films' true shares."""
    rng = np.random.default_rng(0)
    level = rng.gamma(5.0, size=N_USERS)
    share = rng.gamma(5.0, size=N_FILMS)
    users = rng.integers(0, N_USERS, N_RATINGS)
    films = rng.integers(0, N_FILMS, N_RATINGS)
    cells = np.unique(users * N_FILMS + films)
    users, films = np.divmod(cells, N_FILMS)
    counts = rng.poisson(level[users] * share[films]).astype(float)
    table = sp.csr_array((counts, (users, films)), shape=(N_USERS, N_FILMS))
    return table, share / share.sum()


def main() -> None:
    """Fit, and compare with the truth."""
    ratings, share = make_ratings()
    start = time.perf_counter()
    fit = a1gm.fit(ratings, absent="missing")
    took = time.perf_counter() - start
    error = np.abs(fit.col_factor / share - 1).max()
    dense_gb = 8e-9 * N_USERS * N_FILMS
    print(f"{ratings.nnz:,} ratings of {N_USERS:,} users for {N_FILMS:,} films")
    print(f"fitted in {took:.2f} s by {fit.solver}, without {dense_gb:.1f} GB of cells")
    print(f"certificate {fit.certificate:.1e}; largest error of a share {error:.1%}")
    best = np.argsort(-fit.col_factor)[:3]
    print("most watched films:", ", ".join(map(str, best)))


if __name__ == "__main__":
    main()
