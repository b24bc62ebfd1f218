"""The commands of ``a1gm``."""

from __future__ import annotations

from typing import Annotated

import typer

from a1gm._base.version import __version__
from a1gm.cli.assess import assess
from a1gm.cli.demo import demo
from a1gm.cli.fit import fit
from a1gm.cli.impute import impute
from a1gm.cli.inspect import inspect
from a1gm.cli.nmmf import nmmf
from a1gm.cli.options import help_of
from a1gm.cli.report import report

app = typer.Typer(
    name="a1gm",
    # Plain help: drawing it with rich would double the time it takes to answer.
    rich_markup_mode=None,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _print_version(is_given: bool) -> None:
    if is_given:
        typer.echo(f"a1gm {__version__}")
        raise typer.Exit


def a1gm(
    version: Annotated[
        bool,
        typer.Option(
            "--version",
            callback=_print_version,
            is_eager=True,
            help="Show the version.",
        ),
    ] = False,
) -> None:
    """Explain a table with missing cells by one factor per row and one per column.

    The best rank-1 table under the Kullback-Leibler divergence on the observed cells,
    exact for every pattern of missing cells. A table is a file, several files or a
    folder: CSV, TSV, gzipped text, spreadsheets, Parquet, Feather, or - for standard
    input. It has one row of cells per line, or with --long one cell per line.

    Example:
      a1gm inspect sales.csv
      a1gm impute sales.csv -o filled.csv
      a1gm impute sales.xlsx --long shop,month,sales -o filled.csv
      a1gm report sales.csv -o report.html
    """


app.callback(help=help_of(a1gm))(a1gm)
for body in (inspect, fit, impute, assess, report, nmmf, demo):
    app.command(body.__name__, help=help_of(body))(body)
