"""Entities that two tables share must be the same ones, in the same order."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

from a1gm._base.words import counted
from a1gm._rows.labels import first_difference, text_of_label
from a1gm.exceptions import DataError, LabelError

# Table, "rows" or "columns", how many, and their names if they have any.
Axis = tuple[str, str, int, Any]


def check_same_entities(entities: Hashable, axis: Axis, other: Axis) -> None:
    """Raise if the two axes differ in their number of entities, or in their names."""
    name, side, size, labels = axis
    other_name, other_side, other_size, other_labels = other
    if size != other_size:
        msg = (
            f"{name} has {_counted(size, side)}, but {other_name} has "
            f"{_counted(other_size, other_side)}: both are the entities "
            f"{entities!r} and must have the same number, in the same order."
        )
        raise DataError(msg)
    at = first_difference(labels, other_labels)
    if at is not None:
        msg = (
            f"The {side} of {name} and the {other_side} of {other_name} are the same "
            f"entities, but number {at} is {text_of_label(labels[at])} in {name} and "
            f"{text_of_label(other_labels[at])} in {other_name}. Put them in the same "
            "order, or pass arrays without names."
        )
        raise LabelError(msg)


def _counted(size: int, side: str) -> str:
    return counted(size, side.removesuffix("s"))
