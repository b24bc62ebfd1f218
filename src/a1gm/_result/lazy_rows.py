"""A vector with one number per row that is computed where it is looked at."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, overload

import numpy as np
import numpy.typing as npt

from a1gm._base.types import Floats, Ints
from a1gm._base.words import counted

__all__ = ["LazyRows"]

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
            return self._slice(at)
        if isinstance(at, int | np.integer):
            row = int(at) + self._n if at < 0 else int(at)
            if not 0 <= row < self._n:
                msg = f"Row {int(at)} is outside the {counted(self._n, 'row')}."
                raise IndexError(msg)
            return float(self._compute(row, row + 1)[0])
        places = np.asarray(at)
        if places.dtype == bool:
            places = np.flatnonzero(places)
        return self._take(np.where(places < 0, places + self._n, places))

    def _slice(self, at: slice) -> Floats:
        start, stop, step = at.indices(self._n)
        if step != 1:
            return self._take(np.arange(start, stop, step))
        if stop <= start:
            return np.zeros(0)
        pieces = [
            self._compute(first, min(first + ROWS_AT_ONCE, stop))
            for first in range(start, stop, ROWS_AT_ONCE)
        ]
        return pieces[0] if len(pieces) == 1 else np.concatenate(pieces)

    def _take(self, places: Ints) -> Floats:
        out = np.empty(places.shape)
        if places.size == 0:
            return out
        if places.min() < 0 or places.max() >= self._n:
            msg = f"Rows outside the {counted(self._n, 'row')} were asked for."
            raise IndexError(msg)
        piece = places // ROWS_AT_ONCE
        for k in np.unique(piece):
            chosen = piece == k
            first, last = int(places[chosen].min()), int(places[chosen].max())
            out[chosen] = self._compute(first, last + 1)[places[chosen] - first]
        return out

    def blocks(self) -> Iterator[tuple[slice, Floats]]:
        """Yield all rows, a bounded number at a time."""
        for start in range(0, self._n, ROWS_AT_ONCE):
            rows = slice(start, min(start + ROWS_AT_ONCE, self._n))
            yield rows, self._compute(rows.start, rows.stop)

    def __iter__(self) -> Iterator[float]:
        for _, block in self.blocks():
            yield from block.tolist()

    def __array__(
        self, dtype: Any = None, copy: bool | None = None
    ) -> npt.NDArray[Any]:
        if copy is False:
            msg = "The rows are computed when looked at, so a copy cannot be avoided."
            raise ValueError(msg)
        return self[:].astype(np.float64 if dtype is None else dtype, copy=False)

    def __repr__(self) -> str:
        shown = ", ".join(f"{x:.6g}" for x in self[:4])
        more = ", ..." if self._n > 4 else ""
        return f"LazyRows([{shown}{more}], {counted(self._n, 'row')})"
