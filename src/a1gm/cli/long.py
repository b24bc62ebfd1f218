"""``--long`` and ``--by``: files with one row per cell, for every command."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from a1gm._base.words import shown
from a1gm.cli.common import Common, UsageError
from a1gm.cli.console import counted, listed, progress_bar, say, text_of_json, warn

if TYPE_CHECKING:
    from a1gm._base.types import Floats, Negatives
    from a1gm._result.fit import RankOneFit
    from a1gm._result.many import ManyFits
    from a1gm._sources.files import TableFiles
    from a1gm._sources.files.long_file import LongFile

MOST_CELLS = 50_000_000  # of a long table that is spread out for a page or a test


class LongInput:
    """A file with one row per cell, read and fitted by the options of a command."""

    def __init__(self, file: list[str], common: Common) -> None:
        from a1gm._sources.files import TableFiles
        from a1gm._sources.files.long_file import read_long_file
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
            args = self.files, keys, self.value
            self.long: LongFile = read_long_file(*args, self.negatives, told)

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
            **self.common.budget,
        }

    def fit(self) -> RankOneFit:
        """Fit the one table, and say what it is."""
        from a1gm._api.fit_long import fit_long

        if self.by:
            raise UsageError(
                "--by is for fit and impute: this command takes one table."
            )
        keys = [self.row, self.column]
        fit = fit_long(self.long.frame, keys, self.value, **self._options)
        n, m = fit.shape
        self._say(f"{n:,} different {self.row} by {m:,} different {self.column}")
        return fit

    def fit_groups(self) -> ManyFits:
        """Fit every group, and say how many there are."""
        from a1gm._api.fit_groups import fit_groups

        by = self.by[0] if len(self.by) == 1 else self.by
        keys = [self.row, self.column]
        many = fit_groups(self.long.frame, by, keys, self.value, **self._options)
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
        from a1gm._result.fit import source_of

        n, m = fit.shape
        if n * m > MOST_CELLS:
            raise UsageError(
                f"This command spreads the table out, and {n:,} x {m:,} cells are too "
                "many. Use fit, impute or inspect."
            )
        values: Floats = source_of(fit).rows(slice(0, n))
        return values


def _three(text: str, files: TableFiles) -> tuple[str, str, str]:
    names = text.split(",")
    if len(names) != 3 or len(set(names)) < 3:
        raise UsageError(
            "--long takes three columns, row key, column key and value, such as "
            f"--long shop,month,sales; got {text!r}. The columns are: "
            f"{listed(files.all_names)}."
        )
    return names[0], names[1], names[2]


def _names(values: list[str] | None, files: TableFiles) -> list[str]:
    from a1gm.cli.files import split_names

    return split_names(values, files.all_names)


# ------------------------------------------------------------------------ the commands
def fit_long_command(file: list[str], out: str, format: str, common: Common) -> None:
    """Write the factors of a long table, or of every group."""
    from a1gm._base.atomic import atomic_folder, atomic_write

    given = LongInput(file, common)
    write = _write_groups if given.by else _write_one
    names = [f"row_factor.{format}", f"col_factor.{format}", "fit.json"]
    with atomic_folder(out, overwrite=common.overwrite) as place:
        summary, more = write(given, place, names)
        with atomic_write(place(names[2]), overwrite=common.overwrite) as file_:
            file_.write(text_of_json(summary).encode())
    if common.json:
        sys.stdout.write(text_of_json(summary))
    if not common.quiet:
        say(f"Wrote {', '.join([*names, *more])} to {shown(out)}.")


def _write_one(
    given: LongInput, place: Callable[[str], Any], names: list[str]
) -> tuple[dict[str, Any], list[str]]:
    """Write the factors and the model of a table; give its summary."""
    import numpy as np

    from a1gm._write.factors import one_batch, write_factor
    from a1gm.cli.quality import certificate_in_words, quality_of

    fit, replace = given.fit(), given.common.overwrite
    sides = (
        (names[0], given.row, fit.row_labels, "row"),
        (names[1], given.column, fit.col_labels, "col"),
    )
    for name, key, labels, side in sides:
        lines = [one_batch(key, np.asarray(labels).tolist())]
        factor, block = (getattr(fit, f"{side}_{x}") for x in ("factor", "block"))
        columns = {f"{side}_factor": factor}
        write_factor(place(name), lines, columns, block, overwrite=replace)
    fit.save(place("model.a1gm"), overwrite=replace)
    if not given.common.quiet:
        say(certificate_in_words(fit))
    n, m = fit.shape
    size = {"n_rows": n, "n_cols": m, "n_missing": fit.pattern.n_missing}
    return {**size, **quality_of(fit)}, ["model.a1gm"]


def _write_groups(
    given: LongInput, place: Callable[[str], Any], names: list[str]
) -> tuple[dict[str, Any], list[str]]:
    """Write the factors of every group; give their summary."""
    from a1gm._write.factors import write_frame

    many = given.fit_groups()
    for name, frame in zip(names, many.to_frames("pyarrow"), strict=False):
        write_frame(place(name), frame, overwrite=given.common.overwrite)
    summary = {
        "n_tables": len(many),
        "n_failed": len(many.failed),
        "failed": {str(key): str(why) for key, why in many.failed.items()},
    }
    return summary, []


def impute_long_command(
    file: list[str], out: str, common: Common, *, only_filled: bool
) -> None:
    """Write every pair of a long table, the missing ones filled."""
    from a1gm._write.long import FillLong

    given = LongInput(file, common)
    found: Any = given.fit_groups() if given.by else given.fit()
    done = FillLong(given.files, given.long, found.fill_long(), only_filled)
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
        warn(f"{pairs} missing: the data determine no value.")
