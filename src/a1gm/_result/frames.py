"""The factors of a fit as frames of the user's library."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from a1gm._base.types import AnyArray, Floats
from a1gm.exceptions import MissingExtraError, ParameterError

__all__ = ["FactorFrames", "factor_frames", "table_frame"]

BACKENDS = ("pandas", "polars", "pyarrow")


class FactorFrames(NamedTuple):
    """Two frames: one line per row of the table, and one per column."""

    rows: Any
    columns: Any


def factor_frames(fit: Any, backend: str | None) -> FactorFrames:
    """Make a frame of each factor, with its labels and blocks."""
    if backend is None:
        msg = (
            "The fitted table was not a frame, so name the library: "
            f"fit.to_frames(backend=...) with one of {BACKENDS}."
        )
        raise ParameterError(msg)
    rows = {"row_factor": np.asarray(fit.row_factor), "row_block": fit.row_block}
    columns = {"col_factor": fit.col_factor, "col_block": fit.col_block}
    return FactorFrames(
        _frame("row", fit.row_labels, rows, backend),
        _frame("column", fit.col_labels, columns, backend),
    )


def table_frame(table: Floats, backend: str, row_labels: Any, col_labels: Any) -> Any:
    """Make a frame of a table, with its labels."""
    import narwhals as nw

    names = range(table.shape[1]) if col_labels is None else list(col_labels)
    if backend == "pandas":
        import pandas as pd

        return pd.DataFrame(table, index=row_labels, columns=names)
    columns = {str(name): table[:, j] for j, name in enumerate(names)}
    library: Any = backend
    frame = nw.from_dict(columns, backend=library)
    gaps = [name for name, values in columns.items() if np.isnan(values).any()]
    return (
        frame.with_columns(nw.col(*gaps).fill_nan(None)).to_native()
        if gaps
        else (frame.to_native())
    )


def _frame(what: str, labels: Any, values: dict[str, AnyArray], backend: str) -> Any:
    import narwhals as nw

    if backend == "pandas":
        return _pandas_frame(what, labels, values)
    n = len(next(iter(values.values())))
    library: Any = backend
    named = {what: np.arange(n) if labels is None else _texts(labels), **values}
    try:
        return nw.from_dict(named, backend=library).to_native()
    except (ImportError, ModuleNotFoundError) as error:
        msg = f"to_frames(backend={backend!r}) needs {backend}, which is not installed."
        raise MissingExtraError(msg) from error
    except ValueError as error:
        msg = f"backend must be one of {BACKENDS}, got {backend!r}."
        raise ParameterError(msg) from error


def _pandas_frame(what: str, labels: Any, values: dict[str, AnyArray]) -> Any:
    try:
        import pandas as pd
    except ImportError as error:
        msg = "to_frames(backend='pandas') needs pandas, which is not installed."
        raise MissingExtraError(msg) from error
    index = labels if labels is None else pd.Index(labels, name=_name(labels, what))
    return pd.DataFrame(values, index=index)


def _name(labels: Any, what: str) -> Any:
    name = getattr(labels, "name", None)
    return what if name is None else name


def _texts(labels: Any) -> list[Any]:
    return [x.item() if isinstance(x, np.generic) else x for x in labels]
