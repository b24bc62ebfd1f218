"""Holes drawn with letters, for a terminal."""

from __future__ import annotations

from collections.abc import Iterator

from a1gm._base.types import Floats

SHADES = " ░▒▓█"


def picture(shares: Floats) -> Iterator[str]:
    """Draw the share of holes, a line for each row of ``shares``; dark is missing."""
    # Letters are twice as high as wide: two of them make a square.
    wide = 2 if shares.shape[1] <= 32 else 1
    for line in shares:
        yield "│" + "".join(SHADES[round(share * 4)] * wide for share in line) + "│"
