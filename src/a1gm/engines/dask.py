"""The pass over a Dask collection, and its rows filled where they are."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from a1gm._api.fit import FitOptions
from a1gm._api.pattern_table import PatternTable
from a1gm._base.types import Negatives, OnUndetermined
from a1gm._fit.fit import RankOneFit
from a1gm._fit.place import Columns, graph_of
from a1gm._fit.table import FitRows
from a1gm._observe.patterns import Patterns
from a1gm._rows.columns import ColumnOptions
from a1gm._solve.dispatch import Solved
from a1gm.engines.cluster import compute_safely
from a1gm.engines.collections import is_array, table_of
from a1gm.engines.partitions import (
    common_dtypes,
    count_partition,
    fill_partition,
    merge_tables,
    partition_divergence,
    partition_factors,
    series_of_factors,
)
from a1gm.exceptions import DataError, ParameterError

MERGED_AT_ONCE = 8


def fit_collection(
    collection: Any,
    options: FitOptions,
    *,
    max_bytes: int,
    worker_timeout: float,
    uncertainty: bool,
) -> RankOneFit:
    """Count the partitions, merge their tables and solve the one that is left."""
    given, collection = collection, table_of(collection)
    counted = _counted(collection, options.negatives, max_bytes, uncertainty)
    root = _merged(counted, max_bytes)
    table = PatternTable.from_bytes(compute_safely(root, worker_timeout=worker_timeout))
    if table.n_rows == 0:
        raise DataError(
            "Found a collection with 0 rows while a minimum of 1 is required: every "
            "partition is empty."
        )

    engine = DaskEngine(given, _names_of(collection))

    def rows(seen: Patterns, solved: Solved) -> FitRows:
        every = slice(0, solved.statistics.n_patterns)
        engine.has_holes = ~solved.statistics.observed_cells(every).all(axis=0)
        signed = options.negatives == "allow"
        columns = Columns(solved.factors.col_factor, graph_of(solved), signed)
        return FitRows(seen, engine.factors(collection, columns), is_kept=False)

    return table._solve(options, rows, engine=engine)


@dataclass
class DaskEngine:
    """Places and fills the rows of collections, lazily.

    ``fitted`` is the collection that was fitted, ``names`` its columns that are the
    table, ``has_holes`` which of them have holes.
    """

    fitted: Any
    names: list[Any] | None = None
    has_holes: Any = None

    def takes(self, X: Any) -> bool:
        """Whether X is a Dask collection."""
        import dask

        return bool(dask.is_dask_collection(X))

    def columns(self, collection: Any) -> tuple[int, Any]:
        """How many columns of a collection are the table, and their names."""
        table = self._table_of(collection)
        return int(table.shape[1]), _names_of(table)

    def _table_of(self, collection: Any) -> Any:
        return table_of(collection, ColumnOptions(fitted=self.names))

    def factors(self, collection: Any, rule: Any, *, tells: bool = False) -> Any:
        """Row factors as a lazy Dask array, or a series with the frame's index.

        With ``tells`` each partition warns of its rows without a factor when it is
        computed.
        """
        if is_array(collection):
            meta = np.zeros(0)
            return collection.map_blocks(
                partition_factors, rule, tells, drop_axis=1, dtype=meta.dtype, meta=meta
            )
        return self._table_of(collection).map_partitions(
            series_of_factors, rule, tells, meta=("row_factor", "f8")
        )

    def fill(
        self,
        collection: Any,
        rule: Columns,
        asked: OnUndetermined | None,
        fitted: OnUndetermined,
    ) -> Any:
        """Fill the missing cells; same partitions, divisions and labels.

        Columns of nullable integers that have holes become floats; of another
        collection than the fitted one it is not known which have. Partitions warn of
        cells that stay missing when they are computed, as ``asked`` now or, but not of
        the fitted collection again, when the fit was made.
        """
        if asked == "raise":
            raise ParameterError(
                "A lazy collection is filled when it is computed, so it cannot be told "
                'now with on_undetermined="raise". Look at fit.n_undetermined.'
            )
        is_new = asked is not None or collection is not self.fitted
        tells = is_new and (asked or fitted) != "ignore"
        if is_array(collection):
            dtype = collection.dtype if collection.dtype.kind in "fiub" else np.float64
            meta = np.zeros((0, 0), dtype)
            return collection.map_blocks(
                fill_partition, rule, {}, None, tells, dtype=dtype, meta=meta
            )
        table = self._table_of(collection)
        names = _names_of(table) or []
        has_holes = [_may_have_holes(dtype) for dtype in table.dtypes]
        if collection is self.fitted:
            has_holes &= self.has_holes
        dtypes = common_dtypes(table._meta, np.asarray(has_holes))
        meta = fill_partition(collection._meta, rule, dtypes, names)
        return collection.map_partitions(
            fill_partition, rule, dtypes, names, tells, meta=meta
        )

    def divergence(self, collection: Any, rule: Columns) -> float:
        """Compute the divergence of all rows, partition by partition."""
        import dask

        part = dask.delayed(partition_divergence, pure=True)
        pieces = self._table_of(collection).to_delayed()
        pieces = np.ravel(np.asarray(pieces, dtype=object))
        return float(sum(dask.compute(*(part(piece, rule) for piece in pieces))))


def _names_of(collection: Any) -> list[Any] | None:
    return None if is_array(collection) else list(collection.columns)


def _may_have_holes(dtype: Any) -> bool:
    """Whether a column of this type can have a missing cell."""
    return not (isinstance(dtype, np.dtype) and dtype.kind in "iub")


# --------------------------------------------------------------------- the graph
def _counted(
    collection: Any, negatives: Negatives, max_bytes: int, uncertainty: bool
) -> list[Any]:
    """One delayed table per partition, keyed by its number."""
    import dask

    parts = collection.to_delayed()
    pieces = list(np.ravel(parts)) if is_array(collection) else list(parts)
    starts = _first_rows(collection, len(pieces))
    count = dask.delayed(count_partition, pure=True)
    return [
        count(piece, number, first, negatives, max_bytes, uncertainty)
        for number, (piece, first) in enumerate(zip(pieces, starts, strict=True))
    ]


def _first_rows(collection: Any, n_pieces: int) -> list[int | None]:
    if not is_array(collection) or np.isnan(sum(collection.chunks[0])):
        return [None] * n_pieces
    ends = np.cumsum(collection.chunks[0])
    return [0, *(int(end) for end in ends[:-1])]


def _merged(tables: list[Any], max_bytes: int) -> Any:
    """Merge neighbours until one is left: a fixed tree gives identical bits."""
    import dask

    merge = dask.delayed(merge_tables, pure=True)
    while len(tables) > 1:
        tables = [
            merge(tables[k : k + MERGED_AT_ONCE], max_bytes)
            for k in range(0, len(tables), MERGED_AT_ONCE)
        ]
    return tables[0]
