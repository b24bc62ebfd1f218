"""This package."""

import numpy as np

import a1gm

NAME = "`a1gm.fit`"


def solve(X: np.ndarray) -> np.ndarray:
    return a1gm.fit(X).reconstruct()
