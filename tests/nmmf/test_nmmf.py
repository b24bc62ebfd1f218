"""Three tables that share factors."""

import pickle
import warnings

import numpy as np
import pandas as pd
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from support.nmmf_oracle import minimise

import a1gm
from a1gm import paper
from a1gm._observe import observe as _observe
from a1gm.exceptions import (
    DataError,
    EmptyLineWarning,
    InfiniteValuesError,
    LabelError,
    NegativeValuesError,
    NotRepresentableError,
    ParameterError,
    UndeterminedError,
    UndeterminedWarning,
)

CLOSED = 1e-12  # a formula against a formula: a few roundings
FACTORS = ("w", "h", "a", "b")


def made(seed, shape=(30, 8, 5, 4), holes=0.0):
    rng = np.random.default_rng(seed)
    rows, cols, more_rows, more_cols = shape
    shapes = (rows, cols), (more_rows, cols), (rows, more_cols)
    tables = tuple(rng.random(s) + 0.1 for s in shapes)
    for T in tables:
        T[rng.random(T.shape) < holes] = np.nan
    return tables


# ------------------------------------------------------------------ without holes
@given(
    seed=st.integers(0, 10**6),
    shape=st.tuples(*[st.integers(1, 9)] * 4),
    alpha=st.just(0.0) | st.floats(1e-100, 1e100),
    beta=st.just(0.0) | st.floats(1e-100, 1e100),
)
@example(seed=1, shape=(400, 30, 9, 70), alpha=0.5, beta=2.0)
@example(seed=1, shape=(5, 80, 6, 1), alpha=1e12, beta=1e-9)
@settings(max_examples=60, deadline=None)
def test_equals_theorem_1(seed, shape, alpha, beta):
    X, Y, Z = made(seed, shape)
    fit = a1gm.fit_nmmf(X, Y, Z, alpha=alpha, beta=beta)
    expected = paper.rank1_nmmf(X, Y, Z, alpha, beta)
    for name, factor in zip(FACTORS, expected, strict=True):
        np.testing.assert_allclose(getattr(fit, name), factor, rtol=CLOSED)
    assert fit.solver == "closed form"
    assert fit.n_iter == 0
    assert fit.certificate < 1e-12


def test_without_side_tables_it_is_the_plain_fit():
    X = made(2, holes=0.2)[0]
    plain = a1gm.fit(X)
    for tables in ((X,), (X, None, None)):
        fit = a1gm.fit_nmmf(*tables)
        np.testing.assert_allclose(fit.reconstruct()[0], plain.reconstruct(), rtol=1e-9)
        assert fit.divergence == pytest.approx(plain.divergence, rel=1e-12)
        assert len(fit.a) == len(fit.b) == 0
        assert fit.reconstruct()[1:] == (None, None)


def test_limits_of_alpha():
    X, Y, Z = made(3, holes=0.15)
    at_zero = a1gm.fit_nmmf(X, Y, Z, alpha=0.0)
    near_zero = a1gm.fit_nmmf(X, Y, Z, alpha=1e-10)
    for name in FACTORS:
        np.testing.assert_allclose(
            getattr(near_zero, name), getattr(at_zero, name), rtol=1e-7
        )
    # A table that outweighs all others has its own best fit.
    heavy = a1gm.fit_nmmf(X, Y, Z, alpha=1e10)
    alone = a1gm.fit(Y)
    np.testing.assert_allclose(heavy.reconstruct()[1], alone.reconstruct(), rtol=1e-7)


# --------------------------------------------------------------------- with holes
def test_as_many_patterns_as_rows_gives_the_same(monkeypatch):
    X, Y, Z = made(5, (300, 12, 60, 7), holes=0.3)
    X[3], Z[3, 1:] = np.nan, np.nan  # a leaf
    few = a1gm.fit_nmmf(X, Y, Z, alpha=0.4, beta=3.0)
    monkeypatch.setattr(_observe, "TABLE_CELLS", 50)
    wide = a1gm.fit_nmmf(X, Y, Z, alpha=0.4, beta=3.0)
    for name in FACTORS:
        np.testing.assert_allclose(getattr(wide, name), getattr(few, name), rtol=1e-8)


# ------------------------------------------------- zeros, blocks and unknown cells
def made_with_zeros(rng):
    """Three small tables with many zeros and holes, none of them empty."""
    n_rows, n_cols, n_y, n_z = rng.integers(1, 7, 4)
    holes, zeros = rng.random(2)
    tables = []
    for shape in ((n_rows, n_cols), (n_y, n_cols), (n_rows, n_z)):
        T = np.where(rng.random(shape) < zeros, 0.0, 1.0 + rng.poisson(2, shape))
        T[rng.random(shape) < holes] = np.nan
        T.flat[rng.integers(T.size)] = 1.0
        tables.append(T)
    return tables


@given(seed=st.integers(0, 10**6))
@settings(max_examples=80, deadline=None)
def test_what_is_known_is_what_the_block_table_says(seed):
    rng = np.random.default_rng(seed)
    X, Y, Z = made_with_zeros(rng)
    (n, m), more_rows, more_cols = X.shape, len(Y), Z.shape[1]
    whole = np.full((n + more_rows, m + more_cols), np.nan)
    whole[:n, :m], whole[n:, :m], whole[:n, m:] = X, Y, Z
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fit = a1gm.fit_nmmf(X, Y, Z)
        joint = a1gm.fit(whole)
    expected = joint.reconstruct()
    places = (slice(0, n), slice(0, m)), (slice(n, None), slice(0, m))
    places = (*places, (slice(0, n), slice(m, None)))
    for fitted, place in zip(fit.reconstruct(), places, strict=True):
        np.testing.assert_allclose(fitted, expected[place], rtol=1e-7, atol=1e-9)
    for name, (rows, cols) in zip("XYZ", places, strict=True):
        inside = [
            cell
            for cell in joint.undetermined
            if cell.row in range(*rows.indices(n + more_rows))
            and cell.column in range(*cols.indices(m + more_cols))
        ]
        found = fit.undetermined[name]
        assert [c.kind for c in found] == [c.kind for c in inside]
    assert fit.divergence == pytest.approx(joint.divergence, rel=1e-7, abs=1e-9)
    assert fit.attained == joint.attained
    assert fit.n_blocks == joint.n_blocks


def test_unconnected_tables_are_blocks():
    X = np.array([[1.0, np.nan], [np.nan, 2.0]])
    with pytest.warns(
        UndeterminedWarning, match=r"2 missing cells of X are undetermined.*X\[0, 1\]"
    ):
        fit = a1gm.fit_nmmf(X, Y=[[1.0, np.nan]])
    assert fit.n_blocks == 2
    np.testing.assert_array_equal(fit.row_block, [0, 1])
    np.testing.assert_array_equal(fit.col_block, [0, 1])
    np.testing.assert_array_equal(fit.blocks["a"], [0])
    assert fit.n_undetermined == 3
    # A table that joins the two blocks makes everything known.
    joined = a1gm.fit_nmmf(X, Y=[[1.0, 4.0]])
    assert joined.n_undetermined == 0
    np.testing.assert_allclose(joined.impute(X)[0], [[1.0, 4.0], [0.5, 2.0]])
    with pytest.raises(UndeterminedError, match="cells of X"):
        a1gm.fit_nmmf(X, on_undetermined="raise")


def test_weight_zero_across_blocks_is_undetermined():
    X = np.array([[1.0, np.nan], [np.nan, 2.0]])
    with pytest.warns() as said:
        fit = a1gm.fit_nmmf(X, Y=[[1.0, 4.0], [3.0, np.nan]], alpha=0.0)
    assert {w.category for w in said} == {EmptyLineWarning, UndeterminedWarning}
    assert np.isnan(fit.a[0])
    assert fit.a[1] * fit.h[0] == pytest.approx(3.0)
    filled = fit.impute(Y=[[1.0, 4.0], [3.0, np.nan]])[1]
    assert np.isnan(filled[1, 1])


def test_empty_entities_are_nan_and_named():
    X, Y, Z = made(8)
    X[2], Z[2] = np.nan, np.nan
    with pytest.warns(EmptyLineWarning, match=r"w\[2\]"):
        fit = a1gm.fit_nmmf(X, Y, Z)
    assert np.isnan(fit.w[2])
    assert np.isfinite(np.delete(fit.w, 2)).all()
    assert np.isnan(fit.impute(X)[0][2]).all()
    with pytest.warns(UndeterminedWarning):
        fit.impute(X, on_undetermined="warn")


# -------------------------------------------------------------------------- faults
def bad(shape, value):
    table = np.ones(shape)
    table[2, 1] = value
    return table


@pytest.mark.parametrize(
    ("options", "error", "match"),
    [
        ({"Y": np.ones((5, 7))}, DataError, "Y has 7 columns, but X has 8"),
        ({"Z": np.ones((29, 4))}, DataError, "Z has 29 rows, but X has 30"),
        ({"Y": np.ones((0, 9))}, DataError, "Y needs at least one row"),
        ({"Z": np.ones((7, 0))}, DataError, "Z needs at least one row"),
        ({"X": np.full((30, 8), np.nan)}, DataError, "Nothing is observed in X"),
        ({"Z": np.full((30, 4), np.nan)}, DataError, "Nothing is observed in Z"),
        ({"X": bad((30, 8), -3)}, NegativeValuesError, r"X\[2, 1\] = -3"),
        ({"Y": bad((5, 8), np.inf)}, InfiniteValuesError, r"Y\[2, 1\] = inf"),
        ({"Z": bad((30, 4), -3)}, NegativeValuesError, r"Z\[2, 1\] = -3"),
        ({"alpha": -1.0}, ParameterError, "alpha must be"),
        ({"beta": np.inf}, ParameterError, "beta must be"),
        ({"alpha": np.nan}, ParameterError, "alpha must be"),
        ({"alpha": 10**400}, ParameterError, "alpha must be 0 or between"),
        ({"alpha": 1e-200}, ParameterError, "alpha must be 0 or between"),
        ({"Y": bad((5, 8), -3), "alpha": 0}, NegativeValuesError, r"Y\[2, 1\] = -3"),
        (
            {"Z": bad((30, 4), np.inf), "beta": 0},
            InfiniteValuesError,
            r"Z\[2, 1\] = inf",
        ),
        ({"Y": bad((5, 8), 1e150)}, NotRepresentableError, r"^Y\[2, 1\]"),
        ({"Z": bad((30, 4), 1e60), "beta": 1e90}, NotRepresentableError, r"^Z\[2, 1\]"),
        ({"alpha": True}, ParameterError, r"alpha must be a finite number.*True"),
        ({"tol": 0.0}, ParameterError, "tol"),
    ],
)
def test_faults_are_named(options, error, match):
    X, Y, Z = made(9)
    with pytest.raises(error, match=match):
        a1gm.fit_nmmf(**{"X": X, "Y": Y, "Z": Z, **options})


@pytest.mark.parametrize("kind", [np.float16, np.float32, np.int64, int])
def test_weights_of_any_type(kind):
    X, Y, _ = made(9)
    fit = a1gm.fit_nmmf(X, Y, alpha=kind(2))
    np.testing.assert_allclose(fit.a, a1gm.fit_nmmf(X, Y, alpha=2.0).a)


def test_a_sparse_table_is_refused_with_what_its_absent_cells_would_be():
    sparse = pytest.importorskip("scipy.sparse")
    S = sparse.csr_array(np.eye(2))
    with pytest.raises(ParameterError, match=r"Z is a SciPy sparse.*zeros.*missing"):
        a1gm.fit_nmmf(np.ones((2, 2)), Z=S)


# ---------------------------------------------------------------------- invariances
def test_inputs_are_not_modified_and_layout_does_not_matter():
    X, Y, Z = made(12, holes=0.2)
    copies = [T.copy() for T in (X, Y, Z)]
    fit = a1gm.fit_nmmf(X, Y, Z, alpha=0.5, beta=0.25)
    for T, copy in zip((X, Y, Z), copies, strict=True):
        np.testing.assert_array_equal(T, copy)
    turned = np.asfortranarray(X), Y[:, ::-1].copy()[:, ::-1], Z.tolist()
    masked = (np.ma.masked_array(np.nan_to_num(T), np.isnan(T)) for T in (X, Y, Z))
    for tables in (turned, masked):
        other = a1gm.fit_nmmf(*tables, alpha=0.5, beta=0.25)
        for name in FACTORS:
            found, expected = getattr(other, name), getattr(fit, name)
            np.testing.assert_allclose(found, expected, rtol=1e-12)


def test_repr_and_pickle():
    X, Y, Z = made(15, (2000, 50, 5, 4))
    X[:700, :3] = np.nan
    fit = a1gm.fit_nmmf(X, Y, Z, alpha=0.5)
    assert "Y 5 x 50 (weight 0.5)" in repr(fit)
    assert "<table>" in fit._repr_html_()
    again = pickle.loads(pickle.dumps(fit))
    assert again.divergence == fit.divergence
    np.testing.assert_array_equal(again.impute(X)[0], fit.impute(X)[0])
    assert repr(again) == repr(fit)
    assert len(pickle.dumps(fit)) < X.nbytes / 10


# ------------------------------------------------------ lists, counts and fills
WEIGHTS = [(1.0, 1.0), (0.0, 1.0), (1.0, 0.0), (0.0, 0.0), (0.5, 3.0)]


@pytest.mark.parametrize("weights", WEIGHTS, ids=str)
def test_counts_lists_and_filled_tables_agree(weights):
    rng = np.random.default_rng(7)
    alpha, beta = weights
    for _ in range(40):
        tables = made_with_zeros(rng)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            fit = a1gm.fit_nmmf(*tables, alpha=alpha, beta=beta)
            filled = fit.impute(*tables)
        n_left = 0
        for name, T, F, R in zip("XYZ", tables, filled, fit.reconstruct(), strict=True):
            left, hole = np.argwhere(np.isnan(F)), np.isnan(T)
            np.testing.assert_array_equal(F[hole], R[hole])
            # The product of the factors, or 0 between blocks.
            rows, cols = {"X": "wh", "Y": "ah", "Z": "wb"}[name]
            product = np.outer(getattr(fit, rows), getattr(fit, cols))
            known = ~np.isnan(R)
            assert not np.isnan(product[known]).any()
            assert (np.isclose(R, product) | (R == 0.0))[known].all()
            found = fit.undetermined[name]
            np.testing.assert_array_equal(np.stack([found.row, found.column], 1), left)
            n_left += len(left)
        assert fit.n_undetermined == n_left


# ------------------------------------------------------------------- the optimum
SETS = {"X": ("w", "h"), "Y": ("a", "h"), "Z": ("w", "b")}
OPTIMUM = 1e-9  # what L-BFGS itself reaches, relative


@pytest.mark.oracle
@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("weights", [(1, 1), (3, 0.2), (0.01, 40)])
def test_no_minimiser_is_better(seed, weights):
    X, Y, Z = made(seed, (9, 6, 4, 3), holes=0.2)
    alpha, beta = weights
    fit = a1gm.fit_nmmf(X, Y, Z, alpha=alpha, beta=beta)
    tables = dict(zip(SETS.values(), (X, Y, Z), strict=True))
    sizes = {"w": 9, "h": 6, "a": 4, "b": 3}
    by_pair = dict(zip(SETS.values(), (1.0, alpha, beta), strict=True))
    least, _ = minimise(tables, by_pair, sizes)
    assert fit.divergence <= least * (1 + OPTIMUM)
    assert fit.divergence >= least * (1 - 1e-6)
    weighted = sum(
        weight * fit.divergences[name]
        for name, weight in {"X": 1.0, "Y": alpha, "Z": beta}.items()
    )
    assert fit.divergence == pytest.approx(weighted, rel=1e-9)
    assert fit.certificate <= 1e-10


def test_the_joint_fit_is_that_of_one_table():
    X, Y, Z = made(21, holes=0.2)
    alpha, beta = 0.5, 3.0
    fit = a1gm.fit_nmmf(X, Y, Z, alpha=alpha, beta=beta)
    corner = np.full((len(Y), Z.shape[1]), np.nan)
    whole = a1gm.fit(np.block([[X, beta * Z], [alpha * Y, corner]]))
    np.testing.assert_allclose(fit.joint.row_factor, whole.row_factor, rtol=1e-12)
    np.testing.assert_allclose(fit.joint.col_factor, whole.col_factor, rtol=1e-12)
    ours, theirs = fit.joint.uncertainty(), whole.uncertainty()
    assert ours.dispersion == pytest.approx(theirs.dispersion, rel=1e-12)
    assert ours.standard_error(3, 2) == pytest.approx(theirs.standard_error(3, 2))
    assert fit.joint.shape == whole.shape


def test_the_joint_fit_can_be_saved(tmp_path):
    frame = pd.DataFrame({"a": [1.0, 2.0], "b": [2.0, np.nan]}, index=["s", "t"])
    other = pd.DataFrame({"a": [3.0], "b": [6.0]}, index=["u"])
    fit = a1gm.fit_nmmf(frame, other)
    fit.joint.save(tmp_path / "joint.a1gm")
    again = a1gm.load(tmp_path / "joint.a1gm")
    assert again.predict("t", "b") == pytest.approx(4.0)
    assert again.predict("u", "b") == pytest.approx(6.0)


@pytest.mark.parametrize("bits", [0, 10, 20, 40, 70, 200])
def test_the_level_of_a_table_that_the_others_drown(bits):
    """With 1e10 it was 6 % off, with 1e12 eleven times too large, yet certified."""
    X, Y, Z = made(3, (9, 7, 4, 5), holes=0.25)
    weight = 2.0**bits
    fit = a1gm.fit_nmmf(X, Y, Z, alpha=weight, beta=weight)
    assert fit.converged
    fitted = fit.reconstruct()[0][~np.isnan(X)].sum()
    assert fitted == pytest.approx(np.nansum(X), rel=1e-7)


def test_a_table_of_weight_zero_gets_its_factor_as_new_rows_do():
    X, Y, Z = made(4, holes=0.3)
    fit = a1gm.fit_nmmf(X, Y, Z, alpha=0.0, beta=0.0)
    plain = a1gm.fit(X)
    transformed = plain.transform(Y)
    np.testing.assert_allclose(
        np.outer(fit.a, fit.h), np.outer(transformed, plain.col_factor), rtol=1e-12
    )
    expected = np.nansum(Z, axis=0) / (fit.w @ ~np.isnan(Z))
    np.testing.assert_allclose(fit.b, expected, rtol=1e-12)
    np.testing.assert_allclose(fit.impute(Y=Y)[1], plain.impute(Y), rtol=1e-12)


def test_a_placed_row_with_data_in_columns_of_factor_0_only_is_unknown():
    X, Y = [[1.0, 0.0]], [[np.nan, 1.0], [2.0, np.nan]]
    with pytest.warns(EmptyLineWarning, match=r"a\[0\]"):
        fit = a1gm.fit_nmmf(X, Y, alpha=0)
    np.testing.assert_array_equal(np.isnan(fit.a), [True, False])


# --------------------------------------------------------------------------- names
def test_names_must_agree():
    users, items = list("abcdefghi"), ["i", "j", "k", "l", "m", "n"]
    X = pd.DataFrame(np.ones((9, 6)), users, items)
    Z = pd.DataFrame(np.ones((9, 3)), users[::-1], ["p", "q", "r"])
    Y = pd.DataFrame(np.ones((4, 6)), columns=[*items[:5], "z"])
    with pytest.raises(LabelError, match=r"rows of Z.*0 is 'i' in Z and 'a' in X"):
        a1gm.fit_nmmf(X, Z=Z)
    with pytest.raises(LabelError, match=r"columns of Y.*number 5 is 'z' in Y and 'n'"):
        a1gm.fit_nmmf(X, Y)
    # Numbers that only count, and arrays, agree with any names.
    a1gm.fit_nmmf(X, np.ones((4, 6)), Z.reset_index(drop=True))
    a1gm.fit_nmmf(X, pd.DataFrame(np.ones((4, 6))), Z.to_numpy())
    fit = a1gm.fit_nmmf(X, Y.rename(columns={"z": "n"}), Z.loc[users])
    assert list(fit.impute(X)[0].columns) == items
    with pytest.raises(LabelError, match="columns of Z and of the fitted table"):
        fit.impute(Z=Z.loc[users, ["q", "p", "r"]])
    with pytest.raises(ParameterError, match="Y is not among the fitted tables: X"):
        a1gm.fit_nmmf(X).impute(Y=Y)


def test_an_index_that_only_counts_from_zero_is_no_names():
    d = pd.DataFrame(np.ones((30, 3)))
    X, Z = d.iloc[0:6], d.iloc[10:16]
    a1gm.fit_nmmf(X, None, Z)
    a1gm.fit_nmmf(Z, None, X)
    # Any other numbers are names, and so are the same ones in another order.
    with pytest.raises(LabelError, match=r"number 0 is 20 in Z and 10 in X"):
        a1gm.fit_nmmf(Z, None, d.iloc[20:26])
    with pytest.raises(LabelError, match=r"number 0 is 5 in Z and 0 in X"):
        a1gm.fit_nmmf(X, None, X.iloc[::-1])


def test_what_stays_missing_is_named_by_its_table():
    X = np.array([[1.0, np.nan], [np.nan, 2.0]])
    Z = [[np.nan], [3.0]]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fit = a1gm.fit_nmmf(X, [[1.0, np.nan]], Z)
    with pytest.warns(UndeterminedWarning, match=r", at Z\[0, 0\]"):
        fit.impute(None, None, Z, on_undetermined="warn")
    with pytest.raises(UndeterminedError, match=r", at Z\[0, 0\]"):
        fit.impute(None, None, Z, on_undetermined="raise")
    with pytest.raises(DataError, match="Z has 3 rows, but the fitted table has 2"):
        fit.impute(Z=np.ones((3, 1)))
