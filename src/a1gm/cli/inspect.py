"""``a1gm inspect``: a table, and where its missing cells are."""

from __future__ import annotations

from typing import TYPE_CHECKING

from a1gm._base.words import listed, shown
from a1gm.cli.app import command
from a1gm.cli.database import DatabaseTable, is_database
from a1gm.cli.options import Options, TableArgument, UsageError
from a1gm.cli.tables import fit_open, fit_table, has_many_keys, open_table, uses_of
from a1gm.exceptions import A1gmError, InfiniteValuesError, NegativeValuesError

if TYPE_CHECKING:
    from a1gm._fit.pattern import MissingPattern
    from a1gm._rows.files.table import TableFiles

#: The keys ``--json`` prints, each an attribute of :class:`a1gm.MissingPattern`.
JSON_KEYS = (
    "n_rows",
    "n_cols",
    "n_missing",
    "n_row_patterns",
    "n_col_patterns",
    "is_complete",
    "is_grid_like",
    "is_nested",
    "has_closed_form",
    "core_shape",
    "n_blocks",
    "n_undetermined",
)
_SHADES = " ░▒▓█"


@command("by", "interactions", "overwrite", "escape_formulas", "weights", "exposure")
def inspect(file: TableArgument, options: Options) -> None:
    """Show the columns and the missing cells of a table.

    The missing cells form a grid (some rows by some columns), a staircase (each row's
    missing cells contain the next one's), another pattern with a closed form, or a
    core that is solved iteratively. Cells that the data do not determine are counted.
    A table that cannot be fitted is shown, too, and then the reason.

    Example:
      a1gm inspect sales.csv --id shop
      a1gm inspect duckdb:///shop.ddb::sales
      a1gm inspect sales.csv --json | jq .n_missing
    """
    if has_many_keys(options):
        raise UsageError("inspect shows tables of two keys; a1gm report shows others.")
    if is_database(file):
        with DatabaseTable.open(file, options) as table:
            _print(table.fit(options).pattern, None, options)
        return
    if options.long is not None:
        _print(fit_table(file, options)[0].pattern, None, options)
        return
    files = open_table(file, options)
    try:
        pattern = fit_open(files, options).pattern
    except A1gmError as error:
        is_read = files.counts is not None or files.n_rows is not None
        if is_read or isinstance(error, NegativeValuesError | InfiniteValuesError):
            _print(None, files, options)
        raise
    _print(pattern, files, options)


def _print(
    pattern: MissingPattern | None, files: TableFiles | None, options: Options
) -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    from a1gm._rows.files.table import hole_shares, title_of

    uses = {} if files is None else uses_of(files)
    if options.json:
        summary = {key: getattr(pattern, key) for key in JSON_KEYS} if pattern else {}
        options.finish({**summary, "columns": uses} if uses else summary)
        return
    console = Console(highlight=False)
    table = Table(show_header=False, box=None, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column(style="bold", no_wrap=True)
    table.add_column(overflow="fold")
    facts = {use: listed(names, 20) for use, names in uses.items() if names}
    if pattern is not None:
        facts |= pattern._summary()
        if files is not None and pattern.n_missing:
            missing = pattern.missing_per_col
            most = [j for j in missing.argsort()[::-1][:8] if missing[j]]
            shares = missing / pattern.n_rows
            facts["most missing"] = ", ".join(
                f"{title_of(files.names[j])} {shares[j]:.1%}" for j in most
            )
    for name, text in facts.items():
        table.add_row(name, Text(shown(text)))
    console.print(table)
    if pattern is not None and pattern.n_missing and files is not None:
        title = "\nmissing cells (dark), rows downwards, columns across"
        console.print(Text(title, style="dim"))
        dark = hole_shares(files, 16, 64)
        # Letters are twice as high as wide: two of them make a square.
        wide = 2 if dark.shape[1] <= 32 else 1
        for line in dark:
            cells = "".join(_SHADES[round(share * 4)] * wide for share in line)
            console.print(Text(f"│{cells}│"))
