"""Columns of frames by address: not in NumPy, which has none of its own."""

from __future__ import annotations

from typing import Any


def read_stream(stream: Any) -> None:
    """Give None for every stream: then the frame's library is asked for each column."""


def write_stream(values: Any, names: list[str]) -> None:
    """Give None: then the frame's library makes each column."""
