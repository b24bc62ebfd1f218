"""Which library a table is of."""

from __future__ import annotations

from typing import Any

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
