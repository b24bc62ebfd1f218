"""What the tests of tables in files share."""

from __future__ import annotations

import pytest

from a1gm._observe import accumulate

WAYS = ["patterns", "masks", "both"]


@pytest.fixture(params=WAYS)
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Keep a table of patterns, never keep one, or give it up on the way."""
    limit = {"patterns": 1 << 26, "masks": 1, "both": 12_000}[request.param]
    monkeypatch.setattr(accumulate, "TABLE_BYTES", limit)
    return str(request.param)
