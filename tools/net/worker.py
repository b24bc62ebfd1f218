"""Answer cases named on standard input, one a line; pickles on standard output."""

from __future__ import annotations

import pickle
import sys

from .cases import KINDS, answers_of


def main() -> None:
    """Serve until standard input ends."""
    out = sys.stdout.buffer
    sys.stdout = sys.stderr
    pickle.dump({name: share for name, (share, _) in KINDS.items()}, out)
    out.flush()
    for line in sys.stdin:
        name, seed = line.split()
        pickle.dump(answers_of(name, int(seed)), out)
        out.flush()


if __name__ == "__main__":
    main()
