"""Whether rank 1 is right for a table."""

from __future__ import annotations

import math
from contextlib import suppress

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy.sparse import csr_array
from sklearn.datasets import load_iris, load_wine
from support.suite import daily

import a1gm
from a1gm.exceptions import DataError, NegativeValuesError, ParameterError


def sales(seed=0, n=30, m=8):
    rng = np.random.default_rng(seed)
    X = rng.poisson(np.outer(rng.gamma(3, 20, n), rng.gamma(3, 1, m))).astype(float)
    X[rng.random(X.shape) < 0.1] = np.nan
    return X


@pytest.mark.parametrize(
    ("load", "low", "high"), [(load_iris, -0.6, -0.2), (load_wine, -1.2, -0.5)]
)
def test_tables_of_unlike_features_are_better_off_with_column_means(load, low, high):
    found = a1gm.assess(load().data, random_state=0)
    assert low < found.skill < high
    assert repr(found).startswith("The column means are better than rank 1")


def test_multiplicative_tables_are_better_off_with_rank_1():
    found = a1gm.assess(sales(), random_state=0)
    assert found.skill > 0.6
    assert 0.85 < found.coverage <= 1.0
    assert np.mean(found.coverage_by_size) == pytest.approx(found.coverage, abs=0.01)
    assert "By size of the fill, from the smallest quarter: " in repr(found)
    assert found.verdict.startswith("Rank 1 is better")
    best = min(found.scores, key=lambda name: found.scores[name].deviance)
    assert best == "rank 1"
    frame = found.to_frame("pandas")
    assert list(frame.index) == list(found.scores)
    assert found.skill == pytest.approx(1.0 - frame.iloc[0, 1] / frame.iloc[1, 1])
    assert found.verdict in found._repr_html_()
    again = a1gm.assess(pd.DataFrame(sales()), random_state=0)
    assert again == found


def test_the_last_cells_are_hidden_as_a_forecaster_would():
    X = sales()
    found = a1gm.assess(X, hide="last", random_state=1)
    assert "last value" in found.scores
    assert 0 < found.n_hidden <= 5 * len(X)
    assert "last value" in a1gm.assess(X, ordered=True, random_state=1).scores


@pytest.fixture
def fits(monkeypatch):
    """The tables that are fitted, their fits and options, as they come."""
    from a1gm._api import assess

    found = []

    def spy(table, **options):
        found.append((table, a1gm.fit(table, **options), options))
        return found[-1][1]

    monkeypatch.setattr(assess, "fit", spy)
    return found


def test_no_hidden_cell_is_unknowable(fits):
    rng = np.random.default_rng(5)
    X = rng.poisson(np.outer(rng.gamma(3, 2, 15), rng.gamma(3, 1, 9))).astype(float)
    X[rng.random(X.shape) < 0.5] = np.nan
    for hide in (0.1, 0.6, "last"):
        a1gm.assess(X, hide, random_state=0)
    kept = ~np.isnan(X).all(axis=1)
    for table, fit, _ in fits:
        i, j = np.nonzero(np.isnan(table) & ~np.isnan(X[kept]))
        assert set(fit.fate(i, j)) <= {"finite"}


def test_a_table_too_small_to_hide_anything():
    with pytest.raises(DataError, match="No cell can be hidden"):
        a1gm.assess([[1.0, 2.0]])
    for hide in (0.1, "last"):
        with pytest.raises(DataError, match="No cell can be hidden"):
            a1gm.assess(np.full((2, 3), np.nan), hide)


@pytest.mark.parametrize("factor", [2.0**-400, 2.0**400, 1000.0, 0.001])
def test_the_units_of_the_data_do_not_matter(factor):
    X = sales()
    X[:, 3], X[:, 5] = 7.0, 0.0  # without spread
    found, expected = (a1gm.assess(k * X, random_state=0) for k in (factor, 1.0))
    np.testing.assert_allclose(found.skill, expected.skill, rtol=1e-9)
    for name, score in expected.scores.items():
        np.testing.assert_allclose(found.scores[name][1:], score[1:], rtol=1e-9)


def test_hidden_cells_are_a_fair_sample(fits):
    rng = np.random.default_rng(1)
    X = (rng.random((120, 80)) < 0.04).astype(float)
    a1gm.assess(X, random_state=0)
    some = X.any(axis=1)[:, None] & X.any(axis=0)
    shares = [X[np.isnan(table) & some].mean() for table, *_ in fits[:-1]]
    assert np.mean(shares) > 0.8 * X[some].mean()  # some positive ones hold the table


def test_a_large_table_is_judged_by_a_sample(fits):
    rng = np.random.default_rng(3)
    means = np.outer(rng.gamma(3, 20, 30_000), rng.gamma(3, 1, 8))
    X = rng.poisson(means).astype(float)
    found = a1gm.assess(X, random_state=0)
    assert found.n_rows == (25_000, 30_000)
    assert found.n_hidden == 20_000  # of 100,000
    assert all(np.isnan(table).mean() == pytest.approx(0.1) for table, *_ in fits[:-1])
    assert "Judged: 25,000 of 30,000 rows, drawn at random." in repr(found)
    few = a1gm.assess(X, sample=200, random_state=0, exposure=np.ones_like(X))
    assert few.n_rows == (200, 30_000)
    assert few.part in few._repr_html_()
    assert not a1gm.assess(X[:100], random_state=0).part


def test_of_a_wide_table_columns_are_judged():
    rng = np.random.default_rng(3)
    means = np.outer(rng.gamma(3, 20, 12), rng.gamma(3, 1, 60_000))
    X = rng.poisson(means).astype(float)
    found = a1gm.assess(X, random_state=0)
    assert (found.n_rows, found.n_cols) == ((12, 12), (16_666, 60_000))
    assert "Judged: 16,666 of 60,000 columns, drawn at random." in repr(found)
    tall = a1gm.assess(X.T.copy(), random_state=0)
    assert tall.n_rows == found.n_cols
    a_column = a1gm.assess(X[:, :12_000], random_state=0)  # as many as may be
    assert found.skill == pytest.approx(a_column.skill, abs=0.02)


@pytest.mark.parametrize("way", ["array", "long", "exposure"])
def test_of_ordered_columns_a_stretch_is_judged(way):
    rng = np.random.default_rng(4)
    X = rng.poisson(np.outer(rng.gamma(3, 20, 6), rng.gamma(3, 1, 90))) + 0.0
    X[rng.random(X.shape) < 0.2] = np.nan
    options = {"sample": 30, "random_state": 0, "ordered": True}
    if way == "long":
        i, j = np.nonzero(~np.isnan(X))
        frame = pd.DataFrame({"i": i, "j": j, "x": X[i, j]})
        found = a1gm.assess(frame, keys=["i", "j"], value="x", **options)
    else:
        more = {"exposure": np.ones_like(X)} if way == "exposure" else {}
        found = a1gm.assess(X, **more, **options)
    assert found.n_cols == (30, 90)
    start = np.random.default_rng(0).integers(61)
    expected = a1gm.assess(X[:, start : start + 30], random_state=0, ordered=True)
    for name, score in expected.scores.items():
        assert found.scores[name] == pytest.approx(score, rel=1e-9)


def test_sparse_tables_are_judged_by_cells_not_by_rows():
    rng = np.random.default_rng(3)
    X = rng.poisson(np.outer(rng.gamma(3, 1, 3000), rng.gamma(3, 1, 500))) + 0.0
    X[rng.random(X.shape) < 0.98] = np.nan
    assert not a1gm.assess(X, repeats=1, random_state=0).part


@pytest.mark.parametrize("kind", daily(["rank 1", "means", "close"], ["close"]))
def test_20_000_hidden_cells_give_the_verdict_of_all(kind, monkeypatch):
    rng = np.random.default_rng(5)
    n, m = 12_000, 30  # 180,000 hidden cells in five repeats
    means = np.outer(rng.gamma(3, 2, n), rng.gamma(3, 1, m))
    if kind != "rank 1":
        share = 1.0 if kind == "means" else 0.5
        means = (1 - share) * means + share * np.outer(np.ones(n), rng.gamma(3, 1, m))
    X = rng.poisson(means).astype(float)
    some = a1gm.assess(X, random_state=0)
    monkeypatch.setattr("a1gm._api.assess.MOST_COMPARED", 10**9)
    monkeypatch.setattr("a1gm._api.assess.MOST_OBSERVED", 10**9)
    every = a1gm.assess(X, random_state=0)
    assert some.n_hidden == 20_000
    assert every.n_hidden == 180_000
    assert some.headline == every.headline
    assert some.lead == pytest.approx(every.lead, abs=0.02)
    assert some.coverage == pytest.approx(every.coverage, abs=0.01)


def test_a_verdict_from_five_cells_is_not_sure():
    X = np.outer(np.arange(1.0, 8.0), np.arange(1.0, 8.0))
    found = a1gm.assess(X, hide=0.1, repeats=1, random_state=0)
    assert found.n_hidden == 5
    assert found.may_be_chance
    assert "which may be chance" in found.headline
    assert not a1gm.assess(X, random_state=0).may_be_chance


# ----------------------------------------------------------------- ordered columns
MONTHS = [f"2024-{month:02d}" for month in range(1, 13)]


def noisy(correlation, n=400, m=12, seed=0):
    """A frame of months whose residuals follow an autoregression along each row."""
    rng = np.random.default_rng(seed)
    noise = rng.normal(size=(n, m))
    for j in range(1, m):
        noise[:, j] *= math.sqrt(1 - correlation**2)
        noise[:, j] += correlation * noise[:, j - 1]
    f = np.outer(rng.gamma(9, 100, n), rng.gamma(9, 1, m) / m)
    X = np.maximum(f + np.sqrt(f) * noise, 0.0)
    X[rng.random(X.shape) < 0.05] = np.nan
    return pd.DataFrame(X, columns=MONTHS[:m])


@pytest.mark.parametrize(
    ("correlation", "m"), [(0.0, 12), (0.5, 12), (-0.3, 12), (0.0, 4)]
)
def test_autocorrelation_of_residuals(correlation, m):
    found = a1gm.assess(noisy(correlation, m=m), random_state=0)
    # Runs above the fit are partly taken for the factor of the row.
    tolerance = 0.2 if correlation > 0.0 else 0.05
    assert found.autocorrelation == pytest.approx(correlation, abs=tolerance)
    note = f"correlate by {found.autocorrelation:.2f}"
    assert note in repr(found)
    assert ("robust standard errors" in repr(found)) == (found.autocorrelation > 0.2)


def test_columns_are_ordered_by_their_names():
    months = noisy(0.5)
    assert "last value" in a1gm.assess(months, random_state=0).scores
    for X in (months.to_numpy(), pd.DataFrame(months.to_numpy())):
        found = a1gm.assess(X, random_state=0)
        assert "last value" not in found.scores
        assert math.isnan(found.autocorrelation)
    found = a1gm.assess(months, random_state=0, ordered=False)
    assert "last value" not in found.scores
    assert "correlate" not in repr(found)


def test_an_exact_table_has_no_autocorrelation():
    X = np.outer(np.arange(1.0, 40.0), np.arange(1.0, 9.0))
    found = a1gm.assess(X, random_state=0, ordered=True)
    assert math.isnan(found.autocorrelation)


# ------------------------------------------------------------------- one row per cell
def long_sales(n=60, groups=("a", "b")):
    rng = np.random.default_rng(1)
    frames = []
    for group in groups:
        X = rng.poisson(np.outer(rng.gamma(3, 20, n), rng.gamma(3, 1, 12)))
        wide = pd.DataFrame(X, index=[f"S{i}" for i in range(n)], columns=MONTHS)
        frame = wide.rename_axis("shop").reset_index()
        frame = frame.melt("shop", var_name="month", value_name="sales")
        keep = rng.random(len(frame)) < 0.9
        frames.append(frame[keep].assign(country=group))
    return pd.concat(frames, ignore_index=True)


def test_a_long_frame_is_judged_as_its_table():
    frame = long_sales(groups=["a"])
    long = {"keys": ["shop", "month"], "value": "sales"}
    wide = frame.pivot(index="shop", columns="month", values="sales")
    wide = wide.loc[frame["shop"].unique()]
    expected = a1gm.assess(wide, random_state=0)
    found = a1gm.assess(frame, random_state=0, **long)
    assert found == expected
    assert "last value" in found.scores
    polars = pl.from_pandas(frame)
    assert a1gm.assess(polars, random_state=0, **long).verdict == expected.verdict
    few = a1gm.assess(frame, random_state=0, sample=20, **long)
    assert few.n_rows == (20, 60)
    with pytest.raises(ParameterError, match="leave out id="):
        a1gm.assess(frame, **long, id="shop")
    twice = pd.concat([frame, frame[:3]])
    with pytest.raises(a1gm.exceptions.LabelError, match="occurs twice"):
        a1gm.assess(twice, **long)
    assert a1gm.assess(twice, random_state=0, duplicates="sum", **long).skill > 0


@pytest.mark.parametrize("name", ["weights", "exposure"])
def test_weights_of_a_long_frame_are_a_column(name):
    frame = long_sales(groups=["a"])
    frame["v"] = np.random.default_rng(0).integers(0, 3, len(frame)) * 1.0
    shops = frame["shop"].unique()
    X, V = (
        frame.pivot(index="shop", columns="month", values=column).loc[shops]
        for column in ("sales", "v")
    )
    V = V.fillna(0.0)
    expected = a1gm.assess(X, random_state=0, **{name: V})
    long = {"keys": ["shop", "month"], "value": "sales", name: "v"}
    found = a1gm.assess(frame, random_state=0, **long)
    assert found.scores == expected.scores


def test_a_long_frame_without_keys_gets_the_hint_of_fit():
    frame = long_sales(groups=["a"])
    with pytest.warns(a1gm.exceptions.DataHintWarning) as of_fit:
        a1gm.fit(frame, on_undetermined="ignore")
    with (
        pytest.warns(a1gm.exceptions.DataHintWarning) as of_assess,
        suppress(DataError),
    ):
        a1gm.assess(frame, random_state=0)
    hints = [str(warning.message) for warning in of_fit]
    assert any("fit_long" in hint for hint in hints)
    assert [str(warning.message) for warning in of_assess] == hints


def test_groups_have_a_verdict_each_and_one_for_all():
    frame = long_sales(groups=["a", "b"])
    alone = pd.DataFrame({"shop": ["S0"], "month": [MONTHS[0]], "sales": [3]})
    frame = pd.concat([frame, alone.assign(country="c")], ignore_index=True)
    long = {"keys": ["shop", "month"], "value": "sales"}
    found = a1gm.assess(frame, random_state=0, by="country", **long)
    assert list(found.groups) == ["a", "b"]
    assert "No cell can be hidden" in str(found.failed["c"])
    assert "Not judged: 1 of 3 groups. The first is 'c': No cell" in repr(found)
    one = frame[frame["country"] == "a"]
    assert found.groups["a"] == a1gm.assess(one, random_state=0, **long)
    assert found.n_hidden == sum(one.n_hidden for one in found.groups.values())
    errors = [one.scores["rank 1"].deviance for one in found.groups.values()]
    assert found.scores["rank 1"].deviance == pytest.approx(sum(errors))
    table = found.to_frame()
    assert list(table.index) == ["a", "b", "all"]
    assert table.loc["all", "headline"] == found.headline
    assert found.to_frame("polars")["group"].to_list() == ["a", "b", "all"]
    assert "<th>group</th>" in found._repr_html_()
    with pytest.raises(DataError, match=r"None of 1 group can be judged.*'c'"):
        a1gm.assess(frame[frame["country"] == "c"], by="country", **long)


# ----------------------------------------------------------- weights and exposures
def judged_by_hand(X, V, E, holes):
    """Scores of all methods by plain loops: X ~ E w h, cells of weight V."""
    n, m = X.shape
    rows = []
    for left in holes:
        known = [(i, j) for i in range(n) for j in range(m) if left[i, j] == left[i, j]]
        w, h = np.ones(n), np.ones(m)
        for _ in range(2000):
            for factor, other, axis in ((w, h, 0), (h, w, 1)):
                up, down = np.zeros(len(factor)), np.zeros(len(factor))
                for cell in known:
                    k, v = cell[axis], V[cell]
                    up[k] += v * left[cell]
                    down[k] += v * E[cell] * other[cell[1 - axis]]
                change = np.abs(np.divide(up, down) / factor - 1.0).max()
                factor[:] = up / down
            if change < 1e-13:
                break

        def rate(cells, left=left):
            cells = list(cells)
            sums = [(V[c] * left[c], V[c] * E[c]) for c in cells]
            return sum(a for a, _ in sums) / sum(b for _, b in sums)

        for i, j in np.argwhere(np.isnan(left) & ~np.isnan(X)).tolist():
            before = [c for c in known if c[0] == i and c[1] < j]
            column = rate(c for c in known if c[1] == j)
            guesses = {
                "rank 1": w[i] * h[j],
                "column means": column,
                "row means": rate(c for c in known if c[0] == i),
                "overall mean": rate(known),
                "last value": rate(before[-1:]) if before else column,
            }
            unit = np.std([X[k, j] for k in range(n) if X[k, j] == X[k, j]])
            rows += [
                (name, V[i, j], X[i, j], E[i, j] * guess, unit)
                for name, guess in guesses.items()
            ]
    found = pd.DataFrame(rows, columns=["method", "v", "x", "guess", "unit"])
    found["off"] = (found.x - found.guess).abs()
    found["cost"] = found.v * (
        found.x * np.log(found.x / found.guess) - found.x + found.guess
    )
    scores = {}
    for name, own in found.groupby("method"):
        scores[name] = (
            2 * own.cost.sum(),
            (own.v * own.off / own.unit).sum() / own.v.sum(),
            (own.off / own.x).median(),
        )
    return scores


@pytest.mark.parametrize("name", ["weights", "exposure"])
@pytest.mark.parametrize("hide", [0.2, "last"])
def test_weighted_and_exposed_tables_are_judged_as_they_are_fitted(fits, name, hide):
    rng = np.random.default_rng(8)
    V = rng.uniform(0.5, 9.0, (9, 6))
    mean = np.outer(rng.gamma(3, 20, 9), rng.gamma(3, 1, 6))
    X = 1.0 + rng.poisson(mean * V if name == "exposure" else mean)
    X[rng.random(X.shape) < 0.15] = np.nan
    V[2, 3], V[4, 0] = 0.0, 0.0
    X[2, 3] = np.nan if name == "exposure" else 1e6  # of weight 0
    found = a1gm.assess(X, hide, 2, 3, ordered=True, **{name: V})
    known = np.where(V > 0, X, np.nan)
    ones = np.ones_like(V)
    both = (V, ones) if name == "weights" else (ones, V)
    assert all(name in options for *_, options in fits)
    expected = judged_by_hand(known, *both, [table for table, *_ in fits])
    assert found.n_hidden > 4
    for method, score in found.scores.items():
        np.testing.assert_allclose(score, expected[method], rtol=1e-9)


def test_the_columns_of_a_frame_are_chosen():
    X = sales()
    frame = pd.DataFrame(X, columns=list("abcdefgh"))
    frame.insert(0, "shop", [f"S{k}" for k in range(len(X))])
    frame["size"] = 1.0
    expected = a1gm.assess(X, random_state=0)
    assert (
        a1gm.assess(frame, random_state=0, id="shop", exclude=["size"]),
        a1gm.assess(frame, random_state=0, columns=list("abcdefgh")),
    ) == (expected, expected)
    ones = pd.DataFrame(np.ones_like(X), columns=list("abcdefgh"))
    own = {"columns": list("abcdefgh"), "weights": ones}
    again = a1gm.assess(frame, random_state=0, **own)
    np.testing.assert_allclose(again.skill, expected.skill, rtol=1e-9)


def test_bad_cells_are_named_by_their_place_in_the_table():
    X = sales()
    X[2] = np.nan
    X[5, 3] = -4.0
    ones = np.ones_like(X)
    for weights in (None, ones):
        with pytest.raises(NegativeValuesError, match=r"X\[5, 3\] = -4"):
            a1gm.assess(X, weights=weights)
    with pytest.raises(ParameterError, match="cannot be combined; leave one out"):
        a1gm.assess(X, weights=ones, negatives="allow")
    with pytest.raises(ParameterError, match="weights= and exposure= cannot"):
        a1gm.assess(X, weights=ones, exposure=ones)
    ones[1, 1] = -1.0
    with pytest.raises(a1gm.exceptions.WeightsError, match=r"weights\[1, 1\] = -1"):
        a1gm.assess(np.abs(X), weights=ones)
    with pytest.raises(ParameterError, match="Pass an array with NaN"):
        a1gm.assess(csr_array(np.nan_to_num(X)))


def test_a_close_verdict_says_that_it_may_be_chance():
    rng = np.random.default_rng(0)
    X = rng.poisson(np.full((9, 9), 50.0)) + 0.0  # rows and columns all alike
    found = [a1gm.assess(X, random_state=seed) for seed in range(30)]
    skills = np.array([each.skill for each in found])
    errors = np.array([each.skill_error for each in found])
    assert 0.5 < skills.std() / errors.mean() < 2.0  # it is what repeats scatter by
    for each in found:
        assert ("may be chance" in each.headline) == each.may_be_chance
    assert sum(each.may_be_chance for each in found) > 10
    assert a1gm.assess(sales(n=5, m=3), random_state=0).may_be_chance  # few cells
    rows = rng.poisson(np.geomspace(9, 900, 30)[:, None], (30, 8))
    found = a1gm.assess(rows, random_state=0)
    assert (found.rival, found.skill > 0.9) == ("row means", True)
    assert found.headline == "The row means are better than rank 1"
    clear = a1gm.assess(sales(), random_state=0)
    assert (clear.may_be_chance, "chance" in clear.verdict) == (False, False)


@pytest.mark.parametrize("row", [[1.0, 1, 1, 1], [1.0, 2, 3, 4]])
def test_what_both_fill_exactly_has_no_loser(row):
    found = a1gm.assess(np.tile(row, (5, 1)), random_state=0)
    assert found.skill == 0.0
    assert "both fill 10 hidden cells exactly" in found.verdict


def test_numbers_of_numpy_are_taken():
    plain = a1gm.assess(sales(), 0.1, 5, 3, ordered=True)
    like = np.float64(0.1), np.int64(5), np.int64(3)
    assert a1gm.assess(sales(), *like, ordered=np.bool_(True)) == plain


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"hide": 1.5}, "hide= must be a share"),
        ({"repeats": 0}, "repeats must be a whole number"),
        ({"repeats": 2.5}, "repeats must be a whole number"),
        ({"repeats": "3"}, "repeats must be a whole number"),
        ({"sample": 1}, "sample must be a whole number >= 2"),
        ({"sample": "all"}, "sample must be a whole number >= 2"),
        ({"random_state": "abc"}, "random_state must be None, an integer"),
        ({"random_state": -1}, "random_state must be None, an integer"),
    ],
)
def test_odd_options_are_refused(options, words):
    with pytest.raises(ParameterError, match=words):
        a1gm.assess(sales(), **options)


def test_negative_cells_that_cannot_be_left_alone_are_told():
    X = np.array([[5.0, -9, 3, 4], [4, 8, 2, 3], [6, -7, 2, 5], [3, 4, 4, 2]])
    X[0, 0] = np.nan
    with pytest.raises(DataError, match="With some of its cells hidden"):
        a1gm.assess(X, 0.3, 20, random_state=0, negatives="allow")
