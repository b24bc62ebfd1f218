"""The fit of one table: its cells by labels, filled long frames, and files."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from a1gm._base.types import AnyArray, Ints, SmallInts
from a1gm._base.words import counted
from a1gm._fit.frames import Long, filled_long
from a1gm._fit.place import FATES
from a1gm._fit.save import save_model
from a1gm._rows.labels import Lookup, paired


class Kept(ABC):
    """A fit of one table, of two keys or more; base of such fits."""

    _kind: str  # of the file

    @property
    @abstractmethod
    def shape(self) -> tuple[int, ...]:
        """Size of the table."""

    @property
    @abstractmethod
    def _finders(self) -> tuple[Lookup, ...]:
        """Lookups of the levels that a user names, mode by mode."""

    @property
    @abstractmethod
    def _n_given_up(self) -> int:
        """Number of observed zeros that are fitted by 0, and only approached."""

    @abstractmethod
    def _codes(self, index: Sequence[Ints]) -> SmallInts:
        """Fates of cells by their positions along each mode, as numbers."""

    @abstractmethod
    def _factor_frames(self, backend: str | None) -> Any:
        """The factors as frames of a library, by default that of the table."""

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

    @property
    def attained(self) -> bool:
        """Whether a minimiser exists; False when observed zeros had to be given up."""
        return self._n_given_up == 0

    def _lost(self, n_undetermined: int) -> dict[str, str]:
        """Cells without a value and zeros given up, as lines of the summary."""
        lines = {}
        if n_undetermined:
            lines["cannot be known"] = counted(n_undetermined, "missing cell")
        if not self.attained:
            lines["zeros given up"] = f"{self._n_given_up:,}"
        return lines

    def _places(self, *given: Any) -> tuple[Ints, ...]:
        """Positions of cells along each mode by labels or positions, paired up."""
        pairs = zip(self._finders, given, strict=True)
        return paired(*(finder.find(names) for finder, names in pairs))

    def _fate(self, *given: Any) -> Any:
        """Fates of cells by labels or positions along each mode."""
        index = self._places(*given)
        codes = self._codes([k.ravel() for k in index]).reshape(index[0].shape)
        return np.array(FATES)[codes] if codes.ndim else FATES[int(codes)]

    def to_frames(self, backend: str | None = None) -> Any:
        """The factors as frames of the library that the table came from.

        Parameters
        ----------
        backend : {"pandas", "polars", "pyarrow"}, optional
            The library; needed when the table was not a frame.

        Returns
        -------
        FactorFrames, or dict for a ``TensorFit``
            ``rows`` and ``columns``, with labels, factors and blocks; or by the names
            of ``factors`` a frame with the keys of all levels that have cells, and
            their ``factor``.

        Examples
        --------
        >>> import numpy as np, a1gm
        >>> T = np.multiply.outer([1.0, 2.0], np.outer([1.0, 3.0], [2.0, 5.0]))
        >>> fit = a1gm.fit_tensor(T, names=["site", "year", "month"])
        >>> fit.to_frames("pandas")["year"]
           year  factor
        0     0    0.25
        1     1    0.75
        """
        return self._factor_frames(backend)

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
