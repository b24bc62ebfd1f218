"""Fault 63: parts of a table that are linked only by cells far below the others."""

import numpy as np
import pandas as pd
import pytest
from attack.oracle import truth_of
from scipy import sparse

import a1gm
from a1gm._observe import accumulate
from a1gm._observe import observe as _observe
from a1gm._solve import dispatch

SIZES = [1e-2, 1e-4, 1e-6, 1e-8, 1e-10, 1e-12, 1e-15]
RIGHT = 1e-12


def largest_error(fitted, X, V=None):
    """Largest relative error of any cell, against at least 60 digits."""
    truth = truth_of(X, V, None, signed=False, exact=True)
    return float(np.max(np.abs(fitted / truth.cells - 1)))


def hollow_blocks(size, seed=0, k=3):
    """Two hollow k x k blocks; cells of this size join the rows of one to the other."""
    rng = np.random.default_rng(seed)
    X = np.full((2 * k, 2 * k), np.nan)
    for first in (0, k):
        block = rng.uniform(1.0, 10.0, (k, k))
        block[np.arange(k), np.arange(k)] = np.nan
        X[first : first + k, first : first + k] = block
    X[0, k], X[1, k + 1] = size * rng.uniform(1.0, 10.0, 2)
    return X


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("size", SIZES)
def test_fills_are_right_across_a_thin_cut(size, seed):
    X = hollow_blocks(size, seed)
    fit = a1gm.fit(X)
    error = largest_error(fit.reconstruct(), X)
    assert error <= RIGHT
    assert error <= fit.cell_error <= 1e-8
    assert fit.converged


@pytest.mark.parametrize("size", [1e-4, 1e-8, 1e-12])
def test_and_with_weights_turned_in_pieces_and_on_disk(size, tmp_path):
    X = hollow_blocks(size, 7)
    V = np.random.default_rng(3).uniform(0.5, 2.0, X.shape)
    fit = a1gm.fit(X, weights=V)
    assert largest_error(fit.reconstruct(), X, V) <= RIGHT
    assert fit.converged
    turned = a1gm.fit(np.asfortranarray(X.T))
    assert largest_error(turned.reconstruct(), X.T) <= RIGHT
    table = a1gm.PatternTable()
    for rows in (X[3:], X[:3]):
        table.update(rows)
    other = table.solve()
    np.testing.assert_allclose(other.impute(X), a1gm.fit(X).impute(X), rtol=1e-11)
    a1gm.fit(X).save(tmp_path / "model")
    assert a1gm.load(tmp_path / "model").cell_error == a1gm.fit(X).cell_error


@pytest.mark.parametrize("size", [1e-4, 1e-8])
def test_cells_are_read_again_where_only_margins_were_kept(size, monkeypatch):
    monkeypatch.setattr(_observe, "TABLE_CELLS", 1)
    X = hollow_blocks(size, 2)
    fit = a1gm.fit(X)
    assert fit._solved.statistics.is_mask
    assert largest_error(fit.reconstruct(), X) <= fit.cell_error
    assert fit.converged


def test_what_cannot_be_reached_is_announced():
    X = hollow_blocks(1e-8)
    with pytest.warns(a1gm.exceptions.ConvergenceWarning, match="certificate"):
        fit = a1gm.fit(X, max_iter=12)
    assert not fit.converged
    assert largest_error(fit.reconstruct(), X) <= fit.cell_error


@pytest.mark.parametrize("again", [0, 1 << 24])
@pytest.mark.parametrize("size", [1e-8, 1e-12])
def test_files_are_read_again_or_their_users_told(size, again, tmp_path, monkeypatch):
    monkeypatch.setattr(accumulate, "TABLE_BYTES", 1)
    monkeypatch.setattr(dispatch, "CELLS_AGAIN", again)
    X = hollow_blocks(size)
    path = tmp_path / "t.parquet"
    pd.DataFrame(X, columns=list("abcdef")).to_parquet(path)
    if again:
        fit = a1gm.fit_file(path)
        error = largest_error(np.outer(fit.row_factor[:], fit.col_factor), X)
        assert error <= RIGHT
        assert error <= fit.cell_error <= 1e-8
        assert fit.converged
        return
    with pytest.warns(a1gm.exceptions.ConvergenceWarning, match="linked only by cells"):
        fit = a1gm.fit_file(path)
    assert not fit.converged
    assert fit.cell_error > 1e-8


def chain(n_blocks, n, size, density, seed):
    """Random blocks in a row, each joined to the next by three cells of this size."""
    rng = np.random.default_rng(seed)
    X = np.full((n_blocks * n, n_blocks * n), np.nan)
    for b in range(n_blocks):
        block = rng.gamma(2.0, size=(n, n))
        block[rng.random((n, n)) > density] = np.nan
        X[b * n : (b + 1) * n, b * n : (b + 1) * n] = block
    for b in range(n_blocks - 1):
        i, j = rng.choice(n, 3, replace=False), rng.choice(n, 3, replace=False)
        X[b * n + i, (b + 1) * n + j] = size * rng.uniform(0.5, 2.0, 3)
    return X


@pytest.mark.parametrize("size", [1e-2, 1e-6, 1e-12])
@pytest.mark.parametrize(("n_blocks", "density"), [(2, 0.1), (5, 0.15)])
def test_blocks_in_a_row(size, n_blocks, density):
    X = chain(n_blocks, 300 // n_blocks, size, density, 5)
    by_edges = a1gm.fit(X)
    # An exactly rank-1 table of the same shape: its fills are known.
    w, h = by_edges.row_factor, by_edges.col_factor
    exact = np.where(np.isnan(X), np.nan, np.outer(w, h))
    fit = a1gm.fit(exact)
    error = np.nanmax(np.abs(fit.reconstruct() / np.outer(w, h) - 1.0))
    assert error <= min(fit.cell_error, 1e-8)
    assert fit.converged


def test_large_parts_joined_by_single_cells():
    rng = np.random.default_rng(0)
    parts, n, per_row = 4, 2000, 10  # an elimination would fill in too much
    rows = np.repeat(np.arange(parts * n), per_row)
    cols = rows // n * n + rng.integers(n, size=len(rows))
    at = np.arange(parts - 1) * n
    S = sparse.coo_array((rng.gamma(2.0, size=len(rows)), (rows, cols)))
    S += sparse.coo_array((np.full(len(at), 1e-3), (at, at + n)), shape=S.shape)
    fit = a1gm.fit(S.tocsr(), absent="missing")
    assert fit.converged
    assert fit.cell_error < 1e-9
    joints = fit.row_factor[at] * fit.col_factor[at + n]
    np.testing.assert_allclose(joints, 1e-3, rtol=fit.cell_error)
