"""Columns by address: what is declined."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from a1gm._kernel import is_compiled, kernel

pytestmark = pytest.mark.skipif(not is_compiled, reason="NumPy declines every stream")


def stream_of(*columns: object) -> object:
    names = [f"c{k}" for k in range(len(columns))]
    return pa.table(list(columns), names=names).__arrow_c_stream__()


@pytest.mark.parametrize(
    "column",
    [
        pa.array(["text", "more"]),
        pa.array([True, None]),
        pa.array(["a", "b"]).dictionary_encode(),
        pa.array([], pa.float64()),
        pa.chunked_array([[1.0], [2.0]]),
        pa.array([[1.0], [2.0]]),
        pa.nulls(2),
    ],
)
def test_what_is_not_one_piece_of_numbers_is_declined(column: object) -> None:
    assert kernel.read_stream(stream_of(column)) is None


def test_streams_that_are_none() -> None:
    with pytest.raises(ValueError, match="PyCapsule"):
        kernel.read_stream("no stream")
    stream = kernel.write_stream(np.ones((2, 1)), ["a"])
    columns = kernel.read_stream(stream)
    assert columns.n_rows == 2
    assert kernel.read_stream(stream) is None  # its rows are gone
    with pytest.raises(IndexError):
        columns[1]


@pytest.mark.parametrize("name", ["a\0b", "\ud800"])
def test_names_that_arrow_cannot_hold_are_declined(name: str) -> None:
    assert kernel.write_stream(np.ones((2, 1)), [name]) is None
