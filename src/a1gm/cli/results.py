"""The files that commands write to a folder: factors, summaries, models."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from a1gm._base.words import counted, shown
from a1gm.cli.console import say, text_of_json
from a1gm.cli.options import Options, UsageError, usage_errors
from a1gm.exceptions import DataError, ParameterError, TableTooLargeError

if TYPE_CHECKING:
    from a1gm._fit.fit import RankOneFit
    from a1gm._fit.sure.uncertainty import Uncertainty
    from a1gm.nmmf import NMMFFit


def check_folder(out: str, names: Sequence[str], options: Options) -> None:
    """Raise if the folder cannot take the results, before the data are read."""
    from a1gm._base.atomic import check_target

    folder = Path(out)
    if folder.exists() and not folder.is_dir():
        raise UsageError(f"{shown(out)} is a file; name a folder for the results.")
    with usage_errors():
        for name in names if folder.exists() else ():
            check_target(folder / name, overwrite=options.overwrite)


def print_summary(summary: dict[str, Any], options: Options) -> None:
    """Print a summary for programs, if they asked for it."""
    if options.json:
        sys.stdout.write(text_of_json(summary))


def quality_of(fit: RankOneFit | NMMFFit) -> dict[str, Any]:
    """How good a fit is, for the summary of any command."""
    keys = ("divergence", "certificate", "cell_error", "converged", "solver", "n_iter")
    return {key: getattr(fit, key) for key in (*keys, "n_blocks")}


def write_fit(
    out: str,
    names: Sequence[str],
    fit: RankOneFit,
    labels: tuple[Iterable[Any], Iterable[Any]],
    about: dict[str, Any],
    options: Options,
) -> None:
    """Write both factors beside their ``labels``, the summary and the model."""
    from a1gm._base.atomic import atomic_write, output_folder
    from a1gm._write.writers import write_factor

    sure: Uncertainty | None = None
    try:
        sure = fit.uncertainty()
        errors = _errors_of(sure)
    except (DataError, ParameterError, TableTooLargeError) as error:
        errors = {"why_not": error.render(with_advice=False)}
    summary, replaces = (
        about | {"uncertainty": errors},
        {"overwrite": options.overwrite},
    )
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
        with atomic_write(place(names[2]), **replaces) as file:
            file.write(text_of_json(summary).encode())
        fit.save(place(names[3]), **replaces)
    print_summary(summary, options)
    if not options.quiet:
        say(_certificate_of(fit))
        say(f"Wrote {', '.join(names)} to {shown(out)}.")


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
