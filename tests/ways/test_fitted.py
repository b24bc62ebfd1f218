"""The same table by every way in: the same fills, fates, factors and warnings."""

from __future__ import annotations

import re

import numpy as np
import pandas as pd
import pytest

from a1gm.exceptions import EmptyLineWarning, UndeterminedWarning
from ways.containers import CONTAINERS
from ways.tables import TABLES
from ways.ways import WAYS, ways_with

TOL = 1e-10  # the certificate that a fit reaches by default

tables = pytest.mark.parametrize("table", TABLES)


def same(found, right, way, what):
    np.testing.assert_allclose(
        found, right, rtol=WAYS[way].rtol, atol=0.0, err_msg=f"{what}, {way}"
    )


@tables
@pytest.mark.parametrize("way", ways_with("fills"))
def test_fills(asked, way, table):
    answers, right = asked(way, table)
    left = np.isnan(right.filled)
    np.testing.assert_array_equal(np.isnan(answers.filled), left)
    same(answers.filled, right.filled, way, "the truth")
    reference, _ = asked("C array", table)
    same(answers.filled, reference.filled, way, "the fit of an array")


@tables
@pytest.mark.parametrize("way", ways_with("factors"))
def test_factors(asked, way, table):
    answers, right = asked(way, table)
    same(answers.col_factor, right.h, way, "column factors")
    if answers.row_factor is not None:
        same(answers.row_factor, right.w, way, "row factors")


@tables
@pytest.mark.parametrize("way", ways_with("certificate"))
def test_certificate(asked, way, table):
    answers, right = asked(way, table)
    assert answers.certificate <= TOL
    measured = right.certificate(answers.row_factor, answers.col_factor)
    rounding = 1e-14 if WAYS[way].dtype is np.float64 else 1e-6
    assert abs(answers.certificate - measured) <= rounding
    if answers.converged is not None:
        assert answers.converged


@tables
@pytest.mark.parametrize("way", ways_with("fates"))
def test_fates(asked, way, table):
    answers, right = asked(way, table)
    np.testing.assert_array_equal(answers.fates.astype(object), right.fates)
    assert answers.undetermined == right.undetermined


UNKNOWN = re.compile(r"([\d,]+) missing cells? (?:is|are) \w+(?: and ([\d,]+))?")
LEFT = re.compile(r"([\d,]+) missing cells? stays? missing")


def counts_in(texts, pattern):
    """Sums of the numbers that a pattern finds in each text."""
    found = (pattern.search(text) for text in texts)
    return [sum(int(n) for n in one.groups() if n) for one in found if one]


@tables
@pytest.mark.parametrize("way", ways_with("warnings"))
def test_warnings(asked, way, table):
    answers, right = asked(way, table)
    left = np.isnan(right.filled)
    known = ~np.isnan(right.X)
    wanted = set()
    if right.warns_of_lines:
        wanted.add(EmptyLineWarning)
    if right.warns_of_cells:
        wanted.add(UndeterminedWarning)
    if answers.warned is not None:
        # A fit that has left its table behind says again which cells stay missing.
        again = {UndeterminedWarning} if left.any() and way != "C array" else set()
        assert wanted <= answers.warned <= wanted | again
        assert way not in CONTAINERS or len(answers.texts) == len(wanted)
    else:
        assert answers.says_something == bool(wanted)
    unknown = left[known.any(axis=1)][:, known.any(axis=0)].sum()
    assert set(counts_in(answers.texts, UNKNOWN)) <= {unknown}
    assert set(counts_in(answers.texts, LEFT)) <= {left.sum()}
    if answers.undetermined is None:  # the rows were left behind
        said = [text for text in answers.texts if LEFT.search(text)]
        assert not any("fit.undetermined" in text for text in said)


def dtypes_of(table):
    """Types of the columns of any container, as text; empty for a file."""
    if isinstance(table, pd.DataFrame):
        return [str(kind) for kind in table.dtypes]
    if hasattr(table, "schema"):
        kinds = getattr(table.schema, "types", None) or table.dtypes
        return [str(kind) for kind in kinds]
    return [str(table.dtype)] if hasattr(table, "dtype") else []


# What a type of whole numbers becomes where a hole was filled.
FILLED = {
    "Int64": "Float64",  # pandas and polars
    "int64[pyarrow]": "double[pyarrow]",
    "int64": "double",
}


def wanted_dtypes(given, holes):
    """Types that a filled table must have: whole numbers with holes become floats."""
    before = dtypes_of(given)
    if len(before) != len(holes):  # one type for all cells
        return before
    pairs = zip(before, holes, strict=True)
    return [FILLED.get(kind, kind) if hole else kind for kind, hole in pairs]


def labels_of(table):
    """Row and column names of any container."""
    columns = getattr(table, "column_names", getattr(table, "columns", ()))
    if hasattr(table, "schema") and not isinstance(table, pd.DataFrame):
        columns = table.schema.names if hasattr(table.schema, "types") else columns
    return list(columns), list(getattr(table, "index", ()))


@tables
@pytest.mark.parametrize("way", ways_with("types"))
def test_output_types(asked, way, table):
    answers, right = asked(way, table)
    given, output = answers.given, answers.output
    if isinstance(given, list):  # lists of numbers are answered by an array
        given = right.X
    assert output is not given
    assert type(output) is type(given)
    holes = np.isnan(right.X).any(axis=0)
    assert dtypes_of(output) == wanted_dtypes(given, holes)
    if not isinstance(given, np.ndarray):
        assert labels_of(output) == labels_of(given)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.filterwarnings("ignore::a1gm.exceptions.A1gmWarning")
def test_minus_zero_never_comes_out_of_a_fit(way, tmp_path):
    X = np.array(
        [[np.nan, 1.5, 1.5], [2, np.nan, 1], [1, 3, np.nan], [np.nan, -0.0, -0.0]]
    )
    X = np.vstack([X, np.full((8, 3), -0.0)])
    answers = WAYS[way].ask(X, tmp_path)
    found = [answers.row_factor, answers.col_factor]
    if answers.filled is not None:  # observed cells stay as they were given
        found.append(answers.filled[np.isnan(X)])
    if answers.transform is not None:
        found.append(answers.transform(X))
    for values in found:
        assert values is None or not np.signbit(values).any()
