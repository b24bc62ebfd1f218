"""Dispersion and tests of a fit, and how its uncertainty is shown."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from functools import cached_property
from typing import Any

import numpy as np

from a1gm._base.types import Floats
from a1gm._fit.messages import Summarised
from a1gm._fit.sure.arguments import Dispersion, Which, check_dispersion
from a1gm._fit.sure.labelled import TotalsWithErrors
from a1gm.exceptions import DataError

MOST_SMALL = 0.2  # of the fitted means may be below 1 where chi-square is tested


class GoodnessOfFit(Summarised, ABC):
    """Pearson's statistic and the deviance of a fit, with p-values; base of errors."""

    dispersion: float
    dof: int
    _scatter: Any  # of the cells: Pearson's statistic and the deviance
    _unit: float  # of the Poisson's variance in the tests of fit
    _process: float  # variance over mean of a cell
    _backend: str | None

    def _choose(self, dispersion: Dispersion, rank: str) -> None:
        """Estimate the dispersion, or take the one given; ``rank`` is in words."""
        is_number = check_dispersion(dispersion)
        self.dispersion = float(dispersion) if is_number else 1.0
        self._unit = (self.dispersion or 1.0) if is_number else 1.0
        if dispersion in ("pearson", "deviance"):
            if self.dof < 1:
                raise DataError(
                    f"The table has {self.dof} degrees of freedom (observed cells less "
                    f"{rank}), so its dispersion cannot be estimated.",
                    advice='Pass dispersion= a known number, or "poisson".',
                )
            chi2 = self.pearson_chi2 if dispersion == "pearson" else self.deviance
            self.dispersion = chi2 / self.dof
        self._process = self.dispersion

    @property
    def pearson_chi2(self) -> float:
        """Pearson's statistic of the observed cells; NaN without the cells."""
        return float(self._scatter.pearson_chi2)

    @property
    def deviance(self) -> float:
        """Twice the divergence; NaN for negative cells, and without the cells."""
        return float(self._scatter.deviance)

    @abstractmethod
    def _share_below(self, unit: float) -> float:
        """Share of the fitted means that are below a number."""

    @property
    def pearson_p(self) -> float:
        """p-value of Pearson's chi-square under the Poisson model of the fit.

        A numeric ``dispersion`` takes the place of 1. NaN where more than a fifth of
        the fitted means are below 1 (or that number): such counts are too small for the
        distribution of chi-square.
        """
        return self._p_value(self.pearson_chi2)

    @property
    def deviance_p(self) -> float:
        """p-value of the deviance under the Poisson model of the fit; NaN likewise."""
        return self._p_value(self.deviance)

    def _p_value(self, statistic: float) -> float:
        from scipy.special import chdtrc

        if self.dof < 1 or self._share_of_small > MOST_SMALL:
            return math.nan
        return float(chdtrc(self.dof, statistic / self._unit))

    @cached_property
    def _share_of_small(self) -> float:
        """Share of the fitted means that are below 1, or the dispersion passed."""
        return self._share_below(self._unit)

    def _with_p(self, statistic: float, p: float) -> str:
        why = f"p = {p:.2g}" if p != 0.0 else "p < 1e-300"
        if self._share_of_small > MOST_SMALL:
            share = f"{self._share_of_small:.0%}"
            why = f"no p-value: {share} of the fitted means are below {self._unit:.3g}"
        return f"{statistic:.6g} ({why})"

    # ---------------------------------------------------------------- errors of cells
    def _errors_of(
        self, value: Floats, variance: Floats, shape: Any, prediction: bool
    ) -> Any:
        """Standard errors of cells, of themselves as well if it is a ``prediction``."""
        if prediction:
            variance = variance + self._process * value
        with np.errstate(invalid="ignore"):
            found = np.sqrt(variance).reshape(shape)
        return found if found.ndim else float(found)

    def _totals_of(
        self,
        of: Any,
        labels: Any,
        value: Floats,
        variance: Floats,
        unknown: Floats | int,
        cells: Which,
    ) -> TotalsWithErrors:
        """Totals and the variances of their estimates, with both errors.

        ``unknown`` is how many cells have no value, in all or in each total.
        """
        n_left_out, is_each = int(np.sum(unknown)), isinstance(unknown, np.ndarray)
        variance = np.where(np.isnan(value), np.nan, variance)
        return TotalsWithErrors(
            labels=labels,
            value=value,
            se=np.sqrt(variance + self._process * value),
            se_estimation=np.sqrt(variance),
            se_process=np.sqrt(self._process * value),
            unknown=np.asarray(unknown, np.int64) if n_left_out and is_each else None,
            _of=of,
            _backend=self._backend,
            _n_left_out=n_left_out,
            _cells=cells,
        )

    # ----------------------------------------------------------------------- appearance
    def summary(self) -> dict[str, str]:
        """The dispersion and the tests of fit, one entry each."""
        phi = f"{self.dispersion:.6g}"
        if self.dispersion == 0.0:
            phi = "0: a perfect fit, all errors are 0"
        return {
            "dispersion": phi,
            "degrees of freedom": f"{self.dof:,}",
            "Pearson's chi-square": self._with_p(self.pearson_chi2, self.pearson_p),
            "deviance": self._with_p(self.deviance, self.deviance_p),
        }
