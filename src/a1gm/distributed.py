"""Fits of Dask arrays and frames, on threads or on a cluster.

Each partition becomes a table of patterns, tables merge in a tree, and one of them
reaches this process: patterns × columns × 16 bytes, whatever the number of rows.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from a1gm.engines.cluster import compute_safely
from a1gm.engines.collections import check_collection, is_array
from a1gm._result.fill_rows import RowRule
from a1gm._api.fit import DEFAULT_MAX_ITER, DEFAULT_TOL, check_options
from a1gm.engines.partitions import (
    common_dtypes,
    count_partition,
    fill_partition,
    merge_tables,
    partition_factors,
)
from a1gm._api.pattern_table import DEFAULT_MAX_BYTES, PatternTable
from a1gm._result.show import one_line
from a1gm._result.streamed import StreamedFit
from a1gm._base.types import Floats, Negatives, OnUndetermined, Solver
from a1gm._base.warn import warn_user
from a1gm.exceptions import DimensionError, EmptyLineWarning
from a1gm._result.fit import RankOneFit

if TYPE_CHECKING:
    from a1gm._result.pattern import MissingPattern

__all__ = ["DistributedFit", "fit"]

MERGED_AT_ONCE = 8


def fit(
    collection: Any,
    *,
    negatives: Negatives = "raise",
    on_undetermined: OnUndetermined = "warn",
    tol: float = DEFAULT_TOL,
    max_iter: int = DEFAULT_MAX_ITER,
    max_bytes: int = DEFAULT_MAX_BYTES,
    worker_timeout: float = 60.0,
) -> DistributedFit:
    """Fit a Dask array or frame with one pass over its partitions.

    Parameters
    ----------
    collection : dask.array.Array or dask.dataframe.DataFrame
        Non-negative numbers; NaN (or the frame's own mark) is a missing cell. An array
        may be cut along its rows only; lengths of partitions need not be known, and
        partitions may be empty.
    negatives, on_undetermined, tol, max_iter
        As in ``a1gm.fit``.
    max_bytes : int, default=2**32
        The largest table of patterns, on a worker or here.
    worker_timeout : float, default=60
        On a cluster, seconds to wait while it has no worker at all.

    Returns
    -------
    DistributedFit
        Column factors in memory; row factors and the filled table as lazy collections.

    Raises
    ------
    ClusterError
        Workers were lost for good. A worker that dies is replaced by Dask; its
        partitions are counted again, and once.
    TableTooLargeError
        The rows have too many patterns of holes for ``max_bytes``.
    DimensionError, NotNumericError, LabelError
        The collection is no table of numbers; the message has the call that helps.

    Examples
    --------
    >>> import numpy as np, dask.array as da, a1gm
    >>> X = np.array([[1.0, 2.0], [2.0, np.nan], [3.0, 6.0]])
    >>> fit = a1gm.distributed.fit(da.from_array(X, chunks=(2, 2)))
    >>> fit.impute().compute()
    array([[1., 2.],
           [2., 4.],
           [3., 6.]])
    """
    check_options(
        tol=tol,
        max_iter=max_iter,
        n_threads=None,
        negatives=negatives,
        on_undetermined=on_undetermined,
    )
    check_collection(collection)
    root = _merged(_counted(collection, negatives, max_bytes), max_bytes)
    table = PatternTable.from_bytes(compute_safely(root, worker_timeout=worker_timeout))
    if table.n_rows == 0:
        msg = (
            "Found a collection with 0 rows while a minimum of 1 is required: every "
            "partition is empty."
        )
        raise DimensionError(msg)
    solved = table.solve_with_rows(
        None, tol=tol, max_iter=max_iter, on_undetermined=on_undetermined
    )
    _warn_of_empty_rows(solved)
    return DistributedFit(collection, solved, table.n_rows)


def _warn_of_empty_rows(solved: RankOneFit) -> None:
    # Which rows these are only the partitions know.
    n_empty = solved.n_empty_rows if isinstance(solved, StreamedFit) else 0
    if n_empty:
        warn_user(
            f"Nothing is observed in {n_empty} of the rows: their factors are NaN and "
            "their cells stay missing.",
            EmptyLineWarning,
        )


class DistributedFit:
    """The best rank-1 explanation of a Dask collection.

    Made by ``a1gm.distributed.fit``.

    Attributes
    ----------
    col_factor : ndarray of shape (n_cols,)
        Column factors, in memory.
    n_rows : int
        Rows of the collection.
    local : RankOneFit
        The fit without its rows: certificate, pattern, blocks, ``transform``.
    """

    def __init__(self, collection: Any, local: RankOneFit, n_rows: int) -> None:
        self._collection = collection
        self.local = local
        self.n_rows = n_rows
        self.col_factor: Floats = local.col_factor

    @property
    def certificate(self) -> float:
        """Largest relative mismatch of the margins; 0 proves optimality."""
        return self.local.certificate

    @property
    def solver(self) -> Solver:
        """How it was solved: "closed form", "scaling" or "newton"."""
        return self.local.solver

    @property
    def n_iter(self) -> int:
        """Iterations used; 0 for the closed form."""
        return self.local.n_iter

    @property
    def n_blocks(self) -> int:
        """Blocks with data of their own."""
        return self.local.n_blocks

    @property
    def pattern(self) -> MissingPattern:
        """The shape of the holes."""
        return self.local.pattern

    @cached_property
    def _rule(self) -> RowRule:
        return RowRule.of(self.local)

    @cached_property
    def row_factor(self) -> Any:
        """Row factors as a lazy Dask array, or a series with the frame's index."""
        if is_array(self._collection):
            return self._collection.map_blocks(
                partition_factors,
                self._rule,
                drop_axis=1,
                dtype=np.float64,
                meta=np.zeros(0),
            )
        return self._collection.map_partitions(
            _series_of_factors, self._rule, meta=("row_factor", "f8")
        )

    def impute(self) -> Any:
        """Fill the missing cells, lazily.

        Returns
        -------
        dask.array.Array or dask.dataframe.DataFrame
            The collection with its missing cells filled; same partitions, divisions
            and labels. Cells that the data do not determine stay missing. Columns of
            nullable integers that have holes become floats.
        """
        collection = self._collection
        if is_array(collection):
            dtype = collection.dtype if collection.dtype.kind in "fiub" else np.float64
            return collection.map_blocks(
                fill_partition,
                self._rule,
                {},
                dtype=dtype,
                meta=np.zeros((0, 0), dtype),
            )
        has_holes = self.pattern.missing_per_col > 0
        dtypes = common_dtypes(collection._meta, has_holes)
        meta = fill_partition(collection._meta, self._rule, dtypes)
        return collection.map_partitions(fill_partition, self._rule, dtypes, meta=meta)

    def __repr__(self) -> str:
        lines = {"table": f"{self.n_rows} x {len(self.col_factor)}"}
        lines |= {k: v for k, v in self.local.summary().items() if k != "table"}
        return one_line("DistributedFit", lines)


def _series_of_factors(block: Any, rule: RowRule) -> Any:
    import pandas as pd

    factors = partition_factors(block, rule)
    return pd.Series(factors, index=block.index, name="row_factor")


# --------------------------------------------------------------------- the graph
def _counted(collection: Any, negatives: Negatives, max_bytes: int) -> list[Any]:
    """One delayed table per partition, keyed by its number."""
    import dask

    parts = collection.to_delayed()
    pieces = list(np.ravel(parts)) if is_array(collection) else list(parts)
    starts = _first_rows(collection, len(pieces))
    count = dask.delayed(count_partition, pure=True)
    return [
        count(piece, number, first, negatives, max_bytes)
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
