"""``a1gm nmmf``: tables that share their rows or columns, explained together."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Optional

import typer

from a1gm.cli.common import Common, UsageError, check_output, command, split_names
from a1gm.cli.console import counted, say, warn

if TYPE_CHECKING:
    from a1gm._sources import Source
    from a1gm._base.types import Floats, SmallInts
    from a1gm.nmmf import NMMFFit


@command
def nmmf_command(
    file: Annotated[str, typer.Argument(help="The table X; - for standard input.")],
    out: Annotated[
        str, typer.Option("--out", "-o", help="The folder the results go to.")
    ],
    y: Annotated[
        Optional[str],  # noqa: UP045 - typer reads it
        typer.Option("--y", help="A table with the columns of X."),
    ] = None,
    z: Annotated[
        Optional[str],  # noqa: UP045
        typer.Option("--z", help="A table with the rows of X."),
    ] = None,
    alpha: Annotated[float, typer.Option("--alpha", help="The weight of Y.")] = 1.0,
    beta: Annotated[float, typer.Option("--beta", help="The weight of Z.")] = 1.0,
    *,
    common: Common,
) -> None:
    r"""Fit up to three tables that share factors: X ≈ w⊗h, Y ≈ a⊗h, Z ≈ w⊗b.

    Columns of Y are matched with those of X by name, rows of Z by the column that --id
    names, or else by their order. The folder gets w, h, a and b as CSV with the names
    of rows and columns, and fit.json. All tables may have holes.

    \b
    Example:
      a1gm nmmf ratings.csv --z users.csv --id user -o results
      a1gm nmmf X.csv --y Y.csv --z Z.csv --alpha 0.5 --beta 2 -o results
    """
    from a1gm import fit_nmmf
    from a1gm._base.atomic import atomic_folder, atomic_write

    if y is None and z is None:
        raise UsageError("Name a second table by --y or --z; for one alone: a1gm fit.")
    if common.negatives == "allow":
        raise UsageError("a1gm nmmf takes no cells below zero; drop --negatives allow.")
    _check_files([file, y, z], out, common)
    x_table = _read(file, common, columns=common.columns)
    y_table = None if y is None else _read(y, common, columns=x_table.columns, of=file)
    z_table = None if z is None else _rows_as(_read(z, common, columns=None), x_table)
    fit = fit_nmmf(
        x_table.source(),
        None if y_table is None else y_table.source(),
        None if z_table is None else z_table.source(),
        alpha=alpha,
        beta=beta,
        n_threads=common.threads,
        on_undetermined="ignore",
    )
    summary = json.dumps(_summary(fit, alpha, beta), indent=2) + "\n"
    with atomic_folder(out, overwrite=common.overwrite) as place:
        _write(place("w.csv"), "row", x_table.rows, fit.w, fit.row_block, common)
        _write(place("h.csv"), "column", x_table.columns, fit.h, fit.col_block, common)
        if y_table is not None:
            _write(place("a.csv"), "row", y_table.rows, fit.a, fit.blocks["a"], common)
        if z_table is not None:
            columns = z_table.columns
            _write(place("b.csv"), "column", columns, fit.b, fit.blocks["b"], common)
        with atomic_write(place("fit.json"), overwrite=common.overwrite) as target:
            target.write(summary.encode())
    if common.json:
        sys.stdout.write(summary)
    if not common.quiet:
        if fit.n_undetermined:
            cells = counted(int(fit.n_undetermined), "missing cell")
            warn(f"{cells} cannot be known: the tables determine no value.")
        say(f"Certificate {fit.certificate:.1e}; wrote the factors to {out}.")


@dataclass(frozen=True)
class _Table:
    """A table in memory, with names."""

    name: str
    values: Floats
    rows: list[str]
    columns: tuple[str, ...]
    has_ids: bool
    places: list[str]

    def source(self) -> Source:
        """The table with the names that messages use."""
        from a1gm._sources import Source

        n_rows, n_cols = self.values.shape
        names = self.rows if self.has_ids else self.places
        parts: list[Any] = [(self.values, None, None, 0, 0)]
        return Source(parts, n_rows, n_cols, names, list(self.columns))


def _read(
    path: str, common: Common, *, columns: Sequence[str] | None, of: str | None = None
) -> _Table:
    """Read a table whole; ``of`` is the table that must have the same columns."""
    from a1gm.cli.names import FileNames
    from a1gm.cli.tables import open_file, read_whole, with_columns

    # --id and --exclude may name columns that only some of the tables have.
    ids, excluded = common.id, common.exclude
    if path != "-":
        bare = replace(common, columns=None, id=None, exclude=None)
        known = open_file(path, bare).source.schema.names
        ids = [name for name in split_names(ids, known) if name in known]
        excluded = [name for name in split_names(excluded, known) if name in known]
    own = replace(common, columns=None, id=ids, exclude=excluded)
    table = open_file(path, own)
    if columns:
        whose = f"{of} has" if of else "--columns asks for"
        table = with_columns(table, columns, whose)
    values, rows = read_whole(table, common)
    names = rows or [str(k) for k in range(len(values))]
    places = [] if rows else FileNames(table).all_rows()
    has_ids = rows is not None
    return _Table(table.name, values, names, table.names, has_ids, places)


def _rows_as(z: _Table, x: _Table) -> _Table:
    """Put the rows of Z in the order of X."""
    if not (z.has_ids and x.has_ids):
        if len(z.rows) != len(x.rows):
            raise UsageError(
                f"{z.name} has {counted(len(z.rows), 'row')} and {x.name} has "
                f"{len(x.rows):,}. "
                "Z has the rows of X: name the column that tells them apart by --id."
            )
        # Matched by their order: both go by the names of X.
        return replace(z, rows=x.rows, has_ids=x.has_ids, places=x.places)
    for table in (x, z):
        if len(set(table.rows)) < len(table.rows):
            raise UsageError(f"{table.name}: two rows have the same --id.")
    place = {name: k for k, name in enumerate(z.rows)}
    if set(place) != set(x.rows):
        strange = min(set(place) ^ set(x.rows))
        raise UsageError(f"Row {strange!r} is in only one of {x.name} and {z.name}.")
    order = [place[name] for name in x.rows]
    return replace(z, values=z.values[order], rows=list(x.rows))


def _write(
    path: Path,
    kind: str,
    names: Sequence[str],
    factor: Floats,
    block: SmallInts,
    common: Common,
) -> None:
    import pyarrow as pa

    from a1gm._write.writers import open_writer

    batch = pa.RecordBatch.from_arrays(
        [
            pa.array(list(names), pa.string()),
            pa.array(factor, pa.float64(), from_pandas=True),
            pa.array(block, pa.int64()),
        ],
        names=[kind, "factor", "block"],
    )
    with open_writer(path, batch.schema, overwrite=common.overwrite) as writer:
        writer.write(batch)


def _summary(fit: NMMFFit, alpha: float, beta: float) -> dict[str, object]:
    from a1gm.cli.fit import finite_or_none

    return {
        "alpha": alpha,
        "beta": beta,
        "divergence": finite_or_none(fit.divergence),
        "divergences": {
            str(name): finite_or_none(value) for name, value in fit.divergences.items()
        },
        "certificate": finite_or_none(fit.certificate),
        "converged": bool(fit.converged),
        "solver": fit.solver,
        "n_iter": int(fit.n_iter),
        "n_blocks": int(fit.n_blocks),
        "n_undetermined": int(fit.n_undetermined),
    }


def _check_files(files: list[str | None], out: str, common: Common) -> None:
    if files.count("-") > 1:
        raise UsageError("Only one table can come from standard input.")
    folder = Path(out)
    if folder.exists() and not folder.is_dir():
        raise UsageError(f"{out} is a file; name a folder for the results.")
    if folder.exists():
        for name in ("w.csv", "h.csv", "a.csv", "b.csv", "fit.json"):
            check_output(str(folder / name), common=common)


def register(app: typer.Typer) -> None:
    """Add the command to the application."""
    app.command("nmmf")(nmmf_command)
