"""The kernel: compiled when it can be, NumPy otherwise.

read/      tables of any layout, as tiles of float64
pass/      one pass over the rows: row sums, patterns, pattern sums, bad cells
reduce/    twins and leaves, down to the core, and back
scale/     from statistics or a core to factors
place/     rows of any table by given column factors: factors, holes filled, divergence
bind*      the Python face
reference/ what a fit needs of it, in NumPy
"""

from __future__ import annotations

import os
from importlib import import_module
from types import ModuleType
from typing import Any

from a1gm._base.warn import warn_user
from a1gm.exceptions import SlowKernelWarning

SMALL = 1 << 19  # cells below which a second thread costs more than it saves
SMALL_PIECE = 1 << 18  # the same where pass follows pass: the threads are awake
MOST_THREADS = 1 << 10  # more have never helped, and the kernel counts in 32 bits


def _load() -> tuple[Any, str]:
    if os.environ.get("A1GM_KERNEL", "") == "numpy":
        return _reference(), ""
    try:
        return import_module("a1gm._kernel._native"), ""
    except ImportError as error:
        return _reference(), str(error)


def _reference() -> ModuleType:
    from a1gm._kernel import reference

    return reference


kernel, _why_slow = _load()
is_compiled: bool = kernel.__name__.endswith("_native")


def warn_if_slow() -> None:
    """Warn once per process when the compiled kernel could not be loaded."""
    global _why_slow
    if _why_slow:
        reason, _why_slow = _why_slow, ""
        warn_user(
            "The compiled kernel of a1gm is not available, so the slower NumPy one is "
            f"used ({reason}). Install a C++ compiler and "
            "reinstall a1gm, or set A1GM_KERNEL=numpy to choose it on purpose.",
            SlowKernelWarning,
        )


def threads_for(n_cells: int, n_threads: int | None, small: int = SMALL) -> int:
    """Number of threads for a pass over ``n_cells``: ``n_threads``, or all cores."""
    if n_threads is not None:
        return min(n_threads, MOST_THREADS)
    if n_cells < small:
        return 1
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # not on every platform
        return os.cpu_count() or 1
