"""``a1gm nmmf``: tables that share their rows or columns, fitted together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any

import typer

from a1gm._base.words import counted
from a1gm.cli.app import command
from a1gm.cli.options import (
    LONG_OPTIONS,
    FolderOption,
    Options,
    UsageError,
    progress_bar,
    split_names,
)
from a1gm.cli.tables import (
    check_outputs,
    describe,
    open_table,
    quality_of,
    write_results,
)

if TYPE_CHECKING:
    from a1gm._rows.files.table import TableFiles
    from a1gm._rows.rows import Rows


@command(*LONG_OPTIONS, "weights", "exposure", "skip_bad", "negatives")
def nmmf(
    file: Annotated[
        str,
        typer.Argument(
            metavar="FILE",
            help="The table X: one file, a folder or a quoted glob; - for standard "
            "input. So are --y and --z.",
        ),
    ],
    out: FolderOption,
    y: Annotated[
        str | None, typer.Option(metavar="FILE", help="A table with the columns of X.")
    ] = None,
    z: Annotated[
        str | None, typer.Option(metavar="FILE", help="A table with the rows of X.")
    ] = None,
    alpha: Annotated[
        float, typer.Option(metavar="NUMBER", help="The weight of Y.")
    ] = 1.0,
    beta: Annotated[
        float, typer.Option(metavar="NUMBER", help="The weight of Z.")
    ] = 1.0,
    *,
    options: Options,
) -> None:
    """Fit up to three tables that share rows or columns.

    The models X = w h', Y = a h' and Z = w b' share factors. Columns of Y are matched
    with those of X by name, rows of Z by the column that --id names or that both
    tables begin with, or else by their order. The folder gets w, h, a and b as CSV
    with the labels of rows and columns, and fit.json. All tables may have missing
    cells.

    Example:
      a1gm nmmf ratings.csv --z users.csv --id user -o results
      a1gm nmmf X.csv --y Y.csv --z Z.csv --alpha 0.5 --beta 2 -o results
    """
    import pyarrow as pa

    from a1gm import fit_nmmf
    from a1gm._rows.rows import table_of

    if y is None and z is None:
        raise UsageError("Name a second table by --y or --z; for one alone: a1gm fit.")
    if [file, y, z].count("-") > 1:
        raise UsageError("Only one table can come from standard input.")
    outputs = ["w.csv", "h.csv", "a.csv", "b.csv", "fit.json"]
    check_outputs(out, outputs, [file, y, z], options)
    x, rows = _read(file, options, columns=split_names(options.columns))
    tables: dict[str, Any] = {"X": rows}
    labels = {"w": ("row", x.row_labels), "h": ("column", x.names)}
    if y is not None:
        y_files, tables["Y"] = _read(y, options, x.names, of=x)
        labels["a"] = "row", y_files.row_labels
    if z is not None:
        z_files, own = _read(z, options)
        cells = own.cells[_matched_rows(z_files, x)]
        same = replace(table_of(cells), row_labels=rows.row_labels)
        tables["Z"] = replace(same, col_labels=own.col_labels)
        labels["b"] = "column", z_files.names
    fit = fit_nmmf(
        **tables,
        alpha=alpha,
        beta=beta,
        **{k: value for k, value in options.fitting.items() if k != "negatives"},
    )
    known = {"divergences": fit.divergences, "n_undetermined": fit.n_undetermined}
    summary = {"alpha": alpha, "beta": beta, **quality_of(fit), **known}
    results = {}
    for letter, (title, names) in labels.items():
        factor = pa.array(getattr(fit, letter), from_pandas=True)
        columns = {
            title: names or list(map(str, range(len(factor)))),
            "factor": factor,
            "block": fit.blocks[letter],
        }
        results[f"{letter}.csv"] = pa.table(columns)
    options.echo(f"Certificate {fit.certificate:.1e}.")
    write_results(out, results, summary, options)


def _read(
    path: str,
    options: Options,
    columns: Sequence[str] = (),
    of: TableFiles | None = None,
) -> tuple[TableFiles, Rows]:
    """Read a table whole, with names for messages.

    ``of`` is the table that must have the same columns. If that one has labels of rows,
    a first column that it does not have labels the rows here.
    """
    from a1gm._rows.files.table import row_names

    files = open_table(path, replace(options, columns=None, exclude=None, id=None))
    known = files.first.names
    # --id and --exclude may name columns that only some of the tables have.
    ids, exclude = (
        [name for name in split_names(names) if name in known]
        for names in (options.id, options.exclude)
    )
    if of is not None and of.id and not ids:
        ids = [name for name in known[:1] if name not in (*of.names, *exclude)]
    reason = None if of is None else f"{of.name} has"
    files = files.choosing(
        reason=reason, columns=list(columns) or None, id=ids or None, exclude=exclude
    )
    with progress_bar(f"Reading {files.name}", quiet=options.quiet) as progress:
        rows, _ = files.in_memory(negatives="raise", progress=progress)
    describe(files, options)
    return files, replace(rows, row_labels=row_names(files), choice=None)


def _matched_rows(z: TableFiles, x: TableFiles) -> Any:
    """The positions in Z of the rows of X."""
    z_labels, x_labels = z.row_labels, x.row_labels
    if z_labels is None or x_labels is None or z.id != x.id:  # matched by their order
        if z.n_rows != x.n_rows:
            raise UsageError(
                f"{z.name} has {counted(z.n_rows or 0, 'row')} and {x.name} has "
                f"{x.n_rows:,}. Z has the rows of X: name the column that labels them "
                "by --id."
            )
        return slice(None)
    position = {name: k for k, name in enumerate(z_labels)}
    for files, labels in ((x, x_labels), (z, z_labels)):
        if len(set(labels)) < len(labels):
            raise UsageError(f"{files.name}: two rows have the same --id.")
    if set(position) != set(x_labels):
        label = min(set(position) ^ set(x_labels))
        raise UsageError(
            f"Row {label!r} is in only one of {x.name} and {z.name}, whose rows are "
            f"matched by {' and '.join(map(repr, x.id))}. To match them by their "
            "order, leave that column out by --exclude."
        )
    return [position[name] for name in x_labels]
