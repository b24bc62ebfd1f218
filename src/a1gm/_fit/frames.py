"""The factors of a fit as frames of the user's library."""

from __future__ import annotations

from datetime import date, datetime, timedelta
from typing import Any, NamedTuple

import numpy as np

from a1gm._base.optional import how_to_install
from a1gm._base.types import AnyArray, Floats
from a1gm._rows.labels import plain_text
from a1gm.exceptions import MissingExtraError, ParameterError

BACKENDS = ("pandas", "polars", "pyarrow")


class FactorFrames(NamedTuple):
    """Two frames: one line per row of the table, and one per column."""

    rows: Any
    columns: Any


def factor_frames(fit: Any, backend: str | None) -> FactorFrames:
    """Make a frame of each factor, with its labels and blocks."""
    rows = {"row_factor": np.asarray(fit.row_factor), "row_block": fit.row_block}
    columns = {"col_factor": fit.col_factor, "col_block": fit.col_block}
    return FactorFrames(
        labelled_frame("row", fit.row_labels, rows, backend),
        labelled_frame("column", fit.col_labels, columns, backend),
    )


def table_frame(table: Floats, backend: str, row_labels: Any, col_labels: Any) -> Any:
    """Make a frame of a table, with its labels."""
    names = range(table.shape[1]) if col_labels is None else col_labels
    if backend == "pandas":
        index = None if row_labels is None else _index(row_labels)
        return _pandas().DataFrame(table, index=index, columns=_index(names))
    columns = {plain_text(name): table[:, j] for j, name in enumerate(names)}
    gaps = [name for name, values in columns.items() if np.isnan(values).any()]
    return _library_frame(columns, backend, gaps)


def labelled_frame(
    what: str, labels: Any, values: dict[str, Any], backend: str | None
) -> Any:
    """Make a frame of columns, with the labels of its rows."""
    if backend is None:
        raise ParameterError(
            "The fitted table was not a frame, so name the library: backend=... with "
            f"one of {BACKENDS}."
        )
    if backend == "pandas":
        return _pandas_frame(what, labels, values)
    if backend not in (*BACKENDS, "modin", "cudf"):
        raise ParameterError(f"backend must be one of {BACKENDS}, got {backend!r}.")
    if labels is None:
        n = len(next(iter(values.values())))
        return _library_frame({what: np.arange(n), **values}, backend)
    try:
        return _library_frame({what: _texts(labels), **values}, backend)
    except (TypeError, ValueError, OverflowError):  # no column of one type
        return _library_frame({what: list(map(plain_text, labels)), **values}, backend)


def _library_frame(columns: dict[str, Any], backend: str, gaps: Any = ()) -> Any:
    """Make a frame of another library than pandas; NaN in ``gaps`` becomes null."""
    import narwhals as nw

    library: Any = backend
    try:
        frame = nw.from_dict(columns, backend=library)
    except (ImportError, ModuleNotFoundError) as error:
        raise _absent(backend) from error
    if gaps:
        frame = frame.with_columns(nw.col(*gaps).fill_nan(None))
    return frame.to_native()


def _pandas() -> Any:
    try:
        import pandas as pd
    except ImportError as error:
        raise _absent("pandas") from error
    return pd


def _absent(backend: str) -> MissingExtraError:
    return MissingExtraError(
        f"A frame of {backend} needs {backend}, which is not installed. "
        + how_to_install(backend)
    )


def _pandas_frame(what: str, labels: Any, values: dict[str, AnyArray]) -> Any:
    index = None if labels is None else _index(labels)
    if index is not None and index.nlevels == 1 and index.name is None:
        index = index.rename(what)
    return _pandas().DataFrame(values, index=index)


def _index(labels: Any) -> Any:
    """Labels as an Index of their own kind: of several levels, periods, days, ..."""
    pd = _pandas()
    if isinstance(labels, pd.Index):
        return labels
    index = pd.Index(list(labels))
    levels = getattr(labels, "levels", None)
    return index.set_names(levels) if levels else index


def _texts(labels: Any) -> list[Any]:
    """Labels as every library takes them: text for what only pandas has."""
    plain = [x.item() if isinstance(x, np.generic) else x for x in labels]
    # Older versions of polars take no time spans of pandas.
    plain = [x.to_pytimedelta() if hasattr(x, "to_pytimedelta") else x for x in plain]
    # Of one kind: a column has one type. A datetime is a date as well.
    known = (str, int, float, datetime, date, timedelta)
    kinds = {next((k for k in known if isinstance(x, k)), None) for x in plain}
    is_plain = len(kinds) == 1 and None not in kinds
    return plain if is_plain else [plain_text(x) for x in plain]
