"""Tables of any number of modes, read as their observed cells."""

from __future__ import annotations

import math
import operator
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from a1gm._base.types import AnyArray, Bools, Floats, Ints
from a1gm._base.words import counted, did_you_mean, listed
from a1gm._fit.frames import Long
from a1gm._observe.observe import observe
from a1gm._observe.patterns import Patterns, weighted_counts
from a1gm._rows.labels import label_at
from a1gm._rows.long import Duplicates, LongTable
from a1gm._rows.rows import (
    as_array,
    as_kernel_array,
    check_values,
    objects_to_floats,
    table_of,
)
from a1gm._rows.weights import check_weights, weights_or_exposure
from a1gm.exceptions import (
    DataError,
    LabelError,
    NotNumericError,
    NotRepresentableError,
    ParameterError,
    WeightsError,
)
from a1gm.tensor.problem import (
    MOST_MODES,
    Levels,
    Margin,
    Problem,
    distinct_rows,
    row_keys,
)

FAR = 300  # power of two of numbers up to which they are not rescaled
LARGE = 1 << 12  # cells of an array from which on they are listed only if needed


@dataclass(frozen=True)
class Listed:
    """Numbers of some cells of a table, which are levels of all its modes together."""

    levels: Levels
    values: Floats

    @classmethod
    def of(cls, index: Sequence[Ints], values: Floats, shape: Sequence[int]) -> Listed:
        """The numbers of cells by their positions along every mode."""
        levels = Levels.every(tuple(range(len(shape))), shape).where(index)
        return cls(levels, values[np.argsort(levels.find(index))])

    def __getitem__(self, index: Sequence[Ints]) -> Floats:
        """Numbers of cells; NaN for those that are not listed."""
        at = self.levels.find(index)
        return np.where(at >= 0, self.values[at], np.nan)


@dataclass(frozen=True)
class Cells:
    """The cells of a table that have a value, by their positions along every mode.

    ``positions`` are None for a large array, ``numbers`` with NaN for the missing
    cells, which is listed where that is needed. ``weights`` are those of the cells, or
    their exposures if the table is ``exposed``, ``every`` has those of missing cells as
    well, by positions. ``labels`` of a mode are None where its levels have no names.
    """

    positions: tuple[Ints, ...] | None
    numbers: Floats
    shape: tuple[int, ...]
    modes: tuple[Any, ...] = ()
    labels: tuple[Any, ...] = ()
    weights: Floats | None = None
    exposed: bool = False
    every: Any = None
    name: str = "T"
    n_threads: int | None = None  # of a pass over an array

    @cached_property
    def index(self) -> tuple[Ints, ...]:
        """Positions of the cells along every mode."""
        return np.nonzero(self._observed) if self.positions is None else self.positions

    @cached_property
    def values(self) -> Floats:
        """Values of the cells."""
        return self.numbers[self._observed] if self.positions is None else self.numbers

    @cached_property
    def fibres(self) -> Patterns:
        """Sums of the fibres of an array along its last mode, and what they observe."""
        return self._look()

    def _look(self) -> Patterns:
        table = table_of(self.numbers.reshape(-1, self.shape[-1]))
        return observe(table, n_threads=self.n_threads)

    @cached_property
    def _observed(self) -> Bools:
        """Observed cells of an array, which must be as it was when it was fitted."""
        if then := self.__dict__.get("fibres"):
            now = self._look()
            for part in ("sum_of_row", "col_sums", "keys"):
                if not np.array_equal(getattr(now, part), getattr(then, part)):
                    raise DataError(
                        f"{self.name} was changed after it was fitted, so its cells "
                        "are no longer those of this fit. Fit it again, or fit a copy."
                    )
        return ~np.isnan(self.numbers)

    def name_of(self, at: Sequence[Any]) -> str:
        """Name the cell at a position along every mode by its labels."""
        places = zip(self.labels, at, strict=True)
        return f"{self.name}[{', '.join(label_at(n, int(k)) for n, k in places)}]"

    def where(self, row: int, col: int = 0, row_offset: int = 0) -> str:
        """Name a cell of the list."""
        return self.name_of([k[row] for k in self.index])

    def position(self, at: int) -> tuple[int, int]:
        """Row and column of a cell in the list."""
        return at, 0

    @property
    def cells(self) -> Floats:
        """The numbers, as weights are checked."""
        return self.numbers

    @property
    def n_observed(self) -> int:
        """Number of cells, also of an array that was changed since."""
        if self.positions is not None:
            return len(self.numbers)
        n, counts = np.bitwise_count(self.fibres.keys).sum(axis=1), self.fibres.counts
        return int(n.sum() if counts is None else n @ counts)

    @property
    def weights_or_ones(self) -> Floats:
        """Weights or exposures of the cells; 1 without any."""
        return np.ones(len(self.values)) if self.weights is None else self.weights

    def only(self, chosen: Bools) -> Cells:
        """Some of the cells."""
        return replace(
            self,
            positions=tuple(k[chosen] for k in self.index),
            numbers=self.values[chosen],
            weights=None if self.weights is None else self.weights[chosen],
        )

    def checked(self) -> Cells:
        """Raise for cells that cannot be fitted; leave out those without a weight."""
        found = self
        if self.weights is not None:
            found = self.only(np.nan_to_num(self.weights) > 0.0)
        try:  # the quickest look at a large array
            if found.positions is None and found.fibres.col_sums.any():
                return found
        except DataError:  # named below
            pass
        check_values(found, found.values, None)
        if len(found.values):
            return found
        raise DataError(f"{self.name} has no observed cell: there is nothing to fit.")

    def problem(self, levels: Sequence[Levels]) -> Problem:
        """Their problem, in units that are far from the ends of float64."""
        x, v = self.values, self.weights
        exponent = in_sums = _exponent(x)
        s = np.ldexp(x, -exponent)
        if v is not None:
            of_weights = _exponent(v)
            v = np.ldexp(v, -of_weights)
            if self.exposed:
                exponent -= of_weights
            else:
                s, in_sums = s * v, in_sums + of_weights
        lost = (s == 0.0) & (x > 0.0)
        if v is not None:
            lost |= v == 0.0
        if lost.any():
            raise NotRepresentableError(
                f"{self.where(int(lost.argmax()))}, or its weight, is so much smaller "
                "than the largest ones that float64 cannot hold both in one sum. "
                "Multiply levels by powers of ten that bring them closer together."
            )
        units = {"exponent": exponent, "unit": in_sums}
        n = self.n_threads
        return Problem.of(levels, self.index, s=s, v=v, n_threads=n, **units)


def _exponent(x: Floats) -> int:
    """The power of two of the largest number; 0 where sums are far from the ends."""
    exponent = math.frexp(float(x.max(initial=0.0)))[1]
    return exponent if abs(exponent) > FAR else 0


def read_cells(
    T: Any,
    names: Any = None,
    weights: Any = None,
    exposure: Any = None,
    n_threads: int | None = None,
) -> Cells:
    """Read an array, a sparse array of coordinates, or (indices, values)."""
    name, given = weights_or_exposure(weights, exposure)
    index, values, shape = _listed(T) or _dense(T)
    every = None if given is None else _weights_of(name, given, shape, index)
    if index is not None or every is not None or values.size < LARGE:
        places = np.nonzero(~np.isnan(values))
        index = places if index is None else tuple(k[places] for k in index)
        values = values[places]
    modes, labels = _names_of(names, len(shape)), (None,) * len(shape)
    cells = Cells(index, values, shape, modes, labels, n_threads=n_threads)
    if every is not None and index is not None:
        V, is_exposure = every[index], name == "exposure"
        check_weights(replace(cells, numbers=V, name=name))
        cells = replace(cells, weights=V, exposed=is_exposure, every=every)
    return cells.checked()


def cells_of_long(table: LongTable, duplicates: Duplicates) -> tuple[Cells, Long]:
    """The cells of a long table, and what its frame has beside them."""
    shape = tuple(len(key.values) for key in table.keys)
    codes = [key.codes.astype(np.int64) for key in table.keys]
    index, place = distinct_rows(codes, shape)
    n = len(index[0])
    if n < len(table.values) and duplicates == "raise":
        table.refuse_duplicates()
    known = ~np.isnan(table.values)
    values = weighted_counts(place[known], table.values[known], n)
    weights = every = None
    if table.weights is not None:
        weights = np.full(n, np.nan)
        weights[place] = table.weights
        every = Listed.of(index, weights, shape)
    *modes, name = table.names
    labels = tuple(key.labels for key in table.keys)
    about = tuple(modes), labels, weights, table.exposed, every, str(name)
    cells = Cells(tuple(index), values, shape, *about)
    cells = cells.only(np.bincount(place[known], minlength=n) > 0).checked()
    keys = tuple(key.values for key in table.keys)
    return cells, Long(table.names, keys, str(table.frame.implementation.value))


def _dense(T: Any) -> tuple[None, Floats, tuple[int, ...]]:
    cells = dense_cells(T)
    _check_shape(cells.shape)
    return None, cells, cells.shape


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
    if array.dtype.kind == "O":
        array = array if mask is None else np.where(mask, np.array(None), array)
        array = objects_to_floats(array, name)
    flat = as_kernel_array(array.reshape(-1, 1), name)
    cells = flat.reshape(array.shape).astype(np.float64, copy=False)
    return cells if mask is None else np.where(mask, np.nan, cells)


def _listed(T: Any) -> tuple[tuple[Ints, ...], Floats, tuple[int, ...]] | None:
    """Cells of a sparse array of coordinates, or of indices and values; else None."""
    if hasattr(T, "coords") and np.isnan(getattr(T, "fill_value", 0.0)):
        coords, given, shape = T.coords, T.data, T.shape
    elif isinstance(T, tuple) and len(T) in (2, 3):
        coords, given, shape = (*T, None)[:3]
        if as_array(given, "values")[0].ndim != 1:
            return None
    else:
        return None
    try:
        index = tuple(np.asarray(k) for k in coords)
        shape = shape if shape is None else tuple(map(operator.index, shape))
    except (TypeError, ValueError) as error:
        raise DataError(
            "Pass (indices, values) or (indices, values, shape): an array of positions "
            "per mode, a value per cell, the length of each mode."
        ) from error
    values = dense_cells(given, "values").astype(np.float64)
    for mode, k in enumerate(index):
        is_whole = k.shape == values.shape and (k.dtype.kind in "iu" or not k.size)
        if not is_whole or (k.astype(np.int64) < 0).any():
            raise DataError(
                f"The positions along mode {mode} must be whole numbers of at least 0, "
                f"one per cell ({len(values):,} of them)."
            )
    index = tuple(k.astype(np.int64) for k in index)
    lengths = tuple(int(k.max(initial=-1)) + 1 for k in index)
    shape = lengths if shape is None else shape
    _check_shape(shape)
    if len(shape) != len(index) or (np.array(lengths) > shape).any():
        raise DataError(
            f"The indices reach {tuple(n - 1 for n in lengths)}, but the shape is "
            f"{shape}. Positions are counted from 0."
        )
    keys = row_keys(index, shape)
    if not (keys[1:] > keys[:-1]).all():
        _, place, n = np.unique(keys, return_inverse=True, return_counts=True)
        if n.max() > 1:
            at = int(np.argmax(n[place] > 1))
            cell = ", ".join(str(int(k[at])) for k in index)
            again = counted(len(keys) - len(n), "cell is", "cells are")
            raise LabelError(
                f"The cell ({cell}) is listed {n[place[at]]} times ({again} listed "
                "again in all). A cell has one value: add such values up, or drop one."
            )
    return index, values, shape


def _check_shape(shape: Sequence[int]) -> None:
    if len(shape) == 0:
        raise DataError("T is a single number, not a table: it has no modes.")
    if len(shape) > MOST_MODES:
        raise DataError(
            f"T has {len(shape)} modes; at most {MOST_MODES} are supported."
        )
    if 0 in shape:
        raise DataError(
            f"T has shape {tuple(shape)}: mode {list(shape).index(0)} has no levels. "
            "Every mode needs at least one."
        )


def _names_of(names: Any, n: int) -> tuple[Any, ...]:
    if names is None:
        return tuple(range(n))
    if not isinstance(names, Iterable):
        raise ParameterError(f"names must be one name per mode, got {names!r}.")
    found = (names,) if isinstance(names, str) else tuple(names)
    if len(found) != n:
        raise ParameterError(
            f"names has {counted(len(found), 'name')}, but T has {counted(n, 'mode')}."
        )
    are_names = all(isinstance(name, Hashable) for name in found)
    if len(set(map(repr, found))) < n or not are_names:
        raise ParameterError(f"names must be different words, got {listed(found)}.")
    return found


def _weights_of(
    name: str, given: Any, shape: tuple[int, ...], index: Any
) -> AnyArray | Listed:
    """Weights by positions: of all cells, or of listed ones that come as a list."""
    found = dense_cells(given, name).copy()  # the fit keeps it
    if index is not None and found.shape == index[0].shape != shape:
        return Listed.of(index, found, shape)
    try:
        return np.broadcast_to(found, shape)
    except ValueError as error:
        raise WeightsError(
            f"{name} has shape {found.shape}, but T has shape {shape}. Pass one number "
            "per cell, or an array that broadcasts to T."
        ) from error


# ----------------------------------------------------------------------- interactions
def margins_of(interactions: Any, modes: Sequence[Any]) -> tuple[Margin, ...]:
    """Sets of modes that act together, and each other mode by itself, in their order.

    Sets inside others are dropped. Raises for unknown modes and a set of all modes.
    """
    found: list[Margin] = []
    sets = () if interactions is None else interactions
    is_list = isinstance(sets, Sequence) and not isinstance(sets, str)
    if not is_list or (len(sets) > 0 and all(_is_one(given, modes) for given in sets)):
        raise ParameterError(
            "interactions must be a list of sets of modes, such as "
            f"[{tuple(modes[:2])!r}], got {interactions!r}."
        )
    for given in sets:
        members = given.split(":") if isinstance(given, str) else given
        is_set = isinstance(members, tuple | list | set | frozenset)
        if _is_one(given, modes) or not is_set:
            members = (given,)
        found.append(tuple(sorted({mode_of(one, modes) for one in members})))
    if len(modes) > 1 and any(len(margin) == len(modes) for margin in found):
        raise ParameterError(
            f"The interaction of all modes ({listed(modes)}) would fit every observed "
            "cell by itself: nothing would be filled. Leave one out."
        )
    found += [(k,) for k in range(len(modes))]
    is_inside = [any(set(own) < set(other) for other in found) for own in found]
    pairs = zip(found, is_inside, strict=True)
    return tuple(sorted({margin for margin, inside in pairs if not inside}))


def _is_one(given: Any, modes: Sequence[Any]) -> bool:
    """Whether a mode is given by itself, not a set of modes."""
    is_mode = isinstance(given, Hashable) and given in modes
    return is_mode or isinstance(given, int | np.integer)


def mode_of(given: Any, modes: Sequence[Any], what: str = "interactions") -> int:
    """Number of a mode that is given by its name or number."""
    if isinstance(given, Hashable) and given in modes:
        return list(modes).index(given)
    is_number = isinstance(given, int | np.integer) and not isinstance(given, bool)
    if is_number and -len(modes) <= given < len(modes):
        return int(given) % len(modes)
    hint = did_you_mean(given, map(str, modes))
    raise ParameterError(
        f"{what} names {given!r}, which is no mode: they are {listed(modes)}.{hint}"
    )
