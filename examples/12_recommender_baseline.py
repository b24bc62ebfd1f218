"""A recommender's baseline
===========================

How popular is a film? The mean of its known plays says how busy its viewers are, too.
Rank 1 takes both apart: every user has a level, every film a popularity. The table
stays sparse; absent cells are missing, and nothing is made dense.

Simulated: niche films (the second half) are found by heavy users only.
"""

import time

import matplotlib.pyplot as plt
import numpy as np
import scipy.sparse as sp

import a1gm

N_USERS, N_FILMS, N_CELLS = 50_000, 2_000, 1_000_000

rng = np.random.default_rng(0)
level = np.sort(rng.gamma(2.0, size=N_USERS))  # the last are the heaviest users
popularity = rng.gamma(5.0, size=N_FILMS)
films = rng.integers(0, N_FILMS, N_CELLS)
is_niche = np.arange(N_FILMS) >= N_FILMS // 2
first = np.where(is_niche, 2 * N_USERS // 3, 0)  # the first user who finds a film
users = rng.integers(first[films], N_USERS)
users, films = np.divmod(np.unique(users * N_FILMS + films), N_FILMS)
counts = rng.poisson(level[users] * popularity[films]).astype(float)
plays = sp.csr_array((counts, (users, films)), shape=(N_USERS, N_FILMS))

start = time.perf_counter()
fit = a1gm.fit(plays, absent="missing")
took = time.perf_counter() - start
print(f"{plays.nnz:,} cells of {N_USERS:,} users and {N_FILMS:,} films")
print(f"fitted in {took:.2f} s, without {8e-9 * N_USERS * N_FILMS:.1f} GB of cells")
print(f"certificate {fit.certificate:.1e} (0 is perfect)")

# %%
# A new user needs no new fit: a few known plays place the user exactly. What rank 1
# does not give is taste: it ranks the films alike for everybody.
newcomer = sp.csr_array(([6.0, 11.0], ([0, 0], [3, 8])), shape=(1, N_FILMS))
user = float(fit.transform(newcomer)[0])
print(f"plays of film 100 to expect: {user * fit.col_factor[100]:.1f}")

# %%
# Both guesses against the truth, each with mean 1. The means of the niche films are all
# too high; the fitted factors lie on the diagonal.
truth = popularity / popularity.mean()
means = np.bincount(films, counts, N_FILMS) / np.bincount(films, minlength=N_FILMS)
guesses = {"mean of the known plays": means, "rank-1 fit": fit.col_factor}
fig, panels = plt.subplots(1, 2, figsize=(8, 4), layout="constrained", sharey=True)
for ax, (name, guess) in zip(panels, guesses.items(), strict=True):
    scaled = guess / guess.mean()
    for kind, colour in ((~is_niche, "#0f766e"), (is_niche, "#d55e00")):
        label = "niche films" if kind is is_niche else "films that all know"
        ax.plot(truth[kind], scaled[kind], ".", ms=3, color=colour, label=label)
    ax.plot([0, 3], [0, 3], "k:", lw=1)
    ax.set(title=f"Popularity: {name}", xlabel="true popularity")
    print(f"{name}: median error {np.median(np.abs(scaled / truth - 1)):.1%}")
panels[0].set_ylabel("estimated popularity")
panels[0].legend(frameon=False, markerscale=3)
plt.show()
