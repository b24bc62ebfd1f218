"""``a1gm fit``."""

import json

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest
from support.commands import run

import a1gm

nan = np.nan


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_fit_writes_factors_with_names(sales, tmp_path, kind):
    out = tmp_path / "results"
    run("fit", sales, "--id", "shop", "-o", out, "--format", kind)
    read = pd.read_csv if kind == "csv" else pd.read_parquet
    rows, columns = (read(out / f"{side}_factor.{kind}") for side in ("row", "col"))
    assert list(rows) == ["shop", "row_factor", "se", "block"]
    assert list(columns) == ["column", "col_factor", "se", "index", "index_se", "block"]
    assert rows["shop"].tolist() == ["A", "B", "C", "D, new"]
    np.testing.assert_allclose(rows["row_factor"], [60, 120, 180, 240], rtol=1e-7)
    summary = json.loads((out / "fit.json").read_text())
    assert summary["columns"] == ["jan", "feb", "mar"]
    assert summary["certificate"] <= 1e-10
    assert abs(summary["divergence"]) < 1e-9
    assert summary["converged"] is True


def test_fit_refuses_to_replace_results(sales, tmp_path):
    run("fit", sales, "-o", tmp_path / "results")
    done = run("fit", sales, "-o", tmp_path / "results", code=2)
    assert "--overwrite" in done.stderr
    run("fit", sales, "-o", tmp_path / "results", "--overwrite")


def test_a_label_that_is_called_like_a_result_is_refused(tmp_path):
    (tmp_path / "a.csv").write_text("se,x,y\na,1,2\nb,2,5\nc,3,5\n")
    done = run("fit", tmp_path / "a.csv", "-o", tmp_path / "out", code=2)
    assert "two columns 'se'" in done.stderr


def table_file(path, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.poisson(np.outer(rng.gamma(4, 9, 30), rng.gamma(4, 0.5, 5))) + 1.0
    X[rng.random(X.shape) < 0.2] = np.nan
    np.savetxt(path, X, delimiter=",", header="a,b,c,d,e", comments="", fmt="%g")
    return X


def test_fit_writes_what_is_sure(tmp_path):
    X = table_file(tmp_path / "a.csv")
    run("fit", tmp_path / "a.csv", "-o", tmp_path / "out", "-q", "--format", "parquet")
    u = a1gm.fit(X).uncertainty()
    rows = pq.read_table(tmp_path / "out" / "row_factor.parquet").to_pydict()
    columns = pq.read_table(tmp_path / "out" / "col_factor.parquet").to_pydict()
    total = u.totals("row", "fitted")
    np.testing.assert_allclose(rows["se"], total.se_estimation, rtol=1e-9)
    np.testing.assert_allclose(columns["se"], u.factor_errors()[1], rtol=1e-9)
    np.testing.assert_allclose(columns["index"], u.index().value, rtol=1e-9)
    np.testing.assert_allclose(columns["index_se"], u.index().se, rtol=1e-9)
    sure = json.loads((tmp_path / "out" / "fit.json").read_text())["uncertainty"]
    for name in ("dispersion", "dof", "pearson_p", "deviance", "deviance_p"):
        assert sure[name] == pytest.approx(getattr(u, name), rel=1e-8)
    total = u.totals("all")
    assert sure["totals"]["missing"]["se"] == pytest.approx(total.se[0])
    by_column = sure["totals"]["missing_by_column"]["value"]
    np.testing.assert_allclose(by_column, u.totals("column").value, rtol=1e-9)
    assert sure["totals"]["missing_by_column"]["labels"] == list("abcde")


def test_fit_leaves_out_errors_that_take_long_and_nobody_asked_for(
    tmp_path, monkeypatch
):
    X = table_file(tmp_path / "a.csv")
    out, file = tmp_path / "out", tmp_path / "a.csv"
    rows, summary = out / "row_factor.csv", out / "fit.json"

    def fitted(*options):
        done = run("fit", file, "-o", out, "--overwrite", *options)
        errors = pd.read_csv(rows)["se"].to_numpy()
        return done.stderr, errors, json.loads(summary.read_text())["uncertainty"]

    said, errors, sure = fitted()
    assert "No standard errors" not in said
    np.testing.assert_allclose(errors, a1gm.fit(X).uncertainty().factor_errors().rows)
    assert sure["dispersion"] > 0
    said, errors, sure = fitted("--no-errors")
    assert np.isnan(errors).all()
    assert sure == {"why_not": "--no-errors leaves them out."}
    monkeypatch.setattr("a1gm.cli.fit._MOST_PRODUCTS", 1)
    said, errors, sure = fitted()
    assert "No standard errors: " in said
    assert "--errors computes them" in sure["why_not"]
    assert np.isnan(errors).all()
    said, errors, sure = fitted("--errors")
    assert np.isfinite(errors).all()
    assert sure["dispersion"] > 0


def test_fit_says_why_nothing_is_sure_and_numbers_rows_without_an_id(tmp_path):
    (tmp_path / "a.csv").write_text("x,y\n1,2\n2,\n")
    run("fit", tmp_path / "a.csv", "-o", tmp_path / "out", "-q")
    summary = json.loads((tmp_path / "out" / "fit.json").read_text())
    assert "0 degrees of freedom" in summary["uncertainty"]["why_not"]
    rows = (tmp_path / "out" / "row_factor.csv").read_text()
    assert rows == "row,row_factor,se,block\n0,3,,0\n1,6,,0\n"
