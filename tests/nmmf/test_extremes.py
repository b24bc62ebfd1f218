"""Joint fits near the ends of float64: the right value, or an error that says so."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import assume, given
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


def exact(values):
    return [Fraction(float(v)) for v in values]


def exact_sum(values, observed=None):
    chosen = values if observed is None else np.asarray(values)[observed]
    return sum(exact(chosen), Fraction(0))


def largest_error(fit, X, Y, Z, alpha, beta) -> float:
    """Largest relative mismatch of a total or a weighted margin, in exact numbers."""
    tables = [(X, fit.w, fit.h, Fraction(1)), (Y, fit.a, fit.h, Fraction(alpha))]
    tables.append((Z, fit.w, fit.b, Fraction(beta)))
    sides: dict[tuple[int, int], list[Fraction]] = {}
    pairs = []
    for table, rows, cols, weight in tables:
        seen = ~np.isnan(table)
        left, right = exact(rows), exact(cols)
        fitted = [
            [
                left[i] * right[j] if seen[i, j] else Fraction(0)
                for j in range(len(cols))
            ]
            for i in range(len(rows))
        ]
        data = [exact(row) for row in np.nan_to_num(table)]
        pairs.append((sum(map(sum, fitted)), sum(map(sum, data))))
        for side, lines_f, lines_d in (
            (id(rows), fitted, data),
            (id(cols), zip(*fitted, strict=True), zip(*data, strict=True)),
        ):
            for k, (f, d) in enumerate(zip(lines_f, lines_d, strict=True)):
                total = sides.setdefault((side, k), [Fraction(0), Fraction(0)])
                total[0] += weight * sum(f)
                total[1] += weight * sum(d)
    pairs += [(f, d) for f, d in sides.values()]
    return float(max(abs(f / d - 1) for f, d in pairs if d))


# ------------------------------------------------------------------------- weights
@pytest.mark.parametrize("scale", [1e-230, 1e-223, 1e-200])
def test_a_weight_that_would_underflow_with_its_table(scale):
    Y = np.array([[1.0, 2.0]]) * scale
    fit = a1gm.fit_nmmf([[1.0, 2.0]], Y, alpha=1e-100)
    expected = paper.rank1_nmmf([[1.0, 2.0]], Y, alpha=1e-100)
    np.testing.assert_allclose(fit.a, expected[2], rtol=1e-14)
    assert fit.divergence == pytest.approx(0.0, abs=1e-15)
    assert fit.converged


@pytest.mark.parametrize("scale", [1e-300, 1.0, 1e300])
def test_opposite_weights_at_any_scale(scale):
    X, Y = np.array([[1.0, 2.0], [3.0, 4.0]]), np.array([[1.0, 5.0]])
    Z = np.array([[1.0], [4.0]])
    fit = a1gm.fit_nmmf(X * scale, Y * scale, Z * scale, alpha=1e-100, beta=1e100)
    expected = paper.rank1_nmmf(X, Y, Z, alpha=1e-100, beta=1e100)
    for got, want in zip((fit.w, fit.h, fit.a, fit.b), expected, strict=True):
        np.testing.assert_allclose(got / np.sqrt(scale), want, rtol=1e-12)
    assert np.isfinite(fit.divergence)


@pytest.mark.parametrize("bits", [0, 10, 20, 40, 70, 200])
def test_the_level_of_a_table_that_the_others_drown(bits):
    """With 1e10 it was 6 % off, with 1e12 eleven times too large, yet certified."""
    X, Y, Z = (with_holes(s, k) for k, s in enumerate(((9, 7), (4, 7), (9, 5))))
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
    for part, rows, cols in zip(
        parts, (slice(0, 6), slice(6, 12)), (slice(0, 5), slice(5, 10)), strict=True
    ):
        alone = a1gm.fit_nmmf(*part, **weights)
        np.testing.assert_allclose(whole.w[rows], alone.w, rtol=1e-7)
        np.testing.assert_allclose(whole.h[cols], alone.h, rtol=1e-7)


def test_the_level_when_most_entities_are_of_the_drowned_table_only():
    X, Y, Z = (with_holes(s, k) for k, s in enumerate(((30, 20), (4, 20), (30, 5))))
    Y[:, 2:], Z[2:] = nan, nan
    fit = a1gm.fit_nmmf(X, Y, Z, alpha=1e9, beta=1e11)
    assert largest_error(fit, X, Y, Z, 1e9, 1e11) < CLOSE
    assert fit.converged


def test_the_level_of_a_drowned_table_with_as_many_patterns_as_rows():
    X, Y, Z = (
        with_holes(s, k, 0.1) for k, s in enumerate(((400, 200), (9, 200), (400, 70)))
    )
    fit = a1gm.fit_nmmf(X, Y, Z, alpha=1e9, beta=1e12)
    for table, fitted in zip((X, Y, Z), fit.reconstruct(), strict=True):
        total = fitted[~np.isnan(table)].sum()
        assert total == pytest.approx(np.nansum(table), rel=CLOSE)
    assert fit.converged


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
    assert largest_error(fit, X, Y, Z, alpha, beta) < CLOSE


def test_cells_further_apart_than_float64_reaches_are_refused():
    with pytest.raises(NotRepresentableError, match="further apart"):
        a1gm.fit_nmmf([[1e300, 1e300]], [[1e-300, 1e-300]], alpha=1e-100)


def test_shared_factors_out_of_range_are_refused():
    with pytest.raises(NotRepresentableError, match="shared factors"):
        a1gm.fit_nmmf([[1e300, 1e300]], [[1e-300, 1e-300]])
    with pytest.raises(NotRepresentableError, match="shared factors"):
        a1gm.fit_nmmf([[1e-300, 1e-300]], [[1e300, 1e300]])


def test_a_row_whose_factor_would_be_0_is_refused():
    Y = [[1e300, 1e300], [1e-300, 1e-300]]  # one pattern, so one line of the table
    with pytest.raises(NotRepresentableError, match="shared factors"):
        a1gm.fit_nmmf([[1e300, 1e300]], Y)


@pytest.mark.parametrize("scale", [1e-300, 1e307])
def test_weights_that_are_no_product_beside_another_scale(scale):
    """The rows of a set with a power of two of its own were off by that power."""
    rng = np.random.default_rng(3)
    p, q, x, y = (rng.random(n) + 0.5 for n in (4, 3, 5, 2))
    tables = {
        ("p", "x"): np.outer(p, x),
        ("p", "y"): np.outer(p, y),
        ("q", "x"): np.outer(q, x) * scale,
        ("q", "y"): np.outer(q, y) * scale,
    }
    fit = a1gm.fit_relations(tables, {("q", "y"): 2.0})
    for key, table in tables.items():
        got = np.outer(fit.factors[key[0]], fit.factors[key[1]])
        np.testing.assert_allclose(got / table, 1.0, rtol=1e-9)


# ------------------------------------------------------------------ tables of weight 0
def test_passive_factors_out_of_range_are_refused():
    large, small = np.full((2, 2), 1e300), np.full((2, 2), 1e-300)
    for x, other in ((large, small), (small, large)):
        with pytest.raises(NotRepresentableError):
            a1gm.fit_nmmf(x, other, alpha=0)
        with pytest.raises(NotRepresentableError):
            a1gm.fit_nmmf(x, None, other, beta=0)


@pytest.mark.parametrize("scale", [1e-300, 1.0, 1e308])
@pytest.mark.parametrize("holes", [0.0, 0.3])
def test_passive_factors_at_the_ends_of_float64(scale, holes):
    X = np.outer([1.0, 2.0, 3.0], [1.0, 2.0, 0.5, 1.0])
    Y, Z = with_holes((2, 4), 1, holes) * scale, with_holes((3, 2), 2, holes) * scale
    fit = a1gm.fit_nmmf(X, Y, Z, alpha=0, beta=0)
    for n, row in enumerate(Y):
        seen = ~np.isnan(row)
        want = exact_sum(row, seen) / exact_sum(fit.h, seen)
        assert fit.a[n] == pytest.approx(float(want), rel=1e-12)
    for m, column in enumerate(Z.T):
        seen = ~np.isnan(column)
        want = exact_sum(column, seen) / exact_sum(fit.w, seen)
        assert fit.b[m] == pytest.approx(float(want), rel=1e-12)


def test_a_passive_table_of_zeros_still_has_factor_0():
    fit = a1gm.fit_nmmf([[1.0, 2.0]], [[0.0, 0.0], [1.0, 1.0]], alpha=0)
    assert fit.a[0] == 0.0
    assert fit.a[1] > 0.0


def test_a_passive_row_that_meets_columns_of_factor_0_only_is_unknown():
    X, Y = [[1.0, 0.0]], [[nan, 1.0], [2.0, nan]]
    with pytest.warns(EmptyLineWarning, match=r"a\[0\]"):
        fit = a1gm.fit_nmmf(X, Y, alpha=0)
    np.testing.assert_array_equal(np.isnan(fit.a), [True, False])


# ------------------------------------------------------------------------ huge values
@pytest.mark.parametrize("value", [4e307, 6e307, 1e308, 1.7e308])
def test_totals_above_the_largest_float(value):
    fit = a1gm.fit_nmmf(np.full((2, 2), value))
    np.testing.assert_allclose(fit.w, np.sqrt(value), rtol=1e-12)
    np.testing.assert_allclose(fit.h, np.sqrt(value), rtol=1e-12)


def test_joint_totals_above_the_largest_float():
    table = np.full((2, 2), 8e307 / 2)
    fit = a1gm.fit_nmmf(table, table, table)
    for factor in (fit.w, fit.h, fit.a, fit.b):
        np.testing.assert_allclose(factor, np.sqrt(4e307), rtol=1e-12)


def test_holes_in_a_table_whose_total_is_above_the_largest_float():
    X = np.full((4, 5), 1e307)
    X[0, 0] = X[1, 2] = nan
    fit = a1gm.fit_nmmf(X)
    np.testing.assert_allclose(np.outer(fit.w, fit.h) / 1e307, 1.0, rtol=1e-9)


# ----------------------------------------------------------------------- new rows
def test_new_rows_whose_sum_is_above_the_largest_float():
    model = a1gm.RankOneNMMF().fit([[1.0, 2.0], [2.0, 4.0]])
    got = model.transform([[1e308, 1.5e308], [1.0, 2.0]])
    want = [float((Fraction(1e308) + Fraction(1.5e308)) / exact_sum(model.col_factor_))]
    np.testing.assert_allclose(got[0], want, rtol=1e-14)
    np.testing.assert_allclose(got[1], model.row_factor_[0], rtol=1e-12)


def test_new_rows_whose_factor_is_no_float_are_refused():
    model = a1gm.RankOneNMMF().fit(np.full((2, 2), 1e-300))
    with pytest.raises(NotRepresentableError, match="row 1"):
        model.transform([[1e-300, 1e-300], [1e300, 1e300]])


@pytest.mark.parametrize("beta", [1e-100, 1.0, 1e100])
def test_new_rows_that_meet_one_table_only(beta):
    X, Z = np.array([[1.0, 2.0], [2.0, 4.0]]), np.array([[3.0], [6.0]])
    model = a1gm.RankOneNMMF(beta=beta).fit(X, Z=Z)
    rows = np.array([[1e-230, 2e-230], [nan, nan]])
    got = model.transform(rows, Z=[[nan], [3e-230]])
    np.testing.assert_allclose(got[:, 0] / model.row_factor_[0], 1e-230, rtol=1e-12)


def test_new_rows_that_only_a_table_of_weight_0_knows():
    model = a1gm.RankOneNMMF(beta=0.0).fit([[1.0, 2.0]], Z=[[3.0]])
    with pytest.warns(EmptyLineWarning):
        assert np.isnan(model.transform([[nan, nan]], Z=[[3.0]])).all()


def test_rows_of_zeros_beside_extreme_ones():
    X = np.array([[1e-300, 2e-300, 0.0], [0.0, 0.0, 0.0]])
    Y = np.array([[3e300, 6e300, 0.0]])
    with pytest.raises(NotRepresentableError):  # a would be 1e450
        a1gm.fit_nmmf(X, Y)
    fit = a1gm.fit_nmmf(X, Y * 1e-250, alpha=1e-100)
    np.testing.assert_allclose(np.outer(fit.w, fit.h), X, rtol=1e-12)
    assert fit.w[1] == fit.h[2] == 0.0
