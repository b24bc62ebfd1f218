"""Ways in for long tables and for many tables; see ``ways.ways``."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl

import a1gm
from ways.containers import Table, as_floats, names_of, pandas_frame
from ways.ways import Answers, answers_of_fit
from ways.ways import way as enter

KEYS, VALUE = ["row", "column"], "value"


def long_frame(X: Table) -> pd.DataFrame:
    """Every cell of a table, row by row, the missing ones as NaN."""
    rows, cols = np.indices(X.shape).reshape(2, -1)
    names = np.array(names_of(X))[cols]
    return pd.DataFrame({"row": rows, "column": names, "value": X.ravel()})


def of_wide_rows(answers: Answers) -> Answers:
    """New rows come as a frame of the columns; nothing is known of types."""
    fit = answers.fit
    answers.given = answers.output = None
    answers.fill = lambda rows: as_floats(fit.impute(pandas_frame(rows)))
    answers.transform = lambda rows: np.asarray(fit.transform(pandas_frame(rows)))
    return answers


def long_way(give: Callable[[pd.DataFrame], Any], X: Table, folder: Path) -> Answers:
    def values(frame: Any) -> Table:
        return np.asarray(frame[VALUE], float).reshape(X.shape)

    return of_wide_rows(
        answers_of_fit(
            X,
            lambda frame: a1gm.fit_long(frame, KEYS, VALUE),
            lambda X: give(long_frame(X)),
            values,
            impute=lambda fit, _: fit.fill_long(only_missing=False),
        )
    )


for name, give in {"pandas": lambda frame: frame, "polars": pl.from_pandas}.items():
    enter(f"long {name}", lacks=("types",))(partial(long_way, give))


@enter("one of many")
def one_of_many(X: Table, folder: Path) -> Answers:
    return answers_of_fit(X, lambda given: a1gm.fit_many([given])[0])


@enter("one of the groups", lacks=("types",))
def one_of_the_groups(X: Table, folder: Path) -> Answers:
    def make(frame: pd.DataFrame) -> Any:
        other = frame.assign(group="b", value=1.0)
        both = pd.concat([frame.assign(group="a"), other])
        return a1gm.fit_groups(both, "group", KEYS, VALUE)["a"]

    return of_wide_rows(
        answers_of_fit(
            X,
            make,
            long_frame,
            lambda frame: frame[VALUE].to_numpy(float).reshape(X.shape),
            impute=lambda fit, _: fit.fill_long(only_missing=False),
        )
    )
