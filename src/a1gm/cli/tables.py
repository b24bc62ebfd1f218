"""Tables and results of the commands: opened, fitted, described; checked, written."""

from __future__ import annotations

import os
import sys
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from a1gm._base.words import counted, listed, shown
from a1gm.cli.database import is_database
from a1gm.cli.options import Options, UsageError, progress_bar, split_names, to_json
from a1gm.exceptions import OutputError, UndeterminedError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    import pyarrow as pa

    from a1gm._fit.fit import RankOneFit
    from a1gm._fit.scaled import ScaledTable
    from a1gm._rows.files.table import TableFiles
    from a1gm._rows.weights import Weighting
    from a1gm._write.long import LongFile
    from a1gm.nmmf import NMMFFit
    from a1gm.tensor import TensorFit


# -------------------------------------------------------------------------- tables
def open_table(file: str | Sequence[str], options: Options) -> TableFiles:
    """Open a table with the options of the command line."""
    from a1gm._rows.files.source import TableOptions, find_files
    from a1gm._rows.files.table import TableFiles

    if is_database([file] if isinstance(file, str) else file):
        raise UsageError(
            "a1gm fit, impute and inspect take tables of databases; this command takes "
            "files."
        )
    return TableFiles(find_files(file), TableOptions(**options.reading))


def fit_table(
    file: Sequence[str], options: Options, *, uncertainty: bool = False
) -> tuple[RankOneFit, TableFiles]:
    """Fit a table and describe it; ``uncertainty`` keeps what a saved model needs."""
    if options.long is not None:
        long = read_long(file, options)
        return fit_pairs(long, options), long.files
    check_needs_long(options)
    files = open_table(file, options)
    return fit_open(files, options, uncertainty=uncertainty), files


def check_needs_long(options: Options, **more: Any) -> None:
    """Raise for options that a table without ``--long`` does not have."""
    given = {"by": options.by, "interactions": options.interactions, **more}
    for name in [name for name, value in given.items() if value]:
        raise UsageError(f"--{name.replace('_', '-')} needs --long ROW,COLUMN,VALUE.")


def fit_open(
    files: TableFiles, options: Options, *, uncertainty: bool = False
) -> RankOneFit:
    """Fit a wide table under a progress bar, and describe it."""
    from a1gm._api.fit import FitOptions
    from a1gm._api.fit_file import fit_files

    with progress_bar(f"Reading {files.name}", quiet=options.quiet) as progress:
        fitting = FitOptions(progress=progress, **options.fitting)
        weighting = weighting_of(options)
        fit = fit_files(files, fitting, weighting, uncertainty=uncertainty)
    describe(files, options)
    return fit


def weighting_of(options: Options) -> Weighting:
    """The value of --weights or --exposure, with its name."""
    from a1gm._rows.weights import weights_or_exposure

    return weights_or_exposure(options.weights, options.exposure)


def files_beside(options: Options) -> list[str]:
    """The files that a command reads beside its table."""
    given = options.weights or options.exposure
    return [] if given is None or options.long is not None else [given]


def describe(files: TableFiles, options: Options) -> None:
    """Print which columns form the table and which do not."""
    if options.quiet:
        return
    size = counted(files.n_rows or 0, "row")
    uses = uses_of(files)
    columns = counted(files.n_cols, "numeric column")
    options.echo(f"{files.name}: {size}, {columns} ({listed(uses['fitted'], 5)}).")
    if hidden := files.found.hidden:
        options.echo(f"Hidden files left out: {listed(hidden, 5)}.")
    for use, names in uses.items():
        if names and use != "fitted":
            options.echo(f"{use[0].upper()}{use[1:]}: {listed(names)}.")


def uses_of(files: TableFiles) -> dict[str, list[str]]:
    """The columns of each use."""
    from a1gm._rows.files.table import title_of

    return {
        "fitted": [title_of(name) for name in files.names],
        "row labels": [title_of(name) for name in files.id],
        "kept as they are": files.left_out,
    }


# --------------------------------------------------------------- one row per cell
def read_long(file: Sequence[str], options: Options) -> LongFile:
    """Read the files that ``--long`` and ``--by`` describe."""
    from a1gm._write.long import LongFile

    for name in ("columns", "exclude", "id"):
        if getattr(options, name):
            raise UsageError(f"--long names the columns that are used; drop --{name}.")
    files = open_table(file, options)
    names, by = split_names([options.long or ""]), split_names(options.by)
    if len(names) < 3 or len({*names, *by}) < len(names) + len(by):
        raise UsageError(
            "--long takes three different columns or more, row key, column key and "
            f"value, such as --long shop,month,sales; got {options.long!r}. The "
            f"columns are: {listed(files.first.names)}."
        )
    for name in ("by", "interactions", "negatives"):
        is_given = getattr(options, name) not in (None, [], "raise")
        if is_given and (len(names) > 3) != (name == "interactions"):
            n = "three keys or more" if name == "interactions" else "two keys"
            raise UsageError(f"--{name} is for {n}; --long names {len(names) - 1}.")
    weight = weighting_of(options)[1]
    files.check_has([*names, *by, *([] if weight is None else [weight])])
    # Each of several tables is checked by itself; more keys take no negative cells.
    negatives: Any = None if by or len(names) > 3 else options.negatives
    needed = "--long names as the value"
    with progress_bar(f"Reading {files.name}", quiet=options.quiet) as progress:
        return LongFile(
            files, by + names[:-1], names[-1], negatives, progress, needed, weight
        )


def fit_pairs(long: LongFile, options: Options) -> Any:
    """Fit the one table of a long file, or its tables with ``--by``; describe it."""
    from a1gm import fit_groups, fit_long

    fits: Any
    given: dict[str, Any] = {**long_words(long, options), **options.fitting}
    if by := split_names(options.by):
        fits = fit_groups(by=by[0] if len(by) == 1 else by, **given)
        for error in fits.failed.values():
            if isinstance(error, UndeterminedError):
                raise error
        n = counted(len(fits) + len(fits.failed), "table")
        size = f"{n} by {listed(by)}"
    else:
        with progress_bar(f"Fitting {long.files.name}", quiet=options.quiet):
            fits = fit_long(**given)
        if len(fits.shape) == 2:
            fits._table.in_file = True
        size = _size(fits.shape, long)
    describe_long(long, size, options)
    return fits


def long_words(long: LongFile, options: Options) -> dict[str, Any]:
    """A long file and its columns, in the words of ``a1gm.fit_long``."""
    from a1gm._rows.long import PlacedFrame

    return {
        "frame": PlacedFrame(long.frame, long.files.place_of),
        "keys": long.keys[len(split_names(options.by)) :],
        "value": long.value,
        "duplicates": options.duplicates,
        **dict([weighting_of(options)]),
        **({"interactions": sets_of(options)} if options.interactions else {}),
    }


def sets_of(options: Options) -> list[str] | None:
    """The sets of keys of ``--interactions``, such as ``site:year``."""
    sets = split_names(options.interactions)
    if sets and not any(":" in one for one in sets):
        keys = sets if len(sets) > 1 else split_names([options.long or ""])
        raise UsageError(
            "--interactions joins keys that act together by colons: write "
            f"{':'.join(keys[:2])}, not {','.join(sets)}."
        )
    return sets or None


def n_margins(options: Options) -> int:
    """Number of margins that ``--long`` and ``--interactions`` make."""
    from a1gm.tensor.read import margins_of

    keys = split_names([options.long or ""])[:-1]
    return len(margins_of(sets_of(options), keys))


def has_many_keys(options: Options) -> bool:
    """Whether ``--long`` names three keys or more."""
    return len(split_names([options.long or ""])) > 3


def _size(shape: Sequence[int], long: LongFile) -> str:
    """How many values each key has, in words."""
    counts = [counted(shape[0], "value"), *(f"{n:,}" for n in shape[1:])]
    pairs = zip(counts, long.keys, strict=True)
    return " × ".join(f"{count} of {key!r}" for count, key in pairs)


def describe_long(long: LongFile, size: str, options: Options) -> None:
    """Print how many rows a long file has, and the size of what they are."""
    rows = counted(len(long.numbers), "row")
    options.echo(f"{long.files.name}: {rows}, {size}.")


# ------------------------------------------------------------------------- results
@contextmanager
def usage_errors() -> Iterator[None]:
    """Turn an OutputError into a UsageError: no data were read yet."""
    try:
        yield
    except OutputError as error:
        raise UsageError(error.all_parts) from error


def check_stdout(out: str | None, options: Options) -> None:
    """Raise if a table is to go to standard output, which is closed or taken."""
    if out == "-" and getattr(sys.stdout, "name", "") == os.devnull:
        raise UsageError("-o - needs standard output, which is closed.")
    if out == "-" and options.json:
        raise UsageError("-o - and --json both need standard output; drop one.")


def check_outputs(
    out: str,
    names: Sequence[str],
    inputs: Iterable[str | Sequence[str] | None],
    options: Options,
) -> None:
    """Raise if a file, or the named files in a folder, cannot be written.

    No command replaces a file that it reads.
    """
    from a1gm._base.atomic import check_target
    from a1gm._rows.files.source import find_files

    place = Path(out)
    if names and place.exists() and not place.is_dir():
        raise UsageError(f"{shown(out)} is a file; name a folder for the results.")
    targets = [place / name for name in names if place.is_dir()] if names else [place]
    given = [some for some in (*inputs, files_beside(options)) if some]
    sources = [path for some in given for path in find_files(some).paths]
    with usage_errors():
        for target in targets:
            check_target(target, overwrite=options.overwrite, sources=sources)


def write_results(
    out: str,
    tables: dict[str, pa.Table],
    summary: dict[str, Any],
    options: Options,
    *lines: str,
    model: TensorFit | None = None,
) -> None:
    """Write tables, the summary and a model to a folder; ``lines`` are for people."""
    from a1gm._base.atomic import output_folder
    from a1gm._write.fill import write_table

    with output_folder(out, overwrite=options.overwrite) as place:
        for name, table in tables.items():
            write_table(place(name), table, **options.writing)
        write_summary(place("fit.json"), summary, options)
        if model is not None:
            model.save(place("model.a1gm"), overwrite=options.overwrite)
    names = [*tables, "fit.json", *["model.a1gm"] * (model is not None)]
    options.finish(summary, *lines, f"Wrote {', '.join(names)} to {shown(out)}.")


def write_summary(path: Path, summary: dict[str, Any], options: Options) -> None:
    """Write the summary of a command to a file."""
    from a1gm._base.atomic import atomic_write

    with atomic_write(path, overwrite=options.overwrite) as file:
        file.write(to_json(summary).encode())


def quality_of(fit: RankOneFit | NMMFFit | ScaledTable | TensorFit) -> dict[str, Any]:
    """Quality of a fit, for the summary of any command."""
    keys = ("divergence", "certificate", "cell_error", "converged", "solver", "n_iter")
    last = "n_blocks" if hasattr(fit, "n_blocks") else "n_free"
    return {key: getattr(fit, key) for key in (*keys, last)}
