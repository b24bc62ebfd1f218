"""Joint fits near the ends of float64: the right value, or an error that says so."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

import a1gm
from a1gm import paper
from a1gm.exceptions import EmptyLineWarning, NotRepresentableError

nan = np.nan
CLOSE = 1e-9


def with_holes(shape, seed, share=0.25):
    rng = np.random.default_rng(seed)
    table = rng.random(shape) + 0.1
    table[rng.random(shape) < share] = nan
    return table


def largest_error(fit, X, Y, Z, alpha, beta) -> float:
    """Largest relative mismatch of a total or a weighted margin, in exact numbers."""
    tables = [(X, fit.w, fit.h, 1), (Y, fit.a, fit.h, alpha), (Z, fit.w, fit.b, beta)]
    margins: dict[tuple[int, int], list[Fraction]] = {}
    pairs = []
    for table, rows, cols, weight in tables:
        totals = [Fraction(0), Fraction(0)]
        for i, j in np.argwhere(~np.isnan(table)).tolist():
            fitted = Fraction(float(rows[i])) * Fraction(float(cols[j]))
            cells = fitted, Fraction(float(table[i, j]))
            for key in ((id(rows), i), (id(cols), j)):
                margin = margins.setdefault(key, [Fraction(0), Fraction(0)])
                for k in (0, 1):
                    margin[k] += Fraction(weight) * cells[k]
            totals = [total + cell for total, cell in zip(totals, cells, strict=True)]
        pairs.append(totals)
    pairs += margins.values()
    return float(max(abs(f / d - 1) for f, d in pairs if d))


def three_tables(holes=0.25):
    shapes = (9, 7), (4, 7), (9, 5)
    return [with_holes(shape, k, holes) for k, shape in enumerate(shapes)]


# ------------------------------------------------------------------------- weights
@pytest.mark.parametrize("scale", [1e-90, 1.0, 1e90])
def test_opposite_weights(scale):
    X, Y = np.array([[1.0, 2.0], [3.0, 4.0]]), np.array([[1.0, 5.0]])
    Z = np.array([[1.0], [4.0]])
    fit = a1gm.fit_nmmf(X * scale, Y * scale, Z * scale, alpha=1e-40, beta=1e40)
    expected = paper.rank1_nmmf(X, Y, Z, alpha=1e-40, beta=1e40)
    for got, want in zip((fit.w, fit.h, fit.a, fit.b), expected, strict=True):
        np.testing.assert_allclose(got / np.sqrt(scale), want, rtol=1e-12)


@pytest.mark.parametrize("bits", [0, 10, 20, 40, 70, 200])
def test_the_level_of_a_table_that_the_others_drown(bits):
    """With 1e10 it was 6 % off, with 1e12 eleven times too large, yet certified."""
    X, Y, Z = three_tables()
    weight = 2.0**bits
    fit = a1gm.fit_nmmf(X, Y, Z, alpha=weight, beta=weight)
    assert largest_error(fit, X, Y, Z, weight, weight) < CLOSE
    assert fit.converged


def test_the_level_of_a_drowned_table_in_each_block():
    parts = [
        [with_holes(s, 7 * b + k) for k, s in enumerate(((6, 5), (3, 5), (6, 4)))]
        for b in range(2)
    ]
    tables = []
    for first, second in zip(*parts, strict=True):
        table = np.full(np.add(first.shape, second.shape), nan)
        table[: first.shape[0], : first.shape[1]] = first
        table[first.shape[0] :, first.shape[1] :] = second
        tables.append(table)
    weights = {"alpha": 1e14, "beta": 1e14, "on_undetermined": "ignore"}
    whole = a1gm.fit_nmmf(*tables, **weights)
    assert whole.n_blocks == 2
    alone = [a1gm.fit_nmmf(*part, **weights) for part in parts]
    for name in "wh":
        separate = np.concatenate([getattr(fit, name) for fit in alone])
        np.testing.assert_allclose(getattr(whole, name), separate, rtol=1e-7)


def powers(low, high):
    return st.integers(low, high).map(lambda k: 10.0**k)


@pytest.mark.filterwarnings("ignore::a1gm.exceptions.ConvergenceWarning")
@given(
    st.tuples(*[powers(-300, 300)] * 3),
    powers(-100, 100),
    powers(-100, 100),
    st.sampled_from([0.0, 0.25]),
    st.integers(0, 100),
)
@example((1.0, 1e-9, 1e116), 1e100, 1e100, 0.0, 0)
@example((1e56, 1e-258, 1e114), 1e-36, 1e-77, 0.0, 6)  # factors were 0.6 % off
def test_any_scale_and_weight(scales, alpha, beta, holes, seed):
    shapes = (5, 4), (3, 4), (5, 3)
    X, Y, Z = (
        with_holes(shape, seed + k, holes) * scale
        for k, (shape, scale) in enumerate(zip(shapes, scales, strict=True))
    )
    for table in (X, Y, Z):  # every row and column has a number, and all one block
        table[0], table[:, 0] = (
            np.where(np.isnan(line), np.nanmax(table), line)
            for line in (table[0], table[:, 0])
        )
    try:
        fit = a1gm.fit_nmmf(X, Y, Z, alpha=alpha, beta=beta)
    except NotRepresentableError:
        return
    factors = np.concatenate((fit.w, fit.h, fit.a, fit.b))
    assume(factors.min() >= np.finfo(float).tiny)  # below it digits are missing
    assume(fit.converged)  # where rounding ends the iteration early, a warning says so
    assert largest_error(fit, X, Y, Z, alpha, beta) < 1e-11


# ------------------------------------------------------------------------ refusals
LARGE, SMALL = np.full((2, 2), 1e300), np.full((2, 2), 1e-300)


@pytest.mark.parametrize(
    ("tables", "weights"),
    [
        ((LARGE, SMALL), {}),
        ((SMALL, LARGE), {}),
        ((LARGE, SMALL), {"alpha": 1e-100}),  # a weighted cell that would be 0
        ((LARGE, LARGE), {"alpha": 1e100}),  # one above the largest float64
        ((LARGE, SMALL), {"alpha": 0.0}),
        ((SMALL, LARGE), {"alpha": 0.0}),
        ((LARGE, None, SMALL), {"beta": 0.0}),
        ((SMALL, None, LARGE), {"beta": 0.0}),
        # One pattern, so one row of the statistics: the factor of a row would be 0.
        ((LARGE[:1], np.concatenate([LARGE, SMALL])), {}),
        (([[nan, 1e150], [2e150, 3e150]], [[1e-245, 2e-245]]), {}),  # digits are lost
    ],
)
def test_what_float64_does_not_hold_is_refused(tables, weights):
    with pytest.raises(NotRepresentableError, match="range of float64"):
        a1gm.fit_nmmf(*tables, **weights)


# ------------------------------------------------------------------ tables of weight 0
@pytest.mark.parametrize("scale", [1e-300, 1.0, 1e300])
@pytest.mark.parametrize("holes", [0.0, 0.3])
def test_placed_factors_at_the_ends_of_float64(scale, holes):
    X = np.outer([1.0, 2.0, 3.0], [1.0, 2.0, 0.5, 1.0])
    Y, Z = with_holes((2, 4), 1, holes) * scale, with_holes((3, 2), 2, holes) * scale
    fit = a1gm.fit_nmmf(X, Y, Z, alpha=0, beta=0)
    a = np.nansum(Y, axis=1) / (~np.isnan(Y) @ fit.h)
    b = np.nansum(Z, axis=0) / (fit.w @ ~np.isnan(Z))
    np.testing.assert_allclose(fit.a, a, rtol=1e-12)
    np.testing.assert_allclose(fit.b, b, rtol=1e-12)


def test_a_placed_row_with_data_in_columns_of_factor_0_only_is_unknown():
    X, Y = [[1.0, 0.0]], [[nan, 1.0], [2.0, nan]]
    with pytest.warns(EmptyLineWarning, match=r"a\[0\]"):
        fit = a1gm.fit_nmmf(X, Y, alpha=0)
    np.testing.assert_array_equal(np.isnan(fit.a), [True, False])


# ----------------------------------------------------------------------- new rows
def test_new_rows_whose_factor_is_no_float_are_refused():
    model = a1gm.RankOneNMMF().fit(np.full((2, 2), 1e-139))
    with pytest.raises(NotRepresentableError, match="row 1"):
        model.transform([[1e-300, 1e-300], [1e300, 1e300]])


@pytest.mark.parametrize("beta", [1e-70, 1.0, 1e100])
def test_new_rows_observed_in_one_table_only(beta):
    X, Z = np.array([[1.0, 2.0], [2.0, 4.0]]), np.array([[3.0], [6.0]])
    model = a1gm.RankOneNMMF(beta=beta).fit(X, Z=Z)
    rows = np.array([[1e-230, 2e-230], [nan, nan]])
    got = model.transform(rows, Z=[[nan], [3e-230]])
    np.testing.assert_allclose(got[:, 0] / model.row_factor_[0], 1e-230, rtol=1e-12)
