"""What two installs are asked about random tables, through public names only.

Runs in a process of its own.
"""

from __future__ import annotations

import dataclasses
import tempfile
import warnings
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import dask
import dask.array as da
import dask.dataframe as dd
import narwhals as nw
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import scipy.sparse as sp
from pyarrow import feather

import a1gm

from .compare import KINDS, Raised
from .process import serve
from .zoo import KINDS as ZOO
from .zoo import Case, values, with_holes

nan = np.nan
FRAMES = {"pandas": pd.DataFrame, "polars": pl.DataFrame, "pyarrow": pa.table}
LONG = ("group", "shop", "month", "units", "n")
OF_A_FIT = ("cell_error", "converged", "col_factor", "n_blocks", "solver")
OF_ITS_ROWS = ("row_factor", "row_labels", "n_undetermined", "divergence")
OF_A_PATTERN = ("n_missing", "is_complete", "is_nested", "has_closed_form", "n_blocks")
OF_NEW_ROWS = ("impute", "transform", "residuals", "divergence_of")


# ------------------------------------------------------------------- plain answers
def plain(value: Any) -> Any:
    """Any answer of the package as arrays, text, lists and dictionaries."""
    if value is None or isinstance(value, str | bool | int | float):
        return value
    if isinstance(value, np.generic):
        return plain(value.item())
    if isinstance(value, np.ndarray):
        value = np.ma.filled(value.astype(float), nan) if np.ma.isMA(value) else value
        return value if value.dtype.kind in "biuf" else value.astype(object).tolist()
    if isinstance(value, dict):
        return {str(key): plain(one) for key, one in value.items()}
    if dataclasses.is_dataclass(value):
        return plain(
            {f.name: getattr(value, f.name) for f in dataclasses.fields(value)}
        )
    if hasattr(value, "compute"):
        return plain(value.compute())
    if sp.issparse(value):
        return [type(value).__name__, value.toarray()]
    if isinstance(value, pd.DataFrame | pl.DataFrame | pa.Table):
        columns = nw.from_native(value).to_dict(as_series=False)
        types = value.schema.types if isinstance(value, pa.Table) else value.dtypes
        return {
            "type": f"{type(value).__module__.split('.')[0]} {type(value).__name__}",
            "names": list(columns),
            "dtypes": list(map(str, types)),
            "index": list(map(str, getattr(value, "index", ()))),
            "cells": list(map(as_numbers, columns.values())),
        }
    if isinstance(value, pd.Series | pl.Series | pd.Index):
        return [type(value).__name__, str(value.dtype), plain(value.to_numpy())]
    if isinstance(value, list | tuple) or hasattr(value, "__len__"):
        if hasattr(value, "__array__"):  # row factors that are made when needed
            return plain(np.asarray(value))
        return [plain(one) for one in value]
    return type(value).__name__


def as_numbers(cells: list) -> Any:
    """A column as floats if it can be, else as text."""
    try:
        return np.array([nan if x is None or x is pd.NA else float(x) for x in cells])
    except (TypeError, ValueError):
        return list(map(str, cells))


class Answers(dict):
    """The answers of this install for one table: each with its warnings."""

    def ask(self, name: str, call: Callable[..., Any], *args: Any, **options) -> Any:
        """Note what a call answers; None if it is refused."""
        found = None
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            try:
                found = call(*args, **options)
                answer = plain(found)
            except Exception as error:  # noqa: BLE001
                answer = Raised(type(error).__name__, str(error))
        classes = sorted({one.category.__name__ for one in caught})
        self[name] = (answer, classes, [str(one.message) for one in caught])
        return found

    def make(self, name: str, call: Callable[..., Any], *args: Any, **options) -> Any:
        """Note whether a call gives an object that can be asked, and hand it out."""
        box: list[Any] = []
        self.ask(name, lambda: box.append(call(*args, **options)))
        return box[0] if box else None

    def get_from(self, thing: Any, *names: str, prefix: str = "") -> None:
        for name in names:
            self.ask(prefix + name, getattr, thing, name)

    def ask_fit(self, fit: Any, X: Any = None, *, rows: Any = True, **options) -> None:
        """The ordinary questions to a fit; ``rows``: whether it has them, or names."""
        if fit is None:
            return
        self.get_from(fit, *OF_A_FIT)
        if rows:
            self.get_from(fit, *OF_ITS_ROWS)
            cells = places(fit.shape) if rows is True else rows
            self.ask("fate", fit.fate, *cells)
            self.ask("undetermined", lambda: [tuple(one) for one in fit.undetermined])
            self.ask("reconstruct", fit.reconstruct)
            self.ask("frames", fit.to_frames)
        if X is not None:
            self.ask_rows(fit, X, **options)

    def ask_rows(self, fit: Any, X: Any, prefix: str = "", **options) -> None:
        """The questions to a fit about any rows."""
        for name in OF_NEW_ROWS:
            self.ask(prefix + name, getattr(fit, name), X, **options)


# ------------------------------------------------------------------------- tables
def case_of(rng, *names: str) -> Case:
    """A case of one of these kinds of the attack, or of one of the ordinary ones."""
    names = names or ("ordinary", "zeros", "blocks", "staircase", "banded")
    return ZOO[str(rng.choice(names))].make(rng)


def table_of(rng, *names: str) -> np.ndarray:
    return case_of(rng, *names).X


def weights_of(case: Case) -> dict[str, Any]:
    return {} if case.V is None else {"weights": case.V}


def places(shape) -> tuple[np.ndarray, np.ndarray]:
    return np.arange(shape[0])[:, None], np.arange(shape[1])


def labelled(rng, X: np.ndarray) -> dict[str, list]:
    """The columns of a table; most have text that names the rows."""
    cells = [[None if np.isnan(x) else x for x in column] for column in X.T]
    columns = {f"c{j}": column for j, column in enumerate(cells)}
    names = {"name": [f"r{i}" for i in range(len(X))]} if rng.random() < 0.7 else {}
    return names | columns


def long_frame(rng, tables: list[np.ndarray]) -> Any:
    """The observed cells of tables, in any order, in any library."""
    columns = defaultdict(list)
    for k, X in enumerate(tables):
        for i, j in rng.permutation(np.argwhere(~np.isnan(X))):
            line = (f"g{k}", f"s{i}", int(j) + 1, float(X[i, j]), float(1 + i % 4))
            for name, x in zip(LONG, line, strict=True):
                columns[name].append(x)
    return FRAMES[str(rng.choice(list(FRAMES)))](dict(columns))


# -------------------------------------------------------------------------- kinds
def of_the_attack(answers, rng, folder, *names):
    case = case_of(rng, *names)
    options = {"negatives": "allow"} if case.signed else {}
    fit = answers.make("fit", a1gm.fit, case.X, **options, **weights_of(case))
    answers.ask_fit(fit, case.X, **weights_of(case))


def zero_components(answers, rng, folder):
    """Small tables of few numbers: every fate there is."""
    n, m = rng.integers(1, 8, 2)
    X = rng.choice([nan, 0.0, 1.0, 2.0], (n, m), p=[0.4, 0.3, 0.2, 0.1])
    fit = answers.make("fit", a1gm.fit, X)
    answers.ask_fit(fit, X)
    if fit is not None:
        answers.ask_rows(fit, rng.choice([nan, 0.0, 1.0, 3.0], (4, m)), "new ")
        answers.get_from(fit, "row_block", "col_block", "attained")
        answers.ask("summary", lambda: list(fit.summary()))
        answers.get_from(fit.pattern, *OF_A_PATTERN, prefix="pattern ")


def exposure(answers, rng, folder):
    X = table_of(rng, "zeros", "ordinary", "staircase")
    E = rng.lognormal(0.0, 1.0, X.shape)
    E[rng.random(X.shape) < 0.1] = rng.choice([0.0, 1.0, nan])
    fit = answers.make("fit", a1gm.fit, X, exposure=E)
    answers.ask_fit(fit, X)
    if fit is not None:
        answers.ask_rows(fit, X[:2], "new ", exposure=E[:2])
        answers.ask("se totals", lambda: fit.uncertainty(1.0).totals("row"))


def sparse(answers, rng, folder):
    X, absent = table_of(rng), str(rng.choice(["missing", "zero"]))
    rows, cols = np.nonzero(~np.isnan(X) & (X != 0.0 if absent == "zero" else True))
    make = [sp.csr_array, sp.csc_array, sp.coo_array][rng.integers(3)]
    S = make((X[rows, cols], (rows, cols)), shape=X.shape)
    fit = answers.make("fit", a1gm.fit, S, absent=absent)
    answers.ask_fit(fit, S)
    if fit is not None:
        answers.ask("dense", fit.impute, X)
        V = rng.lognormal(0.0, 1.0, X.shape)
        weighted = answers.make("weights", a1gm.fit, S, absent=absent, weights=V)
        answers.get_from(weighted, "col_factor", prefix="weighted ")


def long(answers, rng, folder):
    X = table_of(rng)
    frame = long_frame(rng, [X])
    options = {"weight": "n"} if rng.random() < 0.3 else {}
    fit = answers.make("fit", a1gm.fit_long, frame, LONG[1:3], "units", **options)
    names = [f"s{i}" for i in range(len(X))], np.arange(X.shape[1]) + 1
    answers.ask_fit(fit, rows=np.ix_(*names) if not np.isnan(X).all() else False)
    if fit is not None:
        answers.ask("fill_long", fit.fill_long)
        answers.ask("fill all", fit.fill_long, only_missing=False)
        answers.ask("predict", fit.predict, frame)
        answers.ask("predict pairs", fit.predict, ["s0", "s99"], [1, 1])
        answers.ask("se", lambda: fit.uncertainty(1.0).totals("column"))


def groups(answers, rng, folder):
    tables = [table_of(rng) for _ in range(rng.integers(1, 5))]
    frame = long_frame(rng, tables)
    calls = {
        "groups": (a1gm.fit_groups, frame, "group", LONG[1:3], "units"),
        "many": (a1gm.fit_many, tables),
    }
    for name, call in calls.items():
        many = answers.make(name, *call)
        if many is None:
            continue
        answers.ask(f"{name} fill", many.fill_long)
        for key in many:
            one = Answers()
            one.ask_fit(
                many[key], rows=(["s0", "s1"], [1, 1]) if call[1] is frame else True
            )
            answers.update({f"{name} {key} {k}": v for k, v in one.items()})


def nmmf(answers, rng, folder):
    n, m, n_y, m_z = rng.integers(2, 9, 4)
    shapes, share = ((n, m), (n_y, m), (n, m_z)), rng.uniform(0.0, 0.5)
    X, Y, Z = (with_holes(rng, values(rng, shape), share) for shape in shapes)
    if rng.random() < 0.3:
        X, Y, Z = (np.where(rng.random(T.shape) < 0.2, 0.0, T) for T in (X, Y, Z))
    Y, Z = (None if rng.random() < 0.2 else T for T in (Y, Z))
    alpha, beta = rng.choice([0.0, 0.5, 1.0, 3.0], 2, p=[0.1, 0.3, 0.4, 0.2])
    fit = answers.make("fit", a1gm.fit_nmmf, X, Y, Z, alpha=alpha, beta=beta)
    if fit is None:
        return
    answers.get_from(fit, "cell_error", "converged", *"whab", "n_blocks", "solver")
    answers.get_from(fit, "divergences", "n_undetermined", "undetermined")
    answers.ask("impute", fit.impute, X, Y, Z)
    answers.ask("reconstruct", fit.reconstruct)
    sure = answers.make("se", fit.uncertainty, 1.0) or {}
    for key, one in sure.items():
        answers.ask(f"se {key}", one.standard_error, 0, 0)
        answers.ask(f"se totals {key}", one.totals, "row")


def frames(answers, rng, folder):
    X = table_of(rng)
    columns = labelled(rng, X)
    form = str(rng.choice([*FRAMES, "index", "Float64", "Int64"]))
    options = {}
    if form in FRAMES:
        frame = FRAMES[form](columns)
        if "name" in columns and rng.random() < 0.8:
            options = {"id": "name"}
    else:
        frame = pd.DataFrame(X, columns=[f"c{j}" for j in range(X.shape[1])])
        if form == "index":
            frame.index = [f"r{i}" for i in range(len(X))]
        else:
            frame = (10.0 * frame).round().astype(form)
    fit = answers.make("fit", a1gm.fit, frame, **options)
    answers.ask_fit(fit, frame)
    answers.ask("one call", a1gm.impute, frame, **options)
    if fit is not None:
        answers.ask("rounded", fit.impute, frame, round="auto")
        answers.ask("column", fit.fate, 0, "c0")
        if rng.random() < 0.2:
            answers.ask("se interval", lambda: fit.uncertainty(1.0).interval(frame))


def files(answers, rng, folder):
    columns = labelled(rng, table_of(rng))
    suffix = str(rng.choice(list(FILES), p=[0.6, 0.3, 0.1]))
    path, out = folder / f"table{suffix}", folder / f"filled{suffix}"
    write, read = FILES[suffix]
    write(columns, path)
    uncertainty = bool(rng.random() < 0.2)
    fit = answers.make("fit", a1gm.fit_file, path, uncertainty=uncertainty)
    answers.ask_fit(fit, rows=False)
    if fit is None:
        return
    answers.ask("row_factor", lambda: np.asarray(fit.row_factor))
    answers.ask("row_labels", lambda: list(fit.row_labels))
    answers.make("impute_file", a1gm.impute_file, path, out, overwrite=True)
    answers.ask("filled", read, out)
    options = {"mark": bool(rng.random() < 0.2), "overwrite": True, "fit": fit}
    options["interval"] = 0.9 if rng.random() < 0.2 else None
    answers.make("se again", a1gm.impute_file, path, out, **options)
    answers.ask("se filled", read, out)
    columns.pop("name", None)
    answers.ask("frame", fit.impute, pd.DataFrame(columns))


FILES = {
    ".csv": (lambda c, p: pd.DataFrame(c).to_csv(p, index=False), pd.read_csv),
    ".parquet": (
        lambda c, p: pq.write_table(pa.table(c), p, row_group_size=7),
        pq.read_table,
    ),
    ".feather": (
        lambda c, p: feather.write_feather(pa.table(c), p),
        feather.read_table,
    ),
}


def pieces(answers, rng, folder):
    X, keep_rows = table_of(rng), bool(rng.random() < 0.7)
    parts = np.split(X, np.unique(rng.integers(0, len(X) + 1, 3)))
    parts = [part for part in parts if len(part)]
    first, second = (a1gm.PatternTable(keep_rows=keep_rows) for _ in range(2))
    for k, part in enumerate(parts):
        answers.make(f"update {k}", (first if k < 2 else second).update, part)
    if len(parts) > 2:
        sent = a1gm.PatternTable.from_bytes(second.to_bytes())
        answers.make("merge", first.merge, sent)
    answers.get_from(first, "n_patterns", "n_columns")
    answers.ask_fit(answers.make("fit", first.solve), X, rows=keep_rows)


def new_rows(answers, rng, folder):
    X, weighted = table_of(rng), rng.random() < 0.3

    def weigh(T: np.ndarray) -> dict[str, Any]:
        return {"weights": rng.lognormal(0.0, 1.0, T.shape)} if weighted else {}

    fit = answers.make("fit", a1gm.fit, X, **weigh(X))
    if fit is None:
        return
    answers.get_from(fit, "cell_error")
    new = table_of(rng, "zeros", "ordinary")
    new = np.resize(new, (len(new), X.shape[1]))
    answers.ask_rows(fit, new, **weigh(new))
    wide = np.ones((2, X.shape[1] + 1))
    answers.ask("too wide", fit.impute, wide, **weigh(wide))


def uncertainty(answers, rng, folder):
    case = case_of(rng, "ordinary", "staircase", "zeros", "blocks", "weighted")
    fit = answers.make("fit", a1gm.fit, case.X, **weights_of(case))
    if fit is None:
        return
    answers.get_from(fit, "cell_error")
    dispersion = [1.0, "pearson", "deviance", "poisson"][rng.integers(4)]
    robust = bool(rng.random() < 0.3)
    u = answers.make("se", fit.uncertainty, dispersion, robust=robust)
    if u is None:
        return
    statistics = ("dispersion", "dof", "pearson_chi2", "deviance", "deviance_p")
    answers.get_from(u, *statistics, prefix="se ")
    cells = places(case.X.shape)
    answers.ask("se cells", u.standard_error, *cells)
    answers.ask("se new", u.standard_error, *cells, prediction=True)
    by = str(rng.choice(["row", "column", "all"]))
    which = str(rng.choice(["missing", "fitted"]))
    answers.ask("se totals", u.totals, by, which)
    answers.ask("se index", u.index)
    answers.ask("se interval", u.interval, case.X, **weights_of(case))
    answers.ask("se factors", u.factor_errors)
    answers.ask("simulate", lambda: u.simulate(9, by, which, random_state=1).shape)


def assess(answers, rng, folder):
    X = table_of(rng, "ordinary", "staircase", "zeros")
    repeats = int(rng.integers(1, 4))
    one = answers.make("fit", a1gm.assess, X, 0.2, repeats, random_state=1)
    if one is not None:
        names = ("skill", "coverage", "scores", "verdict")
        answers.get_from(one, *names, prefix="se ")


def saved(answers, rng, folder):
    case = case_of(rng, "ordinary", "zeros", "blocks", "weighted")
    fit = answers.make("fit", a1gm.fit, case.X, **weights_of(case))
    if fit is not None:
        answers.ask("save", fit.save, folder / "a.a1gm", overwrite=True)
        fit = answers.make("load", a1gm.load, folder / "a.a1gm")
        answers.ask_fit(fit, case.X, **weights_of(case))
        answers.ask("se", lambda: fit.uncertainty(1.0).totals("column", "fitted"))


def dask_collections(answers, rng, folder):
    X, n_parts = table_of(rng), int(rng.integers(1, 4))
    if rng.random() < 0.5:
        given = da.from_array(X, chunks=(-(-len(X) // n_parts), X.shape[1]))
    else:
        frame = pd.DataFrame(X, columns=[f"c{j}" for j in range(X.shape[1])])
        given = dd.from_pandas(frame, npartitions=n_parts, sort=False)
    with dask.config.set(scheduler="synchronous"):
        fit = answers.make("fit", a1gm.distributed.fit, given)
        answers.ask_fit(fit, given, rows=False)
        answers.get_from(fit, "row_factor")


def estimators(answers, rng, folder):
    X = table_of(rng, "ordinary", "zeros", "staircase")
    for name in ("RankOneNMF", "RankOneImputer"):
        model = getattr(a1gm, name)()
        if answers.make(f"{name} fit", model.fit, X):
            answers.ask(f"{name} transform", model.transform, X)
            answers.get_from(model, "col_factor_", prefix=f"{name} ")


BAD: dict[str, Callable[[np.ndarray], Any]] = {
    "negative": lambda X: a1gm.fit(X - 100.0),
    "infinite": lambda X: a1gm.fit(X + np.inf),
    "text": lambda X: a1gm.fit(X.astype(str)),
    "nothing": lambda X: a1gm.fit(X * nan),
    "weights shape": lambda X: a1gm.fit(X, weights=X[:, :-1]),
    "weights negative": lambda X: a1gm.fit(X, weights=-np.ones(X.shape)),
    "both": lambda X: a1gm.fit(X, weights=X, exposure=X),
    "undetermined": lambda X: a1gm.fit(X, on_undetermined="raise"),
    "id of an array": lambda X: a1gm.fit(X, id="a"),
    "no file": lambda _: a1gm.fit_file("no such file.csv"),
    "no cell": lambda X: a1gm.fit(X).fate(10**6, 0),
    "absent": lambda X: a1gm.fit(sp.csr_array(np.nan_to_num(X))),
    "keys": lambda _: a1gm.fit_long(pd.DataFrame({"a": [1]}), ["a", "b"], "x"),
    "duplicates": lambda X: a1gm.fit(pd.DataFrame(X, columns=["a"] * X.shape[1])),
    "width": lambda X: a1gm.PatternTable().update(X).update(X[:, 1:]),
    "nmmf shape": lambda X: a1gm.fit_nmmf(X, np.ones((2, X.shape[1] + 1))),
}


def bad_inputs(answers, rng, folder):
    X = table_of(rng, "ordinary", "zeros")
    for name in rng.choice(list(BAD), 6, replace=False):
        answers.make(str(name), BAD[name], X)


# ------------------------------------------------------------------------- worker
def answer(name: str, seed: int, folder: Path) -> dict[str, Any]:
    answers = Answers()
    rng = np.random.default_rng([seed, *name.encode()])
    of_zoo = KINDS[name].of_zoo
    try:
        if of_zoo:
            of_the_attack(answers, rng, folder, *of_zoo)
        else:
            globals()[name](answers, rng, folder)
    except Exception as error:  # noqa: BLE001
        answers["question"] = (Raised(type(error).__name__, str(error)), [], [])
    return dict(answers)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory(prefix="a1gm-compare-") as place:
        serve(lambda name, seed: answer(name, seed, Path(place)))
