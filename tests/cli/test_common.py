"""What all commands share."""

from support.commands import CSV, run

from a1gm.cli.common import unwrapped


def test_debug_shows_the_traceback(tmp_path):
    done = run("inspect", CSV / "ragged_short.csv", "--debug", code=1)
    assert "Traceback" in done.stderr
    assert "Traceback" not in run("inspect", CSV / "ragged_short.csv", code=1).stderr


def test_paragraphs_are_unwrapped():
    assert unwrapped("a\nb\n\n\\b\nc\nd") == "a b\n\n\b\nc\nd"
