"""Random tables of several modes against other ways to their optimum.

``PYTHONPATH=tests python -m attack.tensor 1000`` tries so many tables of each kind,
from seed 0 on; ``python -m attack.tensor 1000 fates`` those of one kind.

optimum  3 to 5 modes, holes, zeros, 11 kinds of margins: L-BFGS finds nothing better
errors   fills, standard errors and totals are those of Poisson regression
fates    what the data determine, by rational programs over the whole design
routes   any order of modes and cells, and repeated levels: the same fit
arrays   large arrays, which are not listed: the fit of the list of their cells
bridges  parts joined by cells of 1 to 1e-12, against 60 digits
links    products of factors of 1 and 1e-2 to 1e-14
large    products in large designs: blocks of other sizes, joined by few or light cells
"""

from __future__ import annotations

import sys
import warnings
from collections import defaultdict
from itertools import combinations
from typing import Any

import numpy as np
from support import tensor_oracle as oracle

import a1gm
from a1gm.exceptions import ConvergenceWarning

N_MARGINS = 11
HOLES = "random", "fibres", "slices", "corner", "staircase", "few", "none"
SIZES = 1.0, 1e-2, 1e-4, 1e-6, 1e-8, 1e-10, 1e-12
BRIDGES = 1.0, 1e-1, 1e-2, 1e-3, 1e-4, 1e-6, 1e-8, 1e-10, 1e-12


def margins_of(kind: int, n: int) -> Any:
    """One of the kinds of margins of a table of n modes, every mode in some."""
    pairs = list(combinations(range(n), 2))
    chosen: list[Any] = [
        [],
        [(0, 1)],
        [(n - 2, n - 1)],
        [(0, n - 1)],
        [(0, 1), (1, 2)],
        [(0, 1), (0, 2)],
        [(0, 2), (1, 2)],
        [(0, 1), (1, 2), (0, 2)],
        [(k, k + 1) for k in range(n - 1)],
        pairs,
        list(combinations(range(n), n - 1)),
    ]
    margins = [tuple(margin) for margin in chosen[kind]]
    return margins + [(k,) for k in range(n) if not any(k in m for m in margins)]


def random_table(rng: np.random.Generator, shape: Any, zeros: float) -> Any:
    """Counts around a product, with holes of some kind."""
    n = len(shape)
    mean = np.full(shape, 5.0)
    for k, length in enumerate(shape):
        factor = rng.gamma(2.0, 0.5, length) + 0.05
        mean *= factor.reshape([-1 if j == k else 1 for j in range(n)])
    T = rng.poisson(mean) + rng.choice([0.5, 1.0])
    T[rng.random(shape) < zeros] = 0.0
    kind = rng.choice(HOLES)
    along = np.moveaxis(T, rng.integers(n), -1)
    index = np.indices(shape)
    if kind == "random":
        T[rng.random(shape) < rng.uniform(0.1, 0.6)] = np.nan
    elif kind == "fibres":
        along[rng.random(along.shape[:-1]) < 0.3] = np.nan
    elif kind == "slices":
        along[-1, ..., along.shape[-1] // 2 :] = np.nan
    elif kind == "corner":
        T[tuple(slice(length // 2, None) for length in shape)] = np.nan
    elif kind == "staircase":
        T[index[0] + index[1] > min(shape[:2])] = np.nan
    elif kind == "few":
        T[rng.random(shape) < 0.05] = np.nan
    if not np.nansum(T) > 0.0:
        T[(0,) * n] = 3.0
    return T


def fit(T: Any, margins: Any, **options: Any) -> Any:
    """Fit a table without warnings."""
    return a1gm.fit_tensor(T, margins, on_undetermined="ignore", **options)


def some_table(seed: int) -> tuple[Any, Any, Any, np.random.Generator]:
    """A table, its margins and its exposures."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(3, 6))
    shape = tuple(rng.integers(2, {3: 7, 4: 5, 5: 4}[n], n))
    T = random_table(rng, shape, [0.0, 0.1, 0.4][seed % 3])
    E = rng.uniform(0.2, 3.0, shape) if rng.random() < 0.4 else None
    return T, margins_of(seed % N_MARGINS, n), E, rng


# ------------------------------------------------------------------------------ kinds
def optimum(seed: int) -> dict[str, float]:
    """Certificate, and divergence above that of L-BFGS."""
    T, margins, E, _ = some_table(seed)
    found = fit(T, margins, exposure=E)
    least = oracle.least_divergence(T, margins, E)
    above = found.divergence - least
    assert found.certificate <= 1e-10, found.certificate
    assert above <= 1e-9 * max(1.0, least), above
    return {"certificate": found.certificate, "above": above}


def errors(seed: int) -> dict[str, float]:
    """Fills, standard errors and totals against regression, where it converges."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(3, 5))
    shape = tuple(rng.integers(2, 5, n))
    T = random_table(rng, shape, 0.0)
    E = rng.uniform(0.5, 2.0, shape) if seed % 2 else None
    margins = margins_of(seed % N_MARGINS, n)
    found = fit(T, margins, exposure=E)
    u = found.uncertainty("poisson")
    values, D, model = oracle.regression(T, margins, E, scale=1.0)
    C = model.cov_params()
    own = found.reconstruct().ravel()
    known = ~np.isnan(own)
    cells = np.unravel_index(np.arange(T.size), T.shape)
    expected = values * np.sqrt(np.einsum("ij,jk,ik->i", D, C, D))
    worst = {
        "fills": _off(own[known], values[known]),
        "standard errors": _off(u.standard_error(cells)[known], expected[known]),
    }
    missing = np.isnan(T).ravel() & known
    for mode in range(n):
        a = np.zeros((shape[mode], D.shape[1]))
        np.add.at(a, cells[mode][missing], (values[:, None] * D)[missing])
        of_sum = np.sqrt(np.maximum(np.einsum("ij,jk,ik->i", a, C, a), 0.0))
        totals = u.totals(mode)
        some = ~np.isnan(totals.value) & (of_sum > 0.0)
        off = _off(totals.se_estimation[some], of_sum[some])
        worst["totals"] = max(worst.get("totals", 0.0), off)
    assert max(worst.values()) <= 1e-8, worst
    return worst


def fates(seed: int) -> dict[str, float]:
    """Every missing cell of a small table."""
    T, margins = oracle.small_table(seed)
    expected = oracle.fates(T, margins)
    found = fit(T, margins)
    assert {cell: found.fate(cell) for cell in expected} == expected
    return {"cells": len(expected)}


def routes(seed: int) -> dict[str, float]:
    """The same fit by every way in."""
    T, margins, E, rng = some_table(seed)
    found = fit(T, margins, exposure=E)
    expected = found.reconstruct()
    order = rng.permutation(T.ndim)
    turned = [tuple(int(np.argsort(order)[k]) for k in margin) for margin in margins]
    of_E = None if E is None else E.transpose(order)
    worst = {
        "modes": _off(
            fit(T.transpose(order), turned, exposure=of_E).reconstruct(),
            expected.transpose(order),
        )
    }
    index = tuple(rng.permutation(np.stack(np.nonzero(~np.isnan(T))), axis=1))
    listed = fit(
        (index, T[index], T.shape), margins, exposure=None if E is None else E[index]
    )
    every = np.unravel_index(np.arange(T.size), T.shape)
    filled = listed._fitted(every, None if E is None else E.ravel())
    worst["cells"] = _off(filled, expected.ravel())
    if E is None:  # levels that come twice are twins
        mode = int(rng.integers(T.ndim))
        twice = fit(np.concatenate([T, 3.0 * T], axis=mode), margins).reconstruct()
        first, second = np.split(twice, 2, axis=mode)
        worst["twins"] = max(_off(first, expected), _off(second, 3.0 * expected))
    assert max(worst.values()) <= 1e-8, worst
    return worst


def arrays(seed: int) -> dict[str, float]:
    """Values, missing cells and bounds of an array and of its cells."""
    rng = np.random.default_rng(seed)
    shape = [(17, 16, 17), (3, 40, 41), (9, 8, 8, 9), (130, 40)][seed % 4]
    T = random_table(rng, shape, [0.0, 0.0, 0.2, 0.9][seed // 4 % 4])
    margins = margins_of(7, 3) if seed % 8 == 0 else [(k,) for k in range(T.ndim)]
    index = np.nonzero(~np.isnan(T))
    found, listed = fit(T, margins), fit((index, T[index], T.shape), margins)
    off = _off(found.reconstruct(), listed.reconstruct())
    bound = found.cell_error + listed.cell_error
    assert found.certificate <= 1e-10
    assert off <= 2.0 * bound, (off, bound)
    assert found.n_free == listed.n_free
    assert found.attained == listed.attained
    return {"off": off, "cell error": found.cell_error}


def bridges(seed: int) -> dict[str, float]:
    """Two corners joined by tiny cells: cells and their bound against 60 digits."""
    rng = np.random.default_rng(seed)
    epsilon = BRIDGES[seed % len(BRIDGES)]
    T = np.full((6, 6, 6), np.nan)
    for corner in (slice(3), slice(3, 6)):
        part = rng.poisson(8.0, (3, 3, 3)) + 1.0
        part[rng.random(part.shape) < 0.2] = np.nan
        T[corner, corner, corner] = part
    for k in range(int(rng.integers(2, 6))):
        cell = rng.integers(0, 3, 3)
        cell[k % 3] += 3
        T[tuple(cell)] = epsilon * rng.uniform(0.5, 2.0)
    margins = oracle.MARGINS[0] if seed % 4 else ((0, 1), (2,))
    found = fit(T, margins)
    own = found.reconstruct()
    off = oracle.errors_in_60_digits(T, margins, own)
    assert off <= found.cell_error, (off, found.cell_error)
    assert found.converged, found.cell_error
    assert off <= 1e-12, off
    return {"off": off, "over the bound": off / found.cell_error}


def links(seed: int) -> dict[str, float]:
    """Exact products whose factors are 1 or tiny, half of the cells missing."""
    rng = np.random.default_rng(seed)
    epsilon = (1e-2, 1e-6, 1e-8, 1e-10, 1e-12, 1e-14)[seed % 6]
    shape = tuple(rng.integers(2, 4, rng.integers(3, 5)))
    X = np.ones(())
    for n in shape:
        size = np.where(rng.random(n) < 0.5, 1.0, epsilon)
        X = np.multiply.outer(X, size * rng.integers(1, 5, n))
    T = np.where(rng.random(shape) < 0.5, np.nan, X)
    T.flat[0] = X.flat[0]
    found = fit(T, None)
    off = float(np.nanmax(np.abs(found.reconstruct() / X - 1.0)))
    assert off <= max(found.cell_error, 1e-15), (off, found.cell_error)
    assert found.converged or epsilon < 1e-12, found.cell_error
    return {"off": off}


def large(seed: int) -> dict[str, float]:
    """Cells of a product in a large design: none is off by more than is said."""
    index, x, shape, margins, is_link = linked_blocks(seed)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        found = fit((index, x, shape), margins)
    off = float(np.nanmax(np.abs(found.predict(index) / x - 1.0)))
    assert off <= found.cell_error, (off, found.cell_error)
    is_said = any(issubclass(one.category, ConvergenceWarning) for one in caught)
    assert found.converged or is_said
    figures = {"tables flagged": float(not found.converged)}
    if found.converged:
        figures["off"] = off
    if least_share(index, x, shape, margins, is_link) >= 1e-6:
        figures["tables with links of 1e-6"] = 1.0
        figures["of these flagged"] = float(not found.converged)
    return figures


def linked_blocks(seed: int) -> Any:
    """Listed cells of two or three blocks and of few links, a product of factors.

    Positions, values, shape, margins, and which cells are links. Blocks have sizes of
    their own, and links are lighter than what they join.
    """
    rng = np.random.default_rng(seed)
    n_blocks = int(rng.integers(2, 4))
    margins = [[], [(0, 1)], [(0, 1), (1, 2), (0, 2)], [(0, 1), (1, 2)]][seed // 7 % 4]
    n_modes = 3 if margins else int(rng.integers(3, 5))
    n_split = int(rng.integers(2, n_modes + 1))  # modes with levels of each block
    n_levels = 10.0 ** rng.uniform(3.0, 5.0 if seed % 20 == 0 else 3.7)
    n = (
        n_levels / n_modes
        if not margins
        else max(6.0, (n_levels / len(margins)) ** 0.5)
    )
    lengths = [int(n) // n_blocks] * n_split
    lengths += rng.integers(3, 30, n_modes - n_split).tolist()
    n_cells = int(
        rng.uniform(3.0, 8.0) * (lengths[0] ** 2 if margins else sum(lengths))
    )
    within = rng.integers(0, lengths, (n_blocks, n_cells, n_modes))
    within[..., :n_split] += (np.arange(n_blocks) * lengths[0])[:, None, None]
    links = []
    for block in range(1, n_blocks):
        for _ in range(int(rng.integers(1, 6))):
            link = rng.integers(0, lengths)
            own = rng.permutation(n_split)[: int(rng.integers(1, n_split))]
            link[own] += block * lengths[0]
            links.append(link)
    index = np.unique([*within.reshape(-1, n_modes), *links], axis=0).T
    shape = (*[n_blocks * lengths[0]] * n_split, *lengths[n_split:])
    block = index[:n_split] // lengths[0]
    x = np.ones(index.shape[1])
    for group in margins or [(k,) for k in range(n_modes)]:
        factor = np.exp(rng.normal(size=[shape[k] for k in group]))
        x *= factor[tuple(index[k] for k in group)]
    x *= SIZES[seed % len(SIZES)] ** (block[0] / (n_blocks - 1))
    x *= rng.choice(SIZES) ** (rng.choice([-1, 1]) * (block[0] - block[1]))
    return tuple(index), x, shape, margins or None, (block != block[0]).any(axis=0)


def least_share(index: Any, x: Any, shape: Any, margins: Any, is_link: Any) -> float:
    """Least share that a link has of the sum of a level."""
    least = 1.0
    for group in margins or [(k,) for k in range(len(shape))]:
        level = np.ravel_multi_index(
            [index[k] for k in group], [shape[k] for k in group]
        )
        _, level = np.unique(level, return_inverse=True)
        shares = x / np.bincount(level, x)[level]
        least = min(least, float(shares[is_link].min(initial=1.0)))
    return least


KINDS = {
    kind.__name__: kind
    for kind in (optimum, errors, fates, routes, arrays, bridges, links, large)
}


def _off(found: Any, expected: Any) -> float:
    """Largest relative error; both have to be missing in the same cells."""
    assert (np.isnan(found) == np.isnan(expected)).all()
    both = np.nan_to_num(found), np.nan_to_num(expected)
    scale = np.where(both[1] == 0.0, 1.0, np.abs(both[1]))
    return float((np.abs(both[0] - both[1]) / scale).max(initial=0.0))


def main() -> int:
    """Try as many tables as asked for; return the number of wrong answers."""
    n, *names = sys.argv[1:] or ["1000"]
    wrong = 0
    for name in names or KINDS:
        worst: dict[str, float] = defaultdict(float)
        bad = 0
        for seed in range(int(n)):
            try:
                for what, size in KINDS[name](seed).items():
                    is_count = what.split()[0] in ("tables", "of")
                    both = worst[what], size
                    worst[what] = sum(both) if is_count else max(both)
            except Exception as error:  # noqa: BLE001 - all wrong answers are counted
                bad += 1
                print(f"{name} {seed}: {type(error).__name__}: {error}")
        figures = ", ".join(f"{what} {size:.2g}" for what, size in worst.items())
        print(f"{name}: {n} tables, {bad} wrong; largest {figures}", flush=True)
        wrong += bad
    return wrong


if __name__ == "__main__":
    sys.exit(bool(main()))
