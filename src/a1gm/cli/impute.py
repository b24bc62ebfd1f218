"""``a1gm impute``: the same file with its holes filled."""

from __future__ import annotations

import contextlib
import json
import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Optional

import typer

from a1gm.cli.common import Common, UsageError, check_output, command
from a1gm.cli.console import counted, progress_bar, say, warn

if TYPE_CHECKING:
    from a1gm._base.types import Floats
    from a1gm.cli.tables import FittedTable
    from a1gm._write.fill import Filler, HoleCount, RowFill
    from a1gm._write.writers import TableWriter
    from a1gm._result.fit import RankOneFit


@command
def impute_file(
    file: Annotated[str, typer.Argument(help="The table; - for standard input.")],
    out: Annotated[
        str,
        typer.Option(
            "--out", "-o", help="Where the filled table goes; - for standard output."
        ),
    ],
    mark: Annotated[
        bool,
        typer.Option(
            "--mark", help="Add a column per filled column: which cells were filled."
        ),
    ] = False,
    model: Annotated[
        Optional[str],  # noqa: UP045 - typer reads it
        typer.Option("--model", help="Fill with a saved model instead of a new fit."),
    ] = None,
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
      a1gm impute sales.csv -o filled.parquet --mark
      a1gm impute may.csv -o may-filled.csv --model results/model.a1gm
      cat sales.csv | a1gm impute - -o - > filled.csv
    """
    from a1gm._write.fill import Filler, HoleCount

    _check_place(out, common, file)
    # A text file does not say which columns are integers; a typed one must know.
    watch = partial(HoleCount.of_columns, check_whole=_kind_of(out, "csv") != "csv")
    fitted, row_fill = _fitted(file, model, common, watch)
    kind = _kind_of(out, fitted.table.source.origin.format)
    filler = Filler(
        fitted.table,
        row_fill,
        fitted.watched,
        mark=mark,
        to_text=kind == "csv",
    )
    with (
        _writer(out, kind, filler, common) as writer,
        progress_bar(f"Filling {fitted.table.name}", quiet=common.quiet) as progress,
    ):
        for block in fitted.table.blocks(progress=progress, known=fitted.kept):
            writer.write(filler.fill(block))
    _say_result(out, filler, common, has_warned=model is None)


def _fitted(
    file: str,
    model: str | None,
    common: Common,
    watch: Callable[[int], HoleCount],
) -> tuple[FittedTable[HoleCount], RowFill]:
    """Fit the table, or take a saved fit, and tell how its rows are filled."""
    from a1gm.cli.tables import fit_table, open_file

    if model is not None:
        from a1gm._result.fill_rows import RowRule
        from a1gm.cli.saved import open_with_model

        loaded = open_with_model(file, model, common, watch)
        rule = RowRule.of(loaded.fit)
        return loaded, lambda _, values: rule.fill(values)
    fitted = fit_table(open_file(file, common), common, watch=watch)
    return fitted, _fill_of(fitted.fit)


def _fill_of(fit: RankOneFit) -> RowFill:
    """Tell how to fill the rows of the table that was fitted."""
    from a1gm._result.fill_rows import RowRule

    rule, factors = RowRule.of(fit), fit.row_factor

    def fill(first_row: int, values: Floats) -> Floats:
        return rule.fill(values, factors[first_row : first_row + len(values)])

    return fill


def _check_place(out: str, common: Common, source: str) -> None:
    if out == "-" and common.json:
        raise UsageError("-o - and --json both want standard output; drop one.")
    check_output(out, common=common, source=source)
    _kind_of(out, "csv")


def _kind_of(out: str, source_kind: str) -> str:
    """Tell the format to write; a stream or a device gets the one that was read."""
    from a1gm._base.atomic import is_special
    from a1gm._write.writers import format_of

    if out == "-" or is_special(Path(out)):
        return "feather" if source_kind == "arrow stream" else source_kind
    return format_of(out)


@contextlib.contextmanager
def _writer(
    out: str, kind: str, filler: Filler, common: Common
) -> Iterator[TableWriter]:
    from a1gm._write.writers import open_writer
    from a1gm._write.writers import write_to

    dialect = getattr(filler.table.source, "dialect", None)
    if out == "-":
        with write_to(
            sys.stdout.buffer, filler.schema, kind=kind, dialect=dialect
        ) as writer:
            yield writer
    else:
        with open_writer(
            out,
            filler.schema,
            kind=kind,
            dialect=dialect,
            overwrite=common.overwrite,
        ) as writer:
            yield writer


def _say_result(out: str, filler: Filler, common: Common, *, has_warned: bool) -> None:
    """Tell what was done; ``has_warned`` is whether the fit told what stays missing."""
    if common.json:
        summary = {
            "out": out,
            "n_rows": filler.table.source.n_rows,
            "n_filled": filler.n_filled,
            "n_left": filler.n_left,
            "columns_filled": filler.columns_filled,
            "passed_through": list(filler.table.passed_through),
        }
        sys.stdout.write(json.dumps(summary, indent=2) + "\n")
    if common.quiet:
        return
    cells = counted(filler.n_filled, "cell")
    columns = counted(len(filler.columns_filled), "column")
    where = "" if out == "-" else f"; wrote {out}"
    say(f"Filled {cells} in {columns}{where}.")
    if filler.n_left:
        cells = counted(filler.n_left, "cell stays", "cells stay")
        tell = say if has_warned else warn
        tell(f"{cells} missing: the data determine no value.")


def register(app: typer.Typer) -> None:
    """Add the command to the application."""
    app.command("impute")(impute_file)
