"""``a1gm.scale``: totals as data, against oracles that share no code with it."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from scipy.sparse.csgraph import connected_components

import a1gm
from a1gm.exceptions import (
    ConvergenceWarning,
    DataError,
    DataHintWarning,
    InfiniteValuesError,
    LabelError,
    NegativeValuesError,
    NotNumericError,
    NotRepresentableError,
    TotalsError,
)

nan = np.nan
UPPER = np.array([[1.0, 1.0], [0.0, 1.0]])


def random_table(seed, n=6, m=5, share=0.75):
    """A seed, and totals of a table on most of its cells."""
    rng = np.random.default_rng(seed)
    A = rng.lognormal(0.0, 1.0, (n, m)) * (rng.random((n, m)) < share)
    A[np.arange(max(n, m)) % n, np.arange(max(n, m)) % m] = 1.0
    X = A * rng.integers(1, 50, (n, m))
    return A, X.sum(axis=1), X.sum(axis=0)


def swept(A, r, c, n=2000):
    """Plain iterative proportional fitting; a total that is NaN is left alone."""
    F = np.array(A, float)
    for _ in range(n):
        for totals, axis in ((r, 1), (c, 0)):
            sums = F.sum(axis=axis)
            ratio = np.where(np.isnan(totals) | (sums == 0), 1.0, totals / sums)
            F = F * np.expand_dims(ratio, axis)
    return F


def scaled(*args, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataHintWarning)
        return a1gm.scale(*args, **options)


# --------------------------------------------------------------------- against oracles
@pytest.mark.oracle
def test_supports_values_and_proofs_of_random_tables():
    pytest.importorskip("flint")
    from attack.totals import judge

    seen = {judge(number) for number in range(150)}
    assert seen == {"interior", "boundary", "impossible", "near", "refused"}


def support_of(A, X, r, c, known):
    """Free cells on a cycle of the residual network of X, a table with the totals.

    Lines without a total are one node each side, which any flow may pass.
    """
    n, m = A.shape
    free = (A > 0) & np.isnan(known)
    i, j = np.nonzero(free)
    a = np.where(np.isnan(r), n, np.arange(n))[i]
    b = n + 1 + np.where(np.isnan(c), m, np.arange(m))[j]
    used = X[i, j] > 0
    heads, tails = [a, b[used]], [b, a[used]]
    if np.isnan(r).any() and np.isnan(c).any():
        heads, tails = [*heads, [n, n + 1 + m]], [*tails, [n + 1 + m, n]]
    ends = np.concatenate(heads), np.concatenate(tails)
    graph = sparse.coo_array((np.ones(len(ends[0])), ends), shape=(n + m + 2,) * 2)
    label = connected_components(graph, connection="strong")[1]
    support = np.zeros(A.shape, bool)
    support[i, j] = label[a] == label[b]
    return support


@pytest.mark.parametrize("first", range(0, 200, 20))
def test_supports_with_unknown_totals_and_known_cells(first):
    for seed in range(first, first + 20):
        rng = np.random.default_rng(seed)
        A, _, _ = random_table(seed, *rng.integers(1, 25, 2), rng.uniform(0.1, 1))
        X = (A > 0) * (rng.random(A.shape) < 0.6) * rng.integers(1, 100, A.shape)
        X = X * rng.choice([1, 0.01, 1 / 3, 1e9]) * rng.choice([1.0, rng.random()])
        r, c, known = X.sum(axis=1), X.sum(axis=0), np.full(A.shape, nan)
        if rng.random() < 0.6:
            r[rng.random(len(r)) < 0.3] = nan
        if rng.random() < 0.6:
            c[rng.random(len(c)) < 0.3] = nan
        if rng.random() < 0.5:
            known = np.where(rng.random(A.shape) < 0.2, X, nan)
        s = scaled(A, r, c, known=known)
        free = np.isnan(known)
        assert np.array_equal((s.table > 0) & free, support_of(A, X, r, c, known))
        assert s.converged


@pytest.mark.parametrize("seed", range(12))
def test_unknown_totals_keep_factor_one(seed):
    A, r, c = random_table(seed)
    rng = np.random.default_rng(seed)
    r[rng.random(len(r)) < 0.4] = nan
    c[rng.random(len(c)) < (0.4 if seed % 3 else 0.0)] = nan
    s = a1gm.scale(A, r, c)
    np.testing.assert_allclose(s.table, swept(A, r, c), rtol=1e-9)
    assert s.certificate <= 1e-12
    assert (s.row_factor[np.isnan(r)] == 1.0).all()
    assert np.allclose(s.col_factor[np.isnan(c)], 1.0, rtol=1e-13, atol=0)


@pytest.mark.parametrize(
    ("seed", "rows", "cols", "printed"),
    [
        # POT, docstring of ot.sinkhorn
        (
            np.exp([[0.0, -1.0], [-1.0, 0.0]]),
            [0.5, 0.5],
            [0.5, 0.5],
            [[0.36552929, 0.13447071], [0.13447071, 0.36552929]],
        ),
        # larray, docstring of ipfp
        ([[2, 1], [1, 2]], [1, 2], [2, 1], [[0.85, 0.15], [1.15, 0.85]]),
    ],
)
def test_published_tables(seed, rows, cols, printed):
    digits = max(len(str(x).split(".")[1]) for x in np.ravel(printed))
    table = a1gm.scale(seed, rows, cols).table
    np.testing.assert_allclose(table, printed, atol=0.51 * 10.0**-digits, rtol=0)


def test_published_weights_of_individuals():
    """Lovelace & Dumont, Spatial Microsimulation with R (2016), table 2.4.

    Two young people, a man and a woman, two old men and an old woman in three zones.
    """
    seed = pd.DataFrame([[1, 1], [2, 1]], ["young", "old"], ["m", "f"])
    zones = [([8, 4], [6, 6]), ([2, 8], [4, 6]), ([7, 4], [3, 8])]
    printed = {  # individuals 1 and 2, 3, 4 and 5
        ("old", "m"): [1.23, 1.73, 0.725],
        ("young", "m"): [3.54, 0.55, 1.550],
        ("old", "f"): [1.54, 4.55, 2.550],
        ("young", "f"): [4.46, 1.45, 5.450],
    }
    weights = [a1gm.scale(seed, *totals).table / seed for totals in zones]
    for who, row in printed.items():
        np.testing.assert_allclose([w.loc[who] for w in weights], row, atol=0.00501)


def test_published_tables_that_have_not_converged():
    seed = [[40, 30, 20, 10], [35, 50, 100, 75], [30, 80, 70, 120], [20, 30, 40, 50]]
    table = a1gm.scale(seed, [150, 300, 400, 150], [200, 300, 400, 100]).table
    # The limit of Wikipedia's example, whose printed table has not converged.
    first = [64.5585, 46.2325, 35.3843, 3.8247]
    np.testing.assert_allclose(table[0], first, atol=0.000051)
    # UDST/synthpop, test_larger_ipf, prints all digits of the fourth sweep.
    seed, rows, cols = [[8, 4, 2], [5, 3, 2]], [60, 40], [50, 30, 20]
    printed = [
        [31.78776824, 17.77758309, 10.43464846],
        [18.21223176, 12.22241691, 9.56535154],
    ]
    rounded = np.round(swept(seed, np.array(rows), np.array(cols), 4), 8)
    assert rounded.tolist() == printed
    assert abs(sum(printed[0]) - 60) > 2e-7
    table = a1gm.scale(seed, rows, cols).table
    np.testing.assert_allclose(table, printed, atol=1.1e-7, rtol=0)
    np.testing.assert_allclose(table.sum(axis=1), rows, rtol=1e-14)


# ------------------------------------------------------------------------- properties
def assert_odds_ratios_are_kept(A, F):
    """Whatever two rows and two columns, where all four cells are above 0."""
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.where(F > 0, F / A, nan)
    for one in ratio:
        for other in ratio:
            shares = (one / other)[~np.isnan(one / other)]
            np.testing.assert_allclose(shares, shares[:1].repeat(len(shares)), 1e-12)


@given(st.integers(0, 10**6))
def test_properties(seed):
    A, r, c = random_table(seed, *np.random.default_rng(seed).integers(2, 6, 2))
    s = scaled(A, r, c)
    F = s.table
    same = {"rtol": 1e-9, "atol": 0.0}
    np.testing.assert_allclose(scaled(F, r, c).table, F, **same)
    np.testing.assert_allclose(scaled(A.T, c, r).table, F.T, **same)
    rng = np.random.default_rng(seed)
    i, j = rng.permutation(len(r)), rng.permutation(len(c))
    np.testing.assert_allclose(scaled(A[i][:, j], r[i], c[j]).table, F[i][:, j], **same)
    np.testing.assert_allclose(scaled(A, 7 * r, 7 * c).table, 7 * F, **same)
    u, v = (np.exp(rng.normal(0, 5, len(x))) for x in (r, c))
    np.testing.assert_allclose(scaled(u[:, None] * A * v, r, c).table, F, **same)
    assert np.array_equal(a1gm.scale(A).table, A)
    inside = (s.row_block[:, None] == s.col_block) & (A > 0)
    ratio = np.where(inside, F, 1.0) / np.where(inside, A, 1.0)
    expected = np.where(inside, np.outer(s.row_factor, s.col_factor), 1.0)
    np.testing.assert_allclose(ratio, expected, rtol=1e-12)
    assert_odds_ratios_are_kept(A, np.where(inside, F, 0.0))
    known = np.where(rng.random(A.shape) < 0.3, F, nan)
    np.testing.assert_allclose(scaled(A, r, c, known=known).table, F, rtol=1e-7)
    assert np.array_equal(scaled(A, r, c, known=F).table, F)


@pytest.mark.parametrize("times", [1.0, 1e6, 1 / 3, 0.01, 2.0**31, 2.0**45])
def test_tight_totals_are_a_block_and_one_unit_off_is_a_proof(times):
    A = np.array([[1.0, 2.0, 3.0], [0.0, 4.0, 5.0], [0.0, 6.0, 7.0]])
    r, c = np.array([30.0, 40.0, 50.0]), np.array([30.0, 45.0, 45.0])
    with pytest.warns(DataHintWarning, match="force 2 cells .* to 0"):
        s = a1gm.scale(A, r * times, c * times)
    assert s.n_blocks == 2
    assert s.forced_zeros.tolist() == [[0, 1], [0, 2]]
    assert s.table[0].tolist() == [30.0 * times, 0.0, 0.0]
    r[0], r[1], unit = 29.0, 41.0, 1.0
    with pytest.raises(TotalsError) as error:
        a1gm.scale(A, r * times, c * times)
    proof = error.value
    assert (proof.rows, proof.cols, proof.side) == ((0,), (0,), "column")
    assert (proof.needs, proof.has) == (30 * times, 29 * times)
    r[0], r[1] = 30.0 + unit, 40.0 - unit
    assert (a1gm.scale(A, r * times, c * times).table > 0).sum() == 7


def test_sums_of_decimals_are_decimals():
    A = np.array([[1.0, 1.0, 1.0], [0.0, 0.0, 1.0]])
    s = scaled(A, [0.1 + 0.2, 0.7], [0.1, 0.2, 0.7])
    assert s.n_blocks == 2
    assert s.table[0, 2] == 0.0
    with pytest.raises(TotalsError, match=r"Row 1 needs 0\.7;.* column 2, has 0\.69"):
        a1gm.scale(A, [0.3, 0.7], [0.1, 0.21, 0.69])


@pytest.mark.parametrize("digits", range(1, 17))
def test_totals_are_met_as_written(digits):
    A, third = np.array([[1.0, 2.0]] * 3), round(1 / 3, digits)
    s = scaled(A, [third] * 3, [0.5, 0.5])
    unit = 10.0**-digits
    np.testing.assert_allclose(s.table.sum(axis=1), third, rtol=1e-10, atol=unit)
    np.testing.assert_allclose(s.table.sum(axis=0), 0.5, rtol=1e-10, atol=unit)
    np.testing.assert_allclose(s.table, 1 / 6, rtol=1e-10, atol=unit)
    assert s.converged
    assert len(s.forced_zeros) == 0


def test_sums_that_differ_by_more_than_what_was_written():
    A = np.array([[1.0, 2.0]] * 3)
    with pytest.warns(DataHintWarning, match=r"sum to 99\.9, .* to 100:"):
        a1gm.scale(A, [33.3] * 3, [60.0, 40.0])
    for third in (33, 33.1):  # whole numbers are exact
        with pytest.raises(TotalsError, match="Correct them, or bring one side"):
            a1gm.scale(A, [third] * 3, [60.0, 40.0])
    with pytest.raises(TotalsError):  # cuts are exact
        a1gm.scale(UPPER, [0.9, 0.1], [1.0, 0.1])


@pytest.mark.parametrize("far", [1e20, 1e150, 1e-150, 1e-310])
@pytest.mark.parametrize("seed", [UPPER, np.ones((2, 2))])
def test_totals_too_far_apart_are_refused(far, seed):
    for cols in ([far, 1.0], [far, 2.0]):
        with pytest.raises(NotRepresentableError, match=r"total of (row|column) [01]"):
            a1gm.scale(seed, [far, 1.0], cols)
    with pytest.raises(NotRepresentableError):
        a1gm.impute([[1.0, nan], [1.0, 1.0]], row_totals=[far, 2.0])
    if far in (1e150, 1e-150):
        with pytest.raises(NotRepresentableError, match="The seed, row 0"):
            a1gm.scale(far * seed, [1, 1], [1, 1])


def test_one_unit_of_two_to_the_45():
    big = 2.0**45
    with pytest.raises(TotalsError, match=f"Row 1 needs {int(big) + 1}"):
        a1gm.scale(UPPER, [big - 1, big + 1], [big, big])
    s = a1gm.scale(UPPER, [big + 1, big - 1], [big, big])
    assert s.table.tolist() == [[big, 1.0], [0.0, big - 1]]


# ------------------------------------------------------------------------ impossible
def test_other_sums():
    with pytest.raises(TotalsError, match=r"sum to 101, .* to 100\..* 101 / 100\."):
        a1gm.scale(UPPER, [31, 70], [30, 70])
    with pytest.raises(TotalsError) as error:
        a1gm.scale(UPPER, [31, 70], [30, None], known=[[nan, nan], [nan, 80]])
    assert error.value.rows == (1,)


def test_rows_need_more_than_all_columns_have():
    with pytest.raises(TotalsError, match="cannot be below 0") as error:
        a1gm.scale(np.ones((3, 2)), [31, 70, None], [30, 70])
    assert (error.value.rows, error.value.cols) == ((0, 1), (0, 1))
    assert (error.value.needs, error.value.has) == (101, 100)


def test_proof_names_only_totals_that_are_known():
    A = np.array([[1.0, 1.0, 0.0], [1.0, 1.0, 1.0], [0.0, 1.0, 1.0]])
    with pytest.raises(TotalsError) as error:
        a1gm.scale(A, [50, None, 10], [20, 10, None])
    proof = error.value
    assert (proof.rows, proof.cols, proof.side) == ((0,), (0, 1), "row")
    assert (proof.needs, proof.has) == (50, 30)


def test_a_row_without_a_cell():
    frame = pd.DataFrame([[0, 0], [1, 1]], ["a", "b"], ["x", "y"])
    with pytest.raises(TotalsError, match="Row 'a' needs 1, but there is no cell"):
        a1gm.scale(frame, [1, 1], [1, 1])
    assert a1gm.scale(frame, [0, 2], [1, 1]).table.loc["a"].tolist() == [0, 0]


# ------------------------------------------------------------------------------ totals
FRAME = pd.DataFrame([[1, 2, 3], [4, 5, 6]], ["a", "b"], ["x", "y", "z"])
EXPECTED = a1gm.scale(FRAME.to_numpy(), [40, 60], [20, 30, 50]).table


@pytest.mark.parametrize(
    ("rows", "cols"),
    [
        ({"b": 60, "a": 40}, {"z": 50, "x": 20, "y": 30}),
        (pd.Series({"b": 60, "a": 40}), pd.Series({"z": 50, "x": 20, "y": 30})),
        ([40, 60], (20, 30, 50)),
        (np.array([40, 60], np.int8), np.float32([20, 30, 50])),
        (pl.Series([40, 60]), pa.array([20, 30, 50])),
        (pd.Series([40, 60]), [20, None, 50]),
        ({0: 40, 1: 60}, {"x": 20, "z": 50}),
        ([40, 60], {"x": 20, "y": nan, "z": 50}),
        (pl.DataFrame({"shop": ["b", "a"], "total": [60, 40]}), [20, 30, pd.NA]),
    ],
)
@pytest.mark.parametrize("kind", ["pandas", "polars"])
def test_totals_of_all_kinds(rows, cols, kind):
    seed = FRAME
    if kind == "polars":
        seed = pl.DataFrame({"shop": ["a", "b"], **FRAME.to_dict("list")})
    table = a1gm.scale(seed, rows, cols).table
    assert type(table) is type(seed)
    if kind == "polars":
        assert table["shop"].to_list() == ["a", "b"]
        table = table.drop("shop").to_pandas()
    np.testing.assert_allclose(table.to_numpy(), EXPECTED, rtol=1e-12)


def test_labels_of_numbers_are_labels():
    frame = FRAME.set_axis([10, 20]).set_axis([2019, 2020, 2021], axis=1)
    totals = pd.Series({2021: 50, 2019: 20, 2020: 30})
    table = a1gm.scale(frame, {20: 60, 10: 40}, totals).table
    np.testing.assert_allclose(table.to_numpy(), EXPECTED, rtol=1e-12)


@pytest.mark.parametrize(
    ("totals", "error", "message"),
    [
        ({"c": 1}, LabelError, "No row is called 'c'"),
        (pd.Series({"a": 1, "c": 1}), LabelError, "'c'"),
        (pd.Series([1, 1], ["a", "a"]), LabelError, "two totals of row 'a'"),
        ([1, 2, 3], DataError, "has 3 numbers, but the seed has 2 rows.*by the names"),
        (np.ones((2, 2)), DataError, "shape"),
        ([1, -2], NegativeValuesError, r"row_totals\['b', 'total'\] = -2"),
        ([1, np.inf], InfiniteValuesError, r"row_totals\['b', 'total'\] = inf"),
        (["1", 2], NotNumericError, "is a str"),
    ],
)
def test_bad_totals(totals, error, message):
    with pytest.raises(error, match=message):
        a1gm.scale(FRAME, totals)


@pytest.mark.parametrize("name", ["A", "a"])
def test_a_total_that_a_reader_took_for_a_header(name):
    seed = pd.DataFrame({"x": [1.0, 4], "y": [2.0, 5]}, ["A", "B"])
    frame = pd.DataFrame({name: ["B"], "70": [40.0]})
    column = frame.set_index(name)["70"]
    for totals in (frame, frame.set_index(name), column, pl.from_pandas(frame)):
        with pytest.raises(DataError, match="which is a total"):
            a1gm.scale(seed, totals)
    a1gm.scale(seed, frame.rename(columns={name: "shop"}))  # of 1970, say


def test_a_total_of_a_mistyped_name_that_a_reader_took_for_a_header():
    names = ["Aachen", "Bonn", "Cologne"]
    seed = pd.DataFrame({"x": [1.0, 4, 2], "y": [2.0, 5, 2]}, names)
    frame = pd.DataFrame({"Bon": ["Aachen", "Cologne"], "70": [10, 20]})
    with pytest.raises(DataError, match="which is a total"):
        a1gm.scale(seed, frame)
    a1gm.scale(seed.rename_axis("Bon"), frame)  # of 1970, say
    a1gm.scale(seed, pd.DataFrame({"Bon": names, "70": [10, 5, 20]}))


def test_names_for_a_seed_without_names():
    table = a1gm.scale(FRAME.to_numpy(), pd.Series({"b": 40, "a": 60}), [20, 30, 50])
    np.testing.assert_allclose(table.table, EXPECTED, rtol=1e-12)
    with pytest.raises(LabelError, match="have no names"):
        a1gm.scale(FRAME.to_numpy(), {"a": 1})


def test_totals_of_one_side():
    s = a1gm.scale(FRAME, row_totals=[12, 30])
    assert s.table.to_numpy().tolist() == [[2, 4, 6], [8, 10, 12]]
    assert s.col_factor.tolist() == [1.0, 1.0, 1.0]
    s = a1gm.scale(FRAME, col_totals=[10, None, None])
    assert s.table.to_numpy().tolist() == [[2, 2, 3], [8, 5, 6]]


def test_totals_of_zero():
    s = a1gm.scale(np.ones((3, 3)), [0, 2, 1], [1, 2, 0])
    np.testing.assert_allclose(
        s.table, [[0, 0, 0], [2 / 3, 4 / 3, 0], [1 / 3, 2 / 3, 0]], rtol=1e-14
    )
    assert s.row_block.tolist() == [-1, 0, 0]
    assert s.col_block.tolist() == [0, 0, -1]
    assert s.row_factor[0] == 0.0
    assert not a1gm.scale(np.ones((2, 2)), [0, 0], [0, 0]).table.any()


# -------------------------------------------------------------------------------- seeds
@pytest.mark.parametrize(
    ("seed", "error", "message"),
    [
        ([[1, nan], [2, 3]], DataError, r"seed\[0, 1\] is missing.*Put 0.*a1gm.impute"),
        (FRAME.assign(y=[1, None]), DataError, r"seed\['b', 'y'\] is missing"),
        (sparse.csr_array([[1, nan], [2, 3]]), DataError, "is missing"),
        ([[1, -1], [2, 3]], NegativeValuesError, "0 is for a cell that must be 0"),
        ([[1, np.inf], [2, 3]], InfiniteValuesError, "must be finite"),
        ([["a", 1], [2, 3]], NotNumericError, "seed"),
        (np.ones(3), DataError, "2D"),
    ],
)
def test_bad_seeds(seed, error, message):
    with pytest.raises(error, match=message):
        a1gm.scale(seed, [1, 1], None)


@pytest.mark.parametrize(
    "make", [sparse.csr_matrix, sparse.coo_array, sparse.csc_array]
)
@pytest.mark.parametrize("both", [True, False])
def test_sparse_seeds(make, both):
    A, r, c = random_table(3, 8, 8, 0.3)
    if not both:
        r[2] = c[1] = c[4] = nan
    seed = make(A)
    s = scaled(seed, r, c)
    assert type(s.table) is make
    expected = scaled(A, r, c)
    np.testing.assert_allclose(s.table.toarray(), expected.table, rtol=1e-9)
    assert s.row_block.tolist() == expected.row_block.tolist()
    assert (seed != make(A)).nnz == 0


@pytest.mark.parametrize(
    "seed",
    [
        np.float32([[1, 2, 3], [4, 5, 6]]),
        np.asfortranarray(FRAME.to_numpy()),
        np.ma.array([[1, 2, 3], [4, 5, 6]], mask=False),
        FRAME.astype("float32"),
        FRAME.astype("Int64"),
        pa.table({k: FRAME[k].to_list() for k in FRAME}),
    ],
)
def test_other_containers_have_room_for_the_digits(seed):
    s = a1gm.scale(seed, [40, 60], [20, 30, 50])
    assert type(s.table) is type(seed)
    np.testing.assert_allclose(np.asarray(s.table, float), EXPECTED, rtol=1e-12)
    whole = np.asarray(s.round(), float)
    assert whole.sum(axis=1).tolist() == [40, 60]


def test_input_is_not_modified():
    A, r, c = random_table(1)
    before = A.copy(), r.copy(), c.copy()
    s = scaled(A, r, known=np.where(A > 2, 0.5, nan))
    assert np.array_equal(A, before[0])
    assert np.array_equal(r, before[1])
    assert np.array_equal(c, before[2])
    assert s.table[A > 2].tolist() == [0.5] * int((A > 2).sum())


# -------------------------------------------------------------------------------- known
def test_known_cells_stay():
    known = [[5, nan], [nan, nan]]
    s = a1gm.scale(np.ones((2, 2)), [8, 12], [9, 11], known=known)
    np.testing.assert_allclose(s.table, [[5, 3], [4, 8]], rtol=1e-15)
    assert s.table[0, 0] == 5.0
    s = a1gm.scale([[0, 1], [1, 1]], [8, None], None, known=known)
    assert s.table.tolist() == [[5, 3], [1, 1]]


@pytest.mark.parametrize("seed", [709, *range(1, 40, 2)])
def test_known_cells_whose_sums_are_rounded(seed):
    """Cuts that rounding leaves open are no proof; they were moved without end."""
    rng = np.random.default_rng(seed)
    n, m = rng.integers(1, 8, 2)
    A = rng.lognormal(0, 2, (n, m)) * (rng.random((n, m)) < rng.uniform(0.4, 1))
    X = A * rng.lognormal(0, 1, (n, m))
    known = np.where(rng.random((n, m)) < rng.choice([0, 0.2, 0.6]), X, nan)
    s = scaled(A, 1e-9 * X.sum(axis=1), 1e-9 * X.sum(axis=0), known=1e-9 * known)
    assert s.certificate < 1e-10
    assert np.array_equal(s.table[known > 0], 1e-9 * known[known > 0])


def test_known_cells_of_a_sparse_seed():
    known = sparse.coo_array(([5.0], ([0], [1])), shape=(2, 2))
    s = a1gm.scale(sparse.eye_array(2).tocsr(), [8, 12], [3, 17], known=known)
    assert s.table.toarray().tolist() == [[3, 5], [0, 12]]
    assert s.round().toarray().tolist() == [[3, 5], [0, 12]]


def test_known_cells_that_do_not_fit():
    known = np.array([[5.0, 3.0], [4.0, 8.0]])
    assert a1gm.scale(np.ones((2, 2)), [8, 12], [9, 11], known=known).certificate == 0
    with pytest.raises(
        TotalsError, match="known cells of row 0 sum to 8, more than"
    ) as e:
        a1gm.scale(np.ones((2, 2)), [7, 13], [9, 11], known=known)
    assert (e.value.rows, e.value.needs, e.value.has) == ((0,), 8, 7)
    with pytest.raises(TotalsError, match="besides the known cells"):
        a1gm.scale(
            np.ones((2, 2)), [9, 12], [9, 12], known=np.where(known > 3, known, 3)
        )
    with pytest.raises(DataError, match=r"known has shape \(1, 2\)"):
        a1gm.scale(np.ones((2, 2)), known=[[1, 2]])
    with pytest.raises(DataError, match="known"):
        a1gm.scale(FRAME, known=FRAME.set_axis(["x", "z", "q"], axis=1))


# ----------------------------------------------------------------------------- rounding
@pytest.mark.parametrize("seed", range(30))
def test_rounding_keeps_totals(seed):
    rng = np.random.default_rng(seed)
    A, _, _ = random_table(seed, *rng.integers(1, 9, 2), 0.6)
    X = (A > 0) * rng.integers(0, 9, A.shape) * int(rng.choice([1, 1000, 2**31]))
    r, c = X.sum(axis=1).astype(float), X.sum(axis=0).astype(float)
    if seed % 3 == 0:
        r[rng.random(len(r)) < 0.3] = nan
        c[rng.random(len(c)) < 0.3] = nan
    s = scaled(A, r, c)
    N, F = s.round(), s.table
    assert N.dtype == np.int64
    for sums, totals in ((N.sum(axis=1), r), (N.sum(axis=0), c)):
        assert np.array_equal(sums[~np.isnan(totals)], totals[~np.isnan(totals)])
    assert (np.abs(N - F) < 1).all()
    assert not N[F == 0].any()
    near = np.abs(N - F).sum() - np.abs(np.rint(F) - F).sum()
    assert near <= 0.5 * (len(r) + len(c))


def test_rounding_a_seed_of_zeros():
    assert not a1gm.scale(np.zeros((2, 2)), [0, 0]).round().any()


def test_rounding_refuses_broken_totals():
    with pytest.raises(DataError, match=r"the row totals have 1\.5"):
        a1gm.scale(np.ones((2, 2)), [1.5, 2.5], [2, 2]).round()


# ------------------------------------------------------------------------ how it stands
def test_result_shows_itself():
    s = scaled(UPPER, [30, 70], [30, 70])
    assert "blocks: 2, forced to 0: 1 cell" in repr(s)
    assert ">2 x 2</td>" in s._repr_html_()
    assert s.solver == "closed form"
    assert s.divergence == pytest.approx(
        30 * np.log(30) - 30 + 70 * np.log(70) - 70 + 3
    )


def test_budget():
    A, r, c = random_table(5)
    with pytest.warns(ConvergenceWarning, match="Raise max_iter= or tol="):
        s = a1gm.scale(A * 10.0 ** np.arange(5), r, c, max_iter=1)
    assert not s.converged


def test_cells_that_follow_from_rounded_totals_are_announced():
    """One cell joins two blocks; its value is the difference of large totals."""
    rng = np.random.default_rng(0)
    X = rng.integers(1, 100, (4, 4)) * 10**9
    X[:2, 2:] = X[2:, :2] = 0
    X[0, 2] = 1
    A = (X > 0) * rng.lognormal(0.0, 1.0, X.shape)
    r, c = X.sum(axis=1), X.sum(axis=0)
    s = a1gm.scale(A, r, c)
    assert s.table[0, 2] == pytest.approx(1.0, rel=1e-14)
    assert s.cell_error < 1e-12
    with pytest.warns(ConvergenceWarning, match="Totals with few decimals are exact"):
        s = a1gm.scale(A, r / 3, c / 3)
    assert s.certificate < 1e-14
    assert abs(3 * s.table[0, 2] - 1) <= s.cell_error < 0.1


@pytest.mark.oracle
@pytest.mark.parametrize("seed", range(10))
def test_any_table_with_the_totals_gives_the_same(seed):
    """The scaling is the fit of any such table with the seed as its exposure."""
    from scipy.optimize import linprog

    rng = np.random.default_rng(seed)
    A, _, _ = random_table(seed, 5, 5, 0.5)
    X = (A > 0) * rng.integers(1, 30, A.shape) * (rng.random(A.shape) < 0.6)
    r, c = X.sum(axis=1), X.sum(axis=0)
    s = scaled(A, r, c)
    i, j = np.nonzero(A)
    equal = np.zeros((10, len(i)))
    equal[i, np.arange(len(i))] = equal[5 + j, np.arange(len(i))] = 1
    for _ in range(5):
        cost = rng.normal(size=len(i))  # another vertex
        found = linprog(cost, A_eq=equal, b_eq=np.concatenate([r, c]))
        other = np.zeros(A.shape)
        other[i, j] = np.rint(found.x)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            fit = a1gm.fit(other, exposure=A)
        inside = (fit.row_block[:, None] == fit.col_block) & (A > 0)
        w, h = np.nan_to_num(fit.row_factor), np.nan_to_num(fit.col_factor)
        table = np.where(inside, w[:, None] * A * h, 0.0)
        np.testing.assert_allclose(table, s.table, rtol=1e-9)


def test_bands_are_not_slow():
    n = 200
    rng = np.random.default_rng(0)
    near = np.abs(np.subtract.outer(np.arange(n), np.arange(n))) <= 2
    A = near * rng.random((n, n))
    X = A * rng.random((n, n))
    for seed in (A, sparse.csr_array(A)):
        s = a1gm.scale(seed, X.sum(axis=1), X.sum(axis=0))
        assert s.solver == "newton"
        assert s.n_iter < 100
        assert s.certificate < 1e-12
