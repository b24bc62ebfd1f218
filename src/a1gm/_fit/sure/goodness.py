"""Tests of a fit, and how its uncertainty is shown."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from functools import cached_property

from a1gm._fit.messages import html_table, one_line

MOST_SMALL = 0.2  # of the fitted means may be below 1 where chi-square is tested


class GoodnessOfFit(ABC):
    """Pearson's statistic and the deviance of a fit, with p-values; base of errors."""

    dispersion: float
    dof: int
    _unit: float  # of the Poisson's variance in the tests of fit

    @property
    @abstractmethod
    def pearson_chi2(self) -> float:
        """Pearson's statistic of the observed cells; NaN without the cells."""

    @property
    @abstractmethod
    def deviance(self) -> float:
        """Twice the divergence; NaN for negative cells, and without the cells."""

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
        why = f"p = {p:.2g}"
        if self._share_of_small > MOST_SMALL:
            share = f"{self._share_of_small:.0%}"
            why = f"no p-value: {share} of the fitted means are below {self._unit:.3g}"
        return f"{statistic:.6g} ({why})"

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

    def __repr__(self) -> str:
        return one_line(type(self).__name__, self.summary())

    def _repr_html_(self) -> str:
        return html_table(type(self).__name__, self.summary())
