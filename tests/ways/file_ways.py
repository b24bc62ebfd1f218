"""Ways in for files, and the command that reads them; see ``ways.ways``."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest
from support.commands import run

import a1gm
from a1gm._observe import accumulate
from ways.containers import (
    Table,
    arrow_table,
    as_floats,
    from_arrow,
    names_of,
    nullable_frame,
    pandas_frame,
)
from ways.ways import NO_ROWS, Answers, answers_of_fit, loaded, noted, way


@contextmanager
def masks_on_disk() -> Iterator[None]:
    """Make files be fitted by the mask of every row, as if patterns were too many."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(accumulate, "TABLE_BYTES", 1)
        yield


def write_csv(X: Table, path: Path) -> Path:
    """A CSV file with the names of its rows; whole numbers without a point."""
    frame = nullable_frame(X)
    frame.insert(0, "id", [f"r{i}" for i in range(len(X))])
    frame.to_csv(path, index=False)
    return path


def write_parquet(X: Table, path: Path) -> Path:
    pq.write_table(arrow_table(X), path, row_group_size=4)
    return path


def read_table(path: Path) -> Table:
    if path.suffix == ".parquet":
        return from_arrow(pq.read_table(path))
    return pd.read_csv(path).drop(columns="id").to_numpy(float)


def answers_of_file(
    X: Table, folder: Path, write: Callable[[Table, Path], Path], suffix: str
) -> Answers:
    """Fit a file and fill it, and fill files of other rows by the same fit."""
    names = names_of(X)
    places = iter(range(1000))

    def impute(fit: Any, path: Path) -> Path:
        out = folder / f"filled-{next(places)}{suffix}"
        a1gm.impute_file(path, out, fit=fit, columns=names)
        return out

    answers = answers_of_fit(
        X,
        lambda path: a1gm.fit_file(path, columns=names),
        lambda X: write(X, folder / f"table-{next(places)}{suffix}"),
        read_table,
        impute=impute,
    )
    fit = answers.fit
    answers.transform = lambda rows: np.asarray(fit.transform(pandas_frame(rows)))
    for what in ("given", "output"):  # the types of text are not written down
        path = getattr(answers, what)
        setattr(answers, what, pq.read_table(path) if suffix == ".parquet" else None)
    return answers


FILES: dict[str, tuple[Any, Callable[[Table, Path], Path], str]] = {
    "CSV, patterns": (nullcontext, write_csv, ".csv"),
    "CSV, masks": (masks_on_disk, write_csv, ".csv"),
    "Parquet, patterns": (nullcontext, write_parquet, ".parquet"),
    "Parquet, masks": (masks_on_disk, write_parquet, ".parquet"),
}


def file_way(name: str, X: Table, folder: Path) -> Answers:
    mode, *file = FILES[name]
    with mode():
        return answers_of_file(X, folder, *file)


for name in FILES:  # the types of text are not written down
    way(name, lacks=("types",) if "CSV" in name else ())(partial(file_way, name))


@way("several files", lacks=("types",))
def several_files(X: Table, folder: Path) -> Answers:
    half = (len(X) + 1) // 2
    parts = [X[:half], X[half:]] if len(X) > 1 else [X]
    paths = [
        write_parquet(p, folder / f"part-{k}.parquet") for k, p in enumerate(parts)
    ]
    filled = folder / "filled"
    filled.mkdir()

    def impute(fit: Any, given: Any) -> Any:
        if isinstance(given, pd.DataFrame):
            return fit.impute(given)
        a1gm.impute_file(given, filled, fit=fit, columns=names_of(X))
        return [filled / path.name for path in given]

    def take(output: Any) -> Table:
        if isinstance(output, pd.DataFrame):
            return as_floats(output)
        return np.vstack([read_table(path) for path in output])

    answers = answers_of_fit(
        X,
        lambda given: a1gm.fit_file(given, columns=names_of(X)),
        lambda table: paths if table is X else pandas_frame(table),
        take,
        impute=impute,
    )
    answers.given = answers.output = None
    fit = answers.fit
    answers.transform = lambda rows: np.asarray(fit.transform(pandas_frame(rows)))
    return answers


@way("file to file in one call", lacks=("fates", "types", "fill", "transform"))
def file_to_file(X: Table, folder: Path) -> Answers:
    out = folder / "filled.csv"
    path = write_csv(X, folder / "table.csv")
    with noted() as found:
        fit = a1gm.impute_file(path, out, columns=names_of(X))
    return Answers(
        filled=read_table(out),
        fit=fit,
        row_factor=np.asarray(fit.row_factor),
        col_factor=fit.col_factor,
        certificate=fit.certificate,
        says_something=bool(found.classes),
    )


@way("command", lacks=("fates", "types", "transform"))
def command(X: Table, folder: Path) -> Answers:
    path = write_csv(X, folder / "table.csv")
    columns = ("--columns", ",".join(names_of(X)))
    places = iter(range(1000))
    done = run("impute", path, "-o", folder / "filled.csv", *columns)
    run("fit", path, "-o", folder / "results", "--id", "id", *columns)
    results = folder / "results"
    summary = json.loads((results / "fit.json").read_text())

    def fill(rows: Table) -> Table:
        out = folder / f"out-{next(places)}.csv"
        source = write_csv(rows, folder / f"rows-{next(places)}.csv")
        run("impute", source, "-o", out, "--model", results / "model.a1gm")
        return read_table(out)

    return Answers(
        filled=read_table(folder / "filled.csv"),
        row_factor=pd.read_csv(results / "row_factor.csv")["row_factor"].to_numpy(),
        col_factor=pd.read_csv(results / "col_factor.csv")["col_factor"].to_numpy(),
        certificate=summary["certificate"],
        converged=summary["converged"],
        says_something="warning" in done.stderr,
        fill=fill,
    )


# --------------------------------------------------------------- fits that travel
@way("file fit, saved and loaded", lacks=NO_ROWS)
def saved_file_fit(X: Table, folder: Path, rows: Any = "gone") -> Answers:
    def make(given: Any) -> Any:
        path = write_parquet(X, folder / "table.parquet")
        return loaded(a1gm.fit_file(path, columns=names_of(X)), folder)

    return answers_of_fit(X, make, pandas_frame, as_floats, rows=rows)


@way("mask fit, saved and loaded")
def saved_mask_fit(X: Table, folder: Path) -> Answers:
    with masks_on_disk():
        return saved_file_fit(X, folder, rows="held")
