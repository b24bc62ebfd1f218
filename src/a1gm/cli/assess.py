"""``a1gm assess``: whether rank 1 is right for a table."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any

import typer

from a1gm._base.words import counted, listed
from a1gm.cli.app import command
from a1gm.cli.options import (
    Options,
    SampleOption,
    TableArgument,
    command_style,
    progress_bar,
)
from a1gm.cli.tables import (
    check_needs_long,
    describe,
    describe_long,
    has_many_keys,
    long_words,
    open_table,
    read_long,
    weighting_of,
)

if TYPE_CHECKING:
    from a1gm import Assessment
    from a1gm._api.assess import Trial
    from a1gm.tensor.assess import TensorAssessment

_KEYS_OF_MARGINS = "best", "means_of", "n_hidden", "verdict"
_KEYS = (
    *("skill", "rival", "lead", "may_be_chance", "coverage", "coverage_by_size"),
    *("autocorrelation", "level", "n_hidden", "n_rows", "n_cols", "verdict"),
)


@command("overwrite", "escape_formulas", "strict", "tol", "max_iter")
def assess(
    file: TableArgument,
    hide: Annotated[
        str, typer.Option(metavar="SHARE", help="The share of cells to hide, or last.")
    ] = "0.1",
    repeats: Annotated[
        int, typer.Option(metavar="N", min=1, help="How often other cells are hidden.")
    ] = 5,
    seed: Annotated[
        int, typer.Option(metavar="N", min=0, help="The seed of the random draw.")
    ] = 0,
    sample: SampleOption = None,
    *,
    options: Options,
) -> None:
    """Test on hidden cells whether rank 1 suits a table.

    Fills are compared with simpler methods. The first sentence of the answer is
    whether rank 1 is better than the best of them. With --hide last the last observed
    cells of rows are hidden, as in forecasting. A large table is judged by a random
    sample of its rows, always the same one. With --long and --by many tables are
    judged, each by itself and all together. With three keys or more the question is
    which keys act together: sets of them are compared on the same hidden cells, by
    default all sets of pairs.

    Example:
      a1gm assess sales.csv --id shop
      a1gm assess sales.csv --long shop,month,sales --by country
      a1gm assess counts.csv --long site,year,month,count
      a1gm assess sales.csv --id shop --hide last --json | jq .skill
    """
    import a1gm
    from a1gm._api.assess import Trial
    from a1gm._rows.labels import plain_text

    share: Any = hide
    with suppress(ValueError):
        share = float(hide)
    how: Any = {"negatives": options.negatives, "sample": sample}
    trial = Trial(share, repeats, seed, **how)
    keys: Sequence[str] = _KEYS
    if options.long is None:
        result = _judge(trial, file, options)
    else:
        if has_many_keys(options):
            keys, how = _KEYS_OF_MARGINS, {"sample": sample, "interactions": "all"}
            if options.interactions == ["all"]:
                options = replace(options, interactions=None)
        long = read_long(file, options)
        how |= long_words(long, options)
        by = long.keys[: -len(how["keys"])]
        result = a1gm.assess(
            how.pop("frame"), share, repeats, seed, by=by or None, **how
        )
        size = counted(len(how["keys"]), "key")
        if by:
            n = len(result.groups) + len(result.failed)
            size = f"{counted(n, 'table')} by {listed(by)}"
        describe_long(long, size, options)
    summary: dict[str, Any] = _summary(result, keys)
    if getattr(result, "groups", None):
        failed = {
            plain_text(k): e.render(command_style) for k, e in result.failed.items()
        }
        groups = {
            plain_text(k): _summary(one, keys) for k, one in result.groups.items()
        }
        summary |= {"groups": groups, "failed": failed}
    options.finish(summary)
    if not options.json:
        sys.stdout.write(f"{result!r}\n")


def _judge(trial: Trial, file: Sequence[str], options: Options) -> Any:
    """Judge a wide table, which is read and not fitted."""
    import a1gm
    from a1gm._rows.files.table import read_beside

    check_needs_long(options)
    files = open_table(file, options)
    name, given = weighting_of(options)
    with progress_bar(f"Reading {files.name}", quiet=options.quiet) as progress:
        if given is None:
            files.check_cells(trial.negatives, progress)
        else:
            rows, _ = files.in_memory(progress=progress)
            given = read_beside(given, files)
    describe(files, options)
    if given is None:
        return trial.judge(files, files.col_labels)
    how: Any = {name: given, "negatives": trial.negatives, "sample": trial.sample}
    return a1gm.assess(rows, trial.hide, trial.repeats, trial.random_state, **how)


def _summary(
    result: Assessment | TensorAssessment, keys: Sequence[str]
) -> dict[str, Any]:
    scores = {name: score._asdict() for name, score in result.scores.items()}
    return {**{key: getattr(result, key) for key in keys}, "scores": scores}
