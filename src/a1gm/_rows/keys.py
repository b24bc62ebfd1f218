"""Key columns: a code for every row, and the distinct keys in their order."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from a1gm._base.optional import require
from a1gm._base.types import AnyArray, Bools, SmallInts
from a1gm.exceptions import LabelError

#: Text that sorts as the time it means: years, quarters, months, days, clock times.
_ISO = re.compile(
    r"\d{4}(-?Q[1-4]|-\d\d(-\d\d([ T]\d\d:\d\d(:\d\d(\.\d+)?)?Z?)?)?)?", re.ASCII
)


@dataclass(frozen=True, slots=True)
class Key:
    """A key column, coded by the library of its frame.

    Attributes
    ----------
    codes : ndarray of int32
        Place of each row's key among the distinct ones.
    values : pandas Index, polars Series or pyarrow Array
        The distinct keys in their own type: numbers, dates and periods ascend, also
        text such as ``2024-01``; others are in order of first appearance.
    """

    codes: SmallInts
    values: Any

    @property
    def labels(self) -> Any:
        """The distinct keys as names: an Index, or an array of Python's own types."""
        return labels_of(self.values)


def row_number(row: int) -> str:
    """What messages call a row of a frame."""
    return f"row {row}"


def code_key(
    frame: Any, column: Any, place_of: Callable[[int], str] = row_number
) -> Key:
    """Code a column of a frame that narwhals has opened; ``place_of`` names a row.

    Raises
    ------
    LabelError
        A key is missing, or is a list or the like.
    """
    series = frame.get_column(column)
    coded = _coded_by_arrow
    if series.implementation.is_pandas():
        coded = _coded_by_pandas
    else:
        is_missing = series.is_null().to_numpy()
        if series.dtype.is_float():
            is_missing |= np.isnan(series.to_numpy())
        _check_keys(column, is_missing, place_of)
        if series.implementation.is_polars():
            coded = _coded_by_polars
    try:
        codes, values = coded(series)
    except (TypeError, NotImplementedError) as error:  # not hashable; not in Arrow
        raise LabelError(
            f"The values of {column!r}, such as {series[:1].to_list()[0]!r}, cannot be "
            "keys. Make text or numbers of them, or take another column."
        ) from error
    _check_keys(column, codes < 0, place_of)
    return _in_order(codes.astype(np.int32, copy=False), values, series.dtype)


def _in_order(codes: AnyArray, values: Any, dtype: Any) -> Key:
    """Put numbers, dates and periods in their own order: years and months have one."""
    has_order = dtype.is_numeric() or dtype.is_temporal()
    if not has_order and hasattr(values, "inferred_type"):  # pandas: objects, periods
        has_order = values.inferred_type in ("date", "period", "integer")
    if not has_order and not _are_iso(values):
        return Key(codes, values)
    order = np.argsort(np.asarray(labels_of(values)), kind="stable")
    if (order[1:] > order[:-1]).all():
        return Key(codes, values)
    place = np.empty(len(order), np.int32)
    place[order] = np.arange(len(order), dtype=np.int32)
    return Key(place[codes], taken(values, order))


def _are_iso(values: Any) -> bool:
    """Whether all keys are text with a date or a month; the first one tells mostly."""
    return all(
        isinstance(label, str) and _ISO.fullmatch(label)
        for part in (values[:1], values)
        for label in labels_of(part)
    )


def _check_keys(column: Any, is_missing: Bools, place_of: Callable[[int], str]) -> None:
    """Raise for rows whose key is missing."""
    if is_missing.any():
        raise LabelError(
            f"The key {column!r} is missing in {place_of(int(is_missing.argmax()))} "
            f"({int(is_missing.sum()):,} in all). Every row of a long table needs all "
            "keys: drop these rows, or name the key."
        )


def _coded_by_pandas(series: Any) -> tuple[AnyArray, Any]:
    import pandas as pd

    native = series.to_native()
    if isinstance(native.dtype, np.dtype) and not native.dtype.isnative:
        native = native.astype(native.dtype.newbyteorder("="))
    codes, values = pd.factorize(native)
    return codes, pd.Index(values)


def _coded_by_polars(series: Any) -> tuple[AnyArray, Any]:
    import polars as pl

    native = series.to_native()
    kind = native.dtype
    if kind in (pl.Categorical, pl.Enum) or str(kind).endswith("Int128"):
        native = native.cast(pl.String)
    require("pyarrow", "cli", "a long table of polars")
    codes, values = _coded_chunks(native.to_arrow())
    found = pl.from_arrow(values)
    assert isinstance(found, pl.Series)
    return codes, found.alias(native.name).cast(kind)


def _coded_by_arrow(series: Any) -> tuple[AnyArray, Any]:
    return _coded_chunks(series.to_arrow())


def _coded_chunks(array: Any) -> tuple[AnyArray, Any]:
    import pyarrow as pa

    chunked = array if isinstance(array, pa.ChunkedArray) else pa.chunked_array([array])
    kind = chunked.type
    if pa.types.is_dictionary(kind):  # its entries need be neither used nor once
        chunked = chunked.cast(kind.value_type)
    coded = chunked.dictionary_encode().unify_dictionaries()
    codes = [chunk.indices.to_numpy() for chunk in coded.chunks if len(chunk)]
    values = coded.chunk(coded.num_chunks - 1).dictionary
    return np.concatenate(codes), values.cast(kind)


def labels_of(values: Any) -> Any:
    """Distinct keys as names: an Index, or an array of Python's own types."""
    if isinstance(values, np.ndarray) or hasattr(values, "get_indexer"):  # pandas
        return values
    names = values.to_pylist() if hasattr(values, "to_pylist") else values.to_list()
    if names and type(names[0]) in (int, float):
        return np.array(names)
    found = np.empty(len(names), object)
    found[:] = names
    return found


def taken(values: Any, codes: AnyArray) -> Any:
    """Names at places, in their own type: pandas, polars, Arrow or an array."""
    if hasattr(values, "gather"):  # polars
        return values.gather(codes)
    if hasattr(values, "to_pylist"):  # Arrow
        import pyarrow as pa

        return values.take(pa.array(codes))
    return values.take(codes)
