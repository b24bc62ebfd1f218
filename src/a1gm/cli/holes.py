"""Where the holes of a table are, gathered while it streams by."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from a1gm._base.types import Floats

_MOST_LINES = 4096


@dataclass
class HolePicture:
    """How many cells are missing in each of some bands of rows, per column.

    The number of rows is not known beforehand: when there are too many bands,
    neighbours are joined, so the memory is bounded.
    """

    rows_per_band: int = 1
    n_rows: int = 0
    _bands: list[Floats] = field(default_factory=list)

    def add(self, values: Floats) -> None:
        """Add the rows of a block."""
        missing = np.isnan(values).astype(np.float64)
        while self.n_rows // self.rows_per_band + len(values) // self.rows_per_band > (
            2 * _MOST_LINES
        ):
            self._join_neighbours()
        bands = (self.n_rows + np.arange(len(values))) // self.rows_per_band
        starts = np.flatnonzero(np.diff(bands, prepend=-1))
        for band, counts in zip(
            bands[starts], np.add.reduceat(missing, starts, axis=0), strict=True
        ):
            if band < len(self._bands):
                self._bands[band] += counts
            else:
                self._bands.append(counts)
        self.n_rows += len(values)

    def _join_neighbours(self) -> None:
        bands = self._bands
        self._bands = [
            bands[k] + bands[k + 1] if k + 1 < len(bands) else bands[k]
            for k in range(0, len(bands), 2)
        ]
        self.rows_per_band *= 2

    def counts(self) -> Floats:
        """Missing cells per band and column."""
        return np.array(self._bands)

    def shares(self) -> Floats:
        """Share of missing cells per band and column."""
        lengths = np.full(len(self._bands), float(self.rows_per_band))
        lengths[-1] = self.n_rows - self.rows_per_band * (len(self._bands) - 1)
        shares: Floats = self.counts() / lengths[:, None]
        return shares

    def per_column(self) -> Floats:
        """Missing cells of each column."""
        counts: Floats = self.counts().sum(axis=0)
        return counts
