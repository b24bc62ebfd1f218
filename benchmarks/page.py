"""Put the tables of benchmarks/results into docs/paper.md.

    python benchmarks/page.py

Each table of the page stands between ``<!-- name -->`` and ``<!-- end -->``.
"""

from __future__ import annotations

import re
from pathlib import Path

import peers
import table1
from measuring import markdown, read_csv

PAGE = Path(__file__).parents[1] / "docs" / "paper.md"


def tables() -> dict[str, str]:
    return {
        "table1": markdown([table1.display(r) for r in read_csv(table1.RESULTS)]),
        "peers": markdown(peers.pivot(read_csv(peers.RESULTS))),
    }


def with_tables(page: str) -> str:
    """Return the page with its tables replaced by those of the results."""
    for name, table in tables().items():
        place = rf"(<!-- {name} -->\n).*?(<!-- end -->)"
        page, n_places = re.subn(place, rf"\1\n{table}\n\n\2", page, flags=re.DOTALL)
        if n_places != 1:
            raise SystemExit(f"{PAGE.name} has {n_places} places for the table {name}")
    return page


if __name__ == "__main__":
    PAGE.write_text(with_tables(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
