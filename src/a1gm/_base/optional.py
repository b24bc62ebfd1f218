"""Optional packages, imported where they are needed."""

from __future__ import annotations

import importlib
from types import ModuleType

from a1gm.exceptions import MissingExtraError

#: The packages of each extra: their names work wherever a1gm itself was installed from.
PACKAGES = {
    "cli": "typer rich pyarrow",
    "plot": "matplotlib",
    "excel": "python-calamine pyarrow",
    "sql": "ibis-framework pyarrow",
    "dask": '"dask[array,dataframe]" distributed pyarrow',
}


def how_to_install(extra: str) -> str:
    """Return how to install the packages of an extra, or a package without one."""
    return f"Install it with: pip install {PACKAGES.get(extra, extra)}"


def require(module: str, extra: str, purpose: str) -> ModuleType:
    """Import an optional package of an extra, or raise with how to install it."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        package = module.partition(".")[0]
        raise MissingExtraError(
            f"{purpose} needs {package}, which is not installed. "
            + how_to_install(extra),
            name=package,
        ) from error
