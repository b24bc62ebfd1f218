"""`TensorFit`: the fit of a table with any number of modes."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from a1gm._base.float_range import as_float32, check_cells
from a1gm._base.types import Floats, Ints, OnUndetermined, Solver
from a1gm._base.words import counted
from a1gm._fit.frames import BOUNDS, long_frame
from a1gm._fit.messages import (
    html_table,
    one_line,
    solver_in_words,
    text_of_left_cells,
    warn_undetermined,
)
from a1gm._fit.place import FATES, UNBOUNDED, decided
from a1gm._fit.residuals import Cells as Compared
from a1gm._fit.residuals import Kind
from a1gm._fit.save import save_model
from a1gm._fit.sure.arguments import Dispersion
from a1gm._rows.labels import Lookup, check_there, label_at
from a1gm._rows.long import code_key, open_pairs, parts_of_key
from a1gm._solve.cell_error import CELLS_RIGHT
from a1gm.exceptions import DataError, ParameterError, TableTooLargeError
from a1gm.tensor.known import Known
from a1gm.tensor.problem import MOST_CELLS, Levels, Margin, Problem
from a1gm.tensor.read import Cells, check_finite, dense_cells
from a1gm.tensor.save import KIND_OF_TENSOR, fit_to_arrays
from a1gm.tensor.solve import Solved
from a1gm.tensor.sure import TensorUncertainty

CELLS_AT_ONCE = 1 << 20


@dataclass(frozen=True)
class Long:
    """What a long frame has beside its cells: names, distinct keys and the library."""

    value: Any
    keys: tuple[Any, ...]
    backend: str


class TensorFit:
    """The best explanation of a table by factors of its modes, or of sets of modes.

    Made by ``a1gm.fit_tensor`` and by ``a1gm.fit_long`` with three or more keys; not
    meant to be constructed by hand.

    Attributes
    ----------
    modes : tuple
        Names of the modes, or their numbers.
    margins : tuple of tuples
        The sets of modes that have a factor, by their names.
    shape : tuple of int
        Levels of each mode.
    labels : tuple
        Names of the levels of each mode, or None.
    tol : float
        The certificate to reach.
    """

    def __init__(
        self,
        cells: Cells,
        groups: tuple[Margin, ...],
        levels: tuple[Levels, ...],
        problem: Problem,
        known: Known,
        solved: Solved,
        exponent: int,
        *,
        tol: float,
        on_undetermined: OnUndetermined,
        long: Long | None = None,
    ) -> None:
        self._cells, self._groups, self._levels = cells, groups, levels
        self._problem, self._known, self._solved = problem, known, solved
        self._exponent, self._long = exponent, long
        self._on_undetermined: OnUndetermined = on_undetermined
        self.tol = tol
        self.modes, self.shape, self.labels = cells.modes, cells.shape, cells.labels
        self.margins = tuple(tuple(self.modes[k] for k in group) for group in groups)

    # --------------------------------------------------------------- how it was solved
    @property
    def solver(self) -> Solver:
        """How it was solved: "closed form", "scaling" or "newton"."""
        return self._solved.solver

    @property
    def n_iter(self) -> int:
        """Iterations used; 0 for the closed form."""
        return self._solved.n_iter

    @property
    def certificate(self) -> float:
        """Largest relative mismatch between margins of the fit and of the data.

        At the optimum the fitted table has the sums of the observed cells by every
        level of every margin, so 0 proves optimality.
        """
        return self._solved.gap

    @property
    def cell_error(self) -> float:
        """Bound on the relative error of fitted cells, rounding included.

        An estimate where more than 700 levels lie beside the largest margin.
        """
        assert self._solved.cell_error is not None
        return self._solved.cell_error

    @property
    def cell_error_is_bound(self) -> bool:
        """Whether ``cell_error`` is a bound, not an estimate."""
        return self._solved.is_bound

    @property
    def converged(self) -> bool:
        """Whether the certificate is within ``tol`` and the cell error within 1e-8."""
        return self.certificate <= self.tol and self.cell_error <= CELLS_RIGHT

    @cached_property
    def _stay(self) -> Problem:
        """The cells without the zeros that are given up."""
        given_up = self._known.given_up
        return self._problem.only(~given_up) if given_up.any() else self._problem

    @property
    def attained(self) -> bool:
        """Whether a minimiser exists; False when observed zeros had to be given up."""
        return self._known.n_approached == 0

    # ------------------------------------------------------------------------- factors
    @cached_property
    def factors(self) -> dict[Any, Floats]:
        """One array per margin, by its name, or by its names where modes act together.

        The first carries the units of the data, the others sum to 1; NaN for levels
        without an observed cell. Where margins share a mode, other factors give the
        same cells: these are one choice of them.
        """
        found: dict[Any, Floats] = {}
        units = 1.0
        has_cells = self._problem.has_cells
        every = np.where(has_cells, self._solved.t, np.nan)
        parts = zip(self._levels, self._problem.split(every), strict=True)
        for g, (levels, factor) in enumerate(parts):
            total = float(np.nansum(factor)) if g else 1.0
            total = total if total > 0.0 else 1.0
            units *= total
            if math.prod(levels.lengths) > MOST_CELLS:
                raise self._too_large("factors")
            full = np.full(math.prod(levels.lengths), np.nan)
            full[slice(None) if levels.codes is None else levels.codes] = factor / total
            margin = self.margins[g]
            name = margin[0] if len(margin) == 1 else margin
            found[name] = full.reshape(levels.lengths)
        first = next(iter(found))
        found[first] = np.ldexp(found[first] * units, self._exponent)
        check_cells(found[first])
        return found

    @cached_property
    def n_free(self) -> int:
        """Scales between parts of the table that the data leave free; 0 if connected.

        Not counted (-1) where the design is too large for exact elimination.
        """
        rank = self._known.rank
        if rank is None:
            return -1
        used = [len(np.unique(k)) for k in self._cells.index]
        subsets = {
            tuple(m for b, m in enumerate(group) if bits >> b & 1)
            for group in self._groups
            for bits in range(1 << len(group))
        }
        whole = sum(math.prod(used[k] - 1 for k in subset) for subset in subsets)
        absent = sum(
            math.prod(used[k] for k in group) - int(has.sum())
            for group, has in zip(
                self._groups,
                self._problem.split(self._problem.has_cells),
                strict=True,
            )
        )
        given_up = int(self._problem.has_cells.sum() - self._stay.has_cells.sum())
        return max(0, whole - absent - given_up - rank)

    # --------------------------------------------------------------------------- cells
    def _levels_of(self, index: Sequence[Ints]) -> list[Ints]:
        """Levels of cells in every group, counted from 0; -1 without observed cells."""
        return [levels.find(index) for levels in self._levels]

    @cached_property
    def _is_whole(self) -> bool:
        """Whether every cell of the table has a value."""
        has_all = all(own.size == math.prod(own.lengths) for own in self._levels)
        has_all = has_all and bool(self._problem.has_cells.all())
        has_all = has_all and not self._known.given_up.any()
        return has_all and self._known.is_whole

    def _fitted(self, index: Sequence[Ints], exposure: Any = None) -> Floats:
        """Fitted values of cells; NaN where the data do not determine them."""
        levels = self._levels_of(index)
        found = np.ones(len(index[0]))
        for level, t in zip(levels, self._problem.split(self._solved.t), strict=True):
            found *= t[level]
        with np.errstate(over="ignore"):
            found = np.ldexp(found, self._exponent)
        if not self._is_whole:
            decided(found, self._known.fates(levels))
        if self._cells.exposed:
            found *= self._exposure_at(index) if exposure is None else exposure
        check_cells(found)
        return found

    def _exposure_at(self, index: Sequence[Ints]) -> Any:
        if self._cells.every is not None:
            return self._cells.every[tuple(index)]
        raise ParameterError(
            "The exposures of missing cells are not known: pass exposure= for the "
            "cells that are asked for."
        )

    def _finder(self, mode: int) -> Lookup:
        return Lookup(
            f"level of {self.modes[mode]!r}", self.labels[mode], self.shape[mode]
        )

    def _places(self, index: Any) -> tuple[Ints, ...]:
        """Positions of cells that are given by labels or positions, mode by mode."""
        if not isinstance(index, tuple | list) or len(index) != len(self.shape):
            raise ParameterError(
                f"A cell has one label or position per mode "
                f"({len(self.shape)} of them), got {index!r}."
            )
        found = [self._finder(k).find(one) for k, one in enumerate(index)]
        return tuple(np.broadcast_arrays(*found))

    def fate(self, index: Any) -> Any:
        """What the data say about cells.

        Parameters
        ----------
        index : sequence with one entry per mode
            A label or position along each mode, or arrays of them.

        Returns
        -------
        str, or array of str
            "finite"; "zero", where only 0 fits; "unbounded", where any large value
            does; "undetermined".

        Examples
        --------
        >>> import numpy as np, a1gm
        >>> T = np.full((2, 2, 2), np.nan)
        >>> T[0, 0, 0] = T[0, 1, 1] = T[1, 0, 1] = T[1, 1, 0] = 1.0
        >>> a1gm.fit_tensor(T).fate((1, 1, 1))
        'finite'
        """
        places = self._places(index)
        codes = self._known.fates(self._levels_of([k.ravel() for k in places]))
        names = np.array(FATES, dtype=object)[codes].reshape(places[0].shape)
        return names if names.ndim else str(names)

    @cached_property
    def undetermined(self) -> Ints:
        """Missing cells without a value: one row of positions each."""
        if self._is_whole:
            return np.zeros((0, len(self.shape)), np.int64)
        found = [
            np.stack(index, axis=1)[
                self._known.fates(self._levels_of(index)) >= UNBOUNDED
            ]
            for index in self._missing("undetermined")
        ]
        return np.concatenate(found) if found else np.zeros((0, len(self.shape)), int)

    @property
    def n_undetermined(self) -> int:
        """Number of missing cells that the data do not determine."""
        return len(self.undetermined)

    def _too_large(self, what: str) -> TableTooLargeError:
        return TableTooLargeError(
            f"{what}: the table has {' x '.join(f'{n:,}' for n in self.shape)} cells, "
            "too many to look at each. fit.predict and fit.fate take the cells that "
            "are needed."
        )

    def _missing(self, what: str) -> Iterator[tuple[Ints, ...]]:
        """Positions of the missing cells, some at a time."""
        n = math.prod(self.shape)
        if n > MOST_CELLS:
            raise self._too_large(what)
        is_missing = np.ones(n, bool)
        is_missing[np.ravel_multi_index(self._cells.index, self.shape)] = False
        at = np.flatnonzero(is_missing)
        for start in range(0, len(at), CELLS_AT_ONCE):
            yield np.unravel_index(at[start : start + CELLS_AT_ONCE], self.shape)

    # ------------------------------------------------------------------- fitted values
    def reconstruct(self) -> Floats:
        """Return the fitted table in units of T; NaN where no value is determined."""
        n = math.prod(self.shape)
        if n > MOST_CELLS:
            raise self._too_large("reconstruct")
        found = np.empty(n)
        for start in range(0, n, CELLS_AT_ONCE):
            at = np.arange(start, min(start + CELLS_AT_ONCE, n))
            found[at] = self._fitted(np.unravel_index(at, self.shape))
        return found.reshape(self.shape)

    def impute(self, T: Any, *, on_undetermined: OnUndetermined | None = None) -> Any:
        """Fill the missing cells of a table.

        Parameters
        ----------
        T : array of the shape that was fitted
            NaN, or what its mask covers, is a missing cell. It is not modified.
        on_undetermined : {"warn", "raise", "ignore"}, optional
            What to do about cells without a value; by default what the fit did.

        Returns
        -------
        array
            A copy of T, of the same kind, with its missing cells filled.
        """
        return self._fill(T, self._fitted, on_undetermined)

    def _fill(self, T: Any, values: Any, how: OnUndetermined | None = None) -> Any:
        cells = dense_cells(T)
        if cells.shape != self.shape:
            raise DataError(
                f"T has shape {cells.shape}, but the fit is of shape {self.shape}: "
                "rows and columns of other tables have no factors here."
            )
        check_finite(cells, self.modes, self.labels)
        at = np.flatnonzero(np.isnan(cells))
        flat = cells.reshape(-1)
        for start in range(0, len(at), CELLS_AT_ONCE):
            some = at[start : start + CELLS_AT_ONCE]
            flat[some] = values(np.unravel_index(some, self.shape))
        left = np.isnan(flat)
        if left.any():
            first = np.unravel_index(int(left.argmax()), self.shape)
            text = text_of_left_cells(int(left.sum()), self._name_of(first))
            warn_undetermined(text, how or self._on_undetermined)
        if getattr(T, "dtype", None) == np.float32:
            cells = as_float32(cells, lambda *at: self._name_of(at))
        if isinstance(T, np.ma.MaskedArray):
            return np.ma.masked_invalid(cells)
        return cells

    def _name_of(self, index: Sequence[Any]) -> str:
        names = (
            label_at(own, int(k)) for own, k in zip(self.labels, index, strict=True)
        )
        return f"T[{', '.join(names)}]"

    def predict(self, frame: Any, *, exposure: Any = None) -> Any:
        """Fitted values of cells that a frame, or labels per mode, name.

        Parameters
        ----------
        frame : frame with the key columns, or sequence with one entry per mode
            As in ``fate``.
        exposure : array, optional
            For a fit with exposure: that of each cell.

        Returns
        -------
        ndarray, or float for a single cell
            One value per row; NaN where the data determine none.
        """
        if hasattr(frame, "columns"):
            if self._long is None:
                raise ParameterError(
                    "This fit was not made by fit_long, so the key columns of a frame "
                    "are not defined. Pass labels or positions, mode by mode."
                )
            columns = [name for key in self.modes for name in parts_of_key(key)]
            opened = open_pairs(frame, columns)
            check_there("The frame", columns, opened.columns)
            index = []
            for k, key in enumerate(code_key(opened, mode) for mode in self.modes):
                places = self._finder(k).find_known(key.labels, are_labels=True)
                index.append(places[key.codes])
            places_of = tuple(index)
        else:
            places_of = self._places(frame)
        shape = places_of[0].shape
        flat = [k.ravel() for k in places_of]
        known = np.all([k >= 0 for k in flat], axis=0)
        values = np.full(len(known), np.nan)
        if exposure is not None:
            exposure = np.broadcast_to(np.asarray(exposure, float), shape).ravel()[
                known
            ]
        values[known] = self._fitted([k[known] for k in flat], exposure)
        return values.reshape(shape) if shape else float(values[0])

    def fill_long(
        self, *, interval: float | None = None, max_rows: int = 10_000_000
    ) -> Any:
        """Make a long frame of the missing cells and their values.

        Parameters
        ----------
        interval : float, optional
            Level of bounds of the values, such as 0.95: columns ``lower``, ``upper``.
        max_rows : int, default=10_000_000
            More are refused.

        Returns
        -------
        frame
            One row per missing cell: its keys, and the value.
        """
        if self._long is None:
            raise ParameterError(
                "This fit is not one of a long table. fit.impute(T) fills an array; "
                "a1gm.fit_long fits a long frame."
            )
        n = math.prod(self.shape) - len(self._cells.values)
        if n > max_rows:
            raise TableTooLargeError(
                f"fill_long would give {n:,} rows, more than max_rows={max_rows:,}. "
                "fit.predict(frame) gives the values of the cells that are needed."
            )
        bounds = [] if interval is None else self.uncertainty()._tails(interval)
        pieces = list(self._missing("fill_long"))
        if not pieces:
            pieces = [tuple(np.zeros((len(self.shape), 0), np.int64))]
        codes = [np.concatenate(own) for own in zip(*pieces, strict=True)]
        columns = [
            np.concatenate([values(index) for index in pieces])
            for values in (self._fitted, *bounds)
        ]
        keys = list(zip(self.modes, self._long.keys, codes, strict=True))
        names = self._long.value, *BOUNDS[: len(bounds)]
        return long_frame(self._long.backend, keys, names, columns)

    # ----------------------------------------------------------------- how well it fits
    @cached_property
    def _observed_fit(self) -> Floats:
        """Fitted values of the observed cells, in units of the data."""
        exposure = self._cells.weights if self._cells.exposed else None
        return self._fitted(self._cells.index, exposure)

    @cached_property
    def divergence(self) -> float:
        """The Kullback-Leibler divergence of the observed cells, weighted."""
        x, weights = self._cells.values, np.ones(len(self._cells.values))
        if self._cells.weights is not None and not self._cells.exposed:
            weights = self._cells.weights
        return self._compared(x, self._observed_fit, weights).divergence()

    @property
    def deviance(self) -> float:
        """Twice the divergence."""
        return 2.0 * self.divergence

    def residuals(self, T: Any, kind: Kind = "pearson") -> Floats:
        """Residuals of the observed cells of a table of the fitted shape.

        Parameters
        ----------
        T : array
        kind : {"pearson", "deviance", "response"}, default="pearson"

        Returns
        -------
        ndarray
            NaN for missing cells.
        """
        cells = dense_cells(T)
        if cells.shape != self.shape:
            raise DataError(f"T has shape {cells.shape}, but the fit {self.shape}.")
        if kind not in ("pearson", "deviance", "response"):
            raise ParameterError(
                f'kind must be "pearson", "deviance" or "response", got {kind!r}.'
            )
        weights = np.ones(self.shape)
        if self._cells.every is not None and not self._cells.exposed:
            weights = self._cells.every
        return self._compared(cells, self.reconstruct(), weights).residuals(kind)

    def _compared(self, x: Floats, fitted: Floats, weights: Floats) -> Compared:
        nowhere = np.zeros(0, np.int64)
        return Compared(nowhere, nowhere, x, fitted, weights, weights)

    def uncertainty(self, dispersion: Dispersion = "pearson") -> TensorUncertainty:
        """Errors of cells, totals and indices, and tests of the model.

        Parameters
        ----------
        dispersion : {"pearson", "deviance", "poisson"} or float, default="pearson"
            Variance of a cell over its mean.

        Returns
        -------
        TensorUncertainty
        """
        return TensorUncertainty(self, dispersion)

    def save(self, path: str | os.PathLike[str], *, overwrite: bool = False) -> None:
        """Write the fit, with the cells that it explains, to a file.

        Parameters
        ----------
        path : path-like
            The file; ``a1gm.load`` reads it.
        overwrite : bool, default=False
            Whether to replace a file that exists.
        """
        save_model(path, KIND_OF_TENSOR, *fit_to_arrays(self), overwrite=overwrite)

    # --------------------------------------------------------------------- appearance
    def summary(self) -> dict[str, str]:
        """The fit in words, line by line."""
        n = math.prod(self.shape)
        missing = n - len(self._cells.values)
        lines = {
            "table": " x ".join(map(str, self.shape)),
            "margins": " ".join(
                "{" + ", ".join(map(str, margin)) + "}" for margin in self.margins
            ),
            "missing": f"{missing:,} of {counted(n, 'cell')}",
            "solver": solver_in_words(self.solver, self.n_iter),
            "certificate": f"{self.certificate:.1e}",
            "cell error": f"{self.cell_error:.1e}",
            "converged": "yes" if self.converged else "no",
        }
        if not self._is_whole and n <= MOST_CELLS:
            lines["undetermined cells"] = f"{self.n_undetermined:,}"
        if not self.attained:
            lines["zeros given up"] = f"{self._known.n_approached:,}"
        return lines

    def __repr__(self) -> str:
        return one_line("TensorFit", self.summary())

    def _repr_html_(self) -> str:
        return html_table("TensorFit", self.summary())
