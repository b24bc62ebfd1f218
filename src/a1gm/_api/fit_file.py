"""``a1gm.fit_file``: the fit of a table that lies in files, in bounded memory."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import Unpack

from a1gm._api.file_options import (
    FileOptions,
    FitOptions,
    split_options,
    takes_file_options,
)
from a1gm._api.fit import fit_gathered
from a1gm._base.types import OnUndetermined
from a1gm._base.words import MOST_NAMED, named
from a1gm._fit.fit import RankOneFit
from a1gm._fit.messages import WarningPolicy
from a1gm._observe.gather import Gatherer
from a1gm._rows.files.paths import PathOrPaths
from a1gm._rows.files.table import TableFiles
from a1gm._rows.labels import Names
from a1gm.exceptions import DataError, Option, TableTooLargeError


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
        With the file, the line or row group, and the column.

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
    reading, fitting = split_options(options, on_undetermined)
    files = TableFiles.find(path_or_paths, reading)
    return fit_files(
        files, fitting, on_undetermined=on_undetermined, uncertainty=uncertainty
    )


def fit_files(
    files: TableFiles,
    options: FitOptions,
    *,
    on_undetermined: OnUndetermined,
    uncertainty: bool = False,
) -> RankOneFit:
    """Fit a table that was found in files, in one pass over them.

    ``uncertainty`` keeps what the scatter of the cells needs.
    """
    with closing(files.pieces(progress=options.progress)) as pieces:
        for first_row, piece in pieces:
            if first_row == 0:  # again, when the columns are known better
                gatherer = Gatherer(
                    len(piece.names),
                    negatives=options.negatives,
                    n_threads=options.n_threads,
                    uncertainty=uncertainty,
                )
            with (
                _refusing_patterns(files, options),
                piece.placing_faults(options.negatives),
            ):
                gatherer.add(piece.rows, files.n_rows_expected)
    with _naming_faults(files):
        return fit_gathered(
            gatherer,
            col_labels=files.col_labels,
            source=files,
            tol=options.tol,
            max_iter=options.max_iter,
            n_threads=options.n_threads,
            on_undetermined=on_undetermined,
            policy=WarningPolicy(FileNames(files=files)),
        )


def files_of(fit: RankOneFit) -> TableFiles | None:
    """The files that a fit was made from; None for any other fit."""
    source = fit._table.source
    return source if isinstance(source, TableFiles) else None


@dataclass(frozen=True, kw_only=True)
class FileNames(Names):
    """What messages call rows and columns: as the owner of the files finds them."""

    files: TableFiles

    def rows(self, places: Sequence[int], total: int) -> str:
        """Name the first of some rows; the files are read again for it."""
        return named(*self.files.name_rows(places[:MOST_NAMED]), total)

    def columns(self, places: Sequence[int], total: int) -> str:
        """Name the first of some columns."""
        names = [repr(self.files.names[place]) for place in places[:MOST_NAMED]]
        return named("column", names, total)

    def cell(self, row: int, col: int) -> str:
        """Name a cell."""
        return f"{self.rows([row], 1)}, {self.columns([col], 1)}"


@contextlib.contextmanager
def _naming_faults(files: TableFiles) -> Iterator[None]:
    """Raise errors about the whole table again with the file or the column."""
    try:
        yield
    except DataError as error:
        if error.column is None:
            raise error.within(files.name) from error
        name = files.names[error.column]
        advice = Option("exclude", [name]), " leaves the column out."
        raise error.at(f"{files.name}, column {name!r}").advised(advice) from error


@contextlib.contextmanager
def _refusing_patterns(files: TableFiles, options: FitOptions) -> Iterator[None]:
    """Advise what to do when signs need a sum per pattern, and there are too many."""
    try:
        yield
    except TableTooLargeError as error:
        if options.negatives == "raise":
            raise
        raise TableTooLargeError(
            f"{files.name} has too many patterns of holes for ",
            Option("negatives", "allow"),
            ", which keeps a sum per pattern in memory. Leave out columns with ",
            Option("exclude"),
            ", or mark the negative cells as missing with ",
            Option("missing"),
            ".",
        ) from error
