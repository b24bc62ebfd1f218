"""``a1gm fit``: both factors and the certificate."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from a1gm._base.words import counted, shown
from a1gm.cli.options import (
    FolderOption,
    Options,
    TableArgument,
    command,
    one_of,
    split_names,
)
from a1gm.cli.results import check_folder, finish, quality_of, write_summary
from a1gm.exceptions import DataError, ParameterError, TableTooLargeError

if TYPE_CHECKING:
    from a1gm._fit.fit import RankOneFit
    from a1gm._fit.sure.uncertainty import Uncertainty
    from a1gm.cli.tables import LongTable


@command
def fit_command(
    file: TableArgument,
    out: FolderOption,
    format: Annotated[
        str,
        typer.Option(help="The format of the factors.", **one_of("csv", "parquet")),
    ] = "csv",
    *,
    options: Options,
) -> None:
    r"""Fit a table and write its factors.

    The folder gets row_factor and col_factor with the labels of the rows and columns
    and their standard errors, fit.json (divergence, certificate, cell_error, blocks;
    dispersion, tests and totals), and model.a1gm, with which a1gm impute --model fills
    other files. The column factors sum to 1, so a row factor is the estimated total of
    its row; if the table has several blocks, factors can be compared within a block
    only.

    \b
    Example:
      a1gm fit sales.csv --id shop -o results
      a1gm fit sales.parquet -o results --format parquet
      a1gm fit sales.csv --long shop,month,sales -o results
    """
    from a1gm._api.fit_file import files_of
    from a1gm._write.writers import names_of_rows, one_batch
    from a1gm.cli.tables import LongTable, fit_table

    names = [f"row_factor.{format}", f"col_factor.{format}", "fit.json", "model.a1gm"]
    check_folder(out, names, options)
    if options.long is not None and options.by:
        _write_groups(LongTable.read(file, options), out, names[:3])
        return
    fit, _ = fit_table(file, options, uncertainty=True)
    (n, m), files = fit.shape, files_of(fit)
    about: dict[str, Any] = {"n_rows": n, "n_cols": m}
    if files is not None:
        about |= {"columns": files.col_labels, "col_block": fit.col_block}
        labels: Any = names_of_rows(files), [one_batch("column", files.names)]
    else:
        keys = split_names([options.long or ""])[:2]
        sides = zip(keys, (fit.row_labels, fit.col_labels), strict=True)
        labels = tuple([one_batch(key, list(side))] for key, side in sides)
    about |= {"n_missing": fit.pattern.n_missing, **quality_of(fit)}
    _write_fit(out, names, fit, labels, about, options)


def _write_groups(long: LongTable, out: str, names: list[str]) -> None:
    """Write the factors of every group, and a summary."""
    from a1gm._base.atomic import output_folder
    from a1gm._write.writers import open_writer
    from a1gm.cli.style import command_style

    many, options = long.fit_groups(), long.options
    failed = {str(key): e.render(command_style) for key, e in many.failed.items()}
    summary = {"n_tables": len(many), "n_failed": len(failed), "failed": failed}
    replaces: Any = {"overwrite": options.overwrite}
    with output_folder(out, **replaces) as place:
        for name, frame in zip(names, many.to_frames("pyarrow"), strict=False):
            with open_writer(place(name), frame.schema, **replaces) as writer:
                for batch in frame.to_batches():
                    writer.write(batch)
        write_summary(place, summary, options)
    finish(summary, options, f"Wrote {', '.join(names)} to {shown(out)}.")


def _write_fit(
    out: str,
    names: Sequence[str],
    fit: RankOneFit,
    labels: tuple[Iterable[Any], Iterable[Any]],
    about: dict[str, Any],
    options: Options,
) -> None:
    """Write both factors beside their ``labels``, the summary and the model."""
    from a1gm._base.atomic import output_folder
    from a1gm._write.writers import write_factor

    sure: Uncertainty | None = None
    try:
        sure = fit.uncertainty()
        errors = _errors_of(sure)
    except (DataError, ParameterError, TableTooLargeError) as error:
        errors = {"why_not": error.render(with_advice=False)}
    summary = about | {"uncertainty": errors}
    replaces = {"overwrite": options.overwrite}
    of_rows, of_columns = (None, None) if sure is None else sure.factor_errors()
    index = None if sure is None else sure.index(base=None)
    by_row = {"row_factor": fit.row_factor, "se": of_rows}
    by_column = {
        "col_factor": fit.col_factor,
        "se": of_columns,
        "index": None if index is None else index.value,
        "index_se": None if index is None else index.se,
    }
    with output_folder(out, **replaces) as place:
        write_factor(place(names[0]), labels[0], by_row, fit.row_block, **replaces)
        write_factor(place(names[1]), labels[1], by_column, fit.col_block, **replaces)
        write_summary(place, summary, options)
        fit.save(place(names[3]), **replaces)
    wrote = f"Wrote {', '.join(names)} to {shown(out)}."
    finish(summary, options, _certificate_of(fit), wrote)


def _certificate_of(fit: RankOneFit) -> str:
    how = "in closed form"
    if fit.solver != "closed form":
        how = f"by {fit.solver} in {counted(int(fit.n_iter), 'step')}"
    return (
        f"Solved {how}. Certificate {fit.certificate:.1e}: the largest relative error "
        f"of the fitted row and column sums. Cell error {fit.cell_error:.1e}: a bound "
        "on the relative error of any finite fitted cell."
    )


def _errors_of(sure: Uncertainty) -> dict[str, Any]:
    """Dispersion, tests of the fit and totals, for the summary."""
    tests = ("dispersion", "dof", "pearson_chi2", "pearson_p", "deviance", "deviance_p")
    totals = {
        name: {
            key: values[0] for key, values in sure.totals("all", name).columns().items()
        }
        for name in ("missing", "fitted")
    }
    by_column = sure.totals("column", "missing").columns()
    return {
        **{name: getattr(sure, name) for name in tests},
        "totals": {**totals, "missing_by_column": by_column},
    }
