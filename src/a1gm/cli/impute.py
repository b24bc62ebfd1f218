"""``a1gm impute``: the same file with its missing cells filled."""

from __future__ import annotations

from itertools import compress
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from a1gm._base.words import counted, shown
from a1gm.cli.app import command
from a1gm.cli.database import DatabaseTable, is_database
from a1gm.cli.options import (
    ColTotalsOption,
    Options,
    RowTotalsOption,
    TableArgument,
    UsageError,
    progress_bar,
)
from a1gm.cli.tables import (
    check_needs_long,
    check_stdout,
    describe,
    files_beside,
    fit_pairs,
    has_many_keys,
    read_long,
    usage_errors,
    weighting_of,
)

if TYPE_CHECKING:
    from a1gm._fit.fill import Rounding

MOST_DIGITS = 17  # that a float64 has
NOT_DETERMINED = "the data do not determine a value."


@command()
def impute(
    file: TableArgument,
    out: Annotated[
        str,
        typer.Option(
            "--out",
            "-o",
            metavar="PATH",
            help="The filled table: a file, a folder for several files, or - for "
            "standard output.",
        ),
    ],
    mark: Annotated[
        bool,
        typer.Option(
            "--mark", help="Add a column NAME_filled per column with missing cells."
        ),
    ] = False,
    interval: Annotated[
        float | None,
        typer.Option(
            metavar="LEVEL",
            help="Add NAME_low and NAME_high per column with missing cells: prediction "
            "intervals at this level, such as 0.95.",
        ),
    ] = None,
    round: Annotated[
        str,
        typer.Option(
            metavar="none|auto|N",
            help="Digits after the point of filled cells; 'auto' fills whole numbers "
            "in columns of whole numbers.",
        ),
    ] = "none",
    model: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="Use a saved model instead of a new fit."),
    ] = None,
    row_totals: RowTotalsOption = None,
    col_totals: ColTotalsOption = None,
    only_filled: Annotated[
        bool,
        typer.Option("--only-filled", help="With --long: write only the filled pairs."),
    ] = False,
    *,
    options: Options,
) -> None:
    """Fill the missing cells of a table.

    Everything else is kept: column order, text, labels, dates, the digits of observed
    cells, and integer columns where nothing was filled. Cells that the data do not
    determine stay missing, with a warning. A large file is read twice and not held
    in memory, a long one is; the result appears whole or not at all.

    Example:
      a1gm impute sales.csv -o filled.csv
      a1gm impute sales.csv -o filled.parquet --mark --interval 0.95
      a1gm impute may.csv -o may-filled.csv --model results/model.a1gm
      a1gm impute sales.csv -o filled.csv --long shop,month,sales
      a1gm impute counts.csv -o filled.csv --long site,year,month,count
      a1gm impute sales.csv -o filled.csv --row-totals shops.csv
      a1gm impute duckdb:///shop.ddb::sales -o filled.parquet
      cat sales.csv | a1gm impute - -o - > filled.csv
    """
    from a1gm._api.fit_file import PREDICT, check_place
    from a1gm._fit.sure.arguments import check_level
    from a1gm._rows.files.source import find_files
    from a1gm.exceptions import Option

    is_long = options.long is not None
    if interval is not None:
        check_level(interval, Option("interval"))
    check_stdout(out, options)
    if is_long and model is not None:
        raise UsageError(f"--long and --model cannot be combined. {PREDICT}")
    totals = [path for path in (row_totals, col_totals) if path is not None]
    if is_long and totals:
        raise UsageError("--long and totals cannot be combined; drop one.")
    if not is_long:
        check_needs_long(options, only_filled=only_filled)
    rounding = _rounding_of(round)
    if is_database(file):
        of_files: dict[str, Any] = {"mark": mark, "interval": interval}
        of_files |= {"round": rounding is not None}
        of_files |= {"row_totals": row_totals, "col_totals": col_totals}
        with DatabaseTable.open(file, options, **of_files) as table:
            _impute_there(table, out, model, options)
        return
    with usage_errors():
        beside = [*files_beside(options), *totals]
        beside += [] if model is None else [model]
        place = {"overwrite": options.overwrite, "to_one": is_long}
        check_place(find_files(file), out, beside, **place)
    how: dict[str, Any] = {"mark": mark, "round": rounding, **options.writing}
    if is_long:
        _impute_pairs(file, out, options, interval, only_filled=only_filled, **how)
    else:
        how |= {"row_totals": row_totals, "col_totals": col_totals}
        _impute_cells(file, out, model, options, interval=interval, **how)


def _impute_there(
    table: DatabaseTable, out: str, model: str | None, options: Options
) -> None:
    """Write a table of a database, which fills its own holes."""
    from a1gm import load
    from a1gm._base.atomic import check_target
    from a1gm._write.fill import format_of

    format_of(out)
    with usage_errors():
        check_target(out, overwrite=options.overwrite)
    fit = table.fit(options) if model is None else load(model)
    with progress_bar(f"Writing {shown(out)}", quiet=options.quiet):
        table.write(out, fit.impute(table.lazy), options)
    if model is None:
        done = _Filled(fit.pattern.n_missing - fit.n_undetermined, fit.n_undetermined)
        _finish(done, out, {"n_rows": fit.shape[0]}, options, "cell")
    else:  # nobody counts the holes of other tables
        options.finish({"out": out}, f"Wrote {shown(out)}.")


def _rounding_of(text: str) -> Rounding:
    if text in ("none", "auto"):
        return None if text == "none" else "auto"
    if text.isdecimal() and int(text) <= MOST_DIGITS:
        return int(text)
    raise UsageError(
        f"--round takes none, auto or a number of digits up to {MOST_DIGITS}, and not "
        f"{text!r}."
    )


class _Filled(NamedTuple):
    """How many cells were filled, and how many stay missing."""

    n_filled: int
    n_left: int


def _impute_cells(
    file: list[str], out: str, model: str | None, options: Options, **how: Any
) -> None:
    from a1gm import load
    from a1gm._api.fit import FitOptions
    from a1gm._api.fit_file import fill_file
    from a1gm._rows.files.source import TableOptions

    fit = None if model is None else load(model)
    reading = TableOptions(**options.reading)
    name = shown(file[0]) + (f" and {len(file) - 1} more" if len(file) > 1 else "")
    with progress_bar(f"Filling {name}", quiet=options.quiet) as progress:
        fitting = FitOptions(progress=progress, **options.fitting)
        left = fitting.on_undetermined
        if fit is not None and left == "warn":
            left = "ignore"  # counted below
        weighting = weighting_of(options)
        done = fill_file(file, out, fit, left, reading, fitting, weighting, **how)
    describe(done.files, options)
    names = list(compress(done.files.names, done.is_filled))
    summary = {
        "n_rows": done.files.n_rows,
        "columns_filled": names,
        "passed_through": list(done.files.passed_through),
    }
    n_files = len(done.files.paths) if done.files.found.go_to_folder(out) else 0
    files = f"{counted(n_files, 'file')} to " if n_files else ""
    where = f" in {counted(len(names), 'column')}"
    _finish(done, out, summary, options, "cell", where, files)


def _impute_pairs(
    file: list[str], out: str, options: Options, interval: float | None, **how: Any
) -> None:
    """Write every pair of a long table, the missing ones filled."""
    from a1gm._fit.fill import check_rounding
    from a1gm._write.fill import BOUNDS, interval_advice

    check_rounding(how["round"])
    long = read_long(file, options)
    fit = fit_pairs(long, options)
    with interval_advice():
        pairs = fit.fill_long(interval=interval)
    if interval is not None:
        names = [long.value + suffix for suffix in BOUNDS]
        pairs = pairs.rename_columns([*long.keys, long.value, *names])
    long.write(out, pairs, **how)
    why = NOT_DETERMINED
    if long.n_left and options.exposure is not None:
        fits = fit.values() if options.by else [fit]
        n = long.n_left - sum(one.n_undetermined for one in fits)
        of = "their exposure is" if n > 1 else "its exposure is"
        if n > 0:
            why = f"{of} not known; a row with the exposure and no value gives it."
    noun = "cell" if has_many_keys(options) else "pair"
    _finish(long, out, {}, options, noun, why=why)


def _finish(
    done: Any,
    out: str,
    summary: dict[str, Any],
    options: Options,
    noun: str,
    where: str = "",
    files: str = "",
    why: str = NOT_DETERMINED,
) -> None:
    summary = {"out": out, "n_filled": done.n_filled, "n_left": done.n_left, **summary}
    wrote = "" if out == "-" else f"; wrote {files}{shown(out)}"
    lines = [f"Filled {counted(done.n_filled, noun)}{where}{wrote}."]
    if done.n_left:
        left = counted(done.n_left, f"{noun} stays", f"{noun}s stay")
        lines.append(f"{left} missing: {why}")
    options.finish(summary, *lines)
