"""A long frame that holds many tables: every group as a source of its own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from a1gm._base.types import Floats, Ints
from a1gm._base.words import listed
from a1gm._rows.keys import Key, code_key, labels_of, taken
from a1gm._rows.labels import check_there, names_in
from a1gm._rows.long import (
    Duplicates,
    LongCells,
    LongColumns,
    numbers_of,
    open_long,
)
from a1gm._rows.read import AnyRows
from a1gm._rows.rows import Rows
from a1gm.exceptions import A1gmError, ParameterError

SPARSE = 32  # cells per row of the frame from which on a group is read as sparse
SMALL_TABLE = 1 << 16
COUNTED = 4  # numbers per row of the frame up to which they are counted one by one


@dataclass(frozen=True)
class Groups:
    """The tables of a long frame.

    ``rows`` and ``cols`` have, for all groups one after the other, where each begins,
    the codes of its distinct keys, and what they mean.
    """

    keys: Sequence[Any]
    parts: list[tuple[Any, Any, Ints]]  # of the keys: name, distinct values, codes
    columns: LongColumns
    backend: str
    sources: list[AnyRows | A1gmError]
    rows: tuple[Ints, Ints, Any]
    cols: tuple[Ints, Ints, Any]

    def named(self, k: int) -> AnyRows:
        """A group with the names of its rows and columns."""
        source = self.sources[k]
        assert not isinstance(source, A1gmError)
        row, col = (
            labels_of(taken(values, codes[ends[k] : ends[k + 1]]))
            for ends, codes, values in (self.rows, self.cols)
        )
        name = str(self.columns.value)
        return replace(source, row_labels=row, col_labels=col, name=name)


def read_groups(
    given: Any, by: Any, keys: Sequence[Any], value: Any, duplicates: Duplicates
) -> Groups:
    """Read the groups of a long frame, in the order of their keys."""
    names = names_in(by)
    if not names:
        raise ParameterError("by names no column. a1gm.fit_long fits a single table.")
    frame, columns = open_long(given, keys, value, also=names)
    check_there("The frame", names, frame.columns)
    every = (*names, *columns.keys, value)
    if len(set(every)) < len(every):
        raise ParameterError(f"Each of {listed(every)} must be a column of its own.")
    group, parts = _code_groups(frame, names, columns)
    found = _keys_of(parts)
    row, column = (code_key(frame, key, columns.place_of) for key in columns.keys)
    cells = LongCells(frame, columns, row, column, numbers_of(frame, value))
    rows, of_row = _places_in_groups(frame, group, row, len(found))
    cols, of_col = _places_in_groups(frame, group, column, len(found))
    maker = _Maker(cells, group, of_row, of_col, rows, cols, duplicates)
    backend = str(frame.implementation.value)
    sources = maker.sources()
    return Groups(found, parts, columns, backend, sources, rows, cols)


def _code_groups(
    frame: Any, names: tuple[Any, ...], columns: LongColumns
) -> tuple[Ints, list[tuple[Any, Any, Ints]]]:
    """Group of every row; name, distinct values and codes of each part of the keys."""
    keys = [code_key(frame, name, columns.place_of) for name in names]
    codes: Ints = keys[0].codes.astype(np.int64)
    for key in keys[1:]:
        n = int(codes.max(initial=0)) + 1
        codes = _recoded(
            frame, codes * len(key.values) + key.codes, n * len(key.values)
        )[0]
    if len(keys) == 1:
        return codes, [(names[0], keys[0].values, np.arange(len(keys[0].values)))]
    _, first = np.unique(codes, return_index=True)
    parts = zip(names, keys, strict=True)
    return codes, [
        (name, key.values, key.codes[first].astype(np.int64)) for name, key in parts
    ]


def _keys_of(parts: list[tuple[Any, Any, Ints]]) -> list[Any]:
    """The key of every group: a value, or a tuple of them."""
    columns = [list(labels_of(taken(values, codes))) for _, values, codes in parts]
    return columns[0] if len(columns) == 1 else list(zip(*columns, strict=True))


def _recoded(frame: Any, numbers: Ints, end: int) -> tuple[Ints, Ints]:
    """Codes of numbers below an end in their order, and the distinct numbers."""
    import narwhals as nw

    if end <= COUNTED * len(numbers):  # faster than a table of hashes
        is_there = np.zeros(end, bool)
        is_there[numbers] = True
        return (np.cumsum(is_there) - 1)[numbers], np.flatnonzero(is_there)

    backend = frame.implementation
    series = nw.new_series("key", numbers, nw.Int64, backend=backend).to_frame()
    key = code_key(series, "key")
    return key.codes.astype(np.int64), np.asarray(labels_of(key.values), np.int64)


def _places_in_groups(
    frame: Any, group: Ints, key: Key, n_groups: int
) -> tuple[tuple[Ints, Ints, Any], Ints]:
    """The distinct keys of every group, and the place of each row's key among them."""
    n = len(key.values)
    owner: Ints = np.full(n, -1)
    owner[key.codes] = group
    if (owner >= 0).all() and (owner[key.codes] == group).all():
        # Every key is in one group, as peptides are in one protein: nothing to look up.
        code = np.argsort(owner, kind="stable")
        owner, rank = owner[code], np.empty(n, np.int64)
        rank[code] = np.arange(n)
        codes = rank[key.codes]
    else:
        codes, distinct = _recoded(frame, group * n + key.codes, n_groups * n)
        owner, code = np.divmod(distinct, n)  # the distinct numbers ascend
    ends = np.concatenate(([0], np.cumsum(np.bincount(owner, minlength=n_groups))))
    place = np.arange(len(owner)) - ends[owner]
    return (ends, code, key.values), place[codes]


@dataclass(frozen=True)
class _Maker:
    """Puts the cells of groups into tables: dense ones side by side in one array."""

    cells: LongCells
    group: Ints
    row: Ints
    col: Ints
    rows: tuple[Ints, Ints, Any]
    cols: tuple[Ints, Ints, Any]
    duplicates: Duplicates

    def sources(self) -> list[AnyRows | A1gmError]:
        """Every group, or the error where it has pairs twice."""
        n, m = np.diff(self.rows[0]), np.diff(self.cols[0])
        counts = np.bincount(self.group, minlength=len(n))
        is_dense = n * m <= np.maximum(SPARSE * counts, SMALL_TABLE)
        size = np.where(is_dense, n * m, 0)
        start = np.concatenate(([0], np.cumsum(size)))
        buffer, repeated = self._dense(is_dense, start, m)
        sources: list[AnyRows | A1gmError] = []
        bounds, shapes = start.tolist(), zip(n.tolist(), m.tolist(), strict=True)
        for k, (n_rows, n_cols) in enumerate(shapes):
            if is_dense[k] and k not in repeated:
                table = buffer[bounds[k] : bounds[k + 1]].reshape(n_rows, n_cols)
                sources.append(Rows([(table, None, None, 0, 0)], n_rows, n_cols))
            else:
                sources.append(self._sparse(k))
        return sources

    def _dense(self, is_dense: Any, start: Ints, m: Ints) -> tuple[Floats, set[int]]:
        """All small tables in one array, and the groups with pairs twice."""
        group, row, col, x = self.group, self.row, self.col, self.cells.values
        if not is_dense.all():
            chosen = is_dense[group]
            group, row, col, x = group[chosen], row[chosen], col[chosen], x[chosen]
        place = start[group] + row * m[group] + col
        buffer = np.full(int(start[-1]), np.nan)
        seen = np.zeros(len(buffer), bool)
        seen[place] = True
        if int(seen.sum()) == len(place):
            buffer[place] = x
            return buffer, set()
        if self.duplicates == "raise":
            n_pairs = np.bincount(group[np.unique(place, return_index=True)[1]])
            n_rows = np.bincount(group)
            buffer[place] = x
            return buffer, set(np.flatnonzero(n_rows > n_pairs).tolist())
        known = ~np.isnan(x)
        sums = np.bincount(place[known], x[known], minlength=len(buffer))
        has_value = np.zeros(len(buffer), bool)
        has_value[place[known]] = True
        buffer[has_value] = sums[has_value]
        return buffer, set()

    def _sparse(self, k: int) -> AnyRows | A1gmError:
        """A group by its cells alone; the error if it has pairs twice."""
        chosen = np.flatnonzero(self.group == k)
        row, column = (
            Key(
                place[chosen].astype(np.int32),
                taken(values, codes[ends[k] : ends[k + 1]]),
            )
            for place, (ends, codes, values) in (
                (self.row, self.rows),
                (self.col, self.cols),
            )
        )
        cells = replace(
            self.cells,
            row=row,
            column=column,
            values=self.cells.values[chosen],
            places=chosen,
        )
        try:
            return cells.source(self.duplicates)
        except A1gmError as error:
            return error
