"""Animals never caught
=======================

Capture-recapture: 68 snowshoe hares were caught on six days. How many were not?

Each day is a key with two levels, caught and not caught. All cells of the table are
observed but one: the hares that were never caught. The guide *Capture-recapture*
explains the models.
"""

import matplotlib.pyplot as plt
import numpy as np

import a1gm

# Hares by capture history, from 000000 to 111111 (Burnham & Cushwa).
counts = """
nan 4 4 2 3 4 1 1  5 2 0 1 0 1 0 0  6 1 3 1 3 3 0 1  0 2 0 1 0 2 0 1
3 1 2 0 2 0 0 1  1 0 1 0 1 0 0 0  0 1 1 0 0 0 0 0  0 0 0 0 0 0 0 2
"""
hares = np.array(counts.split(), float).reshape(2, 2, 2, 2, 2, 2)
never = (0, 0, 0, 0, 0, 0)
caught = np.nansum(hares)

neighbours = [(k, k + 1) for k in range(5)]
pairs = [(j, k) for k in range(6) for j in range(k)]
models = {
    "independent days": None,
    "days 4 and 6 depend": [(3, 5)],
    "neighbouring days depend": neighbours,
    "all pairs of days depend": pairs,
}
totals, bounds = [], []
for name, interactions in models.items():
    fit = a1gm.fit_tensor(hares, interactions)
    sure = fit.uncertainty("poisson")
    totals.append(caught + fit.predict(never))
    bounds.append([caught + bound[never] for bound in sure.interval(hares)])
    aic = sure.deviance + 2 * (63 - sure.dof)
    print(f"{name:25} {totals[-1]:5.1f} hares, AIC {aic:.1f}")

# %%
# The days were not equally good. With independent days the odds of a capture are the
# ratio of the two factors of a day.
sure = a1gm.fit_tensor(hares).uncertainty("poisson")
odds = np.array([sure.index(day).value[1] for day in range(6)])

fig, (left, right) = plt.subplots(1, 2, figsize=(9, 3), layout="constrained")
left.bar(range(1, 7), odds / (1 + odds), color="#0f766e")
left.set(title="probability of capture", xlabel="day", ylim=(0, 0.5))
low, high = np.transpose(bounds)
error = [totals - low, high - totals]
right.errorbar(totals, range(4), xerr=error, fmt="o", color="#0f766e", capsize=3)
right.axvline(caught, color="#d55e00", ls=":", label="caught")
right.set(title="hares, with 95 % intervals", yticks=range(4), yticklabels=models)
right.margins(y=0.15)
right.invert_yaxis()
right.legend(frameon=False)
plt.show()
