"""``a1gm fit``: both factors and the certificate."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from a1gm.cli.options import FolderOption, Options, TableArgument, command, one_of
from a1gm.cli.results import check_folder, print_summary, quality_of, write_fit


@command
def fit_command(
    file: TableArgument,
    out: FolderOption,
    format: Annotated[
        str,
        typer.Option(
            "--format",
            help="The format of the factors.",
            metavar="csv|parquet",
            callback=one_of("csv", "parquet"),
        ),
    ] = "csv",
    *,
    options: Options,
) -> None:
    r"""Fit a table and write its factors.

    The folder gets row_factor and col_factor with the labels of the rows and columns
    and their standard errors, fit.json (divergence, certificate, cell_error, blocks;
    dispersion, tests and totals), and model.a1gm, with which a1gm impute --model fills
    other files. The column factors sum to 1, so a row factor is the estimated total of
    its row; if the table has several blocks, factors can be compared within a block
    only.

    \b
    Example:
      a1gm fit sales.csv --id shop -o results
      a1gm fit sales.parquet -o results --format parquet
      a1gm fit sales.csv --long shop,month,sales -o results
    """
    from a1gm._api.fit_file import files_of
    from a1gm._write.writers import names_of_rows, one_batch
    from a1gm.cli.tables import LongTable, fit_table

    names = [f"row_factor.{format}", f"col_factor.{format}", "fit.json", "model.a1gm"]
    check_folder(out, names, options)
    if options.long is not None and options.by:
        _write_groups(LongTable.read(file, options), out, names[:3])
        return
    fit, _ = fit_table(file, options, uncertainty=True)
    (n, m), files = fit.shape, files_of(fit)
    about: dict[str, Any] = {"n_rows": n, "n_cols": m}
    if files is not None:
        about |= {"columns": files.col_labels, "col_block": fit.col_block}
        labels: Any = names_of_rows(files), [one_batch("column", files.names)]
    else:
        keys = LongTable.keys_of(options)
        sides = zip(keys, (fit.row_labels, fit.col_labels), strict=True)
        labels = tuple([one_batch(key, list(side))] for key, side in sides)
    about |= {"n_missing": fit.pattern.n_missing, **quality_of(fit)}
    write_fit(out, names, fit, labels, about, options)


def _write_groups(long: Any, out: str, names: list[str]) -> None:
    """Write the factors of every group, and a summary."""
    from a1gm._base.atomic import atomic_write, output_folder
    from a1gm._base.words import shown
    from a1gm._write.writers import open_writer
    from a1gm.cli.console import say, text_of_json
    from a1gm.cli.style import command_style

    many, options = long.fit_groups(), long.options
    failed = {str(key): e.render(command_style) for key, e in many.failed.items()}
    summary = {"n_tables": len(many), "n_failed": len(failed), "failed": failed}
    replaces = {"overwrite": options.overwrite}
    with output_folder(out, **replaces) as place:
        for name, frame in zip(names, many.to_frames("pyarrow"), strict=False):
            with open_writer(place(name), frame.schema, **replaces) as writer:
                for batch in frame.to_batches():
                    writer.write(batch)
        with atomic_write(place(names[2]), **replaces) as file:
            file.write(text_of_json(summary).encode())
    print_summary(summary, options)
    if not options.quiet:
        say(f"Wrote {', '.join(names)} to {shown(out)}.")
