"""Tables that lie elsewhere: which objects these are, and how they are read and filled.

Engines with queries (DuckDB, Ibis, Spark, SQLFrame) count the patterns themselves, and
a few kilobytes come here. Lazy frames of polars and streams of Arrow are read once,
batch by batch. Either way `Patterns` is what a fit is made of.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from a1gm._base.types import Negatives
from a1gm._fit.place import Columns
from a1gm._observe.patterns import Patterns
from a1gm._rows.columns import Choice, ColumnOptions
from a1gm._rows.frames import library_of
from a1gm._rows.lazy import is_lazy, native_of
from a1gm.exceptions import ParameterError, TableTooLargeError

if TYPE_CHECKING:
    from a1gm.engines.place import LazyTable

STREAMS = "read_next_batch", "projected_schema", "scanner"  # of pyarrow: what has one


def kind_of(X: Any) -> Literal["lazy", "stream"] | None:
    """Whether a table is a lazy frame or read once; None for one in memory.

    Nothing is imported for this.
    """
    if isinstance(X, np.ndarray | list | tuple):
        return None
    if is_lazy(X):
        return "lazy"
    library = library_of(X)
    if library == "pyarrow":
        is_stream = any(hasattr(X, name) for name in STREAMS)
        return "stream" if is_stream else None
    if library:
        return None
    has_batches = isinstance(X, Iterator) or hasattr(X, "__arrow_c_stream__")
    return "stream" if has_batches else None


def observe_elsewhere(
    X: Any, options: ColumnOptions, negatives: Negatives, n_threads: int | None
) -> tuple[Patterns, Any, Choice | None]:
    """Count a table that is not in memory; also the names and choice of its columns."""
    X = native_of(X)
    has_batches = library_of(X) == "polars" and hasattr(X, "collect_batches")
    if kind_of(X) == "stream" or has_batches:
        from a1gm.engines.stream import observe_stream

        return observe_stream(X, options, negatives, n_threads)
    from a1gm.engines.count import observe_table
    from a1gm.engines.place import LazyTable

    table = LazyTable.of(X, options)
    seen = observe_table(table, negatives)
    if seen is None:
        seen = _streamed(X, table, negatives, n_threads)
    return seen, table.names, table.choice


def _streamed(
    X: Any, table: LazyTable, negatives: Negatives, n_threads: int | None
) -> Patterns:
    """Count a table of too many patterns or columns, where its rows need not move."""
    if library_of(X) != "duckdb":
        raise TableTooLargeError(
            "X has too many patterns of holes, or too many columns, to count them "
            "where the rows are. Stream the rows: pass a reader of Arrow batches, such "
            "as table.to_pyarrow_batches() of Ibis, to a1gm.fit; or collect X first."
        )
    from a1gm.engines.stream import observe_stream

    chosen = ColumnOptions(columns=list(table.names))
    seen, _, _ = observe_stream(X.to_arrow_reader(), chosen, negatives, n_threads)
    return seen


@dataclass
class LazyFrames:
    """Opens lazy frames to fill them, by queries that nobody runs yet.

    ``fitted`` is the frame that was fitted, if it can be asked again.
    """

    fitted: Any = None

    def open(self, X: Any, options: ColumnOptions) -> Any:
        """X as a table that is filled where it lies; None if that is in memory."""
        kind = kind_of(X)
        if kind == "stream":
            raise ParameterError(
                f"X is a {type(X).__name__}, which is read once: fill its batches one "
                "by one, [fit.impute(batch) for batch in X]; fit.transform likewise."
            )
        if kind is None:
            return None
        from a1gm.engines.place import LazyTable

        return LazyTable.of(native_of(X), options)

    def to_sql(self, columns: Columns, names: Any, *query: Any) -> str:
        """The query that returns a table with its holes filled."""
        from a1gm.engines.sql import fill_query

        return fill_query(columns, names, *query)

    def __getstate__(self) -> dict[str, Any]:
        """Leave the fitted frame behind: connections are not pickled."""
        return self.__dict__ | {"fitted": None}


#: Every fit fills lazy frames.
LAZY_FRAMES = LazyFrames()
