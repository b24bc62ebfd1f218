"""What a fit remembers of its table, and how it reads rows like the fitted ones."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from a1gm._base.types import Absent
from a1gm._base.words import counted
from a1gm._observe.weights import read_cell_weights
from a1gm._sources.labels import check_same_labels
from a1gm._sources.read import AnySource, is_sparse, read_input, same_cells
from a1gm.exceptions import DimensionError, ParameterError

__all__ = ["Table"]


@dataclass
class Table:
    """What a fit remembers of the table it was made from.

    ``source`` reads the table again where that is possible, ``weights`` are those of
    its cells, and sums of the statistics are those of the data times 2**-exponent.
    ``engine`` fills and places rows that lie elsewhere, such as those of Dask.
    ``pearson_chi2`` and ``gain`` (of the factors over constants, in deviance) are those
    of a table that was left behind; NaN where they are not known.
    """

    source: Any = None
    weights: Any = None
    row_labels: Any = None
    col_labels: Any = None
    absent: Absent | None = None
    backend: str | None = None
    exponent: int = 0
    is_signed: bool = False  # it has negative cells
    takes_negatives: bool = False
    is_weighted: bool = False
    engine: Any = None
    pearson_chi2: float = math.nan
    gain: float = math.nan

    def read(self, X: Any, weights: Any, n_cols: int) -> tuple[AnySource, Any]:
        """Read rows the way the fitted ones were read, and their weights."""
        absent = self.absent if is_sparse(X) else None
        source: AnySource = read_input(X, absent=absent)
        self._check_columns(source.n_cols, source.col_labels, n_cols)
        return source, self._weights_of(source, weights)

    def engine_for(self, X: Any, n_cols: int, weights: Any = None) -> Any:
        """What fills rows that lie elsewhere; None for tables in memory."""
        if self.engine is None or not self.engine.takes(X):
            return None
        if weights is not None:
            raise ParameterError("Fits of collections have no weights; leave them out.")
        found, labels = self.engine.columns(X)
        self._check_columns(found, labels, n_cols)
        return self.engine

    def is_same(self, source: AnySource) -> bool:
        """Whether rows are the table that was fitted, cell by cell."""
        own = self.source
        return (
            own is not None and own.n_rows == source.n_rows and same_cells(source, own)
        )

    def _check_columns(self, n_found: int, labels: Any, n_cols: int) -> None:
        if n_found != n_cols:
            raise DimensionError(
                f"X has {counted(n_found, 'column')}, but the fit has {n_cols:,}. Pass "
                "rows with the columns of the fit."
            )
        check_same_labels("column", labels, self.col_labels, "X", "the fit")

    def _weights_of(self, source: AnySource, weights: Any) -> Any:
        if weights is not None:
            if self.is_signed:
                raise ParameterError(
                    'negatives="allow" and weights cannot be combined; drop weights.'
                )
            return read_cell_weights(weights, source)
        if not self.is_weighted:
            return None
        if self.is_same(source):
            return self.weights
        raise ParameterError(
            "This fit had weights, and these rows are not known to be the table that "
            "was fitted. Pass weights= with a weight for every cell of these rows."
        )
