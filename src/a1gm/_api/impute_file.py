"""``a1gm.impute_file``: the same table with its holes filled, file by file."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Unpack

import numpy as np

from a1gm._api.fit_file import (
    FileOptions,
    FitOptions,
    files_of,
    fit_files,
    split_options,
    takes_file_options,
)
from a1gm._base.atomic import check_target, output_folder
from a1gm._base.types import Floats, OnUndetermined
from a1gm._base.warn import warn_user
from a1gm._base.words import shown
from a1gm._fit.fit import RankOneFit
from a1gm._fit.messages import text_of_left_cells
from a1gm._fit.place import Columns
from a1gm._fit.rounding import Rounding, check_rounding
from a1gm._fit.sure.arguments import check_level
from a1gm._rows.files.options import TableOptions
from a1gm._rows.files.paths import (
    FORMATS,
    FoundFiles,
    PathOrPaths,
    find_files,
    missing_file,
    suffix_of,
)
from a1gm._rows.files.table import Progress, TableFiles
from a1gm._write.fill import Filler
from a1gm._write.writers import format_for, format_of, is_stream, open_writer
from a1gm.exceptions import (
    DataError,
    LabelError,
    Option,
    ParameterError,
    See,
    Text,
    UndeterminedError,
    UndeterminedWarning,
)


@takes_file_options
def impute_file(
    src: PathOrPaths,
    dst: str | os.PathLike[str],
    *,
    fit: RankOneFit | None = None,
    mark: bool = False,
    interval: float | None = None,
    round: Rounding = None,
    overwrite: bool = False,
    on_undetermined: OnUndetermined | None = None,
    **options: Unpack[FileOptions],
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
        numbers whose column has only such, and keeps the types of integer columns,
        or widens those that cannot hold a fill, which takes one more pass.
        Observed digits stay as they are.
    overwrite : bool, default=False
        Whether ``dst`` may be replaced.
    on_undetermined : {"warn", "raise", "ignore"}, optional
        What to do about cells that the data do not determine; they stay missing. By
        default a warning, unless ``fit_file`` has given it for these files; with
        ``fit``, as said there.
    {shared options}

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
    return fill_file(
        src,
        dst,
        fit=fit,
        mark=mark,
        interval=interval,
        round=round,
        overwrite=overwrite,
        on_undetermined=on_undetermined,
        **options,
    ).fit


def fill_file(
    src: PathOrPaths,
    dst: str | os.PathLike[str],
    *,
    fit: RankOneFit | None,
    mark: bool,
    interval: float | None,
    round: Rounding,
    overwrite: bool,
    on_undetermined: OnUndetermined | None,
    **options: Unpack[FileOptions],
) -> FillFiles:
    """Write a table file with its missing cells filled, and count them."""
    reading, fitting = split_options(options, on_undetermined or "warn")
    if interval is not None:
        check_level(interval, "interval")
    check_rounding(round)
    found = find_files(src)
    check_place(found, dst, overwrite=overwrite)
    how = on_undetermined
    if fit is None:
        files = TableFiles(found, reading, are_read_twice=True)
        how = how or "warn"
        fit = fit_files(files, fitting, on_undetermined=how)
        how = "raise" if how == "raise" else "ignore"  # the fit has warned
    else:
        files = _open_for(fit, found, reading)
        is_own = files is files_of(fit)
        if not is_own:
            read_new_rows(files, fitting, fit._columns)
        # The fit has already warned of its own files.
        said = fit._on_undetermined
        how = how or ("ignore" if is_own and said == "warn" else said)
    done = FillFiles(
        files,
        fit,
        mark,
        overwrite,
        how,
        fitting.progress,
        takes_negatives=fitting.negatives == "allow",
        interval=interval,
        round=round,
    )
    done.write(dst)
    return done


def check_place(
    found: FoundFiles,
    dst: str | os.PathLike[str],
    *,
    overwrite: bool,
    to_one: bool = False,
) -> None:
    """Raise for a target that cannot be written, before reading anything.

    With ``to_one`` all files go to one.
    """
    paths = found.paths
    is_stdin = paths[0] == "-"
    # Of several files some may be left out.
    if not (found.are_several or is_stdin or Path(paths[0]).exists()):
        raise missing_file(paths[0])
    is_one = to_one or not found.go_to_folder(dst)
    if is_one and os.fspath(dst) == "-":
        return
    if is_one:
        for path in paths:
            check_target(dst, overwrite=overwrite, source=path)
        if not is_stream(dst):
            format_of(dst)
        return
    if "-" in paths:
        raise ParameterError("Standard input has no file name: name a file to write.")
    if is_stream(dst):
        raise ParameterError("Several files are filled in a folder, not in a stream.")
    kind = suffix_of(dst)
    like_input = Path(found.given).is_dir() and kind == suffix_of(found.given)
    if kind in FORMATS and not like_input and not Path(dst).is_dir():
        raise ParameterError(
            f"Several files are filled in a folder, and {shown(dst)} is named like one "
            "file. Name a folder: it gets files of the same names."
        )
    names = [found.names[path] for path in paths]
    if len(set(names)) < len(names):
        raise ParameterError(
            "Two of the files have the same name, so they cannot go to one folder. "
            "Fill them one by one."
        )
    for path, name in zip(paths, names, strict=True):
        if (Path(dst) / name).parent.is_dir():
            check_target(Path(dst) / name, overwrite=overwrite, source=path)


def _open_for(fit: RankOneFit, found: FoundFiles, options: TableOptions) -> TableFiles:
    """Take the files that were fitted, or open others for the same columns."""
    own = files_of(fit)
    same = own is not None and _resolved(own) == _resolved(found)
    if own is not None and same and options in (TableOptions(), own.options):
        own.check_unchanged()
        return own
    return files_for(fit, TableFiles(found, options, are_read_twice=True))


def _resolved(files: FoundFiles | TableFiles) -> list[Path]:
    left_out = [*files.empty, *files.broken] if isinstance(files, TableFiles) else []
    return sorted(Path(path).resolve() for path in (*files.paths, *left_out))


def files_for(
    fit: RankOneFit, files: TableFiles, *, whose: str = "the fit has"
) -> TableFiles:
    """The same files for the columns of a fit, matched by name."""
    names = files.options.columns or fit.col_labels
    if names is None or len(names) != len(fit.col_factor):
        raise LabelError(
            f"The fit has {len(fit.col_factor)} columns without names. Pass ",
            Option("columns"),
            " with the columns of the file they belong to, in the order of the fit.",
        )
    columns = [str(name) for name in names]
    return files.choosing(whose=whose, columns=columns, exclude=())


def read_new_rows(files: TableFiles, options: FitOptions, columns: Columns) -> None:
    """Check the cells of rows that were not fitted, and count their holes."""
    with closing(files.pieces(progress=options.progress)) as pieces:
        for _, piece in pieces:
            piece.check_cells("allow" if columns.takes_negatives else options.negatives)


@dataclass
class FillFiles:
    """The second pass: writes files that were read once with their holes filled.

    Attributes
    ----------
    n_filled, n_left : int
        Cells filled, and holes that stay because nothing can be known.
    columns : list of str
        Columns in which cells were filled.
    """

    files: TableFiles
    fit: RankOneFit
    mark: bool = False
    overwrite: bool = False
    on_undetermined: OnUndetermined = "warn"
    progress: Progress | None = None
    takes_negatives: bool = False
    interval: float | None = None
    round: Rounding = None
    n_filled: int = 0
    n_left: int = 0
    columns: list[str] = field(default_factory=list)

    def write(self, dst: str | os.PathLike[str]) -> None:
        """Write all files: one to its target, several to a folder."""
        if not self.files.found.go_to_folder(dst):
            self._write_file(0, dst)
        else:
            with output_folder(dst, overwrite=self.overwrite) as place:
                for at, path in enumerate(self.files.paths):
                    self._write_file(at, place(self.files.found.names[path]))
        if self.n_left and self.on_undetermined == "warn":
            warn_user(UndeterminedWarning(self._left_over()))

    def _write_file(self, at: int, target: str | os.PathLike[str]) -> None:
        source = self.files.sources[at]
        kind = format_for(target, source.file.format)
        filler = self._filler(at, to_text=kind == "csv")
        dialect = getattr(source, "dialect", None)
        pieces = self.files.pieces_of(at, all_columns=True, progress=self.progress)
        with (
            closing(pieces),
            open_writer(
                target,
                filler.schema,
                kind=kind,
                dialect=dialect,
                overwrite=self.overwrite,
            ) as writer,
        ):
            for piece in pieces:
                writer.write(filler.fill(piece))
            self.n_filled += filler.n_filled
            self.n_left += filler.n_left
            self.columns = list(dict.fromkeys(self.columns + filler.columns_filled))
            if self.n_left and self.on_undetermined == "raise":
                raise UndeterminedError(self._left_over())

    def _filler(self, at: int, *, to_text: bool) -> Filler:
        counts = self.files.counts
        assert counts is not None
        source, fill = self.files.sources[at], self._columns.fill
        how = self.mark, self._bounds, to_text, self.round, lambda: self._fill_range
        return Filler(source, self.files.names, fill, counts, *how)

    @cached_property
    def _bounds(self) -> Callable[[Floats], tuple[Floats, Floats]] | None:
        """What gives the bounds of the holes of rows, if they are asked for."""
        return None if self.interval is None else bounds_of(self.fit, self.interval)

    @cached_property
    def _fill_range(self) -> tuple[Floats, Floats]:
        """The least and the greatest fill of each column of all files, rounded."""
        low, high = np.zeros((2, self.files.n_cols))
        with closing(self.files.pieces(progress=self.progress)) as pieces:
            for _, piece in pieces:
                fills = np.round(self._columns.fill(piece.values))
                fills[~np.isnan(piece.values)] = np.nan
                low = np.fmin(low, np.fmin.reduce(fills, axis=0, initial=0.0))
                high = np.fmax(high, np.fmax.reduce(fills, axis=0, initial=0.0))
        return low, high

    @cached_property
    def _columns(self) -> Columns:
        """A row is placed by its own cells, whether it was fitted or not."""
        columns = self.fit._columns
        return (
            replace(columns, takes_negatives=True) if self.takes_negatives else columns
        )

    def _left_over(self) -> Text:
        text = text_of_left_cells(self.n_left)
        if self.files is not files_of(self.fit):
            return text
        return text[:-1], See("fit.undetermined"), "."


def bounds_of(
    fit: RankOneFit, level: float
) -> Callable[[Floats], tuple[Floats, Floats]]:
    """What gives the bounds of the holes of rows; raise if nothing is known of them."""
    try:
        sure = fit.uncertainty()
    except (DataError, ParameterError) as error:
        raise error.advised("Leave out ", Option("interval"), ".") from error
    return partial(sure.interval, level=level)
