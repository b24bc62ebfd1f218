"""What becomes of the fit of one table: filled long frames, and files."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Any

from a1gm._base.types import AnyArray
from a1gm._fit.frames import Long, filled_long
from a1gm._fit.save import save_model


class Kept(ABC):
    """A fit of one table, of two keys or more; base of such fits."""

    _kind: str  # of the file

    @property
    @abstractmethod
    def shape(self) -> tuple[int, ...]:
        """Size of the table."""

    @abstractmethod
    def _long_table(self) -> tuple[Long | None, int]:
        """The long frame that was fitted, if it was one, and its observed cells."""

    @abstractmethod
    def _filled_cells(
        self, only_missing: bool, interval: float | None
    ) -> Iterator[tuple[Any, ...]]:
        """Yield positions along each key, values and, where asked for, bounds."""

    @abstractmethod
    def _to_arrays(self) -> tuple[dict[str, Any], dict[str, AnyArray]]:
        """The fit as plain values and arrays, to be saved."""

    def fill_long(
        self,
        *,
        interval: float | None = None,
        only_missing: bool = True,
        max_rows: int = 100_000_000,
    ) -> Any:
        """The missing cells of a long table with their values, long again.

        Parameters
        ----------
        interval : float, optional
            Add the columns ``lower`` and ``upper``, the bounds of
            ``fit.uncertainty().interval`` at this level, such as 0.95.
        only_missing : bool, default=True
            Whether to give the missing cells only; else all cells, the observed ones
            as they were, with their values as bounds. The values are float64, which
            rounds integers above 2**53.
        max_rows : int, default=100,000,000
            More rows than this are refused, before any is made.

        Returns
        -------
        frame
            Of the library and with the column names of the frame that was fitted, row
            by row in the order of the fit. Cells that the data do not determine have
            no value.

        Raises
        ------
        DataError, ParameterError
            ``interval`` of a fit without ``uncertainty()``; or a column is called
            ``lower`` or ``upper``.
        TableTooLargeError
            There would be more than ``max_rows`` rows; ``predict`` gives the values of
            the cells that are needed.

        Examples
        --------
        >>> import polars as pl, a1gm
        >>> marks = pl.DataFrame(
        ...     {"who": ["ann", "ann", "bob"], "what": [1, 2, 1], "mark": [4, 8, 3]}
        ... )
        >>> fit = a1gm.fit_long(marks, keys=["who", "what"], value="mark")
        >>> fit.fill_long().rows()
        [('bob', 2, 6.0)]
        """
        long, n_known = self._long_table()
        cells = self._filled_cells(only_missing, interval)
        how: dict[str, Any] = {"only_missing": only_missing, "max_rows": max_rows}
        return filled_long(long, self.shape, n_known, cells, **how)

    def save(self, path: str | os.PathLike[str], *, overwrite: bool = False) -> None:
        """Write the fit to a file, to be read by ``a1gm.load``.

        A fit of files is saved without its rows: ``transform`` gives their factors.
        If they have so many patterns of missing cells that these would take more than
        16 MB, it is saved without these, too: it fills rows, and has no errors. A fit
        of three keys or more is saved with its cells.

        Parameters
        ----------
        path : path-like
            Where to; written whole or not at all.
        overwrite : bool, default=False
            Whether a file that is already there may be replaced.
        """
        save_model(path, self._kind, *self._to_arrays(), overwrite=overwrite)
