"""ipfn: iterative proportional fitting of the 0/1 table of observed cells."""

import contextlib
import io

import numpy as np

from rivals import margins

NAME = "ipfn on the mask"


def solve(X: np.ndarray) -> np.ndarray:
    from ipfn.ipfn import ipfn

    mask, row_sums, column_sums = margins(X)
    solver = ipfn(
        mask,
        [row_sums, column_sums],
        [[0], [1]],
        convergence_rate=1e-10,
        max_iteration=2000,
    )
    with contextlib.redirect_stdout(io.StringIO()):  # it prints when it stops
        return np.asarray(solver.iteration())
