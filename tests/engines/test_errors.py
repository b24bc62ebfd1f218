"""Standard errors beside the fills: in memory, and on every engine."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from engines.test_lazy import FILLS, arrow, quiet, random_table, same, wide
from support.lazy import ENGINES

import a1gm
from a1gm.exceptions import LabelError, ParameterError, TableTooLargeError

pytestmark = pytest.mark.filterwarnings(  # of Ibis, at every query
    "ignore:fetch_arrow_table:DeprecationWarning",
    "ignore:The 'future.infer_string' option",
)
N_RANDOM = {"polars": 60, "DuckDB": 30, "Spark": 0}
BLOCKS = np.kron(np.eye(2), np.ones((4, 3)))


def cells(table: pa.Table) -> np.ndarray:
    columns = [c.to_numpy(zero_copy_only=False).astype(float) for c in table.columns]
    return np.stack(columns, axis=1)


def errors_one_by_one(fit: a1gm.RankOneFit, X: np.ndarray) -> np.ndarray:
    """The errors that ``standard_error`` gives the holes."""
    i, j = np.nonzero(np.isnan(X))
    found = np.full(X.shape, np.nan)
    sure = fit.uncertainty(2.0)
    found[i, j] = sure.standard_error(i, j, prediction=True)
    return found


@pytest.mark.daily("polars", "DuckDB")
def test_every_engine(engine):
    give, take = ENGINES[engine]
    rng = np.random.default_rng(5)
    blocks = np.where(BLOCKS > 0, wide(6, 8), np.nan)
    tables = [wide(5), blocks]
    tables += [random_table(rng)[0] for _ in range(N_RANDOM.get(engine, 3))]
    for X in tables:
        m = X.shape[1]
        memory, given = quiet(lambda: a1gm.fit(X)), give(arrow(X))  # noqa: B023
        fit = quiet(lambda: a1gm.fit(given))  # noqa: B023
        found = take(fit.uncertainty(2.0).errors(given))
        assert found.column_names[m:] == [f"c{j}_se" for j in range(m)]
        values = cells(found)
        right = quiet(lambda: memory.impute(X))  # noqa: B023
        same(values[:, :m], right, FILLS)
        same(values[:, m:], errors_one_by_one(memory, X), 1e-7)


@pytest.mark.parametrize("kind", ["pandas", "polars", "pyarrow"])
def test_frames_in_memory(kind):
    X = wide(5)
    table = arrow(X).append_column("note", pa.array(["x"] * len(X)))
    frame = {
        "pandas": lambda: table.to_pandas().set_index(pd.Index(range(7, 47))),
        "polars": lambda: pl.from_arrow(table),
        "pyarrow": lambda: table,
    }[kind]()
    fit = quiet(lambda: a1gm.fit(frame))
    sure = fit.uncertainty(2.0)
    found = sure.errors(frame, suffix=" error")
    assert type(found) is type(frame)
    names = list(getattr(found, "column_names", getattr(found, "columns", ())))
    assert names == [*table.column_names, *(f"c{j} error" for j in range(5))]
    right = errors_one_by_one(a1gm.fit(X), X)
    for j in range(5):
        values = np.asarray(found[f"c{j} error"], float)
        np.testing.assert_allclose(values, right[:, j], rtol=1e-12)
        is_hole = np.isnan(X[:, j])
        column = found[f"c{j} error"]
        n_null = getattr(column, "null_count", None)
        if kind == "polars":
            n_null = column.null_count()
        assert n_null in (None, int((~is_hole).sum()))
    if kind == "pandas":
        assert found.index.tolist() == list(range(7, 47))


def test_other_rows_in_another_order():
    X = wide(5)
    fit = a1gm.fit(arrow(X))
    sure, rows = fit.uncertainty(), arrow(X[:9]).select(["c3", "c0", "c4", "c2", "c1"])
    here, there = sure.errors(rows), sure.errors(pl.from_arrow(rows).lazy())
    same(cells(there.collect().to_arrow()), cells(here), FILLS)


def test_what_is_refused():
    X = wide(3)
    fit = a1gm.fit(arrow(X))
    sure, lazy = fit.uncertainty(), pl.from_arrow(arrow(X)).lazy()
    with pytest.raises(ParameterError, match=r"quantiles of gamma .* errors\(X\) adds"):
        sure.interval(lazy)
    with pytest.raises(ParameterError, match="an array does not have"):
        sure.errors(X)
    taken = ["c0", "c1", "c2"], ["c0", "c1", "c1_se"]
    named = a1gm.fit(arrow(X, taken[1]))
    for frame in (arrow(X, taken[1]), pl.from_arrow(arrow(X, taken[1])).lazy()):
        with pytest.raises(LabelError, match="'c1_se' already"):
            named.uncertainty().errors(frame)
    frame = pl.DataFrame(wide(65, 300), schema=[f"c{j}" for j in range(65)])
    many = a1gm.fit(frame).uncertainty()
    with pytest.raises(TableTooLargeError, match="X has 65 columns"):
        many.errors(frame.lazy())
