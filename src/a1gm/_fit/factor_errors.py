"""Standard errors of the factors: of the totals of rows, and the shares of columns."""

from __future__ import annotations

import numpy as np

from a1gm._base.types import Floats
from a1gm._fit.evidence import Evidence
from a1gm._fit.information import spread
from a1gm._fit.lazy_rows import LazyRows
from a1gm._observe.statistics import weighted_counts


def factor_errors(
    known: Evidence, covariance: Floats, dispersion: float
) -> tuple[LazyRows, Floats]:
    """Errors of the row factors, computed where they are looked at, and of the columns.

    The column factors of a block have a fixed sum, so log h_j less the logarithm of
    that sum is what is estimated: its direction is e_j - p, p being the shares of the
    columns in their block. A row's is p - q_i, beside the 1 / r_i of its own level.
    """
    info, inside = known.information, known.information.label >= 0
    block = np.where(inside, info.label, 0)
    sums = weighted_counts(block[inside], info.h[inside], int(block.max()) + 1)
    with np.errstate(divide="ignore", invalid="ignore"):
        p = np.nan_to_num(np.where(inside, info.h / sums[block], 0.0))
    same = (info.label[:, None] == info.label) & inside
    columns = info.h * np.sqrt(spread(np.eye(len(p)) - same * p, covariance))

    def of_rows(start: int, stop: int) -> Floats:
        w, r, line = known.some_rows(np.arange(start, stop))
        lines = slice(int(line.min()), int(line.max()) + 1)
        Q, _ = info.shares(lines)
        own = np.where(info.inside(info.component[lines]), p, 0.0)
        away = spread(own - Q, covariance)[line - lines.start]
        with np.errstate(divide="ignore", invalid="ignore"):
            found: Floats = np.where(w == 0.0, 0.0, w * np.sqrt(dispersion / r + away))
        return found

    is_zero = known.solved.factors.col_factor == 0.0  # that of an empty column is NaN
    known_columns = np.where(inside, columns, np.where(is_zero, 0.0, np.nan))
    return LazyRows(known.shape[0], of_rows), known_columns
