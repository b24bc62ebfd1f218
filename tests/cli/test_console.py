"""Words on standard error."""

import os

import pytest
from support.commands import run_executable

from a1gm.cli import options


def test_progress_is_shown_on_a_terminal_after_a_second(monkeypatch, capsys):
    monkeypatch.setattr(options, "_SHOW_AFTER_SECONDS", 0.0)
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    monkeypatch.setenv("FORCE_COLOR", "1")
    with options.progress_bar("Reading a.csv", quiet=False) as show:
        show(1000, 0.5)
        show(2000, 1.0)
    words = capsys.readouterr().err
    assert "Reading a.csv" in words
    assert "rows/s" in words


@pytest.mark.parametrize("encoding", ["cp1252", "ascii", "cp437"])
@pytest.mark.parametrize(
    "command", ["inspect", "impute", "fit", "assess", "report", "demo"]
)
def test_every_command_speaks_plainly(tmp_path, command, encoding):
    (tmp_path / "a.csv").write_text(
        "shop,a,b,c\nA,10,20,\nB,20,,60\nC,30,61,92\nD,,80,119\nE,9,19,31\n"
    )
    outputs = {"impute": "o.csv", "fit": "o", "report": "o.html", "demo": "d"}
    arguments = [command, "a.csv"] if command != "demo" else [command]
    if command in outputs:
        arguments += ["-o", outputs[command]]
    done = run_executable(
        *arguments,
        cwd=tmp_path,
        env={**os.environ, "PYTHONIOENCODING": encoding},
        encoding=encoding,
    )
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr
    if command == "inspect":
        assert ("█" if encoding == "cp437" else "#") in done.stdout
