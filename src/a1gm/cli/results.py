"""What commands print and the folders that they write."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from a1gm._base.words import shown
from a1gm.cli.console import say, text_of_json
from a1gm.cli.options import Options, UsageError, usage_errors

if TYPE_CHECKING:
    from a1gm._fit.fit import RankOneFit
    from a1gm.nmmf import NMMFFit


def check_folder(out: str, names: Sequence[str], options: Options) -> None:
    """Raise if the folder cannot take the results, before the data are read."""
    from a1gm._base.atomic import check_target

    folder = Path(out)
    if folder.exists() and not folder.is_dir():
        raise UsageError(f"{shown(out)} is a file; name a folder for the results.")
    with usage_errors():
        for name in names if folder.exists() else ():
            check_target(folder / name, overwrite=options.overwrite)


def write_summary(
    place: Callable[[str], Any], summary: dict[str, Any], options: Options
) -> None:
    """Write the summary to the folder of the results."""
    from a1gm._base.atomic import atomic_write

    with atomic_write(place("fit.json"), overwrite=options.overwrite) as file:
        file.write(text_of_json(summary).encode())


def finish(summary: dict[str, Any], options: Options, *lines: str) -> None:
    """Print a summary for programs, if asked for, and the lines for people."""
    if options.json:
        sys.stdout.write(text_of_json(summary))
    for line in () if options.quiet else lines:
        say(line)


def quality_of(fit: RankOneFit | NMMFFit) -> dict[str, Any]:
    """How good a fit is, for the summary of any command."""
    keys = ("divergence", "certificate", "cell_error", "converged", "solver", "n_iter")
    return {key: getattr(fit, key) for key in (*keys, "n_blocks")}
