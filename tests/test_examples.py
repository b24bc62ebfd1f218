"""Every script in examples/ runs to its end without a display, and prints something."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = sorted((Path(__file__).parent.parent / "examples").glob("*.py"))
NOT_SHOWN = "ignore:FigureCanvasAgg is non-interactive"


@pytest.mark.parametrize("script", EXAMPLES, ids=lambda path: path.name)
def test_example_runs(script, tmp_path):
    done = subprocess.run(
        [sys.executable, "-W", "error", "-W", NOT_SHOWN, str(script)],
        cwd=tmp_path,
        env=os.environ | {"MPLBACKEND": "agg"},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip()


@pytest.mark.parametrize("script", EXAMPLES, ids=lambda path: path.name)
def test_example_shows_its_picture(script):
    assert script.read_text(encoding="utf-8").endswith("plt.show()\n")
