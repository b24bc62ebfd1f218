"""``--long`` and ``--by``: files with one row per cell, for every command."""

from __future__ import annotations

import csv
import sys
from typing import TYPE_CHECKING, Any, NamedTuple

from a1gm._base.words import shown
from a1gm.cli.common import Common, UsageError
from a1gm.cli.console import counted, listed, progress_bar, say, text_of_json
from a1gm.cli.style import command_style
from a1gm.exceptions import UndeterminedError

if TYPE_CHECKING:
    import pyarrow as pa

    from a1gm._base.types import Floats, Negatives
    from a1gm._fit.fit import RankOneFit
    from a1gm._fit.many import ManyFits
    from a1gm._fit.rounding import Rounding
    from a1gm._rows.files.table import TableFiles
    from a1gm._rows.files.whole import LongFile
    from a1gm._rows.long import PlacedFrame

MOST_CELLS = 50_000_000  # of a long table that is spread out for a page or a test


class LongInput:
    """A file with one row per cell, read and fitted by the options of a command."""

    def __init__(self, file: list[str], common: Common) -> None:
        from a1gm._rows.files.table import TableFiles
        from a1gm._rows.files.whole import read_long_file
        from a1gm.cli.files import reading_options

        for option in ("columns", "exclude", "id"):
            if getattr(common, option):
                raise UsageError(
                    f"--long names the columns that are used; drop --{option}."
                )
        self.common = common
        self.files: TableFiles = TableFiles.find(file, reading_options(common))
        self.row, self.column, self.value = _three(common.long or "", self.files)
        self.by = _names(common.by, self.files)
        keys = [*self.by, self.row, self.column]
        with progress_bar(f"Reading {self.files.name}", quiet=common.quiet) as told:
            # Each group is checked on its own.
            negatives = None if self.by else self.negatives
            args = self.files, keys, self.value, negatives, told
            whose = "--long names as the value"
            self.long: LongFile = read_long_file(*args, whose)

    @property
    def negatives(self) -> Negatives:
        """What to do with values below zero."""
        return "allow" if self.common.negatives == "allow" else "raise"

    @property
    def _options(self) -> dict[str, Any]:
        return {
            "negatives": self.negatives,
            "n_threads": self.common.threads,
            "duplicates": "sum" if self.common.duplicates == "sum" else "raise",
            "on_undetermined": "raise" if self.common.strict else "warn",
            **self.common.budget,
        }

    @property
    def _frame(self) -> PlacedFrame:
        from a1gm._rows.long import PlacedFrame

        return PlacedFrame(self.long.frame, self.long.files.place_of)

    def fit(self) -> RankOneFit:
        """Fit the one table, and say what it is."""
        from a1gm._api.fit_long import fit_long

        if self.by:
            raise UsageError(
                "--by is for fit and impute: this command takes one table."
            )
        keys = [self.row, self.column]
        fit = fit_long(self._frame, keys, self.value, **self._options)
        n, m = fit.shape
        self._say(f"{n:,} different {self.row} by {m:,} different {self.column}")
        return fit

    def fit_groups(self) -> ManyFits:
        """Fit every group, and say how many there are."""
        from a1gm._api.fit_groups import fit_groups

        by = self.by[0] if len(self.by) == 1 else self.by
        keys = [self.row, self.column]
        many = fit_groups(self._frame, by, keys, self.value, **self._options)
        for why in many.failed.values():
            if isinstance(why, UndeterminedError):
                raise why
        self._say(
            f"{counted(len(many) + len(many.failed), 'table')} by {listed(self.by)}"
        )
        return many

    def _say(self, what: str) -> None:
        if not self.common.quiet:
            rows = counted(len(self.long.numbers), "row")
            say(f"{self.files.name}: {rows}, {what}.")

    def spread_out(self, fit: RankOneFit) -> Floats:
        """The table as an array, for what needs it whole."""
        n, m = fit.shape
        if n * m > MOST_CELLS:
            raise UsageError(
                f"This command spreads the table out, and {n:,} x {m:,} cells are too "
                "many. Use fit, impute or inspect."
            )
        values: Floats = fit._table.source.rows(slice(0, n))
        return values


def _three(text: str, files: TableFiles) -> tuple[str, str, str]:
    from a1gm.cli.files import without_blanks

    # A name with a comma stands in quotes.
    names = without_blanks(next(csv.reader([text]), []), files.all_names)
    if len(names) != 3 or len(set(names)) < 3:
        raise UsageError(
            "--long takes three columns, row key, column key and value, such as "
            f"--long shop,month,sales; got {text!r}. The columns are: "
            f"{listed(files.all_names)}."
        )
    files.check_has(names)
    return names[0], names[1], names[2]


def _names(values: list[str] | None, files: TableFiles) -> list[str]:
    from a1gm.cli.files import split_names

    names = split_names(values, files.all_names)
    files.check_has(names)
    return names


# ------------------------------------------------------------------------ the commands
def fit_long_command(
    file: list[str], out: str, names: list[str], common: Common
) -> None:
    """Write the factors of a long table, or of every group, to files of these names."""
    import numpy as np

    from a1gm._write.factors import one_batch
    from a1gm.cli.quality import quality_of
    from a1gm.cli.results import write_fit

    given = LongInput(file, common)
    if given.by:
        _write_groups(given, out, names[:3])
        return
    fit = given.fit()
    n, m = fit.shape
    size = {"n_rows": n, "n_cols": m, "n_missing": fit.pattern.n_missing}
    rows, columns = (
        [one_batch(key, np.asarray(labels).tolist())]
        for key, labels in (
            (given.row, fit.row_labels),
            (given.column, fit.col_labels),
        )
    )
    write_fit(out, names, fit, (rows, columns), {**size, **quality_of(fit)}, common)


def _write_groups(given: LongInput, out: str, names: list[str]) -> None:
    """Write the factors of every group, and a summary."""
    from a1gm._base.atomic import atomic_write, output_folder
    from a1gm._write.factors import write_frame

    many, common = given.fit_groups(), given.common
    summary = {
        "n_tables": len(many),
        "n_failed": len(many.failed),
        "failed": {
            str(key): why.render(command_style) for key, why in many.failed.items()
        },
    }
    with output_folder(out, overwrite=common.overwrite) as place:
        for name, frame in zip(names, many.to_frames("pyarrow"), strict=False):
            write_frame(place(name), frame, overwrite=common.overwrite)
        with atomic_write(place(names[2]), overwrite=common.overwrite) as file:
            file.write(text_of_json(summary).encode())
    if common.json:
        sys.stdout.write(text_of_json(summary))
    if not common.quiet:
        say(f"Wrote {', '.join(names)} to {shown(out)}.")


class LongFill(NamedTuple):
    """How a long table is filled."""

    only_filled: bool = False
    mark: bool = False
    interval: float | None = None
    round: Rounding = None


def impute_long_command(
    file: list[str], out: str, common: Common, how: LongFill
) -> None:
    """Write every pair of a long table, the missing ones filled."""
    from a1gm._write.long import FillLong

    given = LongInput(file, common)
    if given.by and how.interval is not None:
        raise UsageError("--interval is for one table; drop it, or --by.")
    found: Any = given.fit_groups() if given.by else given.fit()
    filled = found.fill_long()
    if how.interval is not None:
        filled = _with_bounds(filled, given, found, how.interval)
    filled = _rounded(filled, given, how)
    done = FillLong(given.files, given.long, filled, how.only_filled, how.mark)
    done.write(out, overwrite=common.overwrite)
    if common.json:
        summary = {"out": out, "n_filled": done.n_filled, "n_left": done.n_left}
        sys.stdout.write(text_of_json(summary))
    if common.quiet:
        return
    where = "" if out == "-" else f"; wrote {shown(out)}"
    say(f"Filled {counted(done.n_filled, 'pair')}{where}.")
    if done.n_left:
        pairs = counted(done.n_left, "pair stays", "pairs stay")
        say(f"{pairs} missing: the data determine no value.")


def _rounded(filled: pa.Table, given: LongInput, how: LongFill) -> pa.Table:
    """Round the values of filled pairs, and their bounds, as asked for."""
    import numpy as np
    import pyarrow as pa

    from a1gm._fit.rounding import check_rounding, rounded
    from a1gm._write.fill import BOUNDS

    check_rounding(how.round)
    numbers = given.long.numbers
    is_whole = not (numbers != np.floor(numbers))[~np.isnan(numbers)].any()
    for name in (given.value + suffix for suffix in ("", *BOUNDS)):
        at = filled.schema.get_field_index(name)
        if at >= 0:
            values = rounded(filled[name].to_numpy(), is_whole, how.round)
            column = pa.array(values, from_pandas=True)
            filled = filled.set_column(at, name, column)
    return filled


def _with_bounds(
    filled: pa.Table, given: LongInput, fit: RankOneFit, level: float
) -> pa.Table:
    """Add the bounds of filled pairs, which come row by row."""
    import numpy as np
    import pyarrow as pa

    from a1gm._api.impute_file import bounds_of
    from a1gm._write.fill import BOUNDS

    X = given.spread_out(fit)
    for suffix, bound in zip(BOUNDS, bounds_of(fit, level)(X), strict=True):
        column = pa.array(bound[np.isnan(X)], from_pandas=True)
        filled = filled.append_column(given.value + suffix, column)
    return filled
