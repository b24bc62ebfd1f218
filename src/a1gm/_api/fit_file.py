"""``a1gm.fit_file`` and ``a1gm.impute_file``: tables in files, in bounded memory."""

from __future__ import annotations

import os
import warnings
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from a1gm._api.fit import (
    DEFAULT_MAX_ITER,
    FitOptions,
    fit_patterns,
    fit_rows,
    refuse_negatives_with,
)
from a1gm._base.atomic import check_target
from a1gm._base.checks import check_keywords
from a1gm._base.types import Negatives, OnUndetermined
from a1gm._base.words import MOST_NAMED, named, shown
from a1gm._fit.fill import Rounding, check_rounding
from a1gm._fit.fit import RankOneFit
from a1gm._fit.kept import Kept
from a1gm._fit.messages import WarningPolicy
from a1gm._fit.sure.arguments import check_level
from a1gm._fit.totals import check_plain_fills, fills_to_totals
from a1gm._observe.accumulate import Accumulator
from a1gm._observe.observe import observe
from a1gm._rows.files.source import (
    FORMATS,
    FoundFiles,
    PathOrPaths,
    TableOptions,
    find_files,
    missing_file,
    paths_in,
    suffix_of,
)
from a1gm._rows.files.table import (
    Progress,
    TableFiles,
    read_beside,
    totals_beside,
)
from a1gm._rows.labels import Names
from a1gm._rows.rows import Rows, table_of
from a1gm._rows.weights import Name, Weighting, weights_or_exposure, with_weights
from a1gm._write.fill import FillFiles, format_of, is_stream
from a1gm.exceptions import (
    DataError,
    EmptyLineWarning,
    LabelError,
    Option,
    ParameterError,
    TableTooLargeError,
    UndeterminedWarning,
)

PREDICT = "In Python, a1gm.load(model).predict(frame) gives the values of cells."


def fit_file(
    path_or_paths: PathOrPaths,
    *,
    weights: Any = None,
    exposure: Any = None,
    on_undetermined: OnUndetermined = "warn",
    uncertainty: bool = False,
    columns: str | Sequence[str] | None = None,
    exclude: str | Sequence[str] = (),
    id: str | Sequence[str] | None = None,
    missing: str | Sequence[str] = (),
    delimiter: str | None = None,
    decimal: str | None = None,
    thousands: str | None = None,
    encoding: str = "utf-8",
    sheet: str | None = None,
    header: bool = True,
    batch_rows: int | None = None,
    negatives: Negatives = "raise",
    tol: float | None = None,
    max_iter: int = DEFAULT_MAX_ITER,
    n_threads: int | None = None,
    progress: Progress | None = None,
) -> RankOneFit:
    r"""Fit a table that lies in one file or several, larger than memory or not.

    The files are read once, in pieces; memory is bounded by the size of a piece and
    not by the number of rows. Rows are remembered in a nameless temporary file (12
    bytes each; where nearly every row has its own pattern of holes, a bit per cell).

    Parameters
    ----------
    path_or_paths : path, folder, glob, or sequence of paths
        CSV, TSV (also gzipped), Parquet, Feather or Arrow files, and spreadsheets;
        ``"-"`` is standard input. Several files are one table, row after row in sorted
        order; columns are matched by name. A stream or a pipe is copied to a temporary
        file.
    weights, exposure : path or paths, table, or one number per row or column, optional
        As in ``a1gm.fit``; or files that are read as the table is: its columns by name,
        its rows in their order; one row for a number per column, one other column for a
        number per row. The table and its weights are then held in memory.
    on_undetermined : {"warn", "raise", "ignore"}, default="warn"
        What to do when some missing cells have no value that the data determine.
    uncertainty : bool, default=False
        Keep what ``fit.uncertainty()`` and ``fit.divergence`` need of the scatter of
        the cells. Without it they read the files again, and a fit that was saved has
        neither. Not kept where nearly every row has its own pattern of holes.
    columns : str or sequence of str, optional
        Columns of the table. Default: every number column that is not a label.
    exclude : str or sequence of str, optional
        Columns to leave out of the table; they are passed through.
    id : str or sequence of str, optional
        Columns that label the rows, also in messages; they are passed through. Default:
        the index that pandas wrote, or the columns before the first one that is data.
        Text, dates and number columns whose name is a label (``id``, ``year``,
        ``store_nbr``, ...) are not data; a ``DataHintWarning`` names what was inferred.
    missing : str or sequence of str, optional
        Further tokens that mark a missing cell, beside an empty cell, ``NA`` and
        ``NaN``. A token that is a number also matches equal numbers (``"-999"`` marks
        ``-999.0``).
    delimiter : str, optional
        The character between the cells of text. Default: a tab for ``.tsv``, else a
        comma.
    decimal : str, optional
        The decimal mark of text, ``"."`` or ``","``. Default: a point.
    thousands : str, optional
        The character between groups of three digits in text. Default: none.
    encoding : str, default="utf-8"
        The encoding of text.
    sheet : str, optional
        The sheet of a spreadsheet. Default: the only one with cells in it.
    header : bool, default=True
        Whether the first line of text or of a sheet has the names of the columns.
        Without it they are called ``column_1``, ``column_2``, ...
    batch_rows : int, optional
        The most rows read at once. Default: pieces of a few megabytes.
    negatives : {"raise", "allow"}, default="raise"
        What to do with cells below zero: refuse them, or fit the margins only.
    tol, max_iter, n_threads
        As in ``a1gm.fit``.
    progress : callable, optional
        Called with the rows done so far and the fraction of the files read.

    Returns
    -------
    RankOneFit
        The same factors as ``a1gm.fit`` of the whole table. ``row_factor`` is computed
        where it is looked at: ``fit.row_factor[:1000]`` is an array.

    Raises
    ------
    FileFormatError
        A file cannot be read as a table, or changes while it is read.
    MissingFileError
        There is no such file; it is a ``FileNotFoundError`` as well.
    LabelError
        A file lacks a column that the first one has, or no column is left to fit.
    NegativeValuesError, InfiniteValuesError
        With the file, the line or row, and the column.

    Warns
    -----
    DataHintWarning
        Columns were taken for labels by their names and types, or the table may not be
        meant so: one row per cell, totals, a header made of numbers.
    SkippedWarning
        Files of a folder were left out.

    Examples
    --------
    >>> import pathlib, tempfile, a1gm
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "table.csv"
    >>> _ = path.write_text("x,y,z\n1,2,3\n2,,6\n")
    >>> fit = a1gm.fit_file(path)
    >>> fit.row_factor[:]
    array([ 6., 12.])
    """
    text = delimiter, decimal, thousands, encoding, sheet, header
    reading = TableOptions(columns, exclude, id, missing, *text, batch_rows)
    how = tol, max_iter, n_threads, progress
    fitting = FitOptions(negatives, on_undetermined, *how)
    weighting = weights_or_exposure(weights, exposure)
    files = TableFiles(find_files(path_or_paths), reading)
    return fit_files(files, fitting, weighting, uncertainty=uncertainty)


def fit_files(
    files: TableFiles,
    options: FitOptions,
    weighting: Weighting = ("weights", None),
    *,
    uncertainty: bool = False,
) -> RankOneFit:
    """Fit the table of some files, in one pass over them."""
    kind, given = weighting
    if given is not None:  # both are held in memory
        refuse_negatives_with(kind, options.negatives)
        rows, _ = files.in_memory(progress=options.progress)
        given = read_beside(given, files)
        rows = with_weights(rows, kind, given, is_observed=True)
        return fit_rows(rows, options, policy=_policy(files))
    with closing(files.pieces(progress=options.progress)) as pieces:
        for first_row, piece in pieces:
            if first_row == 0:
                gathered = Accumulator(
                    len(piece.names),
                    scatter=uncertainty,
                    rows="file",
                    beyond="raise" if options.negatives == "allow" else "bits",
                )
            try:
                seen = observe(
                    table_of(piece.values),
                    n_threads=options.n_threads,
                    negatives=options.negatives,
                    keep_table=gathered.keeps_table,
                    scatter=gathered.scatter,
                )
                gathered.add(seen)
            except TableTooLargeError as error:
                raise error.within(files.name) from error
            except DataError:
                piece.check_cells(options.negatives)  # names the cell in the file
                raise
    try:
        return fit_patterns(
            gathered.patterns(),
            options,
            files,
            in_file=True,
            col_labels=files.col_labels,
            policy=_policy(files),
        )
    except DataError as error:
        if error.column is None:
            raise error.within(files.name) from error
        name = files.names[error.column]
        advice = Option("exclude", [name]), " leaves the column out."
        raise error.at(f"{files.name}, column {name!r}").advised(advice) from error


def _policy(files: TableFiles) -> WarningPolicy:
    """Warnings that name rows and columns as the files do."""
    return WarningPolicy(FileNames(files=files, col_labels=files.names))


def files_of(fit: RankOneFit) -> TableFiles | None:
    """The files that a fit was made from; None for any other fit."""
    source = fit._table.source
    return source if isinstance(source, TableFiles) else None


@dataclass(frozen=True, kw_only=True)
class FileNames(Names):
    """Names of rows and columns in messages: files and lines, or labels."""

    files: TableFiles

    def rows(self, places: Sequence[int], total: int) -> str:
        """Name the first of some rows; the files are read again for it."""
        return named(*self.files.name_rows(places[:MOST_NAMED]), total)

    def cell(self, row: int, col: int) -> str:
        """Name a cell."""
        return f"{self.rows([row], 1)}, {self.columns([col], 1)}"


# ------------------------------------------------------------------------ impute
def impute_file(
    src: PathOrPaths,
    dst: str | os.PathLike[str],
    *,
    fit: RankOneFit | None = None,
    mark: bool = False,
    interval: float | None = None,
    round: Rounding = None,
    overwrite: bool = False,
    escape_formulas: bool = False,
    weights: Any = None,
    exposure: Any = None,
    row_totals: Any = None,
    col_totals: Any = None,
    on_undetermined: OnUndetermined | None = None,
    **options: Any,
) -> RankOneFit:
    r"""Write a table file with its missing cells filled.

    Everything else stays as it is: rows and columns in their order, text, dates, types
    (integers, decimals and float16 with holes become float64; a column of whole numbers
    in text becomes int64 in a typed file where nothing was missing). The result appears
    whole or not at all: after an error or Ctrl-C the target is as it was. Of several
    files each is the old or the new one whole; a note of the error names the new ones.

    Parameters
    ----------
    src : path, folder, glob, or sequence of paths
        The table, as for ``a1gm.fit_file``; ``"-"`` is standard input.
    dst : path
        The file to write; its extension decides the format. For several files, a
        folder, which gets files of the same names. ``"-"`` is standard output, which
        gets the format that was read, as do pipes and devices.
    fit : RankOneFit, optional
        A fit of this table, which saves a pass, or of another one with the same
        columns. Rows are placed by their own observed cells either way.
    mark : bool, default=False
        Whether to add a column ``NAME_filled`` per column with holes: true where a cell
        was filled.
    interval : float, optional
        A share such as 0.95: adds ``NAME_low`` and ``NAME_high`` per column with holes,
        between which that share of the filled cells would lie. The data of the fit are
        read once more for their scatter.
    round : int or "auto", optional
        Digits after the point of the filled cells; ``"auto"`` rounds those to whole
        numbers whose column has only such, and integer columns with missing cells
        become int64. Observed digits stay as they are.
    overwrite : bool, default=False
        Whether ``dst`` may be replaced.
    escape_formulas : bool, default=False
        Whether to put ``'`` before text cells and names in a CSV file that begin with
        ``=``, ``+``, ``-`` or ``@`` and are not numbers: a spreadsheet that opens the
        file would run them as formulas. Other readers get the ``'`` as well.
    weights, exposure : path or paths, table, or one number per row or column, optional
        Those of the cells of ``src``, as in ``a1gm.fit_file``.
    row_totals, col_totals : path, array, list, Series, dict or frame, optional
        Totals that the filled table is to have, as in ``a1gm.impute``; a file has a
        line per total, its name before the number. The table is held in memory.
    on_undetermined : {"warn", "raise", "ignore"}, optional
        What to do about cells that the data do not determine; they stay missing. By
        default a warning, unless ``fit_file`` has warned about these files; with
        ``fit``, the value of the fit.
    **options
        As in ``a1gm.fit_file``, without ``uncertainty``.

    Returns
    -------
    RankOneFit
        The fit that was used.

    Raises
    ------
    FileFormatError
        A file changed since it was fitted or while it was read, or cannot be read.
    OutputError
        ``dst`` cannot be written, exists, or is the input.

    Examples
    --------
    >>> import pathlib, tempfile, a1gm
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> _ = (folder / "table.csv").write_text("id,x,y\na,1,2\nb,2,\n")
    >>> _ = a1gm.impute_file(folder / "table.csv", folder / "filled.csv")
    >>> print((folder / "filled.csv").read_text(), end="")
    id,x,y
    a,1,2
    b,2,4
    """
    of_fits = FitOptions.__dataclass_fields__
    of_files = TableOptions.__dataclass_fields__
    check_keywords("impute_file", options, {*of_fits, *of_files})
    reading = {name: options.pop(name) for name in of_files if name in options}
    fitting = {"on_undetermined": on_undetermined or "warn", **options}
    return fill_file(
        src,
        dst,
        fit,
        on_undetermined,
        TableOptions(**reading),
        FitOptions(**fitting),
        weights_or_exposure(weights, exposure),
        mark=mark,
        interval=interval,
        round=round,
        overwrite=overwrite,
        escape_formulas=escape_formulas,
        row_totals=row_totals,
        col_totals=col_totals,
    ).fit


def _fill_to(
    done: FillFiles, files: TableFiles, row_totals: Any, col_totals: Any
) -> None:
    """Scale the fills to totals, of a table that is read into memory for that."""
    check_plain_fills(done.round, done.interval)
    rows = replace(files.in_memory()[0], weights=done.weights)
    if done.weights is not None:
        rows = replace(rows, exposed=done.fit.has_exposure)
    totals = (
        totals_beside(row_totals, files, rows.row_labels),
        totals_beside(col_totals, files, rows.col_labels),
    )
    placed = done.fit._columns.place(rows)
    fills = fills_to_totals(placed, *totals, files.name, done.fit.tol)
    done.values = fills.values


def fill_file(
    src: PathOrPaths,
    dst: str | os.PathLike[str],
    fit: object,
    on_undetermined: OnUndetermined | None,
    reading: TableOptions,
    fitting: FitOptions,
    weighting: Weighting,
    **how: Any,
) -> FillFiles:
    """Write a table file with its missing cells filled, and count them.

    ``how`` are the other options of ``impute_file``.
    """
    totals = how.pop("row_totals"), how.pop("col_totals")
    has_totals = any(given is not None for given in totals)
    if how["interval"] is not None:
        check_level(how["interval"], Option("interval"))
    check_rounding(how["round"])
    if not isinstance(fit, RankOneFit | None):
        advice = (
            "Pass one of its fits: a1gm.load(path)[key], or the file that "
            "a1gm.load(path)[key].save(new_path) writes."
        )
        raise ParameterError(
            "A file is filled by the fit of one table with two keys, and this is a "
            f"{type(fit).__name__}. {PREDICT if isinstance(fit, Kept) else advice}"
        )
    found = find_files(src)
    beside = [path for given in (weighting[1], *totals) for path in paths_in(given)]
    check_place(found, dst, beside, overwrite=how["overwrite"])
    if fit is None:
        files = TableFiles(found, reading, are_read_twice=True)
        with warnings.catch_warnings():
            if has_totals:  # which determine more than the data
                warnings.simplefilter("ignore", UndeterminedWarning)
                warnings.simplefilter("ignore", EmptyLineWarning)
            # It warns of the cells that stay missing.
            fit = fit_files(files, fitting, weighting)
        weights = fit._table.weights
        left: OnUndetermined = "raise" if on_undetermined == "raise" else "ignore"
    else:
        files = _open_for(fit, found, reading)
        left = on_undetermined or fit._on_undetermined
        if files is not files_of(fit):  # check the cells and count the holes
            signed = "allow" if fit._columns.takes_negatives else fitting.negatives
            with closing(files.pieces(progress=fitting.progress)) as pieces:
                for _, piece in pieces:
                    piece.check_cells(signed)
        elif on_undetermined is None and left == "warn":
            left = "ignore"  # the fit has already warned about its files
        weights = _weights_for(fit, files, *weighting)
    allowed = fitting.negatives == "allow"
    done = FillFiles(files, fit, left, fitting.progress, allowed, **how)
    done.weights = weights
    if has_totals:
        _fill_to(done, files, *totals)
    done.write(dst)
    return done


def _weights_for(
    fit: RankOneFit, files: TableFiles, name: Name, given: Any
) -> Rows | None:
    """Weights of rows in files that a fit is to place."""
    if given is None:
        return None
    shape, names = (files.n_rows or 0, files.n_cols), files.col_labels
    rows = Rows([], *shape, files.row_labels, names, name=files.name)
    found: Any = fit._table.weighted_as(rows, name, read_beside(given, files))
    return found.weights  # type: ignore[no-any-return]


def check_place(
    found: FoundFiles,
    dst: str | os.PathLike[str],
    beside: Sequence[str | os.PathLike[str]] = (),
    *,
    overwrite: bool,
    to_one: bool = False,
) -> None:
    """Raise for a target that cannot be written, before reading anything.

    With ``to_one`` all files go to one. No input is replaced, nor are the files
    ``beside`` it: a model, weights.
    """
    paths = found.paths
    sources = [*paths, *(find_files(beside).paths if beside else ())]
    # Of several files some may be left out.
    if not (found.are_several or paths[0] == "-" or Path(paths[0]).exists()):
        raise missing_file(paths[0])
    if to_one or not found.go_to_folder(dst):
        if os.fspath(dst) != "-":
            check_target(dst, overwrite=overwrite, sources=sources)
            if not is_stream(dst):
                format_of(dst)
        return
    if "-" in paths:
        raise ParameterError("Standard input has no file name: name a file to write.")
    kind = suffix_of(dst)
    like_input = Path(found.given).is_dir() and kind == suffix_of(found.given)
    is_file = kind in FORMATS and not like_input and not Path(dst).is_dir()
    if is_file or is_stream(dst):
        raise ParameterError(
            f"Several files are filled in a folder, and {shown(dst)} is a stream or "
            "named like one file. Name a folder: it gets files of the same names."
        )
    if len(set(found.names.values())) < len(paths):
        raise ParameterError(
            "Two of the files have the same name, so they cannot go to one folder. "
            "Fill them one by one."
        )
    for name in found.names.values():
        if (Path(dst) / name).parent.is_dir():
            check_target(Path(dst) / name, overwrite=overwrite, sources=sources)


def _open_for(fit: RankOneFit, found: FoundFiles, options: TableOptions) -> TableFiles:
    """Take the files that were fitted, or open others for the same columns, by name."""
    own = files_of(fit)
    if own is not None and options in (TableOptions(), own.options):
        fitted = *own.paths, *own.empty
        real, again = ({Path(p).resolve() for p in x} for x in (fitted, found.paths))
        if real == again:
            own.check_unchanged()
            return own
    names = fit.col_labels
    if options.columns and {*options.columns} != {str(name) for name in names or ()}:
        names = options.columns
    if names is None or len(names) != len(fit.col_factor):
        raise LabelError(
            f"The fit has {len(fit.col_factor)} columns without names. Pass ",
            Option("columns"),
            " with the columns of the file they belong to, in the order of the fit.",
        )
    files = TableFiles(found, options, are_read_twice=True)
    columns = [str(name) for name in names]
    return files.choosing(reason="the fit has", columns=columns, exclude=())
