"""The fits of many tables, by key."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from html import escape
from itertools import islice
from typing import Any, TypeVar, overload

import numpy as np

from a1gm._base.types import AnyArray, Floats, Ints
from a1gm._base.warn import warn_user
from a1gm._base.words import counted, html_grid
from a1gm._fit.fit import RankOneFit
from a1gm._fit.frames import (
    BOUNDS,
    Bounds,
    FactorFrames,
    check_backend,
    filled_pairs,
    long_frame,
)
from a1gm._fit.save import KIND_OF_MANY, many_from_arrays, many_to_arrays, save_model
from a1gm._fit.sure.arguments import (
    Axis,
    By,
    Dispersion,
    Which,
    check_dispersion,
    check_level,
    check_totals,
)
from a1gm._fit.sure.uncertainty import Uncertainty
from a1gm._rows.labels import text_of_label
from a1gm._rows.long import Side, TableKeys
from a1gm.exceptions import (
    A1gmError,
    LabelError,
    Option,
    ParameterError,
    See,
    SkippedWarning,
)

MOST_SHOWN = 12  # tables in a notebook


Own = TypeVar("Own")


class _ByKey(Mapping[Any, Own]):
    """A mapping of those tables by key that did not fail."""

    failed: dict[Any, A1gmError]
    _found: Mapping[Any, Any]

    def __iter__(self) -> Iterator[Any]:
        return iter(self._found)

    def __len__(self) -> int:
        return len(self._found)

    def __repr__(self) -> str:
        failed = f", {len(self.failed):,} failed" if self.failed else ""
        return f"{type(self).__name__}({counted(len(self), 'table')}{failed})"

    def _html(self, heads: list[str], line: Callable[[Own], list[str]]) -> str:
        """A line of figures for each of the first tables."""
        some = islice(self.items(), MOST_SHOWN)
        grid = [["table", *heads], *([text_of_label(k), *line(x)] for k, x in some)]
        left = len(self) - len(grid) + 1
        notes = [f"... {left:,} more"] if left else []
        return f"<p>{escape(repr(self))}</p>{html_grid(grid, notes)}"


class ManyFits(_ByKey[RankOneFit]):
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
        about: TableKeys,
        fits: dict[int, RankOneFit],
        failed: dict[int, A1gmError],
    ) -> None:
        self._about, self._fits, self._failed = about, fits, failed
        self._named: set[int] = set()
        self.failed = {about.keys[k]: error for k, error in failed.items()}

    @cached_property
    def _found(self) -> dict[Any, int]:  # type: ignore[override]
        """Place of each table that was fitted."""
        return {self._about.keys[k]: k for k in self._fits}

    @overload
    def __getitem__(self, key: slice) -> list[RankOneFit]: ...
    @overload
    def __getitem__(self, key: Any) -> RankOneFit: ...
    def __getitem__(self, key: Any) -> RankOneFit | list[RankOneFit]:
        if isinstance(key, slice):
            return [self[own] for own in self._about.keys[key]]
        k = self._found[self._key(key)]
        fit = self._fits[k]
        if k not in self._named:  # names are made for the tables that are looked at
            about, long = self._about, dict[str, Any]()
            rows, columns = about.rows, about.columns
            if about.value is not None:
                long["long"] = rows.name, columns.name, about.value
                long["key_values"] = rows.names(k), columns.names(k)
                long["backend"] = about.backend
            fit._name(rows.labels(k), columns.labels(k), **long)
            self._named.add(k)
        return fit

    def _key(self, key: Any) -> Any:
        """The key of a table that was fitted; raises LabelError for any other."""
        n = len(self._about.keys)
        if isinstance(self._about.keys, range) and isinstance(key, int | np.integer):
            key = key + n if -n <= key < 0 else key
        if key in self._found:
            return key
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
        return FactorFrames(
            self._factors(backend, "row", self._about.rows),
            self._factors(backend, "col", self._about.columns),
        )

    def _factors(self, backend: str | None, what: str, side: Side) -> Any:
        names = f"{what}_factor", f"{what}_block"
        parts = (
            (k, side.codes[side.of(k)], *(getattr(fit, name) for name in names))
            for k, fit in self._fits.items()
        )
        return self._stacked(backend, (side,), names, parts)

    def _stacked(
        self,
        backend: str | None,
        sides: Sequence[Side],
        names: Sequence[Any],
        parts: Iterable[tuple[Any, ...]],
    ) -> Any:
        """Make a frame of the keys of tables, names on some sides, and numbers.

        A part has the place of its table, the codes of the names, and the numbers.
        """
        check_backend(backend := backend or self._about.backend)
        none = np.zeros(0, np.int64)
        found = [(np.full(len(own[-1]), k), *own) for k, *own in parts]
        found = found or [(none, *[none] * len(sides), *[np.zeros(0)] * len(names))]
        tables, *columns = (np.concatenate(part) for part in zip(*found, strict=True))
        parts_of = self._about.parts
        keys = [(name, values, codes[tables]) for name, values, codes in parts_of]
        for side in sides:
            codes, values = columns.pop(0), side.values
            if values is None:
                values = np.arange(codes.max(initial=-1) + 1)
            keys.append((side.name, values, codes))
        return long_frame(backend, keys, names, columns)

    def fill_long(
        self, *, interval: float | None = None, only_missing: bool = True
    ) -> Any:
        """The missing pairs of all groups with their values, long again.

        Parameters
        ----------
        interval : float, optional
            Add the columns ``lower`` and ``upper``: prediction intervals at this
            level, such as 0.95; missing in groups without ``uncertainty()``.
        only_missing : bool, default=True
            Whether to give the missing pairs only; else all pairs, the observed ones
            as they were, in float64, with their values as bounds.

        Returns
        -------
        frame
            Of the library and with the column names of the frame that was fitted.
            Groups that could not be fitted are left out.

        Warns
        -----
        SkippedWarning
            Some groups have no intervals.
        """
        if self._about.value is None:
            raise ParameterError(
                "These are not the groups of a long table. many[key].impute(X) fills a "
                "table; a1gm.fit_groups fits long tables."
            )
        if self._fits and all(fit._table.source is None for fit in self.values()):
            raise ParameterError(
                "These fits were loaded or unpickled, and the data are not in the "
                "file. many[key].predict(rows, columns) gives fitted values."
            )
        names, bounds = [self._about.value], dict[Any, Bounds | None]()
        if interval is not None:
            check_level(interval, Option("interval"))
            names, bounds = (
                [self._about.value, *BOUNDS],
                dict.fromkeys(self, _no_bounds),
            )
            bounds |= {
                key: own._own_bounds(interval)
                for key, own in self.uncertainty().items()
            }
        sides = self._about.rows, self._about.columns

        def parts() -> Iterator[tuple[Any, ...]]:
            for key, k in self._found.items():
                rows, cols = (side.codes[side.of(k)] for side in sides)
                found = filled_pairs(self._fits[k], only_missing, bounds.get(key))
                for i, j, *values in found:
                    yield k, rows[i], cols[j], *values

        return self._stacked(None, sides, names, parts())

    # ---------------------------------------------------------------------- how sure
    def uncertainty(
        self, dispersion: Dispersion = "pearson", *, robust: bool = False
    ) -> ManyUncertainty:
        """Uncertainty of every fit: ``many.uncertainty()[key]`` is an ``Uncertainty``.

        Parameters
        ----------
        dispersion, robust
            As in ``fit.uncertainty``, for each table.

        Returns
        -------
        ManyUncertainty
            A mapping like this one, whose ``failed`` has the tables without errors,
            each with the reason; ``totals`` and ``index`` of all tables are frames.

        Warns
        -----
        SkippedWarning
            Some tables have no errors, such as those without a degree of freedom.
        """
        check_dispersion(dispersion)
        found: dict[Any, Uncertainty] = {}
        failed: dict[Any, A1gmError] = {}
        for key, fit in self.items():
            try:
                found[key] = fit.uncertainty(dispersion, robust=robust)
            except A1gmError as error:
                failed[key] = error
        warn_failed(failed, len(self), "have no standard errors", "u.failed")
        return ManyUncertainty(self, found, failed)

    # ------------------------------------------------------------------------ saving
    def save(self, path: str | os.PathLike[str], *, overwrite: bool = False) -> None:
        """Write the fits to one file, to be read by ``a1gm.load``.

        The data are not in it; of the tables that could not be fitted the reasons are.

        Parameters
        ----------
        path : path-like
            Where to; written whole or not at all.
        overwrite : bool, default=False
            Whether a file that is already there may be replaced.
        """
        if not self._fits:
            raise ParameterError("No table was fitted: there is nothing to save.")
        fits = {k: fit._to_arrays() for k, fit in self._fits.items()}
        for content, _ in fits.values():  # kept once for all
            content["labels"] |= {"rows": None, "columns": None, "long": None}
        content, arrays = many_to_arrays(fits, self._about, self._failed)
        save_model(path, KIND_OF_MANY, content, arrays, overwrite=overwrite)

    @classmethod
    def _from_arrays(
        cls, content: dict[str, Any], arrays: dict[str, AnyArray]
    ) -> ManyFits:
        """The fits of a file."""
        about, found, failed = many_from_arrays(content, arrays)
        fits = {
            k: RankOneFit(solved, rows, table, **options)
            for k, (solved, rows, table, options) in found.items()
        }
        return cls(about, fits, failed)

    # -------------------------------------------------------------------- appearance
    def _repr_html_(self) -> str:
        return self._html(
            ["rows x columns", "missing cells", "solver", "certificate"],
            lambda fit: [
                "{} x {}".format(*fit.shape),
                f"{fit.pattern.n_missing:,}",
                fit.solver,
                f"{fit.certificate:.1e}",
            ],
        )


class ManyUncertainty(_ByKey[Uncertainty]):
    """How sure many fits are. Made by ``many.uncertainty()``.

    A mapping of the tables that have errors: ``u[key]`` is an ``Uncertainty``, whose
    ``interval`` bounds the missing cells of a table; ``many.fill_long(interval=0.95)``
    has those of all groups.

    Attributes
    ----------
    failed : dict
        The keys of the fitted tables without errors, each with the reason.
    """

    def __init__(
        self,
        many: ManyFits,
        found: dict[Any, Uncertainty],
        failed: dict[Any, A1gmError],
    ) -> None:
        self._many, self._found, self.failed = many, found, failed

    def __getitem__(self, key: Any) -> Uncertainty:
        key = self._many._key(key)
        if key in self.failed:
            raise LabelError(
                f"The table {text_of_label(key)} has no standard errors: "
                f"{self.failed[key]}"
            )
        own: Uncertainty = self._found[key]
        return own

    def totals(
        self, by: By = "row", cells: Which = "missing", *, backend: str | None = None
    ) -> Any:
        """Totals of the fitted values of every table, with their errors, as one frame.

        Parameters
        ----------
        by, cells
            As in ``Uncertainty.totals``.
        backend : {"pandas", "polars", "pyarrow"}, optional
            The library; needed when the tables were not frames.

        Returns
        -------
        frame
            A line for every total: the key of its table, the name of the row or column,
            ``value``, ``se``, ``se_estimation`` and ``se_process``.
        """
        check_totals(by, cells)
        names = "value", "se", "se_estimation", "se_process"
        return self._frame(backend, by, names, lambda u: u.totals(by, cells))

    def index(
        self, base: Any = 0, by: Axis = "column", *, backend: str | None = None
    ) -> Any:
        """Factors of every table relative to one of them, with errors, as one frame.

        Parameters
        ----------
        base, by
            As in ``Uncertainty.index``, in each table.
        backend : {"pandas", "polars", "pyarrow"}, optional
            The library; needed when the tables were not frames.

        Returns
        -------
        frame
            A line for every column (or row): the key of its table, its name, ``value``
            and ``se``.

        Warns
        -----
        SkippedWarning
            Some tables do not have the base; they are left out.
        """
        return self._frame(backend, by, ("value", "se"), lambda u: u.index(base, by))

    def _frame(
        self,
        backend: str | None,
        by: By,
        names: tuple[str, ...],
        compute: Callable[[Uncertainty], Any],
    ) -> Any:
        many = self._many
        sides = {"row": (many._about.rows,), "column": (many._about.columns,)}.get(
            by, ()
        )
        failed: dict[Any, A1gmError] = {}
        parts = []
        for key, own in self.items():
            k = many._found[key]
            try:
                found = compute(own)
            except LabelError as error:
                failed[key] = error
                continue
            codes = [side.codes[side.of(k)] for side in sides]
            parts.append((k, *codes, *(getattr(found, name) for name in names)))
        if failed and not parts:
            raise next(iter(failed.values()))
        warn_failed(failed, len(self), "are left out")
        return many._stacked(backend, sides, names, parts)

    def _repr_html_(self) -> str:
        return self._html(
            ["dispersion", "degrees of freedom"],
            lambda own: [f"{own.dispersion:.6g}", f"{own.dof:,}"],
        )


def _no_bounds(rows: Ints, cols: Ints) -> tuple[Floats, Floats]:
    """Return unknown bounds, of a table without errors."""
    return np.full(len(rows), np.nan), np.full(len(rows), np.nan)


def warn_failed(
    failed: dict[Any, A1gmError], n: int, what: str, see: str | None = None
) -> None:
    """Warn of the tables that are left out of an answer."""
    if not failed:
        return
    key, error = next(iter(failed.items()))
    warn_user(
        SkippedWarning(
            f"{len(failed):,} of {counted(n, 'table')} {what}",
            *([See(see)] if see else []),
            f". The first is {text_of_label(key)}: ",
            error.all_parts,
            count=len(failed),
        )
    )
