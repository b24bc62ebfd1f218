"""Tables of the command line: wide or long, opened, fitted, described."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from a1gm._base.words import counted, listed
from a1gm.cli.console import progress_bar, say
from a1gm.cli.options import Options, UsageError, split_names
from a1gm.exceptions import UndeterminedError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from a1gm._base.types import Floats
    from a1gm._fit.fit import RankOneFit
    from a1gm._fit.many import ManyFits
    from a1gm._rows.files.table import TableFiles
    from a1gm._rows.files.whole import LongFile

MOST_CELLS = 50_000_000  # of a long table that is made dense for a page or a test


def open_table(file: str | Sequence[str], options: Options) -> TableFiles:
    """Open a table with the options of the command line."""
    from a1gm._rows.files.options import TableOptions
    from a1gm._rows.files.paths import find_files
    from a1gm._rows.files.table import TableFiles

    return TableFiles(find_files(file), TableOptions(**options.reading))


def fit_table(
    file: Sequence[str], options: Options, *, uncertainty: bool = False
) -> tuple[RankOneFit, TableFiles]:
    """Fit a table and describe it; ``uncertainty`` keeps what a saved model needs."""
    if options.long is not None:
        long = LongTable.read(file, options)
        return long.fit(), long.cells.files
    if options.by:
        raise UsageError("--by needs --long ROW,COLUMN,VALUE.")
    files = open_table(file, options)
    return fit_files_of(files, options, uncertainty=uncertainty), files


def fit_files_of(
    files: TableFiles, options: Options, *, uncertainty: bool = False
) -> RankOneFit:
    """Fit a wide table under a progress bar, and describe it."""
    from a1gm._api.fit import FitOptions
    from a1gm._api.fit_file import fit_files

    with progress_bar(f"Reading {files.name}", quiet=options.quiet) as progress:
        how = options.on_undetermined
        fitting = FitOptions(progress=progress, on_undetermined=how, **options.fitting)
        fit = fit_files(files, fitting, uncertainty=uncertainty)
    describe(files, options)
    return fit


def describe(files: TableFiles, options: Options) -> None:
    """Print which columns form the table and which do not."""
    if options.quiet:
        return
    size = counted(files.n_rows or 0, "row")
    columns = counted(files.n_cols, "numeric column")
    say(f"{files.name}: {size}, {columns} ({listed(files.names, 5)}).")
    if hidden := files.hidden:
        say(f"Hidden files left out: {listed(hidden, 5)}.")
    for use, names in uses_of(files).items():
        if names and use != "fitted":
            say(f"{use[0].upper()}{use[1:]}: {listed(names)}.")


def uses_of(files: TableFiles) -> dict[str, list[str]]:
    """The columns of each use."""
    from a1gm._rows.files.table import title_of

    return {
        "fitted": [title_of(name) for name in files.names],
        "row labels": [title_of(name) for name in files.id],
        "kept as they are": files.left_out,
    }


def cells_of(fit: RankOneFit) -> Floats:
    """The fitted table as one array."""
    import numpy as np

    n, m = fit.shape
    if n * m > MOST_CELLS:
        raise UsageError(
            f"This command needs the whole table in memory, and {n:,} x {m:,} cells "
            "are too many. Use fit, impute or inspect."
        )
    return np.concatenate([cells for _, cells in fit._table.source.blocks()])


# ----------------------------------------------------------------------------- long
@dataclass
class LongTable:
    """Files with one row per cell, read by the options of a command."""

    options: Options
    cells: LongFile
    by: list[str]
    keys: list[str]
    value: str

    @classmethod
    def read(cls, file: Sequence[str], options: Options) -> LongTable:
        """Read the files that ``--long`` describes."""
        from a1gm._rows.files.whole import read_long_file

        for name in ("columns", "exclude", "id"):
            if getattr(options, name):
                raise UsageError(
                    f"--long names the columns that are used; drop --{name}."
                )
        files = open_table(file, options)
        names, by = split_names([options.long or ""]), split_names(options.by)
        if len(names) != 3 or len({*names, *by}) < 3 + len(by):
            raise UsageError(
                "--long takes three different columns, row key, column key and value, "
                f"such as --long shop,month,sales; got {options.long!r}. The columns "
                f"are: {listed(files.first.names)}."
            )
        files.check_has([*names, *by])
        with progress_bar(f"Reading {files.name}", quiet=options.quiet) as progress:
            # Each group is checked by itself.
            negatives: Any = None if by else options.negatives
            needed = "--long names as the value"
            cells = read_long_file(
                files, by + names[:2], names[2], negatives, progress, needed
            )
        return cls(options, cells, by, names[:2], names[2])

    def fit(self) -> RankOneFit:
        """Fit the one table, and describe it."""
        from a1gm._api.fit_long import fit_long

        fit = fit_long(**self._given)
        n, m = fit.shape
        row, column = self.keys
        self._describe(f"{n:,} different {row} by {m:,} different {column}")
        return fit

    def fit_groups(self) -> ManyFits:
        """Fit every group, and print how many there are."""
        from a1gm._api.fit_groups import fit_groups

        by = self.by[0] if len(self.by) == 1 else self.by
        many = fit_groups(by=by, **self._given)
        for error in many.failed.values():
            if isinstance(error, UndeterminedError):
                raise error
        n = counted(len(many) + len(many.failed), "table")
        self._describe(f"{n} by {listed(self.by)}")
        return many

    @property
    def _given(self) -> dict[str, Any]:
        from a1gm._rows.long import PlacedFrame

        return {
            "frame": PlacedFrame(self.cells.frame, self.cells.files.place_of),
            "keys": self.keys,
            "value": self.value,
            "duplicates": self.options.duplicates,
            "on_undetermined": self.options.on_undetermined,
            **self.options.fitting,
        }

    def _describe(self, what: str) -> None:
        if not self.options.quiet:
            rows = counted(len(self.cells.numbers), "row")
            say(f"{self.cells.files.name}: {rows}, {what}.")
