"""Cells that are numbers in another notation, and what to do about them."""

import re
import shlex

import pytest
from support.commands import run
from support.files import open_file

import a1gm
from a1gm._rows.files import TableOptions
from a1gm._rows.files.number_marks import marks_remedy, sign_remedy
from a1gm.exceptions import FileFormatError, NotNumericError

COMMA = "decimal=','"
GROUP_POINT = "thousands='.'"
GROUP_COMMA = "thousands=','"
GROUP_SPACE = "thousands=' '"


@pytest.mark.parametrize(
    ("tokens", "options", "words"),
    [
        (
            ["2.000,5"],
            {},
            f"Its point groups thousands and its comma is the decimal mark: pass "
            f"{COMMA} and {GROUP_POINT}.",
        ),
        # What was passed already is not asked for again.
        (
            ["2.000,5"],
            {"decimal": ","},
            f"Its point groups thousands: pass {GROUP_POINT}.",
        ),
        (
            ["2.000"],
            {"decimal": ","},
            "If its point is the decimal mark, drop decimal=','; if its point groups "
            f"thousands, pass {GROUP_POINT}.",
        ),
        # Other cells of the column decide what one alone leaves open.
        (["2.000", "1.5"], {"decimal": ","}, "Its point is the decimal mark: drop"),
        (["2.000", "2.000,5"], {"decimal": ","}, "Its point groups thousands: pass"),
        (
            ["1,234"],
            {},
            f"If its comma is the decimal mark, pass {COMMA}; if its comma groups "
            f"thousands, pass {GROUP_COMMA}.",
        ),
        (
            ["1,5"],
            {"thousands": ","},
            f"Its comma is the decimal mark: pass {COMMA} and drop thousands=','.",
        ),
        (["1,234.5"], {}, f"Its comma groups thousands: pass {GROUP_COMMA}."),
        (
            ["2 000,5"],
            {},
            f"Its space groups thousands and its comma is the decimal mark: pass "
            f"{COMMA} and {GROUP_SPACE}.",
        ),
        (["2 000"], {}, f"Its space groups thousands: pass {GROUP_SPACE}."),
        (
            ["2 000"],
            {"decimal": ","},
            f"Its space groups thousands: pass {GROUP_SPACE}.",
        ),
        (["1,5", "?"], {}, f"Its comma is the decimal mark: pass {COMMA}."),
    ],
)
def test_the_remedy_names_what_is_wrong(tokens, options, words):
    remedy = str(FileFormatError(marks_remedy(tokens, TableOptions(**options))))
    assert remedy.startswith(words)


@pytest.mark.parametrize("token", ["?", "-", "n/a", "1.2.3", "12,34,5", "7 %"])
def test_other_texts_have_no_remedy(token):
    assert marks_remedy([token], TableOptions()) is None


def test_a_thousands_mark_beside_a_decimal_comma_is_told(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("a;b\n1,5;2\n2.000,5;3\n")
    table = open_file(path, delimiter=";", decimal=",")
    with pytest.raises(ValueError, match="line 3, column 'a'") as refused:
        list(table.pieces())
    assert "thousands='.'" in str(refused.value)
    assert "decimal=" not in str(refused.value)


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
    with pytest.raises(NotNumericError, match="has no numeric column") as caught:
        a1gm.fit_file(path)
    assert f"Column 'jan' has text such as {cell!r}: in the file, " in str(caught.value)
    path.write_text(f"shop,jan,feb\na,{cell},7\nb,8,\n")
    with pytest.raises(FileFormatError, match="is not a number") as caught:
        a1gm.fit_file(path)
    assert f"In the file, {sign_remedy(cell)}" in str(caught.value)


@pytest.mark.parametrize("mark", [" ", "'", "’", "\u00a0", "\u202f"])
def test_the_command_takes_the_mark_that_it_advises(tmp_path, mark):
    path = tmp_path / "a.csv"
    path.write_text(f"shop,jan,feb\na,1{mark}329,820\nb,970,\n", "utf-8")
    refused = run("inspect", path, code=1)
    option = re.search(r"groups thousands: pass (--thousands .*?)\. If", refused.stderr)
    assert option is not None, refused.stderr
    run("inspect", path, *shlex.split(option[1]))
