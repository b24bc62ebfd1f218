"""statsmodels: Poisson regression on row and column dummies."""

import numpy as np

from rivals import NotApplicableError, from_long, long_format

NAME = "statsmodels Poisson GLM"
LARGEST_DESIGN = 30_000_000  # cells: the dummies are dense


def solve(X: np.ndarray) -> np.ndarray:
    import statsmodels.api as sm

    values, rows, columns = long_format(X)
    if values.size * sum(X.shape) > LARGEST_DESIGN:
        raise NotApplicableError("dense dummies would not fit")
    design = np.zeros((values.size, sum(X.shape) - 1))
    cells = np.arange(values.size)
    design[cells, rows] = 1
    later = columns > 0  # the first column is the reference
    design[cells[later], X.shape[0] + columns[later] - 1] = 1
    model = sm.GLM(values, design, family=sm.families.Poisson())
    return from_long(model.fit(tol=1e-12).fittedvalues, X)
