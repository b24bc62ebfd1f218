"""Put the tables of benchmarks/results into README.md and docs.

    python benchmarks/page.py

Each table stands between ``<!-- name -->`` and ``<!-- end -->`` in its page.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import peers
import table1
from measuring import Row, markdown, read_csv

ROOT = Path(__file__).parents[1]
RESULTS = Path(__file__).parent / "results"
IN_README = (  # the rows of the engine's table that say most
    "100,000 x 500, grid",
    "1,000 x 1,000, at random",
    "20,000 x 20, banded",
    "5,000 x 2,000, 5 % at random",
)


def engine() -> list[Row]:
    return [
        r for r in read_csv(RESULTS / "engine.csv") if r["against"] != "certificate"
    ]


def speed() -> list[Row]:
    columns = "work", "a1gm", "against", "takes"
    first = {row["work"]: row for row in reversed(engine())}
    return [{name: first[work][name] for name in columns} for work in IN_README]


def results(name: str) -> Callable[[], list[Row]]:
    return lambda: list(read_csv(RESULTS / f"{name}.csv"))


PAGES: dict[str, dict[str, Callable[[], list[Row]]]] = {
    "README.md": {"speed": speed},
    "docs/paper.md": {
        "table1": lambda: [table1.display(r) for r in read_csv(table1.RESULTS)],
        "peers": lambda: peers.pivot(read_csv(peers.RESULTS)),
    },
    "docs/guide-how-sure.md": {"coverage": results("coverage")},
    "docs/performance.md": {
        "engine": engine,
        "paths": results("paths"),
        "nmmf": results("nmmf"),
    },
}


def with_tables(page: str) -> str:
    """Return the text of a page with its tables replaced by those of the results."""
    text = (ROOT / page).read_text(encoding="utf-8")
    for name, rows in PAGES[page].items():
        place = rf"(<!-- {name} -->\n).*?(<!-- end -->)"
        table = markdown(rows())
        text, n_places = re.subn(place, rf"\1\n{table}\n\n\2", text, flags=re.DOTALL)
        if n_places != 1:
            raise SystemExit(f"{page} has {n_places} places for the table {name}")
    return text


if __name__ == "__main__":
    for page in PAGES:
        (ROOT / page).write_text(with_tables(page), encoding="utf-8")
