"""A first fit
==============

The main job on a small table: find the factors, fill the holes, see the proof.

Monthly sales of six products; some were never recorded.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

import a1gm

nan = np.nan
sales = pd.DataFrame(
    [
        [120, 132, 99, 141, 125],
        [310, 340, nan, 362, 331],
        [48, 51, 40, nan, 47],
        [nan, 74, 57, 80, 70],
        [205, 224, 170, 238, nan],
        [151, nan, 124, 177, 160],
    ],
    index=["tea", "coffee", "cocoa", "juice", "soda", "water"],
    columns=["Jan", "Feb", "Mar", "Apr", "May"],
)
fit = a1gm.fit(sales)
filled = fit.impute(sales)
print(filled.round(1))

# %%
# The row factors are the estimated totals of the products, the column factors the
# shares of the months. The certificate proves that no others fit better: 0 is perfect.
print(fit.to_frames().rows["row_factor"].round(1), "\n")
print(fit.to_frames().columns["col_factor"].round(4), "\n")
print(f"{fit.pattern}\nsolver: {fit.solver}; certificate: {fit.certificate:.0e}")

# %%
# The same table, before and after. Each fill is given with the bounds in which the
# missing number lies in 95 of 100 cases.
low, high = fit.uncertainty().interval(sales)
fig, panels = plt.subplots(1, 2, figsize=(9.6, 4), layout="constrained", sharey=True)
for ax, table, title in zip(
    panels, (sales, filled), ("as found", "filled"), strict=True
):
    ax.imshow(np.log(table), cmap="BuGn", vmin=3, vmax=7.5, aspect="auto")
    ax.set_title(f"Sales, {title}")
    ax.set_xticks(range(5), sales.columns)
    ax.set_yticks(range(6), sales.index)
    for i, j in np.ndindex(sales.shape):
        if not np.isnan(sales.iloc[i, j]):
            ax.text(j, i, f"{sales.iloc[i, j]:.0f}", ha="center", va="center")
for i, j in np.argwhere(sales.isna()):
    panels[0].text(j, i, "?", ha="center", va="center", color="#d55e00", weight="bold")
    bounds = f"{low.iloc[i, j]:.0f} to {high.iloc[i, j]:.0f}"
    words = f"{filled.iloc[i, j]:.0f}\n{bounds}"
    panels[1].text(j, i, words, ha="center", va="center", weight="bold", size=9)
    frame = plt.Rectangle((j - 0.47, i - 0.47), 0.94, 0.94, ec="#d55e00", fc="none")
    panels[1].add_patch(frame).set_linewidth(2)
plt.show()
