"""`TensorFit`: the fit of a table with any number of modes."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property, partial
from typing import Any

import numpy as np

from a1gm._base.checks import is_array, is_count, need
from a1gm._base.float_range import as_float32, check_cells
from a1gm._base.types import AnyArray, Floats, Ints, OnUndetermined
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
from a1gm._fit.place import FATES, UNBOUNDED, UndeterminedCells, decided, with_exposure
from a1gm._fit.residuals import Cells as Compared
from a1gm._fit.residuals import Kind, check_kind
from a1gm._fit.save import array_of, check_numbers, check_solution, options_of
from a1gm._fit.sure.arguments import Dispersion
from a1gm._observe.codec import from_arrays, labels_from_json, labels_to_json, to_arrays
from a1gm._rows.labels import Lookup, paired
from a1gm._rows.rows import check_values
from a1gm.exceptions import DataError, ParameterError, TableTooLargeError, WeightsError
from a1gm.tensor.known import Known, n_parameters
from a1gm.tensor.problem import Levels
from a1gm.tensor.read import Cells, Listed, dense_cells, margins_of
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
        self.margins = tuple(
            tuple(self.modes[k] for k in group) for group in self._groups
        )

    @cached_property
    def _known(self) -> Known:
        """What the data determine; not needed where positive cells decide all."""
        return Known(self._cells.problem(self._levels), self._found.rank)

    @property
    def _starts(self) -> Ints:
        """Where the levels of each margin begin in the vector of all."""
        return np.cumsum([0, *(own.size for own in self._levels)])

    @property
    def shape(self) -> tuple[int, ...]:
        """Levels of each mode."""
        return self._cells.shape

    # --------------------------------------------------------------- how it was solved
    @property
    def cell_error(self) -> float:
        """Bound on the relative error of fitted cells, rounding included.

        An estimate where more than 700 levels lie beside the largest margin.
        """
        return self._found.cell_error

    @property
    def cell_error_is_bound(self) -> bool:
        """Whether ``cell_error`` is a bound, not an estimate."""
        return self._found.is_bound

    @property
    def attained(self) -> bool:
        """Whether a minimiser exists; False when observed zeros had to be given up."""
        return self._found.rank is not None or self._known.n_approached == 0

    # ------------------------------------------------------------------------- factors
    @cached_property
    def factors(self) -> dict[Any, Floats]:
        """One array per margin, by its name, or by its names where modes act together.

        The first carries the units of the data, the others sum to 1; NaN for levels
        without an observed cell. Where margins share a mode, or the data leave scales
        free (``n_free``), other factors give the same cells: these are one choice.
        """
        found: dict[Any, Floats] = {}
        units = 1.0
        parts = np.split(self._found.t, self._starts[1:-1])
        for margin, own, t in zip(self.margins, self._levels, parts, strict=True):
            _check_size("factors", own.lengths)
            total = float(t.sum()) if found else 1.0
            units *= total
            shares = t / total if total > 0.0 else 1.0 / len(t)
            full = np.full(math.prod(own.lengths), np.nan)
            full[slice(None) if own.codes is None else own.codes] = shares
            name = margin[0] if len(margin) == 1 else margin
            found[name] = full.reshape(own.lengths)
        first = next(iter(found))
        with np.errstate(over="ignore"):
            found[first] = np.ldexp(found[first] * units, self._found.exponent)
        check_cells(found[first])
        return found

    def to_frames(self, backend: str | None = None) -> dict[Any, Any]:
        """The factors as frames of the library that the table came from.

        Parameters
        ----------
        backend : {"pandas", "polars", "pyarrow"}, optional
            The library; needed when the table was not a frame.

        Returns
        -------
        dict
            By the names of ``factors``: a frame with a row per level that has observed
            cells, its keys and its ``factor``.

        Examples
        --------
        >>> import numpy as np, a1gm
        >>> T = np.multiply.outer([1.0, 2.0], np.outer([1.0, 3.0], [2.0, 5.0]))
        >>> fit = a1gm.fit_tensor(T, names=["site", "year", "month"])
        >>> fit.to_frames("pandas")["year"]
           year  factor
        0     0    0.25
        1     1    0.75
        """
        long = self._long
        values = [np.asarray(finder.names) for finder in self._finders]
        if long is not None:
            values, backend = list(long.keys), backend or long.backend
        check_backend(backend)
        found = {}
        margins = zip(self._groups, self.factors.items(), strict=True)
        for group, (name, factor) in margins:
            codes = np.nonzero(~np.isnan(factor))
            levels = zip(group, codes, strict=True)
            keys = [(self.modes[k], values[k], own) for k, own in levels]
            found[name] = long_frame(backend, keys, ["factor"], [factor[codes]])
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
        if self._found.rank is not None:
            return True
        has_all = all(own.codes is None for own in self._levels)
        return has_all and self._known.is_whole

    def _fitted(self, index: Sequence[Ints], exposure: Any = None) -> Floats:
        """Fitted values of cells; NaN where the data do not determine them."""
        levels = [own.find(index) for own in self._levels]
        found, exponent = np.ones(len(index[0])), self._found.exponent
        for level, start in zip(levels, self._starts, strict=False):
            with np.errstate(over="ignore", invalid="ignore"):  # NaN or 0 by its fate
                found *= self._found.t[start + level]
        if self._cells.exposed or exposure is not None:
            exposure = self._exposure_at(index, exposure)
            share, power = np.frexp(exposure)  # rates alone may leave float64
            found, exponent = found * share, exponent + power
        with np.errstate(over="ignore"):
            found = np.ldexp(found, exponent)
        if not self._is_whole:
            decided(found, self._known.fates(levels))
        if exposure is not None:
            with_exposure(found, exposure)
        check_cells(found)
        return found

    def _levels_and_fates(self, index: Sequence[Ints]) -> tuple[list[Ints], Any]:
        """Levels of cells in the vector of all groups, and their fates."""
        levels = [own.find(index) for own in self._levels]
        fates = self._known.fates(levels)
        return [row + a for row, a in zip(levels, self._starts, strict=False)], fates

    @cached_property
    def _weights(self) -> Any:
        """Weights or exposures by positions; NaN where they are not known."""
        cells = self._cells
        if cells.every is not None:
            return cells.every
        return Listed.of(cells.index, cells.weights_or_ones, self.shape)

    def _exposure_at(self, index: Sequence[Ints], given: Any = None) -> Floats:
        """Exposures of cells: those of the fit, or other ones."""
        if given is None:
            found: Floats = self._weights[tuple(index)]
            is_listed = isinstance(self._weights, Listed) and self._long is None
            if is_listed and np.isnan(found).any():
                raise ParameterError(
                    "The exposures of missing cells are not known: pass exposure= to "
                    "fit.predict for the cells that are needed."
                )
            return found
        if not self._cells.exposed:
            raise ParameterError(
                "This fit was made without exposure. Leave exposure= out, or fit the "
                "table with it."
            )
        if ((given < 0.0) | np.isinf(given)).any():
            raise WeightsError("exposure must be finite and at least 0.")
        return np.asarray(given)

    @cached_property
    def _finders(self) -> tuple[Lookup, ...]:
        """Lookups of the levels that a user names, mode by mode."""
        modes = zip(self.modes, self.labels, self.shape, strict=True)
        return tuple(
            Lookup(f"{mode_in_words(mode)} level", labels, n)
            for mode, labels, n in modes
        )

    def _by_mode(self, index: Any) -> tuple[Any, ...]:
        if not isinstance(index, tuple | list) or len(index) != len(self.shape):
            raise ParameterError(
                f"A cell has one label or position per mode "
                f"({len(self.shape)} of them), got {index!r}."
            )
        return tuple(index)

    def _places(self, index: Any) -> tuple[Ints, ...]:
        """Positions of cells that are given by labels or positions, mode by mode."""
        pairs = zip(self._finders, self._by_mode(index), strict=True)
        return paired(*(finder.find(one) for finder, one in pairs))

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
        _, codes = self._levels_and_fates([k.ravel() for k in places])
        names = np.array(FATES, dtype=object)[codes].reshape(places[0].shape)
        return names if names.ndim else str(names)

    @cached_property
    def undetermined(self) -> UndeterminedCells:
        """Missing cells without a value: positions along each mode, and kind."""
        none = np.zeros(0, np.int64)
        at = none if self._is_whole else self._missing("undetermined")
        codes = self._each(at, lambda index: self._levels_and_fates(index)[1])
        own = codes >= UNBOUNDED
        return UndeterminedCells(*np.unravel_index(at[own], self.shape), codes[own])

    @property
    def n_missing(self) -> int:
        """Number of missing cells."""
        return math.prod(self.shape) - self._cells.n_observed

    @property
    def n_undetermined(self) -> int:
        """Number of missing cells that the data do not determine."""
        return len(self.undetermined)

    def _missing(self, what: str) -> Ints:
        """Positions of the missing cells in the flat table."""
        _check_size(what, self.shape)
        is_missing = np.ones(math.prod(self.shape), bool)
        is_missing[np.ravel_multi_index(self._cells.index, self.shape)] = False
        return np.flatnonzero(is_missing)

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
        _check_size("reconstruct", self.shape)
        every = np.arange(math.prod(self.shape))
        found: Floats = self._each(every, self._fitted)
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
        check_on_undetermined(on_undetermined)
        return self._fill(T, self._fitted, on_undetermined)

    def _fill(self, T: Any, values: Any, how: OnUndetermined | None = None) -> Any:
        cells = self._read(T)
        flat = cells.reshape(-1)
        at = np.flatnonzero(np.isnan(flat))
        if not len(at):
            return np.array(T, subok=True)  # of its own type
        flat[at] = self._each(at, values)
        left = at[np.isnan(flat[at])]
        if len(left):
            first = self._cells.name_of(np.unravel_index(left[0], self.shape))
            text = text_of_left_cells(len(left), first)
            warn_undetermined(text, how or self._on_undetermined)
        if getattr(T, "dtype", None) == np.float32:
            cells = as_float32(cells, lambda *at: self._cells.name_of(at))
        return _like(T, cells)

    def _read(self, T: Any) -> Floats:
        """The cells of an array of the fitted shape."""
        if isinstance(T, tuple) or hasattr(T, "coords") or hasattr(T, "columns"):
            raise DataError(
                f"An array of shape {self.shape} is needed, got a {type(T).__name__}. "
                "fit.predict fills the cells of a frame or of indices, fit.fill_long() "
                "the missing ones of a long table."
            )
        cells = dense_cells(T).copy()
        if cells.shape != self.shape:
            raise DataError(
                f"T has shape {cells.shape}, but the fit is of shape {self.shape}: "
                "rows and columns of other tables have no factors here."
            )
        bad = np.nonzero((cells < 0.0) | np.isinf(cells))
        named = Cells(bad, cells[bad], self.shape, self.modes, self.labels)
        check_values(named, named.values, None)
        return cells

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
        is_frame = hasattr(frame, "columns")
        keys = self._long and self.modes
        given: Any = read_keys(frame, keys) if is_frame else self._by_mode(frame)
        return predicted(self._finders, self._fitted, given, exposure)

    def _long_table(self) -> tuple[Long | None, int]:
        return self._long, len(self._cells.values)

    def _filled_cells(
        self, only_missing: bool, interval: float | None
    ) -> Iterator[tuple[Any, ...]]:
        at = self._missing("fill_long")
        if not only_missing:
            at = np.arange(math.prod(self.shape))
        bounds = [] if interval is None else self.uncertainty()._tails(interval)
        found = [self._each(at, values) for values in (self._fitted, *bounds)]
        if not only_missing:
            own = np.ravel_multi_index(self._cells.index, self.shape)
            for column in found:
                column[own] = self._cells.values
        yield *np.unravel_index(at, self.shape), *found

    # ----------------------------------------------------------------- how well it fits
    def _compared(self, index: Any, x: Floats, v: Floats | None) -> Compared:
        """Cells beside their fitted values, in units of the data."""
        nowhere, exposed = np.zeros(0, np.int64), self._cells.exposed
        weights = np.ones(len(x)) if v is None or exposed else v
        fitted = self._fitted(index, v if exposed else None)
        return Compared(nowhere, nowhere, x, fitted, weights, weights)

    @cached_property
    def _observed(self) -> Compared:
        cells = self._cells
        return self._compared(cells.index, cells.values, cells.weights)

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
        found, seen = np.full(self.shape, np.nan), np.nonzero(~np.isnan(cells))
        v = None if self._cells.weights is None else self._weights[seen]
        found[seen] = self._compared(seen, cells[seen], v).residuals(kind)
        if v is not None:
            found[seen] = np.where(v > 0.0, found[seen], np.nan)
        return _like(T, found)

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

    # ------------------------------------------------------------------------ files
    def _to_arrays(self) -> tuple[dict[str, Any], dict[str, AnyArray]]:
        cells, long = self._cells, self._long
        arrays = {"index": np.stack(cells.index), "values": cells.values}
        if cells.weights is not None:
            arrays["weights"] = cells.weights
        if isinstance(cells.every, Listed):
            codes, every = cells.every.levels.codes, cells.every.values
            arrays["listed"] = np.arange(len(every)) if codes is None else codes
            arrays["every"] = every
        elif cells.every is not None:
            arrays["every"] = cells.every.ravel()
        content = {
            "shape": list(cells.shape),
            "modes": labels_to_json(cells.modes),
            "labels": [labels_to_json(own) for own in cells.labels],
            "margins": [list(group) for group in self._groups],
            "exposed": cells.exposed,
            "solved": to_arrays("solved", self._found, arrays),
            "long": long and [labels_to_json(long.names), long.backend],
            "options": {"tol": self.tol, "on_undetermined": self._on_undetermined},
        }
        return content, arrays

    @classmethod
    def _from_arrays(
        cls, content: dict[str, Any], arrays: dict[str, AnyArray]
    ) -> TensorFit:
        """The fit of a file, every part of it checked."""
        shape, index = tuple(content["shape"]), arrays["index"]
        n, m = len(shape), len(arrays["values"])
        _need(all(is_count(k, 1) for k in shape) and n >= 1, "shape")
        _need(is_array(index, "i8", (n, m)) and m >= 1, "index")
        _need(((index >= 0) & (shape > index.T).T).all(), "index")
        labels = tuple(
            None if own is None else array_of(own, k)
            for own, k in zip(content["labels"], shape, strict=True)
        )
        modes = tuple(labels_from_json(content["modes"], n, unique=False) or ())
        _need(len(set(modes)) == n, "modes")
        weights, exposed = arrays.get("weights"), content["exposed"]
        _need(exposed is False or (exposed is True and weights is not None), "exposed")
        every: Any = arrays.get("every")
        codes = arrays.get("listed")
        if every is not None:
            n_cells = math.prod(shape)
            n_every = n_cells if codes is None else len(codes)
            check_numbers(every, n_every, "every")
            if codes is not None:
                _need(is_array(codes, "i8", (n_every,)) and n_every >= 1, "listed")
                _need(codes[0] >= 0 and codes[-1] < n_cells, "listed")
                _need((codes[1:] > codes[:-1]).all(), "listed")
                every = Listed(Levels(tuple(range(n)), shape, codes), every)
            else:
                every = every.reshape(shape)
        given = tuple(index), arrays["values"], shape, modes, labels, weights, exposed
        cells = Cells(*given, every=every)
        solved = from_arrays("solved", Solved, content, arrays)
        groups = margins_of([tuple(group) for group in content["margins"]], range(n))
        _need([list(group) for group in groups] == content["margins"], "margins")
        levels = tuple(Levels.every(own, shape).where(cells.index) for own in groups)
        for name, found, size in (
            ("values", cells.values, m),
            ("weights", cells.weights_or_ones, m),
            ("t", solved.t, sum(own.size for own in levels)),
        ):
            check_numbers(found, size, name)
            _need(not np.isnan(found).any(), name)
        _need(bool(cells.weights_or_ones.all()), "weights")
        check_solution(solved)
        error, rank, exponent = solved.cell_error, solved.rank, solved.exponent
        _need(type(error) is float and error >= 0.0, "cell_error")
        _need(type(solved.is_bound) is bool, "is_bound")
        _need(rank is None or is_count(rank), "rank")
        _need(type(exponent) is int and abs(exponent) < 1 << 12, "exponent")
        long = content["long"]
        if long is not None:
            _need(long[1] in BACKENDS, "long")
            names = labels_from_json(long[0], n + 1, unique=False) or ()
            long = Long(tuple(names), labels, long[1])
        return cls(cells, levels, solved, None, long, **options_of(content))

    # --------------------------------------------------------------------- appearance
    def summary(self) -> dict[str, str]:
        """The fit in words, line by line."""
        n = math.prod(self.shape)
        lines = {
            "table": " x ".join(map(str, self.shape)),
            "margins": margins_in_words(self.margins),
            "missing": f"{self.n_missing:,} of {counted(n, 'cell')}",
            **self._quality(),
            "converged": "yes" if self.converged else "no",
        }
        if not self._is_whole and n <= MOST_CELLS and self.n_undetermined:
            lines["cannot be known"] = counted(self.n_undetermined, "missing cell")
        if not self.attained:
            lines["zeros given up"] = f"{self._known.n_approached:,}"
        return lines


def mode_in_words(mode: Any) -> str:
    """A mode by its name, or by its number."""
    return f"mode {mode}" if isinstance(mode, int) else repr(mode)


def margins_in_words(margins: Iterable[Iterable[Any]]) -> str:
    """Sets of modes as text: ``{site, year} {month}``."""
    return " ".join("{" + ", ".join(map(str, margin)) + "}" for margin in margins)


def _check_size(what: str, shape: Sequence[int]) -> None:
    if math.prod(shape) > MOST_CELLS:
        raise TableTooLargeError(
            f"{what}: the table has {' x '.join(f'{n:,}' for n in shape)} cells, too "
            "many to look at each. fit.predict and fit.fate take the cells that are "
            "needed."
        )


def _like(T: Any, cells: Any) -> Any:
    """Cells in an array of the kind of T."""
    return np.ma.masked_invalid(cells) if isinstance(T, np.ma.MaskedArray) else cells
