"""Cells that are numbers in another notation, and what to do about them."""

import re
import shlex

import pytest
from support.commands import run

import a1gm
from a1gm._rows.files.faults import marks_advice
from a1gm._rows.files.options import TableOptions
from a1gm._rows.hints import sign_remedy
from a1gm.exceptions import A1gmError, FileFormatError, NotNumericError


@pytest.mark.parametrize(
    ("texts", "options", "words"),
    [
        (["2.000,5"], {}, "decimal=',' and thousands='.'"),
        # What was passed already is not asked for again.
        (["2.000,5"], {"decimal": ","}, "thousands='.'"),
        (["2.000"], {"decimal": ","}, "decimal='.'; thousands='.'"),
        # Other cells of the column decide what one alone leaves open.
        (["2.000", "1.5"], {"decimal": ","}, "decimal='.'"),
        (["2.000", "2.000,5"], {"decimal": ","}, "thousands='.'"),
        (["1,234"], {}, "decimal=','; thousands=','"),
        (["1,5"], {"thousands": ","}, "decimal=',' and no thousands="),
        (["1,234.5"], {}, "thousands=','"),
        (["2 000,5"], {}, "decimal=',' and thousands=' '"),
        (["2 000"], {}, "thousands=' '"),
        (["2 000"], {"decimal": ","}, "thousands=' '"),
        (["1,5", "?"], {}, "decimal=','"),
    ],
)
def test_the_advice_names_the_options(texts, options, words):
    advice = str(A1gmError(marks_advice(texts, TableOptions(**options))))
    assert "; ".join(re.findall(r"pass (.*?)(?:; if|\.$)", advice)) == words


@pytest.mark.parametrize("token", ["?", "-", "n/a", "1.2.3", "12,34,5", "7 %"])
def test_other_texts_have_no_remedy(token):
    assert marks_advice([token], TableOptions()) is None


OFF, FRONT = "take the sign off", "write it as -5"


@pytest.mark.parametrize(
    ("token", "words"),
    [
        *((token, OFF) for token in ("$1,200", "€ 5,00", "12 %", "5%", "-$5", "$-5")),
        *((token, OFF) for token in ("1.200,50 €", "1\u202f200,50\u00a0€", "1 200 kr")),
        *((token, OFF) for token in ("EUR 5", "US$5", "£5.00", "1'329 CHF", "5 zł")),
        *((token, FRONT) for token in ("(5)", "5-", "(5.00)", "($5)", "5,00-")),
        *((token, None) for token in ("Q1", "north", "1-2", "()", "-", "%", "5", "")),
        *((token, None) for token in ("2020-01-01", "10:30", "A", "5 apples", "12/5")),
    ],
)
def test_numbers_with_a_sign(token, words):
    said = sign_remedy(token)
    assert said is None if words is None else words in str(said)


@pytest.mark.parametrize("cell", ["$5", "12 %", "(5)", "5-"])
def test_a_table_of_numbers_with_signs(tmp_path, cell):
    path = tmp_path / "a.csv"
    path.write_text(f"shop,jan,feb\na,{cell},{cell}\nb,{cell},\n")
    with pytest.raises(NotNumericError, match="has no number column"):
        a1gm.fit_file(path)
    path.write_text(f"shop,jan,feb\na,{cell},7\nb,8,\n")
    with pytest.raises(FileFormatError, match="is not a number") as caught:
        a1gm.fit_file(path)
    assert f"In the file, {sign_remedy(cell)}" in str(caught.value)


@pytest.mark.parametrize("mark", [" ", "'", "’", "\u00a0", "\u202f"])
def test_the_command_takes_the_mark_that_it_advises(tmp_path, mark):
    path = tmp_path / "a.csv"
    path.write_text(f"shop,jan,feb\na,1{mark}329,820\nb,970,\n", "utf-8")
    refused = run("inspect", path, code=1)
    option = re.search(r"pass (--thousands .*?)\. If", refused.stderr)
    assert option is not None, refused.stderr
    run("inspect", path, *shlex.split(option[1]))


def test_a_title_above_the_header(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("Sales\nshop,jan,feb\na,1,2\n")
    with pytest.raises(FileFormatError, match=r"'Sales' looks like a title.*line 2"):
        a1gm.fit_file(path)
