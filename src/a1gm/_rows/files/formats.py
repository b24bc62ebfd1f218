"""Which format the name of a file stands for."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Literal, TypeAlias

Format: TypeAlias = Literal["csv", "parquet", "feather", "arrow stream", "spreadsheet"]

FORMATS: dict[str, Format] = {
    **dict.fromkeys((".csv", ".txt", ".tsv", ".tab"), "csv"),
    **dict.fromkeys((".parquet", ".pq"), "parquet"),
    **dict.fromkeys((".feather", ".arrow", ".ipc"), "feather"),
    ".arrows": "arrow stream",
}
SPREADSHEETS = (".xlsx", ".xlsm", ".xlsb", ".xls", ".ods")  # read, not written
TAB_SUFFIXES = (".tsv", ".tab")


def suffix_of(path: str | os.PathLike[str]) -> str:
    """The extension in lower case; of a gzipped file, the one before ``.gz``."""
    place = Path(path)
    bare = place.with_suffix("") if place.suffix.lower() == ".gz" else place
    return bare.suffix.lower()
