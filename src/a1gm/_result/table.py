"""What a fit remembers of its table, and how it reads rows like the fitted ones."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from a1gm._base.types import Absent
from a1gm._base.words import counted
from a1gm._observe.weights import one_of_both, read_cell_weights
from a1gm._sources.dense import Source
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
    is_weighted: bool = False  # by weights or exposures
    exposure_exponent: int | None = None  # of the statistics' exposures, if they are
    engine: Any = None
    pearson_chi2: float = math.nan
    gain: float = math.nan

    @property
    def is_exposed(self) -> bool:
        """Whether the factors are rates, and cells have exposures."""
        return self.exposure_exponent is not None

    def read(
        self, X: Any, n_cols: int, weights: Any = None, exposure: Any = None
    ) -> tuple[AnySource, Any]:
        """Read rows the way the fitted ones were read, and their weights."""
        absent = self.absent if is_sparse(X) else None
        source: AnySource = read_input(X, absent=absent)
        self._check_columns(source.n_cols, source.col_labels, n_cols)
        return source, self._weights_of(source, weights, exposure)

    def engine_for(
        self, X: Any, n_cols: int, weights: Any = None, exposure: Any = None
    ) -> Any:
        """What fills rows that lie elsewhere; None for tables in memory."""
        if self.engine is None or not self.engine.takes(X):
            return None
        name, given = one_of_both(weights, exposure)
        if given is not None:
            raise ParameterError(f"Fits of collections have no {name}; leave it out.")
        found, labels = self.engine.columns(X)
        self._check_columns(found, labels, n_cols)
        return self.engine

    def exposures(self, shape: tuple[int, int], given: Any = None) -> Source | None:
        """Exposures of all cells of the fitted table; None where it had none."""
        if given is not None:
            like = Source([], *shape, self.row_labels, self.col_labels)
            V: Source = self._weights_of(like, None, given)
            return V
        if not self.is_exposed:
            return None
        if isinstance(self.weights, Source):
            return self.weights
        kept = "only that of stored cells" if self.weights else "no exposure"
        raise ParameterError(
            f"This fit has kept {kept}, but that of every cell is needed. Pass "
            "exposure= to fit.reconstruct as an array; for errors fit the table again, "
            "as an array."
        )

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

    def _weights_of(self, source: AnySource, weights: Any, exposure: Any) -> Any:
        name, given = one_of_both(weights, exposure)
        if given is not None:
            if self.is_signed:
                raise ParameterError(
                    f'negatives="allow" and {name} cannot be combined; drop {name}.'
                )
            if self.is_exposed != (name == "exposure"):
                had = "was made with" if self.is_exposed else "had no"
                instead = "exposure=" if self.is_exposed else "weights="
                raise ParameterError(
                    f"This fit {had} exposure, so {name}= says nothing that it knows. "
                    f"Pass {instead} here, or fit the table with {name}=."
                )
            return read_cell_weights(given, source, name=name)
        if not self.is_weighted:
            return None
        if self.is_same(source):
            return self.weights
        name = "exposure" if self.is_exposed else "weights"
        one = "an exposure" if self.is_exposed else "a weight"
        raise ParameterError(
            f"This fit had {name}, and these rows are not known to be the table that "
            f"was fitted. Pass {name}= with {one} for every cell of these rows."
        )
