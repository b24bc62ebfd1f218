"""``a1gm demo``: a small realistic table, walked through in one screen."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from a1gm.cli.console import say
from a1gm.cli.options import TABLE_OPTIONS, FolderOption, Options, command
from a1gm.cli.results import check_folder

if TYPE_CHECKING:
    from collections.abc import Iterator

    from a1gm._base.types import Floats

_CITIES = ("Aarhus", "Bergen", "Cork", "Delft", "Espoo", "Faro", "Ghent", "Huelva")
_MONTHS = [f"{year}-{month:02d}" for year in (2023, 2024) for month in range(1, 13)]
_SHOPS = [f"S{i + 1:02d}" for i in range(40)]
#: Filled cells that are shown: before a shop opened, and two broken tills.
_SHOWN = (("S04", "2023-02"), ("S20", "2023-08"), ("S37", "2024-06"))


@partial(command, without=TABLE_OPTIONS)
def demo_command(
    out: FolderOption = "demo-output",
    *,
    options: Options,
) -> None:
    r"""Fill a small table and show how good the fills are.

    Forty shops, two years of monthly sales, all simulated. Shops that opened late have
    no sales before, some tills were broken, and one shop has not opened yet: its cells
    cannot be known. Nothing outside the folder is touched.

    \b
    Example:
      a1gm demo
      a1gm demo -o my-demo --overwrite
    """
    from a1gm.cli.impute import impute_command
    from a1gm.cli.report import report_command

    check_folder(out, [], options)
    folder = Path(out)
    folder.mkdir(parents=True, exist_ok=True)
    table = str(folder / "sales.csv")
    filled, page = str(folder / "filled.csv"), str(folder / "report.html")
    Path(table).write_text(demo_table(), encoding="utf-8")
    if not options.quiet:
        for line in _walk(table, filled, page):
            say(line)
    # The folder belongs to the demo: running it twice is no accident.
    shared = {"overwrite": True, "id": ["shop"], "quiet": True, "debug": options.debug}
    impute_command(file=[table], out=filled, **shared)
    report_command(file=[table], out=page, title="Sales of forty shops", **shared)


def _walk(table: str, filled: str, page: str) -> Iterator[str]:
    """Describe what is missing, how it is filled, and how good that is."""
    import numpy as np

    import a1gm
    from a1gm.cli.inspect import picture

    sales = demo_sales()
    holes = np.isnan(sales)
    yield f"{table}: {holes.sum()} of {sales.size} cells are missing (dark)."
    yield "Simulated monthly sales of forty shops, four to a line, 2023-01 to 2024-12:"
    yield from picture(holes.reshape(10, 4, 24).mean(axis=1))
    fit = a1gm.fit(sales[:-1])  # the last shop has not opened
    sure = fit.uncertainty()
    values, bounds = fit.impute(sales[:-1]), sure.interval(sales[:-1])
    yield f"\nFilled (a1gm impute {table} -o {filled}):"
    n_filled = holes[:-1].sum()
    yield f"{n_filled} cells. Three of them (--interval 0.95 adds the bounds):"
    for shop, month in _SHOWN:
        at = _SHOPS.index(shop), _MONTHS.index(month)
        low, high = (bound[at] for bound in bounds)
        yield f"  {shop}  {month}  {values[at]:7,.0f}   95 %: {low:,.0f} to {high:,.0f}"
    total = sure.totals(by="all")
    value, error = total.value[0], total.se[0]
    yield f"  all together  {value:7,.0f}   ± {error:,.0f} (standard error)"
    yield "24 cells stay missing: shop S40 has not opened, so its size is not known."
    yield f"\nIs that right? (a1gm assess {table})"
    found = a1gm.assess(sales, random_state=0)
    yield "10 % of the known cells were hidden, five times. Median error of a guess:"
    for method in ("rank 1", "column means"):
        yield f"  {method:<14}{found.scores[method].median_relative_error:6.1%}"
    yield f"{found.verdict.partition(':')[0]}."
    yield f"\nA page to show (a1gm report {table} -o {page}):"
    residuals = fit.residuals(sales[:-1])
    i, j = np.unravel_index(np.nanargmax(np.abs(residuals)), residuals.shape)
    expected = fit.reconstruct()[i, j]
    yield (
        f"Its worst-fitting cell: {_SHOPS[i]} sold {sales[i, j]:,.0f} in {_MONTHS[j]}, "
        f"where {expected:,.0f} was to be expected."
    )
    yield f"Open {page} in a browser."


def demo_table() -> str:
    """Make the table: the same text every time."""
    import numpy as np

    lines = [",".join(["shop", "city", *_MONTHS])]
    for i, row in enumerate(demo_sales()):
        cells = ["" if np.isnan(cell) else str(int(cell)) for cell in row]
        lines.append(",".join([_SHOPS[i], _CITIES[i % len(_CITIES)], *cells]))
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
