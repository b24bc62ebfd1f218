"""A vector with one number per row that is computed where it is looked at."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, overload

import numpy as np
import numpy.typing as npt

from a1gm._base.types import Floats, Ints
from a1gm._base.words import counted

ROWS_AT_ONCE = 1 << 16


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
    dtype = np.dtype(np.float64)

    def __init__(self, n: int, compute: Callable[[int, int], Floats]) -> None:
        self._n = n
        self._compute = compute

    def __len__(self) -> int:
        return self._n

    @property
    def shape(self) -> tuple[int]:
        """Number of rows."""
        return (self._n,)

    @property
    def size(self) -> int:
        """Number of rows."""
        return self._n

    @overload
    def __getitem__(self, at: int | np.integer[Any]) -> float: ...
    @overload
    def __getitem__(self, at: slice | list[int] | npt.NDArray[Any]) -> Floats: ...
    def __getitem__(self, at: Any) -> Any:
        if isinstance(at, slice):
            rows = range(self._n)[at]
            if rows.step != 1:
                return self._take(np.arange(rows.start, rows.stop, rows.step))
            return np.concatenate([np.zeros(0), *self._pieces(rows)])
        if isinstance(at, int | np.integer):
            row = int(at) + self._n if at < 0 else int(at)
            if not 0 <= row < self._n:
                there = counted(self._n, "row")
                raise IndexError(f"Row {int(at)} is outside the {there}.")
            return float(self._compute(row, row + 1)[0])
        places = np.asarray(at)
        if places.dtype == bool:
            places = np.flatnonzero(places)
        return self._take(np.where(places < 0, places + self._n, places))

    def _take(self, places: Ints) -> Floats:
        out = np.empty(places.shape)
        if places.size == 0:
            return out
        if places.min() < 0 or places.max() >= self._n:
            raise IndexError(
                f"Rows outside the {counted(self._n, 'row')} were asked for."
            )
        piece = places // ROWS_AT_ONCE
        for k in np.unique(piece):
            chosen = piece == k
            first, last = int(places[chosen].min()), int(places[chosen].max())
            out[chosen] = self._compute(first, last + 1)[places[chosen] - first]
        return out

    def _pieces(self, rows: range) -> Iterator[Floats]:
        """Yield the numbers of some rows, a bounded number at a time."""
        for start in range(rows.start, rows.stop, ROWS_AT_ONCE):
            yield self._compute(start, min(start + ROWS_AT_ONCE, rows.stop))

    def __iter__(self) -> Iterator[float]:
        for piece in self._pieces(range(self._n)):
            yield from piece.tolist()

    def __array__(
        self, dtype: Any = None, copy: bool | None = None
    ) -> npt.NDArray[Any]:
        if copy is False:
            raise ValueError(
                "The rows are computed when looked at, so a copy cannot be avoided."
            )
        return self[:].astype(np.float64 if dtype is None else dtype, copy=False)

    def __repr__(self) -> str:
        shown = ", ".join(f"{x:.6g}" for x in self[:4])
        more = ", ..." if self._n > 4 else ""
        return f"LazyRows([{shown}{more}], {counted(self._n, 'row')})"
