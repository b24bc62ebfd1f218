"""Tables that are read once, batch by batch, into the kernel."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
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


def observe_stream(
    X: Any, options: ColumnOptions, negatives: Negatives, n_threads: int | None
) -> tuple[Patterns, Any, Choice | None]:
    """Count the patterns of all batches; a reader is closed, also after an error."""
    has_schema = library_of(X) or not isinstance(X, Iterator)
    batches, names, choice = _open(X, options) if has_schema else (X, None, None)
    found: Accumulator | None = None
    n_rows = 0
    try:
        for batch in batches:
            if hasattr(batch, "__len__") and len(batch) == 0:
                continue
            if found is not None or has_schema:
                rows = read_input(batch, columns=columns_like(choice, names))
            else:
                rows = read_input(batch, columns=options)
                names, choice = rows.col_labels, getattr(rows, "choice", None)
            if found is None:
                if has_schema:
                    chosen = Choice(table=list(names or ()))
                    warn_hints(rows, chosen, is_asked=options.has_names)
                beyond: Any = "raise" if negatives == "allow" else "bits"
                found = Accumulator(rows.n_cols, beyond=beyond)
            _check_like(rows, found.n_cols, names)
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
        if not has_schema:  # of the caller's own iterator
            raise
        raise EngineError(
            f"Reading the batches of X failed after {counted(n_rows, 'row')}: {error}"
        ) from error
    finally:
        for opened in (batches, X):
            if library_of(opened) != "polars" and hasattr(opened, "close"):
                with suppress(Exception):
                    opened.close()
    if found is None:
        raise DataError(
            "Found a stream with 0 rows while a minimum of 1 is required: X is empty."
        )
    return found.patterns(), names, choice


def _check_like(rows: Any, n_cols: int, names: Any) -> None:
    if rows.n_cols != n_cols:
        raise DataError(
            f"A batch of X has {rows.n_cols} columns, the first one {n_cols}. Every "
            "batch must have the same columns."
        )
    labels = rows.col_labels, names
    check_same_labels("column", *labels, "this batch", "the first batch")


def _open(X: Any, options: ColumnOptions) -> tuple[Any, Any, Choice | None]:
    """Batches of what has a schema, with the columns that are the table; these."""
    if library_of(X) == "polars":
        import polars as pl

        try:
            empty = pl.DataFrame(schema=X.collect_schema())
        except pl.exceptions.PolarsError as error:
            raise EngineError(
                f"polars cannot tell the columns of X: {str(error).splitlines()[0]}"
            ) from error
        names, choice = chosen_columns(empty, "X", options)
        table = X.select(list(names))
        return iter(table.collect_batches(chunk_size=ROWS_AT_ONCE)), names, choice
    import pyarrow as pa

    if library_of(X) != "pyarrow":
        X = pa.RecordBatchReader.from_stream(X)
    schema = X.projected_schema if hasattr(X, "projected_schema") else X.schema
    names, choice = chosen_columns(schema.empty_table(), "X", options)
    if hasattr(X, "scanner"):
        return X.to_batches(columns=list(names), **_bounded(X)), names, choice
    batches = X.to_batches() if hasattr(X, "to_batches") else X
    return (batch.select(list(names)) for batch in batches), names, choice


def _bounded(dataset: Any) -> dict[str, Any]:
    """Options that read a Dataset with little memory; by default it reads far ahead."""
    import pyarrow.dataset as ds

    ahead: dict[str, Any] = {"batch_readahead": 2, "fragment_readahead": 1}
    if isinstance(getattr(dataset, "format", None), ds.ParquetFileFormat):
        options = ds.ParquetFragmentScanOptions(pre_buffer=False)
        ahead["fragment_scan_options"] = options
    return {"batch_size": ROWS_AT_ONCE, **ahead}
