"""tensorly: non-negative rank-1 with a mask. It minimises squares, not KL."""

import warnings

import numpy as np

NAME = "tensorly, masked (least squares)"


def solve(X: np.ndarray) -> np.ndarray:
    import tensorly
    from tensorly.decomposition import non_negative_parafac

    observed = ~np.isnan(X)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        factors = non_negative_parafac(
            np.where(observed, X, 0.0),
            rank=1,
            mask=observed,
            init="random",
            random_state=0,
            n_iter_max=1000,
            tol=1e-10,
        )
    return np.asarray(tensorly.cp_to_tensor(factors))
