"""What the data determine, against rational programs over the whole design."""

from __future__ import annotations

import signal
import threading
import warnings

import numpy as np
import pytest
from support.tensor_oracle import MARGINS, design, fates, small_table

import a1gm
from a1gm.exceptions import UndeterminedWarning
from a1gm.tensor.known import PROGRAM, whole_rank
from a1gm.tensor.read import Cells


def fit(T, margins=None):
    return a1gm.fit_tensor(T, margins, on_undetermined="ignore")


@pytest.mark.parametrize("seed", range(40))
def test_fates_are_those_of_rational_programs(seed):
    T, margins = small_table(seed)
    found, expected = fit(T, margins), fates(T, margins)
    assert {cell: found.fate(cell) for cell in expected} == expected
    left = {c for c, fate in expected.items() if fate in ("unbounded", "undetermined")}
    assert {cell[:-1] for cell in found.undetermined} == left


@pytest.mark.parametrize("seed", range(20))
def test_degrees_of_freedom_count_the_rank(seed):
    rng = np.random.default_rng(seed)
    T = rng.integers(1, 9, (3, 4, 3)).astype(float)
    T[rng.random(T.shape) < 0.4] = np.nan
    margins = MARGINS[seed % len(MARGINS)]
    A = design(np.nonzero(~np.isnan(T)), T.shape, margins)
    dof = len(A) - np.linalg.matrix_rank(A)
    assert fit(T, margins).uncertainty("poisson").dof == dof


def test_connected_is_not_determined():
    T = np.full((1, 2, 2), np.nan)
    T[0, 0, 0] = T[0, 1, 1] = 1.0
    found = fit(T)
    assert found.fate((0, 0, 1)) == "undetermined"
    assert found.n_free == 1


def test_no_ties_is_not_undetermined():
    T = np.full((2, 2, 2), np.nan)
    T[0, 0, 0] = T[0, 1, 1] = T[1, 0, 1] = T[1, 1, 0] = 1.0
    found = fit(T)
    np.testing.assert_allclose(found.reconstruct(), 1.0, rtol=1e-12)
    assert found.n_free == 0


@pytest.mark.parametrize("zeros", [0.0, 0.1])
@pytest.mark.parametrize("margins", MARGINS)
def test_cubes_prove_what_the_design_says(margins, zeros):
    rng = np.random.default_rng(7)
    T = rng.integers(1, 9, (9, 8, 7)).astype(float)
    T[rng.random(T.shape) < zeros] = 0.0
    T[rng.random(T.shape) < 0.2] = np.nan
    index = np.nonzero(~np.isnan(T))
    A = design(index, T.shape, margins)
    cells = Cells(index, T[index], T.shape, (0, 1, 2), (None,) * 3)
    assert whole_rank(cells, margins) == np.linalg.matrix_rank(A)
    T[0, 0] = np.nan  # nothing of this pair of levels is left
    index = np.nonzero(~np.isnan(T))
    cells = Cells(index, T[index], T.shape, (0, 1, 2), (None,) * 3)
    rank = np.linalg.matrix_rank(design(index, T.shape, margins))
    assert whole_rank(cells, margins) == (rank if max(map(len, margins)) == 1 else None)


@pytest.mark.parametrize("shape", [(64, 64), (70, 62)])  # listed, and as an array
def test_two_modes_have_the_fates_of_fit(shape):
    rng = np.random.default_rng(1)
    X = rng.poisson(0.05, shape).astype(float)
    X[rng.random(shape) < 0.8] = np.nan
    expected = a1gm.fit(X, on_undetermined="ignore")
    np.testing.assert_allclose(fit(X).reconstruct(), expected.reconstruct(), rtol=1e-14)
    index = np.indices(shape).reshape(2, -1)
    missing = np.isnan(X.ravel())
    np.testing.assert_array_equal(
        fit(X).fate(list(index[:, missing])), expected.fate(*index[:, missing])
    )


def test_what_is_not_decided_is_said(monkeypatch):
    monkeypatch.setattr("a1gm.tensor.known.MOST_KINDS", 0)
    said = []
    for seed in range(40):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            a1gm.fit_tensor(*small_table(seed))
        said += [str(own.message) for own in caught]
    assert any("would take too long" in text for text in said)


PAIRS = [(0, 1), (1, 2), (0, 2)]


def counts(n, mean):
    """Counts most of which are 0: which can be fitted takes a linear program."""
    return np.random.default_rng(0).poisson(mean, (n, n, n)).astype(float)


@pytest.mark.filterwarnings("ignore::a1gm.exceptions.ConvergenceWarning")
def test_zeros_that_are_not_decided_in_time_are_said(monkeypatch):
    monkeypatch.setattr("a1gm.tensor.known.SECONDS", 0.0)
    with pytest.warns(UndeterminedWarning, match="would take too long"):
        found = a1gm.fit_tensor(counts(12, 0.1), PAIRS)
    assert found.n_undetermined == 0  # no cell is missing
    assert found.certificate <= 1e-10


@pytest.mark.nightly
def test_an_interrupt_ends_a_linear_program(monkeypatch):
    monkeypatch.setattr("a1gm.tensor.known.SECONDS", 3.0)
    is_solving = []

    def interrupt(*_):
        is_solving.append(any(own.name == PROGRAM for own in threading.enumerate()))
        if is_solving[-1]:
            signal.setitimer(signal.ITIMER_REAL, 0.0)
            raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, interrupt)
    signal.setitimer(signal.ITIMER_REAL, 0.2, 0.2)
    try:
        with pytest.raises(KeyboardInterrupt):
            fit(counts(30, 0.05), PAIRS)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, before)
    # The program is still being solved: nobody waited for it.
    assert any(own.name == PROGRAM for own in threading.enumerate())


@pytest.mark.parametrize("is_decided", [True, False])
def test_fates_do_not_depend_on_what_was_asked_before(
    is_decided, tmp_path, monkeypatch
):
    if not is_decided:
        monkeypatch.setattr("a1gm.tensor.known.MOST_KINDS", 9)
    rng = np.random.default_rng(0)
    T = rng.poisson(0.4, (8, 8, 8)).astype(float)
    T[rng.random(T.shape) < 0.5] = np.nan
    pairs, index = [(0, 1), (1, 2), (0, 2)], np.nonzero(np.isnan(T))
    fit = a1gm.fit_tensor(T, pairs, on_undetermined="ignore")
    every = fit.fate(index)
    assert (every == "undetermined").any()
    assert (every == "unbounded").any() == is_decided
    fit.save(tmp_path / "fit.a1gm")
    last = tuple(k[-9:] for k in index)
    assert (a1gm.load(tmp_path / "fit.a1gm").fate(last) == every[-9:]).all()
    turned = a1gm.fit_tensor(T.transpose(2, 0, 1), pairs, on_undetermined="ignore")
    assert (turned.fate((index[2], *index[:2])) == every).all()


def test_zeros_at_the_boundary_of_a_large_table_are_given_up():
    rng = np.random.default_rng(8)
    T = rng.integers(1, 9, (15, 14, 13)).astype(float)
    T[0, 0, 1:] = 0.0  # one positive cell of a pair of levels
    T[0, 1:, 0] = 0.0
    T[1:, 0, 0] = 0.0
    found = fit(T, [(0, 1), (1, 2), (0, 2)])
    assert found.certificate <= 1e-10
    cell = found.reconstruct()[0, 0]
    np.testing.assert_allclose(cell.sum(), T[0, 0].sum(), rtol=1e-9)
