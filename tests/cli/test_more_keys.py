"""Long files with three keys or more, on the command line."""

from __future__ import annotations

import json
from itertools import product

import numpy as np
import pandas as pd
import pytest
from support.commands import run

import a1gm
from a1gm.exceptions import ParameterError

KEYS = ["site", "year", "month"]
LONG = "--long", "site,year,month,n"


@pytest.fixture
def counts():
    frame = pd.DataFrame(product("abcd", [2020, 2021, 2022], ["jan", "feb", "mar"]))
    frame.columns = KEYS
    rng = np.random.default_rng(0)
    frame["n"] = rng.poisson(20.0, len(frame))
    frame["effort"] = rng.integers(1, 4, len(frame))
    return frame


@pytest.fixture
def path(counts, tmp_path):
    counts.drop([3, 10, 25]).to_csv(tmp_path / "counts.csv", index=False)
    return tmp_path / "counts.csv"


@pytest.mark.parametrize(
    ("options", "interactions"),
    [
        ([], None),
        (["--interactions", "site:month"], ["site:month"]),
        (["--interactions", "site:month,year:month"], ["site:month", "year:month"]),
        (["--interactions", "site:month", "--interactions", "year:site"], None),
    ],
)
@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_impute_fills_as_fit_long_does(path, tmp_path, options, interactions, ending):
    seen = pd.read_csv(path)
    if len(options) == 4:
        interactions = [("site", "month"), ("site", "year")]
    fit = a1gm.fit_long(seen, KEYS, "n", interactions=interactions)
    if ending == "parquet":
        seen.to_parquet(path.with_suffix(".parquet"), index=False)
    out = tmp_path / "filled.csv"
    source = path.with_suffix(f".{ending}")
    done = run(
        "impute", source, "-o", out, *LONG, *options, "--interval", 0.9, "--mark"
    )
    found = pd.read_csv(out)
    assert found[: len(seen)].n.tolist() == seen.n.tolist()
    new = found[found.n_filled]
    expected = fit.fill_long(interval=0.9)
    np.testing.assert_allclose(new.n, fit.predict(new[KEYS]), rtol=1e-12)
    np.testing.assert_allclose(np.sort(new.n_low), np.sort(expected.lower), rtol=1e-12)
    assert "4 values of 'site' × 3 of 'year' × 3 of 'month'" in done.stderr
    assert "Filled 3 cells" in done.stderr


def test_fit_writes_a_file_per_margin(path, tmp_path):
    out = tmp_path / "results"
    done = run("fit", path, "-o", out, *LONG, "--interactions", "site:month")
    fit = a1gm.fit_long(pd.read_csv(path), KEYS, "n", interactions=["site:month"])
    first, second = (pd.read_csv(out / f"factor_{k}.csv") for k in (1, 2))
    assert list(first.columns) == ["site", "month", "factor"]
    np.testing.assert_allclose(first.factor, fit.factors["site", "month"].ravel())
    np.testing.assert_allclose(second.factor, fit.factors["year"])
    index = fit.uncertainty().index("year")
    np.testing.assert_allclose(second["index_se"], index.se, atol=1e-12)
    summary = json.loads((out / "fit.json").read_text())
    assert summary["margins"] == [["site", "month"], ["year"]]
    totals = fit.uncertainty().totals("site")
    by_site = summary["uncertainty"]["totals"]["missing_by_site"]
    np.testing.assert_allclose(by_site["se"], totals.se, rtol=1e-9)
    assert summary["n_missing"] == 3
    again = a1gm.load(out / "model.a1gm")
    assert again.predict(("a", 2021, "jan")) == fit.predict(("a", 2021, "jan"))
    assert "Wrote factor_1.csv, factor_2.csv, fit.json, model.a1gm" in done.stderr
    without = run("fit", path, "-o", tmp_path / "2", *LONG, "--no-errors", "--json")
    assert "why_not" in json.loads(without.stdout)["uncertainty"]
    assert "index" not in pd.read_csv(tmp_path / "2" / "factor_1.csv")


def test_parts_with_separate_scales(tmp_path):
    """Factors are written, and no index across the parts."""
    cells = [(*at, 9.0) for at in product("ab", "pq", "xy")]
    cells += [(*at, 4.0) for at in product("cd", "rs", "zw")]
    path, out = tmp_path / "t.csv", tmp_path / "out"
    pd.DataFrame(cells, columns=[*KEYS, "n"]).to_csv(path, index=False)
    run("fit", path, "-o", out, *LONG)
    found = pd.read_csv(out / "factor_1.csv")
    assert found["site"].tolist() == list("abcd")
    assert found["index"].isna().tolist() == [False, False, True, True]
    run("report", path, "-o", tmp_path / "p.html", *LONG)
    page = (tmp_path / "p.html").read_text()
    assert "compare factors within a part only" in page
    assert "48 cells without a value" in page


def test_totals_have_the_labels_of_their_levels(path, tmp_path):
    """Seen: bare numbers, and nothing about a level without data."""
    seen = pd.read_csv(path).astype({"n": float})
    seen.loc[seen["year"] == 2021, "n"] = np.nan
    seen.to_csv(path, index=False)
    done = run("fit", path, "-o", tmp_path / "out", *LONG, "--json")
    totals = json.loads(done.stdout)["uncertainty"]["totals"]
    by_year = totals["missing_by_year"]
    assert by_year["labels"] == ["2020", "2021", "2022"]
    assert by_year["value"][1] is None
    assert by_year["unknown"] == [0, 12, 0]
    assert totals["missing_by_site"]["labels"] == list("abcd")
    assert '"unknown": 12\n' in done.stdout


def test_assess_compares_sets_of_margins(path):
    done = run("assess", path, *LONG, "--repeats", 2)
    found = a1gm.assess(
        pd.read_csv(path),
        0.1,
        2,
        0,
        keys=KEYS,
        value="n",
        interactions="all",
    )
    assert done.stdout == f"{found!r}\n"
    again = run("assess", path, *LONG, "--repeats", 2, "--interactions", "all")
    assert again.stdout == done.stdout
    options = "--interactions", "site:month", "--json", "--repeats", 2
    summary = json.loads(run("assess", path, *LONG, *options).stdout)
    assert list(summary["scores"]) == sorted(
        summary["scores"], key=lambda name: -summary["scores"][name]["skill"]
    )
    assert len(summary["scores"]) == 2


def test_all_sets_of_five_keys_are_too_many(tmp_path):
    frame = pd.DataFrame(product("ab", repeat=5), columns=list("vwxyz")).assign(n=1)
    frame.to_csv(tmp_path / "five.csv", index=False)
    done = run("assess", tmp_path / "five.csv", "--long", "v,w,x,y,z,n", code=2)
    assert "--interactions all would try 1,024 sets of pairs of 5 keys. " in done.stderr
    assert "Pass one set, such as --interactions v:w, which" in done.stderr
    given = {"keys": list("vwxyz"), "value": "n"}
    with pytest.raises(ParameterError, match=r"such as interactions=\['v:w'\]"):
        a1gm.assess(frame, interactions="all", **given)
    assert len(a1gm.assess(frame, interactions=["v:w"], **given).scores) == 2


@pytest.mark.parametrize("name", ["weights", "exposure"])
def test_columns_of_weights(path, counts, tmp_path, name):
    frame = counts.astype({"n": float})
    frame.loc[[3, 10, 25], "n"] = np.nan
    frame.to_csv(path, index=False)
    out = tmp_path / "filled.csv"
    run("impute", path, "-o", out, *LONG, f"--{name}", "effort")
    fit = a1gm.fit_long(frame, KEYS, "n", **{name: "effort"})
    found = pd.read_csv(out).n[[3, 10, 25]]
    np.testing.assert_allclose(found, fit.fill_long().n, rtol=1e-12)


@pytest.mark.parametrize(
    ("command", "options", "words"),
    [
        ("fit -o out", "--by effort", "--by is for two keys; --long names 3."),
        ("impute -o out.csv", "--negatives allow", "--negatives is for two keys"),
        ("fit -o out", "--interactions site:moth", "Did you mean 'month'?"),
        ("fit -o out", "--interactions site:year:month", "Leave one out"),
        ("fit -o out", "--interactions site,month", "write site:month, not site,month"),
        ("assess", "--interactions year", "write site:year, not year."),
        ("impute -o out.csv", "--interactions all", "write site:year, not all."),
        ("assess", "--sample 5", "--sample is for tables of two keys"),
        ("report -o p.html", "--sample 5", "--sample is for tables of two keys."),
        # Seen: exit code 0.
        ("fit -o out", "--tol -1", "--tol must be a positive number, got -1.0."),
        ("assess", "--weights n --exposure n", "Pass --exposure for counts collected"),
        ("assess", "--duplicates sum --weights effort", "sum and --weights cannot"),
        ("assess", "--hide last", "share"),
        ("inspect", "", "two keys"),
        ("impute -o out.csv", "--model m", "--long and --model"),
    ],
)
def test_what_is_refused(path, tmp_path, monkeypatch, command, options, words):
    monkeypatch.chdir(tmp_path)
    name, *rest = command.split()
    done = run(name, path, *rest, *LONG, *options.split(), code=2)
    assert words in done.stderr
    assert done.stderr.count("\n") == 1
    assert [p.name for p in tmp_path.iterdir()] == ["counts.csv"]


def test_cells_that_cannot_be_fitted_or_known(tmp_path):
    path, out = tmp_path / "t.csv", tmp_path / "out.csv"
    path.write_text("site,year,month,n\na,2020,jan,3\nb,2021,feb,-2\n")
    done = run("impute", path, "-o", out, *LONG, code=1)
    assert "n['b', '2021', 'feb'] in" in done.stderr
    assert "line 3" in done.stderr
    assert "--negatives" not in done.stderr
    path.write_text("site,year,month,n\na,2020,jan,3\nb,2021,feb,2\n")
    done = run("impute", path, "-o", out, *LONG)
    assert (
        "6 missing cells are undetermined, the first at n['a', '2020', 'feb']. They"
        in (done.stderr)
    )
    assert "They stay missing; a1gm report lists them." in done.stderr
    assert "6 cells stay missing" in done.stderr
    done = run("impute", path, "-o", tmp_path / "2.csv", *LONG, "--strict", code=1)
    assert "fit.undetermined" not in done.stderr
    assert "stay missing" not in done.stderr  # seen, where nothing was written
    assert "feb']; a1gm report lists them." in done.stderr


def test_the_help_says_which_commands_take_more_keys():
    """Seen: the help of inspect, which takes two keys, offered more."""
    words = " ".join(run("inspect", "--help").stdout.split())
    assert "fit, impute, assess and report take more keys" in words


@pytest.mark.parametrize(
    ("order", "is_asked"), [("n,site,year,month", True), ("", False)]
)
def test_many_repeated_rows_ask_for_the_value(path, tmp_path, order, is_asked):
    """Seen: advice to add up the months, where the value was named first."""
    frame = pd.read_csv(path).drop(columns="effort")
    frame = frame.replace({"month": {"jan": 1, "feb": 2, "mar": 3}})
    frame["n"] = 7 if is_asked else frame["n"]
    pd.concat([frame, frame[:1]]).to_csv(path, index=False)
    long = "--long", order or "site,year,month,n"
    done = run("impute", path, "-o", tmp_path / "out.csv", *long, code=1)
    assert "occurs twice" in done.stderr
    asked = "Is 'month' the column of the values, which is named last?"
    assert (asked in done.stderr) == is_asked


def test_a_key_that_is_missing_is_asked_for(path, tmp_path):
    """Seen: only whether the value is the column of the values, which it was."""
    long = "--long", "site,year,n"
    done = run("impute", path, "-o", tmp_path / "out.csv", *long, code=1)
    assert (
        "Is a key missing, or is 'n' not the column of the values, which is named last?"
    ) in done.stderr


def test_a_model_of_three_keys_is_for_python(path, tmp_path):
    """Seen: "Pass one of its fits: a1gm.load(path)[key]", which it does not have."""
    model, out = tmp_path / "results" / "model.a1gm", tmp_path / "out.csv"
    run("fit", path, "-o", model.parent, *LONG)
    done = run("impute", path, "-o", out, "--model", model, code=2)
    words = "In Python, a1gm.load(model).predict(frame) gives the values of cells."
    assert words in done.stderr
    assert words in run("impute", path, "-o", out, *LONG, "--model", "m", code=2).stderr
    with pytest.raises(ParameterError, match=r"a1gm\.load\(model\)\.predict\(frame\)"):
        a1gm.impute_file(path, out, fit=a1gm.load(model))
    assert "not for a1gm impute" in " ".join(run("fit", "--help").stdout.split())


def test_interactions_need_three_keys(path, tmp_path):
    some = "-o", tmp_path / "out", "--interactions", "site:year"
    done = run("fit", path, *some, "--long", "site,year,n", code=2)
    assert "--interactions is for three keys or more; --long names 2." in done.stderr
    done = run("fit", path, *some, code=2)
    assert "--interactions needs --long" in done.stderr


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_a_long_file_with_many_keys_is_recognised(tmp_path, ending):
    keys = ["site", "year", "month", "kind"]
    frame = pd.DataFrame(product("abcd", ["x", "y"], ["jan", "feb"], "pq"))
    frame.columns = keys
    frame = pd.concat([frame, frame[:0]]).assign(n=np.arange(32.0))
    path = tmp_path / f"counts.{ending}"
    getattr(frame, f"to_{ending}")(path, index=False)
    done = run("fit", path, "-o", tmp_path / "out")
    assert "it may have one row per cell" in done.stderr
    assert "--long site,year,month,kind,n" in done.stderr
