"""Cells of many text columns are cast at once, as each column would be by itself."""

import numpy as np
import pyarrow as pa
import pytest

from a1gm._rows.files.numbers import TextColumns
from a1gm._rows.files.options import TableOptions

SORTS = {
    "plain": ["1", "2.5", "-3", "1e3"],
    "holes": ["1", "", "2", ""],
    "words for holes": ["NA", "4", "NaN", "nan"],
    "spaces": [" 1", "2 ", " NA ", " "],
    "signs": ["+1", "inf", "-Infinity", "NAN"],
    "foreign": ["1,5", "2", "1.234.567", "3"],
    "text": ["ann", "1", "", "bob"],
    "sentinel": ["-999", "-999.0", "7", ""],
}


def cast(columns, options):
    """Cast columns in two pieces: the numbers, and what was found of the text."""
    batch = pa.RecordBatch.from_pydict(columns)
    cells = TextColumns(tuple(columns), batch.schema, options)
    half = batch.num_rows // 2
    parts = (batch.slice(0, half), 0), (batch.slice(half), half)
    values = np.concatenate([cells.cast(*part) for part in parts])
    return values, dict(cells.found)


@pytest.mark.parametrize(("n_copies", "repeats"), [(1000, 1), (2, 2000)])
@pytest.mark.parametrize(
    "how", [{}, {"missing": ["-999"]}, {"decimal": ","}, {"thousands": ","}]
)
def test_many_columns_are_read_as_each_alone(how, n_copies, repeats):
    options = TableOptions(**how)
    sorts = {name: cells * repeats for name, cells in SORTS.items()}
    copies = range(n_copies)
    values, found = cast(
        {f"{name} {k}": cells for name, cells in sorts.items() for k in copies}, options
    )
    for j, (name, cells) in enumerate(sorts.items()):
        alone, found_alone = cast({name: cells}, options)
        own = values[:, j * n_copies : (j + 1) * n_copies]
        np.testing.assert_array_equal(own, np.repeat(alone, n_copies, axis=1))
        assert all(found.get(f"{name} {k}") == found_alone.get(name) for k in copies)


def test_columns_lie_one_after_the_other():
    batch = pa.RecordBatch.from_pydict({"x": ["1", "2"], "y": ["3", ""]})
    values = TextColumns(("x", "y"), batch.schema, TableOptions()).cast(batch, 0)
    assert values.flags.f_contiguous
    np.testing.assert_array_equal(values, [[1, 3], [2, np.nan]])
