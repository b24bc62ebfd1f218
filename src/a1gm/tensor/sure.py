"""Uncertainty of a fit of several modes: cells, intervals, totals, indices, tests."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp

from a1gm._base.types import Floats, Ints
from a1gm._fit.place import FINITE, ZERO
from a1gm._fit.sure.arguments import Dispersion, Which, check_dispersion
from a1gm._fit.sure.goodness import GoodnessOfFit
from a1gm._fit.sure.intervals import quantiles, tails
from a1gm._fit.sure.uncertainty import Index, TotalsWithErrors
from a1gm.exceptions import DataError, ParameterError, TableTooLargeError
from a1gm.tensor.problem import MOST_CELLS
from a1gm.tensor.solve import Eliminated, Inverse, hessian

if TYPE_CHECKING:
    from a1gm.tensor.result import TensorFit

Values = Callable[[Sequence[Ints]], Floats]
MOST_LEVELS = 6000  # beside the largest margin
MOST_SHARES = 1 << 27  # numbers in memory


class TensorUncertainty(GoodnessOfFit):
    """How sure a fit of several modes is. Made by ``fit.uncertainty()``.

    The model behind the divergence is the over-dispersed Poisson; all errors are first
    order. They are equal to those of Poisson regression with the same margins.

    Attributes
    ----------
    dispersion : float
        Variance over mean of a cell of weight 1.
    dof : int
        Degrees of freedom: observed cells less the rank of their design.
    """

    def __init__(self, fit: TensorFit, dispersion: Dispersion = "pearson") -> None:
        is_number = check_dispersion(dispersion)
        self._fit = fit
        p = fit._stay
        n, largest = int(p.sizes.sum()), int(p.sizes.max())
        if n - largest > MOST_LEVELS or (n - largest) * largest > MOST_SHARES:
            raise TableTooLargeError(
                f"Errors need a matrix of {n - largest:,} x {largest:,} numbers for "
                "the levels of these margins. Fit fewer levels, or margins of fewer "
                "modes."
            )
        f, _ = p.fitted(fit._solved.t)
        self._hessian = Eliminated(hessian(p, f), p.starts, fit._known.rank)
        self.dof = p.n_cells - self._hessian.rank
        x, v, f = self._observed()
        with np.errstate(divide="ignore", invalid="ignore"):
            chi2 = np.where(f > 0.0, (x - f) ** 2 / f, 0.0)
        self._chi2 = float((v * chi2).sum())
        self._unit = float(dispersion) or 1.0 if is_number else 1.0
        self.dispersion = float(dispersion) if is_number else 1.0
        if dispersion in ("pearson", "deviance"):
            if self.dof < 1:
                raise DataError(
                    f"The table has {self.dof} degrees of freedom (observed cells less "
                    "the rank of the margins), so its dispersion cannot be estimated.",
                    advice='Pass dispersion= a known number, or "poisson".',
                )
            chosen = self.pearson_chi2 if dispersion == "pearson" else self.deviance
            self.dispersion = chosen / self.dof

    def _observed(self) -> tuple[Floats, Floats, Floats]:
        """Values, weights and fitted values of the cells that are fitted."""
        fit = self._fit
        stays = ~fit._known.given_up
        cells = fit._cells
        x, f = cells.values[stays], fit._observed_fit[stays]
        if cells.weights is None or cells.exposed:
            return x, np.ones(len(x)), f
        return x, cells.weights[stays], f

    @cached_property
    def _inverse(self) -> Inverse:
        return Inverse(self._hessian)

    @cached_property
    def _scale(self) -> float:
        """What turns variances of the solved problem into those of the data."""
        fit = self._fit
        e = math.frexp(float(fit._cells.values.max()))[1]
        if fit._cells.weights is not None and not fit._cells.exposed:
            e += math.frexp(float(fit._cells.weights.max()))[1]
        return math.ldexp(1.0, -e)

    @property
    def pearson_chi2(self) -> float:
        """Pearson's statistic of the observed cells."""
        return self._chi2

    @property
    def deviance(self) -> float:
        """Twice the divergence."""
        return self._fit.deviance

    def _share_below(self, unit: float) -> float:
        _, _, f = self._observed()
        return float((f < unit).mean())

    # -------------------------------------------------------------------------- cells
    def _levels(self, index: Sequence[Ints]) -> tuple[list[Ints], Any]:
        """Levels of cells in the vector of all groups, and their fates."""
        levels = self._fit._levels_of(index)
        fates = self._fit._known.fates(levels)
        starts = self._fit._problem.starts
        return [row + a for row, a in zip(levels, starts, strict=False)], fates

    def _log_variance(self, index: Sequence[Ints]) -> Floats:
        """Variance of the logarithm of cells; 0 for zeros, NaN without a value."""
        levels, fates = self._levels(index)
        found = np.where(fates == ZERO, 0.0, np.nan)
        own = fates == FINITE
        if own.any():
            some = [row[own] for row in levels]
            variance = self._inverse.log_variance(some)
            found[own] = self.dispersion * self._scale * variance
        return found

    def standard_error(self, index: Any, *, prediction: bool = False) -> Any:
        """Standard error of the fitted values of cells.

        Parameters
        ----------
        index : sequence with one entry per mode
            As in ``fit.fate``.
        prediction : bool, default=False
            Add the scatter of the cell itself around its mean.

        Returns
        -------
        float, or ndarray
            0 for cells that are 0, NaN for those without a value.
        """
        places = self._fit._places(index)
        flat = [k.ravel() for k in places]
        value = self._fit._fitted(flat)
        variance = value**2 * self._log_variance(flat)
        if prediction:
            variance = variance + self.dispersion * value
        found = np.sqrt(variance).reshape(places[0].shape)
        return found if found.ndim else float(found)

    def interval(self, T: Any, level: float = 0.95) -> tuple[Any, Any]:
        """Bounds of where the values of missing cells will lie.

        Parameters
        ----------
        T : array of the fitted shape
        level : float, default=0.95
            The share of cells that lie between the bounds.

        Returns
        -------
        lower, upper : arrays like T
            T with its holes filled with the bounds.
        """
        lower, upper = (self._fit._fill(T, values) for values in self._tails(level))
        return lower, upper

    def _tails(self, level: float) -> tuple[Values, Values]:
        """The bounds of a level, as functions of positions of cells."""
        low, high = tails(level)
        return partial(self._bounds, low), partial(self._bounds, high)

    def _bounds(self, tail: float, index: Sequence[Ints]) -> Floats:
        with np.errstate(all="ignore"):
            return quantiles(
                self._fit._fitted(index),
                self._log_variance(index),
                self.dispersion,
                tail,
            )

    # ------------------------------------------------------------------------- totals
    def totals(self, by: Any = (), cells: Which = "missing") -> TotalsWithErrors:
        """Totals of the fitted values of many cells, with their errors.

        Parameters
        ----------
        by : mode, sequence of modes, or "all", default=()
            One total per level of these modes together; one of all cells without any.
        cells : {"missing", "fitted"}
            Of the missing cells or of all.

        Returns
        -------
        TotalsWithErrors
            Cells without a value are in no total, and are counted below the table.
        """
        fit = self._fit
        if cells not in ("missing", "fitted"):
            raise ParameterError(f'cells must be "missing" or "fitted", got {cells!r}.')
        chosen = self._modes(by)
        pieces = list(fit._missing("totals"))
        if cells == "fitted":
            n = math.prod(fit.shape)
            if n > MOST_CELLS:
                raise fit._too_large("totals")
            pieces = [np.unravel_index(np.arange(n), fit.shape)]
        lengths = tuple(fit.shape[k] for k in chosen)
        n_totals = math.prod(lengths)
        sums = _Sums(self._hessian, n_totals)
        n_known, n_cells = np.zeros((2, n_totals))
        for index in pieces:
            owner = np.zeros(len(index[0]), np.int64)
            for k in chosen:
                owner = owner * fit.shape[k] + index[k]
            values = fit._fitted(index)
            levels, fates = self._levels(index)
            has_value = ~np.isnan(values)
            n_known += np.bincount(owner[has_value], minlength=n_totals)
            n_cells += np.bincount(owner, minlength=n_totals)
            own = (fates == FINITE) & has_value
            sums.add([row[own] for row in levels], values[own], owner[own])
        value, estimation = sums.result(self.dispersion * self._scale)
        value[(n_known == 0) & (n_cells > 0)] = np.nan
        estimation[np.isnan(value)] = np.nan
        process = self.dispersion * value
        return TotalsWithErrors(
            labels=self._labels(chosen),
            value=value,
            se=np.sqrt(estimation + process),
            se_estimation=np.sqrt(estimation),
            se_process=np.sqrt(process),
            _of=", ".join(str(fit.modes[k]) for k in chosen) or "total",
            _backend=None if fit._long is None else fit._long.backend,
            _n_left_out=int((n_cells - n_known).sum()),
        )

    def _modes(self, by: Any) -> list[int]:
        modes = self._fit.modes
        if isinstance(by, str) and by == "all" and "all" not in modes:
            return []
        names = by if isinstance(by, tuple | list) and by not in modes else (by,)
        for name in names:
            if name not in modes:
                raise ParameterError(f"by names {name!r}; the modes are {modes}.")
        return [modes.index(name) for name in names]

    def _labels(self, chosen: Sequence[int]) -> list[Any]:
        fit = self._fit
        if not chosen:
            return ["all"]
        names = [
            list(range(fit.shape[k])) if fit.labels[k] is None else list(fit.labels[k])
            for k in chosen
        ]
        if len(chosen) == 1:
            return names[0]
        lengths = [len(own) for own in names]
        return [
            tuple(own[int(i)] for own, i in zip(names, at, strict=True))
            for at in np.ndindex(*lengths)
        ]

    # ------------------------------------------------------------------------ indices
    def index(self, mode: Any = 0, base: Any = 0) -> Index:
        """Factors of a mode that has a margin of its own, relative to one level.

        Parameters
        ----------
        mode : name or number
            The mode.
        base : label, int, or None, default=0
            The level that is 1.

        Returns
        -------
        Index
        """
        fit = self._fit
        k = self._modes((mode,))[0]
        if (k,) not in fit._groups:
            raise ParameterError(
                f"Mode {mode!r} acts together with others, so it has no index of its "
                f"own. The margins are {fit.margins}."
            )
        g = fit._groups.index((k,))
        p, t = fit._problem, fit._solved.t
        start, n = int(p.starts[g]), fit.shape[k]
        factor = t[start : start + n]
        finder = fit._finder(k)
        at = finder.base(base, factor > 0.0)
        direction = np.zeros((int(p.starts[-1]), n))
        own = np.arange(n)
        direction[start + own, own] += 1.0
        direction[start + at] -= 1.0
        solved = self._hessian.solve(direction)
        variance = np.maximum(np.einsum("ij,ij->j", direction, solved), 0.0)
        value = np.where(p.has_cells[start : start + n], factor / factor[at], np.nan)
        se = value * np.sqrt(self.dispersion * self._scale * variance)
        return Index(
            labels=finder.names,
            value=value,
            se=se,
            _of=str(mode),
            _backend=None if fit._long is None else fit._long.backend,
        )


class _Sums:
    """Sums of fitted cells, and the variances of their logarithms' errors."""

    def __init__(self, hessian: Eliminated, n: int) -> None:
        self._E, self._n = hessian, n
        self._big: Any = sp.csr_array((n, len(hessian.d)))
        self._rest = np.zeros((n, len(hessian.rest)))
        self._value = np.zeros(n)
        self._place = np.full(len(hessian.rest) + len(hessian.d), -1)
        self._place[hessian.rest] = np.arange(len(hessian.rest))

    def add(self, levels: Sequence[Ints], values: Floats, owner: Ints) -> None:
        """Add cells to their sums."""
        if not len(values):
            return
        own = self._E.own
        self._value += np.bincount(owner, values, self._n)
        for row in levels:
            if own.start <= int(row[0]) < own.stop:
                shape = self._n, len(self._E.d)
                more = sp.csr_array((values, (owner, row - own.start)), shape)
                self._big = self._big + more
            else:
                np.add.at(self._rest, (owner, self._place[row]), values)

    def result(self, unit: float) -> tuple[Floats, Floats]:
        """Sums, and their variances."""
        E = self._E
        rest = self._rest - self._big @ E.q
        away = np.einsum("ij,ij->i", rest, E.solve_rest(rest.T).T)
        own = np.asarray(self._big.multiply(self._big) @ (1.0 / E.d)).ravel()
        return self._value, unit * np.maximum(own + away, 0.0)
