"""What a user is told of cells that cannot be known reads right for one and many."""

from __future__ import annotations

import numpy as np
import pytest

import a1gm
from a1gm import RankOneNMF
from a1gm._fit import messages as _unknown
from a1gm.exceptions import EmptyLineWarning, UndeterminedError, UndeterminedWarning

nan = np.nan


def test_zeros_that_are_given_up():
    assert _unknown.text_of_zeros(1, (0, 0)) == (
        "1 observed zero, at (0, 0), can only be approached, not fitted (no minimiser "
        "exists); it is fitted by 0."
    )
    assert _unknown.text_of_zeros(1_200) == (
        "1,200 observed zeros can only be approached, not fitted (no minimiser "
        "exists); they are fitted by 0."
    )


@pytest.mark.parametrize(
    ("counts", "text"),
    [
        ((1, 0), "1 missing cell is unbounded, at (0, 2). It stays"),
        ((0, 1), "1 missing cell is undetermined, at (0, 2). It stays"),
        (
            (1, 1),
            "1 missing cell is unbounded and 1 undetermined, the first at (0, 2).",
        ),
        ((2, 1), "2 missing cells are unbounded and 1 undetermined, the first at"),
        ((0, 4), "4 missing cells are undetermined, the first at (0, 2). They stay"),
    ],
)
def test_missing_cells_by_kind(counts, text):
    found = UndeterminedWarning(_unknown.text_of_unknown_cells(*counts, (0, 2)))
    assert str(found).startswith(text)


def test_cells_do_not_stay_missing_where_there_is_no_result():
    """Seen: "They stay missing; a1gm report lists them", and nothing was written."""
    text = _unknown.text_of_unknown_cells(0, 4, (0, 2), how="raise")
    assert str(UndeterminedError(text)) == (
        "4 missing cells are undetermined, the first at (0, 2); with "
        "on_undetermined='warn', see fit.undetermined."
    )


def test_missing_cells_of_one_table_among_several():
    text, *_ = _unknown.text_of_unknown_cells(1, 2, "Y[0, 0]", of="Y")
    assert text.startswith("1 missing cell of Y is unbounded and 2 undetermined, the")
    text, *_ = _unknown.text_of_unknown_cells(0, 2, "Y[0, 0]", of="Y")
    assert text.startswith("2 missing cells of Y are undetermined, the first at Y[0,")


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ((1, "X[1, 1]"), "1 missing cell stays missing, at X[1, 1]: the data do not d"),
        ((3, "X[1, 1]"), "3 missing cells stay missing, the first at X[1, 1]: the dat"),
        ((1,), "1 missing cell stays missing: the data do not determine it."),
        ((2,), "2 missing cells stay missing: the data do not determine them."),
    ],
)
def test_cells_that_are_left(given, text):
    assert _unknown.text_of_left_cells(*given).startswith(text)


def test_one_row_without_a_factor():
    model = RankOneNMF().fit(np.ones((3, 2)))
    with pytest.warns(EmptyLineWarning, match=r"^1 row has no .*\(row 0\); its"):
        model.transform([[nan, nan]])
    with pytest.warns(EmptyLineWarning, match=r"^2 rows have .*\(the first is row 0"):
        model.transform([[nan, nan], [nan, nan]])


def test_fits_patterns_and_tables_of_one():
    assert "1 row pattern," in repr(a1gm.MissingPattern([[1.0, 2.0]]))
    table = a1gm.PatternTable().update([[1.0]])
    assert repr(table) == "PatternTable(1 row x 1 column in 1 piece, 1 pattern)"
    with pytest.warns(UndeterminedWarning, match="of X is unbounded, at"):
        fit = a1gm.fit_nmmf([[0.0, 5.0], [5.0, nan]])
    assert fit.summary()["cannot be known"] == "1 missing cell"
