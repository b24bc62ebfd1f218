"""``a1gm nmmf``: tables that share their rows or columns, explained together."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Annotated, Optional

import typer

from a1gm._base.words import shown
from a1gm.cli.common import Common, UsageError, check_folder, command
from a1gm.cli.console import counted, say, text_of_json, warn
from a1gm.cli.quality import quality_of

if TYPE_CHECKING:
    from a1gm._rows.files.whole import WholeTable
    from a1gm.nmmf import NMMFFit


@partial(command, hidden=("long", "by", "duplicates", "skip_bad"))
def nmmf_command(
    file: Annotated[
        str,
        typer.Argument(
            metavar="FILE",
            help="The table X: one file, a folder or a quoted glob; - for standard "
            "input. So are --y and --z.",
        ),
    ],
    out: Annotated[
        str,
        typer.Option(
            "--out", "-o", metavar="PATH", help="The folder the results go to."
        ),
    ],
    y: Annotated[
        Optional[str],  # noqa: UP045 - typer reads it
        typer.Option("--y", metavar="FILE", help="A table with the columns of X."),
    ] = None,
    z: Annotated[
        Optional[str],  # noqa: UP045
        typer.Option("--z", metavar="FILE", help="A table with the rows of X."),
    ] = None,
    alpha: Annotated[
        float, typer.Option("--alpha", metavar="NUMBER", help="The weight of Y.")
    ] = 1.0,
    beta: Annotated[
        float, typer.Option("--beta", metavar="NUMBER", help="The weight of Z.")
    ] = 1.0,
    *,
    common: Common,
) -> None:
    r"""Fit up to three tables that share rows or columns.

    X ≈ w⊗h, Y ≈ a⊗h and Z ≈ w⊗b have factors in common. Columns of Y are matched with
    those of X by name, rows of Z by the column that --id names or that both tables
    begin with, or else by their order. The folder gets w, h, a and b as CSV with the
    names of rows and columns, and fit.json. All tables may have holes.

    \b
    Example:
      a1gm nmmf ratings.csv --z users.csv --id user -o results
      a1gm nmmf X.csv --y Y.csv --z Z.csv --alpha 0.5 --beta 2 -o results
    """
    from a1gm import fit_nmmf

    if common.long is not None or common.by:
        raise UsageError("--long and --by are not for nmmf: its tables are wide.")
    if y is None and z is None:
        raise UsageError("Name a second table by --y or --z; for one alone: a1gm fit.")
    if common.negatives == "allow":
        raise UsageError("a1gm nmmf takes no cells below zero; drop --negatives allow.")
    if [file, y, z].count("-") > 1:
        raise UsageError("Only one table can come from standard input.")
    check_folder(out, ["w.csv", "h.csv", "a.csv", "b.csv", "fit.json"], common)
    x_table = _read(file, common, columns=common.columns)
    y_table = (
        None if y is None else _read(y, common, columns=x_table.columns, of=x_table)
    )
    z_table = None if z is None else _rows_as(_read(z, common, columns=None), x_table)
    fit = fit_nmmf(
        *(t if t is None else t.source for t in (x_table, y_table, z_table)),
        alpha=alpha,
        beta=beta,
        n_threads=common.threads,
        on_undetermined="ignore",
        **common.budget,
    )
    known = {"divergences": fit.divergences, "n_undetermined": fit.n_undetermined}
    about = {"alpha": alpha, "beta": beta, **quality_of(fit), **known}
    summary = text_of_json(about)
    names = {"w": ("row", _row_names(x_table)), "h": ("column", x_table.columns)}
    if y_table is not None:
        names["a"] = "row", _row_names(y_table)
    if z_table is not None:
        names["b"] = "column", z_table.columns
    _write(out, fit, names, summary, common)
    if common.json:
        sys.stdout.write(summary)
    if not common.quiet:
        if fit.n_undetermined:
            cells = counted(int(fit.n_undetermined), "missing cell")
            warn(f"{cells} cannot be known: the tables determine no value.")
        say(f"Certificate {fit.certificate:.1e}; wrote the factors to {shown(out)}.")


def _write(
    out: str,
    fit: NMMFFit,
    names: dict[str, tuple[str, Sequence[str]]],
    summary: str,
    common: Common,
) -> None:
    """Write the factors, by their letters, and the summary."""
    from a1gm._base.atomic import atomic_write, output_folder
    from a1gm._write.factors import one_batch, write_factor

    replaces = common.overwrite
    with output_folder(out, overwrite=replaces) as place:
        for letter, (title, lines) in names.items():
            factor, block = getattr(fit, letter), fit.blocks[letter]
            path, batches = place(f"{letter}.csv"), [one_batch(title, lines)]
            columns = {"factor": factor}
            write_factor(path, batches, columns, block, overwrite=replaces)
        with atomic_write(place("fit.json"), overwrite=replaces) as target:
            target.write(summary.encode())


def _row_names(table: WholeTable) -> list[str]:
    return table.ids or [str(k) for k in range(len(table.values))]


def _read(
    path: str,
    common: Common,
    *,
    columns: Sequence[str] | None,
    of: WholeTable | None = None,
) -> WholeTable:
    """Read a table whole; ``of`` is the table that must have the same columns.

    If that one has names of rows, a first column that it does not have names the rows
    here.
    """
    from a1gm._rows.files.table import TableFiles
    from a1gm.cli.files import read_with_words, reading_options, split_names

    files = TableFiles.find(path, reading_options(common))
    known = files.all_names
    # --id and --exclude may name columns that only some of the tables have.
    ids, exclude = (
        [name for name in split_names(names, known) if name in known]
        for names in (common.id, common.exclude)
    )
    if of is not None and of.id and not ids:
        ids = [name for name in known[:1] if name not in (*of.columns, *exclude)]
    files = files.choosing(
        whose=None if of is None else f"{of.name} has",
        columns=split_names(columns, known) or None,
        id=ids or None,
        exclude=exclude,
    )
    return read_with_words(files, common)


def _rows_as(z: WholeTable, x: WholeTable) -> WholeTable:
    """Put the rows of Z in the order of X."""
    if z.ids is None or x.ids is None or z.id != x.id:
        if len(z.values) != len(x.values):
            raise UsageError(
                f"{z.name} has {counted(len(z.values), 'row')} and {x.name} has "
                f"{len(x.values):,}. "
                "Z has the rows of X: name the column that tells them apart by --id."
            )
        # Matched by their order: both go by the names of X.
        return replace(z, ids=x.ids, places=x.places)
    for table in (x, z):
        if len(set(table.ids or ())) < len(table.values):
            raise UsageError(f"{table.name}: two rows have the same --id.")
    place = {name: k for k, name in enumerate(z.ids)}
    if set(place) != set(x.ids):
        strange = min(set(place) ^ set(x.ids))
        raise UsageError(
            f"Row {strange!r} is in only one of {x.name} and {z.name}, whose rows are "
            f"matched by {' and '.join(map(repr, x.id))}. To match them by their "
            "order, leave that out by --exclude."
        )
    return replace(z, values=z.values[[place[name] for name in x.ids]], ids=x.ids)
