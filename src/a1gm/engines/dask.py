"""Dask collections: which are tables, the pass over them, and their rows filled.

Workers that are gone for good are not waited for.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NoReturn

import numpy as np

from a1gm._base.optional import require
from a1gm._base.types import Negatives, OnUndetermined
from a1gm._fit.place import Columns
from a1gm._rows.columns import BY_RULE, ColumnOptions
from a1gm._rows.frames import chosen_columns
from a1gm.engines.lazy import LazyFrames
from a1gm.engines.partitions import (
    common_dtypes,
    count_partition,
    fill_partition,
    merge_tables,
    partition_divergence,
    partition_factors,
    series_of_factors,
)
from a1gm.exceptions import ClusterError, DataError, NotNumericError, ParameterError

MERGED_AT_ONCE = 8
POLL_SECONDS = 0.5


@dataclass
class DaskEngine(LazyFrames):
    """Opens collections, to fill them lazily, and lazy frames.

    ``fitted`` is the collection that was fitted, ``has_holes`` which of its columns
    have holes.
    """

    has_holes: Any = None

    def open(self, X: Any, options: ColumnOptions) -> Any:
        """X as a collection that is filled; None for a table in memory."""
        import dask

        if not dask.is_dask_collection(X):
            return super().open(X, options)
        is_fitted = X is self.fitted
        return DaskTable(X, options, self.has_holes if is_fitted else None)


@dataclass
class DaskTable:
    """A collection that is filled and placed lazily.

    ``has_holes`` are the columns with holes; None of another collection than the fitted
    one, of which it is not known.
    """

    collection: Any
    options: ColumnOptions
    has_holes: Any = None

    @cached_property
    def _table(self) -> Any:
        return table_of(self.collection, self.options)

    @property
    def names(self) -> list[Any] | None:
        """Names of the columns that are the table; None for an array."""
        return names_of(self._table)

    @property
    def n_cols(self) -> int:
        """Number of the columns that are the table."""
        return int(self._table.shape[1])

    def factors(self, columns: Any, *, warns: bool = False) -> Any:
        """Row factors as a lazy Dask array, or a series with the frame's index.

        With ``warns`` each partition warns about its rows without a factor when it is
        computed.
        """
        if is_array(self.collection):
            meta = np.zeros(0)
            return self.collection.map_blocks(
                partition_factors,
                columns,
                warns,
                drop_axis=1,
                dtype=meta.dtype,
                meta=meta,
            )
        return self._table.map_partitions(
            series_of_factors, columns, warns, meta=("row_factor", "f8")
        )

    def fill(
        self,
        columns: Columns,
        on_undetermined: OnUndetermined | None,
        default: OnUndetermined,
    ) -> Any:
        """Fill the missing cells; same partitions, divisions and labels.

        Columns of nullable integers that have, or may have, holes become floats.
        Partitions warn of cells that stay missing when they are computed. ``default``
        is the option of the fit, which has warned about its own collection.
        """
        if on_undetermined == "raise":
            raise ParameterError(
                'on_undetermined="raise" cannot be used with a lazy collection, which '
                "is filled when it is computed. See fit.n_undetermined."
            )
        is_new = on_undetermined is not None or self.has_holes is None
        warns = is_new and (on_undetermined or default) != "ignore"
        collection, table = self.collection, self._table
        if is_array(collection):
            dtype = collection.dtype if collection.dtype.kind in "fiub" else np.float64
            meta = np.zeros((0, 0), dtype)
            return collection.map_blocks(
                fill_partition, columns, {}, None, warns, dtype=dtype, meta=meta
            )
        has_holes = np.array([_may_have_holes(dtype) for dtype in table.dtypes])
        if self.has_holes is not None:
            has_holes &= self.has_holes
        dtypes = common_dtypes(table._meta, has_holes)
        meta = fill_partition(collection._meta, columns, dtypes, self.names)
        return collection.map_partitions(
            fill_partition, columns, dtypes, self.names, warns, meta=meta
        )

    def fill_with_errors(self, *_: Any) -> NoReturn:
        """Raise: partitions do not know the errors of the columns."""
        raise ParameterError(
            "Errors are added to frames in memory and to lazy frames. Compute the "
            "collection, or the partitions of it that are needed, first."
        )

    def statistics(self, columns: Columns) -> dict[str, float]:
        """Sums over the cells: those that the fit has kept."""
        return {}

    def divergence(self, columns: Columns) -> float:
        """Compute the divergence of all rows, partition by partition."""
        import dask

        part = dask.delayed(partition_divergence, pure=True)
        pieces = np.ravel(np.asarray(self._table.to_delayed(), dtype=object))
        return float(sum(dask.compute(*(part(piece, columns) for piece in pieces))))


def names_of(collection: Any) -> list[Any] | None:
    """Names of the columns of a frame; None for an array."""
    return None if is_array(collection) else list(collection.columns)


def _may_have_holes(dtype: Any) -> bool:
    """Whether a column of this type can have a missing cell."""
    return not (isinstance(dtype, np.dtype) and dtype.kind in "iub")


# --------------------------------------------------------------- collections
def is_array(collection: Any) -> bool:
    """Whether a collection is an array, not a frame."""
    # Asked of the class: a Delayed object has every attribute.
    return hasattr(type(collection), "chunks")


def table_of(collection: Any, options: ColumnOptions = BY_RULE) -> Any:
    """Return the columns of a collection that are the table, as a collection.

    Raises unless it is a table; the message has the remedy.
    """
    dask = require("dask", "dask", "a1gm.distributed")
    if not dask.is_dask_collection(collection):
        raise ParameterError(
            f"a1gm.distributed.fit takes Dask arrays and frames, got "
            f"{type(collection).__name__}. Use a1gm.fit for a table in memory."
        )
    if is_array(collection):
        _check_array(collection)
        if options.has_names:
            raise ParameterError(
                "id=, columns= and exclude= need a frame; this is an array. Select its "
                "columns first."
            )
        return collection
    if not (hasattr(type(collection), "columns") and collection.ndim == 2):
        raise DataError(
            f"A Dask {type(collection).__name__} is not a table; pass an array of two "
            "dimensions or a frame (bag.to_dataframe())."
        )
    if not len(collection.columns):
        raise DataError("The frame has no columns.")
    names = list(chosen_columns(collection._meta, "The frame", options)[0])
    return collection if names == list(collection.columns) else collection[names]


def _check_array(x: Any) -> None:
    if x.ndim != 2:
        raise DataError(
            f"Expected 2D array, got {x.ndim}D array instead: shape {x.shape}."
        )
    if x.dtype.kind not in "fiubO":
        raise NotNumericError(
            f"The array holds {x.dtype}, not numbers. Convert it with x.astype(float)."
        )
    if x.numblocks[1] > 1:
        raise DataError(
            f"The array is cut into {x.numblocks[1]} pieces along its columns; a row "
            "must lie in one piece. Call x = x.rechunk({1: -1}) first."
        )
    if np.isnan(x.shape[1]) or x.shape[1] == 0:
        raise DataError(
            "The number of columns of the array is unknown or zero. Call "
            "x.compute_chunk_sizes() first."
        )


# --------------------------------------------------------------------- the graph
def merged_table(
    collection: Any, negatives: Negatives, max_bytes: int, uncertainty: bool
) -> Any:
    """Count every partition and merge their tables; the bytes of one, delayed."""
    import dask

    parts = collection.to_delayed()
    pieces = list(np.ravel(parts)) if is_array(collection) else list(parts)
    starts = _first_rows(collection, len(pieces))
    count = dask.delayed(count_partition, pure=True)
    tables = [
        count(piece, number, first, negatives, max_bytes, uncertainty)
        for number, (piece, first) in enumerate(zip(pieces, starts, strict=True))
    ]
    merge = dask.delayed(merge_tables, pure=True)
    while len(tables) > 1:  # neighbours: a fixed tree gives identical bits
        tables = [
            merge(tables[k : k + MERGED_AT_ONCE], max_bytes)
            for k in range(0, len(tables), MERGED_AT_ONCE)
        ]
    return tables[0]


def _first_rows(collection: Any, n_pieces: int) -> list[int | None]:
    if not is_array(collection) or np.isnan(sum(collection.chunks[0])):
        return [None] * n_pieces
    ends = np.cumsum(collection.chunks[0])
    return [0, *(int(end) for end in ends[:-1])]


# -------------------------------------------------------------------- clusters
def compute_safely(task: Any, worker_timeout: float) -> Any:
    """Compute a delayed object with the scheduler that Dask would choose.

    ``worker_timeout`` is how many seconds a cluster may have no worker at all.
    """
    client = _current_client()
    if client is None:
        import dask

        return dask.compute(task)[0]
    return _compute_on(client, task, worker_timeout)


def _current_client() -> Any:
    """The cluster that Dask would use, or None for threads and the like."""
    import dask

    chosen = dask.config.get("scheduler", None)
    if chosen not in (None, "distributed", "dask.distributed"):
        return None
    try:
        from distributed import default_client
    except ImportError:
        return None
    try:
        return default_client()
    except ValueError:
        return None


def _compute_on(client: Any, task: Any, worker_timeout: float) -> Any:
    from distributed import wait
    from distributed.client import FutureCancelledError
    from distributed.scheduler import KilledWorker

    future = client.compute(task)
    last_seen = time.monotonic()
    try:
        while not future.done():
            try:
                wait(future, timeout=POLL_SECONDS)
            except TimeoutError:
                if client.nthreads():
                    last_seen = time.monotonic()
                elif time.monotonic() - last_seen > worker_timeout:
                    future.cancel()
                    raise ClusterError(
                        "All workers of the cluster are gone, and none came back "
                        f"within {worker_timeout:g} seconds. Start workers and run the "
                        "fit again; raise worker_timeout if they need longer to start."
                    ) from None
        return future.result()
    except KilledWorker as error:
        raise ClusterError(
            f"The cluster gave up on a partition: {error} A worker that dies again and "
            "again usually runs out of memory; use smaller partitions "
            "(x.rechunk, ddf.repartition) or workers with more memory."
        ) from error
    except (FutureCancelledError, OSError) as error:
        raise ClusterError(
            f"The connection to the cluster was lost during the fit ({error}). Nothing "
            "was changed; run it again when the cluster is back."
        ) from error
    finally:
        future.release()
