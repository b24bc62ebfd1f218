"""Many tables in one call: each fit is the one that a1gm.fit makes."""

from __future__ import annotations

import json
import pickle
import warnings
import zipfile

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

import a1gm
from a1gm.exceptions import (
    A1gmError,
    A1gmWarning,
    ConvergenceWarning,
    DataError,
    DataHintWarning,
    EmptyLineWarning,
    FileFormatError,
    LabelError,
    NegativeValuesError,
    NotNumericError,
    ParameterError,
    SkippedWarning,
    UndeterminedError,
    UndeterminedWarning,
)

nan = np.nan
SAMPLES, KEYS = ["s1", "s2", "s3"], ["peptide", "sample"]


def stack_of(n: int = 6) -> np.ndarray:
    stack = np.random.default_rng(0).gamma(2.0, size=(n, 4, 3))
    stack[:, 1, 2] = stack[:, 3, 0] = nan
    return stack


def long_of(stack: np.ndarray) -> pd.DataFrame:
    cells = [
        (f"P{k}", f"P{k}-{i}", SAMPLES[j], x)
        for (k, i, j), x in np.ndenumerate(stack)
        if not np.isnan(x)
    ]
    return pd.DataFrame(cells, columns=["protein", "peptide", "sample", "value"])


def same(found: a1gm.RankOneFit, X: np.ndarray) -> None:
    right = a1gm.fit(X)
    np.testing.assert_allclose(found.row_factor, right.row_factor, rtol=1e-12)
    np.testing.assert_allclose(found.col_factor, right.col_factor, rtol=1e-12)


# ---------------------------------------------------------------------------- stacks
@pytest.mark.parametrize(
    "make",
    [
        lambda stack: stack,
        lambda stack: stack[:, ::-1][:, ::-1],
        list,
        lambda stack: (table for table in stack),
        lambda stack: stack.astype(object),
        np.ma.masked_invalid,
        lambda stack: [pd.DataFrame(table) for table in stack],
        lambda stack: [table.tolist() for table in stack],
        lambda stack: [sp.csr_array(np.nan_to_num(table)) for table in stack],
    ],
)
def test_a_stack_is_fitted_table_by_table(make):
    stack, tables = stack_of(), make(stack_of())
    is_sparse = isinstance(tables, list) and sp.issparse(tables[0])
    many = a1gm.fit_many(tables, absent="missing" if is_sparse else None)
    assert list(many) == list(range(6))
    assert many.failed == {}
    for key, fit in many.items():
        same(fit, stack[key])


def test_tables_by_key_keep_their_names():
    stack = stack_of(2)
    frames = {
        name: pd.DataFrame(table, index=list("wxyz"), columns=SAMPLES)
        for name, table in zip(("a", "b"), stack, strict=True)
    }
    many = a1gm.fit_many(frames)
    assert list(many) == ["a", "b"]
    assert list(many["b"].row_labels) == list("wxyz")
    same(many["b"], stack[1])
    rows, columns = many.to_frames()
    assert rows.columns.tolist() == ["table", "row", "row_factor", "row_block"]
    assert columns["column"].tolist() == SAMPLES * 2
    assert (many["a"].impute(frames["a"]).notna()).all(axis=None)


@pytest.mark.parametrize("backend", ["pandas", "polars", "pyarrow"])
def test_all_factors_in_two_long_frames(backend):
    stack = stack_of(3)
    stack[1] = nan
    with pytest.warns(SkippedWarning):
        many = a1gm.fit_many(stack)
    rows, columns = many.to_frames(backend)
    assert np.asarray(rows["table"]).tolist() == [0] * 4 + [2] * 4
    expected = np.concatenate([a1gm.fit(stack[k]).row_factor for k in (0, 2)])
    np.testing.assert_allclose(np.asarray(rows["row_factor"]), expected, rtol=1e-12)
    assert np.asarray(columns["column"]).tolist() == [0, 1, 2] * 2
    with pytest.raises(ParameterError, match="backend must be"):
        many.to_frames()


def test_tables_that_fail_do_not_stop_the_others():
    tables = [*stack_of(2), np.full((2, 2), nan), [["a"]], -np.ones((2, 2)), [1.0, 2.0]]
    with pytest.warns(SkippedWarning, match=r"4 of 6 tables.*The first is 2") as said:
        many = a1gm.fit_many(tables)
    assert len(said) == 1
    wrong = [DataError, NotNumericError, NegativeValuesError, DataError]
    assert [type(why) for why in many.failed.values()] == wrong
    assert list(many) == [0, 1]
    assert 4 not in many
    with pytest.raises(LabelError, match="table 4 could not be fitted: Negative"):
        many[4]
    with pytest.raises(LabelError, match="no table 9 among these 6 tables"):
        many[9]
    assert repr(many) == "ManyFits(2 tables, 4 failed)"
    assert a1gm.fit_many(tables[4:5], negatives="allow").failed == {}


def test_doubts_are_told_once():
    blocks = np.array([[1.0, nan], [nan, 2.0]])
    empty = np.array([[1.0, 2.0], [nan, nan]])
    tables = [blocks, empty, np.ones((2, 2)), blocks]
    with pytest.warns(A1gmWarning) as said:
        many = a1gm.fit_many(tables)
    assert [w.category for w in said] == [EmptyLineWarning, UndeterminedWarning]
    assert "In 1 of 4 tables some rows" in str(said[0].message)
    assert "In 2 of 4 tables the data" in str(said[1].message)
    assert "The first is 0;" in str(said[1].message)
    assert many[0].n_undetermined == 2
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        a1gm.fit_many([blocks, blocks], on_undetermined="ignore")
    with pytest.warns(SkippedWarning):
        strict = a1gm.fit_many(tables, on_undetermined="raise")
    assert isinstance(strict.failed[0], UndeterminedError)
    hard = np.random.default_rng(1).gamma(0.1, size=(9, 9)) + np.eye(9)
    hard[np.triu_indices(9, 2)] = hard[np.tril_indices(9, -3)] = nan
    with pytest.warns(ConvergenceWarning, match="In 1 of 1 table the certificate"):
        a1gm.fit_many([hard], max_iter=1)


def test_what_is_not_many_tables_is_told_what_to_do():
    with pytest.raises(DataError, match=r"a1gm\.fit takes a single"):
        a1gm.fit_many(np.ones((2, 2)))
    with pytest.raises(DataError, match=r"fit_groups"):
        a1gm.fit_many(pd.DataFrame({"a": [1.0]}))
    with pytest.raises(ParameterError, match="tol"):
        a1gm.fit_many(stack_of(), tol=-1.0)


@given(st.integers(0, 10**6))
def test_every_fit_is_that_of_a_single_table_to_the_last_bit(seed):
    rng = np.random.default_rng(seed)
    tables = []
    for n, m in rng.integers(1, 16, (12, 2)):
        table = rng.gamma(rng.choice([0.1, 2.0]), size=(n, m))
        table *= 10.0 ** rng.choice([-6, 0, 6] if seed % 2 else [-120, 0, 120])
        table[rng.random((n, m)) < rng.choice([0.0, 0.1, 0.4])] = nan
        table[rng.random((n, m)) < rng.choice([0.0, 0.0, 0.2])] = 0.0
        tables.append(table.astype(rng.choice(["f8", "f4"])) if seed % 2 else table)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", A1gmWarning)
        many = a1gm.fit_many(tables)
        for k, table in enumerate(tables):
            if k in many.failed:
                with pytest.raises(type(many.failed[k])):
                    a1gm.fit(table)
                continue
            fit, right = many[k], a1gm.fit(table)
            for name in ("col_factor", "row_factor", "row_block", "col_block"):
                np.testing.assert_array_equal(getattr(fit, name), getattr(right, name))
            for name in ("solver", "n_iter", "certificate", "cell_error", "n_blocks"):
                assert getattr(fit, name) == getattr(right, name)


def test_tables_without_keys_are_found_by_place():
    stack = stack_of()
    many = a1gm.fit_many(stack)
    assert many[-1] is many[5]
    assert many[1:3] == [many[1], many[2]]
    assert many[::-1][0] is many[5]
    assert many[np.int64(-6)] is many[0]
    assert 5 in many
    assert 6 not in many
    assert "a" not in many
    assert (many.get("a"), many.get(6, 0), many.get(-1)) == (None, 0, many[5])
    with pytest.raises(KeyError):
        many["a"]
    assert list(many.keys()) == list(range(6))
    with pytest.raises(LabelError, match="no table -7 among these 6 tables"):
        many[-7]
    stack[2] = -1.0
    with pytest.warns(SkippedWarning):
        many = a1gm.fit_many(stack)
    with pytest.raises(LabelError, match="table 2 could not be fitted"):
        many[:3]
    assert 2 not in many
    assert many.get(2, "failed") == "failed"
    groups = a1gm.fit_many({-1: stack[0], "b": stack[1]})
    assert groups[:1] == [groups[-1]]


# ---------------------------------------------------------------------------- groups
@pytest.mark.parametrize("is_sparse", [False, True])
@pytest.mark.parametrize("make", [lambda f: f, pl.from_pandas, pa.Table.from_pandas])
def test_groups_of_a_long_frame(make, is_sparse, monkeypatch):
    if is_sparse:  # never spread out
        monkeypatch.setattr("a1gm._rows.long.SPARSE", 0)
        monkeypatch.setattr("a1gm._rows.long.SMALL_TABLE", 0)
    stack = stack_of()
    frame = make(long_of(stack))
    many = a1gm.fit_groups(frame, by="protein", keys=KEYS, value="value")
    assert list(many) == [f"P{k}" for k in range(6)]
    for k, fit in enumerate(many.values()):
        same(fit, stack[k])
        assert list(fit.row_labels) == [f"P{k}-{i}" for i in range(4)]
        assert list(fit.col_labels) == SAMPLES
    filled = many.fill_long()
    assert type(filled) is type(frame)
    assert np.asarray(filled["peptide"]).tolist()[:2] == ["P0-1", "P0-3"]
    expected = [many["P0"].predict("P0-1", "s3"), many["P0"].predict("P0-3", "s1")]
    np.testing.assert_allclose(np.asarray(filled["value"])[:2], expected)
    assert len(filled) == 12
    assert len(many.fill_long(only_missing=False)) == 6 * 12
    rows, _ = many.to_frames()
    assert type(rows) is type(frame)
    assert np.asarray(rows["protein"]).tolist() == np.repeat(list(many), 4).tolist()
    again = pickle.loads(pickle.dumps(many))
    assert (again["P3"].row_factor == many["P3"].row_factor).all()


def test_groups_in_any_order_of_rows():
    stack = stack_of()
    frame = long_of(stack).sample(frac=1.0, random_state=1)
    many = a1gm.fit_groups(frame, "protein", KEYS, "value")
    assert list(many) == list(dict.fromkeys(frame["protein"]))
    for key, fit in many.items():
        own = frame[frame["protein"] == key]
        assert list(fit.row_labels) == list(dict.fromkeys(own["peptide"]))
        right = a1gm.fit_long(own, KEYS, "value")
        np.testing.assert_allclose(fit.predict(own), right.predict(own), rtol=1e-12)


def test_groups_by_several_columns():
    stack = stack_of(4)
    frame = long_of(stack)
    proteins = ["P0", "P1", "P2", "P3"]
    labs = dict(zip(proteins, [1, 1, 2, 2], strict=True))
    frame.insert(0, "lab", frame["protein"].map(labs))
    frame["protein"] = frame["protein"].map(dict(zip(proteins, "ABAB", strict=True)))
    many = a1gm.fit_groups(frame, ["lab", "protein"], KEYS, "value")
    assert list(many) == [(1, "A"), (1, "B"), (2, "A"), (2, "B")]
    same(many[2, "A"], stack[2])
    rows, _ = many.to_frames()
    assert rows.columns.tolist()[:3] == ["lab", "protein", "peptide"]
    assert rows["lab"].tolist() == [1] * 8 + [2] * 8


def test_groups_that_fail_are_listed_with_their_labels():
    frame = long_of(stack_of(3))
    frame.loc[3, "value"] = -1.0
    frame = pd.concat([frame, frame.iloc[[-1]]])
    with pytest.warns(SkippedWarning, match="2 of 3 tables"):
        many = a1gm.fit_groups(frame, "protein", KEYS, "value")
    assert list(many) == ["P1"]
    assert "value['P0-1', 's1'] = -1" in str(many.failed["P0"])
    why = many.failed["P2"]
    assert isinstance(why, LabelError)
    assert "('P2-3', 's3') occurs twice, in row 29 and row 30" in str(why)
    with pytest.warns(SkippedWarning, match="1 of 3 tables"):
        summed = a1gm.fit_groups(frame, "protein", KEYS, "value", duplicates="sum")
    own = frame[frame["protein"] == "P2"]
    right = a1gm.fit_long(own, KEYS, "value", duplicates="sum")
    np.testing.assert_allclose(summed["P2"].predict(own), right.predict(own))
    assert len(summed["P2"].fill_long()) == 2


@pytest.mark.parametrize(
    ("by", "words"),
    [
        ("prot", "no column 'prot'"),
        ("sample", "must be different columns"),
        ([], r"by names no column\. a1gm.fit_long"),
    ],
)
def test_bad_columns_of_groups(by, words):
    with pytest.raises(ParameterError, match=words):
        a1gm.fit_groups(long_of(stack_of(2)), by, KEYS, "value")


def test_bad_calls_of_groups():
    frame = long_of(stack_of(2))
    series = frame.set_index(["protein", *KEYS])["value"]
    with pytest.raises(DataError, match=r"has 3\. Make a frame of it with series"):
        a1gm.fit_groups(series, "protein", KEYS, 0)
    frame.loc[4, "protein"] = None
    with pytest.raises(LabelError, match="The key 'protein' is missing in row 4"):
        a1gm.fit_groups(frame, "protein", KEYS, "value")
    with pytest.raises(ParameterError, match="not the groups of a long table"):
        a1gm.fit_many(stack_of(2)).fill_long()


# ------------------------------------------------------------------------- triangles
def test_a_triangle_is_the_triangles_it_holds():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        chainladder = pytest.importorskip("chainladder")
        triangle = chainladder.load_sample("mcl")
        reserves = chainladder.Chainladder().fit(triangle).ibnr_.set_backend("numpy")
        latest = triangle.latest_diagonal.values
        many = a1gm.fit_many(triangle, negatives="allow")
        increments = a1gm.fit_many(triangle.cum_to_incr(), negatives="allow")
    assert list(many) == [("Total", "incurred"), ("Total", "paid")]
    for k, (key, fit) in enumerate(many.items()):
        paid = fit.row_factor.sum()
        known = np.nansum(latest[0, k])
        total = np.nansum(reserves.values[0, k])
        assert paid - known == pytest.approx(total, rel=1e-9)
        assert fit.predict(str(fit.row_labels[-1]), 24) > 0.0
        np.testing.assert_allclose(fit.row_factor, increments[key].row_factor)
        filled = fit.fill_long()
        assert filled["increment"].sum() == pytest.approx(total, rel=1e-9)
        assert fit.predict(filled).tolist() == filled["increment"].tolist()
    every = many.fill_long()
    assert every.columns.tolist()[2:] == ["origin", "development", "increment"]
    assert len(every) == 2 * len(filled)
    with pytest.raises(NotNumericError, match=r"Triangle\. Fit it with a1gm.fit_many"):
        a1gm.fit_groups(triangle, "Total", ["origin", "development"], "values")
    rows, columns = many.to_frames()
    assert rows.columns.tolist()[:3] == ["Total", "column", "origin"]
    assert columns["development"].tolist()[:2] == [12, 24]


def test_origins_without_their_first_ages_are_chain_ladders():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        chainladder = pytest.importorskip("chainladder")
        triangle = chainladder.load_sample("xyz")
        reserves = chainladder.Chainladder().fit(triangle).ibnr_.set_backend("numpy")
    words = "21 cells.*the first: Total, Incurred, origin 1998, age 12.*chain-ladder"
    with pytest.warns(DataHintWarning, match=words):
        many = a1gm.fit_many(triangle, negatives="allow")
    filled = many.fill_long().groupby("column")["increment"].sum()
    assert filled["Paid"] == pytest.approx(282_567.72)  # not 295,806, as with zeros
    for k, name in enumerate(triangle.columns):
        assert filled[name] == pytest.approx(np.nansum(reserves.values[0, k]))


def test_a_single_triangle_is_a_table_and_a_payment_of_zero_is_known():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        chainladder = pytest.importorskip("chainladder")
        triangle = chainladder.load_sample("genins")
        amounts = triangle.values.copy()
        amounts[0, 0, 3, 4] = amounts[0, 0, 3, 3]  # nothing is paid in that year
        triangle.values = amounts
        reserve = float(chainladder.Chainladder().fit(triangle).ibnr_.sum())
        frame = triangle.cum_to_incr().to_frame()
        several = chainladder.load_sample("mcl")
    assert np.isnan(frame.iloc[3, 4])  # chainladder has no zeros
    fit = a1gm.fit(triangle)
    filled = fit.impute(triangle)
    assert filled.iloc[3, 4] == 0.0
    future = fit.uncertainty().totals("all").value[0]
    assert future == pytest.approx(reserve, rel=1e-9)
    assert np.nansum(filled) - np.nansum(frame) == pytest.approx(reserve, rel=1e-9)
    low, high = fit.uncertainty().interval(triangle)
    assert low.iloc[9, 9] < filled.iloc[9, 9] < high.iloc[9, 9]
    assert fit.residuals(triangle).shape == filled.shape
    assert a1gm.assess(triangle, random_state=0).skill == pytest.approx(
        a1gm.assess(filled.where(fit.residuals(triangle).notna()), random_state=0).skill
    )
    with pytest.raises(DataError, match=r"holds 2 triangles.*fit_many\(X\).*iloc"):
        a1gm.fit(several)


# --------------------------------------------------------------------------- how sure
def groups_of(backend=pd.DataFrame):
    """Two groups with errors, and one without a degree of freedom."""
    frame = long_of(np.concatenate([stack_of(2), np.full((1, 4, 3), nan)]))
    few = pd.DataFrame(
        [("P9", "a", "s1", 1.0), ("P9", "a", "s2", 2.0), ("P9", "b", "s1", 2.0)],
        columns=frame.columns,
    )
    frame = pd.concat([frame, few])
    return backend(frame.to_dict("list"))


@pytest.mark.parametrize("backend", [pd.DataFrame, pl.DataFrame, pa.table])
def test_tables_without_errors_are_listed_with_the_reason(backend):
    many = a1gm.fit_groups(groups_of(backend), "protein", KEYS, "value")
    with pytest.warns(
        SkippedWarning, match=r"1 of 3 tables have no .*see u.failed.*P9"
    ):
        u = many.uncertainty()
    assert list(u) == ["P0", "P1"]
    assert list(u.failed) == ["P9"]
    assert repr(u) == "ManyUncertainty(2 tables, 1 failed)"
    assert "degrees of freedom" in u._repr_html_()
    with pytest.raises(LabelError, match=r"no standard errors.*0 degrees of freedom"):
        u["P9"]
    with pytest.raises(LabelError, match="no table 'P7'"):
        u["P7"]
    totals = u.totals(by="column")
    assert type(totals) is type(many.fill_long())
    expected = [many[key].uncertainty().totals("column").se for key in u]
    np.testing.assert_allclose(np.asarray(totals["se"]), np.concatenate(expected))
    with pytest.warns(SkippedWarning):
        filled = many.fill_long(interval=0.95)
    lower = np.asarray(filled["lower"], float)
    assert np.isnan(lower).tolist() == [False] * 4 + [True]
    assert len(many.uncertainty("poisson")) == 3


def test_an_index_needs_its_base_in_the_table():
    frame = groups_of()
    many = a1gm.fit_groups(frame[frame["protein"] != "P9"], "protein", KEYS, "value")
    u = many.uncertainty()
    assert len(u.index("s2")) == 6
    with pytest.warns(SkippedWarning, match="1 of 2 tables are left out.*P1-0"):
        assert len(u.index("P0-0", by="row")) == 4
    with pytest.raises(LabelError):
        u.index("other")
    assert many[:1][0].uncertainty().index("s2").se[0] == u.index("s2")["se"][0]
    stack = a1gm.fit_many(stack_of(2))
    assert len(stack.uncertainty().totals("row", backend="pandas")) == 8
    with pytest.raises(ParameterError, match="backend"):
        stack.uncertainty().totals()


def test_a_name_that_would_be_there_twice_is_refused():
    frame = groups_of().rename(columns={"sample": "lower", "peptide": "se"})
    many = a1gm.fit_groups(frame, "protein", ["se", "lower"], "value")
    with pytest.raises(ParameterError, match="two columns 'se'"):
        many.uncertainty(1.0).totals("row")
    with pytest.raises(ParameterError, match="two columns 'lower'"):
        many["P0"].fill_long(interval=0.9)


# ----------------------------------------------------------------------------- saving
def test_many_fits_are_saved_in_one_file(tmp_path):
    frame = groups_of()
    frame = pd.concat([frame, frame.iloc[:1].assign(protein="P8", value=-1.0)])
    frame["day"] = 3
    with pytest.warns(SkippedWarning):
        many = a1gm.fit_groups(frame, ["protein", "day"], KEYS, "value")
    many.save(tmp_path / "many.a1gm")
    with pytest.raises(A1gmError, match="exists"):
        many.save(tmp_path / "many.a1gm")
    found = a1gm.load(tmp_path / "many.a1gm")
    assert repr(found) == repr(many)
    assert list(found) == list(many)
    assert "value['P0-0', 's1'] = -1" in str(found.failed["P8", 3])
    for one, other in zip(found.to_frames(), many.to_frames(), strict=True):
        pd.testing.assert_frame_equal(one, other, check_dtype=False)
    assert found["P1", 3].predict("P1-1", "s3") == many["P1", 3].predict("P1-1", "s3")
    one, other = (each.uncertainty(2.0).totals("all") for each in (found, many))
    pd.testing.assert_frame_equal(one, other, check_dtype=False)
    with pytest.raises(ParameterError, match="loaded"):
        found.fill_long()
    with pytest.raises(ParameterError, match="two keys, and this is a ManyFits"):
        a1gm.impute_file(tmp_path / "x.csv", tmp_path / "y.csv", fit=found)
    stack = a1gm.fit_many(stack_of(3))
    stack.save(tmp_path / "stack.a1gm")
    assert list(a1gm.load(tmp_path / "stack.a1gm")) == [0, 1, 2]
    same(a1gm.load(tmp_path / "stack.a1gm")[-1], stack_of(3)[2])
    with pytest.warns(SkippedWarning):
        none = a1gm.fit_many([[[nan]]])
    with pytest.raises(ParameterError, match="nothing to save"):
        none.save(tmp_path / "none.a1gm")


@pytest.mark.parametrize("name", ["fits", "shapes", "keys", "sides", "failed", "value"])
def test_a_file_of_many_fits_that_lacks_a_part_is_refused(name, tmp_path):
    a1gm.fit_many(stack_of(2)).save(tmp_path / "many.a1gm")
    with zipfile.ZipFile(tmp_path / "many.a1gm") as archive:
        entries = {entry: archive.read(entry) for entry in archive.namelist()}
    header = json.loads(entries["header.json"])
    for broken in (None, [], "x", {"0": 1}):
        content = {**header["content"], name: broken}
        if content == header["content"]:
            continue
        entries["header.json"] = json.dumps({**header, "content": content}).encode()
        with zipfile.ZipFile(tmp_path / "broken.a1gm", "w") as archive:
            for entry, data in entries.items():
                archive.writestr(zipfile.ZipInfo(entry), data)
        with pytest.raises(FileFormatError, match="is refused"):
            a1gm.load(tmp_path / "broken.a1gm")


def test_groups_have_two_keys():
    """Seen: a ValueError of NumPy."""
    frame = pd.DataFrame({"g": [1, 1], "r": [1, 2], "c": [1, 1], "k": [1, 1], "n": 1.0})
    with pytest.raises(ParameterError, match="two keys, got 3"):
        a1gm.fit_groups(frame, by="g", keys=["r", "c", "k"], value="n")
