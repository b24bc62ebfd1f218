"""``a1gm scale``: a table scaled to given totals."""

from __future__ import annotations

import os
import sys
from contextlib import closing
from typing import TYPE_CHECKING, Annotated, Any

import typer

from a1gm._base.words import counted, shown
from a1gm.cli.app import command
from a1gm.cli.options import (
    LONG_OPTIONS,
    ColTotalsOption,
    Options,
    RowTotalsOption,
    TableArgument,
    UsageError,
    progress_bar,
)
from a1gm.cli.tables import check_outputs, describe, open_table

if TYPE_CHECKING:
    import pyarrow as pa

    from a1gm._base.types import AnyArray
    from a1gm._rows.files.table import TableFiles

_KEYS = "divergence", "certificate", "cell_error", "converged", "solver", "n_iter"


@command(*LONG_OPTIONS, "weights", "exposure", "skip_bad", "negatives", "strict")
def scale(
    file: TableArgument,
    row_totals: RowTotalsOption = None,
    col_totals: ColTotalsOption = None,
    known: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help="A file like the table with the cells that are known, and stay as "
            "they are; the others are empty.",
        ),
    ] = None,
    round: Annotated[
        bool, typer.Option("--round", help="Write whole numbers that keep all totals.")
    ] = False,
    out: Annotated[
        str | None,
        typer.Option(
            "--out",
            "-o",
            metavar="PATH",
            help="The scaled table: a file, or - for standard output. Default: "
            "standard output, without --json.",
        ),
    ] = None,
    *,
    options: Options,
) -> None:
    """Scale a table to totals: IPF, RAS, Furness, raking, Sinkhorn.

    The table nearest to this one, its seed, that has the totals. A cell of 0 stays 0.
    If no table has the totals, the message names rows that need more than the only
    columns they can use have, or the reverse; the exit code is 1.

    Example:
      a1gm scale seed.csv --row-totals r.csv --col-totals c.csv -o scaled.csv
      a1gm scale seed.csv --row-totals r.csv --known cells.csv --round
    """
    import a1gm
    from a1gm._rows.files.table import read_beside, totals_beside

    beside = [path for path in (row_totals, col_totals, known) if path is not None]
    if out == "-" and options.json:
        raise UsageError("-o - and --json both need standard output; drop one.")
    if out is None and not options.json:
        out = "-"
    if out == "-" and getattr(sys.stdout, "name", "") == os.devnull:
        raise UsageError("-o - needs standard output, which is closed.")
    if out is not None and out != "-":
        check_outputs(out, [], [file, *beside], options)
    files = open_table(file, options)
    rows, table = _read(files, options)
    describe(files, options)
    given: dict[str, Any] = {"tol": options.tol}
    if options.max_iter is not None:
        given["max_iter"] = options.max_iter
    s = a1gm.scale(
        rows,
        totals_beside(row_totals, files, rows.row_labels),
        totals_beside(col_totals, files, rows.col_labels),
        known=read_beside(known, files),
        **given,
    )
    cells = s._round() if round else s._dense()
    if out is not None:
        _write(out, files, table, cells, options)
    summary = {"out": out, "n_rows": s.shape[0], "n_cols": s.shape[1]}
    summary |= {key: getattr(s, key) for key in _KEYS}
    summary |= {"n_blocks": s.n_blocks, "n_forced_zeros": len(s.forced_zeros)}
    wrote = "" if out in (None, "-") else f" Wrote {shown(out)}."
    size = counted(s.shape[0] * s.shape[1], "cell")
    options.finish(
        summary,
        f"Scaled {size} to the totals; the largest relative error of a total is "
        f"{s.certificate:.1e}.{wrote}",
    )


def _read(files: TableFiles, options: Options) -> tuple[Any, pa.Table]:
    """The seed in memory, and all columns of its files as they are."""
    from dataclasses import replace

    import numpy as np
    import pyarrow as pa

    from a1gm._rows.rows import table_of

    tables: list[pa.Table] = []
    numbers: list[AnyArray] = []
    with (
        progress_bar(f"Reading {files.name}", quiet=options.quiet) as progress,
        closing(files.pieces(all_columns=True, progress=progress)) as pieces,
    ):
        for first_row, piece in pieces:
            if first_row == 0:
                tables, numbers = [], []
            tables.append(pa.Table.from_batches([piece.batch]))
            numbers.append(piece.values)
    rows = replace(
        table_of(np.concatenate(numbers)),
        row_labels=files.row_labels,
        col_labels=files.col_labels,
        choice=files.choice,
    )
    return rows, pa.concat_tables(tables, promote_options="permissive")


def _write(
    out: str, files: TableFiles, table: pa.Table, cells: AnyArray, options: Options
) -> None:
    """Write the columns of the files, those of the table scaled."""
    import pyarrow as pa

    from a1gm._write.fill import open_writer

    for j, name in enumerate(files.names):
        place = table.schema.get_field_index(name)
        table = table.set_column(place, name, pa.array(cells[:, j]))
    how: Any = {"like": files.first, **options.writing}
    with open_writer(out, table.schema, **how) as writer:
        for batch in table.to_batches():
            writer.write(batch)
