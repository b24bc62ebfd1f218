"""Factors, fitted values of labelled pairs and filled long tables, as frames."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from datetime import date, timedelta
from html import escape
from typing import Any, NamedTuple

import numpy as np

from a1gm._base.optional import require
from a1gm._base.types import AnyArray, Floats, Ints
from a1gm._base.warn import warn_user
from a1gm._base.words import html_grid, text_grid
from a1gm._fit.messages import number_grid
from a1gm._rows.labels import Lookup, check_there, paired, plain_text
from a1gm._rows.lazy import in_memory
from a1gm._rows.long import Key, code_key, open_pairs, parts_of_key, taken
from a1gm.exceptions import (
    ParameterError,
    TableTooLargeError,
    UndeterminedWarning,
    WeightsError,
)

BOUNDS = "lower", "upper"  # columns of prediction intervals
BACKENDS = ("pandas", "polars", "pyarrow")
Fitted = Callable[..., Floats]
Bounds = Callable[[Ints, Ints], tuple[Floats, Floats]]
CELLS_AT_ONCE = 1 << 22
KNOWN_TYPES = (str, int, float, date, timedelta)  # of labels that stay as they are


class FactorFrames(NamedTuple):
    """What the rows of a table have, and what its columns have; both are shown."""

    rows: Any
    columns: Any

    def __repr__(self) -> str:
        return "rows\n{}\n\ncolumns\n{}".format(*self)

    def _repr_html_(self) -> str:
        parts = [
            part._repr_html_()
            if hasattr(part, "_repr_html_")
            else f"<pre>{escape(repr(part))}</pre>"
            for part in self
        ]
        return "<h4>rows</h4>{}<h4>columns</h4>{}".format(*parts)


class FactorErrors(FactorFrames):
    """Standard errors of the row factors, read when needed, and the column factors."""

    names: tuple[Any, Any] = None, None  # of the rows and of the columns

    def _shown(self) -> list[tuple[list[list[str]], list[str]]]:
        of = "row", "column"
        sides = zip(of, self.names, self, strict=True)
        return [number_grid(word, names, {"se": se}) for word, names, se in sides]

    def __repr__(self) -> str:
        parts = ["\n".join([text_grid(g), *notes]) for g, notes in self._shown()]
        return "\n\n".join(parts)

    def _repr_html_(self) -> str:
        return "".join(html_grid(*part) for part in self._shown())


def factor_frames(fit: Any, backend: str | None) -> FactorFrames:
    """Make a frame of each factor, with its labels and blocks."""
    rows = {
        "row_factor": np.asarray(fit.row_factor),
        "row_block": np.asarray(fit.row_block),
    }
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
        return _library(backend).DataFrame(table, index=index, columns=_index(names))
    columns = {plain_text(name): table[:, j] for j, name in enumerate(names)}
    return _make_frame(columns.items(), backend, nan_to_null=True)


def check_backend(backend: Any) -> None:
    """Raise for a library of frames that is not known."""
    if backend not in (*BACKENDS, "modin", "cudf"):
        raise ParameterError(
            f"backend must be one of {BACKENDS}, got {backend!r}: the library of the "
            "frame, which is known only if the fitted table was a frame."
        )


def labelled_frame(
    what: str | tuple[str, ...], labels: Any, values: dict[str, Any], backend: Any
) -> Any:
    """Make a frame of columns, with the labels of its rows.

    Labels are tuples where ``what`` is one: a column, or a level, per name.
    """
    check_backend(backend)
    names = (what,) if isinstance(what, str) else what
    if backend == "pandas":
        index = None if labels is None else _index(labels)
        if index is not None and [*index.names] == [None] * len(names):
            index = index.set_names(names)
        return _library(backend).DataFrame(values, index=index)
    if labels is None:
        labels = range(len(next(iter(values.values()))))
    parts = [labels] if isinstance(what, str) else zip(*labels, strict=True)
    keys = zip(names, map(_plain, parts), strict=True)
    return _make_frame([*keys, *values.items()], backend)


def _plain(labels: Any) -> list[Any]:
    """Labels as values of Python, or as text where a library may not know them."""
    plain = [x.item() if isinstance(x, np.generic) else x for x in labels]
    # Older versions of polars take no time spans of pandas.
    plain = [x.to_pytimedelta() if hasattr(x, "to_pytimedelta") else x for x in plain]
    if not all(isinstance(x, KNOWN_TYPES) for x in plain):
        plain = [plain_text(x) for x in plain]
    return plain


def long_frame(
    backend: str | None,
    keys: Sequence[tuple[Any, Any, AnyArray]],
    names: Sequence[Any],
    columns: Sequence[AnyArray],
) -> Any:
    """Make a frame of key columns, each distinct values and codes, and numbers.

    ``names`` are those of the numbers. Numbers that are NaN become null in libraries
    that have it.
    """
    made: list[tuple[Any, Any]] = []
    for name, values, codes in keys:
        if isinstance(name, tuple) and isinstance(values[0], tuple):  # several columns
            rows = [values[k] for k in codes]
            made += [(one, [row[k] for row in rows]) for k, one in enumerate(name)]
        else:
            made.append((name, taken(values, codes)))
    made += zip(names, columns, strict=True)
    return _make_frame(made, backend, nan_to_null=True)


def check_new_name(name: Any, known: Collection[Any]) -> None:
    """Raise for a column of a result that is called as one of the data."""
    if name in known:
        raise ParameterError(
            f"The result would have two columns {name!r}: one of the data and one of "
            "the result. Rename the column of the data."
        )


def _make_frame(
    columns: Iterable[tuple[Any, Any]], backend: Any, *, nan_to_null: bool = False
) -> Any:
    """Make a frame of named columns; text of what the library cannot hold."""
    library, made, gaps = _library(backend), dict[Any, Any](), []
    for name, column in columns:
        text = name if backend == "pandas" else plain_text(name)
        check_new_name(text, made)
        made[text] = column
    if backend == "pandas":
        return library.DataFrame(made)
    import narwhals as nw

    for name, column in made.items():
        kind = column.dtype.kind if isinstance(column, np.ndarray) else ""
        values = _plain(column) if kind == "O" else column
        try:
            series = nw.new_series(name, values, backend=backend)
        except (TypeError, ValueError, OverflowError):  # no column of one type
            texts = [*map(plain_text, values)]
            series = nw.new_series(name, texts, backend=backend)
        made[name] = series.to_native()
        if kind == "f" and nan_to_null and np.isnan(column).any():
            gaps.append(name)
    frame = nw.from_dict(made, backend=backend)
    if gaps:
        frame = frame.with_columns(nw.col(*gaps).fill_nan(None))
    return frame.to_native()


def _library(backend: str) -> Any:
    return require(backend, backend, f"A frame of {backend}")


def _index(labels: Any) -> Any:
    """Labels as an Index of their kind: of several levels, periods, days, ..."""
    pd = _library("pandas")
    if isinstance(labels, pd.Index):
        return labels
    index = pd.Index(list(labels))
    levels = getattr(labels, "levels", None)
    return index.set_names(levels) if levels else index


# ------------------------------------------------------------------ labelled cells
def predicted(
    sides: Sequence[Lookup],
    fitted: Fitted,
    given: list[Key] | tuple[Any, ...],
    exposure: Any,
) -> Any:
    """Fitted values of cells by the keys of a long frame, or by labels for each side.

    ``fitted`` has them by positions along the sides, and by exposures or None.
    """
    is_long = isinstance(given, list)
    unknown, found = [], []
    for side, names in zip(sides, given, strict=True):
        # Each label of a long frame once, not once per row.
        labels = names.labels if is_long else names
        places = side.find_known(labels, are_labels=is_long)
        unknown.append(side.unknown(labels, places))
        found.append(places[names.codes] if is_long else places)
    if any(unknown):
        warn_user(
            f"The fitted table has no {' and no '.join(filter(None, unknown))}: the "
            "predictions there are NaN. Fit a table with these labels, or check their "
            "spelling.",
            UndeterminedWarning,
        )
    index = paired(*found)
    values = np.full(index[0].shape, np.nan)
    known = np.all([at >= 0 for at in index], axis=0)
    if exposure is not None:
        exposure = of_cells("exposure", exposure, values.shape)[known]
    values[known] = fitted([at[known] for at in index], exposure)
    return values if values.ndim else float(values)


def of_cells(name: str, given: Any, shape: tuple[int, ...]) -> Floats:
    """Weights or exposures as an array of a shape."""
    try:
        return np.broadcast_to(np.asarray(given, np.float64), shape)
    except ValueError as error:
        raise WeightsError(
            f"{name} has shape {np.shape(given)}, but the cells have shape {shape}. "
            "Pass one number, one per cell, or an array that broadcasts to them."
        ) from error


def read_keys(frame: Any, keys: Sequence[Any] | None) -> list[Key]:
    """Code the key columns of a long frame, as the fitted one had them."""
    if keys is None:
        raise ParameterError(
            "This fit was not made by fit_long, so the key columns of a frame are not "
            "defined. Pass labels: fit.predict(rows, columns), or of more modes "
            "fit.predict((a, b, c))."
        )
    columns = [name for key in keys for name in parts_of_key(key)]
    opened = open_pairs(in_memory(frame, columns), columns)
    check_there("The frame", columns, opened.columns)
    return [code_key(opened, key) for key in keys]


# ------------------------------------------------------------------------ filling
class Long(NamedTuple):
    """A long frame beside its cells: its names, distinct keys and library."""

    names: tuple[Any, ...]  # of the keys and of the value
    keys: tuple[Any, ...]  # in the types of the frame
    backend: str | None


def filled_long(
    long: Long | None,
    shape: Sequence[int],
    n_known: int,
    pieces: Iterator[tuple[AnyArray, ...]],
    *,
    only_missing: bool,
    max_rows: int,
) -> Any:
    """Make a long frame of the missing cells, or of all, with their values.

    ``pieces`` yields their positions along each key, values and, if any, bounds.
    """
    if long is None:
        raise ParameterError(
            "This fit is not one of a long table. fit.impute(X) fills the table that "
            "was fitted; a1gm.fit_long fits a long one."
        )
    n_rows = math.prod(shape) - (n_known if only_missing else 0)
    if n_rows > max_rows:
        size = " x ".join(f"{n:,}" for n in shape)
        raise TableTooLargeError(
            f"fill_long would give {n_rows:,} rows: {size} cells, "
            f"of which {n_known:,} are observed. That is more than max_rows="
            f"{max_rows:,}. In Python fit.predict(frame) gives the values of the cells "
            "that are needed, and fill_long takes another max_rows."
        )
    columns = [np.concatenate(part) for part in zip(*pieces, strict=True)]
    codes, values = columns[: len(shape)], columns[len(shape) :]
    *names, value = long.names
    keys = list(zip(names, long.keys, codes, strict=True))
    return long_frame(long.backend, keys, (value, *BOUNDS[: len(values) - 1]), values)


def filled_pairs(
    fit: Any, only_missing: bool, bounds: Bounds | None = None
) -> Iterator[tuple[Any, ...]]:
    """Yield rows, columns, values and, where asked for, bounds, some rows at a time.

    Both bounds of an observed pair are its value.
    """
    source = fit._table.source
    step = max(1, CELLS_AT_ONCE // source.n_cols)
    for start in range(0, source.n_rows, step):
        x = source.rows(slice(start, min(start + step, source.n_rows)))
        chosen = np.isnan(x)
        rows, cols = np.nonzero(chosen)
        pairs = rows + start, cols
        found = [fit._fitted(pairs), *(bounds(*pairs) if bounds else ())]
        if not only_missing:
            tables = [x.copy() for _ in found]
            for table, values in zip(tables, found, strict=True):
                table[chosen] = values
            rows, cols = (np.ravel(places) for places in np.indices(x.shape))
            pairs, found = (rows + start, cols), [table.ravel() for table in tables]
        yield *pairs, *found
