"""The table of ways in and their options on the API page, made from the signatures.

`table()` is inserted when the site is built; `tests/test_docs.py` fails for an option
that a way in lacks without a reason here.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from typing import Any

import typer

import a1gm
from a1gm._api.fit import FitOptions
from a1gm._rows.files.source import TableOptions
from a1gm.cli import load_app

#: The options, each with other names that it goes by.
OPTIONS = {
    "weights": ["sample_weight"],
    "exposure": [],
    "id": [],
    "columns": [],
    "exclude": [],
    "missing": ["missing_values"],
    "absent": [],
    "negatives": [],
    "on_undetermined": ["strict", "fallback"],
    "tol": [],
    "max_iter": [],
    "n_threads": ["threads"],
}

#: The ways in, each with the calls that take its options.
WAYS: dict[str, list[Callable[..., Any]]] = {
    "a1gm.fit": [a1gm.fit],
    "a1gm.impute": [a1gm.impute, a1gm.fit],
    "a1gm.fit_many": [a1gm.fit_many],
    "a1gm.fit_long": [a1gm.fit_long],
    "a1gm.fit_groups": [a1gm.fit_groups],
    "a1gm.fit_file": [a1gm.fit_file],
    "a1gm.impute_file": [a1gm.impute_file, TableOptions, FitOptions],
    "a1gm.PatternTable": [a1gm.PatternTable, a1gm.PatternTable.solve],
    "a1gm.distributed.fit": [a1gm.distributed.fit],
    "a1gm.assess": [a1gm.assess],
    "a1gm.MissingPattern": [a1gm.MissingPattern],
    "a1gm.fit_tensor": [a1gm.fit_tensor],
    "a1gm.fit_nmmf": [a1gm.fit_nmmf],
    "a1gm.RankOneNMF": [a1gm.RankOneNMF, a1gm.RankOneNMF.fit],
    "a1gm.RankOneImputer": [a1gm.RankOneImputer, a1gm.RankOneImputer.fit],
}
COMMANDS = ["inspect", "fit", "impute", "assess", "report"]

MERGED = "pieces are added up by patterns of missing cells, which weights break up"
JOINT = "each table has one weight, `alpha` and `beta`"
FEATURES = "as everywhere in scikit-learn, every column is a feature"
NAMED = "`keys`, `by` and `value` name the columns"
IN_MEMORY = (
    "a table in memory has its own mark of a missing cell: "
    "`np.where(X == -999, np.nan, X)`, `X.replace(-999, np.nan)`"
)
SPARSE = "for SciPy sparse tables, which this does not take"
HOLES = "only which cells are missing matters"
TRIED = "each trial is a fit with the defaults"

#: Why a way in lacks an option.
REASONS = {
    ("a1gm.PatternTable", "weights"): MERGED,
    ("a1gm.PatternTable", "exposure"): MERGED,
    ("a1gm.PatternTable", "absent"): "a piece that is sparse is passed as an array",
    ("a1gm.distributed.fit", "weights"): MERGED,
    ("a1gm.distributed.fit", "exposure"): MERGED,
    ("a1gm.distributed.fit", "n_threads"): "Dask has the threads",
    ("a1gm.distributed.fit", "absent"): SPARSE,
    ("a1gm.fit_long", "absent"): "pairs that are not there are missing",
    ("a1gm.fit_groups", "absent"): "pairs that are not there are missing",
    ("a1gm.assess", "absent"): SPARSE,
    ("a1gm.assess", "on_undetermined"): "only cells that stay known are hidden",
    **{("a1gm.assess", name): TRIED for name in ("tol", "max_iter", "n_threads")},
    ("a1gm assess", "on_undetermined"): "only cells that stay known are hidden",
    **{("a1gm assess", name): TRIED for name in ("tol", "max_iter")},
    **{
        ("a1gm.MissingPattern", name): HOLES
        for name in (
            *("weights", "exposure", "negatives", "on_undetermined"),
            *("tol", "max_iter", "n_threads"),
        )
    },
    **{
        (way, name): NAMED
        for way in ("a1gm.fit_long", "a1gm.fit_groups")
        for name in ("id", "columns", "exclude")
    },
    **{
        (way, "missing"): IN_MEMORY
        for way in WAYS
        if way not in ("a1gm.fit_file", "a1gm.impute_file", "a1gm.RankOneImputer")
    },
    ("a1gm.fit_tensor", "absent"): "listed cells are observed, others missing",
    ("a1gm.fit_tensor", "negatives"): "interactions have no fit to margins alone",
    **{
        ("a1gm.fit_tensor", name): "an array has no columns"
        for name in ("id", "columns", "exclude")
    },
    ("a1gm.fit_file", "absent"): SPARSE,
    ("a1gm.impute_file", "absent"): SPARSE,
    **{
        (way, name): FEATURES
        for way in ("a1gm.RankOneNMF", "a1gm.RankOneImputer")
        for name in ("id", "columns", "exclude")
    },
    **{
        (way, "exposure"): "scikit-learn has weights of rows only"
        for way in ("a1gm.RankOneNMF", "a1gm.RankOneImputer")
    },
    ("a1gm.RankOneNMF", "on_undetermined"): "it gives factors, not cells",
    ("a1gm.RankOneImputer", "absent"): "absent cells are zeros, as in scikit-learn",
    (
        "a1gm.RankOneImputer",
        "negatives",
    ): "an imputer fills cells that are not negative",
    **{
        ("a1gm.fit_nmmf", name): reason
        for name, reason in {
            "weights": JOINT,
            "exposure": JOINT,
            "negatives": "margins of several tables need not agree in sign",
            "absent": SPARSE,
        }.items()
    },
    **{
        ("a1gm.fit_nmmf", name): "tables are matched by all their labels"
        for name in ("id", "columns", "exclude")
    },
    ("a1gm inspect", "weights"): HOLES,
    ("a1gm inspect", "exposure"): HOLES,
    **{(f"a1gm {name}", "absent"): SPARSE for name in COMMANDS},
}


def options_of(way: str) -> set[str]:
    """Names of the options that a way in takes."""
    if way.startswith("a1gm "):
        command: Any = typer.main.get_command(load_app())
        return {option.name for option in command.commands[way.split()[1]].params}
    calls = [inspect.signature(call).parameters for call in WAYS[way]]
    return {name for names in calls for name in names}


def ways() -> list[str]:
    """Names of the ways in, the commands last."""
    return [*WAYS, *(f"a1gm {name}" for name in COMMANDS)]


def unexplained() -> Iterator[tuple[str, str]]:
    """Yield the ways in and the options that they lack without a reason."""
    for way in ways():
        taken = options_of(way)
        for option, others in OPTIONS.items():
            if not taken & {option, *others} and (way, option) not in REASONS:
                yield way, option


def table() -> str:
    """Write the table in Markdown, with the reasons below it."""
    numbers: dict[str, int] = {}
    lines = [["", *(f"`{option}`" for option in OPTIONS)], ["---"] * (len(OPTIONS) + 1)]
    for way in ways():
        taken, cells = options_of(way), [f"`{way}`"]
        for option, others in OPTIONS.items():
            found = [name for name in (option, *others) if name in taken]
            if found:
                cells.append("yes" if found[0] == option else f"`{found[0]}`")
            else:
                reason = REASONS[way, option]
                number = numbers.setdefault(reason, len(numbers) + 1)
                cells.append(f"({number})")
        lines.append(cells)
    rows = [f"| {' | '.join(cells)} |" for cells in lines]
    reasons = [f"({number}) {reason}." for reason, number in numbers.items()]
    return "\n".join([*rows, "", "Not there: " + " ".join(reasons)])
