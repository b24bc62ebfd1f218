"""Advice of the library as the command line gives it."""

import pytest
from support.commands import run

from a1gm.cli.options import command_style
from a1gm.exceptions import Call, Option, See


@pytest.mark.parametrize(
    ("part", "words"),
    [
        (Option("missing", ["NULL"]), "--missing NULL"),
        (Option("missing", ["-"]), "--missing '-'"),
        (Option("missing", ["it's"]), """--missing 'it'"'"'s'"""),
        (Option("columns"), "--columns"),
        (Option("columns", ["a,b", "c"]), "--columns a,b --columns c"),
        (Option("delimiter", "\t"), "--delimiter '\t'"),  # escaped when printed
        (Option("decimal", ","), "--decimal ','"),
        (Option("overwrite", True), "--overwrite"),
        (Option("n_threads", 2), "--threads 2"),
        (
            Call("fit_long", "X", (Option("keys", ["a,b", "c"]), Option("value", "d"))),
            "--long '\"a,b\",c,d'",
        ),
        (Call("fit_many", "X"), "a1gm.fit_many(X)"),
        (See("fit.undetermined"), "; a1gm report lists them"),
        (See("many.failed"), ""),
    ],
)
def test_parts_are_written_as_options(part, words):
    assert command_style(part) == words


def test_names_of_columns_are_printed_as_they_are(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("\"decimal=','\",x\n-1,2\n3,4\n")
    words = run("inspect", path, code=1).stderr
    assert "column \"decimal=','\": -1 is negative" in words
    assert "--missing -1" in words
