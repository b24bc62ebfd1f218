"""The commands, run in this process or by the real executable."""

import os
import subprocess
import sys
import sysconfig
from pathlib import Path

from typer.testing import CliRunner

from a1gm.cli import load_app

ROOT = Path(__file__).parents[2]
CSV = ROOT / "tests" / "data" / "csv"
A1GM = Path(sysconfig.get_path("scripts")) / "a1gm"
RUNNER, APP = CliRunner(), load_app()


def run(*arguments, code=0):
    """Run a command line; its exit code must be the expected one, if one is."""
    done = RUNNER.invoke(APP, list(map(str, arguments)))
    assert code is None or done.exit_code == code, (
        done.output,
        done.stderr,
        done.exception,
    )
    return done


def run_executable(*arguments, **options):
    """Run the real executable, to its end."""
    return subprocess.run(
        [A1GM, *map(str, arguments)],
        capture_output=True,
        timeout=60,
        check=False,
        **{"text": True, **options},
    )


def run_python(code, *arguments, **environment):
    """Run a program in an interpreter of its own; warnings are errors."""
    return subprocess.run(
        [sys.executable, "-W", "error", "-c", code, *map(str, arguments)],
        env=os.environ | environment,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
