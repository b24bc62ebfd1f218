"""The commands put together: help, versions, absent packages."""

import os
import re
import subprocess
import sys

import pytest
from support.commands import A1GM, APP, CSV, ROOT, run, run_python

import a1gm

COMMANDS = [command.name for command in APP.registered_commands]


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_help_with_an_example_and_a_page(name):
    text = run(name, "--help").output
    assert "Example:" in text
    assert text.isascii()  # a terminal may have nothing else
    assert f"a1gm {name}" in text
    page = (ROOT / "docs" / "cli.md").read_text()
    section = re.search(
        rf"^## {name}\n(.*?)(?=^## |\Z)", page, re.DOTALL | re.MULTILINE
    )
    assert section is not None, f"docs/cli.md has no section on {name}"
    assert f"a1gm {name}" in section[1]


def test_the_help_fits_a_terminal_and_tells_the_kinds_of_tables(monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    text = run("--help").output
    assert "..." not in text.partition("Commands:")[2]  # no summary is cut
    for words in ("spreadsheets", "folder", "--long"):
        assert words in text
    for name in COMMANDS:
        assert max(map(len, run(name, "--help").output.splitlines())) <= 80


def test_the_help_lists_what_a_command_uses():
    assert "--columns" not in run("demo", "--help").output
    assert "--overwrite" in run("demo", "--help").output


def test_every_option_is_documented():
    page = (ROOT / "docs" / "cli.md").read_text()
    for name in COMMANDS:
        for option in set(re.findall(r"--[a-z]+", run(name, "--help").output)):
            assert option in page or option in ("--help", "--out", "--title"), option


def test_python_runs_the_package():
    command = [sys.executable, "-m", "a1gm", "--version"]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    assert done.stdout == f"a1gm {a1gm.__version__}\n"


def test_help_loads_nothing_that_is_slow():
    program = (
        "import sys; from a1gm.cli import main; sys.argv = ['a1gm', '--help']\n"
        "try: main()\n"
        "except SystemExit: pass\n"
        "slow = {'scipy', 'sklearn', 'pandas', 'polars', 'pyarrow', 'matplotlib'}\n"
        "sys.exit(', '.join(slow & set(sys.modules)))"
    )
    done = run_python(program)
    assert "Usage" in done.stdout
    assert done.stderr.strip() == ""


@pytest.mark.parametrize(
    "arguments",
    [
        ["inspect", CSV / "plain.csv"],
        ["inspect", CSV / "plain.csv", "--json"],
        ["impute", CSV / "plain.csv", "-o", "-"],
        ["--help"],
        ["--version"],
    ],
)
def test_a_reader_that_has_seen_enough_is_no_fault(arguments):
    """Seen: exit 1 of ``a1gm inspect table.csv | head -1``, 0 of ``impute -o -``."""
    read, write = os.pipe()
    os.close(read)
    done = subprocess.run(
        [A1GM, *arguments], stdout=write, stderr=subprocess.PIPE, text=True, check=False
    )
    os.close(write)
    assert done.returncode == 0
    assert "roken" not in done.stderr


@pytest.mark.parametrize(
    ("package", "arguments"),
    [("typer", ["--help"]), ("rich", ["--help"]), ("pyarrow", ["inspect"])],
)
def test_an_absent_package_is_told_with_what_installs_it(package, arguments):
    code = (
        "import sys\n"
        f"sys.modules[{package!r}] = None\n"
        f"sys.argv = ['a1gm', *{[*arguments, str(CSV / 'plain.csv')]!r}]\n"
        "from a1gm.cli import main\n"
        "main()\n"
    )
    done = run_python(code)
    assert done.returncode == 1
    assert "pip install typer rich pyarrow" in done.stderr
    assert "Traceback" not in done.stderr
