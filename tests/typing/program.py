"""What a user of the typed package writes; mypy --strict reads it, then it runs."""

import numpy as np
import numpy.typing as npt

import a1gm


def total_of_holes(table: npt.NDArray[np.float64]) -> float:
    """Fill the table and add up what was missing."""
    fit: a1gm.RankOneFit = a1gm.fit(table)
    rows: npt.NDArray[np.float64] = fit.row_factor
    filled = fit.impute(table)
    exact: bool = fit.converged
    assert exact
    # Were the package without types, mypy would call this comment unused.
    wrong: str = fit.certificate  # type: ignore[assignment]
    assert wrong is not None
    assert len(rows) == len(table)
    return float(np.asarray(filled)[np.isnan(table)].sum())


table = np.array([[2.0, 4.0, 6.0], [1.0, 2.0, np.nan], [5.0, np.nan, np.nan]])
answer: float = total_of_holes(table)
print(f"the holes add up to {answer:g}")
