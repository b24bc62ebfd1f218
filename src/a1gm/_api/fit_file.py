"""``a1gm.fit_file``: the fit of a table that lies in files, in bounded memory."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, fields
from typing import Any, TypedDict, TypeVar, Unpack

from a1gm._api.fit import FitOptions, fit_patterns
from a1gm._base.types import Negatives, OnUndetermined
from a1gm._base.words import MOST_NAMED, listed, named
from a1gm._fit.fit import RankOneFit
from a1gm._fit.messages import WarningPolicy
from a1gm._observe.accumulate import Gathered
from a1gm._observe.observe import observe
from a1gm._rows.files.source import PathOrPaths, TableOptions, find_files
from a1gm._rows.files.table import Progress, TableFiles
from a1gm._rows.labels import Names
from a1gm.exceptions import DataError, Option, TableTooLargeError

_Function = TypeVar("_Function", bound=Callable[..., object])


# ---------------------------------------------------------------------- options
class FileOptions(TypedDict, total=False):
    """Options of both functions: see :class:`TableOptions` and :class:`FitOptions`."""

    columns: Sequence[str] | None
    exclude: Sequence[str] | None
    id: Sequence[str] | None
    missing: Sequence[str] | None
    delimiter: str | None
    decimal: str | None
    thousands: str | None
    encoding: str
    sheet: str | None
    skip_bad: bool
    batch_rows: int | None
    negatives: Negatives
    tol: float
    max_iter: int
    n_threads: int | None
    progress: Progress | None


def split_options(options: Mapping[str, Any]) -> tuple[TableOptions, FitOptions]:
    """Validate the options; split them into reading and fitting options."""
    given = dict(options)
    for name in given:
        if name not in (*FileOptions.__annotations__, "on_undetermined"):
            known = listed(list(FileOptions.__annotations__), most=99)
            raise TypeError(f"There is no option {name!r}. There are: {known}.")
    fitting = {f.name: given.pop(f.name) for f in fields(FitOptions) if f.name in given}
    return TableOptions(**given), FitOptions(**fitting)


def takes_file_options(function: _Function) -> _Function:
    """Write the shared options into the signature and the docstring of a function."""
    signature = inspect.signature(function)
    parameters = list(signature.parameters.values())[:-1]
    for kind in (TableOptions, FitOptions):
        for option in inspect.signature(kind).parameters.values():
            if option.name in FileOptions.__annotations__:
                parameters.append(option.replace(kind=inspect.Parameter.KEYWORD_ONLY))
    function.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
    text = inspect.getdoc(function)
    if text is not None:  # python -OO has none
        described = [
            (inspect.getdoc(kind) or "").partition("----------\n")[2].rstrip()
            for kind in (TableOptions, FitOptions)
        ]
        function.__doc__ = text.replace("{shared options}", "\n".join(described))
    return function


# -------------------------------------------------------------------------- fit
@takes_file_options
def fit_file(
    path_or_paths: PathOrPaths,
    *,
    on_undetermined: OnUndetermined = "warn",
    uncertainty: bool = False,
    **options: Unpack[FileOptions],
) -> RankOneFit:
    r"""Fit a table that lies in one file or several, larger than memory or not.

    The files are read once, in pieces; memory is bounded by the size of a piece and
    not by the number of rows. Rows are remembered in a nameless temporary file (12
    bytes each; where nearly every row has its own pattern of holes, a bit per cell).

    Parameters
    ----------
    path_or_paths : path, folder, glob, or sequence of paths
        CSV, TSV (also gzipped), Parquet and Feather or Arrow files; ``"-"`` is standard
        input. Several files are one table, row after row in sorted order; columns are
        matched by name. A stream or a pipe is copied to a temporary file.
    on_undetermined : {"warn", "raise", "ignore"}, default="warn"
        What to do when some missing cells have no value that the data determine.
    uncertainty : bool, default=False
        Keep what ``fit.uncertainty()`` and ``fit.divergence`` need of the scatter of
        the cells. Without it they read the files again, and a fit that was saved has
        neither. Not kept where nearly every row has its own pattern of holes.
    {shared options}

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
        meant so: one row per cell, totals, points between thousands.
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
    reading, fitting = split_options({**options, "on_undetermined": on_undetermined})
    files = TableFiles(find_files(path_or_paths), reading)
    return fit_files(files, fitting, uncertainty=uncertainty)


def fit_files(
    files: TableFiles, options: FitOptions, *, uncertainty: bool = False
) -> RankOneFit:
    """Fit the table of some files, in one pass over them."""
    with closing(files.pieces(progress=options.progress)) as pieces:
        for first_row, piece in pieces:
            if first_row == 0:  # again, when the columns are known better
                gathered = Gathered(
                    len(piece.names),
                    in_file=True,
                    signed=options.negatives == "allow",
                    scatter=uncertainty,
                )
            try:
                seen = observe(
                    piece.rows,
                    n_threads=options.n_threads,
                    negatives=options.negatives,
                    keep_table=gathered.keeps_table,
                    scatter=gathered.scatter,
                )
                gathered.add(seen, files.n_rows_expected)
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
            policy=WarningPolicy(FileNames(files=files, col_labels=files.names)),
        )
    except DataError as error:
        if error.column is None:
            raise error.within(files.name) from error
        name = files.names[error.column]
        advice = Option("exclude", [name]), " leaves the column out."
        raise error.at(f"{files.name}, column {name!r}").advised(advice) from error


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
