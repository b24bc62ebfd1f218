"""NMMF: three tables that share factors are one table.

``D(X, w⊗h) + alpha D(Y, a⊗h) + beta D(Z, w⊗b)`` is the divergence of the table
``[[X, beta Z], [alpha Y, nothing]]`` from the product of ``(w, alpha a)`` and
``(h, beta b)``: the weights are a part of the rows times a part of the columns. So the
three tables are fitted by one plain fit of this table, which is read in pieces, and all
that they are asked is asked of its slices. Nothing here solves or places anything.
"""

from __future__ import annotations

import math
from dataclasses import replace
from functools import cached_property, partial
from itertools import pairwise
from numbers import Real
from typing import Any

import numpy as np

from a1gm._api.fit import DEFAULT_MAX_ITER, FitOptions, fit_patterns
from a1gm._base.float_range import check_range
from a1gm._base.types import Floats, Ints, OnUndetermined, SmallInts
from a1gm._base.warn import warn_user
from a1gm._base.words import MOST_NAMED, counted, listed
from a1gm._fit.fill import fill_table
from a1gm._fit.fit import RankOneFit, Solution
from a1gm._fit.messages import (
    check_on_undetermined,
    solver_in_words,
    text_of_convergence,
    text_of_unknown_cells,
    text_of_zeros,
    warn_left,
    warn_undetermined,
)
from a1gm._fit.place import (
    EMPTY,
    FINITE,
    UNBOUNDED,
    UNDETERMINED,
    Columns,
    Fills,
    UndeterminedCells,
)
from a1gm._fit.residuals import divergence_of_cells
from a1gm._observe.observe import observe
from a1gm._observe.patterns import weighted_counts
from a1gm._rows.labels import first_difference, text_of_label
from a1gm._rows.read import read_dense, same_cells
from a1gm._rows.rows import Part, Rows, check_values, table_of
from a1gm._solve.components import ColumnGraph
from a1gm.exceptions import (
    ConvergenceWarning,
    DataError,
    EmptyLineWarning,
    InfiniteValuesError,
    LabelError,
    NegativeValuesError,
    NotRepresentableError,
    ParameterError,
    Text,
    parts_of,
    separated,
)

LEAST_WEIGHT = 1e-100
PIECE_CELLS = 1 << 22  # cells of the joint table that are read together
CELLS_AT_ONCE = 1 << 17

SHARED_SETS = {"X": ("w", "h"), "Y": ("a", "h"), "Z": ("w", "b")}


def fit_nmmf(
    X: Any,
    Y: Any = None,
    Z: Any = None,
    *,
    alpha: float = 1.0,
    beta: float = 1.0,
    on_undetermined: OnUndetermined = "warn",
    tol: float | None = None,
    max_iter: int = DEFAULT_MAX_ITER,
    n_threads: int | None = None,
) -> NMMFFit:
    """Factorise three tables that share factors: X ≈ w⊗h, Y ≈ a⊗h, Z ≈ w⊗b.

    Parameters
    ----------
    X : table of shape (I, J)
        Non-negative numbers; NaN (or the container's own mark) is a missing cell. The
        inputs are never modified.
    Y : table of shape (N, J), optional
        Shares the columns of X. Holes are allowed here too.
    Z : table of shape (I, M), optional
        Shares the rows of X.
    alpha, beta : float, default=1.0
        Weights of the divergences of Y and Z. With 0 the table is left out of the fit,
        and gets its own factor from the factors that it shares with X.
    on_undetermined : {"warn", "raise", "ignore"}, default="warn"
        What to do when some missing cells have no value that the data determine.
    tol : float, optional
        The certificate to reach: largest relative mismatch of the margins. None: as in
        ``a1gm.fit``.
    max_iter : int, default=1000
        Budget of iterations for patterns without a closed form.
    n_threads : int, optional
        Threads for the pass over the data; the cores available by default.

    Returns
    -------
    NMMFFit
        The factors ``w, h, a, b``, and the fit they are slices of.

    Raises
    ------
    DataError, LabelError
        Y has other columns, or Z other rows, than X. Names that only count from 0, like
        the default index of a frame, are no names.
    NegativeValuesError, InfiniteValuesError, DataError
        A table cannot be fitted; the message names the table and the cell.
    NotRepresentableError
        A weighted cell or a factor is outside the range that is fitted.
    ParameterError
        A weight is negative or not finite, or an option is out of range.

    Notes
    -----
    Minimises ``D(X, w⊗h) + alpha D(Y, a⊗h) + beta D(Z, w⊗b)``, each D the
    Kullback-Leibler divergence on the observed cells. This is the plain problem on the
    table ``[[X, beta Z], [alpha Y, nothing]]``. The answer is the global optimum for
    every pattern of holes, and Theorem 1 of Ghalamkari & Sugiyama (2022) without
    holes. As there, ``w`` and ``h`` have the same sum (in each block, when there are
    several).

    Examples
    --------
    >>> import numpy as np, a1gm
    >>> X = np.array([[1.0, 2.0], [np.nan, 4.0]])
    >>> fit = a1gm.fit_nmmf(X, Y=[[3.0, 6.0]], Z=[[5.0], [10.0]])
    >>> bool(fit.certificate <= 1e-10)
    True
    >>> fit.impute(X)[0].round(12)
    array([[1., 2.],
           [2., 4.]])
    """
    options = FitOptions("raise", on_undetermined, tol, max_iter, n_threads)
    weights = {"X": 1.0, "Y": _checked_weight(alpha, "alpha")}
    weights["Z"] = _checked_weight(beta, "beta")
    arguments = {"X": X, "Y": Y, "Z": Z}
    tables = {
        name: read_dense(table, name)
        for name, table in arguments.items()
        if table is not None or name == "X"
    }
    _check_shared(tables)
    joint = _fit_joint(tables, weights, options)
    fit = NMMFFit(joint, tables, weights, on_undetermined=on_undetermined)
    fit._warn()
    return fit


def _checked_weight(value: Any, name: str) -> float:
    """A weight; raise for one that is negative, not finite or too far from 1."""
    is_number = isinstance(value, Real) and not isinstance(value, bool)
    if is_number and not isinstance(value, int):
        value = float(value)  # a NumPy scalar of few bits would overflow below
    if not (is_number and 0 <= value < math.inf):
        raise ParameterError(
            f"{name} must be a finite number of at least 0, got {value!r}."
        )
    if value and not LEAST_WEIGHT <= value <= 1.0 / LEAST_WEIGHT:
        raise ParameterError(
            f"{name} must be 0 or between {LEAST_WEIGHT:g} and "
            f"{1 / LEAST_WEIGHT:g}, got {value!r}. A table this far from the others "
            "counts alone or not at all."
        )
    return float(value)


# -------------------------------------------------------------------- shared entities
def _check_shared(tables: dict[str, Rows]) -> None:
    """Raise unless Y has the columns of X, and Z its rows."""
    X = tables["X"]
    if "Y" in tables:
        _check_columns("Y", tables["Y"], "X", X)
    if "Z" in tables:
        _check_rows("Z", tables["Z"], "X", X)


def _check_rows(name: str, table: Rows, other_name: str, other: Rows) -> None:
    sizes = table.n_rows, other.n_rows
    labels = table.row_labels, other.row_labels
    _check_same("row", (name, other_name), sizes, labels)


def _check_columns(name: str, table: Rows, other_name: str, other: Rows) -> None:
    sizes = table.n_cols, other.n_cols
    labels = table.col_labels, other.col_labels
    _check_same("column", (name, other_name), sizes, labels)


def _check_same(
    side: str, names: tuple[str, str], sizes: tuple[int, int], labels: tuple[Any, Any]
) -> None:
    """Raise if two tables differ in the number or the names of shared entities."""
    name, other_name = names
    if sizes[0] != sizes[1]:
        raise DataError(
            f"{name} has {counted(sizes[0], side)}, but {other_name} has "
            f"{counted(sizes[1], side)}: these are the same entities and must have the "
            "same number, in the same order."
        )
    at = first_difference(*labels)
    if at is not None:
        raise LabelError(
            f"The {side}s of {name} and of {other_name} are the same entities, but "
            f"number {at} is {text_of_label(labels[0][at])} in {name} and "
            f"{text_of_label(labels[1][at])} in {other_name}. Put them in the same "
            "order, or pass arrays without names."
        )


# -------------------------------------------------------------------- the joint table
def _fit_joint(
    tables: dict[str, Rows], weights: dict[str, float], options: FitOptions
) -> RankOneFit:
    """Fit the tables of positive weight as one, without warnings."""
    fitted = {name: table for name, table in tables.items() if weights[name]}
    rows = _joint_rows(fitted, weights)
    try:
        for name, table in tables.items():
            _check_observed(name, table)
            if not weights[name]:
                check_values(table, table.cells, None)
        seen = observe(rows, n_threads=options.n_threads, negatives=None)
        return fit_patterns(seen, options, rows, policy=None)
    except (NegativeValuesError, InfiniteValuesError, NotRepresentableError):
        for name, table in fitted.items():  # with the name of the table
            _check_cells(table, weights[name])
        raise


def _check_cells(table: Rows, weight: float) -> None:
    """Raise for the cell of a refused table that is bad, or is out of range."""
    cells = table.cells
    check_values(table, cells, None)
    observed = np.flatnonzero(~np.isnan(cells))

    def where(at: int) -> str:
        return table.where(*divmod(int(observed[at]), table.n_cols))

    with np.errstate(over="ignore"):
        weighted = cells.ravel()[observed] * weight
    check_range(weighted, where)


def _check_observed(name: str, table: Rows) -> None:
    """Raise for a table without a number."""
    for _, cells in table.in_pieces():
        if not np.isnan(cells).all():
            return
    what = "Give it" if name == "X" else "Leave the table out, or give it"
    raise DataError(
        f"Nothing is observed in {name}: all of its {table.n_rows} x {table.n_cols} "
        f"cells are missing. {what} at least one number."
    )


def _joint_rows(tables: dict[str, Rows], weights: dict[str, float]) -> Rows:
    """The table ``[[X, beta Z], [alpha Y, nothing]]``, read in pieces."""
    n_rows = sum(tables[name].n_rows for name in "XY" if name in tables)
    n_cols = sum(tables[name].n_cols for name in "XZ" if name in tables)
    step = max(1, PIECE_CELLS // n_cols)
    n = tables["X"].n_rows
    steps = (*range(0, n, step), *range(n, n_rows, step), n_rows)
    return Rows(
        [],
        n_rows,
        n_cols,
        _joined(tables, "XY", "row_labels"),
        _joined(tables, "XZ", "col_labels"),
        cut=partial(_cut, tables, weights, n_cols),
        steps=steps,
        name="the joint table",
    )


def _joined(tables: dict[str, Rows], names: str, side: str) -> Any:
    """Labels of the rows or columns of two tables; None unless all of them have one."""
    labels = [getattr(tables[name], side) for name in names if name in tables]
    if any(part is None for part in labels):
        return None
    return labels[0] if len(labels) == 1 else [*labels[0], *labels[1]]


def _cut(
    tables: dict[str, Rows],
    weights: dict[str, float],
    n_cols: int,
    start: int,
    stop: int,
) -> list[Part]:
    """Some rows of the joint table, as parts side by side."""
    n = tables["X"].n_rows
    if start < n < stop:
        both = [
            Rows(_cut(tables, weights, n_cols, *ends), ends[1] - ends[0], n_cols).cells
            for ends in pairwise((start, n, stop))
        ]
        return table_of(np.concatenate(both)).parts
    if start >= n:
        parts = _weighted_parts(tables["Y"], weights["Y"], slice(start - n, stop - n))
        corner = stop - start, n_cols - tables["Y"].n_cols
        return [*parts, (np.broadcast_to(np.nan, corner), None, None, 0)]
    rows = slice(start, stop)
    parts = _weighted_parts(tables["X"], 1.0, rows)
    if "Z" in tables:
        parts += _weighted_parts(tables["Z"], weights["Z"], rows)
    return parts


def _weighted_parts(table: Rows, weight: float, rows: slice) -> list[Part]:
    """Some rows of a table, times its weight; copied only where that is not 1."""
    if weight != 1.0:
        with np.errstate(over="ignore"):  # refused as infinite cells are
            return table_of(table.rows(rows) * weight).parts
    return [
        (values[rows], None if mask is None else mask[rows], bits, at + rows.start)
        for values, mask, bits, at in table.parts
    ]


# ------------------------------------------------------------------------ the result
class NMMFFit(Solution):
    """Factors of three tables: ``X ≈ w⊗h``, ``Y ≈ a⊗h``, ``Z ≈ w⊗b``.

    Made by ``a1gm.fit_nmmf``; not meant to be constructed by hand.

    Attributes
    ----------
    w : ndarray of shape (I,)
        Factors of the rows of X and Z.
    h : ndarray of shape (J,)
        Factors of the columns of X and Y. In each block ``w`` and ``h`` have the same
        sum, as in Theorem 1 of the paper.
    a : ndarray of shape (N,)
        Factors of the rows of Y; empty without Y.
    b : ndarray of shape (M,)
        Factors of the columns of Z; empty without Z.
    joint : RankOneFit
        The fit of ``[[X, beta Z], [alpha Y, nothing]]``: the rows of Y follow those of
        X, the columns of Z those of X, and cells of Y and Z are multiplied by their
        weights. It has the fates, errors, intervals and totals of all cells
        (``joint.uncertainty()``) and can be saved. Tables of weight 0 are not in it.
    """

    _between = "; "

    def __init__(
        self,
        joint: RankOneFit,
        tables: dict[str, Rows],
        weights: dict[str, float],
        *,
        on_undetermined: OnUndetermined,
    ) -> None:
        self.joint = joint
        self.tol = joint.tol
        self._own_blocks: dict[str, SmallInts] = {}
        self._solved = joint._solved
        self._tables = tables
        self._weights = weights
        self._on_undetermined = on_undetermined
        self._set_factors()
        for name in tables:
            if not weights[name]:
                self._set_own_factor(name)

    # ----------------------------------------------------------------------- factors
    def _set_factors(self) -> None:
        """Slice the factors of the joint table, on the scale of Theorem 1."""
        n = self._tables["X"].n_rows
        m = self._tables["X"].n_cols
        rows = np.asarray(self.joint.row_factor)
        columns = self.joint.col_factor
        if self.n_blocks == 0:  # zeros everywhere: both sums are 0
            columns = columns * 0.0
        row_block: Any = 0
        col_block: Any = 0
        if self.n_blocks > 1:
            row_block = _blocks_of(rows, self.joint.row_block)
            col_block = _blocks_of(columns, self.joint.col_block)
        row_sums = _block_sums(rows, row_block, n, self.n_blocks)
        col_sums = _block_sums(columns, col_block, m, self.n_blocks)
        balance = np.sqrt(col_sums) / np.sqrt(row_sums)
        balance = np.append(balance, 1.0)  # of factors without a block
        self.w, self.a = np.split(rows * balance[row_block], [n])
        self.h, self.b = np.split(columns / balance[col_block], [m])
        self.a = self.a / (self._weights["Y"] or 1.0)
        self.b = self.b / (self._weights["Z"] or 1.0)

    def _set_own_factor(self, name: str) -> None:
        """Set the factor of a table of weight 0 from the one that it shares with X."""
        cells = self._tables[name].cells
        shared = "h"
        if name == "Z":
            shared = "w"
            cells = cells.T
        factor = getattr(self, shared)
        block = self._blocks_in_joint(shared)
        is_zero = factor == 0.0  # a component of its own: only zeros go with it
        label = np.where(is_zero, self.n_blocks, block).astype(np.int32)
        graph = ColumnGraph(label, self.n_blocks + bool(is_zero.any()))
        factors = Columns(factor, graph).place(table_of(cells)).factors
        first = ((cells > 0.0) & (block >= 0)).argmax(axis=1)
        own = {"Y": "a", "Z": "b"}[name]
        setattr(self, own, factors)
        self._own_blocks[own] = _blocks_of(factors, block[first])

    @cached_property
    def blocks(self) -> dict[str, SmallInts]:
        """Block of each entity, by the name of its factor; -1 where it is 0 or NaN."""
        names = [name for name in "whab" if name not in self._own_blocks]
        in_joint = {name: self._blocks_in_joint(name) for name in names}
        return in_joint | self._own_blocks

    def _blocks_in_joint(self, name: str) -> SmallInts:
        """Blocks of the entities of a factor that is in the joint table."""
        factor = getattr(self, name)
        if self.n_blocks <= 1:
            return _blocks_of(factor, 0)
        start = {"a": len(self.w), "b": len(self.h)}.get(name, 0)
        side = self.joint.row_block if name in "wa" else self.joint.col_block
        return _blocks_of(factor, side[start : start + len(factor)])

    @property
    def row_block(self) -> SmallInts:
        """Block of each row of X."""
        return self.blocks["w"]

    @property
    def col_block(self) -> SmallInts:
        """Block of each column of X."""
        return self.blocks["h"]

    @property
    def attained(self) -> bool:
        """Whether a minimiser exists; False where observed zeros cannot be fitted."""
        return self.joint.attained

    # ----------------------------------------------------------------------- by table
    @property
    def divergence(self) -> float:
        """The cost that was minimised: the divergences times their weights, summed.

        Computed when first asked for, from the tables where they lie.
        """
        return self.joint.divergence

    @cached_property
    def divergences(self) -> dict[str, float]:
        """Divergence of each table on its observed cells, without its weight.

        Computed when first asked for, from the tables where they lie: an array that was
        changed since the fit gives the divergence of the changed one. NaN for a table
        of weight 0 with observed cells that have no fitted value.
        """
        divergences = dict.fromkeys(self._tables, 0.0)
        for name, table in self._tables.items():
            for i, j, cells in table.observed():
                terms = divergence_of_cells(cells, self._values(name, i, j))
                divergences[name] += float(terms.sum())
        return divergences

    def _values(self, name: str, i: Ints, j: Ints) -> Floats:
        """Fitted values of cells of a table; NaN where the data determine none."""
        weight = self._weights[name]
        if weight:
            return self.joint._fitted(self._index(name, i, j)) / weight
        rows, columns = SHARED_SETS[name]
        values: Floats = getattr(self, rows)[i] * getattr(self, columns)[j]
        is_apart = self.blocks[rows][i] != self.blocks[columns][j]
        values[is_apart & (values > 0.0)] = np.nan
        return values

    def _index(self, name: str, i: Ints, j: Ints) -> tuple[Ints, Ints]:
        """Positions of cells of a table in the joint table."""
        if name == "Y":
            i = i + len(self.w)
        if name == "Z":
            j = j + len(self.h)
        return i, j

    @cached_property
    def undetermined(self) -> dict[str, UndeterminedCells]:
        """Missing cells of each table that the data do not determine."""
        return {name: self._unknown_cells(name) for name in self._tables}

    def _unknown_cells(self, name: str) -> UndeterminedCells:
        empty = np.zeros(0, np.int64)
        cells: list[tuple[Any, ...]] = [(empty, empty, empty)]
        weight = self._weights[name]
        if not (weight and self.joint._is_plain):
            for some, piece in self._tables[name].in_pieces():
                i, j = np.nonzero(np.isnan(piece))
                i = i + some.start
                if weight:
                    codes = self.joint._codes(self._index(name, i, j))
                else:
                    codes = self._codes_beside(name, i, j)
                kept = codes >= UNBOUNDED
                cells.append((i[kept], j[kept], codes[kept]))
        return UndeterminedCells(*map(np.concatenate, zip(*cells, strict=True)))

    def _codes_beside(self, name: str, i: Ints, j: Ints) -> SmallInts:
        """Fates of cells of a table of weight 0."""
        rows, columns = SHARED_SETS[name]
        product = getattr(self, rows)[i] * getattr(self, columns)[j]
        codes = np.where(np.isnan(self._values(name, i, j)), UNDETERMINED, FINITE)
        return np.where(np.isnan(product), EMPTY, codes).astype(np.int32)

    @property
    def n_undetermined(self) -> int:
        """Missing cells of all tables that cannot be known."""
        return sum(map(len, self.undetermined.values()))

    def reconstruct(self) -> tuple[Floats, Floats | None, Floats | None]:
        """Return the fitted tables; NaN where the data do not determine a value.

        Returns
        -------
        X, Y, Z : ndarray or None
            None for a table that was not given.
        """
        fitted = {name: self._reconstructed(name) for name in self._tables}
        return fitted["X"], fitted.get("Y"), fitted.get("Z")

    def _reconstructed(self, name: str) -> Floats:
        table = self._tables[name]
        fitted = np.empty((table.n_rows, table.n_cols))
        step = max(1, CELLS_AT_ONCE // table.n_cols)
        for start in range(0, table.n_rows, step):
            rows = np.arange(start, min(start + step, table.n_rows))
            i, j = np.meshgrid(rows, np.arange(table.n_cols), indexing="ij")
            values = self._values(name, i.ravel(), j.ravel())
            fitted[rows] = values.reshape(i.shape)
        return fitted

    def impute(
        self,
        X: Any = None,
        Y: Any = None,
        Z: Any = None,
        *,
        on_undetermined: OnUndetermined | None = None,
    ) -> tuple[Any, Any, Any]:
        """Fill the missing cells of the tables that were fitted.

        Parameters
        ----------
        X, Y, Z : table, optional
            The tables that were fitted, or those of them to be filled.
        on_undetermined : {"warn", "raise", "ignore"}, optional
            What to do about cells that the data do not determine; they stay missing.
            By default as in ``fit_nmmf``; its warning is not repeated.

        Returns
        -------
        X, Y, Z : table or None
            Filled copies of the same kind; None for a table that was not given.
        """
        check_on_undetermined(on_undetermined)
        tables = zip("XYZ", (X, Y, Z), strict=True)
        filled = {
            name: self._filled(name, table, on_undetermined)
            for name, table in tables
            if table is not None
        }
        return filled.get("X"), filled.get("Y"), filled.get("Z")

    def _filled(self, name: str, X: Any, how: OnUndetermined | None) -> Any:
        if name not in self._tables:
            raise ParameterError(
                f"{name} is not among the fitted tables: {listed(list(self._tables))}."
            )
        fitted = self._tables[name]
        rows = read_dense(X, name)
        _check_rows(name, rows, "the fitted table", fitted)
        _check_columns(name, rows, "the fitted table", fitted)

        def is_fitted(n_left: int) -> bool:
            is_same = bool(fitted.parts) and n_left == len(self.undetermined[name])
            return is_same and same_cells(rows, fitted)

        filled = fill_table(X, Fills(rows, partial(self._values, name)))
        warn_left(filled.left, rows, how, self._on_undetermined, is_fitted)
        return filled.table

    # --------------------------------------------------------------------- appearance
    def summary(self) -> dict[str, str]:
        """The fit in words, line by line."""
        sizes = []
        for name, table in self._tables.items():
            weight = self._weights[name]
            size = f"{name} {table.n_rows} x {table.n_cols}"
            sizes.append(size if weight == 1.0 else f"{size} (weight {weight:g})")
        lines = {
            "tables": ", ".join(sizes),
            "solver": solver_in_words(self.solver, self.n_iter),
            "certificate": f"{self.certificate:.1e}",
            "cell error": f"{self.cell_error:.1e}",
            "blocks": str(self.n_blocks),
        }
        if self.n_undetermined:
            lines["cannot be known"] = counted(self.n_undetermined, "missing cell")
        return lines

    def __getstate__(self) -> dict[str, Any]:
        """Pickle the fit without the tables, but with the results that need them."""
        results = {
            "blocks": self.blocks,
            "divergences": self.divergences,
            "undetermined": self.undetermined,
        }
        tables = {
            name: replace(table, parts=[]) for name, table in self._tables.items()
        }
        return self.__dict__ | results | {"_tables": tables}

    # ----------------------------------------------------------------------- warnings
    def _warn(self) -> None:
        """Warn of a poor certificate, empty entities and cells that cannot be known."""
        if text := text_of_convergence(self.joint):
            warn_user(ConvergenceWarning(*parts_of(text)))
        if empty := self._empty_entities():
            warn_user(
                f"Nothing determines {' and '.join(empty)}: these factors are NaN, and "
                "the cells that need them stay missing.",
                EmptyLineWarning,
            )
        if text := self._text_of_unknown():
            warn_undetermined(text, self._on_undetermined)

    def _empty_entities(self) -> list[str]:
        """Entities without a factor, by set."""
        names = []
        for name, labels in self._labels().items():
            at = np.flatnonzero(np.isnan(getattr(self, name))).tolist()
            if at:
                which = [text_of_label(k if labels is None else labels[k]) for k in at]
                names.append(f"{name}[{listed(which, MOST_NAMED)}]")
        return names

    def _labels(self) -> dict[str, Any]:
        """Labels of each set of entities; None where they have none."""
        labels: dict[str, Any] = {}
        for name, table in self._tables.items():
            sides = (table.row_labels, table.col_labels)
            for factor, names in zip(SHARED_SETS[name], sides, strict=True):
                if labels.get(factor) is None:
                    labels[factor] = names
        return labels

    def _text_of_unknown(self) -> Text:
        """Text about cells without a value, table by table; empty if there are none."""
        parts: list[Text] = []
        if n_zeros := self.joint._n_given_up:
            parts.append(text_of_zeros(n_zeros))
        how = self._on_undetermined
        for name, table in self._tables.items():
            cells = self.undetermined[name]
            known = np.flatnonzero(cells.code < EMPTY)
            if len(known):
                row, column, _ = cells[int(known[0])]
                codes = cells.code.tolist()
                kinds = codes.count(UNBOUNDED), codes.count(UNDETERMINED)
                where = table.where(row, column)
                parts.append(text_of_unknown_cells(*kinds, where, of=name, how=how))
        return separated(parts)


def _blocks_of(factor: Floats, block: Any) -> SmallInts:
    """Block of each entity; -1 where the factor is 0 or NaN."""
    return np.where(factor > 0.0, block, -1).astype(np.int32)


def _block_sums(factor: Floats, block: Any, n: int, n_blocks: int) -> Floats:
    """Sum by block of the first n factors; of all factors where a block has none."""
    if n_blocks <= 1:
        total = np.nansum(factor[:n]) or np.nansum(factor)
        return np.full(n_blocks, total)
    known = block >= 0
    of_all = weighted_counts(block[known], factor[known], n_blocks)
    known[n:] = False
    of_first = weighted_counts(block[known], factor[known], n_blocks)
    return np.where(of_first > 0.0, of_first, of_all)
