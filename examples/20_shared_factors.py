"""Shared factors
=================

Purchases with attributes of users and of items: what side tables are worth.

A shop knows for some users how often they bought some items (X). It also knows how
active each user is in other ways (Z: visits, searches, reviews) and how each item sells
elsewhere (Y: other regions). All three share factors: how active a user is, and how
popular an item is. The script hides a tenth of the purchases, predicts them from X
alone and from all tables together, and compares the divergence.
"""

import warnings

import matplotlib.pyplot as plt
import numpy as np
from scipy.special import kl_div

import a1gm

N_USERS, N_ITEMS, N_REGIONS, N_SIGNALS = 3_000, 40, 6, 3

# Counts around products of factors, with two thirds of the purchases unknown.
rng = np.random.default_rng(0)
activity = rng.gamma(1.5, 1.0, N_USERS)
popularity = rng.gamma(1.5, 1.0, N_ITEMS)
X = rng.poisson(0.4 * np.outer(activity, popularity)).astype(float)
X[rng.random(X.shape) < 0.66] = np.nan
Y = rng.poisson(50.0 * np.outer(rng.gamma(5, 1, N_REGIONS), popularity)) * 1.0
Z = rng.poisson(3.0 * np.outer(activity, rng.gamma(5, 1, N_SIGNALS))) * 1.0
Z[rng.random(Z.shape) < 0.1] = np.nan

hidden = ~np.isnan(X) & (rng.random(X.shape) < 0.1)
known = np.where(hidden, np.nan, X)
# X alone does not determine users and items without a purchase: they are not scored.
bought, sold = np.nansum(known, axis=1) > 0, np.nansum(known, axis=0) > 0
judged = hidden & np.outer(bought, sold)


def fit_known(**tables):
    with warnings.catch_warnings():
        # Users whose known purchases are all zero, or who have none left.
        warnings.simplefilter("ignore", a1gm.exceptions.A1gmWarning)
        return a1gm.fit_nmmf(known, **tables)


def score(fit):
    return float(kl_div(X[judged], np.outer(fit.w, fit.h)[judged]).sum())


alone = fit_known()
fits = {beta: fit_known(Y=Y, Z=Z, beta=beta) for beta in (0.01, 0.1, 1.0, 10.0)}
beta = min(fits, key=lambda weight: score(fits[weight]))
together = fits[beta]

print(f"purchases: {N_USERS} users x {N_ITEMS} items, {judged.sum()} hidden")
print(f"the best weight of Z on these cells: beta = {beta:g}")
print(together)
print(f"divergence of the hidden purchases, X alone:    {score(alone):8.1f}")
print(f"divergence of the hidden purchases, all tables: {score(together):8.1f}")
print(f"the side tables save {1 - score(together) / score(alone):.1%}")

# %%
# How active is each user? Purchases alone are few, and the estimate is blurred; visits,
# searches and reviews of the same users make it sharp.
fits = {"purchases alone": alone, "all three tables": together}
fig, panels = plt.subplots(1, 2, figsize=(8, 4), layout="constrained", sharey=True)
for ax, (name, fit) in zip(panels, fits.items(), strict=True):
    found = fit.w[bought] / fit.w[bought].mean()
    truth = activity[bought] / activity[bought].mean()
    ax.plot(truth, found, ".", ms=2, color="#0f766e")
    ax.plot([0, 5], [0, 5], color="#d55e00", lw=1)
    error = np.median(np.abs(found / truth - 1))
    ax.set(title=f"{name}: median error {error:.0%}", xlabel="true activity of a user")
panels[0].set_ylabel("fitted activity")
panels[0].set_ylim(0, 8)
plt.show()
