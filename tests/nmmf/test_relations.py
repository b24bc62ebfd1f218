"""Any number of tables that share sets of entities."""

import warnings
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.nmmf_oracle import divergence, minimise

import a1gm
from a1gm.exceptions import (
    ConvergenceWarning,
    DataError,
    InfiniteValuesError,
    LabelError,
    NegativeValuesError,
    NotNumericError,
    ParameterError,
    UndeterminedError,
    UndeterminedWarning,
    WeightsError,
)

SIZES = {"user": 9, "item": 6, "age": 3, "group": 4, "store": 5, "city": 3}
OPTIMUM = 1e-9  # what L-BFGS itself reaches, relative

CHAIN = [("user", "item"), ("user", "age"), ("group", "item"), ("store", "item")]
# user-item-store-age-user: four tables in a circle
CIRCLE = [("user", "item"), ("store", "item"), ("store", "age"), ("user", "age")]
TURNED = [("user", "item"), ("item", "store"), ("city", "store"), ("age", "user")]


def made(keys, seed=0, holes=0.2):
    rng = np.random.default_rng(seed)
    tables = {}
    for row, col in keys:
        T = rng.random((SIZES[row], SIZES[col])) + 0.1
        T[rng.random(T.shape) < holes] = np.nan
        tables[row, col] = T
    return tables


def cost(fit, tables, weights):
    return sum(
        weights[key] * divergence(T, np.outer(fit.factors[key[0]], fit.factors[key[1]]))
        for key, T in tables.items()
    )


LINE = CHAIN[:3]  # the three tables of fit_nmmf


@pytest.mark.oracle
@pytest.mark.parametrize(
    ("keys", "weights", "seed"),
    [
        *((keys, (1, 1, 1, 1), 3) for keys in (CHAIN, CIRCLE, TURNED)),
        *((keys, (1, 2.7, 4.4, 6.1), 3) for keys in (CHAIN, CIRCLE, TURNED)),
        *product([LINE], [(1, 1, 1), (1, 3, 0.2), (1, 0.01, 40)], range(5)),
    ],
)
@pytest.mark.filterwarnings("ignore::a1gm.exceptions.UndeterminedWarning")
def test_no_minimiser_is_better(keys, weights, seed):
    tables = made(keys, seed)
    weights = dict(zip(keys, weights, strict=True))
    fit = a1gm.fit_relations(tables, weights)
    if keys is LINE:
        (X, Z, Y), (_, beta, alpha) = tables.values(), weights.values()
        same = a1gm.fit_nmmf(X, Y, Z, alpha=alpha, beta=beta)
        assert same.divergence == pytest.approx(fit.divergence, rel=1e-12)
        assert same.certificate <= 1e-10
    sizes = {n: s for n, s in SIZES.items() if any(n in key for key in keys)}
    least, _ = minimise(tables, weights, sizes)
    assert fit.divergence <= least * (1 + OPTIMUM)
    assert fit.divergence >= least * (1 - 1e-6)
    assert fit.divergence == pytest.approx(cost(fit, tables, weights), rel=1e-12)
    assert fit.certificate <= 1e-10


def test_weights_in_a_circle_that_are_a_product_are_applied_to_the_cells():
    tables = made(CIRCLE)
    a, b = {"user": 2.0, "store": 0.5}, {"item": 3.0, "age": 7.0}
    weights = {key: a[key[0]] * b[key[1]] for key in CIRCLE}
    fit = a1gm.fit_relations(tables, weights)
    assert not fit._joint.has_weights
    weights[CIRCLE[3]] *= 2.0
    assert a1gm.fit_relations(tables, weights)._joint.has_weights


@given(seed=st.integers(0, 10**6), keys=st.sampled_from([CHAIN, CIRCLE, TURNED]))
@settings(max_examples=30, deadline=None)
def test_exact_data_are_recovered(seed, keys):
    rng = np.random.default_rng(seed)
    truth = {name: rng.random(size) + 0.2 for name, size in SIZES.items()}
    whole = {key: np.outer(truth[key[0]], truth[key[1]]) for key in keys}
    holed = {}
    for key, T in whole.items():
        holes = rng.random(T.shape) < 0.4
        holes[0], holes[:, 0] = False, False
        holed[key] = np.where(holes, np.nan, T)
    weights = {key: float(rng.random() + 0.1) for key in keys}
    fit = a1gm.fit_relations(holed, weights)
    for key, filled in fit.impute(holed).items():
        np.testing.assert_allclose(filled, whole[key], rtol=1e-7)


@given(seed=st.integers(0, 10**6), keys=st.sampled_from([CHAIN, CIRCLE, TURNED]))
@settings(max_examples=20, deadline=None)
def test_order_of_the_tables_does_not_matter(seed, keys):
    rng = np.random.default_rng(seed)
    tables = made(keys, seed)
    weights = {key: float(rng.random() + 0.1) for key in keys}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fit = a1gm.fit_relations(tables, weights)
        order = [keys[k] for k in rng.permutation(len(keys))]
        other = a1gm.fit_relations({k: tables[k] for k in order}, weights)
    for key, fitted in fit.reconstruct().items():
        np.testing.assert_allclose(other.reconstruct()[key], fitted, rtol=1e-7)


def test_a_table_of_weight_zero_does_not_steer():
    tables = made(CHAIN)
    fit = a1gm.fit_relations(tables, {("user", "age"): 0.0, ("store", "item"): 0})
    rest = a1gm.fit_relations({k: tables[k] for k in (CHAIN[0], CHAIN[2])})
    for name in ("user", "item", "group"):
        np.testing.assert_allclose(fit.factors[name], rest.factors[name], rtol=1e-9)
    T = tables["store", "item"]
    best = np.nansum(T, axis=1) / (~np.isnan(T) @ fit.factors["item"])
    np.testing.assert_allclose(fit.factors["store"], best, rtol=1e-12)
    filled = fit.impute({("user", "age"): tables["user", "age"]})["user", "age"]
    assert np.isfinite(filled).all()


def test_tables_that_share_nothing_are_blocks_that_need_no_warning():
    tables = made([("user", "item"), ("city", "store")], holes=0.0)
    fit = a1gm.fit_relations(tables)
    assert fit.n_blocks == 2
    assert fit.n_undetermined == 0
    for key, T in tables.items():
        alone = a1gm.fit(T)
        np.testing.assert_allclose(
            fit.reconstruct()[key], alone.reconstruct(), rtol=1e-12
        )
        assert fit.factors[key[0]].sum() == pytest.approx(fit.factors[key[1]].sum())


# -------------------------------------------------------------------------- faults
def ones(*keys, bad=1.0):
    """Tables of ones; the last has one cell with another value."""
    tables = {key: np.ones((SIZES[key[0]], SIZES[key[1]])) for key in keys}
    tables[keys[-1]][-2, 1] = bad
    return tables


ITEMS, STORES = ("user", "item"), ("item", "store")
ONE = ones(ITEMS)
ODD = (ITEMS, STORES, ("store", "user")), (ITEMS, ("user", "age"), ("item", "age"))


@pytest.mark.parametrize(
    ("tables", "error", "match"),
    [
        ([np.ones((2, 2))], ParameterError, r"tables must be a mapping.*list"),
        ({}, ParameterError, "at least one table"),
        ({"user": np.ones((2, 2))}, ParameterError, "not a pair"),
        # Closed chains of an odd number of tables, and two tables of the same sets.
        (ones(("user", "user")), ParameterError, r"Table \('user', 'user'\)"),
        (ones(*ODD[0]), ParameterError, r"Table \('store', 'user'\)"),
        (ones(*ODD[1]), ParameterError, r"Table \('item', 'age'\)"),
        (ones(ITEMS, ITEMS[::-1]), ParameterError, r"same entities.*'item', 'user'"),
        (ONE | {("age", "item"): np.ones((3, 5))}, DataError, "5 columns.*'item'"),
        (ONE | {STORES: np.ones((7, 5))}, DataError, r"has 7 rows.*6 columns"),
        (ONE | {STORES: np.full((6, 5), np.nan)}, DataError, r"'store'\).*6 x 5"),
        # Cells of a table that is read transposed.
        (ones(ITEMS, STORES, bad=-2), NegativeValuesError, r"'store'\)\[4, 1\] = -2"),
        (ones(ITEMS, STORES, bad=np.inf), InfiniteValuesError, r"'\)\[4, 1\] = inf"),
    ],
)
def test_tables_are_checked(tables, error, match):
    with pytest.raises(error, match=match):
        a1gm.fit_relations(tables)


@pytest.mark.parametrize(
    ("weights", "match"),
    [
        (2.0, r"weights must be a mapping.*float"),
        ({("item", "user"): 1.0}, "weights name"),
        ({ITEMS: -1.0}, r"weight of \('user', 'item'\).*-1"),
        ({ITEMS: True}, r"weight of \('user', 'item'\).*True"),
        ({ITEMS: 0.0, ("city", "store"): 0}, "All weights are zero"),
        ({("city", "store"): 0.0}, r"\('city', 'store'\)\) has weight 0"),
    ],
)
def test_weights_are_checked(weights, match):
    with pytest.raises(WeightsError, match=match):
        a1gm.fit_relations(ones(ITEMS, ("city", "store")), weights)


def test_two_tables_of_the_same_sets_may_have_weight_zero():
    a1gm.fit_relations(ones(ITEMS, ITEMS[::-1]), {ITEMS[::-1]: 0.0})


def test_a_chain_of_tables_of_weight_zero_is_named_by_what_is_unknown():
    tables = {("u", "i"): np.ones((2, 3)), ("i", "s"): np.ones((3, 2))}
    tables["s", "t"] = np.ones((2, 4))
    passive = {("i", "s"): 0.0, ("s", "t"): 0.0}
    with pytest.raises(
        WeightsError, match=r"'t' \(\('s', 't'\)\) has weight 0.*factors of 't'"
    ):
        a1gm.fit_relations(tables, passive)
    del tables["s", "t"], passive["s", "t"]
    assert np.isfinite(a1gm.fit_relations(tables, passive).factors["s"]).all()


def test_names_must_agree():
    pd = pytest.importorskip("pandas")
    users, items = list("abcdefghi"), ["i", "j", "k", "l", "m", "n"]
    X = pd.DataFrame(np.ones((9, 6)), users, items)
    Z = pd.DataFrame(np.ones((9, 3)), users[::-1], ["p", "q", "r"])
    Y = pd.DataFrame(np.ones((4, 6)), columns=[*items[:5], "z"])
    with pytest.raises(LabelError, match=r"rows of Z.*0 is 'i' in Z and 'a' in X"):
        a1gm.fit_nmmf(X, Z=Z)
    with pytest.raises(LabelError, match=r"columns of Y.*number 5 is 'z' in Y and 'n'"):
        a1gm.fit_nmmf(X, Y)
    with pytest.raises(
        LabelError, match=r"columns of \('store', 'user'\) and the rows"
    ):
        a1gm.fit_relations({("user", "item"): X, ("store", "user"): Z.T})
    # Numbers that only count, and arrays, agree with any names.
    a1gm.fit_nmmf(X, np.ones((4, 6)), Z.reset_index(drop=True))
    a1gm.fit_nmmf(X, pd.DataFrame(np.ones((4, 6))), Z.to_numpy())
    fit = a1gm.fit_nmmf(X, Y.rename(columns={"z": "n"}), Z.loc[users])
    assert list(fit.impute(X)[0].columns) == items
    with pytest.raises(LabelError, match="columns of the fitted table"):
        fit.impute(Z=Z.loc[users, ["q", "p", "r"]])


@pytest.mark.parametrize(
    ("row", "col", "shape"), [("u", "t", (3, 2)), ("t", "u", (2, 3))]
)
def test_a_passive_table_between_unconnected_blocks_is_undetermined(row, col, shape):
    tables = {
        ("u", "i"): np.array([[1.0, 2], [3, 4], [5, 6]]),
        ("s", "t"): np.ones((2, 2)),
        (row, col): np.ones(shape),
    }
    passive, words = {(row, col): 0.0}, rf"6 observed cells of \('{row}', '{col}'\)"
    with pytest.warns(UndeterminedWarning, match=rf"{words}.*weight 0"):
        fit = a1gm.fit_relations(tables, passive)
    np.testing.assert_array_equal(fit.reconstruct()[row, col], np.full(shape, np.nan))
    assert np.isnan(fit.divergences[row, col])
    assert np.isfinite(fit.divergence)
    with pytest.raises(UndeterminedError, match=words):
        a1gm.fit_relations(tables, passive, on_undetermined="raise")


# ------------------------------------------------------- filling, as its owner sees it
def holed():
    return np.array([[1.0, np.nan], [np.nan, 2.0]])


def test_what_stays_missing_is_named_by_its_table():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fit = a1gm.fit_nmmf(holed(), [[1.0, np.nan]], [[np.nan], [3.0]])
        chain = a1gm.fit_relations({("u", "i"): holed(), ("c", "u"): holed()})
    Z = [[np.nan], [3.0]]
    with pytest.warns(UndeterminedWarning, match=r", at Z\[0, 0\]"):
        fit.impute(None, None, Z, on_undetermined="warn")
    with pytest.raises(UndeterminedError, match=r", at Z\[0, 0\]"):
        fit.impute(None, None, Z, on_undetermined="raise")
    for key in (("u", "i"), ("c", "u")):
        with pytest.warns(
            UndeterminedWarning, match=rf"\('{key[0]}', '{key[1]}'\)\[0, 1\]"
        ):
            chain.impute({key: holed()}, on_undetermined="warn")
        with pytest.raises(DataError, match=rf"^\('{key[0]}'.*3 rows, but the fitted"):
            chain.impute({key: np.ones((3, 2))})
    with pytest.raises(NotNumericError, match=r"^\('c', 'u'\) holds text"):
        chain.impute({("c", "u"): np.array([["a", "b"], ["c", "d"]])})
    with pytest.raises(ParameterError, match="not among the fitted"):
        chain.impute({("a", "b"): np.ones((2, 2))})
    with pytest.raises(ParameterError, match=r"tables must be a mapping.*ndarray"):
        chain.impute(np.ones((2, 2)))


@pytest.mark.parametrize("library", ["pandas", "polars", "pyarrow"])
def test_a_turned_frame_is_filled_as_one_that_is_not(library):
    module = pytest.importorskip(library)
    make = module.table if library == "pyarrow" else module.DataFrame
    given = make({"a": [1.0, None], "b": [1, 2], "d": [1.0, 3.0]})
    tables = {("u", "i"): np.ones((3, 2)), ("c", "u"): given}
    filled = a1gm.fit_relations(tables).impute(tables)["c", "u"]
    upright = {("c", "u"): given, ("u", "i"): tables["u", "i"]}  # not turned
    expected = a1gm.fit_relations(upright).impute(upright)["c", "u"]
    assert type(filled) is type(given) is type(expected)
    assert filled.shape == given.shape
    if library == "pyarrow":
        assert filled.schema == expected.schema
        return
    assert list(filled.columns) == ["a", "b", "d"]
    assert list(filled.dtypes) == list(expected.dtypes) == list(given.dtypes)
    np.testing.assert_allclose(filled.to_numpy(), expected.to_numpy())


def test_a_turned_table_keeps_its_kind_and_order():
    masked = np.ma.masked_invalid([[1.0, np.nan, 1.0], [1.0, 2.0, 3.0]])
    single = np.float32([[1.0, np.nan, 1.0], [1.0, 2.0, 3.0]])
    for table in (masked, single, single.tolist()):
        tables = {("u", "i"): np.ones((3, 2)), ("c", "u"): table}
        fit = a1gm.fit_relations(tables)
        filled = fit.impute(tables)["c", "u"]
        fitted = fit.reconstruct()["c", "u"]
        assert filled[0, 1] == pytest.approx(fitted[0, 1])
        assert isinstance(filled, np.ma.MaskedArray) == (table is masked)
    assert filled.dtype == np.float64
    tables["c", "u"] = single
    assert fit.impute(tables)["c", "u"].dtype == np.float32
    assert fit.divergence == pytest.approx(a1gm.fit_relations(tables).divergence)


def test_an_index_that_only_counts_from_zero_is_no_names():
    pd = pytest.importorskip("pandas")
    d = pd.DataFrame(np.ones((30, 3)))
    X, Z = d.iloc[0:6], d.iloc[10:16]
    a1gm.fit_nmmf(X, None, Z)
    a1gm.fit_nmmf(Z, None, X)
    a1gm.fit_nmmf(Z, None, d.iloc[10:16])
    # Any other numbers are names, and so are the same ones in another order.
    with pytest.raises(LabelError, match=r"number 0 is 20 in Z and 10 in X"):
        a1gm.fit_nmmf(Z, None, d.iloc[20:26])
    with pytest.raises(LabelError, match=r"number 0 is 5 in Z and 0 in X"):
        a1gm.fit_nmmf(X, None, X.iloc[::-1])


def test_a_poor_certificate_of_a_turned_frame_is_a_warning():
    pd = pytest.importorskip("pandas")
    rng = np.random.default_rng(0)
    hard = np.where(rng.random((9, 9)) < 0.4, np.nan, rng.random((9, 9)))
    turned = pd.DataFrame(hard, list("abcdefghi"))
    tables = {("u", "i"): np.full((2, 9), 1.0), ("i", "s"): turned}
    with pytest.warns(ConvergenceWarning):
        a1gm.fit_relations(tables, max_iter=1, tol=1e-15)
