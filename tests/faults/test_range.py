"""Rows, columns and cells that span the whole range of float64 (fault 64)."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from support.tables import make_table

import a1gm
from a1gm.exceptions import NotRepresentableError

pytest.importorskip("flint")

from attack.oracle import truth_of

nan = np.nan
pytestmark = [
    pytest.mark.filterwarnings("ignore::a1gm.exceptions.UndeterminedWarning"),
    pytest.mark.filterwarnings("ignore::a1gm.exceptions.EmptyLineWarning"),
]
RIGHT = 1e-12  # relative, where float64 has all its digits


def assert_is_optimum(X, fit, V=None, *, right=RIGHT):
    """Every fitted and filled cell, and the divergence, against many digits."""
    true = truth_of(X, V, None, signed=False, exact=True)
    cells = true.cells.astype(float)
    tiny = np.finfo(float).smallest_subnormal
    for got in (
        fit.reconstruct(),
        np.where(np.isnan(X), fit.impute(X, weights=V), nan),
    ):
        known = ~np.isnan(got)
        np.testing.assert_allclose(got[known], cells[known], rtol=right, atol=tiny)
    assert fit.divergence == pytest.approx(
        float(true.divergence), rel=1e-11, abs=1e-14 * float(true.total)
    )
    assert fit.certificate <= 1e-10


ROWS = {
    "S2": [[1e-200, 1e-200, nan], [1e-200, nan, nan], [nan, nan, 1e110]],
    "S6 a": [[1e-150, 1e150], [1e-150, 1e-100]],
    "S6 b": [[1e-60, 1e275], [1e275, 1e275]],
    "S7": [[1e26, 1e-97, nan], [nan, 1e98, 2e-99]],
    "S7 subnormal": [[5e-324, 1e-323, nan], [nan, 1.5e-323, 5e-324]],
    "S20": [[1e-200, 1e200]],
    "a column of 1e-400": [[1e-200, nan], [1e200, 1e-200]],
    "blocks": [[1e-200, nan], [nan, 1e200]],
    "a core": [[nan, 2e-200, 3e99], [5e-100, nan, 1e199], [4e-299, 3e-300, nan]],
    "zeros": [[1e-250, 0.0, 1e250], [nan, 1e200, 1.0], [1e-300, 2.0, nan]],
}
CHAIN = np.array(  # fitted exactly; column factors span 1e1800
    [
        [1e-300, 1e300, nan, nan],
        [nan, 1e-300, 1e300, nan],
        [nan, nan, 1e-300, 1e300],
    ]
)


@pytest.mark.parametrize("name", ROWS)
def test_fault_64_cells_are_right_wherever_they_have_a_float(name):
    X = np.array(ROWS[name])
    fit = a1gm.fit(X)
    assert_is_optimum(X, fit)


def test_fault_64_weights_do_not_flush_cells_to_zero():
    X = np.array([[1e-60, 1e-60, nan], [nan, 1e275, 1e275]])
    V = np.array([[1.0, 1.0, 1.0], [1.0, 2.0, 1.0]])
    fit = a1gm.fit(X, weights=V)
    np.testing.assert_allclose(fit.row_factor, [3e-60, 3e275], rtol=1e-12)
    assert fit.fate(0, 2) == "finite"
    assert_is_optimum(X, fit, V)


def test_fault_64_weights_that_span_float64():
    X = np.array([[2.0, 3.0, nan], [4.0, nan, 5.0], [nan, 6.0, 7.0]])
    V = np.array([[1e-300], [1e290], [1.0]]) * [[1, 2, 1], [3, 1, 1], [1, 1, 5]]
    assert_is_optimum(X, a1gm.fit(X, weights=V), V, right=1e-9)


def test_fault_64_weighted_cells_too_far_apart_are_refused():
    X = np.array([[1e-200, 1e200], [1.0, nan]])
    V = np.array([[1e-200, 1e200], [1.0, 1.0]])
    with pytest.raises(NotRepresentableError, match="weighted cells of this table are"):
        a1gm.fit(X, weights=V)


def test_fault_64_a_factor_without_a_float_is_refused_when_it_is_read():
    fit = a1gm.fit(np.array([[1e-200, 1e200]]))
    np.testing.assert_allclose(fit.reconstruct(), [[1e-200, 1e200]], rtol=1e-15)
    np.testing.assert_allclose(fit.row_factor, [1e200], rtol=1e-15)
    with pytest.raises(NotRepresentableError, match="column 0 is about 1e-400"):
        _ = fit.col_factor
    assert fit.certificate <= 1e-15
    assert fit.divergence <= 1e184
    assert repr(fit).startswith("RankOneFit(")


def test_fault_64_new_rows_of_such_a_fit():
    fit = a1gm.fit(CHAIN)
    with pytest.raises(NotRepresentableError, match="value of a cell is above"):
        fit.reconstruct()  # 1e1500
    assert fit.divergence == 0.0
    assert fit.certificate <= 1e-15
    row = np.array([[nan, nan, 2e-300, nan]])
    np.testing.assert_allclose(fit.impute(row)[0, 1:], [0.0, 2e-300, 2e300], rtol=1e-12)
    with pytest.raises(NotRepresentableError, match="row 0"):
        fit.transform(np.array([[1e300, nan, nan, nan]]))


def test_fault_64_an_infinite_divergence_is_refused():
    X = np.array([[1.7e308, 1e-300], [1e-300, 1.7e308]])
    fit = a1gm.fit(X)
    with pytest.raises(NotRepresentableError, match="divergence is above"):
        _ = fit.divergence
    assert np.isnan(pickle.loads(pickle.dumps(fit)).divergence)


@pytest.mark.parametrize("name", ["S2", "S7", "S20", "a core", "zeros"])
def test_fault_64_saved_and_loaded(tmp_path, name):
    X = np.array(ROWS[name])
    fit = a1gm.fit(X)
    fit.save(tmp_path / "model.a1gm")
    saved = a1gm.load(tmp_path / "model.a1gm")
    for other in (saved, pickle.loads(pickle.dumps(fit))):
        np.testing.assert_array_equal(other.impute(X), fit.impute(X))
        np.testing.assert_array_equal(other.reconstruct(), fit.reconstruct())
        assert other.certificate == fit.certificate
        assert other.divergence == fit.divergence
        if name == "S20":
            with pytest.raises(NotRepresentableError, match="column 0 is about 1e-400"):
                _ = other.col_factor


@pytest.mark.parametrize("name", ["S2", "S7", "S20", "a core", "zeros"])
def test_fault_64_in_pieces(name):
    X = np.array(ROWS[name])
    table = a1gm.PatternTable(X.shape[1], keep_rows=True)
    for row in X:
        table.update(row[None])
    fit, whole = table.solve(), a1gm.fit(X)
    np.testing.assert_allclose(fit.impute(X), whole.impute(X), rtol=1e-12)
    np.testing.assert_allclose(fit.reconstruct(), whole.reconstruct(), rtol=1e-12)


@pytest.mark.parametrize("name", ["S2", "S7", "S20", "a core"])
def test_fault_64_sparse(name):
    from scipy.sparse import csr_array

    X = np.array(ROWS[name])
    i, j = np.nonzero(~np.isnan(X))
    S = csr_array((X[i, j], (i, j)), shape=X.shape)
    fit, whole = a1gm.fit(S, absent="missing"), a1gm.fit(X)
    np.testing.assert_allclose(fit.reconstruct(), whole.reconstruct(), rtol=1e-12)
    assert fit.divergence == pytest.approx(whole.divergence, rel=1e-9, abs=1e-300)


@pytest.mark.parametrize("kind", ["complete", "staircase", "few patterns", "at random"])
@pytest.mark.parametrize("seed", range(3))
def test_fault_64_extreme_rows_in_a_larger_table(kind, seed):
    rng = np.random.default_rng(seed)
    observed = ~np.isnan(make_table(kind, 300, 12, seed))
    w, h = 10.0 ** rng.uniform(-150, 150, 300), 10.0 ** rng.uniform(-150, 150, 12)
    exact = np.outer(w, h)
    X = np.where(observed, exact, nan)
    X = X[:, observed.any(axis=0)]
    fit = a1gm.fit(X)
    np.testing.assert_allclose(
        fit.reconstruct(), exact[:, observed.any(axis=0)], rtol=1e-8
    )
