"""The rule for columns that name rows, on headers and columns as people have them."""

import numpy as np
import pyarrow as pa
import pytest

from a1gm._rows.files import TableOptions
from a1gm._rows.files.row_names import ColumnFacts, may_name_rows, role_of

UP = [1, 2, 3, 4, 5]
SPREAD = [17, 3, 250, 41, 8]  # whole, all different, in no order
YEARS = [2019, 2020, 2021, 2022, 2023]
MONTHS = ["jan", "feb"]

#: name, place, cells, what it is; the other columns are jan and feb unless given.
CASES = [
    # an index as frame libraries write it
    ("", 0, [0, 1, 2, 3, 4], "names"),
    ("", 0, SPREAD, "names"),
    ("", 0, [10, 10, 20], "names"),
    ("", 0, ["a", "b", "c"], "names"),
    ("", 0, [0.5, 1.5, 2.5], "unclear"),
    ("Unnamed: 0", 0, [0, 1, 2], "names"),
    ("Unnamed: 0", 1, [0, 1, 2], "names"),
    ("level_0", 0, [0, 1, 2], "names"),
    ("__index_level_0__", 3, SPREAD, "names"),
    ("__index_level_1__", 3, [4, 4, 5], "unclear"),
    ("level_measured", 0, SPREAD, "data"),
    # text
    ("shop", 0, ["A", "B", "C"], "names"),
    ("opened", 0, ["2020-01-01", "2021-05-01", ""], "names"),
    ("city", 3, ["Bergen", "Cork", "Delft"], "data"),  # passed through as text is
    # ids
    ("id", 0, SPREAD, "names"),
    ("ID", 2, SPREAD, "names"),
    ("customer_id", 1, [90071, 90072, 13], "names"),
    ("customerId", 1, SPREAD, "names"),
    ("CustomerID", 0, SPREAD, "names"),
    ("Policy No.", 0, SPREAD, "names"),
    ("account number", 0, SPREAD, "names"),
    ("row", 0, UP, "names"),
    ("#", 0, UP, "names"),
    ("index", 0, SPREAD, "names"),
    ("id_station", 0, ["007", "012", "003"], "names"),
    ("storenr", 0, SPREAD, "names"),
    ("tweet_id", 0, [1234567890123456789, 1234567890123456788, 5], "names"),
    ("id", 0, [4, 4, 5], "unclear"),
    ("customer_id", 0, [7, 7, 8], "unclear"),
    ("id", 0, [1.5, 2.5, 3.0], "unclear"),
    ("id", 0, [1, "", 3], "unclear"),
    # counts from 0 or 1 in the first place
    ("origin", 0, UP, "names"),
    ("day", 0, [0, 1, 2, 3], "names"),
    ("plot", 0, [1, 2, 3, 1, 2, 3], "unclear"),
    ("x", 0, UP, "unclear", ["x", "y", "z"]),
    ("jan", 0, UP, "unclear", ["jan", "feb", "mar"]),
    ("c0", 0, UP, "unclear", ["c0", "c1"]),
    ("V1", 0, UP, "unclear", ["V1", "V2"]),
    ("1", 0, UP, "unclear", ["1", "2", "3"]),
    # years
    ("year", 0, YEARS, "names"),
    ("Year", 2, [2019, 2019, 2020], "names"),
    ("accident_year", 0, [1981, 1982, 1983], "names"),
    ("Fiscal Year", 1, YEARS, "names"),
    ("FY", 0, YEARS, "names"),
    ("sales_last_year", 2, [1800, 1950, 2100], "unclear"),
    ("sales_last_year", 2, [180, 19500, 2100], "data"),
    ("year", 1, [1, 2, 1, 2], "data"),
    ("month", 1, [1, 12, 3], "unclear"),
    # whole-number measurements that happen to be all different
    ("jan", 1, SPREAD, "data"),
    ("visits", 0, SPREAD, "data"),
    ("population", 0, [10234, 55211, 812], "data"),
    ("visits", 1, UP, "data"),  # counts up, but does not stand first
    ("visits", 0, [2, 3, 4, 5], "data"),  # counts up, but not from 0 or 1
    ("visits", 0, [1, 2], "data"),  # two numbers show nothing
    ("present", 0, [0, 1, 0, 0, 1], "data"),
    ("2020", 1, [2019, 2020, 2021], "data"),
    ("yes", 0, SPREAD, "data"),
    ("no", 1, SPREAD, "data"),
    ("paid", 0, SPREAD, "data"),
    ("acid", 0, SPREAD, "data"),
    ("humid", 0, SPREAD, "data"),
    ("number_of_visits", 0, SPREAD, "data"),
    ("total no", 0, SPREAD, "data"),
    ("price index", 0, [104, 99, 120], "data"),
    ("years", 0, [5, 12, 31], "data"),
    ("code", 0, SPREAD, "data"),
    ("weight", 0, [1.5, 2.25, 3.0], "data"),
]


def facts_of(name, place, cells, size=2):
    facts = ColumnFacts(name, place)
    for start in range(0, len(cells), size):
        some = pa.array([str(cell) for cell in cells[start : start + size]])
        facts.add(some, TableOptions())
    return facts


@pytest.mark.parametrize("case", CASES, ids=lambda c: f"{c[0]}-{c[1]}-{c[2]}")
@pytest.mark.parametrize("size", [1, 2, 100])
def test_rule(case, size):
    name, place, cells, role, *others = case
    names = others[0] if others else [*MONTHS[:place], name, *MONTHS]
    found = role_of(facts_of(name, place, cells, size), names)
    assert found.role == role, found
    assert role == "data" or found.why
    if role != "data":
        assert may_name_rows(name, place)


NUMBERS = [case for case in CASES if not any(isinstance(x, str) for x in case[2])]


@pytest.mark.parametrize("case", NUMBERS, ids=lambda c: f"{c[0]}-{c[1]}-{c[2]}")
@pytest.mark.parametrize("kind", ["as they are", pa.float64(), pa.float32()])
def test_typed_columns_follow_the_same_rule(case, kind):
    name, place, cells, role, *others = case
    if max(cells) > 2**53 and kind != "as they are":
        pytest.skip("no such float")
    facts = ColumnFacts(name, place)
    typed = pa.array(cells)
    facts.add(typed if kind == "as they are" else typed.cast(kind), TableOptions())
    names = others[0] if others else [*MONTHS[:place], name, *MONTHS]
    counts = role_of(facts_of(name, place, cells), names).why.startswith("counts")
    is_float = kind != "as they are"  # no id counts in floats
    assert role_of(facts, names).role == ("data" if counts and is_float else role)


def test_counts_may_begin_like_an_index():
    assert role_of(facts_of("a", 0, [0, 1, 2, 0]), ["a", "b"]).role == "data"


def test_missing_cells_of_typed_columns():
    for cells in (pa.array([1, None, 3]), pa.array([1.0, np.nan, 3.0]), pa.nulls(3)):
        facts = ColumnFacts("id", 0)
        facts.add(cells, TableOptions())
        assert facts.n_missing == (3 if cells.type == pa.null() else 1)
        assert role_of(facts, ["id", "a"]).role == "unclear"
    facts = ColumnFacts("id", 0)
    facts.add(pa.array([7, -9, 3]), TableOptions(missing=["-9"]))
    assert facts.n_missing == 1


def test_there_are_at_least_thirty_cases_of_which_many_are_data():
    roles = [case[3] for case in CASES]
    assert len(roles) >= 30
    assert roles.count("data") >= 12


def test_years_that_are_no_names_are_data_only_if_they_are_not_first():
    # year 1, 2, 3 of a study stands first and counts.
    assert role_of(facts_of("year", 0, UP), ["year", "a", "b"]).role == "names"


def test_numbers_beyond_the_limit_are_not_compared(monkeypatch):
    from a1gm._rows.files import row_names

    monkeypatch.setattr(row_names, "MOST_COMPARED", 4)
    facts = facts_of("id", 0, [5, 3, 9, 8, 5, 5], size=2)
    assert facts.are_different  # the last two were not looked at
    assert not np.isnan(facts.most)
