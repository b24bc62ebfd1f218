"""What all commands share."""

from support.commands import CSV, run

from a1gm.cli.options import split_names


def test_debug_shows_the_traceback(tmp_path):
    done = run("inspect", CSV / "ragged_short.csv", "--debug", code=1)
    assert "Traceback" in done.stderr
    assert "Traceback" not in run("inspect", CSV / "ragged_short.csv", code=1).stderr


def test_names_are_split_at_commas_outside_quotes():
    assert split_names(["a,b", "c"]) == ["a", "b", "c"]
    assert split_names(['"a,b",c']) == ["a,b", "c"]
    assert split_names(None) == []


def test_a_command_has_no_options_of_others(tmp_path):
    done = run("inspect", CSV / "plain.csv", "--by", "x", code=2)
    assert "No such option" in done.stderr
