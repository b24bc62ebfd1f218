"""``a1gm fit``: both factors and the certificate."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from a1gm.cli.common import Common, TableArgument, check_folder, command, one_of
from a1gm.cli.quality import quality_of

if TYPE_CHECKING:
    from a1gm._fit.fit import RankOneFit
    from a1gm._rows.files.table import TableFiles


@command
def fit_command(
    file: TableArgument,
    out: Annotated[
        str,
        typer.Option(
            "--out", "-o", metavar="PATH", help="The folder the results go to."
        ),
    ],
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
    common: Common,
) -> None:
    r"""Fit a table and write its factors.

    The folder gets row_factor and col_factor with the names of the rows and columns and
    their standard errors, fit.json (divergence, certificate, cell_error, blocks;
    dispersion, tests and totals), and model.a1gm, with which a1gm impute --model fills
    other files. The column factors sum to 1, so a row factor
    is the estimated total of its row; when the table falls into several blocks, factors
    can be compared within a block only.

    \b
    Example:
      a1gm fit sales.csv --id shop -o results
      a1gm fit sales.parquet -o results --format parquet
      a1gm fit sales.csv --long shop,month,sales -o results
    """
    from a1gm._write.factors import names_of_rows, one_batch
    from a1gm.cli.files import fit_with_words, open_files
    from a1gm.cli.results import write_fit

    names = [f"row_factor.{format}", f"col_factor.{format}", "fit.json", "model.a1gm"]
    check_folder(out, names, common)
    if common.long is not None:
        from a1gm.cli.long import fit_long_command

        fit_long_command(file, out, names, common)
        return
    files = open_files(file, common)
    fit = fit_with_words(files, common, uncertainty=True)
    lines = names_of_rows(files), [one_batch("column", files.names)]
    write_fit(out, names, fit, lines, summary_of(files, fit), common)


def summary_of(files: TableFiles, fit: RankOneFit) -> dict[str, Any]:
    """Say how good the fit is, as JSON."""
    assert files.counts is not None
    return {
        "n_rows": files.n_rows,
        "n_cols": files.n_cols,
        "columns": files.col_labels,
        "n_missing": files.counts.missing.sum(),
        **quality_of(fit),
        "col_block": fit.col_block,
    }
