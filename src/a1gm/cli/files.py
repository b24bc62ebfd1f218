"""What every command starts with: open a table, fit it, say what it is."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from a1gm.cli.common import Common, UsageError
from a1gm.cli.console import counted, listed, progress_bar, say

if TYPE_CHECKING:
    from a1gm._api.fit_file import FitOptions
    from a1gm._base.types import OnUndetermined
    from a1gm._fit.fit import RankOneFit
    from a1gm._rows.files.options import TableOptions
    from a1gm._rows.files.table import Progress, TableFiles
    from a1gm._rows.files.whole import WholeTable


def reading_options(common: Common) -> TableOptions:
    """How text is read, by the options of the command line."""
    from a1gm._rows.files.options import TableOptions

    return TableOptions(
        missing=common.missing or (),
        delimiter=_mark(common.delimiter),
        decimal=common.decimal,
        thousands=_mark(common.thousands),
        encoding=common.encoding,
        sheet=common.sheet,
        skip_bad=common.skip_bad,
    )


def _mark(text: str | None) -> str | None:
    """A character, also as messages show those that cannot be seen."""
    shown = {repr(mark)[1:-1]: mark for mark in "\t\xa0\u202f"}
    return None if text is None else shown.get(text, text)


def open_files(
    paths: str | Sequence[str], common: Common, *, are_read_twice: bool = False
) -> TableFiles:
    """Open a table with the options of the command line."""
    from a1gm._rows.files.table import TableFiles

    if common.by:
        raise UsageError("--by goes with --long ROW,COLUMN,VALUE.")
    options = reading_options(common)
    files = TableFiles.find(paths, options, are_read_twice=are_read_twice)
    return files.choosing(
        columns=split_names(common.columns, files.all_names) or None,
        exclude=split_names(common.exclude, files.all_names),
        id=split_names(common.id, files.all_names) or None,
    )


def split_names(values: Sequence[str] | None, known: Sequence[str]) -> list[str]:
    """Split names at commas, unless a column is called so."""
    names: list[str] = []
    for value in values or ():
        names += [value] if value in known else value.split(",")
    return without_blanks(names, known)


def without_blanks(names: Sequence[str], known: Sequence[str]) -> list[str]:
    """Names without the blanks around them, unless a column is called so."""
    return [name if name in known else name.strip() for name in names]


def fit_options(common: Common, progress: Progress) -> FitOptions:
    """How a table is fitted, by the options of the command line."""
    from a1gm._api.fit_file import FitOptions

    options = FitOptions(
        negatives="allow" if common.negatives == "allow" else "raise",
        n_threads=common.threads,
        progress=progress,
        **common.budget,
    )
    options.check()
    return options


def fit_with_words(
    files: TableFiles,
    common: Common,
    *,
    uncertainty: bool = False,
) -> RankOneFit:
    """Fit a table under a progress bar, and say which columns form it.

    ``uncertainty`` keeps what the scatter of the cells needs, for a saved model.
    """
    from a1gm._api.fit_file import fit_files

    with progress_bar(f"Reading {files.name}", quiet=common.quiet) as progress:
        options = fit_options(common, progress)
        how: OnUndetermined = "raise" if common.strict else "warn"
        fit = fit_files(files, options, on_undetermined=how, uncertainty=uncertainty)
    say_table(files, common)
    return fit


def read_with_words(files: TableFiles, common: Common) -> WholeTable:
    """Read a table into memory under a progress bar, and say what it is."""
    from a1gm._rows.files.whole import read_whole

    with progress_bar(f"Reading {files.name}", quiet=common.quiet) as progress:
        table = read_whole(files, progress=progress)
    say_table(files, common)
    return table


def say_table(files: TableFiles, common: Common) -> None:
    """Say which columns form the table and which are passed through."""
    from a1gm._rows.files.table import title_of

    if common.quiet:
        return
    size = counted(files.n_rows or 0, "row")
    columns = counted(files.n_cols, "numeric column")
    say(f"{files.name}: {size}, {columns} ({listed(files.names, 5)}).")
    if hidden := files.hidden:
        say(f"Hidden files left out: {listed(hidden, 5)}.")
    if files.id:
        say(f"Rows are named by {listed([title_of(name) for name in files.id])}.")
    if passed := files.left_out:
        say(f"Passed through untouched: {listed(passed)}.")
