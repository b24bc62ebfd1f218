"""Judges tables and damaged files in a process of its own."""

from __future__ import annotations

import os
import resource

from .judge import judge
from .mutate import judge_damaged
from .process import serve
from .zoo import DAMAGED

MOST_MEMORY = 6 << 30  # a size that a file merely claims must not be taken


def answer(name: str, seed: int) -> dict:
    """The verdict on one case."""
    verdict = judge_damaged(name, seed) if name in DAMAGED else judge(name, seed)
    return vars(verdict)


if __name__ == "__main__":
    if not os.environ.get("LD_PRELOAD"):  # a sanitizer maps terabytes
        resource.setrlimit(resource.RLIMIT_AS, (MOST_MEMORY, MOST_MEMORY))
    serve(answer)
