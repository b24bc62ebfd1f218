"""glum: Poisson regression with row and column as categories."""

import numpy as np

from rivals import from_long, long_format

NAME = "glum Poisson GLM"


def solve(X: np.ndarray) -> np.ndarray:
    import pandas as pd
    from glum import GeneralizedLinearRegressor

    values, rows, columns = long_format(X)
    frame = pd.DataFrame({"row": pd.Categorical(rows), "col": pd.Categorical(columns)})
    model = GeneralizedLinearRegressor(
        family="poisson", alpha=0, drop_first=True, gradient_tol=1e-9, max_iter=500
    )
    return from_long(model.fit(frame, values).predict(frame), X)
