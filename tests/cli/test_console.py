"""Words on standard error."""

from a1gm.cli import console
from a1gm.cli.console import _duration


def test_time_is_written_in_words():
    assert [_duration(s) for s in (0.4, 59, 61, 3720)] == [
        *("0 s", "59 s", "1 min 01 s", "1 h 02 min")
    ]


def test_progress_is_shown_on_a_terminal_after_a_second(monkeypatch, capsys):
    monkeypatch.setattr(console, "_SHOW_AFTER_SECONDS", 0.0)
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    monkeypatch.setenv("FORCE_COLOR", "1")
    with console.progress_bar("Reading a.csv", quiet=False) as show:
        show(1000, 0.5)
        show(2000, 1.0)
    words = capsys.readouterr().err
    assert "Reading a.csv" in words
    assert "rows/s" in words
    assert "left" in words
