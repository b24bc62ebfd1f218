"""Zeros: what long plain scaling shows, the graph has decided before."""

from __future__ import annotations

import numpy as np
import pytest
from support import oracles

import a1gm

SWEEPS = 20_000
SHAPES = [(2, 2), (2, 3), (3, 3), (4, 3), (4, 4)]
TABLES_PER_SHAPE = 400

pytestmark = [
    pytest.mark.oracle,
    pytest.mark.filterwarnings("ignore::a1gm.exceptions.UndeterminedWarning"),
    pytest.mark.filterwarnings("ignore::a1gm.exceptions.EmptyLineWarning"),
]


def random_tables(shape: tuple[int, int], seed: int) -> np.ndarray:
    """Tables of small whole numbers, about a third zeros and a third holes."""
    rng = np.random.default_rng(seed)
    tables = rng.integers(1, 6, (TABLES_PER_SHAPE, *shape)).astype(float)
    kind = rng.random(tables.shape)
    tables[kind < 0.35] = 0.0
    tables[kind > 0.65] = np.nan
    return tables[~np.isnan(tables).all(axis=(1, 2))]


def sweep(tables: list[np.ndarray], stops: list[int]) -> list[list[np.ndarray]]:
    """Fitted tables of many small tables at once, after so many plain scaling sweeps.

    All tables lie in one array whose last axis counts them, padded with holes.
    """
    n, m = (max(X.shape[axis] for X in tables) for axis in (0, 1))
    data = np.full((n, m, len(tables)), np.nan)
    for k, X in enumerate(tables):
        data[: X.shape[0], : X.shape[1], k] = X
    seen = (~np.isnan(data)).astype(float)
    r, c = np.nansum(data, axis=1), np.nansum(data, axis=0)
    w, h = np.zeros_like(r), (c > 0.0).astype(float)
    found, done = [], 0
    for stop in stops:
        for _ in range(stop - done):
            np.divide(r, np.einsum("ijk,jk->ik", seen, h), out=w, where=r > 0.0)
            np.divide(c, np.einsum("ijk,ik->jk", seen, w), out=h, where=c > 0.0)
        done = stop
        fitted = w[:, None, :] * h
        found.append(
            [fitted[: X.shape[0], : X.shape[1], k] for k, X in enumerate(tables)]
        )
    return found


@pytest.fixture(scope="module")
def swept():
    tables = {shape: list(random_tables(shape, seed=sum(shape))) for shape in SHAPES}
    flat = [X for shape in SHAPES for X in tables[shape]]
    early, late = sweep(flat, [SWEEPS // 2, SWEEPS])
    fits = [a1gm.fit(X) for X in flat]
    cases, at = {}, 0
    for shape in SHAPES:
        part = slice(at, at + len(tables[shape]))
        cases[shape] = flat[part], (early[part], late[part]), fits[part]
        at = part.stop
    return cases


@pytest.fixture(params=SHAPES, ids=str)
def case(request, swept):
    return swept[request.param]


def test_observed_cells_between_components_vanish_and_those_inside_stay(case):
    tables, (_, late), fits = case
    for X, fitted, fit in zip(tables, late, fits, strict=True):
        inside = (fit.row_block[:, None] == fit.col_block) & ~np.isnan(X)
        between = ~inside & ~np.isnan(X)
        positive = (np.nansum(X, axis=1) > 0)[:, None] & (np.nansum(X, axis=0) > 0)
        assert (X[between] == 0.0).all()
        # They fall like 1 / sweeps at the slowest.
        assert (fitted[between] < 100.0 / SWEEPS).all()
        assert (fitted[inside & positive] > 1e-3).all()
        assert fit.attained == (not (between & positive).any())


def test_the_fate_of_each_missing_cell_is_the_trend_of_long_sweeps(case):
    tables, (early, late), fits = case
    n_seen = dict.fromkeys(["finite", "zero", "unbounded", "undetermined"], 0)
    for X, before, after, fit in zip(tables, early, late, fits, strict=True):
        data_row, data_col = np.nansum(X, axis=1) > 0, np.nansum(X, axis=0) > 0
        filled = fit.reconstruct()
        for i, j in np.argwhere(np.isnan(X)):
            fate = fit.fate(i, j)
            n_seen[fate] += 1
            if not (data_row[i] and data_col[j]):
                continue  # a factor of 0 has no trend
            change = after[i, j] / before[i, j]
            if fate == "finite":
                assert abs(change - 1.0) < 1e-3
                assert after[i, j] == pytest.approx(filled[i, j], rel=1e-2)
            elif fate == "zero":
                assert change < 0.8
                assert filled[i, j] == 0.0
            elif fate == "unbounded":
                assert change > 1.25
                assert np.isnan(filled[i, j])
            else:
                assert np.isnan(filled[i, j])
    assert min(n_seen.values()) > 0


def check_blocks(fit, X):
    """Compare the blocks with the components of the cells, which are returned."""
    found = oracles.components(X)
    blocks = np.concatenate([fit.row_block, fit.col_block])
    sums = np.concatenate([np.nansum(X, axis=1), np.nansum(X, axis=0)])
    with_data = np.where(sums > 0.0, np.concatenate(found), -1)
    assert oracles.same_partition(blocks, with_data)
    return found


def test_blocks_are_the_strong_components_of_the_cells(case):
    tables, _, fits = case
    for X, fit in zip(tables, fits, strict=True):
        check_blocks(fit, X)
        # Labels count up in the order of first rows, columns without a row last.
        _, first = np.unique(fit.row_block[fit.row_block >= 0], return_index=True)
        assert (np.diff(first) > 0).all()
        assert fit.row_block[fit.row_block >= 0].min(initial=0) == 0


def test_the_divergence_is_the_infimum(case):
    tables, (_, late), fits = case
    for X, fitted, fit in zip(tables, late, fits, strict=True):
        swept = oracles.divergence(X, fitted)
        assert fit.divergence <= swept + 1e-9
        assert fit.divergence == pytest.approx(swept, abs=50.0 / SWEEPS * X.size)


# ------------------------------------------------------------- larger tables
@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("shape", [(60, 12), (300, 40), (12, 90)])
@pytest.mark.parametrize("zeros", [0.05, 0.5, 0.9])
def test_larger_tables_against_the_cell_graph(shape, seed, zeros):
    rng = np.random.default_rng(seed)
    X = rng.integers(1, 9, shape).astype(float)
    X[rng.random(shape) < zeros] = 0.0
    X[rng.random(shape) < 0.6] = np.nan
    fit = a1gm.fit(X)
    check_blocks(fit, X)
    assert oracles.certificate(X, fit) <= 1e-9


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("zeros", [0.02, 0.97])
def test_wide_tables_get_the_same_verdict(seed, zeros):
    rng = np.random.default_rng(seed)
    X = rng.integers(1, 9, (1500, 420)).astype(float)
    X[rng.random(X.shape) < zeros] = 0.0
    X[rng.random(X.shape) < 0.3] = np.nan
    X[3] = np.where(np.isnan(X[3]), np.nan, 0.0)
    X[:, 5] = np.where(np.isnan(X[:, 5]), np.nan, 0.0)
    X[rng.random(1500) < 0.995, 7] = np.nan
    fit = a1gm.fit(X)
    rows, cols = check_blocks(fit, X)
    assert oracles.certificate(X, fit) <= 1e-9
    for i, j in np.argwhere(np.isnan(X))[:: X.size // 200]:
        assert (fit.fate(i, j) == "finite") == (rows[i] == cols[j])


# ------------------------------------- separation in Poisson two-way effects
# Quasi-complete separation: the cells named have fitted value 0 at the supremum of
# the likelihood, and their effects run away (Santos Silva & Tenreyro, 2010; Correia,
# Guimaraes & Zylkin, 2019, "Verifying the existence of maximum likelihood estimates
# for generalized linear models"). A two-way table with effects is separated on its
# zero cells that no cycle of the graph passes through.
SEPARATED = {
    # A firm (row 2) seen only in a year in which its one other observation is zero:
    # y = 0 for d = 1 is the textbook dummy that predicts zeros perfectly.
    "a dummy that is one for zeros only": (
        [[3, 1, np.nan], [2, 4, np.nan], [0, np.nan, 5]],
        [(2, 0)],
    ),
    # The smallest two-way case, Haberman (1974): a triangle of observed cells with a
    # zero in its corner. [[0, 5], [5, .]]
    "a zero corner": ([[0, 5], [5, np.nan]], [(0, 0)]),
    # Separation by a combination of effects, none of which is separated alone.
    "a combination of effects": (
        [[1, 2, 0, 0], [3, 1, 0, 0], [np.nan, np.nan, 2, 1], [np.nan, np.nan, 1, 4]],
        [(0, 2), (0, 3), (1, 2), (1, 3)],
    ),
    # A chain: the second step is separated only because the first is.
    "a chain": (
        [[2, 0, np.nan], [np.nan, 3, 0], [np.nan, np.nan, 4]],
        [(0, 1), (1, 2)],
    ),
    "zeros inside a cycle": ([[0, 5], [5, 1]], []),
    "a zero in every row and column": ([[0, 1, 2], [3, 0, 1], [1, 2, 0]], []),
    "zeros and a hole, all joined": ([[1, 0, np.nan], [0, 2, 3], [4, 1, 0]], []),
}


@pytest.mark.parametrize("name", sorted(SEPARATED))
def test_separated_tables(name):
    table, cells = SEPARATED[name]
    X = np.array(table, float)
    fit = a1gm.fit(X)
    assert fit.attained == (not cells)
    between = (fit.row_block[:, None] != fit.col_block) & ~np.isnan(X)
    assert [tuple(cell) for cell in np.argwhere(between)] == cells
    fitted = fit.reconstruct()
    assert all(fitted[cell] == 0.0 for cell in cells)
    assert (fitted[~np.isnan(X) & ~between] > 0.0).all()
