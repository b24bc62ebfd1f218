"""From blocks to a fit."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from a1gm._base.types import Floats, Negatives
from a1gm.exceptions import DataError, NothingObservedError
from a1gm._sources.files.options import hint

if TYPE_CHECKING:
    from a1gm.cli.common import Common
    from a1gm.cli.names import FileNames
    from a1gm._result.fit import RankOneFit

#: Blocks of tables up to this many cells (256 MB) are kept: a second pass need not cast
#: their text again.
MOST_CELLS_KEPT = 1 << 25
_MANY_PATTERNS = 20_000
#: Tables up to this many cells are fitted in one piece, so that their models keep rows.
_FEW_CELLS = 1 << 20


@dataclass
class Gathered:
    """The statistics of a table, and its blocks while it is small.

    A table that is kept and has many patterns of holes is fitted in one piece, which
    needs no statistics of each.

    Parameters
    ----------
    common : Common
        Options that concern the fit.
    names : FileNames
        The file, and what to call its rows and columns.
    """

    common: Common
    names: FileNames
    _blocks: list[Floats] = field(default_factory=list)
    _n_cells: int = 0
    _n_rows: int = 0
    _n_gathered: int = 0
    _gatherer: Any = None
    _col_sums: Any = 0.0

    def __post_init__(self) -> None:
        from a1gm._api.gather import Gatherer

        self._gatherer = Gatherer(
            len(self.names.table.names),
            negatives=_negatives(self.common),
            n_threads=self.common.threads,
        )

    def add(self, values: Floats) -> None:
        """Add the rows of a block."""
        if self.common.negatives == "allow":
            _check_row_sums(values, self._n_rows, self.names)
            self._col_sums = self._col_sums + np.nansum(values, axis=0)
        self._n_rows += len(values)
        self._n_cells += values.size
        if self._n_cells > MOST_CELLS_KEPT:
            self._gather(self._blocks[self._n_gathered :])
            self._blocks = []
        else:
            self._blocks.append(values)
            if self._gatherer.n_patterns > _MANY_PATTERNS:
                # Refused now, while the place of a bad cell is known.
                check_values(values, self.common)
                return
        self._gather([values])

    def _gather(self, blocks: list[Floats]) -> None:
        for values in blocks:
            self._gatherer.add(_source(values))
        self._n_gathered += len(blocks)

    @property
    def kept(self) -> list[Floats] | None:
        """The values of every block, if the table is small enough."""
        return self._blocks or None

    def fit(self) -> RankOneFit:
        """Fit the rows seen."""
        with _naming(self.names):
            return self._fit()

    def _fit(self) -> RankOneFit:
        from a1gm._api.fit import DEFAULT_MAX_ITER, DEFAULT_TOL

        _check_col_sums(self._col_sums, self.names)
        not_gathered = len(self._blocks) > self._n_gathered
        if self._blocks and (self._n_cells <= _FEW_CELLS or not_gathered):
            return fit_values(np.concatenate(self._blocks), self.names, self.common)
        fitted: RankOneFit = self._gatherer.fit(
            tol=DEFAULT_TOL,
            max_iter=DEFAULT_MAX_ITER,
            on_undetermined="warn",
            col_labels=list(self.names.table.names),
            names=self.names,
        )
        return fitted


def fit_values(values: Floats, names: FileNames, common: Common) -> RankOneFit:
    """Fit a table that is in memory; warnings call its lines as the file does."""
    with _naming(names):
        return _fit_values(values, names, common)


def _fit_values(values: Floats, names: FileNames, common: Common) -> RankOneFit:
    from a1gm._api.fit import fit_observation
    from a1gm._observe.one_pass import observe

    source = _source(values)
    if common.negatives == "allow":
        _check_row_sums(values, 0, names)
        _check_col_sums(np.nansum(values, axis=0), names)
    return fit_observation(
        observe(source, n_threads=common.threads, negatives=_negatives(common)),
        source=source,
        n_threads=common.threads,
        col_labels=list(names.table.names),
        names=names,
    )


@contextlib.contextmanager
def _naming(names: FileNames) -> Iterator[None]:
    """Name the file where there is nothing to fit."""
    try:
        yield
    except NothingObservedError as error:
        raise NothingObservedError(
            f"{names.table.name}: nothing is observed, every cell of its numeric "
            "columns is missing. At least one must hold a number."
        ) from error


def check_values(values: Floats, common: Common) -> None:
    """Refuse infinite cells, and negative ones unless they are allowed."""
    from a1gm._observe.one_pass import observe

    observe(_source(values), n_threads=common.threads, negatives=_negatives(common))


def _negatives(common: Common) -> Negatives:
    return "allow" if common.negatives == "allow" else "raise"


def _source(values: Floats) -> Any:
    from a1gm._sources import Source

    return Source([(values, None, None, 0, 0)], *values.shape)


def _check_row_sums(values: Floats, first_row: int, names: FileNames) -> None:
    """Refuse what the library refuses, with the place in the file."""
    below = np.nansum(values, axis=1) < 0.0
    if below.any():
        place = names.table.place_of(first_row + int(below.argmax()))
        _refuse_sum(f"{place}: the row", "Drop the row")


def _check_col_sums(sums: Floats | float, names: FileNames) -> None:
    below = np.flatnonzero(np.asarray(sums) < 0.0)
    if len(below):
        column = names.table.names[below[0]]
        place = f"{names.table.name}: column {column!r}"
        _refuse_sum(place, f"Leave it out with {hint('exclude', column)}")


def _refuse_sum(what: str, remedy: str) -> NoReturn:
    raise DataError(
        f"{what} sums to less than zero. With --negatives allow every row and column "
        f"sum must be positive. {remedy}, or mark its negative cells as missing."
    )
