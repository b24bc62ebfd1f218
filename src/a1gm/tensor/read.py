"""Tables of any number of modes, read as their observed cells."""

from __future__ import annotations

import operator
from collections.abc import Hashable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from a1gm._base.float_range import LARGEST, LEAST, check_range
from a1gm._base.types import Bools, Floats, Ints
from a1gm._base.words import listed
from a1gm._fit.frames import of_cells
from a1gm._observe.observe import observe
from a1gm._observe.patterns import Patterns
from a1gm._rows.labels import Lookup, label_at, names_in
from a1gm._rows.long import Duplicates, Key, LongTable
from a1gm._rows.rows import as_array, as_kernel_array, table_of
from a1gm._rows.weights import weights_or_exposure
from a1gm.exceptions import (
    DataError,
    LabelError,
    NotNumericError,
    ParameterError,
)
from a1gm.tensor.problem import MOST_MODES, Levels, Margin, Problem, row_keys

LARGE = 1 << 12  # cells of an array from which on they are listed only if needed


@dataclass(frozen=True)
class Cells:
    """Cells of a table, by their positions along every mode.

    ``numbers`` are NaN for missing cells. ``positions`` ascend; they are None for a
    large array, whose observed cells are listed where that is needed. ``all_weights``
    are those of the numbers, or their exposures if the table is ``exposed``, missing
    cells included. ``labels`` of a mode are None where its levels have no names.
    """

    positions: tuple[Ints, ...] | None
    numbers: Floats
    shape: tuple[int, ...]
    modes: tuple[Any, ...] = ()
    labels: tuple[Any, ...] = ()
    all_weights: Floats | None = None
    exposed: bool = False
    name: str = "T"
    n_threads: int | None = None  # of a pass over an array

    @cached_property
    def index(self) -> tuple[Ints, ...]:
        """Positions of the observed cells along every mode."""
        observed = self._observed
        if self.positions is None:
            return np.nonzero(observed)
        if observed.all():
            return self.positions
        return tuple(k[observed] for k in self.positions)

    @cached_property
    def values(self) -> Floats:
        """Values of the observed cells."""
        return self.numbers[self._observed]

    @cached_property
    def weights(self) -> Floats | None:
        """Weights or exposures of the observed cells."""
        return None if self.all_weights is None else self.all_weights[self._observed]

    @property
    def weights_or_ones(self) -> Floats:
        """Weights or exposures of the observed cells; 1 without any."""
        return np.ones(len(self.values)) if self.weights is None else self.weights

    @cached_property
    def fibres(self) -> Patterns:
        """Sums of the fibres of an array along its last mode, and what they observe."""
        table = table_of(self.numbers.reshape(-1, self.shape[-1]))
        return observe(table, n_threads=self.n_threads)

    @cached_property
    def _observed(self) -> Bools:
        """Which numbers are observed; an array must be as it was when it was fitted."""
        if then := self.__dict__.get("fibres"):
            now = replace(self).fibres
            for part in ("sum_of_row", "col_sums", "keys"):
                if not np.array_equal(getattr(now, part), getattr(then, part)):
                    raise DataError(
                        f"{self.name} was changed after it was fitted, so its cells "
                        "are no longer those of this fit. Fit it again, or fit a copy."
                    )
        return ~np.isnan(self.numbers)

    @property
    def n_observed(self) -> int:
        """Number of observed cells, also of an array that was changed since."""
        if self.positions is not None:
            return len(self.values)
        n, counts = np.bitwise_count(self.fibres.keys).sum(axis=1), self.fibres.counts
        return int(n.sum() if counts is None else n @ counts)

    @cached_property
    def _levels(self) -> Levels:
        """Listed cells as levels of all modes together."""
        assert self.positions is not None
        every = Levels.every(tuple(range(len(self.shape))), self.shape)
        return every.where(self.positions)

    def weights_at(self, index: Sequence[Ints]) -> Floats:
        """Weights or exposures of cells; NaN for those that are not listed."""
        assert self.all_weights is not None
        at = self._levels.find(index)
        return np.where(at >= 0, self.all_weights[at], np.nan)

    def name_of(self, at: Sequence[Any]) -> str:
        """Name the cell at a position along every mode by its labels."""
        places = zip(self.labels, at, strict=True)
        return f"{self.name}[{', '.join(label_at(n, int(k)) for n, k in places)}]"

    def only(self, chosen: Bools | slice = slice(None)) -> Cells:
        """Some of the observed cells, or all, as a list."""
        return replace(
            self,
            positions=tuple(k[chosen] for k in self.index),
            numbers=self.values[chosen],
            all_weights=None if self.weights is None else self.weights[chosen],
        )

    def problem(self, levels: Sequence[Levels]) -> Problem:
        """Their problem; raises where cells, weights or sums are out of range."""
        s = self.values
        v = self.weights
        cell = self._name_at
        if v is not None:
            check_range(v, cell)
            s = s if self.exposed else s * v
            # A product below the smallest float64 would count as an observed zero.
            check_range(np.where((s < LEAST) & (self.values > 0.0), LEAST, 0.0), cell)
        check_range(np.where(s > LARGEST, s, 0.0), cell)
        p = Problem.of(levels, self.index, s=s, v=v, n_threads=self.n_threads)
        check_range(p.sums, lambda at: cell((p.level == at).any(axis=0).argmax()))
        return p

    def _name_at(self, at: Any) -> str:
        """Name an observed cell by its number."""
        return self.name_of([k[at] for k in self.index])


# --------------------------------------------------------------------------- any table
def read_cells(
    T: Any,
    names: Any = None,
    weights: Any = None,
    exposure: Any = None,
    n_threads: int | None = None,
) -> Cells:
    """Read an array, a sparse array of coordinates, or (indices, values)."""
    name, given = weights_or_exposure(weights, exposure)
    index, x, shape = _coordinates(T) or (None, dense_cells(T), None)
    shape = x.shape if shape is None else shape
    if not 1 <= len(shape) <= MOST_MODES or min(shape) < 1:
        raise DataError(
            f"T has shape {shape}. A table has at least 1 and at most {MOST_MODES} "
            "modes, and every mode at least one level."
        )
    modes, V = _names_of(names, len(shape)), None
    if given is not None:
        V = of_cells(name, dense_cells(given, name), x.shape).flatten()
    elif index is None and x.size >= LARGE:
        no_labels = (None,) * len(shape)
        cells = Cells(None, x, shape, modes, no_labels, n_threads=n_threads)
        with suppress(DataError):  # the list names the cell
            sums = cells.fibres.col_sums
            check_range(sums, str)
            if sums.any():
                return cells
    if index is None:
        index = tuple(k.ravel() for k in np.indices(shape))
    table = listed_table(index, x.flatten(), shape, modes)
    table = replace(table, weights=V, exposed=name == "exposure")
    return cells_of_long(table, n_threads=n_threads)


def listed_table(
    index: Sequence[Ints], values: Floats, shape: Sequence[int], modes: Sequence[Any]
) -> LongTable:
    """Cells by their positions along every mode, as a long table."""
    keys = tuple(Key(k, range(n)) for k, n in zip(index, shape, strict=True))
    return LongTable(None, (*modes, "T"), keys, values, place_of=None, name="T")


def cells_of_long(
    table: LongTable, duplicates: Duplicates = "raise", n_threads: int | None = None
) -> Cells:
    """The cells of a long table, each once, in the order of its keys."""
    numbers = row_keys([key.codes for key in table.keys], table.shape)
    if not (numbers[1:] > numbers[:-1]).all():
        order = np.argsort(numbers)
        starts = np.flatnonzero(np.diff(numbers[order], prepend=-1))
        x, V = table.values[order], table.weights
        if len(starts) < len(order):
            if duplicates == "raise":
                table.refuse_duplicates()
            order, is_missing = order[starts], np.isnan(x)
            with np.errstate(over="ignore"):
                x = np.add.reduceat(np.where(is_missing, 0.0, x), starts)
            are_missing = np.logical_and.reduceat(is_missing, starts)
            some_missing = np.logical_or.reduceat(is_missing, starts)
            x[are_missing] = np.nan
            table.warn_partial(int(np.count_nonzero(some_missing & ~are_missing)))
        V = None if V is None else V[order]
        keys = tuple(replace(key, codes=key.codes[order]) for key in table.keys)
        table = replace(table, keys=keys, values=x, weights=V, place_of=None)
    table.check(None)
    *modes, name = table.names
    x, V = table.values, table.used_weights
    x = x if V is None else np.where(V > 0.0, x, np.nan)
    if np.isnan(x).all():
        raise DataError(f"{name} has no observed cell: there is nothing to fit.")
    index = tuple(key.codes.astype(np.int64, copy=False) for key in table.keys)
    about = tuple(modes), tuple(key.labels for key in table.keys), V, table.exposed
    return Cells(index, x, table.shape, *about, str(name), n_threads)


def dense_cells(T: Any, name: str = "T") -> Floats:
    """Read an array of numbers as float64, NaN for the missing cells; not a copy."""
    if hasattr(T, "columns") or hasattr(T, "iloc"):
        raise NotNumericError(
            f"{name} is a {type(T).__name__}. Fit a frame of two ways with a1gm.fit, "
            "one with a row per cell with a1gm.fit_long(frame, keys=[...], value=...)."
        )
    if hasattr(T, "todense"):
        raise NotNumericError(
            f"{name} is a sparse {type(T).__name__}, whose absent cells may be zeros "
            "or missing. If they are missing, fit (indices, values, shape) or a "
            "sparse.COO with fill_value=np.nan."
        )
    if hasattr(T, "dask"):
        raise NotNumericError(
            f"{name} is a Dask {type(T).__name__}, which is not loaded into memory "
            f"silently. Pass {name}.compute() if it fits."
        )
    array, mask = as_array(T, name)
    if mask is not None and array.dtype.kind == "O":
        array = np.where(mask, np.array(None), array)
    cells = np.asarray(as_kernel_array(array, name), np.float64, order="C")
    return cells if mask is None else np.where(mask, np.nan, cells)


def _coordinates(T: Any) -> tuple[tuple[Ints, ...], Floats, tuple[int, ...]] | None:
    """Positions, values and shape of a table that lists its cells; None of others."""
    if hasattr(T, "coords") and np.isnan(getattr(T, "fill_value", 0.0)):
        T = T.coords, T.data, T.shape
    if not isinstance(T, tuple) or len(T) not in (2, 3):
        return None
    given, values, shape = (*T, None)[:3]
    if as_array(values, "values")[0].ndim != 1:
        return None
    values = dense_cells(values, "values")
    try:
        columns = [np.asarray(k) for k in given]
        lengths = [2**62] * len(columns) if shape is None else shape
        lengths = np.fromiter(map(operator.index, lengths), np.int64).tolist()
        pairs = list(zip(columns, lengths, strict=True))
    except (TypeError, ValueError, OverflowError) as error:
        raise DataError(
            "Pass (indices, values) or (indices, values, shape): an array of positions "
            "per mode, a value per cell, the length of each mode."
        ) from error
    for mode, (k, n) in enumerate(pairs):
        is_whole = k.shape == values.shape and (k.dtype.kind in "iu" or not k.size)
        if not is_whole or (k.size and not 0 <= k.min() <= k.max() < n):
            inside = "" if shape is None else f", and below {n:,} in shape {shape}"
            raise DataError(
                f"The positions along mode {mode} must be whole numbers of at least 0"
                f"{inside}, one per cell ({len(values):,} of them)."
            )
    index = tuple(k.astype(np.int64) for k in columns)
    if shape is None:
        lengths = [int(k.max(initial=-1)) + 1 for k in index]
    return index, values, tuple(lengths)


def _names_of(names: Any, n: int) -> tuple[Any, ...]:
    found = tuple(range(n)) if names is None else names_in(names)
    if len(found) != n or len(set(found)) < n or isinstance(names, set):
        raise ParameterError(
            f"names must be {n} different names, one per mode of T, got {names!r}."
        )
    return found


# ----------------------------------------------------------------------- interactions
def margins_of(interactions: Any, modes: Sequence[Any]) -> tuple[Margin, ...]:
    """Sets of modes that act together, and each other mode by itself, in their order.

    Sets inside others are dropped. Raises for unknown modes and a set of all modes.
    """
    sets = () if interactions is None else interactions
    is_list = isinstance(sets, Sequence) and not isinstance(sets, str)
    if not is_list or (len(sets) > 0 and all(_is_one(given, modes) for given in sets)):
        raise ParameterError(
            "interactions must be a list of sets of modes, such as "
            f"[{tuple(modes[:2])!r}], got {interactions!r}."
        )
    found: set[Margin] = {(k,) for k in range(len(modes))}
    for given in sets:
        members = given.split(":") if isinstance(given, str) else given
        is_set = isinstance(members, tuple | list | set | frozenset)
        if _is_one(given, modes) or not is_set:
            members = (given,)
        found.add(tuple(sorted({mode_of(one, modes) for one in members})))
    if len(modes) > 1 and any(len(margin) == len(modes) for margin in found):
        raise ParameterError(
            f"The interaction of all modes ({listed(modes)}) would fit every observed "
            "cell by itself: nothing would be filled. Leave one out."
        )
    is_inside = {own: any(set(own) < set(other) for other in found) for own in found}
    return tuple(sorted(own for own, inside in is_inside.items() if not inside))


def _is_one(given: Any, modes: Sequence[Any]) -> bool:
    """Whether a mode is given by itself, not a set of modes."""
    is_mode = isinstance(given, Hashable) and given in modes
    return is_mode or isinstance(given, int | np.integer)


def mode_of(given: Any, modes: Sequence[Any], what: str = "interactions") -> int:
    """Number of a mode that is given by its name or number."""
    try:
        return int(Lookup("mode", modes, len(modes), "T").find(given))
    except (LabelError, TypeError) as error:
        raise ParameterError(f"{what} names {given!r}. {error}") from error
