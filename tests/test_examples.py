"""Every script in examples/ shows its picture; `make docs` runs them all."""

from __future__ import annotations

from pathlib import Path

import pytest

EXAMPLES = sorted((Path(__file__).parent.parent / "examples").glob("*.py"))


@pytest.mark.parametrize("script", EXAMPLES, ids=lambda path: path.name)
def test_example_shows_its_picture(script):
    assert script.read_text(encoding="utf-8").endswith("plt.show()\n")
