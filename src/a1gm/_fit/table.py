"""What a fit remembers of its table, and how it reads rows like the fitted ones."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from a1gm._base.types import Absent, Floats, Ints, Negatives
from a1gm._base.words import counted, named
from a1gm._fit.rows import RowStore
from a1gm._fit.unchanged import are_as_marked, is_as_fitted, marks_of
from a1gm._observe.observation import Observation
from a1gm._observe.observe import observe
from a1gm._rows.choose import Chosen
from a1gm._rows.labels import first_difference, plain_text, text_of_label
from a1gm._rows.read import AnyRows, is_sparse, read_input, same_cells
from a1gm._rows.rows import Rows
from a1gm._rows.sparse import SparseRows
from a1gm._rows.weights import weights_or_exposure, with_weights
from a1gm._solve.dispatch import Solved
from a1gm.exceptions import DataError, DimensionError, LabelError, ParameterError

CHANGED = (
    "The table, or its weights or exposure, was changed after it was fitted, and the "
    "fit reads it again here. Fit it again, or fit a copy."
)


@dataclass
class Table:
    """What a fit remembers of the table it was made from.

    ``source`` reads the table again where that is possible, ``weights`` are those of
    its cells, and sums of the statistics are those of the data times 2**-exponent.
    ``engine`` fills and places rows that lie elsewhere, such as those of Dask.
    ``pearson_chi2`` and ``gain`` (of the factors over constants, in deviance) are those
    of a table that was left behind; NaN where they are not known. The table of a long
    frame has ``long``, the names of its keys and of its value, and ``key_values``, the
    distinct keys in the types of the frame. ``chosen`` are the columns that were
    fitted, where the frame had others. ``unchanged`` is the table itself, while nobody
    can have changed it: it is not read again.
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
    long: tuple[Any, Any, Any] | None = None
    key_values: tuple[Any, Any] | None = None
    chosen: Chosen | None = None
    unchanged: Any = field(default=None, init=False)
    _exposure_marks: Floats | None = field(default=None, init=False)
    _is_checked: bool | None = field(default=None, init=False)  # None: always check

    def mark_exposures(self) -> None:
        """Keep marks of the exposures, which the sums of a fit say nothing of."""
        if self.exposure_exponent is not None and isinstance(self.weights, Rows):
            self._exposure_marks = marks_of(self.weights)

    @property
    def is_exposed(self) -> bool:
        """Whether the factors are rates, and cells have exposures."""
        return self.exposure_exponent is not None

    def part_of(self, X: Any) -> Any:
        """The columns of X that the fit is about."""
        return X if self.chosen is None else self.chosen.of(X)

    def source_of(self, X: Any) -> AnyRows:
        """X, read as the fitted table was, with the names that its rows would have."""
        source: AnyRows = self._read_part(X)
        names = None if self.chosen is None else self.chosen.row_names(X)
        return source if names is None else replace(source, row_labels=names)

    def _read_part(self, X: Any) -> Any:
        return read_input(self.part_of(X), absent=self.absent if is_sparse(X) else None)

    def read(
        self,
        X: Any,
        fitted: tuple[Solved, RowStore],
        weights: Any = None,
        exposure: Any = None,
    ) -> tuple[AnyRows, Any, Ints | None]:
        """Read rows the way the fitted ones were read, their weights and their order.

        Weights that the fit remembers are still those that were ``fitted``, or it
        raises. The order is the place of each column among those of the fit; None when
        they are in the order of the fit.
        """
        if self.long is not None:
            self._refuse_long(X)
        source: AnyRows = self.source
        if X is None or X is not self.unchanged:
            source = self._read_part(X)
        n_cols = fitted[0].statistics.n_cols
        order = self._order_of(source.n_cols, source.col_labels, n_cols)
        V = self._weights_of(source, weights, exposure)
        if V is not None and V is self.weights:
            self.check_unchanged(*fitted)
        return source, V, order

    def engine_for(
        self, X: Any, n_cols: int, weights: Any = None, exposure: Any = None
    ) -> tuple[Any, Ints | None]:
        """What fills rows that lie elsewhere, and their order; None in memory."""
        if self.engine is None or not self.engine.takes(X):
            return None, None
        name, given = weights_or_exposure(weights, exposure)
        if given is not None:
            raise ParameterError(f"Fits of collections have no {name}; leave it out.")
        found, labels = self.engine.columns(X)
        return self.engine, self._order_of(found, labels, n_cols)

    def exposures(self, shape: tuple[int, int], given: Any = None) -> Rows | None:
        """Exposures of all cells of the fitted table; None where it had none."""
        if given is not None:
            like = Rows([], *shape, self.row_labels, self.col_labels)
            V: Rows = self._weights_of(like, None, given)
            return V
        if not self.is_exposed:
            return None
        if isinstance(self.weights, Rows):
            if not self._are_exposures_same():
                raise ParameterError(CHANGED)
            return self.weights
        kept = "only that of stored cells" if self.weights else "no exposure"
        raise ParameterError(
            f"This fit has kept {kept}, but that of every cell is needed. Pass "
            "exposure= to fit.reconstruct as an array; for errors fit the table again, "
            "as an array."
        )

    def cells(self, X: Any, solved: Solved, rows: RowStore) -> Floats:
        """Read the fitted table again, its columns by name; any other is refused.

        A table that the fit has left behind is known by its names, holes and sums.
        """
        source: AnyRows = self._read_part(X)
        shape, own = (source.n_rows, source.n_cols), self.source
        n, m = rows.n_rows, solved.statistics.n_cols
        if shape != (n, m):
            raise DimensionError(
                f"The table is {shape[0]} × {shape[1]}, the fit {n} × {m}. Pass the "
                "table that was fitted."
            )
        names = self.row_labels
        if names is None and source.row_labels is not None:
            names = getattr(own, "row_labels", None)
        is_same = first_difference(source.row_labels, names) is None
        order = self._order_of(m, source.col_labels, m)
        cells: Floats = source.rows(slice(0, n))
        if order is not None:
            cells = cells[:, np.argsort(order)]
            source = read_input(cells)
        if type(source) is type(own):
            self.check_unchanged(solved, rows)
            is_same = is_same and self.is_same(source)
        elif not self.is_signed:  # sums that cancel are known too badly
            seen = replace(self, source=source)._seen_again()
            if is_same and seen is not None:
                is_same = is_as_fitted(seen, solved, rows, self.exponent)
            else:
                is_same = False
        if not is_same:
            raise ParameterError(
                "This is not the table that was fitted: cells differ, or rows are "
                "others or in another order. Fit this table, or pass the one that was "
                "fitted."
            )
        return cells

    def check_unchanged(self, solved: Solved, rows: RowStore) -> None:
        """Raise where the table in memory is no longer the one that was fitted.

        Its holes and the sums of its rows and columns are compared.
        """
        if self._is_checked or not isinstance(self.source, Rows | SparseRows):
            return  # files are stamped
        seen = self._seen_again()
        is_same = seen is not None and is_as_fitted(seen, solved, rows, self.exponent)
        if not (is_same and self._are_exposures_same()):
            raise ParameterError(CHANGED)
        self._is_checked = None if self._is_checked is None else True

    @contextmanager
    def checked_once(self) -> Iterator[None]:
        """Check the table once for all that is read inside."""
        self._is_checked = False
        try:
            yield
        finally:
            self._is_checked = None

    def _seen_again(self) -> Observation | None:
        """What a pass over the table sees now; None where it can be fitted no more."""
        try:
            how: Negatives = "allow" if self.takes_negatives else "raise"
            own = {"weights": self.weights, "exposed": self.is_exposed}
            return observe(replace(self.source, **own), negatives=how)
        except DataError:
            return None

    def _are_exposures_same(self) -> bool:
        marks = self._exposure_marks
        return marks is None or are_as_marked(self.weights, marks)

    def is_same(self, source: AnyRows) -> bool:
        """Whether rows are the table that was fitted, cell by cell."""
        own = self.source
        return (
            own is not None and own.n_rows == source.n_rows and same_cells(source, own)
        )

    def _order_of(self, n_found: int, labels: Any, n_cols: int) -> Ints | None:
        """Place of each column among those of the fit, found by name; None if equal."""
        own, is_right = self.col_labels, n_found == n_cols
        if is_right and first_difference(labels, own) is None:
            return None
        text = ""
        if labels is not None and own is not None:
            place = {plain_text(name): j for j, name in enumerate(own)}
            found = [place.get(plain_text(name), -1) for name in labels]
            if is_right and sorted(found) == list(range(n_cols)):
                return np.array(found, np.int64)
            extra = [x for x, j in zip(labels, found, strict=True) if j < 0]
            lost = [own[j] for j in sorted(set(range(n_cols)) - set(found))]
            parts = (
                named("column", [text_of_label(name) for name in names])
                for names in (lost, extra)
            )
            text = _joined(*parts)
        if not is_right:
            raise DimensionError(
                f"X has {counted(n_found, 'column')}, but the fit has {n_cols:,}"
                f"{text and ': '}{text}. Pass rows with the columns of the fit."
            )
        raise LabelError(
            f"The columns of X are not those of the fit: {text}. Pass rows with the "
            "columns of the fit, in any order, or an array without names."
        )

    def _refuse_long(self, X: Any) -> None:
        names = getattr(X, "column_names", getattr(X, "columns", ()))  # pyarrow first
        keys = (self.long or ())[:2]
        if not callable(names) and all(key in list(names) for key in keys):
            labels = ", ".join(f"frame[{key!r}]" for key in keys)
            raise ParameterError(
                "This is a long frame. fit.predict(frame) gives the fitted values of "
                "its pairs, and fit.fill_long() the missing pairs with their values. "
                f"With u = fit.uncertainty(), u.standard_error({labels}, "
                "prediction=True) gives the errors of these as guesses at the pairs."
            )

    def _weights_of(self, source: AnyRows, weights: Any, exposure: Any) -> Any:
        name, given = weights_or_exposure(weights, exposure)
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
            return with_weights(source, name, given).weights
        if not self.is_weighted:
            return None
        if self.is_same(source) and self._are_exposures_same():
            return self.weights
        name = "exposure" if self.is_exposed else "weights"
        one = "an exposure" if self.is_exposed else "a weight"
        raise ParameterError(
            f"This fit had {name}, and these rows are not known to be the table that "
            f"was fitted. Pass {name}= with {one} for every cell of these rows."
        )


def _joined(lost: str, extra: str) -> str:
    parts = (f"it lacks {lost}" if lost else "", f"{extra} is new" if extra else "")
    return ", ".join(filter(None, parts))
