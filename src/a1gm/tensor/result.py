"""`TensorFit`: the fit of a table with any number of modes."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import cached_property, partial, reduce
from typing import Any

import numpy as np

from a1gm._base.checks import is_array, is_count, need
from a1gm._base.float_range import as_float32, check_cells
from a1gm._base.types import AnyArray, Floats, Ints, OnUndetermined, SmallInts
from a1gm._base.words import counted
from a1gm._fit.certified import Certified
from a1gm._fit.frames import (
    BACKENDS,
    Long,
    check_backend,
    long_frame,
    predicted,
    read_keys,
)
from a1gm._fit.kept import Kept
from a1gm._fit.messages import (
    check_on_undetermined,
    text_of_left_cells,
    warn_undetermined,
)
from a1gm._fit.place import UNBOUNDED, UndeterminedCells, decided, with_exposure
from a1gm._fit.residuals import Cells as Compared
from a1gm._fit.residuals import Kind, check_kind
from a1gm._fit.save import array_of, check_numbers, check_solution, options_of
from a1gm._fit.sure.arguments import Dispersion, Which
from a1gm._observe.codec import from_arrays, labels_from_json, labels_to_json, to_arrays
from a1gm._rows.labels import Lookup
from a1gm.exceptions import DataError, ParameterError, TableTooLargeError, WeightsError
from a1gm.tensor.known import Known, n_parameters
from a1gm.tensor.problem import Levels
from a1gm.tensor.read import (
    Cells,
    dense_cells,
    listed_table,
    margins_of,
    read_cells,
)
from a1gm.tensor.solve import Solved
from a1gm.tensor.sure import TensorUncertainty

KIND_OF_TENSOR = "TensorFit"
MOST_CELLS = 1 << 26  # of a table that is looked at cell by cell
CELLS_AT_ONCE = 1 << 20
_need = partial(need, "a fit")


class TensorFit(Certified, Kept):
    """The best explanation of a table by factors of its modes, or of sets of modes.

    Made by ``a1gm.fit_tensor`` and by ``a1gm.fit_long`` with three or more keys; not
    meant to be constructed by hand.

    Attributes
    ----------
    modes : tuple
        Names of the modes, or their numbers.
    margins : tuple of tuples
        The sets of modes that have a factor, by their names.
    labels : tuple
        Names of the levels of each mode, or None.
    tol : float
        The certificate to reach.
    cell_error_is_bound : bool
        False where ``cell_error`` is an estimate: more than 700 levels lie beside the
        largest margin.
    """

    _kind, _sums_in_words = KIND_OF_TENSOR, "sums by level"
    _found: Solved

    def __init__(
        self,
        cells: Cells,
        levels: tuple[Levels, ...],
        solved: Solved,
        known: Known | None = None,
        long: Long | None = None,
        *,
        tol: float,
        on_undetermined: OnUndetermined,
    ) -> None:
        self._cells, self._levels, self._found, self._long = cells, levels, solved, long
        if known is not None:
            self._known = known
        self._on_undetermined: OnUndetermined = on_undetermined
        self.tol, self.modes, self.labels = tol, cells.modes, cells.labels
        self._groups = tuple(own.margin for own in levels)
        self.margins = tuple(tuple(self.modes[k] for k in own) for own in self._groups)
        self.cell_error_is_bound = solved.is_bound
        self._starts = np.cumsum([0, *(own.size for own in levels)])

    @cached_property
    def _known(self) -> Known:
        """What the data determine; not needed where positive cells decide all."""
        problem = self._cells.problem(self._levels)
        return Known(problem, self._levels, self._found.rank)

    @property
    def shape(self) -> tuple[int, ...]:
        """Levels of each mode."""
        return self._cells.shape

    @property
    def _n_given_up(self) -> int:
        return 0 if self._found.rank is not None else self._known.n_approached

    # ------------------------------------------------------------------------- factors
    @cached_property
    def factors(self) -> dict[Any, Floats]:
        """One array per margin, by its name, or by its names where modes act together.

        The first carries the units of the data, the others sum to 1; NaN for levels
        without an observed cell. Where margins share a mode, or the data leave scales
        free (``n_free``), other factors give the same cells: these are one choice.
        """
        first, *others = np.split(self._found.t, self._starts[1:-1])
        totals = [t.sum() for t in others]
        with np.errstate(over="ignore"):
            values = [reduce(np.multiply, totals, first)]
        check_cells(values[0])
        for t, total in zip(others, totals, strict=True):
            values.append(t / total if total > 0.0 else np.full(len(t), 1.0 / len(t)))
        found: dict[Any, Floats] = {}
        for margin, own, t in zip(self.margins, self._levels, values, strict=True):
            _check_size(own.lengths)
            full = np.full(own.lengths, np.nan)
            full.flat[slice(None) if own.codes is None else own.codes] = t
            found[margin[0] if len(margin) == 1 else margin] = full
        return found

    def _factor_frames(self, backend: str | None) -> dict[Any, Any]:
        names: Sequence[Any] = [np.asarray(finder.names) for finder in self._finders]
        if self._long is not None:
            names, backend = self._long.keys, backend or self._long.backend
        check_backend(backend)
        found = {}
        for group, (name, factor) in zip(
            self._groups, self.factors.items(), strict=True
        ):
            at = np.nonzero(~np.isnan(factor))
            levels = zip(group, at, strict=True)
            keys = [(self.modes[k], names[k], own) for k, own in levels]
            found[name] = long_frame(backend, keys, ["factor"], [factor[at]])
        return found

    @cached_property
    def n_free(self) -> int:
        """Scales between parts of the table that the data leave free; 0 if connected.

        Not counted (-1) where the design is too large for exact elimination.
        """
        if self._found.rank is not None:
            return 0
        rank = self._known.rank
        if rank is None:
            return -1
        used = [len(np.unique(k)) for k in self._cells.index]
        n_levels = sum(math.prod(used[k] for k in group) for group in self._groups)
        absent = n_levels - int((self._known.stay.counts > 0.0).sum())
        return max(0, n_parameters(self._groups, used) - absent - rank)

    # --------------------------------------------------------------------------- cells
    @cached_property
    def _is_whole(self) -> bool:
        """Whether every cell of the table has a value."""
        has_all = all(own.codes is None for own in self._levels)
        return self._found.rank is not None or (has_all and self._known.is_whole)

    def _find(self, index: Sequence[Ints]) -> list[Ints]:
        """Levels of cells in every margin; -1 for one without cells."""
        return [own.find(index) for own in self._levels]

    def _codes(self, index: Sequence[Ints]) -> SmallInts:
        if self._is_whole:
            return np.zeros(len(index[0]), np.int32)  # finite
        return self._known.fates(self._find(index))

    def _fitted(self, index: Sequence[Ints], exposure: Any = None) -> Floats:
        """Fitted values of cells; NaN where the data do not determine them."""
        levels = self._find(index)
        places = zip(self._starts, levels, strict=False)
        factors = [self._found.t[start + level] for start, level in places]
        if self._cells.exposed or exposure is not None:
            exposure = self._exposure_at(index, exposure)
            factors.append(exposure)
        with np.errstate(all="ignore"):
            found: Floats = reduce(np.multiply, factors)
        if not self._is_whole:
            decided(found, self._known.fates(levels))
        if exposure is not None:
            with_exposure(found, exposure)
        check_cells(found)
        return found

    def _exposure_at(self, index: Sequence[Ints], given: Any = None) -> Floats:
        """Exposures of cells: those of the fit, or other ones."""
        if given is None:
            given = self._cells.weights_at(index)
            has_all = len(self._cells.numbers) == math.prod(self.shape)
            if self._long is None and not has_all and np.isnan(given).any():
                raise ParameterError(
                    "The exposures of missing cells are not known: pass exposure= to "
                    "fit.predict for the cells that are needed."
                )
        elif not self._cells.exposed:
            raise ParameterError(
                "This fit was made without exposure. Leave exposure= out, or fit the "
                "table with it."
            )
        elif ((given < 0.0) | np.isinf(given)).any():
            raise WeightsError("exposure must be finite and at least 0.")
        return np.asarray(given)

    @cached_property
    def _finders(self) -> tuple[Lookup, ...]:
        sides = [f"{mode_in_words(mode)} level" for mode in self.modes]
        return tuple(map(Lookup, sides, self.labels, self.shape))

    def _by_mode(self, index: Any) -> tuple[Any, ...]:
        n = len(self.shape)
        if not isinstance(index, tuple | list) or len(index) != n:
            raise ParameterError(
                f"Cells have one label or position per mode ({n} of them), got "
                f"{index!r}."
            )
        return tuple(index)

    def fate(self, index: Any) -> Any:
        """Fate of cells, as by ``a1gm.RankOneFit.fate``.

        Parameters
        ----------
        index : sequence with one entry per mode
            A label or position along each mode, or arrays of them.

        Returns
        -------
        {"finite", "zero", "unbounded", "undetermined"}, or an array of these
        """
        return self._fate(*self._by_mode(index))

    @cached_property
    def undetermined(self) -> UndeterminedCells:
        """Missing cells without a value: positions along each mode, and kind."""
        at = np.zeros(0, np.int64) if self._is_whole else self._flat()
        codes = self._each(at, self._codes)
        own = codes >= UNBOUNDED
        return UndeterminedCells(*np.unravel_index(at[own], self.shape), codes[own])

    @property
    def n_missing(self) -> int:
        """Number of missing cells."""
        return math.prod(self.shape) - self._cells.n_observed

    @property
    def n_undetermined(self) -> int:
        """Missing cells that cannot be known (unbounded and undetermined)."""
        return len(self.undetermined)

    def _flat(self, cells: Which = "missing") -> Ints:
        """Positions of the missing cells, or of all, in the flat table."""
        _check_size(self.shape)
        is_chosen = np.ones(math.prod(self.shape), bool)
        if cells == "missing":
            is_chosen[np.ravel_multi_index(self._cells.index, self.shape)] = False
        return np.flatnonzero(is_chosen)

    def _pieces(self, at: Ints) -> Iterator[tuple[Ints, ...]]:
        """Positions along each mode of cells of the flat table, some at a time."""
        for start in range(0, max(len(at), 1), CELLS_AT_ONCE):
            yield np.unravel_index(at[start : start + CELLS_AT_ONCE], self.shape)

    def _each(self, at: Ints, values: Callable[[Sequence[Ints]], Any]) -> Any:
        """What a function has for cells of the flat table."""
        return np.concatenate([values(index) for index in self._pieces(at)])

    # ------------------------------------------------------------------- fitted values
    def reconstruct(self) -> Floats:
        """Return the fitted table in units of T; NaN where no value is determined."""
        found: Floats = self._each(self._flat("fitted"), self._fitted)
        return found.reshape(self.shape)

    def impute(self, T: Any, *, on_undetermined: OnUndetermined | None = None) -> Any:
        """Fill the missing cells of a table.

        Parameters
        ----------
        T : array of the shape that was fitted
        on_undetermined : {"warn", "raise", "ignore"}, optional
            What to do about cells without a value; by default what the fit did.

        Returns
        -------
        array
            A copy of T, of the same kind, with its missing cells filled.
        """
        check_on_undetermined(on_undetermined)
        return self._fill(T, self._fitted, on_undetermined)

    def _fill(self, T: Any, values: Any, how: OnUndetermined | None = None) -> Any:
        cells = self._read(T)
        at = np.flatnonzero(np.isnan(cells))
        if not len(at):
            return np.array(T, subok=True)  # of its own type
        cells.flat[at] = self._each(at, values)
        left = np.argwhere(np.isnan(cells))
        if len(left):
            text = text_of_left_cells(len(left), self._cells.name_of(left[0]))
            warn_undetermined(text, how or self._on_undetermined)
        if getattr(T, "dtype", None) == np.float32:
            cells = as_float32(cells, lambda *at: self._cells.name_of(at))
        return _like(T, cells)

    def _read(self, T: Any) -> Floats:
        """The cells of an array of the fitted shape."""
        if isinstance(T, tuple) or hasattr(T, "coords") or hasattr(T, "columns"):
            raise DataError(
                f"An array of shape {self.shape} is needed, got a {type(T).__name__}. "
                "fit.predict fills cells by label, fit.fill_long() a long table."
            )
        cells = dense_cells(T).copy()
        if cells.shape != self.shape:
            raise DataError(
                f"T has shape {cells.shape}, but the fit is of shape {self.shape}: the "
                "levels of other tables have no factors here."
            )
        bad = np.nonzero((cells < 0.0) | np.isinf(cells))
        listed_table(bad, cells[bad], self.shape, self.modes).check(None)
        return cells

    def predict(self, frame: Any, *, exposure: Any = None) -> Any:
        """Fitted values of cells that are named by their labels.

        Parameters
        ----------
        frame : frame with the key columns, or sequence as in ``fate``
        exposure : number or array, optional
            As in ``a1gm.RankOneFit.predict``.

        Returns
        -------
        ndarray, or float for a single cell
            NaN where the data determine no value.
        """
        is_frame = hasattr(frame, "columns")
        keys = self._long and self.modes
        given: Any = read_keys(frame, keys) if is_frame else self._by_mode(frame)
        return predicted(self._finders, self._fitted, given, exposure)

    def _long_table(self) -> tuple[Long | None, int]:
        return self._long, len(self._cells.values)

    def _filled_cells(
        self, only_missing: bool, interval: float | None
    ) -> Iterator[tuple[Any, ...]]:
        at = self._flat("missing" if only_missing else "fitted")
        bounds = [] if interval is None else self.uncertainty()._tails(interval)
        found = [self._each(at, values) for values in (self._fitted, *bounds)]
        if not only_missing:
            own = np.ravel_multi_index(self._cells.index, self.shape)
            for column in found:
                column[own] = self._cells.values
        yield *np.unravel_index(at, self.shape), *found

    # ----------------------------------------------------------------- how well it fits
    def _compared(self, index: Any, x: Floats) -> Compared:
        """Observed cells beside their fitted values, in units of the data."""
        nowhere, weights = np.zeros(0, np.int64), np.ones(len(x))
        if self._cells.weights is not None and not self._cells.exposed:
            weights = self._cells.weights_at(index)
        return Compared(nowhere, nowhere, x, self._fitted(index), weights, weights)

    @cached_property
    def _observed(self) -> Compared:
        return self._compared(self._cells.index, self._cells.values)

    @cached_property
    def divergence(self) -> float:
        """The Kullback-Leibler divergence of the observed cells, weighted."""
        return self._observed.divergence()

    def residuals(self, T: Any, kind: Kind = "pearson") -> Any:
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
        check_kind(kind)
        cells = self._read(T)
        index = np.nonzero(~np.isnan(cells))
        if self._cells.weights is not None:
            is_used = self._cells.weights_at(index) > 0.0
            index = tuple(k[is_used] for k in index)
        found = np.full(self.shape, np.nan)
        found[index] = self._compared(index, cells[index]).residuals(kind)
        return _like(T, found)

    def uncertainty(self, dispersion: Dispersion = "pearson") -> TensorUncertainty:
        """Errors of cells, totals and indices, and tests of the model.

        Parameters
        ----------
        dispersion : {"pearson", "deviance", "poisson"} or float, default="pearson"
            As in ``a1gm.RankOneFit.uncertainty``.

        Returns
        -------
        TensorUncertainty
        """
        return TensorUncertainty(self, dispersion)

    # ------------------------------------------------------------------------ files
    def _to_arrays(self) -> tuple[dict[str, Any], dict[str, AnyArray]]:
        cells, long = self._cells, self._long
        if cells.positions is None:
            cells = cells.only()
        assert cells.positions is not None
        arrays = {"index": np.stack(cells.positions), "values": cells.numbers}
        if cells.all_weights is not None:
            arrays["exposure" if cells.exposed else "weights"] = cells.all_weights
        content = {
            "shape": cells.shape,
            "modes": labels_to_json(cells.modes),
            "labels": [_labels_to_json(own) for own in cells.labels],
            "margins": self._groups,
            "solved": to_arrays("solved", self._found, arrays),
            "long": long and [labels_to_json(long.names), long.backend],
            "options": {"tol": self.tol, "on_undetermined": self._on_undetermined},
        }
        return content, arrays

    @classmethod
    def _from_arrays(
        cls, content: dict[str, Any], arrays: dict[str, AnyArray]
    ) -> TensorFit:
        """The fit of a file; its cells are read and checked as those of a user."""
        shape, index, x = content["shape"], arrays["index"], arrays["values"]
        n, long = len(shape), content["long"]
        _need(is_array(index, "i8", (n, len(x))), "index")
        weighting = arrays.get("weights"), arrays.get("exposure")
        names = labels_from_json(content["modes"], n, unique=False)
        cells = read_cells((tuple(index), x, tuple(shape)), names, *weighting)
        labels = [
            None if own is None else _labels_from_json(own, k)
            for own, k in zip(content["labels"], cells.shape, strict=True)
        ]
        cells = replace(cells, labels=tuple(labels))
        if long is not None:
            names = labels_from_json(long[0], n + 1, unique=False) or []
            _need(long[1] in BACKENDS and None not in content["labels"], "long")
            long = Long(tuple(names), cells.labels, long[1])
        solved = from_arrays("solved", Solved, content, arrays)
        groups = margins_of([tuple(group) for group in content["margins"]], range(n))
        _need([list(group) for group in groups] == content["margins"], "margins")
        every = (Levels.every(own, cells.shape) for own in groups)
        levels = tuple(own.where(cells.index) for own in every)
        check_numbers(solved.t, sum(own.size for own in levels), "t")
        check_solution(solved)
        error, rank = solved.cell_error, solved.rank
        _need(not np.isnan(solved.t).any(), "t")
        _need(type(error) is float and error >= 0.0, "cell_error")
        _need(type(solved.is_bound) is bool, "is_bound")
        _need(rank is None or is_count(rank), "rank")
        return cls(cells, levels, solved, None, long, **options_of(content))

    # --------------------------------------------------------------------- appearance
    def summary(self) -> dict[str, str]:
        """The fit in words, line by line."""
        n = math.prod(self.shape)
        is_counted = self._is_whole or n <= MOST_CELLS
        return {
            "table": " x ".join(map(str, self.shape)),
            "margins": margins_in_words(self.margins),
            "missing": f"{self.n_missing:,} of {counted(n, 'cell')}",
            **self._quality(),
            "converged": "yes" if self.converged else "no",
            **self._lost(self.n_undetermined if is_counted else 0),
        }


def _labels_to_json(labels: Any) -> Any:
    """Labels for JSON; dates are whole numbers beside their unit."""
    dates = None if labels is None else np.asarray(labels)
    if dates is None or dates.dtype.kind != "M":
        return labels_to_json(labels)
    return {
        "unit": np.datetime_data(dates.dtype)[0],
        "dates": dates.view("i8").tolist(),
    }


def _labels_from_json(labels: Any, n: int) -> AnyArray:
    if not isinstance(labels, dict):
        return array_of(labels, n)
    dates = array_of(labels.get("dates"), n)
    is_date = labels.get("unit") in ("D", "s", "ms", "us", "ns") and dates.dtype == "i8"
    _need(is_date, "labels")
    return dates.view(f"datetime64[{labels['unit']}]")


def mode_in_words(mode: Any) -> str:
    """A mode by its name, or by its number."""
    return f"mode {mode}" if isinstance(mode, int) else repr(mode)


def margins_in_words(margins: Iterable[Iterable[Any]]) -> str:
    """Sets of modes as text: ``{site, year} {month}``."""
    return " ".join("{" + ", ".join(map(str, margin)) + "}" for margin in margins)


def _check_size(shape: Sequence[int]) -> None:
    if math.prod(shape) > MOST_CELLS:
        raise TableTooLargeError(
            f"{' x '.join(f'{n:,}' for n in shape)} cells are too many to look at "
            "each. fit.predict and fit.fate take the cells that are needed."
        )


def _like(T: Any, cells: Any) -> Any:
    """Cells in an array of the kind of T."""
    return np.ma.masked_invalid(cells) if isinstance(T, np.ma.MaskedArray) else cells
