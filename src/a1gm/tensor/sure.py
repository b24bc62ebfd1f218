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
from a1gm._fit.place import FINITE
from a1gm._fit.sure.arguments import Dispersion, Which, check_dispersion, check_totals
from a1gm._fit.sure.gamma import quantiles
from a1gm._fit.sure.goodness import GoodnessOfFit
from a1gm._fit.sure.intervals import tails
from a1gm._fit.sure.labelled import Index, TotalsWithErrors
from a1gm._observe.patterns import weighted_counts
from a1gm.exceptions import NotRepresentableError, ParameterError, TableTooLargeError
from a1gm.tensor.hessian import Eliminated
from a1gm.tensor.problem import design
from a1gm.tensor.read import mode_of
from a1gm.tensor.solve import rank_of

if TYPE_CHECKING:
    from a1gm.tensor.result import TensorFit

MOST_LEVELS = 6000  # beside the largest margin
AT_ONCE = 1 << 12  # totals
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
        p, rank = fit._known.stay, fit._known.rank
        self._fit, self._scatter, self._sizes = fit, fit._observed, p.sizes
        n, largest = int(p.sizes.sum()), int(p.sizes.max())
        if n - largest > MOST_LEVELS or (n - largest) * largest > MOST_SHARES:
            raise TableTooLargeError(
                f"Errors of these margins need {n - largest:,} x {largest:,} numbers. "
                "Fit fewer levels, or margins of fewer modes."
            )
        rank = rank_of(p) if rank is None else rank
        f, margins = p.fitted(fit._found.t)
        self._hessian = Eliminated(p, f, margins, rank)
        if not self._hessian.finds_moves(p, f):
            raise NotRepresentableError(
                "Parts of this table are linked only by cells so small that float64 "
                "does not hold the errors across them. Fit such parts one by one."
            )
        self.dof = len(p.s) - self._hessian.rank
        self._choose(dispersion, "the rank of the margins")
        self._backend = None if fit._long is None else fit._long.backend

    def _share_below(self, unit: float) -> float:
        means = self._scatter.weight * self._scatter.fitted
        return float((means < unit)[~self._fit._known.given_up].mean())

    # -------------------------------------------------------------------------- cells
    @cached_property
    def _shares(self) -> tuple[Floats, Floats]:
        """What eliminated levels are in terms of others: q G, and their variances."""
        E, q = self._hessian, self._hessian.q.toarray()
        qG = q @ E.inverse
        return qG, 1.0 / E.d + np.einsum("ij,ij->i", qG, q)

    def _log_variance(self, index: Sequence[Ints], value: Floats) -> Floats:
        """Variance of the logarithm of cells; 0 for zeros, NaN without a value."""
        found, own, E = 0.0 * value, value > 0.0, self._hessian
        G, (qG, of_big) = E.inverse, self._shares
        levels, big = self._fit._find([k[own] for k in index]), self._sizes.argmax()
        i = levels.pop(int(big))
        starts = np.cumsum([0, *np.delete(self._sizes, big)])
        rest = [row + start for row, start in zip(levels, starts, strict=False)]
        pairs: Any = sum(G[a, b] for a in rest for b in rest)
        crossed: Any = sum(qG[i, a] for a in rest)
        variance = np.maximum(of_big[i] + pairs - 2.0 * crossed, 0.0)
        found[own] = self.dispersion * variance
        return found

    def _variance(self, directions: Any) -> Floats:
        """Variances of sums of logarithms of factors, a sparse row each."""
        E, n = self._hessian, directions.shape[0]
        parts = [np.zeros(0)]
        for start in range(0, n, AT_ONCE):
            some = directions[start : start + AT_ONCE]
            own = some[:, E.own]
            rest = (some[:, E.rest] - own @ E.q).toarray()
            away = np.einsum("ij,ij->i", rest, rest @ E.inverse)
            parts.append(np.asarray(own.multiply(own) @ (1.0 / E.d)).ravel() + away)
        found: Floats = self.dispersion * np.maximum(np.concatenate(parts), 0.0)
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
        places = self._fit._places(*self._fit._by_mode(index))
        flat = [k.ravel() for k in places]
        value = self._fit._fitted(flat)
        variance = value**2 * self._log_variance(flat, value)
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

    def _tails(self, level: float) -> list[Callable[..., Floats]]:
        """The bounds of a level, as functions of positions of cells."""
        return [partial(self._bounds, tail) for tail in tails(level)]

    def _bounds(self, tail: float, index: Sequence[Ints]) -> Floats:
        values = self._fit._fitted(index)
        with np.errstate(all="ignore"):
            of_log = self._log_variance(index, values)
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
        fit, chosen = self._fit, self._modes(by)
        at = fit._flat(cells)
        n = math.prod(fit.shape[k] for k in chosen)
        value, unknown, n_cells = np.zeros((3, n))
        directions: Any = sp.csr_array((n, int(self._sizes.sum())))
        for index in fit._pieces(at):
            owner = np.zeros_like(index[0])
            for k in chosen:
                owner = owner * fit.shape[k] + index[k]
            f = fit._fitted(index)
            n_cells += np.bincount(owner, minlength=n)
            unknown += np.bincount(owner[np.isnan(f)], minlength=n)
            own = f > 0.0
            owner, f = owner[own], f[own]
            value += weighted_counts(owner, f, n)
            sums = sp.csr_array((f, (owner, np.arange(len(f)))), (n, len(f)))
            directions = directions + sums @ self._design([k[own] for k in index])
        value[(unknown == n_cells) & (n_cells > 0)] = np.nan
        of: Any = tuple(str(fit.modes[k]) for k in chosen)
        names = [fit._finders[k].names for k in chosen]
        labels: Any = list(product(*names))
        if len(chosen) < 2:
            of, labels = [*of, "total"][0], [*names, ["all"]][0]
        variance = self._variance(directions)
        return self._totals_of(of, labels, value, variance, unknown, cells)

    def _design(self, index: Sequence[Ints]) -> Any:
        """Design rows of cells; wrong for those of levels without cells."""
        levels = [np.maximum(row, 0) for row in self._fit._find(index)]
        return design(levels, self._sizes.tolist())

    def _modes(self, by: Any) -> list[int]:
        """Numbers of the modes of totals."""
        modes = self._fit.modes
        if isinstance(by, str) and by == "all" and "all" not in modes:
            return []
        is_list = isinstance(by, list | np.ndarray)
        if not is_list and (not isinstance(by, tuple) or by in modes):
            by = (by,)
        found = [mode_of(one, modes, "by") for one in by]
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
                f"{fit.modes[k]!r} acts together with others, so it has no index: the "
                f"margins are {fit.margins}. Compare its totals with "
                'cells="fitted".'
            )
        n, finder, factor = fit.shape[k], fit._finders[k], fit.factors[fit.modes[k]]
        at = finder.base(base, np.nan_to_num(factor) > 0.0)
        # A cell with the base, and the same cell with each other level.
        own = (fit._cells.index[k] == at) & (fit._cells.values > 0.0)
        index = [np.full(n, row[own.argmax()]) for row in fit._cells.index]
        index[k] = np.arange(n)
        value = np.where(fit._codes(index) == FINITE, factor, np.nan) / factor[at]
        A = self._design(index)
        return Index(
            labels=finder.names,
            value=value,
            se=value * np.sqrt(self._variance(A - A[np.full(n, at)])),
            _of=str(fit.modes[k]),
            _backend=self._backend,
        )
