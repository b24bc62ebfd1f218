"""Before a classifier
======================

Fill missing cells before a classifier: three imputers, time and score side by side.

Rank 1 means that a row is its level times the columns' shares. That suits columns that
measure one thing, as the months of a shop do (simulated here: large and small shops, of
which some sell more in summer; which ones, is to be found). It does not suit lengths
and widths of flowers, and still less the chemistry of wines.
"""

import time

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_iris, load_wine
from sklearn.impute import KNNImputer, SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from a1gm import RankOneImputer


def load_shops(*, return_X_y: bool) -> tuple[np.ndarray, np.ndarray]:
    """Simulate the sales of 400 shops in twelve months."""
    rng = np.random.default_rng(0)
    is_seaside = rng.integers(0, 2, 400)
    months = np.arange(12)
    season = 1 + 0.3 * np.cos((months - 11) * np.pi / 6)
    summer = np.where((months >= 5) & (months <= 7), 1.3, 1.0)
    shares = np.where(is_seaside[:, None], season * summer, season)
    return rng.poisson(rng.lognormal(4, 0.8, (400, 1)) * shares) * 1.0, is_seaside


TABLES = {
    "shops: sales by month": load_shops,
    "iris: lengths and widths": load_iris,
    "wine: unrelated units": load_wine,
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


folds = StratifiedKFold(5, shuffle=True, random_state=0)
took, scores = [], []
for title, load in TABLES.items():
    X, y = load(return_X_y=True)
    with_holes = punch(X, SHARE_MISSING, seed=0)
    print(f"{title}, {X.shape[0]} x {X.shape[1]}, ", end="")
    print(f"{np.isnan(with_holes).mean():.0%} of the cells missing")
    print(f"  {'imputer':<16}{'ms to fill':>12}{'accuracy':>10}")
    for name, imputer in IMPUTERS.items():
        model = make_pipeline(
            imputer, StandardScaler(), LogisticRegression(max_iter=1000)
        )
        took.append(milliseconds_to_fill(imputer, with_holes))
        scores.append(cross_val_score(model, with_holes, y, cv=folds).mean())
        print(f"  {name:<16}{took[-1]:>12.1f}{scores[-1]:>10.3f}")
    print()

# %%
# Where rows and columns multiply, rank 1 fills best. Where they do not, the mean is
# about as good or better, and ``a1gm.assess`` says so. Neighbours (KNN)
# use more of the structure, and take longer.
fig, panels = plt.subplots(1, 2, figsize=(9.6, 3.4), layout="constrained", sharey=True)
places = np.arange(len(TABLES))
for k, (name, colour, marker) in enumerate(
    zip(IMPUTERS, ("#999999", "#d55e00", "#0f766e"), "sDo", strict=True)
):
    for ax, numbers in zip(panels, (scores, took), strict=True):
        ax.plot(numbers[k :: len(IMPUTERS)], places, marker, color=colour, label=name)
panels[0].set(xlabel="accuracy of the classifier", yticks=places, title="Score")
panels[0].set_yticklabels(TABLES)
panels[0].invert_yaxis()
panels[0].margins(y=0.2)
panels[1].set(xlabel="milliseconds to fill the table", xscale="log", title="Time")
for ax in panels:
    ax.grid(axis="y", alpha=0.4)
fig.legend(*panels[0].get_legend_handles_labels(), loc="outside upper center", ncols=3)
plt.show()
