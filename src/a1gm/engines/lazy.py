"""Tables that lie elsewhere: which objects these are, and their rows filled there.

Engines with queries (DuckDB, Ibis, Spark, SQLFrame) count the patterns themselves, and
a few kilobytes come here. Lazy frames of polars and streams of Arrow are read once,
batch by batch. Either way `Patterns` is what a fit is made of.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from a1gm._base.types import OnUndetermined
from a1gm._fit.place import Columns
from a1gm._observe.patterns import Patterns
from a1gm._rows.columns import BY_RULE, Choice, ColumnOptions
from a1gm._rows.frames import library_of
from a1gm._rows.long import Duplicates
from a1gm.exceptions import NotNumericError, ParameterError

WITH_QUERIES = ("duckdb", "ibis", "pyspark", "sqlframe")


def way_of(X: Any) -> Literal["query", "stream"] | None:
    """How a table that is not in memory is read; None for one that is.

    Nothing is imported for this.
    """
    if isinstance(X, np.ndarray | list | tuple):
        return None
    library, kind = library_of(X), type(X).__name__
    if library in WITH_QUERIES:
        return "query"
    if library == "narwhals" and kind == "LazyFrame":
        return way_of(X.to_native())
    if library == "polars":
        if kind != "LazyFrame":
            return None
        return "stream" if hasattr(X, "collect_batches") else "query"
    if library == "pyarrow":
        is_stream = kind == "RecordBatchReader" or hasattr(X, "scanner")
        return "stream" if is_stream or kind == "Scanner" else None
    if library:
        return None
    is_stream = isinstance(X, Iterator) or hasattr(X, "__arrow_c_stream__")
    return "stream" if is_stream else None


def is_lazy(X: Any) -> bool:
    """Whether X is a lazy frame, which an engine can be asked about again and again."""
    way = way_of(X)
    return way == "query" or (way is not None and library_of(native_of(X)) == "polars")


def native_of(X: Any) -> Any:
    """The frame of its own library, where narwhals has opened it."""
    return X.to_native() if library_of(X) == "narwhals" else X


@dataclass
class LazyFrames:
    """Places and fills the rows of lazy frames, by queries that nobody runs yet.

    ``options`` choose the columns that are the table. ``fitted`` is the frame that was
    fitted, if it can be asked again.
    """

    options: ColumnOptions = field(default_factory=lambda: BY_RULE)
    fitted: Any = None

    def takes(self, X: Any) -> bool:
        """Whether X is a lazy frame; a stream is refused."""
        if way_of(X) is not None and not is_lazy(X):
            raise ParameterError(
                f"X is a {type(X).__name__}, which is read once: fill its batches one "
                "by one, [fit.impute(batch) for batch in X]; fit.transform likewise."
            )
        return is_lazy(X)

    def columns(self, X: Any) -> tuple[int, Any]:
        """Number and names of the columns of a frame that are the table."""
        names = self._open(X).names
        return len(names), names

    def _open(self, X: Any) -> Any:
        from a1gm.engines.place import LazyTable

        return LazyTable.of(native_of(X), self.options)

    def fill(
        self,
        X: Any,
        columns: Columns,
        on_undetermined: OnUndetermined | None,
        default: OnUndetermined,
    ) -> Any:
        """Fill the missing cells: a lazy frame of the same kind, and no query is run.

        Rows with a negative or infinite cell stay as they are.
        """
        if on_undetermined == "raise":
            raise ParameterError(
                'on_undetermined="raise" cannot be used with a lazy frame, which is '
                "filled when it is collected or written. See fit.n_undetermined."
            )
        return self._open(X).filled(columns)

    def factors(self, X: Any, columns: Columns, *, warns: bool = False) -> Any:
        """Row factors beside the columns that are not the table; no query is run."""
        return self._open(X).factors(columns)

    def divergence(self, X: Any, columns: Columns) -> float:
        """Compute the divergence of all rows, in one query."""
        return float(self._open(X).statistics(columns)["divergence"])

    def statistics(self, columns: Columns) -> dict[str, float]:
        """Sums over the cells of the table that was fitted; none if it is gone."""
        if self.fitted is None:
            return {}
        found: dict[str, float] = self._open(self.fitted).statistics(columns)
        return found

    def predict(self, X: Any, columns: Columns, labels: Any, names: Any) -> Any:
        """Fitted values of pairs; of a lazy long table only."""
        raise ParameterError(
            "predict takes a lazy frame where the fit was made of one by "
            "a1gm.fit_long. Collect the pairs first."
        )

    def to_sql(self, columns: Columns, names: Any, *query: Any) -> str:
        """The query that returns a table with its holes filled."""
        from a1gm.engines.sql import fill_query

        return fill_query(columns, names, *query)

    def __getstate__(self) -> dict[str, Any]:
        """Leave the fitted frame behind: connections are not pickled."""
        return self.__dict__ | {"fitted": None}


@dataclass
class LongFrames(LazyFrames):
    """The engine of a long table, whose rows are placed by joins."""

    duplicates: Duplicates = "raise"

    def predict(self, X: Any, columns: Columns, labels: Any, names: Any) -> Any:
        """Pairs with their fitted values: a lazy frame, and no query is run."""
        from a1gm.engines.long import predicted

        if self.fitted is None:
            raise ParameterError(
                "This fit has left its long table behind. Fit the table again, and "
                "predict with that fit."
            )
        fitted, X = self.fitted, native_of(X)
        return predicted(X, fitted, columns, labels, names, self.duplicates)

    def statistics(self, columns: Columns) -> dict[str, float]:
        """Sums over the cells: none are known."""
        return {}


#: Every fit fills lazy frames.
LAZY_FRAMES = LazyFrames()


def observe_elsewhere(
    X: Any, options: ColumnOptions, **how: Any
) -> tuple[Patterns, Any, Choice | None]:
    """Count a table that is not in memory; also the names and choice of its columns.

    ``how`` are ``negatives`` and ``n_threads``, as in `observe`.
    """
    X = native_of(X)
    if way_of(X) == "stream":
        from a1gm.engines.stream import observe_stream

        return observe_stream(X, options, **how)
    from a1gm.engines.place import LazyTable

    if LazyTable.opens(X):
        from a1gm.engines.count import observe_table

        return observe_table(LazyTable.of(X, options), how["negatives"])
    raise NotNumericError(
        f"X is a {type(X).__module__}.{type(X).__name__}, which is not a table. Pass a "
        "relation of DuckDB (con.sql(...), con.table(...)), a table of Ibis or a "
        "DataFrame of Spark."
    )


def engine_of(X: Any, options: ColumnOptions) -> LazyFrames:
    """The engine of a fit of X; it asks X again for the scatter of the cells.

    ``options`` choose the columns that were fitted.
    """
    return LazyFrames(options, native_of(X)) if is_lazy(X) else LAZY_FRAMES
