"""Long tables, one row per cell, as sparse `Rows`: keys are coded, never pivoted."""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np

from a1gm._base.optional import require
from a1gm._base.types import AnyArray, Bools, Floats, Ints, Negatives, SmallInts
from a1gm._base.warn import warn_user
from a1gm._base.words import counted, listed
from a1gm._rows.columns import EVERY_COLUMN
from a1gm._rows.frames import open_frame, read_frame
from a1gm._rows.labels import check_there, label_at, names_in
from a1gm._rows.lazy import in_memory
from a1gm._rows.read import AnyRows, is_triangle
from a1gm._rows.rows import Rows, check_values, table_of
from a1gm._rows.sparse import SparseRows
from a1gm._rows.weights import Weighting, check_weights
from a1gm.exceptions import (
    A1gmError,
    DataError,
    DataHintWarning,
    LabelError,
    NotNumericError,
    Option,
    ParameterError,
    Text,
)

Duplicates: TypeAlias = Literal["raise", "sum"]
NAMES = ("row", "column", "value")  # of a Series whose index has none
SPARSE = 32  # cells per row of the frame from which on a group is read as sparse
FEW_ABSENT = 2  # cells for each row of the frame up to which a table is an array
SMALL_TABLE = 1 << 16
ROW_NUMBER = "row {}".format  # what messages call a row of a frame

#: Text that sorts as the time it means: years, quarters, months, days, clock times.
_ISO = re.compile(
    r"\d{4}(-?Q[1-4]|-\d\d(-\d\d([ T]\d\d:\d\d(:\d\d(\.\d+)?)?Z?)?)?)?", re.ASCII
)
#: Text that sorts as the number it is, and not as text.
_DIGITS = re.compile(r"-?\d{1,18}", re.ASCII)


# --------------------------------------------------------------------------------- keys
@dataclass(frozen=True, slots=True)
class Key:
    """A key column, coded by the library of its frame.

    ``codes`` (int32) are the position of each row's key among the distinct ones,
    ``values`` these in their own type, a pandas Index, polars Series or pyarrow Array:
    numbers, dates and periods ascend, also text such as ``12`` or ``2024-01``; others
    are in order of first appearance. A range where keys are mere positions.
    """

    codes: SmallInts | Ints
    values: Any

    @property
    def labels(self) -> Any:
        """The distinct keys as labels: an Index, or an array; None for positions."""
        return None if isinstance(self.values, range) else labels_of(self.values)


def code_key(
    frame: Any, column: Any, place_of: Callable[[int], str] = ROW_NUMBER
) -> Key:
    """Code a column of a frame that narwhals has opened; ``place_of`` names a row.

    Several columns, in a tuple, are one key, whose values are tuples. Raises LabelError
    for a key that is missing, a list or the like.
    """
    if isinstance(column, tuple) and column not in frame.columns:
        return _joined([code_key(frame, one, place_of) for one in column])
    series = frame.get_column(column)
    is_pandas = series.implementation.is_pandas()
    if not is_pandas:
        is_missing = series.is_null().to_numpy()
        if series.dtype.is_float():
            is_missing |= np.isnan(series.to_numpy())
        _check_keys(column, is_missing, place_of)
    try:
        codes, values = (_coded_by_pandas if is_pandas else _coded_by_arrow)(series)
        _check_keys(column, codes < 0, place_of)
        return _in_order(codes.astype(np.int32, copy=False), values, series.dtype)
    # Not hashable, or not in Arrow; dates and times, which have no common order.
    except (TypeError, NotImplementedError) as error:
        raise LabelError(
            f"The values of {column!r}, such as {series[:1].to_list()[0]!r}, cannot be "
            "keys, or not together. Make text or numbers of them, or take another "
            "column."
        ) from error


def parts_of_key(key: Any) -> tuple[Any, ...]:
    """The columns of a key: several for a tuple."""
    return key if isinstance(key, tuple) else (key,)


def _joined(keys: Sequence[Key]) -> Key:
    """One key of several columns, in the order of the first, then of the others."""
    codes = np.stack([key.codes for key in keys])
    distinct, inverse = np.unique(codes, axis=1, return_inverse=True)
    values = np.empty(distinct.shape[1], object)
    parts = [key.labels[own] for key, own in zip(keys, distinct, strict=True)]
    values[:] = list(zip(*parts, strict=True))
    return Key(inverse.ravel().astype(np.int32), values)


def _in_order(codes: AnyArray, values: Any, dtype: Any) -> Key:
    """Sort numbers, dates and periods, also those written as text."""
    has_order = dtype.is_numeric() or dtype.is_temporal()
    if not has_order and hasattr(values, "inferred_type"):  # pandas: objects, periods
        has_order = values.inferred_type in ("date", "period", "integer")
    are_digits = not has_order and _are_text(values, _DIGITS)
    if not has_order and not are_digits and not _are_text(values, _ISO):
        return Key(codes, values)
    labels = labels_of(values)
    numbers = [int(label) for label in labels] if are_digits else labels
    order = np.argsort(np.asarray(numbers), kind="stable")
    if (order[1:] > order[:-1]).all():
        return Key(codes, values)
    position = np.empty(len(order), np.int32)
    position[order] = np.arange(len(order), dtype=np.int32)
    return Key(position[codes], taken(values, order))


def _are_text(values: Any, form: re.Pattern[str]) -> bool:
    """Whether all keys are text of a form; mostly the first is not."""
    return all(
        isinstance(label, str) and form.fullmatch(label)
        for part in (values[:1], values)
        for label in labels_of(part)
    )


def _check_keys(column: Any, is_missing: Bools, place_of: Callable[[int], str]) -> None:
    """Raise for rows whose key is missing."""
    if is_missing.any():
        raise LabelError(
            f"The key {column!r} is missing in {place_of(int(is_missing.argmax()))} "
            f"({int(is_missing.sum()):,} in all). Every row of a long table needs all "
            "keys: drop these rows, or name the key.",
            row=int(is_missing.argmax()),
            count=int(is_missing.sum()),
        )


def _coded_by_pandas(series: Any) -> tuple[AnyArray, Any]:
    import pandas as pd

    native = series.to_native()
    if isinstance(native.dtype, np.dtype) and not native.dtype.isnative:
        native = native.astype(native.dtype.newbyteorder("="))
    codes, values = pd.factorize(native)
    return codes, pd.Index(values)


def _coded_by_arrow(series: Any) -> tuple[AnyArray, Any]:
    """Code a column through Arrow; distinct keys of polars in its type again."""
    is_polars = series.implementation.is_polars()
    if is_polars:
        require("pyarrow", "cli", "a long table of polars")
        import polars as pl

        native = series.to_native()
        is_odd = native.dtype in (pl.Categorical, pl.Enum) or "Int128" in str(
            native.dtype
        )
        array = (native.cast(pl.String) if is_odd else native).to_arrow()
    else:
        array = series.to_arrow()
    import pyarrow as pa
    import pyarrow.compute as pc

    chunked = array if isinstance(array, pa.ChunkedArray) else pa.chunked_array([array])
    kind = chunked.type
    if pa.types.is_dictionary(kind):  # its entries need be neither used nor once
        chunked = chunked.cast(kind.value_type)
    if kind in (pa.float32(), pa.float64()):  # -0.0 and 0.0 are one key
        chunked = pc.add(chunked, pa.scalar(0.0, kind))
    coded = chunked.dictionary_encode().unify_dictionaries()
    codes = [chunk.indices.to_numpy() for chunk in coded.chunks if len(chunk)]
    values = coded.chunk(coded.num_chunks - 1).dictionary.cast(kind)
    if is_polars:
        values = pl.Series(native.name, values).cast(native.dtype)
    return np.concatenate(codes), values


def labels_of(values: Any) -> Any:
    """Distinct keys as labels: an Index, or an array of Python objects."""
    if isinstance(values, np.ndarray) or hasattr(values, "get_indexer"):  # pandas
        return values
    names = values.to_pylist() if hasattr(values, "to_pylist") else values.to_list()
    if names and type(names[0]) in (int, float):
        return np.array(names)
    found = np.empty(len(names), object)
    found[:] = names
    return found


def taken(values: Any, codes: AnyArray) -> Any:
    """Keys by their codes, in their type: pandas, polars, Arrow or an array."""
    is_polars = hasattr(values, "gather")
    return values.gather(codes) if is_polars else values.take(codes)


# ------------------------------------------------------------------------------- tables
class PlacedFrame(NamedTuple):
    """A long frame whose rows are named otherwise, such as by lines of a file."""

    frame: Any
    place_of: Callable[[int], str]


@dataclass(frozen=True)
class LongTable:
    """A long frame: coded keys, values, and weights if there are some.

    ``names`` are those of the keys and of the value, ``positions`` rows of the frame
    where they are not all, ``place_of`` names one of these. Cells that are listed
    otherwise have no ``frame``, and no ``place_of``.
    """

    frame: Any
    names: tuple[Any, ...]
    keys: tuple[Key, ...]
    values: Floats
    weights: Floats | None = None
    exposed: bool = False
    place_of: Callable[[int], str] | None = ROW_NUMBER
    positions: Ints | None = None
    name: str = "frame"

    def where(self, row: int, col: int = 0, row_offset: int = 0) -> str:
        """Name the value in a row by its keys and by the row."""
        return f"{self.names[-1]}[{self.pair(row)}]{self.row_name(row, ' in ')}"

    @property
    def cells(self) -> Floats:
        """The values."""
        return self.values

    def position(self, at: int) -> tuple[int, int]:
        """Row and column of a value in the frame."""
        return at, 0

    def pair(self, at: int) -> str:
        """Name the keys in a row."""
        return ", ".join(label_at(k.labels, int(k.codes[at])) for k in self.keys)

    def row_name(self, at: int, before: str = "") -> str:
        """Name a row of the frame, after some text; empty where rows have no names."""
        if self.place_of is None:
            return ""
        at = at if self.positions is None else self.positions[at]
        return before + self.place_of(at)

    def check(self, negatives: Negatives | None, weight: Any = None) -> None:
        """Raise for values and weights that cannot be fitted."""
        x, V = self.values, self.used_weights
        if V is not None:
            name = self.weighting
            names = (*self.names[:-1], name if weight is None else weight)
            check_weights(replace(self, name=name, names=names, values=V))
            x = np.where(V > 0.0, x, np.nan)
        check_values(self, x, negatives)

    def rows(self, duplicates: Duplicates) -> AnyRows:
        """The cells as a table; a sparse one if most of its cells are missing."""
        row, column = self.keys
        n_rows, n_cols = self.shape
        most = FEW_ABSENT * len(self.values)
        if self.weights is None and 0 < n_rows * n_cols <= most:
            place = row.codes.astype(np.int64) * n_cols + column.codes
            if np.bincount(place).max() == 1:
                cells = np.full((n_rows, n_cols), np.nan)
                cells.ravel()[place] = self.values
                dense = table_of(cells)
                dense.row_labels = row.labels
                dense.col_labels = column.labels
                dense.backend = self.backend
                return dense
        table = self._sorted(self.values)
        if table.nnz < len(self.values):
            if duplicates == "raise":
                self.refuse_duplicates()
            known = ~np.isnan(self.values)  # a pair without a value stays missing
            n_pairs = table.nnz
            with np.errstate(over="ignore"):
                table = self._sorted(self.values[known], known)
            n_missing = self._sorted(self.values[~known], ~known).nnz
            self.warn_partial(table.nnz + n_missing - n_pairs)
        rows = SparseRows(
            table.indptr.astype(np.int64),
            table.indices.astype(np.int32, copy=False),
            table.data,
            len(row.values),
            len(column.values),
            absent="missing",
            row_labels=row.labels,
            col_labels=column.labels,
            backend=self.backend,
        )
        if self.weights is None:
            return rows
        weights = rows.with_values(self._sorted(self.used_weights).data)
        return replace(rows, weights=weights, exposed=self.exposed)

    @property
    def shape(self) -> tuple[int, ...]:
        """How many distinct keys there are of each."""
        return tuple(len(key.values) for key in self.keys)

    @property
    def backend(self) -> str:
        """The library of the frame."""
        return str(self.frame.implementation.value)

    @property
    def weighting(self) -> str:
        """What messages call the weights."""
        return "exposure" if self.exposed else "weights"

    @property
    def used_weights(self) -> Any:
        """Weights, 0 in place of bad ones of missing values; exposures as they are."""
        V = self.weights
        if V is None or self.exposed:
            return V
        return np.where((V >= 0.0) & (np.inf > V) | ~np.isnan(self.values), V, 0.0)

    def warn_partial(self, n: int) -> None:
        """Warn of sums of rows of which some have no value; there are ``n``."""
        if n:
            keys = listed([repr(name) for name in self.names[:-1]])
            warn_user(
                DataHintWarning(
                    f"{counted(n, 'sum')} of rows with the same {keys} "
                    f"{'includes' if n == 1 else 'include'} rows without a value, and "
                    "may be too small.",
                    advice="Leave these rows out if nothing was counted there, or make "
                    "the sums missing before the fit.",
                )
            )

    def _sorted(self, values: Floats, chosen: Any = slice(None)) -> Any:
        """Cells row by row, columns ascending; repeated pairs are summed."""
        from scipy.sparse import coo_array

        codes = tuple(key.codes[chosen] for key in self.keys)
        return coo_array((values, codes), shape=self.shape).tocsr()

    def _doubt(self) -> str:
        """Ask whether the columns are the right ones, as many rows repeat others."""
        import narwhals as nw

        value, labels = self.names[-1], (nw.String, nw.Categorical, nw.Enum)
        used = {column for name in self.names for column in parts_of_key(name)}
        columns = () if self.frame is None else self.frame.columns
        for column in [self.frame.get_column(c) for c in columns if c not in used]:
            is_key = column.dtype.is_integer() or column.dtype in labels
            if is_key and 1 < column.n_unique() <= len(column) // 2:
                text = " Is a key missing, or is {!r} not the column of the values"
                break
        else:
            text = " Is {!r} the column of the values"
        return f"{text.format(value)}, which is named last?"

    def refuse_duplicates(self) -> None:
        """Raise for keys that are there twice."""
        codes = np.stack([key.codes for key in self.keys])
        _, first, inverse = np.unique(
            codes, axis=1, return_index=True, return_inverse=True
        )
        again = np.flatnonzero(first[inverse.ravel()] != np.arange(codes.shape[1]))
        at = int(again[0])
        inverse = inverse.ravel()
        two = self.row_name(int(first[inverse[at]]), ", in ")
        two += self.row_name(at, " and ")
        ask = self._doubt() if 10 * len(again) > codes.shape[1] else ""
        advice: Text = (
            "pass ",
            Option("duplicates", "sum"),
            f" to add them up, or drop the rows that repeat others.{ask}",
        )
        if self.frame is None:
            advice = "add such values up, or drop the ones that repeat others."
        what = "pair" if len(self.keys) == 2 else "combination"
        raise LabelError(
            f"The {what} ({self.pair(at)}) occurs twice{two} "
            f"({counted(len(again), 'such row')} in all). A cell has one value: ",
            advice,
            row=at,
            count=len(again),
        )


# ------------------------------------------------------------------------------ reading
def read_long(
    given: Any,
    keys: Sequence[Any] | None,
    value: Any,
    weighting: Weighting,
    negatives: Negatives = "raise",
) -> LongTable:
    """Read a long frame, and raise for keys and values that cannot be fitted."""
    table, weight = _open_long(given, keys, value, weighting), weighting[1]
    # Weights and further keys refuse negatives="allow".
    is_advised = (weight is None or negatives == "allow") and len(table.keys) == 2
    table.check(negatives if is_advised else None, weight)
    return table


def _open_long(
    given: Any,
    keys: Sequence[Any] | None,
    value: Any,
    weighting: Weighting,
    by: Sequence[Any] = (),
) -> LongTable:
    """Open a long frame, or a pandas Series with two levels, and code its keys.

    ``by`` are further columns, which may be levels of the index, as the keys may.
    """
    place_of: Callable[[int], str] = ROW_NUMBER
    keys = names_in(keys)
    if isinstance(given, PlacedFrame):
        given, place_of = given
    if type(given).__name__ == "Series" and hasattr(given, "index"):
        given, defaults = _frame_of_series(given)
        keys, value = keys or defaults[:2], defaults[2] if value is None else value
    if not keys or value is None:
        raise ParameterError(
            "Name the columns with the keys and the one with the value: "
            'keys=["shop", "month"], value="sales".'
        )
    if len(keys) < 2 or () in keys:
        raise ParameterError(
            "keys must be two names, the column with the rows' keys and the one with "
            f"the columns', or more, got {keys!r}."
        )
    weight = weighting[1]
    columns = [name for key in keys for name in parts_of_key(key)]
    names = [*by, *columns, value, *([] if weight is None else [weight])]
    for name in names:
        if not isinstance(name, Hashable):
            raise ParameterError(f"{name!r} is not the name of one column.")
    frame = open_pairs(in_memory(given, names), (*columns, *by))
    check_there("The frame", names, frame.columns)
    if len(set(names)) < len(names):
        raise ParameterError(f"{listed(names)} must be different columns.")
    if len(frame) == 0:
        raise DataError("The frame has no rows: there is nothing to fit.")
    coded = [code_key(frame, key, place_of) for key in keys]
    return LongTable(
        frame,
        (*keys, value),
        tuple(coded),
        _numbers_of(frame, value),
        None if weight is None else _numbers_of(frame, weight),
        weight is not None and weighting[0] == "exposure",
        place_of,
    )


def open_pairs(given: Any, keys: Sequence[Any]) -> Any:
    """Open a frame with narwhals; keys may be levels of the index of pandas."""
    index = getattr(given, "index", None)
    inside = [name for name in getattr(index, "names", ()) if name in keys]
    frame = open_frame(given.reset_index(inside) if inside else given, "frame")
    if frame is None:
        other = " Fit it with a1gm.fit_many." if is_triangle(given) else ""
        raise NotNumericError(
            "A long table is a frame of pandas, polars or pyarrow, or a pandas Series "
            f"with two levels; this is a {type(given).__name__}.{other}"
        )
    return frame


def _frame_of_series(series: Any) -> tuple[Any, tuple[Any, Any, Any]]:
    if series.index.nlevels != 2:
        raise DataError(
            "A Series is a long table when its index has two levels, one for the rows "
            f"and one for the columns; this one has {series.index.nlevels}. Make a "
            "frame of it with series.reset_index(), and name its columns."
        )
    given = (*series.index.names, series.name)
    pairs = zip(given, NAMES, strict=True)
    row, column, value = (default if n is None else n for n, default in pairs)
    frame = series.rename(value).rename_axis([row, column]).reset_index()
    return frame, (row, column, value)


def _numbers_of(frame: Any, column: Any) -> Floats:
    """A column as float64, in place if it is one; NaN where it is missing."""
    import narwhals as nw

    series = frame.get_column(column)
    if series.dtype == nw.Float64:
        return np.asarray(series.to_numpy())
    rows = read_frame(series.to_frame().to_native(), "frame", EVERY_COLUMN)
    return rows.rows(slice(0, rows.n_rows))[:, 0]


# ------------------------------------------------------------------------------- groups
@dataclass(frozen=True)
class Side:
    """The rows, or the columns, of many tables, one table after the other.

    ``values`` are distinct names in their own type, ``codes`` the name of each row,
    ``ends`` where the rows of each table begin, and the end. Without names a row is
    called by its position.
    """

    name: Any
    ends: Ints
    codes: Ints
    values: Any = None

    def of(self, k: int) -> slice:
        """Where the rows of a table are."""
        return slice(int(self.ends[k]), int(self.ends[k + 1]))

    def names(self, k: int) -> Any:
        """Names of the rows of a table, in their type."""
        return taken(self.values, self.codes[self.of(k)])

    def labels(self, k: int) -> Any:
        """Names of the rows of a table; None if there are none."""
        return None if self.values is None else labels_of(self.names(k))

    @classmethod
    def of_labels(
        cls, name: Any, labels: Sequence[Any], lengths: Sequence[int]
    ) -> Side:
        """Rows with names, or with positions where a table has none."""
        sizes = np.array(lengths, np.int64)
        ends = np.concatenate(([0], np.cumsum(sizes)))
        positions = np.arange(ends[-1]) - np.repeat(ends[:-1], sizes)
        if all(names is None for names in labels):
            return cls(name, ends, positions)
        values = positions.astype(object)
        for k, names in enumerate(labels):
            if names is not None:
                values[ends[k] : ends[k + 1]] = list(names)
        return cls(name, ends, np.arange(len(values)), values)


#: A part of the keys of tables: its name, distinct values, and the code of each table.
KeyPart: TypeAlias = tuple[Any, Any, Ints]


@dataclass(frozen=True)
class TableKeys:
    """The keys of many tables, and the names of their rows and columns.

    The tables of a long frame have the ``value`` that it calls its numbers.
    """

    keys: Sequence[Any]
    parts: Sequence[KeyPart]
    rows: Side
    columns: Side
    backend: str | None = None
    value: Any = None


def read_groups(
    given: Any,
    by: Any,
    keys: Sequence[Any],
    value: Any,
    weighting: Weighting,
    duplicates: Duplicates,
) -> tuple[TableKeys, list[AnyRows | A1gmError]]:
    """Read the groups of a long frame, in the order of their keys.

    A group with repeated pairs has an error in place of its table.
    """
    names = names_in(by)
    if not names:
        raise ParameterError("by names no column. a1gm.fit_long fits a single table.")
    table = _open_long(given, keys, value, weighting, by=names)
    if len(table.keys) > 2:
        raise ParameterError(
            f"Groups are tables of two keys, got {len(table.keys)} keys."
        )
    place_of = table.place_of or ROW_NUMBER
    coded = [code_key(table.frame, name, place_of) for name in names]
    group: Ints = coded[0].codes.astype(np.int64)
    for key in coded[1:]:
        end = (int(group.max()) + 1) * len(key.values)
        group = _distinct(group * len(key.values) + key.codes, end)[1]
    at = np.empty(int(group.max()) + 1, np.int64)
    at[group] = np.arange(len(group))  # a row of each group
    first = [key.codes[at].astype(np.int64) for key in coded]
    parts = [(n, k.values, c) for n, k, c in zip(names, coded, first, strict=True)]
    labels = [list(labels_of(taken(values, codes))) for _, values, codes in parts]
    n_groups = len(labels[0])
    row, column = table.keys
    rows, of_row = _in_groups(table.names[0], group, row, n_groups)
    cols, of_col = _in_groups(table.names[1], group, column, n_groups)
    joined = labels[0] if len(labels) == 1 else list(zip(*labels, strict=True))
    about = TableKeys(joined, parts, rows, cols, table.backend, table.names[2])
    return about, _tables(table, duplicates, group, (of_row, of_col), (rows, cols))


def _in_groups(name: Any, group: Ints, key: Key, n_groups: int) -> tuple[Side, Ints]:
    """Distinct keys of every group, and the position of each row's key among them."""
    n = len(key.values)
    distinct, position = _distinct(group * n + key.codes, n_groups * n)
    owner, codes = np.divmod(distinct, n)
    ends = np.concatenate(([0], np.cumsum(np.bincount(owner, minlength=n_groups))))
    return Side(name, ends, codes, key.values), position - ends[group]


def _distinct(numbers: Ints, end: int) -> tuple[Ints, Ints]:
    """Distinct numbers below an end, and the position of each number among them."""
    if end > 4 * len(numbers):
        return np.unique(numbers, return_inverse=True)
    is_there = np.zeros(end, bool)  # faster than sorting
    is_there[numbers] = True
    return np.flatnonzero(is_there), (np.cumsum(is_there) - 1)[numbers]


def _tables(
    table: LongTable,
    duplicates: Duplicates,
    group: Ints,
    positions: tuple[Ints, Ints],
    sides: tuple[Side, Side],
) -> list[AnyRows | A1gmError]:
    """The table of every group: small ones dense, side by side in one array."""
    n, m = (np.diff(side.ends) for side in sides)
    counts = np.bincount(group, minlength=len(n))
    is_dense = n * m <= np.maximum(SPARSE * counts, SMALL_TABLE)
    start = np.concatenate(([0], np.cumsum(np.where(is_dense, n * m, 0))))
    in_dense = is_dense[group]
    owner, x = group[in_dense], table.values[in_dense]
    pairs = start[owner] + positions[0][in_dense] * m[owner] + positions[1][in_dense]
    if duplicates == "raise":
        seen = np.bincount(pairs, minlength=int(start[-1]))
        is_dense[owner[seen[pairs] > 1]] = False
    known = ~np.isnan(x)
    sums = np.bincount(pairs[known], x[known], minlength=int(start[-1]))
    counts = np.bincount(pairs[known], minlength=int(start[-1]))
    cells = np.where(counts > 0, sums, np.nan)
    V = None
    if table.weights is not None:  # of pairs that are there once
        V = np.full(len(cells), np.nan if table.exposed else 0.0)
        V[pairs] = table.used_weights[in_dense]

    def dense_table(at: int, rows: int, cols: int) -> Rows:
        own = slice(at, at + rows * cols)
        found = table_of(cells[own].reshape(rows, cols))
        if V is None:
            return found
        v = replace(table_of(V[own].reshape(rows, cols)), name=table.weighting)
        return replace(found, weights=v, exposed=table.exposed)

    return [
        dense_table(a, rows, cols)
        if dense
        else _sparse(table, duplicates, np.flatnonzero(group == k), positions, sides, k)
        for k, (a, rows, cols, dense) in enumerate(
            zip(start[:-1].tolist(), n.tolist(), m.tolist(), is_dense, strict=True)
        )
    ]


def _sparse(
    table: LongTable,
    duplicates: Duplicates,
    chosen: Ints,
    positions: tuple[Ints, Ints],
    sides: tuple[Side, Side],
    k: int,
) -> AnyRows | A1gmError:
    """A group by its cells alone; the error if it has a pair twice."""
    keys = tuple(
        Key(position[chosen].astype(np.int32), side.names(k))
        for position, side in zip(positions, sides, strict=True)
    )
    V = None if table.weights is None else table.weights[chosen]
    x = table.values[chosen]
    group = replace(table, keys=keys, values=x, weights=V, positions=chosen)
    try:
        if V is not None:
            group.check(None)
        return group.rows(duplicates)
    except A1gmError as error:
        return error
