"""The factors of a fit as frames of the user's library."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date, timedelta
from typing import Any, NamedTuple

import numpy as np

from a1gm._base.optional import how_to_install
from a1gm._base.types import AnyArray, Floats
from a1gm._rows.labels import plain_text
from a1gm._rows.long import taken
from a1gm.exceptions import MissingExtraError, ParameterError

BACKENDS = ("pandas", "polars", "pyarrow")
KNOWN_TYPES = (str, int, float, date, timedelta)  # of labels that stay as they are


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
    return _make_frame(columns, backend, nan_to_null=True)


def check_backend(backend: Any) -> None:
    """Raise for a library of frames that is not known."""
    if backend not in (*BACKENDS, "modin", "cudf"):
        raise ParameterError(
            f"backend must be one of {BACKENDS}, got {backend!r}: the library of the "
            "frame, which is known only if the fitted table was a frame."
        )


def labelled_frame(
    what: str, labels: Any, values: dict[str, Any], backend: str | None
) -> Any:
    """Make a frame of columns, with the labels of its rows."""
    check_backend(backend)
    if backend == "pandas":
        index = None if labels is None else _index(labels)
        if index is not None and index.nlevels == 1 and index.name is None:
            index = index.rename(what)
        return _pandas().DataFrame(values, index=index)
    if labels is None:
        labels = range(len(next(iter(values.values()))))
    plain = [x.item() if isinstance(x, np.generic) else x for x in labels]
    # Older versions of polars take no time spans of pandas.
    plain = [x.to_pytimedelta() if hasattr(x, "to_pytimedelta") else x for x in plain]
    texts = [plain_text(x) for x in plain]
    if not all(isinstance(x, KNOWN_TYPES) for x in plain):
        plain = texts
    try:
        return _make_frame({what: plain, **values}, backend)
    except (TypeError, ValueError, OverflowError):  # no column of one type
        return _make_frame({what: texts, **values}, backend)


def long_frame(
    backend: str | None,
    keys: Sequence[tuple[Any, Any, AnyArray]],
    columns: dict[Any, AnyArray],
) -> Any:
    """Make a frame of key columns, each distinct values and their places, and numbers.

    Numbers that are NaN become null in libraries that have it.
    """
    names = {name: taken(values, codes) for name, values, codes in keys}
    return _make_frame({**names, **columns}, backend, nan_to_null=True)


def _make_frame(
    columns: dict[str, Any], backend: Any, *, nan_to_null: bool = False
) -> Any:
    if backend == "pandas":
        return _pandas().DataFrame(columns)
    import narwhals as nw

    gaps = []
    for name, values in columns.items():
        kind = values.dtype.kind if isinstance(values, np.ndarray) else ""
        if kind == "O":
            columns[name] = list(values)
        if kind == "f" and nan_to_null and np.isnan(values).any():
            gaps.append(name)
    try:
        frame = nw.from_dict(columns, backend=backend)
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


def _index(labels: Any) -> Any:
    """Labels as an Index of their kind: of several levels, periods, days, ..."""
    pd = _pandas()
    if isinstance(labels, pd.Index):
        return labels
    index = pd.Index(list(labels))
    levels = getattr(labels, "levels", None)
    return index.set_names(levels) if levels else index
