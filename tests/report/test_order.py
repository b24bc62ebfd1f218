"""Which names of rows and columns have an order."""

import numpy as np
import pytest

import a1gm
from a1gm.report import report_html
from a1gm.report.findings import are_ordered


@pytest.mark.parametrize(
    ("names", "ordered"),
    [
        (["2021", "2022", "2024"], True),
        (["2023-11", "2023-12", "2024-01"], True),
        (["2023Q4", "2024Q1", "2024Q2"], True),
        (["2024-01-31 00:00:00", "2024-02-29 00:00:00", "2024-03-31"], True),
        (["Jan", "Feb", "Mar"], True),
        (["Nov-2023", "Dec-2023", "Jan-2024"], True),
        (["November 2023", "December 2023", "January 2024"], True),
        (["2023 Nov", "2023 Dec", "2024 Jan"], True),
        (["Nov 23", "Dec 23", "Jan'24"], True),
        (["Jan-2024", "Dec-2023", "Nov-2023"], False),
        (["Marta 1", "Marta 2", "Marta 3"], False),
        (["dev 1", "dev 2", "dev 10"], True),
        (["12 months", "24 months", "36 months"], True),
        (["0.5", "1", "2.5"], True),
        (["S1", "S2", "S3"], False),
        (["row 0", "row 1", "row 2"], False),
        (["Jan", "Marta", "Mayor"], False),
        (["3", "2", "1"], False),
        (["1", "2"], False),
    ],
)
def test_which_names_have_an_order(names, ordered):
    assert are_ordered(names) == ordered


@pytest.mark.parametrize(
    ("names", "ordered"),
    [
        (["1001", "1008", "1015"], False),
        (["1999", "2000", "2002"], True),
        (["1999.5", "2000", "2002"], False),
        (["2023-11", "2023-12", "2024-01"], True),
    ],
)
def test_plain_numbers_order_rows_only_if_they_are_years(names, ordered):
    assert are_ordered(names, of_rows=True) == ordered
    X = np.outer([1.0, 2, 4], [1.0, 3, 5]) + np.eye(3)
    page = report_html(X, a1gm.fit(X), row_names=names)
    assert ("Rows, in table order" in page) == ordered
