"""Columns by address: what is refused, and what is declined."""

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


@pytest.mark.parametrize(
    ("values", "names", "words"),
    [
        (np.ones((2, 2)), ["a", "b"], "columns are contiguous"),
        (np.ones((2, 1), np.float32), ["a"], "array of float64"),
        (np.ones((2, 1)), [], "one text per column"),
        (np.ones((2, 1)), [1], "one text per column"),
        (np.ones((2, 1)), ["a\0b"], "one text per column"),
        (np.ones((2, 1)), ["\ud800"], "one text per column"),
    ],
)
def test_bad_frames_are_refused(
    values: np.ndarray, names: list[object], words: str
) -> None:
    with pytest.raises(ValueError, match=words):
        kernel.write_stream(values, names)
