"""Claims reserving
===================

The run-off triangle of an insurer is a staircase of holes.

The rank-1 fit of the incremental claims *is* the chain-ladder method; the holes are
the reserves. The triangle is made up.
"""

import matplotlib.pyplot as plt
import numpy as np

import a1gm

CUMULATIVE = np.array(
    [
        [1001.0, 1855.0, 2423.0, 2988.0, 3335.0],
        [1113.0, 2103.0, 2774.0, 3422.0, np.nan],
        [1265.0, 2433.0, 3233.0, np.nan, np.nan],
        [1490.0, 2873.0, np.nan, np.nan, np.nan],
        [1725.0, np.nan, np.nan, np.nan, np.nan],
    ]
)


def chain_ladder_reserve(cumulative: np.ndarray) -> float:
    """The textbook method, for comparison: development factors one by one."""
    table = cumulative.copy()
    for k in range(1, table.shape[1]):
        both = ~np.isnan(cumulative[:, k])
        factor = cumulative[both, k].sum() / cumulative[both, k - 1].sum()
        table[~both, k] = table[~both, k - 1] * factor
    latest = [row[~np.isnan(row)][-1] for row in cumulative]
    return float(table[:, -1].sum() - sum(latest))


increments = np.diff(CUMULATIVE, axis=1, prepend=0.0)
fit = a1gm.fit(increments)
filled = fit.impute(increments)
reserve = filled[np.isnan(increments)].sum()
print(f"pattern: {fit.pattern.shape_name}; solver: {fit.solver}")
print(f"reserve by a1gm:         {reserve:12.6f}")
print(f"reserve by chain-ladder: {chain_ladder_reserve(CUMULATIVE):12.6f}")

# %%
# What chain-ladder alone does not give: how sure the reserves are.
reserves = fit.uncertainty().totals("row")
print(reserves)

# %%
# Each line is an accident year: paid so far, then projected (dashed) to its end, with
# two standard errors. The younger the year, the more of it is a guess.
fig, ax = plt.subplots(figsize=(7.5, 4.2), layout="constrained")
ages = np.arange(1, 6)
for year in range(5):
    colour = plt.colormaps["viridis"](0.9 - 0.2 * year)
    paid = ~np.isnan(CUMULATIVE[year])
    ax.plot(ages, np.cumsum(filled[year]), "--", color=colour)
    ax.plot(ages[paid], CUMULATIVE[year, paid], "o-", color=colour, label=2021 + year)
    ax.errorbar(5, filled[year].sum(), 2 * reserves.se[year], color=colour, capsize=4)
ax.set(xlabel="age in years", ylabel="claims paid", xticks=ages)
ax.set_title("Paid claims, and what is still to be paid")
ax.legend(title="accident year", frameon=False)
plt.show()
