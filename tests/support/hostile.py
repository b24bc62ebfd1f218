"""What a process that opens hostile containers does: asks every question of each."""

from __future__ import annotations

import os
import resource
import tempfile
import warnings
from pathlib import Path

import numpy as np

import a1gm
from a1gm import PatternTable
from a1gm.exceptions import A1gmError, FileFormatError

MOST_MEMORY = 6 << 30  # a size that a file merely claims must not be taken
FOLDER = Path(tempfile.mkdtemp())
read_table = PatternTable.from_bytes
QUESTIONS = {
    "pattern": lambda fit: [
        getattr(fit.pattern, name) for name in dir(fit.pattern) if name[0] != "_"
    ],
    "closed form": lambda fit: fit.pattern.has_closed_form,
    "certificate": lambda fit: fit.certificate,
    "converged": lambda fit: fit.converged,
    "attained": lambda fit: fit.attained,
    "blocks": lambda fit: (fit.n_blocks, fit.row_block, fit.col_block),
    "divergence": lambda fit: fit.divergence,
    "row factor": lambda fit: np.asarray(fit.row_factor),
    "undetermined": lambda fit: (fit.n_undetermined, list(fit.undetermined)[:5]),
    "fate": lambda fit: (fit.fate(0, 0), fit.fate(-1, -1)),
    "reconstruct": lambda fit: fit.reconstruct(),
    "impute": lambda fit: fit.impute(rows_for(fit)),
    "impute nothing": lambda fit: fit.impute(np.full((2, fit.shape[1]), np.nan)),
    "transform": lambda fit: fit.transform(rows_for(fit)),
    "summary": lambda fit: (fit.summary(), repr(fit), fit._repr_html_()),
    "frames": lambda fit: fit.to_frames(backend="pandas"),
    "uncertainty": lambda fit: fit.uncertainty().totals("column"),
    "save": lambda fit: fit.save(FOLDER / "again.a1gm", overwrite=True),
}


def rows_for(fit):
    rows = np.ones((3, len(fit.col_factor)))
    rows[1, ::2], rows[2] = np.nan, np.nan
    return rows


def ask_model(fit):
    """Ask everything of a fit; an error of the package is an answer."""
    for name, question in QUESTIONS.items():
        try:
            question(fit)
        except A1gmError:
            continue
        except Exception as error:
            raise RuntimeError(f"{name}: {error!r}") from error


def ask_table(table):
    """Ask everything of a pattern table."""
    (repr(table), table.n_patterns, table.nbytes, table.pieces, table.n_columns)
    data: list[bytes] = []
    steps = {
        "write": lambda: data.append(table.to_bytes()),
        "update": lambda: table.update(np.ones((2, table.n_columns or 3)), key="new"),
        "merge": lambda: data and table.merge(read_table(data[0])),
        "solve": lambda: ask_model(table.solve()),
        "read": lambda: data and ask_model(read_table(data[0]).solve()),
    }
    for name, step in steps.items():
        try:
            step()
        except A1gmError:
            continue
        except RuntimeError:
            raise
        except Exception as error:
            raise RuntimeError(f"{name}: {error!r}") from error


def verdict(kind, data):
    """What becomes of a container: "fine", or what is wrong."""
    path = FOLDER / "container"
    path.write_bytes(data)
    try:
        opened = a1gm.load(path) if kind == "model" else read_table(data)
    except FileFormatError as error:
        return "fine" if len(str(error)) > 20 else f"no words: {error!r}"
    except Exception as error:  # noqa: BLE001 - whatever it is, the test is told
        return f"opening: {error!r}"
    try:
        ask_model(opened) if kind == "model" else ask_table(opened)
    except Exception as error:  # noqa: BLE001 - whatever it is, the test is told
        return str(error) or repr(error)
    return "fine"


def prepare():
    """Limit the memory of this process."""
    resource.setrlimit(resource.RLIMIT_AS, (MOST_MEMORY, MOST_MEMORY))
    warnings.simplefilter("ignore")
    os.fsync = lambda _: None  # thousands of files that nobody keeps
