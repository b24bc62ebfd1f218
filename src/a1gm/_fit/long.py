"""Fitted values of pairs of labels, and a long table filled."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from a1gm._base.types import Floats, Ints
from a1gm._base.warn import warn_user
from a1gm._fit.frames import long_frame
from a1gm._fit.place import cells_of
from a1gm._fit.table import Table
from a1gm._rows.labels import Lookup, check_there, paired
from a1gm._rows.long import Key, code_key, open_pairs
from a1gm._rows.read import AnyRows
from a1gm.exceptions import ParameterError, TableTooLargeError, UndeterminedWarning

Fitted = Callable[[Ints, Ints], Floats]
CELLS_AT_ONCE = 1 << 22


# ------------------------------------------------------------------ labelled pairs
def predicted(
    sides: tuple[Lookup, Lookup],
    fitted: Fitted,
    long: tuple[Any, Any, Any] | None,
    rows: Any,
    columns: Any,
) -> Any:
    """Fitted values of pairs of labels, or of the pairs of a long frame."""
    is_long = columns is None
    pairs: Any = _read_pairs(rows, long) if is_long else (rows, columns)
    unknown, found = [], []
    for side, names in zip(sides, pairs, strict=True):
        # Each label of a long frame once, not once per row.
        labels = names.labels if is_long else names
        places = side.find_known(labels, are_labels=is_long)
        unknown.append(side.unknown(labels, places))
        found.append(places[names.codes] if is_long else places)
    if any(unknown):
        warn_user(
            f"The fit does not know {' and '.join(filter(None, unknown))}: their "
            "values are NaN. Fit a table that has them, or check how they are written.",
            UndeterminedWarning,
        )
    i, j = paired(*found)
    values = np.full(i.shape, np.nan)
    known = (i >= 0) & (j >= 0)
    values[known] = fitted(i[known], j[known])
    return values if values.ndim else float(values)


def _read_pairs(frame: Any, long: tuple[Any, Any, Any] | None) -> tuple[Key, Key]:
    """Code the two key columns of a long frame."""
    if long is None:
        raise ParameterError(
            "This fit is not one of a long table, so it does not know which columns of "
            "a frame hold the keys. Pass the labels: fit.predict(rows, columns)."
        )
    names = long[:2]
    opened = open_pairs(frame, names)
    check_there("The frame", names, opened.columns)
    return code_key(opened, names[0]), code_key(opened, names[1])


# ------------------------------------------------------------------------ filling
def filled_long(
    table: Table,
    shape: tuple[int, int],
    fitted: Fitted,
    *,
    only_missing: bool,
    max_rows: int,
) -> Any:
    """Make a long frame of the missing pairs, or of all, with their values."""
    source = table.source
    if table.long is None:
        raise ParameterError(
            "This fit is not one of a long table. fit.impute(X) fills the table that "
            "was fitted; a1gm.fit_long fits a long one."
        )
    if source is None:
        raise ParameterError(
            "This fit was loaded or unpickled, and the data are not in the file. "
            "fit.predict(frame) gives the fitted values of the pairs in a frame."
        )
    n_known = sum(len(i) for i, _, _ in cells_of(source))
    n_rows = shape[0] * shape[1] - (n_known if only_missing else 0)
    if n_rows > max_rows:
        raise TableTooLargeError(
            f"fill_long would give {n_rows:,} rows: {shape[0]:,} x {shape[1]:,} pairs, "
            f"of which {n_known:,} are observed. That is more than max_rows="
            f"{max_rows:,}. fit.predict(frame) gives the values of the pairs that are "
            "needed; or raise max_rows."
        )
    parts = list(filled_pairs(source, fitted, only_missing))
    rows, cols, values = (np.concatenate(part) for part in zip(*parts, strict=True))
    assert table.key_values is not None
    keys = zip(table.long[:2], table.key_values, (rows, cols), strict=True)
    return long_frame(table.backend, list(keys), {table.long[2]: values})


def filled_pairs(
    source: AnyRows, fitted: Fitted, only_missing: bool
) -> Iterator[tuple[Ints, Ints, Floats]]:
    """Yield rows, columns and values of pairs, some rows at a time."""
    step = max(1, CELLS_AT_ONCE // source.n_cols)
    for start in range(0, source.n_rows, step):
        x = source.rows(slice(start, min(start + step, source.n_rows)))
        missing = np.isnan(x)
        rows, cols = np.nonzero(missing)
        x[rows, cols] = fitted(rows + start, cols)
        if only_missing:
            yield rows + start, cols, x[rows, cols]
        else:
            rows, cols = (np.ravel(places) for places in np.indices(x.shape))
            yield rows + start, cols, x.ravel()
