"""``a1gm assess``: whether rank 1 is right for a table."""

from __future__ import annotations

import sys
from functools import partial
from typing import TYPE_CHECKING, Annotated

import typer

from a1gm.cli.common import Common, TableArgument, UsageError, command
from a1gm.cli.console import text_of_json

if TYPE_CHECKING:
    from a1gm._api.assess import Hide
    from a1gm._base.types import Negatives


@partial(command, hidden=("by", "overwrite"))
def assess_command(
    file: TableArgument,
    hide: Annotated[
        str,
        typer.Option(
            "--hide", metavar="SHARE", help="The share of known cells to hide, or last."
        ),
    ] = "0.1",
    repeats: Annotated[
        int,
        typer.Option(
            "--repeats",
            metavar="N",
            min=1,
            help="How often cells are hidden, each time others.",
        ),
    ] = 5,
    seed: Annotated[
        int,
        typer.Option(
            "--seed", metavar="N", min=0, help="Another seed hides other cells."
        ),
    ] = 0,
    *,
    common: Common,
) -> None:
    r"""Hide known cells, fill them, and compare with simpler guesses.

    The first sentence says whether rank 1 is better than the column means. With --hide
    last the last known cells of rows are hidden, as a forecaster would.

    \b
    Example:
      a1gm assess sales.csv --id shop
      a1gm assess sales.csv --id shop --hide last --json | jq .skill
    """
    from a1gm._api.assess import assess
    from a1gm._rows.files.whole import read_whole
    from a1gm.cli.files import open_files, say_table

    negatives: Negatives = "allow" if common.negatives == "allow" else "raise"
    if common.long is not None:
        from a1gm.cli.long import LongInput

        given = LongInput(file, common)
        values = given.spread_out(given.fit())
    else:
        files = open_files(file, common)
        values = read_whole(files, negatives).values
        say_table(files, common)
    found = assess(values, _share(hide), repeats, seed, negatives=negatives)
    if common.json:
        scores = {name: score._asdict() for name, score in found.scores.items()}
        summary = {
            "skill": found.skill,
            "coverage": found.coverage,
            "level": found.level,
            "n_hidden": found.n_hidden,
            "scores": scores,
            "verdict": found.verdict,
        }
        sys.stdout.write(text_of_json(summary))
    else:
        sys.stdout.write(f"{found!r}\n")


def _share(text: str) -> Hide:
    if text == "last":
        return "last"
    try:
        share = float(text)
    except ValueError:
        share = -1.0
    if not 0.0 < share < 1.0:
        raise UsageError(f"--hide is a share between 0 and 1, or last, not {text!r}.")
    return share
