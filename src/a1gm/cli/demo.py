"""``a1gm demo``: the commands on a small realistic table, in one screen."""

from __future__ import annotations

import math
import shlex
from pathlib import Path
from typing import TYPE_CHECKING

from a1gm.cli.app import command
from a1gm.cli.assess import assess
from a1gm.cli.impute import impute
from a1gm.cli.options import TABLE_OPTIONS, FolderOption, Options
from a1gm.cli.report import report
from a1gm.cli.tables import check_outputs

if TYPE_CHECKING:
    from a1gm._base.types import Floats

_CITIES = ("Aarhus", "Bergen", "Cork", "Delft", "Espoo", "Faro", "Ghent", "Huelva")
_MONTHS = [f"{year}-{month:02d}" for year in (2023, 2024) for month in range(1, 13)]


@command(*TABLE_OPTIONS)
def demo(out: FolderOption = "demo-output", *, options: Options) -> None:
    """Fill a small table and show how good the fills are.

    Forty shops, two years of monthly sales, all simulated. Shops that opened late have
    no sales before, some tills were broken, and one shop has not opened yet: its cells
    cannot be known. Nothing outside the folder is touched.

    Example:
      a1gm demo
      a1gm demo -o my-demo --overwrite
    """
    folder, names = Path(out), ["sales.csv", "filled.csv", "report.html"]
    table, filled, page = (str(folder / name) for name in names)
    text = demo_table()
    if not (folder / "sales.csv").exists() or Path(table).read_text("utf-8") != text:
        check_outputs(out, names, (), options)  # not the folder of a demo
    folder.mkdir(parents=True, exist_ok=True)
    Path(table).write_text(text, encoding="utf-8")
    options.echo(f"{table}: simulated sales of forty shops, with missing cells.")
    shared = {"file": [table], "id": ["shop"], "debug": options.debug}
    replaced = {"overwrite": True, **shared}

    options.echo(f"\n$ a1gm impute {shlex.quote(table)} -o {shlex.quote(filled)}")
    impute(out=filled, quiet=options.quiet, **replaced)
    if not options.quiet:
        options.echo(f"\n$ a1gm assess {shlex.quote(table)}")
        assess(quiet=True, **shared)
    options.echo(f"\n$ a1gm report {shlex.quote(table)} -o {shlex.quote(page)}")
    report(out=page, title="Sales of forty shops", quiet=True, **replaced)
    options.echo(f"Open {page} in a browser: fills, their errors, the worst misfit.")


def demo_table() -> str:
    """Make the table: the same text every time."""
    lines = [",".join(["shop", "city", *_MONTHS])]
    for i, row in enumerate(demo_sales()):
        cells = ["" if math.isnan(cell) else str(int(cell)) for cell in row]
        lines.append(",".join([f"S{i + 1:02d}", _CITIES[i % len(_CITIES)], *cells]))
    return "\n".join(lines) + "\n"


def demo_sales() -> Floats:
    """Make the numbers of the table, NaN where they are missing."""
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
