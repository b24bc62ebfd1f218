"""Saved models on the command line."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from a1gm.cli.common import Common, UsageError

if TYPE_CHECKING:
    from a1gm.cli.tables import FittedTable
    from a1gm._sources.files import Block
    from a1gm._write.fill import HoleCount


def save_model(path: Path, fitted: FittedTable[Any], common: Common) -> None:
    """Save a fit with the names of its columns."""
    # The numbers came without names; another file is matched by them.
    fitted.fit.col_labels = list(fitted.table.names)
    fitted.fit.save(path, overwrite=common.overwrite)


def open_with_model(
    file: str, model: str, common: Common, watch: Callable[[int], HoleCount]
) -> FittedTable[HoleCount]:
    """Open a file to be filled with a saved model."""
    from a1gm import load
    from a1gm.cli.tables import FittedTable, open_file, read_once, with_columns

    if common.columns:
        raise UsageError("--model names the columns itself; drop --columns.")
    if not Path(model).is_file():
        raise UsageError(f"The model {model} does not exist.")
    fit = load(model)
    if fit.col_labels is None:
        raise UsageError(f"{model} does not name its columns, so it fits no file.")
    table = open_file(file, common)
    columns = [str(label) for label in fit.col_labels]
    table = with_columns(table, columns, f"the model {model} has")

    def begin(names: tuple[str, ...]) -> HoleCount:
        return watch(len(names))

    def step(state: HoleCount, block: Block) -> HoleCount:
        return state.add(block.values)

    return FittedTable(table, fit, read_once(table, common, begin, step))
