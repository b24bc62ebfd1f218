"""Every picture of ``a1gm.plot``
==============================

Forty shops, two years of monthly sales. Some shops opened late, and one promotion sold
far more than usual. Each function draws on axes of its own, or on those it is given.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

import a1gm

rng = np.random.default_rng(2022)
months = [f"{year}-{month:02d}" for year in (2023, 2024) for month in range(1, 13)]
season = 1 + 0.35 * np.cos((np.arange(24) - 11) * np.pi / 6) + np.arange(24) / 100
sales = rng.poisson(np.outer(rng.lognormal(6, 0.7, 40), season)).astype(float)
for i in range(0, 40, 3):
    sales[i, : rng.integers(2, 16)] = np.nan
sales[rng.random(sales.shape) < 0.03] = np.nan
sales[7, 16] *= 3
table = pd.DataFrame(sales, [f"S{i + 1:02d}" for i in range(40)], months)
fit = a1gm.fit(table)
sure = fit.uncertainty()
print(fit)

# %%
# Where the holes are, as found and sorted so that their structure shows.
_, axes = plt.subplots(1, 2, figsize=(9.6, 4.2), layout="constrained")
a1gm.plot.pattern(table, ax=axes[0])
a1gm.plot.pattern(table, reorder=True, ax=axes[1])

# %%
# The factors, largest first: what each shop sells, and the share of each month.
a1gm.plot.factors(fit, most=15)

# %%
# Months have an order: their index, with the band it lies in.
a1gm.plot.index(sure.index())

# %%
# What was not counted, by shop, with one standard error.
a1gm.plot.totals(sure.totals("row"), most=12)

# %%
# One shop: the cells that are known, and the bounds of those that are not.
a1gm.plot.interval(table, sure, 12)

# %%
# Is the fit good everywhere? Observed against fitted cells, and the residuals as a map:
# the promotion is the dark cell.
_, axes = plt.subplots(1, 2, figsize=(9.6, 4.2), layout="constrained")
a1gm.plot.observed_vs_fitted(table, fit, ax=axes[0])
a1gm.plot.residuals(table, fit, ax=axes[1])
plt.show()
