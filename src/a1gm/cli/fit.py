"""``a1gm fit``: both factors and the certificate."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from a1gm._base.words import shown
from a1gm.cli.app import command
from a1gm.cli.database import DatabaseTable, is_database
from a1gm.cli.options import (
    FolderOption,
    Options,
    TableArgument,
    command_style,
    one_of,
    progress_bar,
    split_names,
)
from a1gm.cli.tables import (
    check_outputs,
    fit_table,
    has_many_keys,
    n_margins,
    quality_of,
    write_results,
    write_summary,
)
from a1gm.exceptions import DataError, ParameterError, TableTooLargeError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from a1gm._base.types import Floats
    from a1gm._fit.certified import Certified
    from a1gm._fit.fit import RankOneFit
    from a1gm._fit.many import ManyFits
    from a1gm._fit.sure.labelled import Index
    from a1gm._fit.sure.uncertainty import Uncertainty
    from a1gm._rows.files.table import Progress, TableFiles
    from a1gm.tensor import TensorFit
    from a1gm.tensor.sure import TensorUncertainty

#: Multiplications of errors that nobody asked for: about a second of work.
_MOST_PRODUCTS = 2e9
_ROWS_AT_ONCE = 1 << 16
_TESTS = "dispersion", "dof", "pearson_chi2", "pearson_p", "deviance", "deviance_p"


@command()
def fit(
    file: TableArgument,
    out: FolderOption,
    format: Annotated[
        str, typer.Option(help="The format of the factors.", **one_of("csv", "parquet"))
    ] = "csv",
    errors: Annotated[
        bool | None,
        typer.Option(
            help="Standard errors, tests and totals. Default: where they take about a "
            "second at most, and with --by never."
        ),
    ] = None,
    *,
    options: Options,
) -> None:
    """Fit a table and write its factors.

    The folder gets row_factor and col_factor with the labels of the rows and columns
    and their standard errors, fit.json (divergence, certificate, cell_error, blocks;
    dispersion, tests and totals), and model.a1gm, with which a1gm impute --model fills
    other files. The column factors sum to 1, so a row factor is the estimated total of
    its row; if the table has several blocks, factors can be compared within a block
    only. With three keys or more there is a file per margin, factor_1 and so on, with
    its keys; the first carries the units, the others sum to 1; their model is for
    a1gm.load in Python, not for a1gm impute.

    Example:
      a1gm fit sales.csv --id shop -o results
      a1gm fit sales.parquet -o results --format parquet
      a1gm fit sales.csv --long shop,month,sales -o results
      a1gm fit duckdb:///shop.ddb::sales -o results
      a1gm fit n.csv --long site,year,month,n --interactions site:month -o results
    """
    names = [f"row_factor.{format}", f"col_factor.{format}", "fit.json", "model.a1gm"]
    if has_many_keys(options):
        names[:2] = [f"factor_{k + 1}.{format}" for k in range(n_margins(options))]
    if is_database(file):
        check_outputs(out, names, [], options)
        with DatabaseTable.open(file, options) as table:
            _write_fit(table.fit(options), table, out, names, options, errors)
        return
    check_outputs(out, names, [file], options)
    result: Any
    result, files = fit_table(file, options, uncertainty=errors is not False)
    if options.by:
        failed = {str(key): e.render(command_style) for key, e in result.failed.items()}
        summary = {"n_tables": len(result), "n_failed": len(failed), "failed": failed}
        frames = result.to_frames("pyarrow")
        if errors:
            frames, summary["uncertainty"] = _with_errors(result, frames)
        write_results(out, dict(zip(names, frames, strict=False)), summary, options)
    elif has_many_keys(options):
        _write_margins(result, out, names[:-2], options, errors)
    else:
        with progress_bar(f"Writing {shown(out)}", quiet=options.quiet) as progress:
            _write_fit(result, files, out, names, options, errors, progress)


def _write_fit(
    fit: RankOneFit,
    files: TableFiles | DatabaseTable,
    out: str,
    names: list[str],
    options: Options,
    errors: bool | None,
    progress: Progress | None = None,
) -> None:
    """Write both factors beside their labels, the summary and the model."""
    import pyarrow as pa

    from a1gm._base.atomic import output_folder
    from a1gm._observe.codec import labels_to_json
    from a1gm._write.fill import write_factor

    def labels(name: str, names: Any) -> Any:
        return pa.table({name: list(names)}).to_batches(_ROWS_AT_ONCE)

    (n, m), column = fit.shape, "column"
    summary: dict[str, Any] = {"n_rows": n, "n_cols": m}
    summary |= {"columns": labels_to_json(fit.col_labels), "col_block": fit.col_block}
    if options.long is not None:
        row, column, _ = split_names([options.long])
    summary |= {"n_missing": fit.pattern.n_missing, **quality_of(fit)}
    of_rows: Any = None
    by_column: dict[str, Any] = {"col_factor": fit.col_factor, "se": None}
    by_column |= {"index": None, "index_se": None}
    why_not = None if errors else _why_no_errors(fit, errors)
    try:
        if why_not is None:
            sure = fit.uncertainty()
            summary["uncertainty"] = _tests_and_totals(sure)
            of_rows, by_column["se"] = sure.factor_errors()
            index = sure.index(base=None)
            by_column |= {"index": index.value, "index_se": index.se}
    except (DataError, ParameterError, TableTooLargeError) as error:
        why_not = error.render(with_advice=False)
    if why_not is not None:
        summary["uncertainty"] = {"why_not": why_not}
    replaces: dict[str, Any] = {"overwrite": options.overwrite}
    with output_folder(out, **replaces) as place:
        if isinstance(files, DatabaseTable):
            files.write(place(names[0]), fit.transform(files.lazy), options)
        else:
            by_row = {"row_factor": fit.row_factor, "se": of_rows}
            row_names = files.id_batches()
            if options.long is not None:
                row_names = iter(labels(row, fit.row_labels))
            rows = row_names, by_row, fit.row_block, progress
            write_factor(place(names[0]), *rows, **options.writing)
        columns = labels(column, fit.col_labels), by_column, fit.col_block
        write_factor(place(names[1]), *columns, **options.writing)
        write_summary(place(names[2]), summary, options)
        fit.save(place(names[3]), **replaces)
    options.finish(
        summary,
        *_in_words(fit, why_not),
        f"Wrote {', '.join(names)} to {shown(out)}.",
    )


def _in_words(fit: Certified, why_not: str | None) -> Iterator[str]:
    """How a fit was solved, how well, and why it has no errors if it has none."""
    from a1gm._fit.messages import solver_in_words

    yield (
        f"Solved by {solver_in_words(fit.solver, fit.n_iter)}. Certificate "
        f"{fit.certificate:.1e}: the largest relative error of the fitted "
        f"{fit._sums_in_words}. Cell error {fit.cell_error:.1e}: a bound on the "
        "relative error of any finite fitted cell."
    )
    if why_not is not None:
        yield f"No standard errors: {why_not}"


def _write_margins(
    fit: TensorFit, out: str, names: list[str], options: Options, errors: bool | None
) -> None:
    """Write the factors of all margins beside their keys, the summary and the model."""
    summary: dict[str, Any] = {"shape": fit.shape, "modes": fit.modes}
    summary |= {"margins": fit.margins, "n_missing": fit.n_missing, **quality_of(fit)}
    tables = dict(zip(names, fit.to_frames("pyarrow").values(), strict=True))
    why_not = "--no-errors leaves them out." if errors is False else None
    try:
        if why_not is None:
            sure = fit.uncertainty()
            summary["uncertainty"] = _tests_and_totals(sure, fit.modes)
            for name, margin in zip(names, fit.margins, strict=True):
                if len(margin) == 1:
                    index, factor = sure.index(margin[0], None), fit.factors[margin[0]]
                    tables[name] = _with_index(tables[name], index, factor)
    except (DataError, ParameterError, TableTooLargeError) as error:
        why_not = error.render(with_advice=False)
    if why_not is not None:
        summary["uncertainty"] = {"why_not": why_not}
    lines = _in_words(fit, why_not)
    write_results(out, tables, summary, options, *lines, model=fit)


def _with_index(table: Any, index: Index, factor: Floats) -> Any:
    """Add an index and its errors to the factors of the levels that have cells."""
    import numpy as np
    import pyarrow as pa

    for name, column in (("index", index.value), ("index_se", index.se)):
        known = pa.array(column[~np.isnan(factor)], from_pandas=True)
        table = table.append_column(name, known)
    return table


def _with_errors(many: ManyFits, frames: Any) -> tuple[list[Any], dict[str, Any]]:
    """Add standard errors to the factors of many tables; tests and totals of each."""
    import numpy as np
    import pyarrow as pa

    sure = many.uncertainty()
    columns: tuple[list[Any], list[Any]] = [], []
    summary = {}
    for key, fit in many.items():
        found: Any = [np.full(n, np.nan) for n in fit.shape]
        if key in sure:
            found = sure[key].factor_errors()
            summary[str(key)] = _tests_and_totals(sure[key])
        else:
            why = sure.failed[key].render(with_advice=False)
            summary[str(key)] = {"why_not": why}
        for own, errors in zip(columns, found, strict=True):
            own.append(np.asarray(errors))
    added = [
        frame.append_column("se", pa.array(np.concatenate(own), from_pandas=True))
        for frame, own in zip(frames, columns, strict=True)
    ]
    return added, summary


def _why_no_errors(fit: RankOneFit, errors: bool | None) -> str | None:
    """Say why errors that nobody asked for are left out; None if they are cheap."""
    if errors is False:
        return "--no-errors leaves them out."
    n, m = fit._solved.statistics.n_patterns, fit.shape[1]
    if n * m * min(n, m) <= _MOST_PRODUCTS:
        return None
    return (
        f"those of {n:,} patterns of missing cells x {m:,} columns take a while. "
        "--errors computes them."
    )


def _tests_and_totals(
    sure: Uncertainty | TensorUncertainty, modes: Sequence[Any] = ("column",)
) -> dict[str, Any]:
    """Dispersion, tests of the fit and totals, for the summary."""
    from a1gm._observe.codec import labels_to_json

    found: Any = sure
    whole: Any = "all" if modes == ("column",) else ()
    totals = {
        name: {
            key: values[0]
            for key, values in found.totals(whole, name).columns().items()
        }
        for name in ("missing", "fitted")
    }
    for mode in modes:
        total = found.totals(mode)
        labels = labels_to_json(total.labels)
        totals[f"missing_by_{mode}"] = {"labels": labels, **total.columns()}
    return {**{name: getattr(sure, name) for name in _TESTS}, "totals": totals}
