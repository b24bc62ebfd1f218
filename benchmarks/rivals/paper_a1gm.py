"""Algorithm 1 of the paper."""

import numpy as np

from a1gm import paper
from a1gm.exceptions import DataError
from rivals import NotApplicableError

NAME = "A1GM as published"


def solve(X: np.ndarray) -> np.ndarray:
    try:
        return np.outer(*paper.a1gm(X))
    except DataError as error:
        raise NotApplicableError(
            "needs a complete row and a complete column"
        ) from error
