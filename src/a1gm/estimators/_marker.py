"""Markers of missing cells other than NaN."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from a1gm._rows.read import AnyRows, is_sparse
from a1gm._rows.rows import Part
from a1gm._rows.sparse import SparseRows
from a1gm.exceptions import DataError, ParameterError


def is_nan_like(marker: Any) -> bool:
    """Whether cells marked so are read as NaN anyway: NaN, None and pd.NA."""
    if marker is None or type(marker).__name__ == "NAType":
        return True
    return isinstance(marker, float | np.floating) and bool(np.isnan(marker))


def check_marker(marker: Any, X: Any) -> None:
    """Raise for markers that are not numbers, and 0 where zeros are not stored."""
    if is_nan_like(marker):
        return
    if isinstance(marker, str | bytes) or not np.isscalar(marker):
        raise ParameterError(
            f"missing_values={marker!r} is not a number, and the table holds numbers "
            "only. Use NaN, None, pd.NA or a number."
        )
    if is_sparse(X) and marker == 0:
        raise ParameterError(
            "Imputation not possible when missing_values == 0 and input is sparse. "
            "Provide a dense array instead."
        )


def mark_missing(source: AnyRows, marker: Any) -> AnyRows:
    """The same table with the cells equal to the marker missing."""
    if is_nan_like(marker):
        return source
    value = float(marker)
    if isinstance(source, SparseRows):
        _refuse_nan(bool(source.missing.any()), marker)
        values = np.where(source.values == value, np.nan, source.values)
        return replace(source, values=values)
    for _, piece in source.blocks():
        _refuse_nan(bool(np.isnan(piece).any()), marker)
    if source.cut is None:
        return replace(source, parts=[_masked(part, value) for part in source.parts])
    cut = source.cut
    return replace(
        source, cut=lambda start, stop: [_masked(p, value) for p in cut(start, stop)]
    )


def _masked(part: Part, value: float) -> Part:
    values, mask, validity, offset, group = part
    marked = values == value
    return (values, marked if mask is None else mask | marked, validity, offset, group)


def _refuse_nan(has_nan: bool, marker: Any) -> None:
    if has_nan:
        raise DataError(
            f"Input X contains NaN, but missing_values={marker!r}. Use NaN as the "
            f"marker, after replacing {marker!r} by it."
        )
