"""What a fit keeps of its table and rows, and how rows are read as they were."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NoReturn, overload

import numpy as np
import numpy.typing as npt

from a1gm._base.types import Absent, AnyArray, Bools, Floats, Ints
from a1gm._base.words import counted, named
from a1gm._observe.patterns import Patterns
from a1gm._rows.columns import Choice, columns_like
from a1gm._rows.labels import first_difference, positions_among, text_of_label
from a1gm._rows.libraries import RowLabels
from a1gm._rows.read import AnyRows, is_sparse, read_input, same_cells
from a1gm._rows.rows import Rows, table_of
from a1gm._rows.weights import Name, weights_or_exposure, with_weights
from a1gm.exceptions import DataError, LabelError, Option, ParameterError, Text

ROWS_AT_ONCE = 1 << 16
STATISTICS = "pearson_chi2", "divergence", "gain"


def are_close(seen: Floats, fitted: Floats, certificate: float) -> bool:
    """Whether margins of a table that is read again are those of the fit."""
    known = np.isfinite(seen) & np.isfinite(fitted)
    rtol = min(max(1e-9, 10.0 * certificate), 1.0)
    atol = rtol * float(np.abs(fitted).max(initial=0.0, where=known))
    return bool(np.allclose(seen[known], fitted[known], rtol=rtol, atol=atol))


@dataclass
class Table:
    """What a fit keeps of the table it was made from.

    ``source`` reads the table again where that is possible; its weights are its own.
    ``engine`` opens tables that lie elsewhere, such as those of Dask.
    ``pearson_chi2``, ``divergence``, ``gain`` (of the factors over constants, in
    deviance) and ``row_logs`` (sum of r log r over the rows) are those of a table that
    was left behind; NaN where they are not known.
    The table of a long frame has ``long``, the names of its keys and of its value, and
    ``key_values``, the distinct keys in the types of the frame. ``choice`` has the
    columns that were fitted, where the frame had others.
    """

    source: Any = None
    row_labels: Any = None
    col_labels: Any = None
    absent: Absent | None = None
    backend: str | None = None
    takes_negatives: bool = False
    is_weighted: bool = False  # by weights or exposures
    is_exposed: bool = False
    engine: Any = None
    pearson_chi2: float = math.nan
    divergence: float = math.nan
    gain: float = math.nan
    row_logs: float = math.nan
    long: tuple[Any, Any, Any] | None = None
    key_values: tuple[Any, Any] | None = None
    choice: Choice | None = None
    in_file: bool = False  # what is saved may leave out its rows, and patterns

    @property
    def weights(self) -> Any:
        """Weights or exposures of the cells; None where there are none, or gone."""
        return getattr(self.source, "weights", None)

    @property
    def names_of_rows(self) -> Any:
        """Labels of the rows, or None; those of files are read on access."""
        labels = self.row_labels
        if labels is None:
            labels = getattr(self.source, "row_labels", None)
        return labels.values if isinstance(labels, RowLabels) else labels

    # ------------------------------------------------------------------------ reading
    def source_of(self, X: Any) -> Any:
        """Read X as the fitted table was read."""
        absent = self.absent if is_sparse(X) else None
        columns = columns_like(self.choice, self.col_labels)
        return read_input(X, absent=absent, columns=columns)

    def read(
        self, X: Any, n_cols: int, weights: Any = None, exposure: Any = None
    ) -> tuple[AnyRows, Ints | None]:
        """Read rows as the fitted ones were read, with their weights; also their order.

        The order is the position of each column among the ``n_cols`` of the fit; None
        when they are in the order of the fit.
        """
        if self.is_long(X):
            labels = ", ".join(f"frame[{key!r}]" for key in (self.long or ())[:2])
            raise ParameterError(
                "This is a long frame. fit.predict(frame) gives the fitted values of "
                "its pairs, and fit.fill_long() the missing pairs with their values. "
                f"With u = fit.uncertainty(), u.standard_error({labels}, "
                "prediction=True) gives the errors of these as guesses at the pairs."
            )
        source: AnyRows = self.source_of(X)
        order = self._order_of(source.n_cols, source.col_labels, n_cols)
        weighting = weights_or_exposure(weights, exposure)
        return self.weighted_as(source, *weighting), order

    def read_fitted(self, X: Any, shape: tuple[int, int]) -> tuple[Floats, bool | None]:
        """Cells of X in the order of the fit, and whether X is the fitted table.

        None where the fit does not hold that table, so that cells cannot be compared.
        """
        rows: AnyRows = self.source_of(X)
        if (rows.n_rows, rows.n_cols) != shape:
            raise DataError(
                f"The table is {rows.n_rows} × {rows.n_cols}, the fit {shape[0]} × "
                f"{shape[1]}. Pass the table that was fitted."
            )
        order = self._order_of(shape[1], rows.col_labels, shape[1])
        cells = rows.rows(slice(0, shape[0]))
        if order is not None:
            cells = cells[:, np.argsort(order)]
            rows = replace(table_of(cells), row_labels=rows.row_labels)
        names = self.row_labels if rows.row_labels is None else self.names_of_rows
        if first_difference(rows.row_labels, names) is not None:
            return cells, False
        is_held = type(rows) is type(self.source)
        return cells, self.is_same(rows) if is_held else None

    def is_same(self, source: AnyRows) -> bool:
        """Whether rows are the table that was fitted, cell by cell."""
        own = self.source
        return own is not None and (
            source is own or (own.n_rows == source.n_rows and same_cells(source, own))
        )

    def opened(
        self, X: Any, n_cols: int, weights: Any = None, exposure: Any = None
    ) -> tuple[Any, Ints | None]:
        """X as a table that is filled where it lies, and its order; None in memory."""
        if self.engine is None:
            return None, None
        table = self.engine.open(X, columns_like(self.choice, self.col_labels))
        if table is None:
            return None, None
        name, given = weights_or_exposure(weights, exposure)
        if given is not None or self.is_weighted:
            name = "exposure" if self.is_exposed else name
            raise ParameterError(
                f"Rows that are not in memory are placed without {name}. Collect X, or "
                f"leave {name}= out of the fit."
            )
        names = table.names
        n_found = table.n_cols if names is None else len(names)
        return table, self._order_of(n_found, names, n_cols)

    def _order_of(self, n_found: int, labels: Any, n_cols: int) -> Ints | None:
        """Position of each column in the fit, found by name; None if equal."""
        own, is_right = self.col_labels, n_found == n_cols
        if is_right and first_difference(labels, own) is None:
            return None
        text = ""
        if labels is not None and own is not None:
            found = positions_among(own, labels)
            if is_right and sorted(found) == list(range(n_cols)):
                return np.array(found, np.int64)
            lost = [own[j] for j in sorted(set(range(n_cols)) - set(found))]
            extra = [x for x, j in zip(labels, found, strict=True) if j < 0]
            text = ", ".join(
                form.format(named("column", list(map(text_of_label, names))))
                for form, names in (("it lacks {}", lost), ("{} is new", extra))
                if names
            )
        if not is_right:
            raise DataError(
                f"X has {counted(n_found, 'column')}, but the fit has {n_cols:,}"
                f"{text and ': '}{text}. Pass rows with the columns of the fit."
            )
        raise LabelError(
            f"The columns of X are not those of the fit: {text}. Pass rows with the "
            "columns of the fit, in any order, or an array without names."
        )

    def is_long(self, X: Any) -> bool:
        """Whether X is a long frame with the keys of the long one that was fitted."""
        if self.long is None:
            return False
        names = getattr(X, "column_names", getattr(X, "columns", ()))  # pyarrow first
        if callable(names):
            return False
        return all(key in list(names) for key in self.long[:2])

    # ------------------------------------------------------------------------ weights
    def weighted_as(self, source: AnyRows, name: Name, given: Any) -> AnyRows:
        """Rows with their weights or exposures, if they are of the kind of the fit."""
        had, own = ("with", "exposure") if self.is_exposed else ("without", "weights")
        text: Text
        if given is None and not self.is_weighted:
            return source
        if given is None and self.is_same(source):
            return replace(source, weights=self.weights, exposed=self.is_exposed)
        if given is None:
            text = (
                f"This fit had {own}, and these rows are not known to be the table "
                "that was fitted. Pass ",
                Option(own),
                " with a number for every cell of them.",
            )
        elif self.takes_negatives:
            text = (
                Option("negatives", "allow"),
                " and ",
                Option(name),
                " cannot be combined; leave out ",
                Option(name),
                ".",
            )
        elif self.is_exposed != (name == "exposure"):
            text = (
                f"This fit was made {had} exposure. Pass ",
                Option(own),
                " here, or fit the table with ",
                Option(name),
                ".",
            )
        else:
            rows: AnyRows = with_weights(source, name, given)
            return rows
        raise ParameterError(text)

    def exposures(self, shape: tuple[int, int], given: Any = None) -> AnyRows | None:
        """Exposures of all cells of the fitted table; None where it had none."""
        if given is not None:
            like = Rows([], *shape, self.row_labels, self.col_labels)
            found: Any = self.weighted_as(like, "exposure", given)
            return found.weights  # type: ignore[no-any-return]
        if not self.is_exposed:
            return None
        if isinstance(self.weights, Rows) or (self.weights and self.long):
            return self.weights  # of a long table: unknown where no row has it
        raise self._lacks_exposure()

    def exposure_at(
        self, rows: Ints, cols: Ints, given: Floats | None = None
    ) -> Floats:
        """Exposures of some cells, those given or those of the fit; NaN if unknown."""
        if given is not None:
            table = Rows([], len(rows), 1)
            like: Any = self.weighted_as(table, "exposure", given[:, None])
            return like.weights.cells[:, 0]  # type: ignore[no-any-return]
        if self.weights is None:
            raise self._lacks_exposure()
        return self.weights.values_at(rows, cols)  # type: ignore[no-any-return]

    def _lacks_exposure(self) -> ParameterError:
        kept = "only that of stored cells" if self.weights else "no exposure"
        return ParameterError(
            f"This fit has kept {kept}, but that of every cell is needed. Pass "
            "exposure= to fit.reconstruct or fit.predict as an array; for errors fit "
            "the table again, as an array."
        )


@dataclass
class FitRows:
    """Factors and patterns of the rows of a fit."""

    patterns: Patterns  # with the pattern of each row, or how many rows have each
    found: Any = None  # row factors: ndarray, LazyRows, lazy collection; None if gone
    is_kept: bool = True  # whether single rows are known

    @property
    def n_rows(self) -> int:
        """Rows of the table."""
        return len(self.found) if self.is_kept else self.patterns.n_rows

    @property
    def is_held(self) -> bool:
        """Whether rows are in memory."""
        return isinstance(self.found, np.ndarray)

    @property
    def factor(self) -> Any:
        """Row factors."""
        if self.found is None:
            self._refuse()
        return self.found

    def at(self, rows: Ints) -> Floats:
        """Factors of single rows."""
        if not self.is_kept:
            self._refuse()
        found: Floats = self.found[rows]
        return found

    def read(self, start: int, stop: int) -> tuple[Ints, Bools]:
        """Pattern of each of some rows, and which of them sum to zero."""
        if not self.is_kept:
            self._refuse()
        patterns, of_row = np.arange(start, stop), self.patterns.pattern_of_row
        if of_row is not None:
            patterns = of_row[start:stop].astype(np.int64)
        return patterns, self.found[start:stop] == 0.0

    def pattern_counts(self, some: slice) -> tuple[Ints, Ints]:
        """Rows of some patterns, and how many of them sum to zero."""
        if self.is_kept and self.patterns.pattern_of_row is None:
            zeros = (self.found[some] == 0.0).astype(np.int64)
            return np.ones(len(zeros), np.int64), zeros
        every, zeros = self._counts
        return every[some], zeros[some]

    def kinds(self) -> tuple[Ints, Bools]:
        """Patterns of rows with data, and of rows of zeros, and which is which."""
        every, zeros = self.pattern_counts(slice(0, self.patterns.n_patterns))
        found = np.flatnonzero(every > zeros), np.flatnonzero(zeros)
        return np.concatenate(found), np.repeat([False, True], [*map(len, found)])

    @cached_property
    def _counts(self) -> tuple[Ints, Ints]:
        patterns, n = self.patterns, self.patterns.n_patterns
        if patterns.counts is not None and patterns.zero_counts is not None:
            return patterns.counts, patterns.zero_counts
        every, none = np.zeros(n, np.int64), np.zeros(n, np.int64)
        step = max(ROWS_AT_ONCE, n)
        for start in range(0, self.n_rows, step):
            pattern, is_zero = self.read(start, min(start + step, self.n_rows))
            every += np.bincount(pattern, minlength=n)
            none += np.bincount(pattern[is_zero], minlength=n)
        return every, none

    def _refuse(self) -> NoReturn:
        raise ParameterError(
            "This fit was made or saved without its rows, so it has no values of "
            "single rows. fit.transform(rows) gives the row factors of any rows and "
            "fit.impute(rows) fills them; or fit the table again and keep its rows "
            "(PatternTable has keep_rows=True)."
        )


class LazyRows:
    """A long vector, of which slices are arrays; ``np.asarray`` takes it whole.

    Examples
    --------
    >>> squares = LazyRows(10**12, lambda start, stop: np.arange(start, stop) ** 2.0)
    >>> squares[3:6]
    array([ 9., 16., 25.])
    >>> squares[[5, 2]]
    array([25.,  4.])
    """

    ndim = 1

    def __init__(
        self, n: int, compute: Callable[[int, int], AnyArray], dtype: Any = np.float64
    ) -> None:
        self.size = n
        self.shape = (n,)
        self.dtype = np.dtype(dtype)
        # From a row to another, both within the same ROWS_AT_ONCE rows.
        self._compute = compute

    def __len__(self) -> int:
        return self.size

    @overload
    def __getitem__(self, at: int | np.integer[Any]) -> float: ...
    @overload
    def __getitem__(self, at: slice | list[int] | npt.NDArray[Any]) -> Floats: ...
    def __getitem__(self, at: Any) -> Any:
        if isinstance(at, slice):
            start, stop, step = at.indices(self.size)
            if step == 1:
                return self._between(start, max(start, stop))
            at = np.arange(start, stop, step)
        rows = np.asarray(at)
        if rows.dtype == bool:
            rows = np.flatnonzero(rows)
        rows = np.where(rows < 0, rows + self.size, rows).astype(np.int64)
        if rows.min(initial=0) < 0 or rows.max(initial=0) >= self.size:
            raise IndexError(f"Rows outside the {counted(self.size, 'row')}.")
        out = np.empty(rows.size, self.dtype)
        order = np.argsort(rows, axis=None, kind="stable")
        sorted_rows = rows.ravel()[order]
        cuts = np.flatnonzero(np.diff(sorted_rows // ROWS_AT_ONCE)) + 1
        for chosen in np.split(order, cuts) if rows.size else ():
            piece = rows.flat[chosen]
            first = int(piece[0])
            out[chosen] = self._compute(first, int(piece[-1]) + 1)[piece - first]
        return out.reshape(rows.shape) if rows.ndim else out[0].item()

    def _between(self, start: int, stop: int) -> AnyArray:
        out = np.empty(stop - start, self.dtype)
        at = start
        while at < stop:
            end = min(stop, (at // ROWS_AT_ONCE + 1) * ROWS_AT_ONCE)
            out[at - start : end - start] = self._compute(at, end)
            at = end
        return out

    def __iter__(self) -> Iterator[float]:
        for start in range(0, self.size, ROWS_AT_ONCE):
            yield from self[start : start + ROWS_AT_ONCE].tolist()

    def __array__(
        self, dtype: Any = None, copy: bool | None = None
    ) -> npt.NDArray[Any]:
        if copy is False:
            raise ValueError(
                "The rows are computed when looked at, so a copy cannot be avoided."
            )
        return self[:].astype(self.dtype if dtype is None else dtype, copy=False)

    def __repr__(self) -> str:
        shown = ", ".join(f"{x:.6g}" for x in self[:4])
        more = ", ..." if self.size > 4 else ""
        return f"[{shown}{more}] ({counted(self.size, 'row')})"
