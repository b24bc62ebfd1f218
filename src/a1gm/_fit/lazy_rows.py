"""A vector with one number per row that is computed where it is looked at."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, overload

import numpy as np
import numpy.typing as npt

from a1gm._base.types import Floats
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
        self.size = n
        self.shape = (n,)
        self._compute = compute

    def __len__(self) -> int:
        return self.size

    @overload
    def __getitem__(self, at: int | np.integer[Any]) -> float: ...
    @overload
    def __getitem__(self, at: slice | list[int] | npt.NDArray[Any]) -> Floats: ...
    def __getitem__(self, at: Any) -> Any:
        if isinstance(at, slice):
            at = np.arange(*at.indices(self.size))
        rows = np.asarray(at)
        if rows.dtype == bool:
            rows = np.flatnonzero(rows)
        rows = np.where(rows < 0, rows + self.size, rows).astype(np.int64)
        if rows.min(initial=0) < 0 or rows.max(initial=0) >= self.size:
            raise IndexError(f"Rows outside the {counted(self.size, 'row')}.")
        out = np.empty(rows.size)
        order = np.argsort(rows, axis=None, kind="stable")
        sorted_rows = rows.ravel()[order]
        cuts = np.flatnonzero(np.diff(sorted_rows // ROWS_AT_ONCE)) + 1
        for chosen in np.split(order, cuts) if rows.size else ():
            piece = rows.flat[chosen]
            first = int(piece[0])
            out[chosen] = self._compute(first, int(piece[-1]) + 1)[piece - first]
        return out.reshape(rows.shape) if rows.ndim else float(out[0])

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
        return self[:].astype(np.float64 if dtype is None else dtype, copy=False)

    def __repr__(self) -> str:
        shown = ", ".join(f"{x:.6g}" for x in self[:4])
        more = ", ..." if self.size > 4 else ""
        return f"LazyRows([{shown}{more}], {counted(self.size, 'row')})"
