"""Tables of any number of modes, read as lists of their observed cells."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from a1gm._base.types import AnyArray, Bools, Floats, Ints
from a1gm._base.words import counted, did_you_mean, listed
from a1gm._observe.observe import observe
from a1gm._observe.patterns import Patterns
from a1gm._rows.labels import label_at
from a1gm._rows.rows import as_array, as_kernel_array, check_values, table_of
from a1gm._rows.weights import check_weights, weights_or_exposure
from a1gm.exceptions import (
    DataError,
    LabelError,
    NotNumericError,
    NotRepresentableError,
    ParameterError,
    WeightsError,
)
from a1gm.tensor.problem import Levels, Margin, Problem
from a1gm.tensor.reduce import distinct_rows, number_rows

MOST_MODES = 32
FAR = 300  # power of two of numbers up to which they are not rescaled
LARGE = 1 << 12  # cells of an array from which on they are listed only if needed


@dataclass(frozen=True)
class Listed:
    """Numbers of some cells of a table."""

    codes: Ints  # of the cells, ascending
    values: Floats
    shape: tuple[int, ...]

    @classmethod
    def of(cls, index: Any, values: Floats, shape: tuple[int, ...]) -> Listed:
        """The numbers of cells by their positions along every mode."""
        codes = np.ravel_multi_index(tuple(index), shape)
        order = np.argsort(codes, kind="stable")
        return cls(codes[order], values[order], shape)

    def __getitem__(self, index: tuple[Ints, ...]) -> Floats:
        """Numbers of cells; NaN for those that are not listed."""
        wanted = np.ravel_multi_index(index, self.shape)
        at = np.minimum(np.searchsorted(self.codes, wanted), len(self.codes) - 1)
        return np.where(self.codes[at] == wanted, self.values[at], np.nan)


@dataclass(frozen=True)
class Cells:
    """The cells of a table that have a value, by their positions along every mode.

    ``positions`` are None for a large array, ``numbers`` with NaN for the missing
    cells, which is listed where that is needed. ``weights`` are those of the cells, or
    their exposures if the table is ``exposed``; ``labels`` of a mode are None where its
    levels have no names. ``every`` has the weights of all cells of an array, missing
    ones included.
    """

    positions: tuple[Ints, ...] | None
    numbers: Floats
    shape: tuple[int, ...]
    modes: tuple[Any, ...]
    labels: tuple[Any, ...]
    weights: Floats | None = None
    exposed: bool = False
    every: Any = None
    name: str = "T"
    n_threads: int | None = None  # of a pass over an array

    @cached_property
    def index(self) -> tuple[Ints, ...]:
        """Positions of the cells along every mode."""
        if self.positions is not None:
            return self.positions
        return np.nonzero(self._observed)

    @cached_property
    def values(self) -> Floats:
        """Values of the cells."""
        if self.positions is not None:
            return self.numbers
        found: Floats = self.numbers[self._observed]
        return found

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
        then: Any = self.__dict__.get("fibres")
        now = then and self._look()
        if then and not (
            np.array_equal(now.sum_of_row, then.sum_of_row)
            and np.array_equal(now.col_sums, then.col_sums)
            and np.array_equal(now.keys, then.keys)
        ):
            raise DataError(
                f"{self.name} was changed after it was fitted, so its cells are no "
                "longer those of this fit. Fit it again, or fit a copy."
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
    def weights_or_ones(self) -> Floats:
        """Weights or exposures of the cells; 1 without any."""
        return np.ones(len(self.values)) if self.weights is None else self.weights

    @property
    def cells(self) -> Floats:
        """The numbers, as weights are checked."""
        return self.numbers

    def only(self, chosen: Bools) -> Cells:
        """Some of the cells."""
        return replace(
            self,
            positions=tuple(k[chosen] for k in self.index),
            numbers=self.values[chosen],
            weights=None if self.weights is None else self.weights[chosen],
        )

    def check(self) -> None:
        """Raise for cells, weights and shapes that cannot be fitted."""
        try:  # the quickest look at a large array
            if self.positions is None and self.fibres.col_sums.any():
                return
        except DataError:  # named below
            pass
        check_values(self, self.values, None)
        if not len(self.values):
            raise DataError(
                f"{self.name} has no observed cell: there is nothing to fit."
            )


def read_cells(
    T: Any,
    names: Any = None,
    weights: Any = None,
    exposure: Any = None,
    n_threads: int | None = None,
) -> Cells:
    """Read an array, a sparse array of coordinates, or (indices, values)."""
    name, given = weights_or_exposure(weights, exposure)
    index, values, shape = _listed(T) or (None, *_dense(T))
    is_list = index is not None
    modes = _names_of(names, len(shape))
    labels = (None,) * len(shape)
    if not is_list and (given is not None or values.size < LARGE):
        index = np.nonzero(~np.isnan(values))
        values = values[index]
    found = Cells(index, values, shape, modes, labels, n_threads=n_threads)
    if given is not None:
        every = _weights_of(name, given, shape, len(values) if is_list else None)
        is_whole = every.shape == shape
        V = every[found.index] if is_whole else every
        is_known = ~np.isnan(values)
        check_weights(replace(found, numbers=V, name=name).only(is_known))
        found = replace(
            found,
            weights=V,
            exposed=name == "exposure",
            every=every if is_whole else None,
        ).only(is_known & (np.nan_to_num(V) > 0.0))
    elif is_list and np.isnan(values).any():
        found = found.only(~np.isnan(values))
    found.check()
    return found


def check_finite(cells: Floats, modes: Sequence[Any], labels: Sequence[Any]) -> None:
    """Raise for cells of an array that cannot be fitted, by their labels."""
    bad = np.nonzero((cells < 0.0) | np.isinf(cells))
    found = Cells(bad, cells[bad], cells.shape, tuple(modes), tuple(labels))
    check_values(found, found.values, None)


def _dense(T: Any) -> tuple[Floats, tuple[int, ...]]:
    cells = dense_cells(T)
    _check_shape(cells.shape)
    return cells, cells.shape


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
            "sparse.COO with fill_value=np.nan; fit.predict(indices) fills cells."
        )
    array, mask = as_array(T, name)
    if mask is not None and array.dtype.kind == "O":
        array = np.where(mask, np.array(None), array)
    flat = as_kernel_array(array.reshape(-1, 1), name)
    cells = flat.reshape(array.shape).astype(np.float64, copy=False)
    return cells if mask is None else np.where(mask, np.nan, cells)


def _listed(T: Any) -> tuple[tuple[Ints, ...], Floats, tuple[int, ...]] | None:
    """Cells of a sparse array of coordinates, or of indices and values; else None."""
    if isinstance(T, tuple) and len(T) in (2, 3) and np.ndim(T[1]) == 1:
        coords, values = T[:2]
        shape = T[2] if len(T) == 3 else None
    elif hasattr(T, "coords") and np.isnan(getattr(T, "fill_value", 0.0)):
        coords, values, shape = T.coords, T.data, T.shape
    else:
        return None
    index = tuple(_positions(k, mode) for mode, k in enumerate(coords))
    cells = as_kernel_array(np.asarray(values).reshape(-1, 1), "values")
    values = cells.ravel().astype(np.float64)
    if any(len(k) != len(values) for k in index):
        raise DataError(
            f"The indices have lengths {listed([len(k) for k in index])}, but there "
            f"are {counted(len(values), 'value')}: pass one position per mode and cell."
        )
    lengths = [int(k.max(initial=-1)) + 1 for k in index]
    shape = tuple(lengths) if shape is None else tuple(int(n) for n in shape)
    _check_shape(shape)
    if len(shape) != len(index) or any(
        n > s for n, s in zip(lengths, shape, strict=True)
    ):
        raise DataError(
            f"The indices reach {tuple(n - 1 for n in lengths)}, but the shape is "
            f"{shape}. Positions are counted from 0."
        )
    _check_once(index, shape)
    return index, values, shape


def _positions(given: Any, mode: int) -> Ints:
    found = np.asarray(given)
    if found.dtype.kind not in "iu" or found.ndim != 1 or (found < 0).any():
        raise DataError(
            f"The positions along mode {mode} must be whole numbers of at least 0, one "
            "per cell."
        )
    return found.astype(np.int64)


def _check_once(index: Sequence[Ints], shape: Sequence[int]) -> None:
    """Raise for a cell that is listed twice."""
    codes = number_rows(index, shape)
    if codes is not None and (codes[1:] > codes[:-1]).all():
        return
    distinct, place = distinct_rows(index, *shape)
    n_more = len(place) - len(distinct[0])
    if n_more:
        at = int(np.argmax(np.bincount(place)[place] > 1))
        cell = ", ".join(str(int(k[at])) for k in index)
        raise LabelError(
            f"The cell ({cell}) is listed {counted(n_more, 'time', 'times')} too "
            "often. A cell has one value: add such values up, or drop one."
        )


def _check_shape(shape: Sequence[int]) -> None:
    if len(shape) == 0:
        raise DataError("T is a single number, not a table: it has no modes.")
    if len(shape) > MOST_MODES:
        raise DataError(
            f"T has {len(shape)} modes; at most {MOST_MODES} are supported."
        )
    if 0 in shape:
        mode = list(shape).index(0)
        raise DataError(
            f"T has shape {tuple(shape)}: mode {mode} has no levels. Every mode needs "
            "at least one."
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
    if len(set(found)) < n:
        raise ParameterError(f"names must be different, got {listed(found)}.")
    return found


# ---------------------------------------------------------------------------- weights
def _weights_of(
    name: str, given: Any, shape: tuple[int, ...], n_listed: int | None
) -> AnyArray:
    """Weights of all cells, or of the listed ones where both come as a list."""
    found = dense_cells(given, name).copy()  # the fit keeps it
    if found.shape == (n_listed,) and found.shape != shape:
        return found
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
        is_set = isinstance(given, tuple | list) and not _is_one(given, modes)
        members = given if is_set else (given,)
        if isinstance(given, str) and not _is_one(given, modes):
            members = given.split(":")
        found.append(tuple(sorted({_mode_of(one, modes) for one in members})))
    if len(modes) > 1 and any(len(margin) == len(modes) for margin in found):
        raise ParameterError(
            f"The interaction of all modes ({listed(modes)}) would fit every observed "
            "cell by itself: nothing would be filled. Leave one out."
        )
    found += [(k,) for k in range(len(modes))]
    largest = [
        margin
        for margin in dict.fromkeys(found)
        if not any(set(margin) < set(other) for other in found)
    ]
    return tuple(sorted(largest))


def _is_one(given: Any, modes: Sequence[Any]) -> bool:
    """Whether a mode is given by itself, not a set of modes."""
    is_mode = isinstance(given, Hashable) and given in modes
    return is_mode or isinstance(given, int | np.integer)


def _mode_of(given: Any, modes: Sequence[Any]) -> int:
    if isinstance(given, Hashable) and given in modes:
        return list(modes).index(given)
    is_number = isinstance(given, int | np.integer) and not isinstance(given, bool)
    if is_number and -len(modes) <= given < len(modes):
        return int(given) % len(modes)
    hint = did_you_mean(given, map(str, modes))
    raise ParameterError(
        f"interactions names {given!r}, which is no mode: they are {listed(modes)}."
        f"{hint}"
    )


# ------------------------------------------------------------------------ the problem
def problem_of(
    cells: Cells, levels: Sequence[Levels], n_threads: int | None
) -> tuple[Problem, int]:
    """The problem far from the ends of float64, and the power of two of its unit."""
    x, v = cells.values, cells.weights
    exponent = _exponent(x)
    s = np.ldexp(x, -exponent)
    if v is not None:
        of_weights = _exponent(v)
        v = np.ldexp(v, -of_weights)
        if cells.exposed:
            exponent -= of_weights
        else:
            s = s * v
    lost = (s == 0.0) & (x > 0.0)
    if lost.any():
        raise NotRepresentableError(
            f"{cells.where(int(lost.argmax()))} is so much smaller than the largest "
            "cells that float64 cannot hold both in one sum. Multiply levels by powers "
            "of ten that bring the cells closer together."
        )
    found = [level.find(cells.index) for level in levels]
    sizes = [level.size for level in levels]
    return Problem.of(s, v, found, sizes, n_threads), exponent


def _exponent(x: Any) -> int:
    """The power of two of the largest number; 0 where its sums are far from the ends.

    Those of float64.
    """
    exponent = math.frexp(float(x.max(initial=0.0)))[1]
    return exponent if abs(exponent) > FAR else 0
