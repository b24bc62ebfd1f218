"""scikit-learn's NMF with the Kullback-Leibler loss."""

import warnings

import numpy as np

from rivals import NotApplicableError

NAME = "scikit-learn NMF (mu, KL)"


def solve(X: np.ndarray) -> np.ndarray:
    from sklearn.decomposition import NMF
    from sklearn.exceptions import ConvergenceWarning

    if np.isnan(X).any():
        raise NotApplicableError("complete tables only")
    model = NMF(
        1,
        solver="mu",
        beta_loss="kullback-leibler",
        init="random",
        random_state=0,
        tol=1e-10,
        max_iter=1000,
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return model.fit_transform(X) @ model.components_
