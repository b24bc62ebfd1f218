"""The files that ``a1gm fit`` writes: factors with their errors, summary, model."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from a1gm._base.words import shown
from a1gm.cli.common import Common
from a1gm.cli.console import say, text_of_json
from a1gm.cli.quality import certificate_in_words
from a1gm.exceptions import DataError, ParameterError, TableTooLargeError

if TYPE_CHECKING:
    from a1gm._fit.fit import RankOneFit
    from a1gm._fit.sure.uncertainty import Uncertainty


def write_fit(
    out: str,
    names: list[str],
    fit: RankOneFit,
    lines: tuple[Iterable[Any], Iterable[Any]],
    about: dict[str, Any],
    common: Common,
) -> None:
    """Write both factors beside their ``lines``, the summary and the model."""
    from a1gm._base.atomic import atomic_write, output_folder
    from a1gm._write.factors import write_factor

    sure, errors = uncertainty_of(fit)
    summary = text_of_json(about | {"uncertainty": errors})
    with output_folder(out, overwrite=common.overwrite) as place:
        of_rows, of_columns = (None, None) if sure is None else sure.factor_errors()
        index = None if sure is None else sure.index(base=None)
        by_row = {"row_factor": fit.row_factor, "se": of_rows}
        by_column = {"col_factor": fit.col_factor, "se": of_columns} | {
            "index": None if index is None else index.value,
            "index_se": None if index is None else index.se,
        }
        for name, titles, values, block in (
            (names[0], lines[0], by_row, fit.row_block),
            (names[1], lines[1], by_column, fit.col_block),
        ):
            write_factor(place(name), titles, values, block, overwrite=common.overwrite)
        with atomic_write(place(names[2]), overwrite=common.overwrite) as file_:
            file_.write(summary.encode())
        fit.save(place(names[3]), overwrite=common.overwrite)
    if common.json:
        sys.stdout.write(summary)
    if not common.quiet:
        say(certificate_in_words(fit))
        say(f"Wrote {', '.join(names)} to {shown(out)}.")


def uncertainty_of(fit: RankOneFit) -> tuple[Uncertainty | None, dict[str, Any]]:
    """How sure the fit is, and that as JSON; or None, and why that is not known."""
    try:
        sure = fit.uncertainty()
        return sure, errors_of(sure)
    except (DataError, ParameterError, TableTooLargeError) as error:
        return None, {"why_not": error.render(with_advice=False)}


def errors_of(sure: Uncertainty) -> dict[str, Any]:
    """Dispersion, tests of the fit and totals, as JSON."""
    tests = ("pearson_chi2", "pearson_p", "deviance", "deviance_p")
    totals = {
        "missing": sure.totals("all", "missing"),
        "fitted": sure.totals("all", "fitted"),
        "missing_by_column": sure.totals("column", "missing"),
    }
    return {
        "dispersion": sure.dispersion,
        "dof": sure.dof,
        **{name: getattr(sure, name) for name in tests},
        "totals": {
            name: {
                key: values if "by" in name else values[0]
                for key, values in total.columns().items()
            }
            for name, total in totals.items()
        },
    }
