"""``a1gm fit``: both factors and the certificate."""

from __future__ import annotations

import json
import math
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from a1gm.cli.common import Common, UsageError, check_output, command
from a1gm.cli.console import counted, say

if TYPE_CHECKING:
    from a1gm._base.types import Floats
    from a1gm.cli.tables import FittedTable
    from a1gm._result.fit import RankOneFit

_FORMATS = ("csv", "parquet")


@command
def fit_command(
    file: Annotated[str, typer.Argument(help="The table; - for standard input.")],
    out: Annotated[
        str, typer.Option("--out", "-o", help="The folder the results go to.")
    ],
    format: Annotated[
        str,
        typer.Option(
            "--format", help="The format of the factors.", metavar="csv|parquet"
        ),
    ] = "csv",
    *,
    common: Common,
) -> None:
    r"""Fit a table and write its factors.

    The folder gets row_factor and col_factor with the names of the rows and columns,
    fit.json (divergence, certificate, solver, blocks), and model.a1gm, with which a1gm
    impute --model fills other files. The column factors sum to 1, so a row factor is
    the estimated total of its row; when the table falls into several blocks, factors
    can be compared within a block only.

    \b
    Example:
      a1gm fit sales.csv --id shop -o results
      a1gm fit sales.parquet -o results --format parquet
    """
    from a1gm.cli.saved import save_model
    from a1gm.cli.tables import fit_table, open_file
    from a1gm._base.atomic import atomic_folder, atomic_write
    from a1gm._write.fill import HoleCount

    if format not in _FORMATS:
        raise UsageError(f"--format is csv or parquet, not {format!r}.")
    names = [f"row_factor.{format}", f"col_factor.{format}", "fit.json", "model.a1gm"]
    _check_folder(out, names, common)
    table = open_file(file, common)
    fitted = fit_table(table, common, watch=HoleCount.of_columns)
    with atomic_folder(out, overwrite=common.overwrite) as place:
        divergence = _write_row_factor(place(names[0]), fitted, common)
        summary = json.dumps(summary_of(fitted, divergence), indent=2) + "\n"
        _write_col_factor(place(names[1]), fitted, common)
        with atomic_write(place(names[2]), overwrite=common.overwrite) as file_:
            file_.write(summary.encode())
        save_model(place(names[3]), fitted, common)
    if common.json:
        sys.stdout.write(summary)
    if not common.quiet:
        say(certificate_in_words(fitted.fit))
        say(f"Wrote {', '.join(names)} to {out}.")


def summary_of(fitted: FittedTable[Any], divergence: float) -> dict[str, Any]:
    """Say how good the fit is, as JSON."""
    fit = fitted.fit
    return {
        "n_rows": fitted.n_rows,
        "n_cols": len(fitted.table.names),
        "columns": list(fitted.table.names),
        "n_missing": int(fitted.watched.missing.sum()),
        "divergence": finite_or_none(divergence),
        "certificate": finite_or_none(fit.certificate),
        "is_exact": bool(fit.is_exact),
        "solver": fit.solver,
        "n_iter": int(fit.n_iter),
        "n_blocks": int(fit.n_blocks),
        "col_block": [int(block) for block in fit.col_block],
    }


def certificate_in_words(fit: RankOneFit) -> str:
    """Explain the certificate in a sentence."""
    how = (
        "in closed form"
        if fit.solver == "closed form"
        else f"by {fit.solver} in {counted(int(fit.n_iter), 'step')}"
    )
    return (
        f"Solved {how}; certificate {fit.certificate:.1e}: the row and column sums of "
        "the fit differ from those of the data by at most this share."
    )


def finite_or_none(number: float) -> float | None:
    """Give a number as JSON knows it, which has no NaN."""
    return float(number) if math.isfinite(number) else None


def _check_folder(out: str, names: list[str], common: Common) -> None:
    folder = Path(out)
    if folder.exists() and not folder.is_dir():
        raise UsageError(f"{out} is a file; name a folder for the results.")
    for name in names:
        if folder.exists():
            check_output(str(folder / name), common=common)


def _write_row_factor(path: Path, fitted: FittedTable[Any], common: Common) -> float:
    """Write the factor of every row beside its id; return the divergence."""
    import pyarrow as pa

    from a1gm._write.writers import open_writer

    table, fit = fitted.table, fitted.fit
    ids = [table.source.schema.field(name) for name in table.options.id]
    schema = pa.schema(
        [
            *(ids or [pa.field("row", pa.int64())]),
            pa.field("row_factor", pa.float64()),
            pa.field("block", pa.int64()),
        ]
    )
    divergence = 0.0
    with open_writer(path, schema, overwrite=common.overwrite) as writer:
        for block in table.blocks():
            rows = slice(block.first_row, block.first_row + block.batch.num_rows)
            names = [
                block.batch.column(block.batch.schema.get_field_index(field.name))
                for field in ids
            ] or [pa.array(range(rows.start, rows.stop), pa.int64())]
            factor = pa.array(fit.row_factor[rows], pa.float64(), from_pandas=True)
            blocks = pa.array(fit.row_block[rows], pa.int64())
            writer.write(
                pa.RecordBatch.from_arrays([*names, factor, blocks], schema=schema)
            )
            divergence += _divergence(block.values, fit, rows)
    return divergence if common.negatives == "raise" else math.nan


def _divergence(values: Floats, fit: RankOneFit, rows: slice) -> float:
    """Share of some rows in the divergence."""
    import numpy as np
    from scipy.special import kl_div

    shares = kl_div(values, fit.row_factor[rows][:, None] * fit.col_factor)
    if fit.n_blocks > 1 or not fit.attained:
        # Observed cells between blocks are zeros, fitted by zeros.
        shares[fit.row_block[rows, None] != fit.col_block] = 0.0
    return float(np.nansum(shares))


def _write_col_factor(path: Path, fitted: FittedTable[Any], common: Common) -> None:
    import pyarrow as pa

    from a1gm._write.writers import open_writer

    fit = fitted.fit
    batch = pa.RecordBatch.from_arrays(
        [
            pa.array(fitted.table.names, pa.string()),
            pa.array(fit.col_factor, pa.float64(), from_pandas=True),
            pa.array(fit.col_block, pa.int64()),
        ],
        names=["column", "col_factor", "block"],
    )
    with open_writer(path, batch.schema, overwrite=common.overwrite) as writer:
        writer.write(batch)


def register(app: typer.Typer) -> None:
    """Add the command to the application."""
    app.command("fit")(fit_command)
