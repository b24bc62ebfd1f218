"""Before a classifier
======================

Fill missing cells before a classifier: three imputers, time and score side by side.

All classification tables of scikit-learn with non-negative measurements, whatever the
outcome. Rank 1 means that a row is its level times the columns' shares. That suits
columns that measure one thing in one unit, as the four lengths of a flower do; it does
not suit columns of unrelated units. Neighbours (KNN) use more of the structure, and
take far longer.
"""

from __future__ import annotations

import time

import numpy as np
from sklearn.datasets import load_breast_cancer, load_iris, load_wine
from sklearn.impute import KNNImputer, SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from a1gm import RankOneImputer

TABLES = {
    "iris: four lengths in cm": load_iris,
    "wine: unrelated units": load_wine,
    "breast cancer: shapes of cells, unrelated units": load_breast_cancer,
}
IMPUTERS = {
    "SimpleImputer": SimpleImputer(),
    "KNNImputer": KNNImputer(),
    "RankOneImputer": RankOneImputer(),
}
SHARE_MISSING = 1 / 4


def punch(X: np.ndarray, share: float, seed: int) -> np.ndarray:
    """Return a copy with holes at random places, at least one cell left in each row."""
    rng = np.random.default_rng(seed)
    holes = rng.random(X.shape) < share
    holes[np.arange(len(X)), rng.integers(0, X.shape[1], len(X))] = False
    return np.where(holes, np.nan, X)


def milliseconds_to_fill(imputer: object, X: np.ndarray) -> float:
    """Time the fastest of three runs."""
    times = []
    for _ in range(3):
        start = time.perf_counter()
        imputer.fit_transform(X)
        times.append(time.perf_counter() - start)
    return 1000 * min(times)


def main() -> None:
    """Print one line per table and imputer."""
    folds = StratifiedKFold(5, shuffle=True, random_state=0)
    for title, load in TABLES.items():
        X, y = load(return_X_y=True)
        with_holes = punch(X, SHARE_MISSING, seed=0)
        print(f"{title}, {X.shape[0]} x {X.shape[1]}, ", end="")
        print(f"{np.isnan(with_holes).mean():.0%} of the cells missing")
        print(f"  {'imputer':<16}{'ms to fill':>12}{'accuracy':>10}")
        for name, imputer in IMPUTERS.items():
            took = milliseconds_to_fill(imputer, with_holes)
            model = make_pipeline(
                imputer, StandardScaler(), LogisticRegression(max_iter=1000)
            )
            score = cross_val_score(model, with_holes, y, cv=folds).mean()
            print(f"  {name:<16}{took:>12.1f}{score:>10.3f}")
        print()


if __name__ == "__main__":
    main()
