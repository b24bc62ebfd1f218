"""Uncertainty of a fit of several modes: cells, intervals, totals, indices, tests."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import cached_property, partial
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp

from a1gm._base.types import Floats, Ints
from a1gm._fit.place import FINITE, ZERO
from a1gm._fit.sure.arguments import Dispersion, Which, check_dispersion, check_totals
from a1gm._fit.sure.goodness import GoodnessOfFit
from a1gm._fit.sure.information import check_sum
from a1gm._fit.sure.intervals import quantiles, tails
from a1gm._fit.sure.labelled import Index, TotalsWithErrors
from a1gm._observe.patterns import weighted_counts
from a1gm.exceptions import NotRepresentableError, ParameterError, TableTooLargeError
from a1gm.tensor.read import mode_of
from a1gm.tensor.solve import PIVOT, Eliminated

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
        check_dispersion(dispersion)
        self._fit = fit
        p = fit._known.stay
        n, largest = int(p.sizes.sum()), int(p.sizes.max())
        if n - largest > MOST_LEVELS or (n - largest) * largest > MOST_SHARES:
            raise TableTooLargeError(
                f"Errors need a matrix of {n - largest:,} x {largest:,} numbers for "
                "the levels of these margins. Fit fewer levels, or margins of fewer "
                "modes."
            )
        self._hessian = Eliminated(p, *p.fitted(fit._found.t), fit._known.rank)
        if fit._known.rank is not None and self._hessian.least_pivot < PIVOT:
            raise NotRepresentableError(
                "Parts of this table are linked only by cells so small that float64 "
                "does not hold the errors across them. Fit such parts one by one."
            )
        self.dof = len(p.s) - self._hessian.rank
        self._choose(dispersion, "the rank of the margins")
        self._process = self.dispersion
        self._backend = None if fit._long is None else fit._long.backend

    @property
    def pearson_chi2(self) -> float:
        """Pearson's statistic of the observed cells."""
        return float((self._fit._observed.residuals("pearson") ** 2).sum())

    @property
    def deviance(self) -> float:
        """Twice the divergence."""
        return self._fit.deviance

    def _share_below(self, unit: float) -> float:
        observed, own = self._fit._observed, ~self._fit._known.given_up
        return float((observed.weight * observed.fitted < unit)[own].mean())

    # -------------------------------------------------------------------------- cells
    @cached_property
    def _shares(self) -> tuple[Floats, Floats]:
        """What eliminated levels are in terms of others: q G, and their variances."""
        E, q = self._hessian, self._hessian.q.toarray()
        qG = q @ E.inverse
        return qG, 1.0 / E.d + np.einsum("ij,ij->i", qG, q)

    @property
    def _unit_variance(self) -> float:
        """What turns variances of the solved problem into those of the data."""
        return float(np.ldexp(self.dispersion, -self._fit._known.problem.unit))

    def _log_variance(self, index: Sequence[Ints]) -> Floats:
        """Variance of the logarithm of cells; 0 for zeros, NaN without a value."""
        levels, fates = self._fit._levels_and_fates(index)
        found, own = np.where(fates == ZERO, 0.0, np.nan), fates == FINITE
        E, G, (qG, of_big) = self._hessian, self._hessian.inverse, self._shares
        big = E.starts.tolist().index(E.own.start)
        i = levels[big][own] - E.own.start
        rest = [np.searchsorted(E.rest, row[own]) for row in levels]
        del rest[big]
        variance: Floats = of_big[i]
        for k, row in enumerate(rest):
            variance = variance + G[row, row] - 2.0 * qG[i, row]
            for other in rest[k + 1 :]:
                variance += 2.0 * G[row, other]
        found[own] = self._unit_variance * np.maximum(variance, 0.0)
        return found

    def _variance(self, directions: Any) -> Floats:
        """Variances of sums of logarithms of factors, a sparse row each."""
        E = self._hessian
        own = directions[:, E.own]
        rest = (directions[:, E.rest] - own @ E.q).toarray()
        away = np.einsum("ij,ij->i", rest, E.solve_rest(rest.T).T)
        of_own = np.asarray(own.multiply(own) @ (1.0 / E.d)).ravel()
        found: Floats = self._unit_variance * np.maximum(of_own + away, 0.0)
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
        check_sum(float(self._fit._cells.values.sum()))
        places = self._fit._places(index)
        flat = [k.ravel() for k in places]
        value = self._fit._fitted(flat)
        variance = np.where(value == 0.0, 0.0, value**2 * self._log_variance(flat))
        return self._errors_of(value, variance, places[0].shape, prediction)

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
        lower, upper = self._tails(level)
        return self._fit._fill(T, lower), self._fit._fill(T, upper)

    def _tails(self, level: float) -> list[Values]:
        """The bounds of a level, as functions of positions of cells."""
        return [partial(self._bounds, tail) for tail in tails(level)]

    def _bounds(self, tail: float, index: Sequence[Ints]) -> Floats:
        with np.errstate(all="ignore"):
            values, of_log = self._fit._fitted(index), self._log_variance(index)
            return quantiles(values, of_log, self.dispersion, tail)

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
            Cells without a value are in no total; ``unknown`` counts them.
        """
        check_totals("all", cells)
        check_sum(float(self._fit._cells.values.sum()))
        fit, chosen = self._fit, self._modes(by)
        at = fit._missing("totals")
        if cells == "fitted":
            at = np.arange(math.prod(fit.shape))
        lengths = [fit.shape[k] for k in chosen]
        n = math.prod(lengths)
        directions: Any = sp.csr_array((n, int(fit._starts[-1])))
        value, n_known, n_cells = np.zeros((3, n))
        for index in fit._pieces(at):
            owner = np.zeros(len(index[0]), np.int64)
            if chosen:
                owner = np.ravel_multi_index([index[k] for k in chosen], lengths)
            f = fit._fitted(index)
            levels, fates = fit._levels_and_fates(index)
            known, own = ~np.isnan(f), (fates == FINITE) & ~np.isnan(f)
            n_cells += np.bincount(owner, minlength=n)
            n_known += np.bincount(owner[known], minlength=n)
            value += weighted_counts(owner[known], f[known], n)
            for row in levels:
                more = f[own], (owner[own], row[own])
                directions = directions + sp.csr_array(more, directions.shape)
        value[(n_known == 0) & (n_cells > 0)] = np.nan
        of: Any = tuple(str(fit.modes[k]) for k in chosen)
        names = [fit._finders[k].names for k in chosen]
        labels: Any = list(product(*names))
        if len(chosen) < 2:
            of, labels = [*of, "total"][0], [*names, ["all"]][0]
        variance, unknown = self._variance(directions), n_cells - n_known
        n_left_out = int(unknown.sum())
        return self._totals_of(
            of, labels, value, variance, n_left_out, unknown if n_left_out else None
        )

    def _modes(self, by: Any) -> list[int]:
        modes = self._fit.modes
        if isinstance(by, str) and by == "all" and "all" not in modes:
            return []
        is_one = not isinstance(by, list | np.ndarray)
        is_one = is_one and (not isinstance(by, tuple) or by in modes)
        found = [mode_of(one, modes, "by") for one in ((by,) if is_one else by)]
        if len(set(found)) < len(found):
            raise ParameterError(f"by names a mode twice: {by!r}.")
        return found

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
            ``labels``, ``value`` and ``se``; NaN where the data do not determine how
            the two compare.
        """
        fit = self._fit
        k = mode_of(mode, fit.modes, "mode")
        if (k,) not in fit._groups:
            raise ParameterError(
                f"Mode {mode!r} acts together with others, so it has no index of its "
                f"own. The margins are {fit.margins}."
            )
        n, finder = fit.shape[k], fit._finders[k]
        at = finder.base(base, np.nan_to_num(fit.factors[fit.modes[k]]) > 0.0)
        # A cell with the base, and the same cell with each other level.
        own = (fit._cells.index[k] == at) & (fit._cells.values > 0.0)
        index = [np.full(n, row[own.argmax()]) for row in fit._cells.index]
        index[k] = np.arange(n)
        levels, fates = fit._levels_and_fates(index)
        factor = np.where(fates == FINITE, fit.factors[fit.modes[k]], np.nan)
        value = factor / factor[at]
        own = levels[fit._groups.index((k,))]
        plus, minus = (
            sp.csr_array((np.ones(n), (np.arange(n), to)), (n, int(fit._starts[-1])))
            for to in (np.maximum(own, 0), np.full(n, own[at]))
        )
        return Index(
            labels=finder.names,
            value=value,
            se=value * np.sqrt(self._variance(plus - minus)),
            _of=str(fit.modes[k]),
            _backend=self._backend,
        )
