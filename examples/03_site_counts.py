"""Counts at sites
==================

Nature monitoring: sites come and go, and some visits are missed. The mean of the sites
that were visited follows who was visited; the index compares each site with itself.

Simulated: the birds of 60 sites fall by 4 % a year. Over the years the poor sites are
given up, and rich ones join.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

import a1gm

rng = np.random.default_rng(0)
years = np.arange(2010, 2025)
truth = 0.96 ** np.arange(15)
richness = np.sort(rng.lognormal(3, 0.9, 60))
counts = rng.poisson(np.outer(richness, truth)).astype(float)
for site in range(60):
    if site < 30:  # the poor half is given up, sooner or later
        counts[site, rng.integers(5, 15) :] = np.nan
    else:  # the rich half joins
        counts[site, : rng.integers(0, 8)] = np.nan
counts[rng.random(counts.shape) < 0.1] = np.nan
table = pd.DataFrame(counts, [f"site {i + 1}" for i in range(60)], years)

fit = a1gm.fit(table)
index = fit.uncertainty().index(2010)
print(fit.pattern)
print(index.to_frame().iloc[[0, 7, 14]].round(3))

# %%
# The mean of the visited sites rises, because rich sites replaced poor ones. The index
# finds the fall, with the band in which it lies; the truth is inside.
mean = table.mean()
ax = a1gm.plot.index(index)
ax.lines[0].set_label("index of the fit")
ax.plot(mean.to_numpy() / mean.iloc[0], color="#d55e00", label="mean of visited sites")
ax.plot(truth, "k:", label="truth")
ax.set_ylim(0, 2.2)
ax.legend(frameon=False)
print(f"2024: truth {truth[-1]:.2f}, index {index.value[-1]:.2f} ± {index.se[-1]:.2f}")
print(f"      mean of the visited sites {mean.iloc[-1] / mean.iloc[0]:.2f}")
plt.show()
