"""``a1gm demo``: a small realistic table, walked through."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from a1gm.cli.common import Common, check_folder, command
from a1gm.cli.console import say

if TYPE_CHECKING:
    from a1gm._base.types import Floats

_CITIES = ("Aarhus", "Bergen", "Cork", "Delft", "Espoo", "Faro", "Ghent", "Huelva")


@command
def demo_command(
    out: Annotated[
        str, typer.Option("--out", "-o", help="The folder the demo writes to.")
    ] = "demo-output",
    *,
    common: Common,
) -> None:
    r"""Write a small table with holes and walk through inspect, impute and report.

    Forty shops, two years of monthly sales. Shops that opened late have no sales
    before, some tills were broken, and one shop has not opened yet: its cells cannot be
    known. Nothing outside the folder is touched.

    \b
    Example:
      a1gm demo
      a1gm demo -o my-demo --overwrite
    """
    from dataclasses import replace

    from a1gm.cli.impute import impute_command
    from a1gm.cli.inspect import inspect_command
    from a1gm.cli.report import report_command

    check_folder(out, [], common)
    folder = Path(out)
    folder.mkdir(parents=True, exist_ok=True)
    # The folder is the demo's own: running it twice is no accident.
    shared = vars(replace(common, overwrite=True, id=["shop"]))
    table = str(folder / "sales.csv")
    filled, page = str(folder / "filled.csv"), str(folder / "report.html")
    Path(table).write_text(demo_table(), encoding="utf-8")
    _show(f"a1gm inspect {table} --id shop", common)
    inspect_command(file=[table], **shared)
    _show(f"a1gm impute {table} --id shop -o {filled}", common)
    impute_command(
        file=[table],
        out=filled,
        mark=False,
        interval=None,
        digits=None,
        round="none",
        model=None,
        **shared,
    )
    _show(f"a1gm report {table} --id shop -o {page}", common)
    report_command(file=[table], out=page, title="Sales of forty shops", **shared)
    if not common.quiet:
        say(f"\nOpen {page} in a browser; compare {table} with {filled}.")


def demo_table() -> str:
    """Make the table: the same text every time."""
    import numpy as np

    months = [f"{year}-{month:02d}" for year in (2023, 2024) for month in range(1, 13)]
    lines = [",".join(["shop", "city", *months])]
    for i, row in enumerate(_sales()):
        cells = ["" if np.isnan(cell) else str(int(cell)) for cell in row]
        lines.append(",".join([f"S{i + 1:02d}", _CITIES[i % len(_CITIES)], *cells]))
    return "\n".join(lines) + "\n"


def _sales() -> Floats:
    import numpy as np

    rng = np.random.default_rng(2022)
    size = rng.lognormal(6, 0.7, 40)
    season = 1 + 0.35 * np.cos((np.arange(24) - 11) * np.pi / 6) + np.arange(24) / 100
    sales = rng.poisson(np.outer(size, season)).astype(np.float64)
    # A third of the shops opened late, ...
    for i in range(0, 39, 3):
        sales[i, : rng.integers(2, 16)] = np.nan
    # ... tills were broken now and then, ...
    sales[rng.random(sales.shape) < 0.03] = np.nan
    # ... one promotion sold far more than usual, and the last shop is still closed.
    sales[7, 16] *= 3
    sales[39] = np.nan
    return sales


def _show(line: str, common: Common) -> None:
    if not common.quiet:
        sys.stdout.flush()
        say(f"\n$ {line}")
