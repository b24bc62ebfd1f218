"""``a1gm impute``: the same file with its missing cells filled."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Optional

import typer

from a1gm._base.words import counted, shown
from a1gm.cli.console import progress_bar
from a1gm.cli.options import (
    Options,
    TableArgument,
    UsageError,
    command,
    one_of,
    usage_errors,
)
from a1gm.cli.results import finish

if TYPE_CHECKING:
    import pyarrow as pa

    from a1gm._fit.fit import RankOneFit
    from a1gm.cli.tables import LongTable


@command
def impute_command(
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
        Optional[float],  # noqa: UP045 - typer reads it
        typer.Option(
            metavar="LEVEL",
            help="Add NAME_low and NAME_high per column with missing cells: prediction "
            "intervals at this level, such as 0.95.",
        ),
    ] = None,
    digits: Annotated[
        Optional[int],  # noqa: UP045 - typer reads it
        typer.Option(metavar="N", help="Digits after the point of filled cells."),
    ] = None,
    round: Annotated[
        str,
        typer.Option(
            help="'auto' fills whole numbers in columns of whole numbers.",
            **one_of("none", "auto"),
        ),
    ] = "none",
    model: Annotated[
        Optional[str],  # noqa: UP045 - typer reads it
        typer.Option(metavar="FILE", help="Use a saved model instead of a new fit."),
    ] = None,
    only_filled: Annotated[
        bool,
        typer.Option("--only-filled", help="With --long: write only the filled pairs."),
    ] = False,
    *,
    options: Options,
) -> None:
    r"""Fill the missing cells of a table.

    Everything else is kept: column order, text, labels, dates, the digits of observed
    cells, and integer columns where nothing was filled. Cells that the data do not
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
    from a1gm._api.impute_file import check_place
    from a1gm._rows.files.paths import find_files
    from a1gm.cli.tables import LongTable

    is_long = options.long is not None
    if interval is not None and not 0.0 < interval < 1.0:
        raise UsageError(f"--interval must be between 0 and 1, got {interval:g}.")
    if round == "auto" and digits is not None:
        raise UsageError("--round auto and --digits contradict each other; drop one.")
    if out == "-" and options.json:
        raise UsageError("-o - and --json both need standard output; drop one.")
    if is_long and model is not None:
        raise UsageError(
            "--long and --model cannot be combined. In Python, "
            "a1gm.load(model).predict(frame) gives the values of pairs."
        )
    if only_filled and not is_long:
        raise UsageError("--only-filled needs --long.")
    if options.by and interval is not None:
        raise UsageError("--interval and --by cannot be combined; drop one.")
    with usage_errors():
        check_place(find_files(file), out, overwrite=options.overwrite, to_one=is_long)
    how: Any = {"mark": mark, "round": "auto" if round == "auto" else digits}
    if is_long:
        long = LongTable.read(file, options)
        _impute_long(long, out, interval, only_filled=only_filled, **how)
    else:
        _impute_wide(file, out, model, options, interval=interval, **how)


def _impute_wide(
    file: list[str], out: str, model: str | None, options: Options, **how: Any
) -> None:
    from a1gm import load
    from a1gm._api.impute_file import fill_file
    from a1gm.cli.tables import describe

    if options.by:
        raise UsageError("--by needs --long ROW,COLUMN,VALUE.")
    name = shown(file[0]) + (f" and {len(file) - 1} more" if len(file) > 1 else "")
    with progress_bar(f"Filling {name}", quiet=options.quiet) as progress:
        shared: Any = {**options.reading, **options.fitting, "progress": progress}
        fit = None if model is None else load(model)
        on_left, how["overwrite"] = options.on_undetermined, options.overwrite
        done = fill_file(file, out, fit, on_left, shared, **how)
    names = [done.files.names[j] for j in done.is_filled.nonzero()[0]]
    describe(done.files, options)
    summary = {
        "out": out,
        "n_rows": done.files.n_rows,
        "n_filled": done.n_filled,
        "n_left": done.n_left,
        "columns_filled": names,
        "passed_through": list(done.files.passed_through),
    }
    where = "" if out == "-" else f"; wrote {shown(out)}"
    if done.files.found.go_to_folder(out):
        where = f"; wrote {counted(len(done.files.paths), 'file')} to {shown(out)}"
    columns = counted(len(names), "column")
    filled = f"Filled {counted(done.n_filled, 'cell')} in {columns}{where}."
    finish(summary, options, filled, *_left(done.n_left, "cell"))


def _impute_long(
    long: LongTable,
    out: str,
    interval: float | None,
    *,
    only_filled: bool,
    mark: bool,
    round: Any,
) -> None:
    """Write every pair of a long table, the missing ones filled."""
    from a1gm._fit.rounding import check_rounding
    from a1gm._write.long import FillLong

    check_rounding(round)
    options = long.options
    found: Any = long.fit_groups() if long.by else long.fit()
    pairs = found.fill_long()
    if interval is not None:
        pairs = _with_bounds(pairs, long, found, interval)
    done = FillLong(long.cells, pairs, only_filled, mark, round)
    done.write(out, overwrite=options.overwrite)
    summary = {"out": out, "n_filled": done.n_filled, "n_left": done.n_left}
    where = "" if out == "-" else f"; wrote {shown(out)}"
    filled = f"Filled {counted(done.n_filled, 'pair')}{where}."
    finish(summary, options, filled, *_left(done.n_left, "pair"))


def _left(n: int, noun: str) -> list[str]:
    cells = counted(n, f"{noun} stays", f"{noun}s stay")
    return [f"{cells} missing: the data do not determine a value."] if n else []


def _with_bounds(
    filled: pa.Table, long: LongTable, fit: RankOneFit, level: float
) -> pa.Table:
    """Add the bounds of filled pairs, which come row by row."""
    import numpy as np
    import pyarrow as pa

    from a1gm._write.fill import BOUNDS, bounds_of
    from a1gm.cli.tables import cells_of

    X = cells_of(fit)
    for suffix, bound in zip(BOUNDS, bounds_of(fit, level)(X), strict=True):
        column = pa.array(bound[np.isnan(X)], from_pandas=True)
        filled = filled.append_column(long.value + suffix, column)
    return filled
