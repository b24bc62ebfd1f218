"""``a1gm inspect``: what a table and its holes look like."""

from __future__ import annotations

import sys
from functools import partial
from typing import TYPE_CHECKING, Any

from a1gm._base.words import shown
from a1gm.cli.common import Common, TableArgument, command
from a1gm.cli.console import counted, text_of_json
from a1gm.cli.hole_picture import picture

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
    "increase_rate",
    "core_shape",
    "n_blocks",
    "n_undetermined",
)

_RATE = "(the paper's: its method would drop cells above 1)"


@partial(command, hidden=("by", "overwrite"))
def inspect_command(file: TableArgument, common: Common) -> None:
    r"""Say where the holes of a table are, and what can be known.

    Holes are a complete table, a grid (some rows × some columns), a staircase (each
    row's holes contain the next one's), another pattern with a closed form, or a core
    that is solved iteratively. Cells that the data do not determine are counted.

    \b
    Example:
      a1gm inspect sales.csv --id shop
      a1gm inspect sales.csv --json | jq .n_missing
    """
    from a1gm.cli.files import fit_with_words, open_files

    files = None
    if common.long is not None:
        from a1gm.cli.long import LongInput

        pattern = LongInput(file, common).fit().pattern
    else:
        files = open_files(file, common)
        pattern = fit_with_words(files, common).pattern
    if common.json:
        summary = {key: getattr(pattern, key) for key in JSON_KEYS}
        sys.stdout.write(text_of_json(summary))
        return
    _print_summary(files, pattern)


def _print_summary(files: TableFiles | None, pattern: MissingPattern) -> None:
    from rich.console import Console
    from rich.table import Table

    console = Console(highlight=False)
    facts = Table(show_header=False, box=None, pad_edge=False, padding=(0, 2, 0, 0))
    facts.add_column(style="bold", no_wrap=True)
    facts.add_column(overflow="fold")
    for name, words in describe(pattern):
        facts.add_row(name, words)
    console.print(facts)
    if pattern.n_missing and files is not None:
        _print_columns(console, files)
        console.print()
        console.print(_picture(files))


def describe(pattern: MissingPattern) -> list[tuple[str, str]]:
    """Put the pattern of holes in words."""
    n_cells = pattern.n_rows * pattern.n_cols
    share = pattern.n_missing / n_cells
    rows, columns = counted(pattern.n_rows, "row"), counted(pattern.n_cols, "column")
    facts = [
        ("table", f"{rows} × {columns}"),
        ("holes", f"{counted(pattern.n_missing, 'cell')} of {n_cells:,} ({share:.1%})"),
        (
            "patterns",
            f"{pattern.n_row_patterns:,} among the rows, "
            f"{pattern.n_col_patterns:,} among the columns",
        ),
        ("shape", _shape_in_words(pattern)),
        ("increase rate", f"{pattern.increase_rate:.4g} {_RATE}"),
        ("blocks", _blocks_in_words(pattern)),
    ]
    if pattern.n_undetermined:
        cells = counted(pattern.n_undetermined, "missing cell")
        facts.append(("cannot be known", f"{cells}; these stay missing"))
    return facts


def _shape_in_words(pattern: MissingPattern) -> str:
    if pattern.is_complete:
        return "complete: nothing is missing, solved in closed form"
    if pattern.is_grid_like:
        return "grid (some rows × some columns): solved in closed form"
    if pattern.is_nested:
        return "staircase: solved in closed form"
    if pattern.has_closed_form:
        return "no grid and no staircase, but solved in closed form"
    rows, columns = pattern.core_shape
    return f"core of {rows:,} × {columns:,}: solved iteratively, to a certificate"


def _blocks_in_words(pattern: MissingPattern) -> str:
    if pattern.n_blocks <= 1:
        one = "1: all rows and columns with a cell above 0 can be compared"
        return one if pattern.n_blocks else "0: no cell is above 0"
    return f"{pattern.n_blocks:,}: their scales cannot be compared"


def _print_columns(console: Any, files: TableFiles) -> None:
    from rich import box
    from rich.table import Table
    from rich.text import Text

    assert files.counts is not None
    missing = files.counts.missing
    order = missing.argsort()[::-1][:8]
    table = Table(box=box.SIMPLE, pad_edge=False, title_justify="left")
    table.add_column("columns with most holes")
    table.add_column("missing", justify="right")
    table.add_column("")
    for j in order:
        if missing[j]:
            share = missing[j] / (files.n_rows or 1)
            bar = f"{share:6.1%} {_bar(share)}"
            table.add_row(Text(shown(files.names[j])), f"{missing[j]:,}", bar)
    console.print(table)


def _bar(share: float, width: int = 24) -> str:
    eighths = round(share * width * 8)
    full, rest = divmod(eighths, 8)
    return "█" * full + (" ▏▎▍▌▋▊▉"[rest] if rest else "")


def _picture(files: TableFiles) -> Any:
    """Draw the share of holes, some rows to a line and some columns to a letter."""
    from rich.text import Text

    from a1gm._rows.files.whole import hole_shares

    text = Text("holes (dark = missing), rows downwards, columns across\n", style="dim")
    for line in picture(hole_shares(files, 16, 64)):
        text.append(line + "\n")
    return text
