"""The paper's baseline with its stopping rule."""

import numpy as np

from a1gm import paper

NAME = "KL-WNMF, loose stopping rule"


def solve(X: np.ndarray) -> np.ndarray:
    return np.matmul(*paper.kl_wnmf(X, random_state=0))
