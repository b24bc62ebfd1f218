"""``a1gm assess``: whether rank 1 is right for a table."""

from __future__ import annotations

import sys
from contextlib import suppress
from dataclasses import replace
from typing import Annotated, Any

import typer

from a1gm.cli.app import command
from a1gm.cli.options import Options, SampleOption, TableArgument
from a1gm.cli.tables import fit_table, rows_of, weights_of


@command("by", "overwrite", "escape_formulas")
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
    sample of its rows, always the same one.

    Example:
      a1gm assess sales.csv --id shop
      a1gm assess sales.csv --id shop --hide last --json | jq .skill
    """
    import a1gm

    share: Any = hide
    with suppress(ValueError):
        share = float(hide)
    fit, _ = fit_table(file, options)
    rows, cells = rows_of(fit, sample)
    how: Any = {"negatives": options.negatives, "sample": max(len(cells), 2)}
    how |= weights_of(fit, rows)
    result = a1gm.assess(cells, share, repeats, seed, **how)
    result = replace(result, n_rows=(len(cells), fit.shape[0]))
    keys = "skill", "coverage", "level", "n_hidden", "n_rows", "verdict"
    scores = {name: score._asdict() for name, score in result.scores.items()}
    summary = {key: getattr(result, key) for key in keys}
    options.finish({**summary, "scores": scores})
    if not options.json:
        sys.stdout.write(f"{result!r}\n")
