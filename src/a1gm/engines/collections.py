"""Which Dask collections are tables that can be fitted."""

from __future__ import annotations

from typing import Any

import numpy as np

from a1gm._base.optional import require
from a1gm._rows.columns import BY_RULE, ColumnOptions
from a1gm._rows.frames import chosen_columns
from a1gm.exceptions import DataError, NotNumericError, ParameterError


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
        return collection
    if not (hasattr(type(collection), "columns") and collection.ndim == 2):
        raise DataError(
            f"A Dask {type(collection).__name__} is not a table; pass an array of two "
            "dimensions or a frame (bag.to_dataframe())."
        )
    if not len(collection.columns):
        raise DataError("The frame has no columns.")
    names = list(chosen_columns(collection._meta, "The frame", options))
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
