"""Frames that are read in one step, with no call per column.

A pandas frame keeps its columns in blocks, which are arrays; other frames hand on the
addresses of their columns by Arrow's C interface. What neither has, such as text or
rows in several pieces, is read column by column in `frames`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from a1gm._kernel import SMALL, kernel
from a1gm._rows.arrays import KERNEL_DTYPES
from a1gm._rows.rows import Part, Rows

FRAME_MODULES = frozenset(
    (
        "pandas",
        "polars",
        "pyarrow",
        "narwhals",
        "modin",
        "cudf",
        "duckdb",
        "ibis",
        "pyspark",
        "sqlframe",
    )
)


def library_of(X: Any) -> str:
    """Name of the library of frames that made the class of X, or one it is made from.

    Empty for other objects; no library is imported for this.

    Examples
    --------
    >>> import pandas as pd
    >>> class Own(pd.DataFrame): ...
    >>> library_of(Own()), library_of([1.0])
    ('pandas', '')
    """
    for kind in type(X).__mro__:
        module = kind.__module__.partition(".")[0]
        if module in FRAME_MODULES or module.startswith("dask"):
            return module
    return ""


def read_whole(X: Any, labels: tuple[Any, ...]) -> Rows | None:
    """Read a frame with such column names at once; None where that cannot be done."""
    backend = library_of(X)
    parts: Any = None
    if backend == "pandas":
        parts = _blocks_of(X)
        index = getattr(X, "index", None)
    elif hasattr(X, "__arrow_c_stream__") and _is_in_one_piece(X, backend):
        if "\0" in "".join(labels):  # texts of C end there: polars aborts
            return None
        parts, index = kernel.read_stream(X.__arrow_c_stream__()), None
    if parts is None:
        return None
    return Rows(parts, len(X), len(labels), index, labels, backend)


def is_all_float64(X: Any, source: Rows) -> bool:
    """Whether a frame that was read has columns of NumPy's or Arrow's float64 alone."""
    if source.backend != "pandas":
        return bool(getattr(source.parts, "are_float64", False))  # columns by address
    blocks = getattr(getattr(X, "_mgr", None), "blocks", None)
    if not blocks:
        return set(X.dtypes) == {np.dtype(np.float64)}
    arrays = [block.values for block in blocks]
    return all(type(a) is np.ndarray and a.dtype == np.float64 for a in arrays)


def _is_in_one_piece(frame: Any, backend: str) -> bool:
    """Whether handing a frame on joins nothing; Arrow's tables never do."""
    if backend != "polars" or type(frame).__name__ != "DataFrame":
        return backend == "pyarrow"
    # Asking for all columns takes longer than joining those of a small frame.
    is_small = frame.height * frame.width < SMALL
    return frame.n_chunks() == 1 and (is_small or set(frame.n_chunks("all")) == {1})


def _blocks_of(frame: Any) -> list[Part] | None:
    """Runs of columns that lie side by side in a block; None if some are no arrays."""
    # Not public, but the only way that does not ask for each column by itself.
    manager: Any = getattr(frame, "_mgr", None)
    blocks = getattr(manager, "blocks", None)
    if not blocks or getattr(frame, "ndim", 0) != 2 or 0 in frame.shape:
        return None
    arrays = [block.values for block in blocks]
    if not all(type(a) is np.ndarray and a.dtype in KERNEL_DTYPES for a in arrays):
        return None
    if len(arrays) == 1:
        return [(arrays[0].T, None, None, 0, 0)]
    block, place = manager.blknos, manager.blklocs
    is_next = (np.diff(block) == 0) & (np.diff(place) == 1)
    first = np.flatnonzero(np.concatenate([[True], ~is_next]))
    runs = zip(first.tolist(), np.append(first[1:], len(block)).tolist(), strict=True)
    return [
        (arrays[block[a]][place[a] : place[a] + b - a].T, None, None, 0, 0)
        for a, b in runs
    ]
