"""What an imputer puts into cells that the data do not determine."""

from __future__ import annotations

import math
from numbers import Real
from typing import Any

import numpy as np

from a1gm._base.types import Floats
from a1gm._fit.fit import RankOneFit
from a1gm._observe.observation import Observation
from a1gm.exceptions import ParameterError


def check_fallback(fallback: Any) -> None:
    """Raise for all but None, "column" and numbers that a table may hold."""
    if fallback is None or (isinstance(fallback, str) and fallback == "column"):
        return
    is_number = isinstance(fallback, Real) and not isinstance(fallback, bool | np.bool)
    if not is_number or not 0.0 <= float(fallback) < math.inf:
        raise ParameterError(
            'fallback must be None, "column" or a finite number >= 0, got '
            f"{fallback!r}."
        )


def fallback_values(fallback: Any, seen: Observation, fit: RankOneFit) -> Floats:
    """The fallback of each column; NaN where its cells stay missing."""
    if fallback != "column":
        value = math.nan if fallback is None else fallback
        return np.full(fit.shape[1], value)
    # Means of the observed cells; NaN for a column without any.
    pattern = fit.pattern
    n_observed = pattern.n_rows - pattern.missing_per_col
    with np.errstate(invalid="ignore"):
        means = seen.statistics.col_sums / n_observed
    return np.ldexp(means, seen.exponent)
