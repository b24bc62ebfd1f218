"""Ways in for tables that lie elsewhere; see ``ways.ways``."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.dataset as ds
import pytest
from support.lazy import ENGINES

import a1gm
from a1gm.engines import count
from ways.containers import Table, arrow_table, from_arrow, pandas_frame, polars_frame
from ways.file_ways import masks_on_disk
from ways.ways import NO_ROWS, Answers, answers_of_fit, way


def lazy_way(name: str, X: Table, folder: Path) -> Answers:
    """The factors of rows come as a frame; types are those of the engine."""
    give, take = ENGINES[name]
    answers = answers_of_fit(
        X,
        a1gm.fit,
        lambda X: give(arrow_table(X)),
        lambda found: from_arrow(take(found)),
        transform=lambda fit, given: from_arrow(take(fit.transform(given)))[:, 0],
        rows="gone",
    )
    answers.given = answers.output = None
    return answers


LATER = (*NO_ROWS, "types", "warnings of rows")  # no row is looked at

for name in ("polars", "DuckDB"):
    way(f"lazy {name}", lacks=LATER)(partial(lazy_way, name))


@way("DuckDB, too many patterns", lacks=LATER)
def too_many_patterns(X: Table, folder: Path) -> Answers:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(count, "MOST_BYTES", 0)
        return lazy_way("DuckDB", X, folder)


# ------------------------------------------------------------------------------ streams
class Capsule:
    """Something that has a stream of Arrow, and nothing else."""

    def __init__(self, table: pa.Table) -> None:
        self._table = table

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        return self._table.__arrow_c_stream__(requested_schema)


def batches(X: Table) -> list[pa.RecordBatch]:
    found: list[pa.RecordBatch] = arrow_table(X).to_batches(max_chunksize=3)
    return found


def frames(X: Table) -> Iterator[Any]:
    for start in range(0, len(X), 3):
        yield polars_frame(X[start : start + 3])


STREAMS: dict[str, Callable[[Table], Any]] = {
    "record batch reader": lambda X: pa.RecordBatchReader.from_batches(
        arrow_table(X).schema, batches(X)
    ),
    "Dataset": lambda X: ds.dataset(arrow_table(X)),
    "Arrow stream": lambda X: Capsule(arrow_table(X)),
    "frames one by one": frames,
}


def stream_way(name: str, X: Table, folder: Path) -> Answers:
    """Streams are read once: rows are filled from a frame."""

    def make(given: Table) -> Any:
        return a1gm.fit(STREAMS[name](given))

    answers = answers_of_fit(
        X,
        make,
        impute=lambda fit, rows: fit.impute(pandas_frame(rows)).to_numpy(float),
        transform=lambda fit, rows: np.asarray(fit.transform(pandas_frame(rows))),
        rows="gone",
    )
    answers.given = answers.output = None
    return answers


for name in STREAMS:
    way(name, lacks=(*NO_ROWS, "types"))(partial(stream_way, name))


@way("frames one by one, masks", lacks=(*NO_ROWS, "types"))
def masks_of_stream(X: Table, folder: Path) -> Answers:
    with masks_on_disk():
        return stream_way("frames one by one", X, folder)
