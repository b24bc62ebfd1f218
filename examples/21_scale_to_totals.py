"""Scaling to totals
====================

A travel survey of an earlier year, and this year's counts of who leaves each zone and
who arrives. ``a1gm.scale`` gives the table nearest to the survey that has these totals:
iterative proportional fitting, RAS, Furness, raking or Sinkhorn, without sweeps that
never end.

Simulated: twelve zones along a line. People travel to neighbouring zones only, so that
plain sweeps crawl.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

import a1gm

rng = np.random.default_rng(4)
n = 12
zones = [f"zone {k + 1}" for k in range(n)]
far = np.abs(np.subtract.outer(np.arange(n), np.arange(n)))
survey = np.where(far <= 1, rng.integers(20, 200, (n, n)), 0)
today = np.where(far <= 1, rng.integers(20, 200, (n, n)), 0)
table = pd.DataFrame(survey, zones, zones)
leave, arrive = today.sum(axis=1), today.sum(axis=0)

s = a1gm.scale(table, leave, arrive)
whole = s.round()
print(s)
print("whole numbers keep all totals:", (whole.sum(axis=1) == leave).all())

# %%
# Where totals cannot be met, the error says why: here zone 1 sends more people than the
# two zones that can be reached from it receive.
more = leave.astype(float)
more[0], more[5] = arrive[:2].sum() + 1, more[5] + more[0] - arrive[:2].sum() - 1
try:
    a1gm.scale(table, more, arrive)
except a1gm.exceptions.TotalsError as error:
    print(error)

# %%
# Plain sweeps approach the totals slowly; the solver switches to Newton's method when
# it measures that.
F, mismatch = survey.astype(float), []
for _ in range(300):
    F *= (leave / F.sum(axis=1))[:, None]
    mismatch.append(np.max(np.abs(F.sum(axis=0) / arrive - 1)))
    F *= arrive / F.sum(axis=0)

fig, (left, right) = plt.subplots(1, 2, figsize=(9, 3.6), layout="constrained")
picture = left.imshow(np.where(survey > 0, s.table / np.maximum(survey, 1), np.nan))
left.set(title="scaled / survey", xlabel="to zone", ylabel="from zone")
fig.colorbar(picture, ax=left)
right.semilogy(mismatch, label="plain sweeps")
right.axhline(
    max(s.certificate, 1e-16), color="#d55e00", label=f"a1gm, {s.n_iter} steps"
)
right.set(title="largest mismatch of a total", xlabel="sweeps", ylim=(1e-16, 2))
right.legend(frameon=False)
plt.show()
