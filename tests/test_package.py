"""The package as it is built: one version, and types for its users."""

from __future__ import annotations

import importlib.metadata
import re
import subprocess
import sys
from pathlib import Path

import a1gm

ROOT = Path(__file__).parent.parent


def test_the_version_is_written_once():
    assert importlib.metadata.version("a1gm") == a1gm.__version__
    cited = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert f"\nversion: {a1gm.__version__}\n" in cited
    day = re.search(r'^date-released: "(.+)"$', cited, re.M)[1]
    changes = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    releases = re.findall(r"^## (.+)$", changes, re.M)
    assert releases[:2] == ["[Unreleased]", f"[{a1gm.__version__}] - {day}"]


def test_a_users_program_has_types(tmp_path):
    program = ROOT / "tests" / "typing" / "program.py"
    checked = [sys.executable, "-m", "mypy", "--strict", "--follow-imports=silent"]
    done = subprocess.run(
        [*checked, str(program)],
        cwd=tmp_path,
        check=False,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout
    done = subprocess.run(
        [sys.executable, program], check=True, capture_output=True, text=True
    )
    assert done.stdout == "the holes add up to 28\n"
