"""``a1gm.impute_file``: the same table with its holes filled, file by file."""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

from a1gm._api.fit_file import files_of, fit_files, split_options
from a1gm._base.atomic import check_target
from a1gm._base.types import OnUndetermined
from a1gm._base.words import shown
from a1gm._fit.fill import Rounding, check_rounding
from a1gm._fit.fit import RankOneFit
from a1gm._fit.sure.arguments import check_level
from a1gm._rows.files.source import (
    FORMATS,
    FoundFiles,
    PathOrPaths,
    TableOptions,
    find_files,
    missing_file,
    suffix_of,
)
from a1gm._rows.files.table import TableFiles
from a1gm._write.fill import FillFiles, format_of, is_stream
from a1gm.exceptions import LabelError, Option, ParameterError


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
    how = {"mark": mark, "interval": interval, "round": round, "overwrite": overwrite}
    return fill_file(src, dst, fit, on_undetermined, options, **how).fit


def fill_file(
    src: PathOrPaths,
    dst: str | os.PathLike[str],
    fit: RankOneFit | None,
    on_undetermined: OnUndetermined | None,
    options: Mapping[str, Any],
    **how: Any,
) -> FillFiles:
    """Write a table file with its missing cells filled, and count them.

    ``how`` are the other options of ``impute_file``.
    """
    reading, fitting = split_options(options, on_undetermined or "warn")
    if how["interval"] is not None:
        check_level(how["interval"], "interval")
    check_rounding(how["round"])
    found = find_files(src)
    check_place(found, dst, overwrite=how["overwrite"])
    if fit is None:
        files = TableFiles(found, reading, are_read_twice=True)
        fit = fit_files(files, fitting)  # warns of the cells that stay missing
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
            left = "ignore"  # the fit has warned of its own files
    allowed = fitting.negatives == "allow"
    done = FillFiles(files, fit, left, fitting.progress, allowed, **how)
    done.write(dst)
    return done


def check_place(
    found: FoundFiles,
    dst: str | os.PathLike[str],
    *,
    overwrite: bool,
    to_one: bool = False,
    model: str | None = None,
) -> None:
    """Raise for a target that cannot be written, before reading anything.

    With ``to_one`` all files go to one. No input is replaced, nor is a ``model``.
    """
    paths = found.paths
    sources = paths if model is None else [*paths, model]
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
    if is_stream(dst):
        raise ParameterError("Several files are filled in a folder, not in a stream.")
    kind = suffix_of(dst)
    like_input = Path(found.given).is_dir() and kind == suffix_of(found.given)
    if kind in FORMATS and not like_input and not Path(dst).is_dir():
        raise ParameterError(
            f"Several files are filled in a folder, and {shown(dst)} is named like one "
            "file. Name a folder: it gets files of the same names."
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
        fitted = *own.paths, *own.empty, *own.broken
        real, again = ({Path(p).resolve() for p in x} for x in (fitted, found.paths))
        if real == again:
            own.check_unchanged()
            return own
    names = options.columns or fit.col_labels
    if names is None or len(names) != len(fit.col_factor):
        raise LabelError(
            f"The fit has {len(fit.col_factor)} columns without names. Pass ",
            Option("columns"),
            " with the columns of the file they belong to, in the order of the fit.",
        )
    files = TableFiles(found, options, are_read_twice=True)
    columns = [str(name) for name in names]
    return files.choosing(reason="the fit has", columns=columns, exclude=())
