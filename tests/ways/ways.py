"""The registry: every way a table can come in, with the same questions to each.

A way is a function from a table and an empty folder to ``Answers``. To add one, write
the function, decorate it with ``@way("its name")``, and every test asks it.
"""

from __future__ import annotations

import copy
import pickle
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Literal

import dask
import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import polars as pl

import a1gm
from a1gm import RankOneImputer, RankOneNMF
from a1gm.exceptions import A1gmWarning
from ways.containers import (
    CONTAINERS,
    Table,
    as_floats,
    names_of,
    pandas_frame,
    sparse_table,
)

Warned = frozenset[type[Warning]]
Rows = Literal["held", "lazy", "gone"]
Question = Literal[
    "fills",
    "factors",
    "certificate",
    "fates",
    "warnings",
    "warnings of rows",
    "types",
    "fill",
    "transform",
]
NO_ROWS: tuple[Question, ...] = ("fates",)
NO_FILLS: tuple[Question, ...] = ("fills", "fates", "warnings", "types", "fill")


@dataclass
class Answers:
    """What a way says of a table; None where it does not offer the answer.

    ``given`` and ``output`` are the containers that went in and came out. ``warned``
    holds the classes of the warnings of fitting and filling; for ways that put them
    in other words, ``says_something`` is whether there were any.
    """

    given: Any = None
    output: Any = None
    filled: Table | None = None
    fit: Any = None
    row_factor: Table | None = None
    col_factor: Table | None = None
    certificate: float | None = None
    converged: bool | None = None
    fates: Table | None = None
    undetermined: list[tuple[int, int, str]] | None = None
    warned: Warned | None = None
    texts: list[str] = field(default_factory=list)
    says_something: bool | None = None
    fill: Callable[[Table], Table] | None = None
    transform: Callable[[Table], Table] | None = None


@dataclass(frozen=True)
class Way:
    """A way in: how to ask it, what it has no answer to, how exact it can be."""

    name: str
    ask: Callable[[Table, Path], Answers]
    lacks: tuple[Question, ...] = ()
    rtol: float = 1e-9
    dtype: type[np.floating[Any]] = np.float64

    def seen(self, X: Table) -> Table:
        """The table as this way sees it."""
        return X.astype(self.dtype).astype(np.float64)


WAYS: dict[str, Way] = {}


def way(name: str, **options: Any) -> Callable[..., Any]:
    """Put a function into the registry."""

    def enter(ask: Callable[[Table, Path], Answers]) -> Callable[..., Any]:
        WAYS[name] = Way(name, ask, **options)
        return ask

    return enter


def ways_with(question: Question) -> list[str]:
    """Names of the ways that answer a question."""
    return [name for name, way in WAYS.items() if question not in way.lacks]


@dataclass
class Noted:
    """Classes and texts of the package's warnings so far."""

    classes: set[type[Warning]] = field(default_factory=set)
    texts: list[str] = field(default_factory=list)


@contextmanager
def noted() -> Iterator[Noted]:
    """Collect the package's warnings; any other warning is an error."""
    found = Noted()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("error")
        warnings.simplefilter("always", A1gmWarning)
        yield found
    found.classes |= {one.category for one in caught}
    found.texts += [str(one.message) for one in caught]


# ------------------------------------------------------------------------ fits
def answers_of_fit(
    X: Table,
    make: Callable[[Any], Any],
    give: Callable[[Table], Any] = lambda X: X,
    take: Callable[[Any], Table] = np.asarray,
    *,
    rows: Rows = "held",
    impute: Callable[[Any, Any], Any] = lambda fit, table: fit.impute(table),
    transform: Callable[[Any, Any], Table] = lambda fit, table: np.asarray(
        fit.transform(table)
    ),
) -> Answers:
    """Ask everything of a ``RankOneFit``; ``make`` gets what ``give`` makes of X.

    ``rows`` says what the fit knows of its own rows: each of them ("held"), a lazy
    collection of factors ("lazy"), or nothing but what ``transform`` tells ("gone").
    """
    given = give(X)
    with noted() as found:
        fit = make(given)
        output = impute(fit, given)
        filled = take(output)
    answers = Answers(
        given=given,
        output=output,
        filled=filled,
        fit=fit,
        row_factor=rows_of(fit, given, rows, transform),
        col_factor=np.asarray(fit.col_factor),
        certificate=fit.certificate,
        converged=fit.converged,
        warned=frozenset(found.classes),
        texts=found.texts,
        fill=lambda rows: take(impute(fit, give(rows))),
        transform=lambda rows: transform(fit, give(rows)),
    )
    if rows == "held":
        n, m = X.shape
        answers.fates = fit.fate(np.arange(n)[:, None], np.arange(m))
        answers.undetermined = [tuple(cell) for cell in fit.undetermined]
    return answers


def rows_of(
    fit: Any, given: Any, rows: Rows, transform: Callable[[Any, Any], Table]
) -> Table:
    """The factors of the rows that were fitted."""
    if rows == "gone":
        with noted():
            return transform(fit, given)
    found = fit.row_factor
    return np.asarray(found.compute() if rows == "lazy" else found)


EXACT: dict[str, Any] = {"float32 array": {"rtol": 2e-5, "dtype": np.float32}}


def container_way(name: str, X: Table, folder: Path) -> Answers:
    return answers_of_fit(X, a1gm.fit, *CONTAINERS[name])


for name in CONTAINERS:
    way(name, **EXACT.get(name, {}))(partial(container_way, name))


# ---------------------------------------------------------------------- sparse
@way("sparse", lacks=("types",))
def sparse_way(X: Table, folder: Path) -> Answers:
    # What is absent is missing: filled, the table would not be sparse any more.
    def make(given: Table) -> Any:
        return a1gm.fit(sparse_table(given), absent="missing")

    answers = answers_of_fit(X, make)
    answers.given = answers.output = None
    fit = answers.fit
    answers.transform = lambda rows: np.asarray(fit.transform(sparse_table(rows)))
    return answers


# ---------------------------------------------------------------------- pieces
def in_pieces(X: Table, **options: Any) -> Any:
    table = a1gm.PatternTable(**options)
    for start in range(0, len(X), 3):
        table.update(X[start : start + 3])
    return table


@way("pieces without rows", lacks=NO_ROWS)
def pieces_without_rows(X: Table, folder: Path) -> Answers:
    def make(given: Table) -> Any:
        return in_pieces(given, keep_rows=False).solve()

    return answers_of_fit(X, make, rows="gone")


def between_workers(given: Table, **options: Any) -> Any:
    half = (len(given) + 1) // 2
    first, second = (in_pieces(X, **options) for X in (given[:half], given[half:]))
    read = a1gm.PatternTable.from_bytes
    return read(first.to_bytes()).merge(read(second.to_bytes())).solve()


def loaded(fit: Any, folder: Path) -> Any:
    """The same fit, saved and loaded."""
    fit.save(folder / "model.a1gm", overwrite=True)
    return a1gm.load(folder / "model.a1gm")


#: Ways to a fit that holds its rows.
MAKERS: dict[str, Callable[[Table, Path], Any]] = {
    "pieces with rows": lambda given, _: in_pieces(given).solve(),
    "bytes between workers": lambda given, _: between_workers(given),
    "one of many": lambda given, _: a1gm.fit_many([given])[0],
    "saved and loaded": lambda given, folder: loaded(a1gm.fit(given), folder),
    "pickled": lambda given, _: pickle.loads(pickle.dumps(a1gm.fit(given))),
    "copied": lambda given, _: copy.copy(a1gm.fit(given)),
    "deeply copied": lambda given, _: copy.deepcopy(a1gm.fit(given)),
}


def maker_way(name: str, X: Table, folder: Path) -> Answers:
    return answers_of_fit(X, lambda given: MAKERS[name](given, folder))


for name in MAKERS:
    way(name)(partial(maker_way, name))


# ------------------------------------------------------------------------ Dask
def dask_array(X: Table) -> Any:
    return da.from_array(X, chunks=((len(X) + 1) // 2, X.shape[1]))


def dask_frame(X: Table) -> Any:
    return dd.from_pandas(pandas_frame(X), npartitions=2, sort=False)


#: What makes a collection, what takes its cells out, and how new rows come.
COLLECTIONS: dict[str, tuple[Callable[[Table], Any], ...]] = {
    "Dask array": (dask_array, lambda found: found.compute(), np.asarray),
    "Dask frame": (dask_frame, lambda found: as_floats(found.compute()), pandas_frame),
}


def collection_way(name: str, X: Table, folder: Path) -> Answers:
    give, take, give_rows = COLLECTIONS[name]
    with dask.config.set(scheduler="synchronous"):
        answers = answers_of_fit(X, a1gm.distributed.fit, give, take, rows="lazy")
    answers.output = answers.output.compute()
    answers.given = answers.given.compute()
    fit = answers.fit
    answers.transform = lambda rows: np.asarray(fit.transform(give_rows(rows)))
    return answers


for name in COLLECTIONS:
    way(name, lacks=NO_ROWS)(partial(collection_way, name))


# ------------------------------------------------------------------- in one call
@way("one call", lacks=("factors", "certificate", "fates", "fill", "transform"))
def one_call(X: Table, folder: Path) -> Answers:
    given = pandas_frame(X)
    with noted() as found:
        output = a1gm.impute(given)
    filled = as_floats(output)
    return Answers(
        given=given,
        output=output,
        filled=filled,
        warned=frozenset(found.classes),
        texts=found.texts,
    )


@way("RankOneImputer", lacks=("certificate", "fates", "types", "transform"))
def imputer(X: Table, folder: Path) -> Answers:
    with noted() as found:
        model = RankOneImputer().fit(X)
        model.transform(X)
    kept = ~np.isnan(model.col_factor_)

    def fill(rows: Table) -> Table:
        filled = rows.copy()  # columns without any data are left out
        filled[:, kept] = model.transform(rows)
        return filled

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", A1gmWarning)
        filled = fill(X)
    return Answers(
        filled=filled,
        col_factor=model.col_factor_,
        says_something=bool(found.classes),
        fill=fill,
    )


def answers_of_nmf(model: RankOneNMF, X: Table, **more: Any) -> Answers:
    with noted():
        rows = model.transform(X)[:, 0]
    return Answers(
        row_factor=rows,
        col_factor=model.components_[0],
        certificate=model.certificate_,
        converged=model.converged_,
        transform=lambda rows: model.transform(rows)[:, 0],
        **more,
    )


@way("RankOneNMF", lacks=NO_FILLS)
def nmf(X: Table, folder: Path) -> Answers:
    with noted() as found:
        model = RankOneNMF().fit(X)
    return answers_of_nmf(model, X, says_something=bool(found.classes))


@way("RankOneNMF in pieces", lacks=NO_FILLS)
def nmf_in_pieces(X: Table, folder: Path) -> Answers:
    model = RankOneNMF()
    with noted():
        for start in range(0, len(X), 3):
            model.partial_fit(X[start : start + 3])
    return answers_of_nmf(model, X)


# ------------------------------------------------------------ long and many tables
KEYS, VALUE = ["row", "column"], "value"


def long_frame(X: Table) -> pd.DataFrame:
    """Every cell of a table, row by row, the missing ones as NaN."""
    rows, cols = np.indices(X.shape).reshape(2, -1)
    names = np.array(names_of(X))[cols]
    return pd.DataFrame({"row": rows, "column": names, "value": X.ravel()})


def fit_of_long(frame: Any) -> Any:
    return a1gm.fit_long(frame, KEYS, VALUE)


def fit_of_group(frame: pd.DataFrame) -> Any:
    other = frame.assign(group="b", value=1.0)
    both = pd.concat([frame.assign(group="a"), other])
    return a1gm.fit_groups(both, "group", KEYS, VALUE)["a"]


#: What is made of a long frame, and how it is fitted.
LONG: dict[str, tuple[Callable[[pd.DataFrame], Any], Callable[[Any], Any]]] = {
    "long pandas": (lambda frame: frame, fit_of_long),
    "long polars": (pl.from_pandas, fit_of_long),
    "one of the groups": (lambda frame: frame, fit_of_group),
}


def long_way(name: str, X: Table, folder: Path) -> Answers:
    """New rows come as a frame of the columns; nothing is known of types."""
    give, make = LONG[name]
    answers = answers_of_fit(
        X,
        make,
        lambda X: give(long_frame(X)),
        lambda frame: np.asarray(frame[VALUE], float).reshape(X.shape),
        impute=lambda fit, _: fit.fill_long(only_missing=False),
    )
    fit = answers.fit
    answers.given = answers.output = None
    answers.fill = lambda rows: as_floats(fit.impute(pandas_frame(rows)))
    answers.transform = lambda rows: np.asarray(fit.transform(pandas_frame(rows)))
    return answers


for name in LONG:
    way(name, lacks=("types",))(partial(long_way, name))
