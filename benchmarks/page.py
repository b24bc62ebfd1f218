"""Put the tables of benchmarks/results into README.md and docs.

    python benchmarks/page.py

Each table stands between ``<!-- name -->`` and ``<!-- end -->`` in its page.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path

import peers
import table1
import zoo as zoo_of_tables
from measuring import Row, duration, markdown, read_csv

ROOT = Path(__file__).parents[1]
RESULTS = Path(__file__).parent / "results"
IN_README = {  # what people would use instead, and the words for it
    "`a1gm.fit`": "`a1gm.fit`",
    "alternating scaling, NumPy": "alternating scaling, ten lines of NumPy",
    "POT Sinkhorn on the mask": "POT, Sinkhorn's algorithm",
    "ipfn on the mask": "ipfn, proportional fitting",
    "pyfixest fepois": "pyfixest, Poisson regression",
    "fereg fepois": "fereg, Poisson regression in Rust",
    "hdfe-stream fepois, from a file": "hdfe-stream, the same from a Parquet file",
    "glum Poisson GLM": "glum, Poisson regression",
    "statsmodels Poisson GLM": "statsmodels, Poisson regression",
}
SAME = 1e-6  # largest relative difference of a cell that counts as the same answer


def engine() -> list[Row]:
    return [
        r for r in read_csv(RESULTS / "engine.csv") if r["against"] != "certificate"
    ]


def rivals() -> list[Row]:
    """What other packages take, with holes at random and across a bridge.

    The ratios are those of the times in the table, so that a reader can divide.
    """
    found = {(r["table"], r["rival"]): r for r in read_csv(peers.RESULTS)}
    return [
        {
            "300 x 40": words,
            "10 % of the cells missing": _takes(found["scattered", name]),
            "times": _times(found, "scattered", name),
            "two halves joined by 3 cells": _takes(found["bridge", name]),
            "times `a1gm.fit`": _times(found, "bridge", name),
        }
        for name, words in IN_README.items()
        if ("scattered", name) in found  # measured in that run
    ]


def _takes(row: Row) -> str:
    off = float(str(row["worst_cell"]))
    shown = f" (cells off by {off:.2%})" if off > SAME else ""
    return duration(float(str(row["seconds"]))) + shown


def _times(
    found: Mapping[tuple[str, str], dict[str, str]], table: str, name: str
) -> str:
    """Two digits: as many as the times that are printed can give."""
    own = float(found[table, "`a1gm.fit`"]["seconds"])
    ratio = float(f"{float(found[table, name]['seconds']) / own:.2g}")
    return f"{ratio:,.0f}" if ratio >= 10 else f"{ratio:g}"


def results(name: str) -> Callable[[], list[Row]]:
    """Read the rows of a benchmark; none if it has not had its run yet."""
    path = RESULTS / f"{name}.csv"
    return lambda: list(read_csv(path)) if path.exists() else []


def zoo() -> list[Row]:
    """Every row of the sparse zoo, last the worst ratios and the geometric mean."""
    if not zoo_of_tables.RESULTS.exists():  # no whole run yet
        return []
    rows: list[Row] = list(read_csv(zoo_of_tables.RESULTS))
    for name, value in zoo_of_tables.summary(rows).items():
        rows.append(
            dict.fromkeys(rows[0], "") | {"table": name, "ratio": f"{value:.2g}"}
        )
    return rows


PAGES: dict[str, dict[str, Callable[[], list[Row]]]] = {
    "README.md": {"evidence": results("evidence"), "rivals": rivals},
    "docs/paper.md": {
        "table1": lambda: [table1.display(r) for r in read_csv(table1.RESULTS)],
        "printed": lambda: table1.beside_printed(
            read_csv(table1.RESULTS), RESULTS / "table1_printed.csv"
        ),
        "peers": lambda: peers.pivot(read_csv(peers.RESULTS)),
    },
    "docs/guide-how-sure.md": {
        "coverage": results("coverage"),
        "coverage of indices": results("coverage_of_indices"),
        "coverage by size": results("coverage_by_size"),
    },
    "docs/performance.md": {
        "engine": engine,
        "paths": results("paths"),
        "zoo": zoo,
        "nmmf": results("nmmf"),
        "tensor": results("tensor"),
        "uncertainty": results("uncertainty"),
    },
}


def with_tables(page: str) -> str:
    """Return the text of a page with its tables replaced by those of the results."""
    text = (ROOT / page).read_text(encoding="utf-8")
    for name, rows in PAGES[page].items():
        place = rf"(<!-- {name} -->\n).*?(<!-- end -->)"
        found = rows()
        table = markdown(found) if found else "No figures yet."
        text, n_places = re.subn(place, rf"\1\n{table}\n\n\2", text, flags=re.DOTALL)
        if n_places != 1:
            raise SystemExit(f"{page} has {n_places} places for the table {name}")
    return text


if __name__ == "__main__":
    for page in PAGES:
        (ROOT / page).write_text(with_tables(page), encoding="utf-8")
