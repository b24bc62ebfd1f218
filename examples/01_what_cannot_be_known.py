"""What cannot be known
=======================

Some holes have no best value. The package tells, instead of guessing.

Four small tables with a hole each. ``fit.fate`` says what becomes of it, and a warning
counts the cells that stay missing.
"""

import textwrap
import warnings

import matplotlib.pyplot as plt
import numpy as np

import a1gm

nan = np.nan
TABLES = {
    "a hole with a value": ([[2, 5], [4, nan]], (1, 1)),
    "a row of zeros": ([[0, 0, nan], [1, 2, 3]], (0, 2)),
    "a zero drives the hole up": ([[0, 5], [5, nan]], (1, 1)),
    "two parts that nothing joins": ([[1, nan], [nan, 3]], (0, 1)),
}
fates = {}
for title, (rows, cell) in TABLES.items():
    X = np.array(rows, dtype=float)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        fates[title] = a1gm.fit(X).fate(*cell)
    print(f"{title}: {fates[title]}")
    print(X)
    for warning in caught:
        print(textwrap.fill(f"{warning.category.__name__}: {warning.message}", 76))
    print()

# %%
# Why is that so? Put a value into the hole, hold it there with a large weight, and see
# how well the other cells can still be fitted. Only the first curve has its lowest
# point at a positive number. The second is lowest at 0; the third falls for ever; the
# last is flat: every value is as good as any other.
values = np.geomspace(0.1, 1000, 60)
fig, panels = plt.subplots(1, 4, figsize=(10, 2.8), layout="constrained", sharex=True)
for ax, (title, (rows, cell)) in zip(panels, TABLES.items(), strict=True):
    X = np.array(rows, dtype=float)
    costs = []
    for value in values:
        held, weights = X.copy(), np.ones_like(X)
        held[cell], weights[cell] = value, 1e6
        fit = a1gm.fit(held, weights=weights)
        costs.append(a1gm.paper.kl_divergence(X, fit.reconstruct()))
    ax.plot(values, costs, color="#0f766e", lw=2)
    ax.set(title=f"{title}:\n{fates[title]}", xscale="log", xlabel="value in the hole")
    ax.set_ylim(-0.5, 12)
    ax.title.set_size("medium")
panels[0].plot(10, 0, "o", color="#d55e00")
panels[0].set_ylabel("misfit of the known cells")
plt.show()
