"""``a1gm scale``: a table scaled to given totals."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

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
from a1gm.cli.tables import (
    check_outputs,
    check_stdout,
    describe,
    open_table,
    quality_of,
)

if TYPE_CHECKING:
    import pyarrow as pa

    from a1gm._base.types import AnyArray
    from a1gm._rows.files.table import TableFiles


@command(*LONG_OPTIONS, "weights", "exposure", "negatives", "strict")
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
    from a1gm._rows.totals import labelled_totals

    if row_totals is None and col_totals is None:
        raise UsageError("Give --row-totals, --col-totals, or both: files of totals.")
    beside = [path for path in (row_totals, col_totals, known) if path is not None]
    if out is None and not options.json:
        out = "-"
    check_stdout(out, options)
    if out is not None and out != "-":
        check_outputs(out, [], [file, *beside], options)
    files = open_table(file, options)
    columns = totals_beside(col_totals, files, files.first.names)
    if columns is not None:
        columns = labelled_totals(columns, columns.name, ())
        files.data = () if columns.labels is None else list(columns.labels)
    with progress_bar(f"Reading {files.name}", quiet=options.quiet) as progress:
        rows, table = files.in_memory(all_columns=True, progress=progress)
    describe(files, options)
    s = a1gm.scale(
        rows,
        totals_beside(row_totals, files, rows.row_labels),
        columns,
        known=read_beside(known, files),
        **{k: v for k, v in options.fitting.items() if k in ("tol", "max_iter")},
    )
    if out is not None:
        _write(out, files, table, s.round() if round else s.table, options)
    summary = {"out": out, "n_rows": s.shape[0], "n_cols": s.shape[1]}
    summary |= {**quality_of(s), "n_forced_zeros": len(s.forced_zeros)}
    wrote = "" if out in (None, "-") else f" Wrote {shown(out)}."
    size = counted(s.shape[0] * s.shape[1], "cell")
    options.finish(
        summary,
        f"Scaled {size} to the totals; the largest relative error of a total is "
        f"{s.certificate:.1e}.{wrote}",
    )


def _write(
    out: str, files: TableFiles, table: pa.Table, cells: AnyArray, options: Options
) -> None:
    """Write the columns of the files, those of the table scaled."""
    import pyarrow as pa

    from a1gm._write.fill import write_table

    for name, column in zip(files.names, cells.T, strict=True):
        place = table.schema.get_field_index(name)
        table = table.set_column(place, name, pa.array(column))
    write_table(out, table, like=files.first, **options.writing)
