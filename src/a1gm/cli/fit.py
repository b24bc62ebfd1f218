"""``a1gm fit``: both factors and the certificate."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated, Any

import typer

from a1gm._base.words import shown
from a1gm.cli.common import Common, TableArgument, check_folder, command, one_of
from a1gm.cli.console import say, text_of_json
from a1gm.cli.quality import certificate_in_words, quality_of
from a1gm.exceptions import DataError, ParameterError, TableTooLargeError

if TYPE_CHECKING:
    from a1gm._result.fit import RankOneFit
    from a1gm._result.uncertainty import Uncertainty
    from a1gm._sources.files import TableFiles


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
    from a1gm._base.atomic import atomic_folder, atomic_write
    from a1gm._write.factors import names_of_rows, one_batch, write_factor
    from a1gm.cli.files import fit_with_words, open_files

    names = [f"row_factor.{format}", f"col_factor.{format}", "fit.json", "model.a1gm"]
    check_folder(out, names, common)
    if common.long is not None:
        from a1gm.cli.long import fit_long_command

        fit_long_command(file, out, format, common)
        return
    files = open_files(file, common)
    fit = fit_with_words(files, common, uncertainty=True)
    sure, why_not = uncertainty_of(fit)
    summary = text_of_json(
        summary_of(files, fit)
        | {"uncertainty": {"why_not": why_not} if sure is None else errors_of(sure)}
    )
    with atomic_folder(out, overwrite=common.overwrite) as place:
        rows, columns = names_of_rows(files), [one_batch("column", files.names)]
        of_rows, of_columns = (None, None) if sure is None else sure.factor_errors()
        index = None if sure is None else sure.index()
        by_row = {"row_factor": fit.row_factor, "se": of_rows}
        by_column = {"col_factor": fit.col_factor, "se": of_columns} | {
            "index": None if index is None else index.value,
            "index_se": None if index is None else index.se,
        }
        for name, lines, values, block in (
            (names[0], rows, by_row, fit.row_block),
            (names[1], columns, by_column, fit.col_block),
        ):
            write_factor(place(name), lines, values, block, overwrite=common.overwrite)
        with atomic_write(place(names[2]), overwrite=common.overwrite) as file_:
            file_.write(summary.encode())
        fit.save(place(names[3]), overwrite=common.overwrite)
    if common.json:
        sys.stdout.write(summary)
    if not common.quiet:
        say(certificate_in_words(fit))
        say(f"Wrote {', '.join(names)} to {shown(out)}.")


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


def uncertainty_of(fit: RankOneFit) -> tuple[Uncertainty | None, str]:
    """How sure the fit is; or None, and why that is not known."""
    try:
        return fit.uncertainty(), ""
    except (DataError, ParameterError, TableTooLargeError) as error:
        return None, str(error).partition(" Pass ")[0]


def errors_of(sure: Uncertainty) -> dict[str, Any]:
    """Dispersion, tests of the fit and totals, as JSON."""
    tests = ("pearson_chi2", "pearson_p", "deviance", "deviance_p")
    totals = {
        "missing": sure.totals("all", "missing"),
        "fitted": sure.totals("all", "fitted"),
        "missing_by_column": sure.totals("column", "missing"),
    }
    return {
        "dispersion": sure.dispersion,
        "dof": sure.dof,
        **{name: getattr(sure, name) for name in tests},
        "totals": {
            name: {
                key: values if "by" in name else values[0]
                for key, values in total.columns().items()
            }
            for name, total in totals.items()
        },
    }
