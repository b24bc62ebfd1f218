"""Judges tables and damaged files in a process of its own, one line at a time.

Reads lines ``SEED KIND`` and answers each with a line of JSON. Whoever started it sees
a crash as its end, and a hang as silence.
"""

from __future__ import annotations

import json
import os
import resource
import sys

from .judge import judge
from .mutate import judge_damaged
from .zoo import DAMAGED

MOST_MEMORY = 6 << 30  # a size that a file merely claims must not be taken


def answer(name: str, seed: int) -> dict:
    """The verdict on one case."""
    verdict = judge_damaged(name, seed) if name in DAMAGED else judge(name, seed)
    return vars(verdict)


def main() -> None:
    if not os.environ.get("LD_PRELOAD"):  # a sanitizer maps terabytes
        resource.setrlimit(resource.RLIMIT_AS, (MOST_MEMORY, MOST_MEMORY))
    os.fsync = lambda _: None  # files that nobody keeps
    for line in sys.stdin:
        seed, _, name = line.strip().partition(" ")
        sys.stdout.write(json.dumps(answer(name, int(seed))) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
