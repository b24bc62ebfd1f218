"""Every kind of fit there is: how it was made decides what it still knows."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import a1gm
from ways import containers, file_ways, long_ways, ways

Table = np.ndarray


class Made(NamedTuple):
    """A fit, the table in the form that its methods take, and an empty folder."""

    fit: Any
    given: Any
    folder: Path
    weights: Any = None  # of the cells of what was given

    @property
    def options(self) -> dict[str, Any]:
        """What methods that read rows are told beside these."""
        return {} if self.weights is None else {"weights": self.weights}


def in_memory(X: Table, folder: Path) -> Made:
    return Made(a1gm.fit(X), X, folder)


def frame(X: Table, folder: Path) -> Made:
    given = containers.pandas_frame(X)
    return Made(a1gm.fit(given), given, folder)


def sparse(X: Table, folder: Path) -> Made:
    return Made(a1gm.fit(containers.sparse_table(X), absent="missing"), X, folder)


def long(X: Table, folder: Path) -> Made:
    frame = long_ways.long_frame(X)
    fit = a1gm.fit_long(frame, long_ways.KEYS, long_ways.VALUE)
    return Made(fit, containers.pandas_frame(X), folder)


def weighted(X: Table, folder: Path) -> Made:
    V = np.random.default_rng(2).gamma(2.0, size=X.shape) + 0.5
    return Made(a1gm.fit(X, weights=V), X, folder, V)


def negatives(X: Table, folder: Path) -> Made:
    """A table with a negative cell, in as many blocks as the one that is given.

    Its own: not every table has factors for its margins once a cell is negative.
    """
    nan = np.nan
    Y = np.array(
        [[-0.25, 2, nan, nan], [2, 4, nan, nan], [nan, nan, 3, 1], [nan, nan, 6, 2]]
    )
    if not np.isnan(X[0]).any():  # a complete row: one block
        Y[0, 2:] = 1.0
    return Made(a1gm.fit(Y, negatives="allow"), Y, folder)


def pieces(X: Table, folder: Path) -> Made:
    return Made(ways.in_pieces(X).solve(), X, folder)


def pieces_without_rows(X: Table, folder: Path) -> Made:
    return Made(ways.in_pieces(X, keep_rows=False).solve(), X, folder)


def _file_fit(X: Table, folder: Path) -> Any:
    path = file_ways.write_parquet(X, folder / "table.parquet")
    return a1gm.fit_file(path, columns=containers.names_of(X))


def file_patterns(X: Table, folder: Path) -> Made:
    return Made(_file_fit(X, folder), containers.pandas_frame(X), folder)


def file_masks(X: Table, folder: Path) -> Made:
    with file_ways.masks_on_disk():
        return file_patterns(X, folder)


def distributed_array(X: Table, folder: Path) -> Made:
    given = ways.dask_array(X)
    return Made(a1gm.distributed.fit(given), given, folder)


def distributed_frame(X: Table, folder: Path) -> Made:
    given = ways.dask_frame(X)
    return Made(a1gm.distributed.fit(given), given, folder)


def reread(make: Callable[[Table, Path], Made]) -> Callable[[Table, Path], Made]:
    """The same kind, saved and loaded."""

    def again(X: Table, folder: Path) -> Made:
        made = make(X, folder)
        return made._replace(fit=ways.loaded(made.fit, folder))

    return again


def unpickled(make: Callable[[Table, Path], Made]) -> Callable[[Table, Path], Made]:
    """The same kind, pickled and unpickled."""

    def again(X: Table, folder: Path) -> Made:
        made = make(X, folder)
        return made._replace(fit=pickle.loads(pickle.dumps(made.fit)))

    return again


KINDS: dict[str, Callable[[Table, Path], Made]] = {
    "in memory": in_memory,
    "frame": frame,
    "sparse": sparse,
    "long": long,
    "weighted": weighted,
    "negatives": negatives,
    "pieces": pieces,
    "pieces without rows": pieces_without_rows,
    "file, patterns": file_patterns,
    "file, masks": file_masks,
    "Dask array": distributed_array,
    "Dask frame": distributed_frame,
    "loaded": reread(in_memory),
    "loaded sparse": reread(sparse),
    "loaded weighted": reread(weighted),
    "loaded negatives": reread(negatives),
    "loaded pieces without rows": reread(pieces_without_rows),
    "loaded file, patterns": reread(file_patterns),
    "loaded file, masks": reread(file_masks),
    "unpickled": unpickled(in_memory),
    "unpickled weighted": unpickled(weighted),
    "unpickled file, patterns": unpickled(file_patterns),
    "unpickled file, masks": unpickled(file_masks),
}
# Kinds that know no single row: what asks for one is refused in words.
WITHOUT_ROWS = {
    "pieces without rows",
    "Dask array",
    "Dask frame",
    *(name for name in KINDS if name.startswith("loaded file")),
    "loaded pieces without rows",
}
# Kinds of another table or another cost, whose numbers are their own.
OF_THEIR_OWN = {name for name in KINDS if "weighted" in name or "negatives" in name}
