"""Cells that are numbers in another notation, and what to do about them."""

import pytest
from support.files import open_file

from a1gm._sources.files import TableOptions
from a1gm._sources.files.number_marks import marks_remedy

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
    assert marks_remedy(tokens, TableOptions(**options)).startswith(words)


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
