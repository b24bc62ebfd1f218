"""One seed and its totals, by every way in: the same table comes out."""

from __future__ import annotations

import json
from functools import cache
from io import StringIO

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
from support.commands import run

import a1gm
from a1gm.exceptions import TotalsError
from ways.containers import CONTAINERS, names_of, sparse_table
from ways.file_ways import read_table, write_csv, write_parquet

SEED = np.array([[1.0, 2, 0, 4], [5, 0, 7, 8], [9, 1, 2, 3]])
FULL = SEED + np.eye(3, 4)
ROWS, COLS = [40.0, 60.0, 50.0], [30.0, 45.0, 25.0, 50.0]
UNKNOWN = [40.0, np.nan, 50.0], [30.0, 45.0, np.nan, np.nan]
KNOWN = np.full(SEED.shape, np.nan)
KNOWN[0, 1], KNOWN[2, 3] = 12.0, 0.0
PROBLEMS = {
    "all totals": (SEED, ROWS, COLS, None),
    "a full seed": (FULL, ROWS, COLS, None),
    "some totals": (SEED, *UNKNOWN, None),
    "one side": (SEED, ROWS, [np.nan] * 4, None),
    "known cells": (SEED, ROWS, COLS, KNOWN),
    "a block": (np.tril(FULL), [4.0, 10.0, 7.0], [9.0, 5.0, 7.0, 0.0], None),
}
pytestmark = pytest.mark.filterwarnings("ignore::a1gm.exceptions.DataHintWarning")
problems = pytest.mark.parametrize("name", PROBLEMS)


@cache
def expected_table(name):
    """Plain sweeps, with NumPy only, until nothing moves."""
    seed, rows, cols, known = PROBLEMS[name]
    fixed = np.zeros_like(seed) if known is None else np.nan_to_num(known)
    F = seed if known is None else np.where(np.isnan(known), seed, 0.0)
    for _ in range(20_000):
        for totals, axis in ((rows, 1), (cols, 0)):
            sums, left = F.sum(axis=axis), np.array(totals) - fixed.sum(axis=axis)
            with np.errstate(invalid="ignore", divide="ignore"):
                ratio = np.where(np.isnan(left) | (sums == 0.0), 1.0, left / sums)
            F = F * np.expand_dims(ratio, axis)
    return F + fixed


def same(table, name):
    """Sweeps leave cells that must be 0 at 1/k after k of them."""
    atol = 1e-3 if name == "a block" else 1e-9
    np.testing.assert_allclose(table, expected_table(name), rtol=1e-9, atol=atol)


@problems
@pytest.mark.parametrize("container", CONTAINERS)
def test_containers(name, container):
    make, to_array = CONTAINERS[container]
    seed, rows, cols, known = PROBLEMS[name]
    known = None if known is None else make(known)
    s = a1gm.scale(make(seed), rows, cols, known=known)
    same(np.asarray(to_array(s.table), float), name)


@problems
@pytest.mark.parametrize("make", [sp.csr_array, sp.csc_matrix, sp.coo_array])
def test_sparse(name, make):
    seed, rows, cols, known = PROBLEMS[name]
    if known is not None:
        known = sparse_table(known)
    s = a1gm.scale(make(seed), rows, cols, known=known)
    assert type(s.table) is make
    same(s.table.toarray(), name)


@problems
@pytest.mark.parametrize("kind", ["list", "dict", "pandas", "polars", "frame"])
def test_totals(name, kind):
    seed, rows, cols, known = PROBLEMS[name]
    names = list("abc"), names_of(seed)
    frame = pd.DataFrame(seed, *names)
    known = None if known is None else pd.DataFrame(known, *names)
    make = {
        "list": lambda totals, _: [None if np.isnan(t) else t for t in totals],
        "dict": lambda *pair: dict(reversed(list(zip(*reversed(pair), strict=True)))),
        "pandas": lambda *pair: pd.Series(*pair)[::-1],
        "polars": lambda totals, _: pl.Series(totals),
        "frame": lambda totals, own: pl.DataFrame({"name": own, "total": totals})[::-1],
    }[kind]
    totals = make(rows, names[0]), make(cols, names[1])
    same(a1gm.scale(frame, *totals, known=known).table.to_numpy(), name)


@problems
@pytest.mark.parametrize("write", [write_csv, write_parquet])
def test_command(name, write, tmp_path):
    seed, rows, cols, known = PROBLEMS[name]
    paths = {"row": tmp_path / "rows.csv", "col": tmp_path / "cols.csv"}
    pd.DataFrame({"total": rows}).to_csv(paths["row"], index=False)
    totals = pd.DataFrame({"name": names_of(seed), "total": cols})
    totals.to_csv(paths["col"], index=False)
    suffix = ".csv" if write is write_csv else ".parquet"
    file = write(seed, tmp_path / f"seed{suffix}")
    how = ["--row-totals", paths["row"], "--col-totals", paths["col"]]
    if known is not None:
        how += ["--known", write(known, tmp_path / f"known{suffix}")]
    out = tmp_path / f"out{suffix}"
    run("scale", file, *how, "-o", out)
    same(read_table(out), name)
    if write is write_csv:
        printed = run("scale", file, *how).stdout
        assert pd.read_csv(StringIO(printed)).equals(pd.read_csv(out))


def test_proofs_are_the_same(tmp_path):
    seed, rows, cols = SEED * (SEED > 3), [40.0, 60.0, 50.0], [80.0, 0.0, 25.0, 45.0]
    with pytest.raises(TotalsError) as error:
        a1gm.scale(seed, rows, [75.0, 5.0, 25.0, 45.0])
    assert error.value.cols == (1,)
    file = write_csv(seed, tmp_path / "seed.csv")
    pd.DataFrame({"total": [60.0, 80.0, 10.0]}).to_csv(
        tmp_path / "rows.csv", index=False
    )
    totals = pd.DataFrame({"name": names_of(seed), "total": cols})
    totals.to_csv(tmp_path / "cols.csv", index=False)
    how = ["--row-totals", tmp_path / "rows.csv", "--col-totals", tmp_path / "cols.csv"]
    done = run("scale", file, *how, "--json", "-q", code=1)
    found = json.loads(done.stderr.splitlines()[-1])
    with pytest.raises(TotalsError) as error:
        a1gm.scale(seed, [60.0, 80.0, 10.0], cols)
    proof = error.value
    assert (found["rows"], found["cols"]) == (list(proof.rows), list(proof.cols))
    assert (found["needs"], found["has"]) == (proof.needs, proof.has)
