"""What is asked of a table of each kind; every answer is named.

A case records the answer of each question, or the class of the error that it raised.
Calls that were renamed between the two builds stand in ``calls.py``.
"""

from __future__ import annotations

import tempfile
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import a1gm

from . import calls, tables
from .plain import plain

Answers = dict[str, Any]
Generator = np.random.Generator
Kind = Callable[[Generator, Answers], None]
KINDS: dict[str, tuple[int, Kind]] = {}


def kind(share: int) -> Callable[[Kind], Kind]:
    """Add a kind of table; ``share`` of all cases are of it."""

    def add(function: Kind) -> Kind:
        KINDS[function.__name__] = (share, function)
        return function

    return add


def answers_of(name: str, seed: int) -> Answers:
    """All answers of one case, in plain values, with the classes of its warnings."""
    answers: Answers = {}
    rng = np.random.default_rng([seed, len(name), sum(map(ord, name))])
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        ask(answers, "case", lambda: KINDS[name][1](rng, answers))
    own = [w for w in caught if w.category.__module__.startswith("a1gm")]
    answers["warnings"] = sorted({w.category.__name__ for w in own})
    return answers


def ask(answers: Answers, name: str, question: Callable[[], Any]) -> Any:
    """Record an answer or the class of an error; return the answer itself."""
    try:
        answer = question()
        answers[name] = plain(answer)
    except Exception as error:  # noqa: BLE001 - errors are answers here
        answers[name] = f"raises {type(error).__name__}"
        return None
    return answer


def ask_fit(answers: Answers, fit: Any, X: Any, *, n_rows: int, n_columns: int) -> None:
    """Everything a fit of rows and columns can be asked."""
    for name in ("row_factor", "col_factor", "n_blocks", "n_undetermined", "converged"):
        ask(answers, name, lambda name=name: getattr(fit, name))
    ask(answers, "certified", lambda: bool(fit.certificate <= 1e-8))
    ask(answers, "divergence", lambda: fit.divergence + size_of(X))
    rows = np.repeat(np.arange(n_rows), n_columns)
    columns = np.tile(np.arange(n_columns), n_rows)
    ask(answers, "fates", lambda: [str(f) for f in fit.fate(rows, columns)])
    ask(answers, "reconstruct", fit.reconstruct)
    ask(answers, "undetermined", lambda: len(fit.undetermined))
    ask(answers, "pattern", lambda: (fit.pattern.n_missing, fit.pattern.n_row_patterns))
    ask(answers, "filled", lambda: fit.impute(X))
    ask(answers, "transform", lambda: fit.transform(X))
    ask(answers, "residuals", lambda: fit.residuals(X))
    ask(answers, "deviance residuals", lambda: fit.residuals(X, kind="deviance"))
    ask_uncertainty(answers, fit, X, rows, columns)


def ask_uncertainty(
    answers: Answers, fit: Any, X: Any, rows: Any = None, columns: Any = None
) -> None:
    """Errors of cells, totals and indices, plain and robust."""
    for label, options in (("", {}), ("robust ", {"robust": True})):
        ask_now = partial(fit.uncertainty, **options)
        u = ask_quietly(answers, f"{label}errors", ask_now)
        if u is None:
            continue
        for name in ("dispersion", "dof", "pearson_chi2", "deviance", "pearson_p"):
            ask(answers, label + name, lambda u=u, name=name: getattr(u, name))
        ask(
            answers,
            f"{label}standard_error",
            lambda u=u: calls.standard_error(u, rows, columns),
        )
        ask(answers, f"{label}totals by row", lambda u=u: calls.totals(u, "row"))
        ask(answers, f"{label}totals by column", lambda u=u: calls.totals(u, "column"))
        ask(answers, f"{label}fitted", lambda u=u: calls.totals(u, "column", "fitted"))
        ask(answers, f"{label}index", lambda u=u: calls.index(u, "column"))
        ask(answers, f"{label}row index", lambda u=u: calls.index(u, "row"))
        ask(answers, f"{label}interval", lambda u=u: u.interval(X))


def ask_quietly(answers: Answers, name: str, question: Callable[[], Any]) -> Any:
    """The answer itself, unrecorded; an error is recorded."""
    try:
        return question()
    except Exception as error:  # noqa: BLE001
        answers[name] = f"raises {type(error).__name__}"
        return None


def size_of(X: Any) -> float:
    """The sum of a table; 0 where it is no array. Beside it rounding is nothing."""
    return float(np.nansum(X)) if isinstance(X, np.ndarray) else 0.0


def labels_of(fit: Any) -> list[str]:
    """Names of the rows as text."""
    labels = fit.row_labels
    return [] if labels is None else [str(label) for label in labels]


def ask_saved(answers: Answers, fit: Any, X: Any) -> None:
    """A fit that was saved and loaded."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.a1gm"
        fit.save(path)
        loaded = a1gm.load(path)
        ask(answers, "loaded fill", lambda: loaded.impute(X))
        ask(answers, "loaded factors", lambda: np.asarray(loaded.row_factor))
        ask(answers, "loaded divergence", lambda: loaded.divergence)


# ------------------------------------------------------------------------- the kinds
@kind(share=8)
def array(rng: Generator, answers: Answers) -> None:
    """An array of floats."""
    X = tables.table(rng)
    fit = a1gm.fit(X)
    ask_fit(answers, fit, X, n_rows=X.shape[0], n_columns=X.shape[1])
    new = tables.table(rng)[:, : X.shape[1]]
    if new.shape[1] == X.shape[1]:
        ask(answers, "new rows filled", lambda: fit.impute(new))
        ask(answers, "new rows", lambda: fit.transform(new))


@kind(share=1)
def large_array(rng: Generator, answers: Answers) -> None:
    """Some hundred rows: cores that are solved iteratively."""
    X = tables.table(rng, most_rows=300, most_columns=60)
    fit = a1gm.fit(X)
    ask(answers, "filled", lambda: fit.impute(X))
    ask(answers, "divergence", lambda: fit.divergence + size_of(X))
    ask(answers, "converged", lambda: fit.converged)
    u = ask_quietly(answers, "errors", fit.uncertainty)
    if u is not None:
        ask(answers, "totals by row", lambda: calls.totals(u, "row"))
        ask(answers, "totals by column", lambda: calls.totals(u, "column"))
        ask(answers, "interval", lambda: u.interval(X))


@kind(share=4)
def weighted(rng: Generator, answers: Answers) -> None:
    """Weights of cells."""
    X = tables.table(rng)
    V = tables.weights(rng, X.shape)
    fit = a1gm.fit(X, weights=V)
    ask_fit(answers, fit, X, n_rows=X.shape[0], n_columns=X.shape[1])


@kind(share=3)
def exposed(rng: Generator, answers: Answers) -> None:
    """Exposures of cells."""
    X = tables.table(rng)
    E = tables.weights(rng, X.shape) + rng.choice([0.0, 0.3])
    fit = a1gm.fit(X, exposure=E)
    ask_fit(answers, fit, X, n_rows=X.shape[0], n_columns=X.shape[1])
    ask(answers, "filled with exposure", lambda: fit.impute(X, exposure=E))


@kind(share=3)
def triangles(rng: Generator, answers: Answers) -> None:
    """Run-off triangles, some with negative increments."""
    X = tables.triangle(rng)
    fit = a1gm.fit(X, negatives="allow")
    ask_fit(answers, fit, X, n_rows=X.shape[0], n_columns=X.shape[1])


def frame_of(rng: Generator, X: np.ndarray) -> Any:
    """A pandas frame with labels of any kind, or the same in another library."""
    import pandas as pd
    import polars as pl
    import pyarrow as pa

    frame = pd.DataFrame(X, columns=[f"week {j}" for j in range(X.shape[1])])
    form = rng.integers(6)
    whole = frame.columns[rng.random(X.shape[1]) < 0.4]
    if form in (1, 4):
        frame[whole] = frame[whole].round().astype("Int64")
    if form == 2:
        frame.index = pd.date_range("2020-01-01", periods=len(X), name="day")
    elif rng.random() < 0.7:
        frame.insert(0, "shop", [f"shop {i}" for i in range(len(X))])
    if rng.random() < 0.3:
        frame["open"] = rng.random(len(X)) < 0.5
    if form in (3, 4):
        return pl.from_pandas(frame.reset_index(drop=True))
    if form == 5:
        return pa.Table.from_pandas(frame, preserve_index=False)
    return frame


@kind(share=5)
def frames(rng: Generator, answers: Answers) -> None:
    """Frames with labels, flags, whole numbers and dates."""
    X = tables.table(rng, most_columns=7)
    frame = frame_of(rng, X)
    fit = a1gm.fit(frame)
    ask_fit(answers, fit, frame, n_rows=X.shape[0], n_columns=X.shape[1])
    ask(answers, "row labels", lambda: labels_of(fit))
    ask(answers, "frames", lambda: fit.to_frames("pandas"))
    ask_saved(answers, fit, frame)


def long_frame(rng: Generator, T: np.ndarray, names: list[str]) -> Any:
    """The observed cells of a table, one a row, in any order."""
    import pandas as pd

    cells = np.argwhere(~np.isnan(T))
    cells = cells[rng.permutation(len(cells))]
    frame = pd.DataFrame()
    for axis, name in enumerate(names):
        frame[name] = [f"{name}{level}" for level in cells[:, axis]]
    frame["value"] = T[tuple(cells.T)]
    if rng.random() < 0.3:
        rows = np.argwhere(np.isnan(T))[:3]
        for cell in rows:
            labels = [f"{name}{level}" for name, level in zip(names, cell, strict=True)]
            frame.loc[len(frame)] = [*labels, np.nan]
    return frame


@kind(share=4)
def long(rng: Generator, answers: Answers) -> None:
    """Long tables of two keys."""
    X = tables.table(rng)
    frame = long_frame(rng, X, ["site", "year"])
    if rng.random() < 0.3:
        import polars as pl

        frame = pl.from_pandas(frame)
    fit = a1gm.fit_long(frame, keys=["site", "year"], value="value")
    for name in ("row_factor", "col_factor", "n_blocks", "n_undetermined", "shape"):
        ask(answers, name, lambda name=name: getattr(fit, name))
    ask(answers, "filled", fit.fill_long)
    ask(answers, "bounds", lambda: fit.fill_long(interval=0.9))
    ask(answers, "divergence", lambda: fit.divergence)
    ask(answers, "predicted", lambda: fit.predict(frame))
    ask(answers, "frames", lambda: fit.to_frames("pandas"))
    ask_uncertainty(answers, fit, None, np.arange(1), np.arange(1))


@kind(share=2)
def groups(rng: Generator, answers: Answers) -> None:
    """Many small long tables in one frame."""
    import pandas as pd

    parts = []
    for group in range(int(rng.integers(1, 5))):
        part = long_frame(rng, tables.table(rng, 6, 5), ["site", "year"])
        part.insert(0, "group", f"g{group}")
        parts.append(part)
    frame = pd.concat(parts, ignore_index=True)
    many = calls.fit_groups(frame, by="group", keys=["site", "year"], value="value")
    ask(answers, "groups", lambda: [str(key) for key in many])
    ask(answers, "factors", lambda: [np.asarray(many[k].row_factor) for k in many])
    ask(answers, "filled", lambda: [many[k].fill_long() for k in many])
    ask(answers, "one after another", lambda: calls.fills_of_groups(many))


@kind(share=1)
def many_tables(rng: Generator, answers: Answers) -> None:
    """A mapping of tables."""
    named = {f"t{k}": tables.table(rng, 6, 5) for k in range(int(rng.integers(1, 5)))}
    many = a1gm.fit_many(named)
    ask(answers, "factors", lambda: [np.asarray(many[k].col_factor) for k in many])
    ask(answers, "filled", lambda: [many[k].impute(named[k]) for k in many])


def interactions_of(rng: Generator, n_modes: int) -> Any:
    """One factor per key, or some keys together."""
    form = rng.integers(4)
    if form == 0:
        return None
    if form == 1:
        return [(0, 1)]
    if form == 2:
        return [(0, 1), (1, 2)]
    return [(0, n_modes - 1), (1,)]


def ask_tensor(answers: Answers, fit: Any, T: Any) -> None:
    """Everything a fit of several keys can be asked."""
    for name in ("n_undetermined", "n_missing", "converged"):
        ask(answers, name, lambda name=name: getattr(fit, name))
    ask(answers, "certified", lambda: bool(fit.certificate <= 1e-8))
    ask(answers, "divergence", lambda: fit.divergence + size_of(T))
    u = ask_quietly(answers, "errors", fit.uncertainty)
    if u is not None:
        ask(answers, "dispersion", lambda: u.dispersion)
        ask(answers, "dof", lambda: u.dof)
        ask(answers, "total", lambda: calls.totals(u, None))
        ask(answers, "totals by first", lambda: calls.totals(u, calls.first_key(fit)))
        ask(answers, "index", lambda: calls.index(u, calls.first_key(fit)))
        if T is not None:
            ask(answers, "interval", lambda: u.interval(T))


@kind(share=4)
def several_keys(rng: Generator, answers: Answers) -> None:
    """Arrays of three or four modes."""
    T = tables.array_of_modes(rng)
    options = {}
    form = rng.integers(4)
    if form == 1:
        options["weights"] = tables.weights(rng, T.shape)
    if form == 2:
        options["exposure"] = tables.weights(rng, T.shape) + 0.1
    fit = a1gm.fit_tensor(T, interactions_of(rng, T.ndim), **options)
    ask(answers, "reconstruct", fit.reconstruct)
    ask(answers, "filled", lambda: fit.impute(T))
    ask(answers, "residuals", lambda: fit.residuals(T))
    cells = np.indices(T.shape).reshape(T.ndim, -1)
    ask(answers, "fates", lambda: calls.fates_of_cells(fit, cells))
    ask(answers, "standard_error", lambda: calls.errors_of_cells(fit, cells))
    ask_tensor(answers, fit, T)


@kind(share=2)
def long_several_keys(rng: Generator, answers: Answers) -> None:
    """Long tables of three keys."""
    T = tables.array_of_modes(rng)
    names = ["site", "year", "month", "species"][: T.ndim]
    frame = long_frame(rng, T, names)
    form = rng.integers(3)
    sets = [None, [("site", "year")], [("site", "year"), ("month",)]][form]
    fit = a1gm.fit_long(frame, keys=names, value="value", interactions=sets)
    ask(answers, "filled", fit.fill_long)
    ask(answers, "predicted", lambda: fit.predict(frame))
    ask(answers, "frames", lambda: fit.to_frames("pandas"))
    ask_tensor(answers, fit, None)


@kind(share=3)
def joint(rng: Generator, answers: Answers) -> None:
    """Three tables that share factors."""
    X = tables.table(rng)
    n, m = X.shape
    Y = tables.table(rng, most_columns=m + 1)
    Z = tables.table(rng)
    Y = np.resize(Y, (len(Y), m)) if rng.random() < 0.8 else None
    Z = np.resize(Z, (n, Z.shape[1])) if rng.random() < 0.8 else None
    alpha = float(rng.choice([0.1, 1.0, 7.0]))
    beta = float(rng.choice([0.5, 1.0]))
    fit = a1gm.fit_nmmf(X, Y, Z, alpha=alpha, beta=beta)
    for name in ("w", "h", "a", "b", "n_blocks", "n_undetermined"):
        ask(answers, name, lambda name=name: getattr(fit, name))
    ask(answers, "divergence", lambda: fit.divergence + size_of(X))
    ask(answers, "certified", lambda: bool(fit.certificate <= 1e-8))
    ask(answers, "filled", lambda: fit.impute(X, Y, Z))
    ask(answers, "reconstruct", fit.reconstruct)


@kind(share=3)
def files(rng: Generator, answers: Answers) -> None:
    """Text and Parquet files: fitted and filled."""
    import pandas as pd
    import pyarrow.parquet as pq

    X = tables.table(rng, most_columns=7)
    frame = pd.DataFrame(X, columns=[f"week {j}" for j in range(X.shape[1])])
    if rng.random() < 0.8:
        frame.insert(0, "shop", [f"shop {i}" for i in range(len(X))])
    form = rng.integers(4)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        options: dict[str, Any] = {}
        if form == 0:
            path = folder / "table.csv"
            frame.to_csv(path, index=False)
        elif form == 1:
            path = folder / "table.csv"
            frame.to_csv(path, index=False, sep=";", decimal=",", na_rep="?")
            options = {"missing": "?", "delimiter": ";", "decimal": ","}
        elif form == 2:
            path = folder / "table.parquet"
            frame.to_parquet(path)
        else:
            path = folder / "table.tsv"
            frame.to_csv(path, index=False, sep="\t", na_rep="NA")
            options = {"missing": "NA"}
        fit = a1gm.fit_file(path, **options)
        ask(answers, "row_factor", lambda: np.asarray(fit.row_factor))
        ask(answers, "col_factor", lambda: fit.col_factor)
        ask(answers, "labels", lambda: labels_of(fit))
        ask(answers, "divergence", lambda: fit.divergence + size_of(X))
        u = ask_quietly(answers, "errors", fit.uncertainty)
        if u is not None:
            ask(answers, "totals by column", lambda: calls.totals(u, "column"))
        out = folder / f"filled{path.suffix}"
        interval = float(rng.choice([0.0, 0.9])) or None
        mark = bool(rng.random() < 0.3)

        def filled() -> Any:
            a1gm.impute_file(path, out, interval=interval, mark=mark, **options)
            if out.suffix == ".parquet":
                return pq.read_table(out)
            separator = {".tsv": "\t"}.get(out.suffix, options.get("delimiter", ","))
            decimal = options.get("decimal", ".")
            return pd.read_csv(out, sep=separator, decimal=decimal)

        ask(answers, "filled", filled)


@kind(share=2)
def lazy(rng: Generator, answers: Answers) -> None:
    """Lazy frames of polars and relations of DuckDB."""
    import pandas as pd
    import polars as pl

    X = tables.table(rng, most_columns=7)
    frame = pd.DataFrame(X, columns=[f"week {j}" for j in range(X.shape[1])])
    if rng.random() < 0.5:
        frame.insert(0, "shop", [f"shop {i}" for i in range(len(X))])
    if rng.random() < 0.6:
        table = pl.from_pandas(frame).lazy()
        fit = a1gm.fit(table)
        ask(answers, "filled", lambda: fit.impute(table).collect())
    else:
        import duckdb

        table = duckdb.connect().from_arrow(pl.from_pandas(frame).to_arrow())
        fit = a1gm.fit(table)
        ask(answers, "filled", lambda: fit.impute(table).pl())
    ask(answers, "col_factor", lambda: fit.col_factor)
    ask(answers, "divergence", lambda: fit.divergence + size_of(X))
    u = ask_quietly(answers, "errors", fit.uncertainty)
    if u is not None:
        ask(answers, "dispersion", lambda: u.dispersion)
        ask(answers, "index", lambda: calls.index(u, "column"))


@kind(share=2)
def sparse(rng: Generator, answers: Answers) -> None:
    """Sparse arrays, absent cells missing or zero."""
    import scipy.sparse as sp

    X = tables.table(rng)
    if rng.random() < 0.5:
        S = sp.coo_array((X[~np.isnan(X)], np.nonzero(~np.isnan(X))), shape=X.shape)
        fit = a1gm.fit(S.tocsr(), absent="missing")
    else:
        S = sp.csr_array(np.where(np.isnan(X), 0.0, X))
        fit = a1gm.fit(S, absent="zero")
    ask(answers, "row_factor", lambda: fit.row_factor)
    ask(answers, "col_factor", lambda: fit.col_factor)
    ask(answers, "divergence", lambda: fit.divergence + size_of(X))
    ask(answers, "filled", lambda: fit.impute(X))
    u = ask_quietly(answers, "errors", fit.uncertainty)
    if u is not None:
        ask(answers, "totals by row", lambda: calls.totals(u, "row"))


@kind(share=2)
def totals(rng: Generator, answers: Answers) -> None:
    """A table scaled to totals, some of them unknown; fills to totals."""
    n = int(rng.integers(1, 7))
    m = int(rng.integers(1, 6))
    seed = tables.values(rng, n, m)
    if rng.random() < 0.4:
        seed[rng.random(seed.shape) < 0.2] = 0.0
    truth = seed * np.outer(rng.random(n) + 0.5, rng.random(m) + 0.5)
    if rng.random() < 0.5:
        truth = np.round(truth)
    rows = truth.sum(axis=1)
    columns = truth.sum(axis=0)
    if rng.random() < 0.3:
        columns[rng.integers(m)] = np.nan
    scaled = a1gm.scale(seed, rows, columns)
    for name in ("table", "row_factor", "col_factor", "row_block", "converged"):
        ask(answers, name, lambda name=name: getattr(scaled, name))
    ask(answers, "rounded", scaled.round)
    X = np.where(tables.holes(rng, n, m), np.nan, truth)
    ask(
        answers,
        "filled to totals",
        lambda: a1gm.impute(X, row_totals=rows, col_totals=columns),
    )


@kind(share=1)
def assessed(rng: Generator, answers: Answers) -> None:
    """The held-out judgement with a fixed seed."""
    X = tables.table(rng, most_rows=20)
    judged = a1gm.assess(X, repeats=2, random_state=0)
    ask(answers, "skill", lambda: judged.skill)
    ask(answers, "coverage", lambda: judged.coverage)


@kind(share=2)
def estimators(rng: Generator, answers: Answers) -> None:
    """The scikit-learn estimators."""
    X = tables.table(rng)
    imputer = a1gm.RankOneImputer()
    ask(answers, "imputed", lambda: imputer.fit_transform(X))
    ask(answers, "new rows", lambda: imputer.transform(X[::-1]))
    model = a1gm.RankOneNMF()
    ask(answers, "factors", lambda: model.fit_transform(X))
    ask(answers, "components", lambda: model.components_)


@kind(share=2)
def pieces(rng: Generator, answers: Answers) -> None:
    """A table that is counted in pieces and merged."""
    X = tables.table(rng, most_rows=30)
    cut = int(rng.integers(0, len(X) + 1))
    first = a1gm.PatternTable()
    second = a1gm.PatternTable()
    if cut:
        first.update(X[:cut])
    if cut < len(X):
        second.update(X[cut:])
    fit = first.merge(second).solve()
    ask(answers, "col_factor", lambda: fit.col_factor)
    ask(answers, "row_factor", lambda: np.asarray(fit.row_factor))
    ask(answers, "filled", lambda: fit.impute(X))


@kind(share=1)
def published(rng: Generator, answers: Answers) -> None:
    """The published algorithms."""
    from a1gm import paper

    X = tables.values(rng, int(rng.integers(2, 9)), int(rng.integers(2, 7))) + 0.1
    ask(answers, "rank 1", lambda: paper.rank1_nmf(X))
    X[tables.holes(rng, *X.shape)] = np.nan
    ask(answers, "A1GM", lambda: paper.a1gm(X))
    ask(answers, "KL-WNMF", lambda: paper.kl_wnmf(X, rank=1, random_state=0))
