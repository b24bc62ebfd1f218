"""``a1gm.fit_file``: the fit of a table that lies in files, in bounded memory."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from a1gm._api.fit import DEFAULT_MAX_ITER, DEFAULT_TOL, check_options
from a1gm._api.gather import Gatherer
from a1gm._base.types import OnUndetermined
from a1gm._result.fit import RankOneFit
from a1gm._result.streamed import StreamedFit
from a1gm._sources import Source
from a1gm._sources.files.options import TableOptions
from a1gm._sources.files.reader import Progress, TableReader
from a1gm._sources.files.scan import scan_table
from a1gm._sources.files.table import PathOrPaths, TableFiles

__all__ = ["fit_file", "fit_files"]


def fit_file(
    path_or_paths: PathOrPaths,
    *,
    columns: Sequence[str] | None = None,
    exclude: Sequence[str] | None = None,
    missing: Sequence[str] = (),
    delimiter: str | None = None,
    decimal: str = ".",
    thousands: str | None = None,
    encoding: str = "utf-8",
    batch_rows: int | None = None,
    progress: Progress | None = None,
    on_undetermined: OnUndetermined = "warn",
    tol: float = DEFAULT_TOL,
    max_iter: int = DEFAULT_MAX_ITER,
    n_threads: int | None = None,
) -> RankOneFit:
    r"""Fit a table that lies in one file or several, larger than memory or not.

    The files are read once, in batches; memory is bounded by the size of a batch and
    not by the number of rows. Rows are remembered in a nameless temporary file (12
    bytes each; where nearly every row has its own pattern of holes, a bit per cell).

    Parameters
    ----------
    path_or_paths : path, folder, glob, or sequence of paths
        CSV, TSV (also gzipped), Parquet and Feather or Arrow files. Several files are
        one table, row after row in sorted order; columns are matched by name.
    columns : sequence of str, optional
        Columns of the table. Default: every numeric column.
    exclude : sequence of str, optional
        Columns to leave out.
    missing : sequence of str
        Further tokens that mark a missing cell, such as ``"-999"``.
    delimiter : str, optional
        The character between the cells of text. Default: a tab for ``.tsv``, else a
        comma.
    decimal : str, default="."
        The decimal mark of text, ``"."`` or ``","``.
    thousands : str, optional
        The character between groups of three digits in text. Default: none.
    encoding : str, default="utf-8"
        The encoding of text.
    batch_rows : int, optional
        The most rows read at once. Default: batches of a million cells.
    progress : callable, optional
        Called with the rows done so far and the fraction of the file read.
    on_undetermined : {"warn", "raise", "ignore"}, default="warn"
        What to do when some missing cells have no value that the data determine.
    tol, max_iter, n_threads
        As in ``a1gm.fit``.

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
        A file lacks a column that the first one has.
    NegativeValuesError, InfiniteValuesError
        With the file, the line or row group, and the column.

    Examples
    --------
    >>> import pathlib, tempfile, a1gm
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "table.csv"
    >>> _ = path.write_text("x,y,z\n1,2,3\n2,,6\n")
    >>> fit = a1gm.fit_file(path)
    >>> fit.row_factor[:]
    array([ 6., 12.])
    """
    check_options(
        tol=tol,
        max_iter=max_iter,
        n_threads=n_threads,
        negatives="raise",
        on_undetermined=on_undetermined,
    )
    options = TableOptions(
        columns=columns,
        exclude=tuple(exclude or ()),
        missing=missing,
        delimiter=delimiter,
        decimal=decimal,
        thousands=thousands,
        encoding=encoding,
        batch_rows=batch_rows,
    )
    return fit_files(
        TableFiles.find(path_or_paths, options),
        progress=progress,
        on_undetermined=on_undetermined,
        tol=tol,
        max_iter=max_iter,
        n_threads=n_threads,
    )


def fit_files(
    files: TableFiles,
    *,
    progress: Progress | None,
    on_undetermined: OnUndetermined,
    tol: float = DEFAULT_TOL,
    max_iter: int = DEFAULT_MAX_ITER,
    n_threads: int | None = None,
) -> StreamedFit:
    """Fit a table that was found in files."""
    gathered: list[Gatherer] = []

    def begin(names: tuple[str, ...]) -> None:
        # The first file may start over, once its columns are known better.
        gathered[:] = [Gatherer(len(names), n_threads=n_threads)]

    first = files.tables[0]
    scan_table(
        first,
        begin,
        _adding_to(gathered, files, first),
        progress=_shifted(progress, 0, 0, len(files.paths)),
    )
    files.settle()
    done = first.source.n_rows or 0
    while (table := files.open_next()) is not None:
        scan_table(
            table,
            lambda names: None,
            _adding_to(gathered, files, table),
            progress=_shifted(progress, done, len(files.tables) - 1, len(files.paths)),
        )
        done += table.source.n_rows or 0
    fit = gathered[0].fit(
        tol=tol,
        max_iter=max_iter,
        on_undetermined=on_undetermined,
        col_labels=list(files.names),
    )
    assert isinstance(fit, StreamedFit)
    fit._tables = files
    return fit


def _adding_to(
    gathered: list[Gatherer], files: TableFiles, table: TableReader
) -> Callable[[Source], None]:
    # Rows of later files are not known yet; the files seen stand for them.
    known = table.source.n_rows
    expected = None if known is None else known * len(files.paths)
    return lambda source: gathered[0].add(source, expected)


def _shifted(
    progress: Progress | None, rows: int, n_files: int, total: int
) -> Progress | None:
    if progress is None:
        return None
    return lambda done, fraction: progress(rows + done, (n_files + fraction) / total)
