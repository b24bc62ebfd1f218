"""Optional packages, imported where they are needed."""

from __future__ import annotations

import importlib
from types import ModuleType

from a1gm.exceptions import MissingExtraError


def require(module: str, extra: str, purpose: str) -> ModuleType:
    """Import an optional package or say which extra brings it.

    Raises
    ------
    MissingExtraError
        The package is not installed.
    """
    try:
        return importlib.import_module(module)
    except ImportError as error:
        package = module.partition(".")[0]
        raise MissingExtraError(
            f"{purpose} needs {package}, which is not installed. "
            f"Install it with: pip install 'a1gm[{extra}]'",
            name=package,
        ) from error


def require_pyarrow() -> ModuleType:
    """Import pyarrow, on which every file format rests."""
    return require("pyarrow", "cli", "Reading and writing table files")
