"""``a1gm.impute_file``: the same table with its holes filled, file by file."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import numpy as np

from a1gm._api.fit_file import fit_files
from a1gm._base.atomic import atomic_folder, check_target
from a1gm._base.types import Floats, Ints, OnUndetermined
from a1gm._base.warn import warn_user
from a1gm._result.fill_rows import RowRule
from a1gm._result.fit import RankOneFit
from a1gm._result.messages import text_of_left_cells
from a1gm._result.streamed import StreamedFit
from a1gm._sources.files.options import TableOptions
from a1gm._sources.files.read_ahead import read_ahead
from a1gm._sources.files.reader import Progress, TableReader
from a1gm._sources.files.scan import scan_table
from a1gm._sources.files.table import PathOrPaths, TableFiles, find_files
from a1gm._write.fill import Filler, HoleCount
from a1gm._write.writers import format_of, open_writer
from a1gm.exceptions import (
    LabelError,
    ParameterError,
    UndeterminedError,
    UndeterminedWarning,
)

__all__ = ["impute_file"]


def impute_file(
    src: PathOrPaths,
    dst: str | os.PathLike[str],
    *,
    fit: RankOneFit | None = None,
    columns: Sequence[str] | None = None,
    exclude: Sequence[str] | None = None,
    missing: Sequence[str] = (),
    delimiter: str | None = None,
    decimal: str = ".",
    thousands: str | None = None,
    encoding: str = "utf-8",
    batch_rows: int | None = None,
    progress: Progress | None = None,
    overwrite: bool = False,
    on_undetermined: OnUndetermined | None = None,
) -> RankOneFit:
    r"""Write a table file with its missing cells filled.

    Everything else stays as it is: rows and columns in their order, text, dates, types
    (integers with holes become float64). The result appears whole or not at all: after
    an error or Ctrl-C the target is as it was.

    Parameters
    ----------
    src : path, folder, glob, or sequence of paths
        The table, as for ``a1gm.fit_file``.
    dst : path
        The file to write; its extension decides the format. For several files, a
        folder, which gets files of the same names.
    fit : RankOneFit, optional
        A fit of this table, which saves a pass, or of another one with the same
        columns: rows are then placed by their own observed cells.
    columns, exclude, missing, delimiter, decimal, thousands, encoding, batch_rows
        As in ``a1gm.fit_file``.
    progress : callable, optional
        Called with the rows done in this pass and the fraction of the file read.
    overwrite : bool, default=False
        Whether ``dst`` may be replaced.
    on_undetermined : {"warn", "raise", "ignore"}, optional
        What to do about cells that the data do not determine; they stay missing. By
        default a warning, unless ``fit_file`` has given it for these files; with
        ``fit``, as said there.

    Returns
    -------
    RankOneFit
        The fit that was used.

    Raises
    ------
    FileFormatError
        A file changed since it was fitted, or cannot be read.
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
    paths = find_files(src)
    _check_place(paths, dst, overwrite=overwrite)
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
    how = on_undetermined
    if fit is None:
        files = TableFiles.find(paths, options)
        fit = fit_files(files, progress=progress, on_undetermined="ignore")
        how = how or "warn"
    else:
        files = _files_of(fit, paths, options)
        how = how or _as_said_in(fit, files)
    run = _Run(fit, files, overwrite=overwrite, progress=progress)
    run.write(paths, dst, how)
    return fit


def _check_place(
    paths: list[str], dst: str | os.PathLike[str], *, overwrite: bool
) -> None:
    """Refuse a target that cannot be written, before reading anything."""
    if len(paths) == 1 and not Path(dst).is_dir():
        check_target(dst, overwrite=overwrite, source=paths[0])
        format_of(dst)
        return
    names = [Path(path).name for path in paths]
    if len(set(names)) < len(names):
        raise ParameterError(
            "Two of the files have the same name, so they cannot go to one folder. "
            "Fill them one by one."
        )
    for path, name in zip(paths, names, strict=True):
        if Path(dst).is_dir():
            check_target(Path(dst) / name, overwrite=overwrite, source=path)


def _files_of(fit: RankOneFit, paths: list[str], options: TableOptions) -> TableFiles:
    """Find the files that were fitted, or open others for the same columns."""
    own = fit._tables if isinstance(fit, StreamedFit) else None
    if own is not None and _same_files(own.paths, paths):
        own.check_unchanged()
        files: TableFiles = own
        return files
    names = options.columns or fit.col_labels
    if names is None or len(names) != len(fit.col_factor):
        raise LabelError(
            f"The fit has {len(fit.col_factor)} columns without names. Pass "
            "columns=[...] with the columns of the file they belong to, in the order "
            "of the fit."
        )
    chosen = replace(options, columns=[str(name) for name in names], exclude=())
    files = TableFiles.find(paths, chosen)
    files.settle()
    while files.open_next() is not None:
        pass
    return files


def _as_said_in(fit: RankOneFit, files: TableFiles) -> OnUndetermined:
    """What the fit was told, without its warning when it has given that already."""
    how = fit._on_undetermined
    is_own = isinstance(fit, StreamedFit) and fit._tables is files
    return "ignore" if is_own and how == "warn" else how


def _same_files(some: list[str], others: list[str]) -> bool:
    return [Path(path).resolve() for path in some] == [
        Path(path).resolve() for path in others
    ]


class _Run:
    """The second pass: fills and writes file by file."""

    def __init__(
        self,
        fit: RankOneFit,
        files: TableFiles,
        *,
        overwrite: bool,
        progress: Progress | None,
    ) -> None:
        self.files = files
        self.overwrite = overwrite
        self.progress = progress
        self.rule = RowRule.of(fit)
        is_own = isinstance(fit, StreamedFit) and fit._tables is files
        self.fit = fit if is_own else None
        self.missing = _holes_of_fit(fit) if is_own else _count_holes(files)
        self.n_left = 0

    def write(
        self, paths: list[str], dst: str | os.PathLike[str], how: OnUndetermined
    ) -> None:
        if len(paths) == 1 and not Path(dst).is_dir():
            self._write_file(self.files.tables[0], dst, how)
        else:
            with atomic_folder(dst, overwrite=self.overwrite) as place:
                for table in self.files.tables:
                    name = Path(table.source.origin.path).name
                    self._write_file(table, place(name), how)
        if self.n_left and how == "warn":
            warn_user(self._left_over(), UndeterminedWarning)

    def _write_file(
        self, table: TableReader, dst: str | os.PathLike[str], how: OnUndetermined
    ) -> None:
        holes = HoleCount(self.missing, np.zeros(len(self.missing), bool))
        fill = self._row_fill(table)
        filler = Filler(table, fill, holes, to_text=format_of(dst) == "csv")
        dialect = getattr(table.source, "dialect", None)
        with (
            open_writer(
                dst, filler.schema, dialect=dialect, overwrite=self.overwrite
            ) as writer,
            closing(read_ahead(table.blocks())) as blocks,
        ):
            for block in blocks:
                writer.write(filler.fill(block))
                if self.progress is not None:
                    done = table.source.position / max(table.source.origin.size, 1)
                    self.progress(block.first_row + block.batch.num_rows, done)
            self.n_left += filler.n_left
            if self.n_left and how == "raise":
                raise UndeterminedError(self._left_over())

    def _row_fill(self, table: TableReader) -> Callable[[int, Floats], Floats]:
        if self.fit is None:
            return lambda _, values: self.rule.fill(values)
        first = self.files.n_rows_before(table)
        factors = self.fit.row_factor

        def fill(row: int, values: Floats) -> Floats:
            rows = slice(first + row, first + row + len(values))
            return self.rule.fill(values, factors[rows])

        return fill

    def _left_over(self) -> str:
        return text_of_left_cells(self.n_left) + " See fit.undetermined."


def _holes_of_fit(fit: RankOneFit) -> Ints:
    assert isinstance(fit, StreamedFit)
    missing = np.zeros(len(fit.col_factor), np.int64)
    for n_rows, observed, _ in fit._stream.weighted():
        missing += n_rows @ (~observed).astype(np.int64)
    return missing


def _count_holes(files: TableFiles) -> Ints:
    """Missing cells of each column, by a pass of their own."""
    missing = np.zeros(len(files.names), np.int64)

    def add(source: object) -> None:
        nonlocal missing
        for _, block in source.blocks():  # type: ignore[attr-defined]
            missing = missing + np.isnan(block).sum(axis=0)

    for table in files.tables:
        scan_table(table, lambda names: None, add)
    return missing
