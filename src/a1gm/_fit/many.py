"""The fits of many tables, by key."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from html import escape
from itertools import islice
from typing import Any, overload

import numpy as np

from a1gm._base.types import AnyArray
from a1gm._base.words import counted
from a1gm._fit.fit import RankOneFit
from a1gm._fit.frames import FactorFrames, check_backend, filled_pairs, long_frame
from a1gm._fit.messages import html_grid
from a1gm._rows.labels import text_of_label
from a1gm._rows.long import Side
from a1gm.exceptions import A1gmError, LabelError, ParameterError

MOST_SHOWN = 12  # tables in a notebook


class ManyFits(Mapping[Any, RankOneFit]):
    """The fits of many tables; ``many[key]`` is a ``RankOneFit``.

    A mapping of the tables that could be fitted: ``len(many)``, ``key in many``,
    ``for key in many``, ``many.items()`` as of a dict; ``many.values()`` are the fits.
    A slice such as ``many[:2]`` gives the list of the fits at these places. Tables
    without keys, those of a stack or a list, have the keys 0, 1, 2, ..., and
    ``many[-1]`` is the last of them. Made by ``a1gm.fit_many`` and ``a1gm.fit_groups``.

    Attributes
    ----------
    failed : dict
        The keys of the tables that could not be fitted, each with its error.
    """

    def __init__(
        self,
        keys: Sequence[Any],
        fits: dict[int, RankOneFit],
        failed: dict[int, A1gmError],
        rows: Side,
        columns: Side,
        *,
        parts: Sequence[tuple[Any, Any, AnyArray]] = (),
        backend: str | None = None,
        value: Any = None,
    ) -> None:
        self._all_keys, self._fits = keys, fits
        self._rows, self._columns = rows, columns
        self._backend, self._value = backend, value
        self._named: set[int] = set()
        self._parts = parts or [("table", _array_of(keys), np.arange(len(keys)))]
        self.failed: dict[Any, A1gmError] = {
            keys[k]: error for k, error in failed.items()
        }

    @cached_property
    def _places(self) -> dict[Any, int]:
        """Place of each table that was fitted."""
        return {self._all_keys[k]: k for k in self._fits}

    @overload
    def __getitem__(self, key: slice) -> list[RankOneFit]: ...
    @overload
    def __getitem__(self, key: Any) -> RankOneFit: ...
    def __getitem__(self, key: Any) -> RankOneFit | list[RankOneFit]:
        if isinstance(key, slice):
            return [self[own] for own in self._all_keys[key]]
        n = len(self._all_keys)
        if isinstance(self._all_keys, range) and isinstance(key, int | np.integer):
            key = key + n if -n <= key < 0 else key
        k = self._places.get(key)
        if k is None:
            why = self.failed.get(key)
            if why is not None:
                raise LabelError(
                    f"The table {text_of_label(key)} could not be fitted: {why}"
                )
            raise LabelError(
                f"There is no table {text_of_label(key)} among these "
                f"{counted(n, 'table')}; list(many) names those that "
                "were fitted, many.failed those that were not."
            )
        fit = self._fits[k]
        if k not in self._named:  # names are made for the tables that are looked at
            rows, columns, long = self._rows, self._columns, dict[str, Any]()
            if self._value is not None:
                long["long"] = rows.name, columns.name, self._value
                long["key_values"] = rows.names(k), columns.names(k)
                long["backend"] = self._backend
            fit._name(rows.labels(k), columns.labels(k), **long)
            self._named.add(k)
        return fit

    def __iter__(self) -> Iterator[Any]:
        return iter(self._places)

    def __len__(self) -> int:
        return len(self._places)

    def __contains__(self, key: Any) -> bool:
        return key in self._places

    # ------------------------------------------------------------------------ frames
    def to_frames(self, backend: str | None = None) -> FactorFrames:
        """All factors as two long frames, like ``fit.to_frames()`` of a single fit.

        Parameters
        ----------
        backend : {"pandas", "polars", "pyarrow"}, optional
            The library; needed when the tables were not frames.

        Returns
        -------
        FactorFrames
            ``rows`` has a line for every row of every table: the key, the name of the
            row, ``row_factor`` and ``row_block``; ``columns`` likewise.

        Examples
        --------
        >>> import numpy as np, a1gm
        >>> stack = np.array([[[1.0, 3.0]], [[2.0, 2.0]]])
        >>> print(a1gm.fit_many(stack).to_frames("pandas").columns)
           table  column  col_factor  col_block
        0      0       0        0.25          0
        1      0       1        0.75          0
        2      1       0        0.50          0
        3      1       1        0.50          0
        """
        backend = backend or self._backend
        check_backend(backend)
        rows = self._frame(backend, "row", self._rows)
        return FactorFrames(rows, self._frame(backend, "col", self._columns))

    def _frame(self, backend: str | None, what: str, side: Side) -> Any:
        names, none = (f"{what}_factor", f"{what}_block"), np.zeros(0, np.int64)
        found: list[tuple[Any, ...]] = [
            (none, none, np.zeros(0), np.zeros(0, np.int32))
        ]
        for k, fit in self._fits.items():
            codes = side.codes[side.of(k)]
            numbers = (getattr(fit, name) for name in names)
            found.append((np.full(len(codes), k), codes, *numbers))
        tables, codes, *columns = (np.concatenate(p) for p in zip(*found, strict=True))
        values: Any = side.values
        if values is None:
            values = np.arange(codes.max(initial=-1) + 1)
        keys = [*self._key_columns(tables), (side.name, values, codes)]
        return long_frame(backend, keys, dict(zip(names, columns, strict=True)))

    def _key_columns(self, tables: AnyArray) -> list[tuple[Any, Any, AnyArray]]:
        """The keys of tables as columns, one for each part of the keys."""
        return [(name, values, codes[tables]) for name, values, codes in self._parts]

    def fill_long(self, *, only_missing: bool = True) -> Any:
        """The missing pairs of all groups with their values, long again.

        Parameters
        ----------
        only_missing : bool, default=True
            Whether to give the missing pairs only; else all pairs, the observed ones
            as they were.

        Returns
        -------
        frame
            Of the library and with the column names of the frame that was fitted.
            Groups that could not be fitted are left out.
        """
        if self._value is None:
            raise ParameterError(
                "These are not the groups of a long table. many[key].impute(X) fills a "
                "table; a1gm.fit_groups fits long tables."
            )
        none = np.zeros(0, np.int64)
        found: list[tuple[Any, ...]] = [(none, none, none, np.zeros(0))]
        sides = self._rows, self._columns
        for k, fit in self._fits.items():
            pairs = filled_pairs(fit._table.source, fit._fitted, only_missing)
            for i, j, values in pairs:
                rows, cols = (side.codes[side.of(k)] for side in sides)
                found.append((np.full(len(values), k), rows[i], cols[j], values))
        tables, *both, values = (np.concatenate(p) for p in zip(*found, strict=True))
        keys = self._key_columns(tables)
        for side, codes in zip(sides, both, strict=True):
            keys.append((side.name, side.values, codes))
        return long_frame(self._backend, keys, {self._value: values})

    def __repr__(self) -> str:
        failed = f", {len(self.failed):,} failed" if self.failed else ""
        return f"ManyFits({counted(len(self), 'table')}{failed})"

    def _repr_html_(self) -> str:
        grid = [["table", "rows x columns", "missing cells", "solver", "certificate"]]
        for key, k in islice(self._places.items(), MOST_SHOWN):
            fit = self._fits[k]
            shape, missing = "{} x {}".format(*fit.shape), f"{fit.pattern.n_missing:,}"
            words = shape, missing, fit.solver, f"{fit.certificate:.1e}"
            grid.append([text_of_label(key), *words])
        return f"<p>{escape(repr(self))}</p>{html_grid(grid)}"


def _array_of(values: Sequence[Any]) -> AnyArray:
    """Keys as an array: of whole numbers, or of objects."""
    if isinstance(values, range):
        return np.asarray(values)
    return np.fromiter(values, object, len(values))  # a tuple is one key
