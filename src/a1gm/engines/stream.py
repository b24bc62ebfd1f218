"""Tables that are read once, batch by batch, into the kernel."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from a1gm._base.types import Negatives
from a1gm._base.words import counted
from a1gm._observe.accumulate import Accumulator
from a1gm._observe.observe import observe
from a1gm._observe.patterns import Patterns
from a1gm._rows.columns import Choice, ColumnOptions, columns_like
from a1gm._rows.frames import chosen_columns, library_of
from a1gm._rows.hints import warn_hints
from a1gm._rows.labels import check_same_labels
from a1gm._rows.read import read_input
from a1gm.exceptions import A1gmError, DataError, EngineError

ROWS_AT_ONCE = 1 << 18


@dataclass
class Stream:
    """The rows of a table, some at a time, and how each batch is read.

    Where columns are chosen before a row is read, ``names`` are those.
    """

    batches: Iterator[Any]
    options: ColumnOptions
    names: Any = None
    choice: Choice | None = None

    @classmethod
    def of(cls, X: Any, options: ColumnOptions) -> Stream:
        """Open a lazy frame of polars, something that has Arrow batches, or frames."""
        library = library_of(X)
        if library == "polars":
            import polars as pl

            try:
                empty = pl.DataFrame(schema=X.collect_schema())
            except pl.exceptions.PolarsError as error:
                raise EngineError(
                    f"polars cannot tell the columns of X: {str(error).splitlines()[0]}"
                ) from error
            chosen = cls._of_schema(empty, options)
            table = X.select(list(chosen.names))
            chosen.batches = iter(table.collect_batches(chunk_size=ROWS_AT_ONCE))
            return chosen
        if library != "pyarrow" and isinstance(X, Iterator):
            return cls(X, options)
        import pyarrow as pa

        if library != "pyarrow":
            X = pa.RecordBatchReader.from_stream(X)
        schema = X.projected_schema if hasattr(X, "projected_schema") else X.schema
        chosen = cls._of_schema(schema.empty_table(), options)
        names = list(chosen.names)
        if hasattr(X, "scanner"):
            chosen.batches = X.to_batches(columns=names, **_bounded(X))
        else:
            batches = X.to_batches() if hasattr(X, "to_batches") else X
            chosen.batches = (batch.select(names) for batch in batches)
        return chosen

    @classmethod
    def _of_schema(cls, empty: Any, options: ColumnOptions) -> Stream:
        names, choice = chosen_columns(empty, "X", options)
        return cls(iter(()), ColumnOptions(fitted=names), names, choice)


def _bounded(dataset: Any) -> dict[str, Any]:
    """Options that read a Dataset with little memory; by default it reads far ahead."""
    import pyarrow.dataset as ds

    ahead: dict[str, Any] = {"batch_readahead": 2, "fragment_readahead": 1}
    if isinstance(getattr(dataset, "format", None), ds.ParquetFileFormat):
        options = ds.ParquetFragmentScanOptions(pre_buffer=False)
        ahead["fragment_scan_options"] = options
    return {"batch_size": ROWS_AT_ONCE, **ahead}


def observe_stream(
    X: Any, options: ColumnOptions, *, negatives: Negatives, n_threads: int | None
) -> tuple[Patterns, Any, Choice | None]:
    """Count the patterns of all batches; a reader is closed, also after an error."""
    stream = Stream.of(X, options)
    found: Accumulator | None = None
    first: Any = None
    n_rows = 0
    try:
        for batch in stream.batches:
            if hasattr(batch, "__len__") and len(batch) == 0:
                continue
            rows = read_input(batch, columns=stream.options)
            if found is None:
                first = rows
                if stream.names is None:
                    stream.choice = getattr(rows, "choice", None)
                    stream.options = columns_like(stream.choice, rows.col_labels)
                else:
                    chosen = Choice(table=list(stream.names))
                    warn_hints(rows, chosen, is_asked=options.has_names)
                beyond: Any = "raise" if negatives == "allow" else "bits"
                found = Accumulator(rows.n_cols, beyond=beyond)
            _check_like(rows, first)
            seen = observe(
                rows,
                n_threads=n_threads,
                negatives=negatives,
                keep_table=found.keeps_table,
                row_offset=n_rows,
            )
            found.add(seen)
            n_rows += rows.n_rows
    except A1gmError:
        raise
    except Exception as error:
        if stream.names is None:  # of the caller's own iterator
            raise
        raise EngineError(
            f"Reading the batches of X failed after {counted(n_rows, 'row')}: {error}"
        ) from error
    finally:
        for opened in (stream.batches, X):
            if library_of(opened) != "polars" and hasattr(opened, "close"):
                with suppress(Exception):
                    opened.close()
    if found is None:
        raise DataError(
            "Found a stream with 0 rows while a minimum of 1 is required: X is empty."
        )
    return found.patterns(), first.col_labels, stream.choice


def _check_like(rows: Any, first: Any) -> None:
    if rows.n_cols != first.n_cols:
        raise DataError(
            f"A batch of X has {rows.n_cols} columns, the first one {first.n_cols}. "
            "Every batch must have the same columns."
        )
    labels = rows.col_labels, first.col_labels
    check_same_labels("column", *labels, "this batch", "the first batch")
