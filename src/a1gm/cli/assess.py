"""``a1gm assess``: whether rank 1 is right for a table."""

from __future__ import annotations

import sys
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any

import typer

from a1gm.cli.options import Options, TableArgument, UsageError, command
from a1gm.cli.results import finish

if TYPE_CHECKING:
    from a1gm._api.assess import Hide


@partial(command, without=("by", "overwrite"))
def assess_command(
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
    *,
    options: Options,
) -> None:
    r"""Test on hidden cells whether rank 1 suits a table.

    Fills are compared with simpler methods. The first sentence of the answer is
    whether rank 1 is better than the column means. With --hide last the last observed
    cells of rows are hidden, as in forecasting.

    \b
    Example:
      a1gm assess sales.csv --id shop
      a1gm assess sales.csv --id shop --hide last --json | jq .skill
    """
    from a1gm import assess
    from a1gm.cli.tables import cells_of, fit_table

    share = _share(hide)
    fit, _ = fit_table(file, options)
    negatives: Any = options.negatives
    found = assess(cells_of(fit), share, repeats, seed, negatives=negatives)
    keys = "skill", "coverage", "level", "n_hidden", "verdict"
    scores = {name: score._asdict() for name, score in found.scores.items()}
    about = {key: getattr(found, key) for key in keys}
    finish({**about, "scores": scores}, options)
    if not options.json:
        sys.stdout.write(f"{found!r}\n")


def _share(text: str) -> Hide:
    if text == "last":
        return "last"
    try:
        share = float(text)
    except ValueError:
        share = -1.0
    if not 0.0 < share < 1.0:
        raise UsageError(f"--hide must be between 0 and 1, or last, got {text!r}.")
    return share
