"""One reader and one writer of frames in memory: pandas, polars, pyarrow.

The number columns that are the table are read alone, in place where the library can.
Filled columns take their places in the frame, and everything else in it is shared.
Which columns are the table is decided by `a1gm._rows.columns`, from names and types.
A library is a subclass of `Frame`: how its columns are read, and put back.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from functools import cached_property
from itertools import accumulate, groupby, pairwise
from typing import Any, ClassVar, NamedTuple
from weakref import ref

import numpy as np

from a1gm._base.float_range import as_float32
from a1gm._base.types import AnyArray, Bools, Floats
from a1gm._base.words import listed, shown
from a1gm._kernel import is_compiled, kernel
from a1gm._rows.columns import Choice, ColumnOptions, Kind, former_keys
from a1gm._rows.hints import is_total
from a1gm._rows.rows import (
    KERNEL_DTYPES,
    Part,
    Rows,
    as_kernel_array,
    kind_of_cells,
    objects_to_floats,
)
from a1gm.exceptions import LabelError, NotRepresentableError

PIECE_ROWS = 1 << 17
SMALL_FRAME = 1 << 12  # cells of pandas that may be copied without need
LONG = 1 << 14  # rows from which a look at each column of pandas takes less than a copy
MANY = 16  # columns above which a call for each takes longer than one for all
WIDE = 20  # columns per row from which Arrow and polars are faster as a matrix
WHOLE = 2**53  # float64 holds every whole number up to it
DIGITS = 15  # float64 holds every decimal with so many
MOST_PLANS = 64
NOT_IN_PLACE = ("Float16", "Int128", "UInt128")  # types without a kernel's reader


# -------------------------------------------------------------------------------- names
class ColumnNames(tuple[Any, ...]):
    """Names of the columns of a frame; a pandas Index names its ``levels``, too."""

    levels: tuple[Any, ...] = ()
    are_categories = False  # of pandas, in an order of their own

    @property
    def have_axis(self) -> bool:
        """Whether the columns are levels of a key that has a name."""
        return any(level is not None for level in self.levels)

    def like(self, chosen: Iterable[Any]) -> ColumnNames:
        """Other names with the same levels."""
        names = ColumnNames(chosen)
        names.levels = self.levels
        names.are_categories = self.are_categories
        return names

    def check(self, name: str) -> None:
        """Raise for names that repeat."""
        if len(set(self)) < len(self):
            repeated = [repr(column) for column, n in Counter(self).items() if n > 1]
            raise LabelError(
                f"{name} has repeated column names: {listed(repeated)}. Rename them."
            )

    def check_types(self, name: str) -> None:
        """Raise where names mix text with other types."""
        kinds = sorted({kind.__qualname__ for kind in set(map(type, self))})
        if len(kinds) > 1 and "str" in kinds:
            odd = [n for n in self if not isinstance(n, str)]
            raise LabelError(
                f"{name} has column names of mixed types {kinds}; not text: {odd[:10]}."
                " Feature names are only supported if all input features have string "
                "names: convert them all, for example with X.columns = "
                "X.columns.astype(str)."
            )


# The Index that was read last, and its names: an Index is immutable but for the names
# of its levels. A frame is read by its fit and again to be filled, and to list 4,000
# names takes as long as half of the fit. One tuple: threads replace it as a whole.
_last_index: tuple[Any, ColumnNames] = (lambda: None, ColumnNames())


def names_in_index(index: Any) -> ColumnNames:
    """Names of columns in an Index of pandas."""
    global _last_index  # noqa: PLW0603
    last, names = _last_index
    levels = tuple(index.names)
    if last() is not index or names.levels != levels:
        names = ColumnNames(index.tolist())
        names.levels = levels
        names.are_categories = type(index).__name__ == "CategoricalIndex"
        _last_index = ref(index), names
    return names


class RowLabels(Sequence[Any]):
    """Labels of the rows in columns of a frame, listed when one is asked for.

    It holds the columns and not their frame, whose columns may change their places.
    """

    def __init__(self, columns: list[Any], rows: slice) -> None:
        self._columns = columns
        self._rows = rows

    @cached_property
    def values(self) -> AnyArray:
        """All labels; tuples where several columns name the rows."""
        cells = [column[self._rows].to_list() for column in self._columns]
        labels = np.empty(len(cells[0]), object)
        labels[:] = cells[0] if len(cells) == 1 else list(zip(*cells, strict=True))
        return labels

    def __len__(self) -> int:
        return int(self._rows.stop - self._rows.start)

    def __getitem__(self, at: Any) -> Any:
        if isinstance(at, slice):
            start, stop, _ = at.indices(len(self))
            first = self._rows.start
            return RowLabels(self._columns, slice(first + start, first + stop))
        return self.values[at]

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> AnyArray:
        return np.asarray(self.values, dtype)

    def __reduce__(self) -> Any:
        return np.asarray, (self.values,)


# -------------------------------------------------------------------------------- kinds
class ColumnType(NamedTuple):
    """What is known of a column by its type."""

    kind: Kind
    is_float: bool = False
    is_float64: bool = False  # and it stays so when it is filled
    is_in_place: bool = False  # the kernel reads it where it lies


def type_of(dtype: Any, native: Any = None) -> ColumnType:
    """What a column is by its type in narwhals, and by that in its library."""
    import narwhals as nw

    text = str(native).lower()
    if dtype.is_numeric():
        has_buffer = dtype.is_integer() or dtype.is_float()
        return ColumnType(
            "number",
            is_float=dtype.is_float(),
            is_float64=dtype == nw.Float64 and not hasattr(native, "na_value"),
            is_in_place=has_buffer and str(dtype) not in NOT_IN_PLACE,
        )
    if dtype == nw.Boolean:
        return ColumnType("bool")
    if dtype.is_temporal():
        return ColumnType("date")
    if dtype in (nw.String, nw.Categorical, nw.Enum, nw.Binary):
        return ColumnType("text")
    is_sparse = getattr(native, "kind", "O") in "fiub"  # of pandas
    if native is not None and (is_sparse or text.startswith(("null", "decimal"))):
        return ColumnType("number")
    return ColumnType("other")


def kind_of_objects(column: Any, name: Any, table: str) -> Kind:
    """Kind of a column of Python objects: that of all its cells."""
    if column.implementation.is_pandas():
        import pandas as pd

        inferred = pd.api.types.infer_dtype(column.to_native())  # 20 times faster
        if inferred == "string":
            return "text"
        if inferred in ("integer", "floating", "decimal"):
            return "number"
    return kind_of_cells(column.to_list(), name, table)


class Plan:
    """What the columns of a frame are used for, by their names and types alone.

    ``choice`` is None where every column is the table, ``others`` are the columns that
    are not, ``runs`` the places of the table's columns that lie side by side and have
    one type.
    """

    def __init__(
        self,
        names: ColumnNames,
        keys: Sequence[Any],
        types: list[ColumnType],
        options: ColumnOptions,
        name: str,
        *,
        has_index: bool,
        has_named_index: bool,
    ) -> None:
        names.check(name)
        kinds = {column: type_.kind for column, type_ in zip(names, types, strict=True)}
        not_levels: Sequence[Any] = ()
        if names.have_axis and not (names.are_categories and has_named_index):
            not_levels = former_keys(kinds, keys, has_named_index=has_named_index)
        choice = options.choose(
            kinds,
            name,
            has_index=has_index,
            has_axis=names.have_axis,
            former_keys=not_levels,
        )
        self.choice: Choice | None = choice
        self.names = names if choice is None else names.like(choice.table)
        self.names.check_types(name)
        chosen = set(self.names)
        self.places = [at for at, column in enumerate(names) if column in chosen]
        self.others = {
            column: at for at, column in enumerate(names) if column not in chosen
        }
        self.ids = [] if choice is None else [names.index(c) for c in choice.ids]
        self.runs = runs_of(self.places, [keys[at] for at in self.places])
        self.not_in_place = [at for at in self.places if not types[at].is_in_place]
        self.are_float = np.array([types[at].is_float for at in self.places])
        self.are_float64 = np.array([types[at].is_float64 for at in self.places])
        # Texts of C end at a zero byte: polars aborts.
        self.has_zero_byte = any("\0" in str(column) for column in names)
        self.has_total = any(map(is_total, self.names))


def runs_of(places: Sequence[int], keys: Sequence[Any]) -> list[list[int]]:
    """Places that follow one another and have the same key.

    Examples
    --------
    >>> runs_of([1, 2, 3, 5], ["a", "a", "b", "b"])
    [[1, 2], [3], [5]]
    """
    numbered = zip(range(len(places)), places, keys, strict=True)
    runs = groupby(numbered, lambda entry: (entry[1] - entry[0], entry[2]))
    return [[place for _, place, _ in run] for _, run in runs]


# ------------------------------------------------------------------------------- frames
class Frame:
    """A frame that is read, and given back filled.

    ``keys`` has for each column what its type is known by, None where its cells decide
    (``are_by_cells``); ``types`` the types in the library. ``by_rows``: new columns are
    made faster from their rows.
    """

    backend: Any
    table: Any
    names: ColumnNames
    n_rows: int
    keys: tuple[Any, ...]
    are_by_cells = False
    index: Any = None
    has_index = False
    has_named_index = False
    by_rows = False
    plan: Plan
    #: By the keys of the library.
    column_types: ClassVar[dict[Any, ColumnType]]
    #: The last ones: choosing among 1,000 names takes longer than their fit.
    plans: ClassVar[dict[Any, Plan]] = {}

    @property
    def last_labels(self) -> tuple[str, ...]:
        """What the index calls the last row, by each of its keys."""
        if not self.has_index:
            return ()
        label = self.index[-1]
        return tuple(map(str, label if isinstance(label, tuple) else (label,)))

    @cached_property
    def types(self) -> list[Any]:
        """Types of the columns in the library."""
        raise NotImplementedError

    def column(self, place: int) -> Any:
        """One column in the type of the library."""
        raise NotImplementedError

    def read_into(self, rows: Rows) -> None:
        """Read the table's columns as parts of ``rows``, or as pieces."""
        raise NotImplementedError

    def put(self, is_new: Bools, cells: Floats, *, has_missing: bool) -> Any:
        """The frame with the table's columns from ``cells`` where they are new."""
        raise NotImplementedError

    def series(self, place: int) -> Any:
        """One column, opened by narwhals."""
        import narwhals as nw

        return nw.from_native(self.column(place), series_only=True)

    # --------------------------------------------------------------------- reading
    def choose(self, options: ColumnOptions, name: str) -> None:
        """Choose the columns that are the table."""
        by_cells = {}
        if self.are_by_cells:
            odd = [place for place, key in enumerate(self.keys) if key is None]
            by_cells = {place: self._type_of(place, options, name) for place in odd}
        names = self.names
        axis = names.levels, names.are_categories
        index = self.has_index, self.has_named_index
        frame = self.backend, names, axis, self.keys, index
        known = (*frame, options.key, *by_cells.values())
        plan = self.plans.get(known)
        if plan is None:
            types = [
                by_cells[place] if key is None else self._type_by(key, place, options)
                for place, key in enumerate(self.keys)
            ]
            plan = Plan(
                names,
                self.keys,
                types,
                options,
                name,
                has_index=self.has_index,
                has_named_index=self.has_named_index,
            )
            if len(self.plans) >= MOST_PLANS:
                self.plans.clear()
            self.plans[known] = plan
        self.plan = plan

    def _type_by(self, key: Any, place: int, options: ColumnOptions) -> ColumnType:
        if key not in self.column_types:
            self.column_types[key] = self._type_of(place, options, "X")
        return self.column_types[key]

    def _type_of(self, place: int, options: ColumnOptions, name: str) -> ColumnType:
        native = self.types[place]
        series = self.series(place)
        if str(native).lower() != "object":
            return type_of(series.dtype, native)
        column = self.names[place]
        is_unused = column in options.unused(self.names)
        return ColumnType(
            "other" if is_unused else kind_of_objects(series, column, name)
        )

    def read(self, name: str) -> Rows:
        """Read the columns that are the table."""
        plan = self.plan
        labels = self.index
        if plan.ids:
            columns = [self.series(place) for place in plan.ids]
            labels = RowLabels(columns, slice(0, self.n_rows))
        n_cols = len(plan.places)
        rows = Rows([], self.n_rows, n_cols, labels, plan.names, self.backend)
        rows.choice = plan.choice
        rows.frame = self
        self.read_into(rows)
        return rows

    def as_float64(self, place: int) -> Any:
        """A column of a type that the kernel does not read."""
        import narwhals as nw

        series = self.series(place)
        if str(self.types[place]).lower() == "object":
            objects = np.array([*series.to_list(), None], object)[:-1, None]
            cells = objects_to_floats(objects, "X", [self.names[place]])[:, 0]
            name = str(self.names[place])
            made = nw.new_series(name, cells, nw.Float64, backend=self.backend)
            return made.to_native()
        if series.dtype == nw.Decimal:  # Arrow computes 6.60 as 660 * 0.01, not 6.6
            series = series.cast(nw.String)
        return series.cast(nw.Float64).to_native()

    # --------------------------------------------------------------------- filling
    def room(self) -> Floats:
        """Room for the filled columns, laid out as the library wants it."""
        shape = self.n_rows, len(self.plan.places)
        return np.empty(shape, order="C" if self.by_rows else "F")

    def filled(self, cells: Floats, has_holes: Bools, *, has_missing: bool) -> Any:
        """The frame with its missing cells filled.

        ``cells`` are the table's, filled, ``has_holes`` the columns that had missing
        ones. ``has_missing``: some are missing still, as NaN.
        """
        plan = self.plan
        for k in np.flatnonzero(has_holes & ~plan.are_float):
            self._check_digits(plan.places[k], cells[:, k])
        is_new = plan.are_float64 | has_holes
        return self.put(is_new, cells, has_missing=has_missing)

    def _check_digits(self, place: int, values: Floats) -> None:
        """Raise for a known cell that float64 would round."""
        text = str(self.types[place]).lower()
        most = -1.0 if text == "object" else float(WHOLE)
        scale = re.search(r"decimal.*?(\d+)\)", text)
        if scale is not None:
            most = 10.0 ** (DIGITS - int(scale[1]))
        # 2**53 itself may be 2**53 + 1, rounded.
        if max(np.fmax.reduce(values), -np.fmin.reduce(values)) < most:
            return
        known = self.series(place).drop_nulls().to_list()
        check_exact(known, f"Column {shown(self.names[place])}")

    def as_float32(self, values: Floats, place: int) -> AnyArray:
        """New cells of a column of type float32."""
        name = shown(self.names[place])
        return as_float32(values, lambda row: f"row {row} of column {name}")


def check_exact(cells: Iterable[Any], what: str) -> None:
    """Raise for a number that float64 would round; ``what`` is to be filled."""
    for cell in cells:
        if isinstance(cell, Decimal):
            number = float(cell)
            is_exact = not cell.is_finite() or cell in (Decimal(repr(number)), number)
        else:
            is_exact = not isinstance(cell, int) or int(float(cell)) == cell
        if not is_exact:
            raise NotRepresentableError(
                f"{what} has missing cells, so filling makes it float64, which would "
                f"round its cell {cell}. Convert it to float64 first."
            )


# ------------------------------------------------------------------------------- pandas
class PandasFrame(Frame):
    """Columns of one block are a view; new columns stand beside slices of the frame."""

    column_types: ClassVar[dict[Any, ColumnType]] = {}

    def __init__(self, table: Any, backend: str = "pandas") -> None:
        self.backend = backend
        self.table = table
        self.names = names_in_index(table.columns)
        self.n_rows = len(table)
        self.index = table.index
        is_default = type(table.index).__name__ == "RangeIndex"
        self.has_named_index = any(name is not None for name in table.index.names)
        self.has_index = not is_default or self.has_named_index
        # All cells of a small frame where they are one array: a view, no new one.
        self.block: AnyArray | None = None
        if 0 < self.n_rows * len(self.names) < SMALL_FRAME:
            cells = table.values
            if cells.dtype in KERNEL_DTYPES and np.may_share_memory(
                cells, table.values
            ):
                self.block = cells
                self.keys = (cells.dtype,) * len(self.names)
                return
        keys: list[Any] = []
        for dtype, run in groupby(self.types):  # few: to look at each takes longer
            key = _key_of(dtype)
            self.are_by_cells |= key is None
            keys += [key] * len([*run])
        self.keys = tuple(keys)

    @cached_property
    def types(self) -> list[Any]:
        """Types of the columns."""
        types: list[Any] = self.table.dtypes.to_list()
        return types

    def column(self, place: int) -> Any:
        """One column, as a Series."""
        return self.table.iloc[:, place]

    def read_into(self, rows: Rows) -> None:
        """Read runs of columns of one type: in place if it is one of NumPy."""
        plan = self.plan
        runs = plan.runs
        if self.block is not None and not plan.others:
            cells = [self.block]
        elif len(runs) <= MANY:
            if self.n_rows >= LONG:
                runs = [some for run in runs for some in self._as_they_lie(run)]
            cells = [self._cells_of(run) for run in runs]
        else:
            table = self.table.copy(deep=False)
            for place in plan.not_in_place:
                table.isetitem(place, self._cells_of([place])[:, 0])
            with np.errstate(over="ignore"):
                some = table.iloc[:, plan.places]
                cells = [some.to_numpy(np.float64, na_value=np.nan)]
        rows.parts = [(as_kernel_array(some, "X"), None, None, 0) for some in cells]
        self.by_rows = len(cells) == 1 and bool(cells[0].flags.c_contiguous)

    def _as_they_lie(self, run: list[int]) -> list[list[int]]:
        """A run if its cells are one array, else its columns: those were set alone."""
        first = self.table.iloc[:1, run[0] : run[-1] + 1]
        if not isinstance(self.keys[run[0]], np.dtype):
            return [run]
        is_block = np.may_share_memory(first.values, first.values)
        return [run] if is_block else [[place] for place in run]

    def _cells_of(self, run: list[int]) -> AnyArray:
        piece = self.table
        if len(run) < len(self.names):
            piece = piece.iloc[:, run[0] : run[-1] + 1]
        dtype = self.keys[run[0]]
        cells: AnyArray
        if dtype is None:
            cells = objects_to_floats(piece.to_numpy(), "X", list(piece.columns))
        elif isinstance(dtype, np.dtype):
            cells = piece.to_numpy()
        else:
            cells = piece.to_numpy(np.float64, na_value=np.nan)
        return cells

    def put(self, is_new: Bools, cells: Floats, *, has_missing: bool) -> Any:
        """Slices of new columns and of the frame, side by side."""
        import pandas as pd

        table = self.table
        index = table.index
        is_odd = is_new & ~self.plan.are_float64
        odd = {
            k: self._in_family(cells[:, k], self.plan.places[k], has_missing)
            for k in np.flatnonzero(is_odd).tolist()
        }
        if type(table) is not pd.DataFrame:  # one that may have more than columns
            out = table.copy(deep=False)
            for k in np.flatnonzero(is_new).tolist():
                out.isetitem(self.plan.places[k], odd.get(k, cells[:, k]))
            return out
        new = pd.DataFrame(cells, index=index, copy=False)
        others = pd.DataFrame(odd, index=index, copy=False)
        # Where each column comes from: its frame, and its place there.
        source = np.zeros(len(self.names), np.intp)
        place = np.arange(len(self.names))
        places = np.array(self.plan.places)
        for number, chosen in ((1, is_new), (2, is_odd)):
            source[places[chosen]] = number
        place[places[is_new]] = np.flatnonzero(is_new)
        place[places[is_odd]] = np.arange(len(odd))
        frames = table, new, others
        follows = (source[1:] == source[:-1]) & (np.diff(place) == 1)
        ends = [*(np.flatnonzero(~follows) + 1).tolist(), len(place)]
        pieces = []
        for start, end in pairwise([0, *ends]):
            first = place[start]
            piece = frames[source[start]].iloc[:, first : first + end - start]
            pieces.append(piece)
        joined = len(pieces) > 1
        out = pd.concat(pieces, axis=1, ignore_index=True) if joined else pieces[0]
        out.columns = table.columns
        is_plain = not table.attrs and table.flags.allows_duplicate_labels
        return out if is_plain else out.__finalize__(table)

    def _in_family(self, values: Floats, place: int, has_missing: bool) -> Any:
        dtype = self.types[place]
        cells = self.as_float32(values, place) if is_single(dtype) else values
        return in_family(cells, dtype, has_missing)


def _key_of(dtype: Any) -> Any:
    """What a type of pandas is known by; None where the cells decide."""
    name = str(dtype) if dtype.kind == "O" else ""
    if name == "object":
        return None
    return type(dtype) if name == "category" else dtype


def is_single(dtype: Any) -> bool:
    """Whether a type of pandas is a float of 32 bits."""
    return str(dtype).lower().startswith(("float32", "float["))


def filled_dtype(dtype: Any) -> Any:
    """Type of a filled pandas column: floats keep theirs, others become float64."""
    kind = np.float32 if is_single(dtype) else np.float64
    return in_family(np.zeros(1, kind), dtype).dtype


def in_family(values: AnyArray, dtype: Any, has_missing: bool = True) -> Any:
    """Values in the family of an old type of pandas: NumPy, nullable or of Arrow."""
    import pandas as pd

    if isinstance(dtype, pd.ArrowDtype):
        import pyarrow as pa

        made = pa.array(values, from_pandas=True)
        return pd.array(made, dtype=pd.ArrowDtype(made.type))
    if isinstance(dtype, pd.SparseDtype):
        return pd.array(values, dtype=dtype)
    if isinstance(dtype, np.dtype):
        return values
    mask = np.isnan(values) if has_missing else np.zeros(len(values), bool)
    return pd.arrays.FloatingArray(values, mask)


# --------------------------------------------------------------------- Arrow and polars
class Stream:
    """Columns of an array that a library takes over by address."""

    def __init__(self, cells: Floats, names: list[str]) -> None:
        self._capsule = kernel.write_stream(cells, names)

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        return self._capsule


class ArrowFrame(Frame):
    """Columns are read where they lie, by Arrow's stream."""

    backend = "pyarrow"
    column_types: ClassVar[dict[Any, ColumnType]] = {}
    numbers: Any  # the table's columns, in a frame of the library

    def __init__(self, table: Any) -> None:
        import pyarrow as pa

        self.is_batch = isinstance(table, pa.RecordBatch)
        self.table = pa.Table.from_batches([table]) if self.is_batch else table
        self.names = ColumnNames(self.table.schema.names)
        self.n_rows = self.table.num_rows
        self.keys = tuple([dtype.id for dtype in self.types])

    @cached_property
    def types(self) -> list[Any]:
        """Types of the columns."""
        types: list[Any] = self.table.schema.types
        return types

    def column(self, place: int) -> Any:
        """One column."""
        return self.table.column(place)

    def read_into(self, rows: Rows) -> None:
        """Read the columns by address; as a matrix if they are many and short."""
        plan = self.plan
        numbers = self.table
        if plan.not_in_place:
            numbers = self._replaced(
                {place: self.as_float64(place) for place in plan.not_in_place}
            )
        self.numbers = self._without_others(numbers) if plan.others else numbers
        is_wide = rows.n_cols > WIDE * rows.n_rows
        self.by_rows = is_wide and self.backend == "polars"
        if is_wide or plan.has_zero_byte or not is_compiled:
            rows.parts = [(as_kernel_array(self._matrix(), rows.name), None, None, 0)]
            return
        steps = piece_steps(self._ends_of_chunks(), self.n_rows)
        if len(steps) > 2:
            rows.cut = self._cut
            rows.steps = steps
            return
        parts = kernel.read_stream(self.numbers.__arrow_c_stream__())
        rows.parts = self._cut(*steps) if parts is None else parts

    def _cut(self, start: int, stop: int) -> list[Part]:
        piece = self._joined(self.numbers[start:stop])
        parts: list[Part] = kernel.read_stream(piece.__arrow_c_stream__())
        return parts

    def _replaced(self, columns: dict[int, Any]) -> Any:
        import pyarrow as pa

        arrays = self.table.columns
        for place, column in columns.items():
            arrays[place] = column
        return pa.Table.from_arrays(arrays, names=list(self.names))

    def _without_others(self, table: Any) -> Any:
        if len(self.plan.others) > MANY:
            return table.select(self.plan.places)
        return table.drop_columns(list(self.plan.others))

    def _matrix(self) -> AnyArray:
        batches = self.numbers.to_batches()
        if len(batches) > 1:
            batches = self.numbers.combine_chunks().to_batches()
        tensor = batches[0].to_tensor(null_to_nan=True, row_major=False)
        return np.asarray(tensor.to_numpy())

    def _joined(self, table: Any) -> Any:
        return table.combine_chunks()

    def _ends_of_chunks(self) -> list[int]:
        return list(accumulate(map(len, self.numbers.column(0).chunks)))

    def put(self, is_new: Bools, cells: Floats, *, has_missing: bool) -> Any:
        """New arrays in the places of old ones, in a schema with the same metadata."""
        import pyarrow as pa

        schema = self.table.schema
        new = np.flatnonzero(is_new).tolist()
        if has_missing or self.plan.has_zero_byte or not is_compiled:
            made = {k: pa.array(cells[:, k], from_pandas=True) for k in new}
        else:
            table = pa.table(Stream(cells, list(self.plan.names)))
            table = table.replace_schema_metadata(schema.metadata)
            if not self.is_batch and table.schema.equals(schema, check_metadata=True):
                return table
            columns = table.columns
            made = {k: columns[k] for k in new}
        arrays = self.table.columns
        fields = list(schema)
        changed = []
        for k in new:
            place = self.plan.places[k]
            if self.types[place] == pa.float32():
                made[k] = pa.array(
                    self.as_float32(cells[:, k], place), from_pandas=True
                )
            arrays[place] = made[k]
            if not (self.plan.are_float64[k] or made[k].type == self.types[place]):
                fields[place] = fields[place].with_type(made[k].type)
                changed.append(self.names[place])
        if changed:
            metadata = with_types(schema.metadata, dict.fromkeys(changed, "float64"))
            schema = pa.schema(fields, metadata=metadata)
        out = pa.Table.from_arrays(arrays, schema=schema)
        return out.to_batches()[0] if self.is_batch else out


class PolarsFrame(ArrowFrame):
    """What polars calls otherwise."""

    backend = "polars"
    column_types: ClassVar[dict[Any, ColumnType]] = {}

    def __init__(self, table: Any) -> None:
        import polars as pl

        self.table = table
        self.names = ColumnNames(table.columns)
        self.n_rows = table.height
        self.keys = tuple(map(type, table.dtypes))
        if pl.Object in set(self.keys):
            self.are_by_cells = True
            self.keys = tuple([None if k is pl.Object else k for k in self.keys])

    @cached_property
    def types(self) -> list[Any]:
        """Types of the columns."""
        types: list[Any] = self.table.dtypes
        return types

    def column(self, place: int) -> Any:
        """One column."""
        return self.table.to_series(place)

    def _replaced(self, columns: dict[int, Any]) -> Any:
        table = self.table.clone()
        for place, column in columns.items():
            table.replace_column(place, column.alias(self.names[place]))
        return table

    def _without_others(self, table: Any) -> Any:
        if len(self.plan.others) > MANY:
            return table.select(list(self.plan.names))
        table = table.clone()  # to select takes milliseconds per 1,000 columns
        for column in self.plan.others:
            table.drop_in_place(column)
        return table

    def _matrix(self) -> AnyArray:
        return np.asarray(self.numbers.to_numpy())

    def _joined(self, table: Any) -> Any:
        return table.rechunk()

    def _ends_of_chunks(self) -> list[int]:
        return list(accumulate(self.numbers.to_series(0).chunk_lengths()))

    def put(self, is_new: Bools, cells: Floats, *, has_missing: bool) -> Any:
        """A frame of new columns that takes in all others."""
        import polars as pl

        names = list(self.plan.names)
        if self.plan.has_zero_byte or not is_compiled:
            made = pl.DataFrame(cells, orient="row")
            made.columns = names
        elif self.by_rows:
            numbered = [str(row) for row in range(self.n_rows)]
            made = pl.DataFrame(Stream(cells.T, numbered))
            made = made.transpose(column_names=names)
        else:
            made = pl.DataFrame(Stream(cells, names))
        if has_missing:
            made = made.fill_nan(None)
        chosen = dict(zip(self.plan.places, is_new.tolist(), strict=True))
        singles = [at for at in chosen if self.keys[at] is pl.Float32]
        for k, place in enumerate(self.plan.places) if singles else ():
            if chosen[place] and self.keys[place] is pl.Float32:
                single = self.as_float32(cells[:, k], place)
                column = pl.Series(names[k], single)
                column = column.fill_nan(None) if has_missing else column
                made.replace_column(k, column)
        others = set(range(len(self.names))).difference(chosen)
        kept = [at for at, is_filled in chosen.items() if not is_filled]
        for place in sorted((*others, *kept)):
            if place in others:
                made.insert_column(place, self.column(place))
            else:
                made.replace_column(place, self.column(place))
        return made if type(self.table) is pl.DataFrame else type(self.table)(made)


def piece_steps(ends: list[int], n_rows: int) -> tuple[int, ...]:
    """Rows where pieces begin and end.

    They end where chunks do, and hold at least ``PIECE_ROWS`` rows: tiny chunks are
    joined, which copies no more than a piece at a time.
    """
    steps = [0]
    for end in ends:
        if end - steps[-1] >= PIECE_ROWS and end < n_rows:
            steps.append(end)
    return (*steps, n_rows)


def with_types(metadata: Any, kinds: Mapping[str, str]) -> Any:
    """Metadata of an Arrow table after columns have changed their types.

    pandas notes its own types there and would cast the columns back to them.
    """
    if not metadata or b"pandas" not in metadata or not kinds:
        return metadata
    noted = json.loads(metadata[b"pandas"])
    for column in noted.get("columns", ()):
        if kind := kinds.get(column.get("field_name")):
            column["pandas_type"] = column["numpy_type"] = kind
    return {**metadata, b"pandas": json.dumps(noted).encode()}
