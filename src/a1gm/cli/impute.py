"""``a1gm impute``: the same file with its holes filled."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated, Optional

import typer

from a1gm._base.words import shown
from a1gm.cli.common import (
    Common,
    TableArgument,
    UsageError,
    command,
    one_of,
    usage_errors,
)
from a1gm.cli.console import counted, progress_bar, say, text_of_json, warn

if TYPE_CHECKING:
    from a1gm._api.impute_file import FillFiles
    from a1gm._base.types import OnUndetermined
    from a1gm._fit.fit import RankOneFit
    from a1gm._fit.rounding import Rounding
    from a1gm._rows.files.table import TableFiles


@command
def impute_command(
    file: TableArgument,
    out: Annotated[
        str,
        typer.Option(
            "--out",
            "-o",
            metavar="PATH",
            help="Where the filled table goes: a file, a folder for several, or - for "
            "standard output.",
        ),
    ],
    mark: Annotated[
        bool,
        typer.Option(
            "--mark", help="Add a column per filled column: which cells were filled."
        ),
    ] = False,
    interval: Annotated[
        Optional[float],  # noqa: UP045 - typer reads it
        typer.Option(
            "--interval",
            metavar="LEVEL",
            help="Add NAME_low and NAME_high per filled column: bounds that hold this "
            "share of the cells, such as 0.95.",
        ),
    ] = None,
    digits: Annotated[
        Optional[int],  # noqa: UP045 - typer reads it
        typer.Option(
            "--digits", metavar="N", help="Digits after the point of filled cells."
        ),
    ] = None,
    round: Annotated[
        str,
        typer.Option(
            "--round",
            help="'auto' fills whole numbers in columns that have only such.",
            metavar="none|auto",
            callback=one_of("none", "auto"),
        ),
    ] = "none",
    model: Annotated[
        Optional[str],  # noqa: UP045 - typer reads it
        typer.Option(
            "--model",
            metavar="FILE",
            help="Fill with a saved model instead of a new fit.",
        ),
    ] = None,
    only_filled: Annotated[
        bool,
        typer.Option(
            "--only-filled", help="With --long: write the filled pairs alone."
        ),
    ] = False,
    *,
    common: Common,
) -> None:
    r"""Fill the holes of a table and keep everything else as it is.

    Column order, text, ids, dates and the digits of observed cells stay; integer
    columns stay integers where nothing was filled. Cells that the data do not
    determine stay missing, with a warning. The file is read twice and never held in
    memory; the result appears whole or not at all.

    \b
    Example:
      a1gm impute sales.csv -o filled.csv
      a1gm impute sales.csv -o filled.parquet --mark --interval 0.95
      a1gm impute may.csv -o may-filled.csv --model results/model.a1gm
      a1gm impute sales.csv -o filled.csv --long shop,month,sales
      cat sales.csv | a1gm impute - -o - > filled.csv
    """
    from a1gm._api.impute_file import FillFiles, check_place
    from a1gm._rows.files.paths import find_files

    if interval is not None and not 0.0 < interval < 1.0:
        raise UsageError(f"--interval is a share between 0 and 1, not {interval:g}.")
    if round == "auto" and digits is not None:
        raise UsageError("--round auto and --digits say different things; drop one.")
    rounding: Rounding = "auto" if round == "auto" else digits
    if out == "-" and common.json:
        raise UsageError("-o - and --json both want standard output; drop one.")
    with usage_errors():
        found, is_long = find_files(file), common.long is not None
        check_place(found, out, overwrite=common.overwrite, to_one=is_long)
    if common.long is not None:
        from a1gm.cli.long import LongFill, impute_long_command

        if model is not None:
            raise UsageError(
                "--long goes without --model: it fills the pairs of the file it fits. "
                "In Python a1gm.load(model).predict(frame) gives the values of others."
            )
        fill = LongFill(only_filled, mark, interval, rounding)
        impute_long_command(file, out, common, fill)
        return
    if only_filled:
        raise UsageError("--only-filled goes with --long.")
    files, fit = _fitted(file, model, common)
    with progress_bar(f"Filling {files.name}", quiet=common.quiet) as progress:
        # What stays missing is said below.
        how: OnUndetermined = "raise" if common.strict else "ignore"
        done = FillFiles(files, fit, mark, common.overwrite, how, progress)
        done.takes_negatives = common.negatives == "allow"
        done.interval = interval
        done.round = rounding
        done.write(out)
    _say_result(out, done, common, has_warned=model is None)


def _fitted(
    file: list[str], model: str | None, common: Common
) -> tuple[TableFiles, RankOneFit]:
    """Fit the table, or take a saved fit and read the table once."""
    from a1gm import load
    from a1gm._api.impute_file import files_for, read_new_rows
    from a1gm.cli.files import fit_options, fit_with_words, open_files, say_table

    files = open_files(file, common, are_read_twice=True)
    if model is None:
        return files, fit_with_words(files, common)
    fit = load(model)
    files = files_for(fit, files, whose=f"the model {shown(model)} has")
    with progress_bar(f"Reading {files.name}", quiet=common.quiet) as progress:
        read_new_rows(files, fit_options(common, progress), fit._columns)
    say_table(files, common)
    return files, fit


def _say_result(out: str, done: FillFiles, common: Common, *, has_warned: bool) -> None:
    """Tell what was done; ``has_warned`` is whether the fit told what stays missing."""
    if common.json:
        summary = {
            "out": out,
            "n_rows": done.files.n_rows,
            "n_filled": done.n_filled,
            "n_left": done.n_left,
            "columns_filled": done.columns,
            "passed_through": list(done.files.passed_through),
        }
        sys.stdout.write(text_of_json(summary))
    if common.quiet:
        return
    cells = counted(done.n_filled, "cell")
    columns = counted(len(done.columns), "column")
    where = "" if out == "-" else f"; wrote {shown(out)}"
    if done.files.found.go_to_folder(out):
        where = f"; wrote {counted(len(done.files.paths), 'file')} to {shown(out)}"
    say(f"Filled {cells} in {columns}{where}.")
    if done.n_left:
        cells = counted(done.n_left, "cell stays", "cells stay")
        tell = say if has_warned else warn
        tell(f"{cells} missing: the data determine no value.")
