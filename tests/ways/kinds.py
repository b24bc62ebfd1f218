"""Every kind of fit there is: how it was made decides what it still knows."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import a1gm
from ways import containers, file_ways, ways

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


Maker = Callable[..., Made]


def of(fit: Callable[..., Any], give: Callable[[Table], Any] = lambda X: X) -> Maker:
    """A fit of what ``give`` makes of the table."""

    def make(X: Table, folder: Path, **options: Any) -> Made:
        given = give(X)
        return Made(fit(given, **options), given, folder)

    return make


def sparse(X: Table, folder: Path) -> Made:
    return Made(a1gm.fit(containers.sparse_table(X), absent="missing"), X, folder)


def long(X: Table, folder: Path) -> Made:
    frame = ways.long_frame(X)
    fit = a1gm.fit_long(frame, ways.KEYS, ways.VALUE)
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


def file_patterns(X: Table, folder: Path, **options: Any) -> Made:
    path = file_ways.write_parquet(X, folder / "table.parquet")
    names = containers.names_of(X)
    fit = a1gm.fit_file(path, columns=names, batch_rows=3, **options)
    return Made(fit, containers.pandas_frame(X), folder)


def file_masks(X: Table, folder: Path, **options: Any) -> Made:
    with file_ways.masks_on_disk():
        return file_patterns(X, folder, **options)


def again(make: Maker, travel: Callable[[Any, Path], Any]) -> Maker:
    """The same kind after its fit has travelled."""

    def made(X: Table, folder: Path, **options: Any) -> Made:
        first = make(X, folder, **options)
        return first._replace(fit=travel(first.fit, folder))

    return made


def unpickled(fit: Any, folder: Path) -> Any:
    return pickle.loads(pickle.dumps(fit))


KINDS: dict[str, Maker] = {
    "in memory": of(a1gm.fit),
    "frame": of(a1gm.fit, containers.pandas_frame),
    "sparse": sparse,
    "long": long,
    "weighted": weighted,
    "negatives": negatives,
    "pieces": of(lambda X, **options: ways.in_pieces(X, **options).solve()),
    "pieces without rows": of(
        lambda X, **options: ways.in_pieces(X, keep_rows=False, **options).solve()
    ),
    "file, patterns": file_patterns,
    "file, masks": file_masks,
    "Dask array": of(a1gm.distributed.fit, ways.dask_array),
    "Dask frame": of(a1gm.distributed.fit, ways.dask_frame),
}
FILES = "file, patterns", "file, masks"
LOADED = "sparse", "weighted", "negatives", "pieces", "pieces without rows", *FILES
KINDS |= {
    "loaded": again(KINDS["in memory"], ways.loaded),
    "unpickled": again(KINDS["in memory"], unpickled),
    **{f"loaded {kind}": again(KINDS[kind], ways.loaded) for kind in LOADED},
    **{
        f"unpickled {kind}": again(KINDS[kind], unpickled)
        for kind in (*FILES, "weighted", "pieces without rows")
    },
}
# Kinds that know no single row: what asks for one is refused in words.
WITHOUT_ROWS = {
    "pieces without rows",
    "Dask array",
    "Dask frame",
    *(name for name in KINDS if name.startswith("loaded file")),
    "loaded pieces without rows",
    "unpickled pieces without rows",
}
# Kinds of another table or another cost, whose numbers are their own.
OF_THEIR_OWN = {name for name in KINDS if "weighted" in name or "negatives" in name}
