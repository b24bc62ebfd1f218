"""The parts of a pattern table as bytes, every part checked when it is read."""

from __future__ import annotations

import io
from collections.abc import Hashable
from functools import partial
from typing import Any, TypeAlias

import numpy as np

from a1gm._base.bits import names_of_rows
from a1gm._base.float_range import shifted
from a1gm._base.types import AnyArray, Floats
from a1gm._base.version import __version__
from a1gm._base.words import shown
from a1gm._observe.codec import (
    is_count,
    labels_from_json,
    need,
    read_archive,
    write_archive,
)
from a1gm._observe.observation import Observation
from a1gm._observe.statistics import PatternStatistics
from a1gm._observe.sums import ALL_ROWS, PatternSums
from a1gm.exceptions import FileFormatError, ParameterError

KIND = "PatternTable"
_need = partial(need, "a pattern table")
SUMS = ("key_words", "counts", "zero_counts", "hi", "lo")

#: Sums, patterns and exponent of the rows of each piece.
RowPieces: TypeAlias = list[tuple[Floats, AnyArray, int]]


def joined_rows(
    rows: RowPieces, statistics: PatternStatistics, exponent: int, n_negative: int
) -> Observation:
    """The statistics of a table, with the sum and the pattern of each of its rows."""
    return Observation(
        np.concatenate([shifted(r, e - exponent) for r, _, e in rows]),
        np.concatenate([lines for _, lines, _ in rows]),
        statistics,
        exponent,
        n_negative,
    )


def write_table(
    content: dict[str, Any],
    pieces: set[Hashable],
    sums: PatternSums | None,
    rows: RowPieces,
) -> bytes:
    """Write the parts of a table; ``content`` is what JSON can hold."""
    content = content | {
        "exponent": 0 if sums is None else sums.exponent,
        "scatter_exponents": [own.exponent for _, own in _scatter_of(sums)],
        "pieces": [_key_to_json(key) for key in pieces],
        "row_pieces": [(len(r), e) for r, _, e in rows],
    }
    arrays: dict[str, AnyArray] = {}
    if sums is not None:
        arrays = {name: getattr(sums, name) for name in SUMS}
    for name, own in _scatter_of(sums):
        arrays |= {f"{name}_hi": own.hi, f"{name}_lo": own.lo}
    if rows:
        arrays["row_sums"] = np.concatenate([r for r, _, _ in rows])
        arrays["lines"] = np.concatenate([k for _, k, _ in rows], dtype=np.int32)
    file = io.BytesIO()
    write_archive(file, KIND, content, arrays, version=__version__)
    return file.getvalue()


def _scatter_of(sums: PatternSums | None) -> list[tuple[str, PatternSums]]:
    """The sums beside those of the cells, by name; none where nobody asked."""
    if sums is None or sums.squares is None or sums.logs is None:
        return []
    return [("squares", sums.squares), ("logs", sums.logs)]


def read_table(
    data: bytes,
) -> tuple[dict[str, Any], set[Hashable], PatternSums | None, RowPieces]:
    """Read content, keys of the pieces, sums and rows; raises FileFormatError."""
    if not isinstance(data, bytes | bytearray | memoryview):
        raise ParameterError(
            "from_bytes takes bytes, as to_bytes gives them; this is a "
            f"{type(data).__name__}."
        )
    try:
        return read_archive(io.BytesIO(data), len(data), KIND, _parts_of)
    except FileFormatError as error:
        raise FileFormatError(
            "These bytes are refused: they are not those of a pattern table, or "
            f"{shown(error)}. Write them again with to_bytes."
        ) from error


def _parts_of(
    content: dict[str, Any], arrays: dict[str, AnyArray]
) -> tuple[dict[str, Any], set[Hashable], PatternSums | None, RowPieces]:
    n_columns, n_rows = content["n_columns"], content["n_rows"]
    _need(n_columns is None or is_count(n_columns, 1, 2**31), "n_columns")
    _need(is_count(n_rows) and is_count(content["n_negative"]), "n_rows")
    _need(isinstance(content["keep_rows"], bool), "keep_rows")
    _need(isinstance(content.get("uncertainty", False), bool), "uncertainty")
    _need(content["negatives"] in ("raise", "allow"), "negatives")
    _need(isinstance(content["pieces"], list), "pieces")
    pieces = {_key_from_json(key) for key in content["pieces"]}
    _need(n_columns is not None or content["labels"] is None, "labels")
    content["labels"] = labels_from_json(content["labels"], n_columns or 0, unique=True)
    if not arrays:
        _need(n_rows == 0, "n_rows")
        return content, pieces, None, []
    sums = _sums_of(arrays, content)
    _need(sums.n_cols == n_columns, "n_columns")
    _need(int(sums.counts.sum()) == n_rows, "n_rows")
    rows: RowPieces = []
    if content["keep_rows"]:
        signed = content["n_negative"] > 0
        rows = _rows_of(arrays, content["row_pieces"], n_rows, sums, signed=signed)
    return content, pieces, sums, rows


def _sums_of(arrays: dict[str, AnyArray], content: dict[str, Any]) -> PatternSums:
    keys, hi, lo = arrays["key_words"], arrays["hi"], arrays["lo"]
    counts, zero_counts = arrays["counts"], arrays["zero_counts"]
    PatternStatistics(keys, counts, hi).check()
    _need(lo.dtype == hi.dtype and lo.shape == hi.shape, "lo")
    _need(bool(np.isfinite(lo).all()), "lo")
    # Signs are kept only where they were allowed.
    signed = content["n_negative"] > 0
    _need(content["negatives"] == "allow" or not signed, "n_negative")
    _need(signed or not (hi + lo < 0.0).any(), "hi")
    is_like = zero_counts.dtype == counts.dtype and zero_counts.shape == counts.shape
    _need(is_like, "zero_counts")
    _need(not ((zero_counts < 0) | (zero_counts > counts)).any(), "zero_counts")
    exponent = content["exponent"]
    _need(type(exponent) is int and abs(exponent) < 2048, "exponent")
    sums = PatternSums(hi.shape[1])
    places = sums.places(names_of_rows(keys))
    sums.exponent = exponent
    sums.add(places, hi, counts, zero_counts)
    sums.lo[places] += lo
    exponents = content.get("scatter_exponents", [])
    _need(isinstance(exponents, list) and len(exponents) in (0, 2), "scatter_exponents")
    if exponents:
        keys_of = {"squares": names_of_rows(keys), "logs": [ALL_ROWS]}
        sums.squares, sums.logs = (
            _beside(arrays, name, keys_of[name], exponent)
            for name, exponent in zip(keys_of, exponents, strict=True)
        )
        sums.statistics().check()
    return sums


def _beside(
    arrays: dict[str, AnyArray], name: str, keys: list[bytes], exponent: Any
) -> PatternSums:
    """Sums that were kept beside those of the cells."""
    _need(type(exponent) is int and abs(exponent) < 2048, "scatter_exponents")
    hi, lo = arrays[f"{name}_hi"], arrays[f"{name}_lo"]
    for part in (hi, lo):
        is_table = part.ndim == 2 and part.dtype == np.float64
        _need(is_table and len(part) == len(keys) and part.shape == hi.shape, name)
        _need(bool(np.isfinite(part).all()), name)
    return PatternSums.of(hi, lo, keys, exponent)


def _rows_of(
    arrays: dict[str, AnyArray],
    layout: Any,
    n_rows: int,
    sums: PatternSums,
    *,
    signed: bool,
) -> RowPieces:
    row_sums, lines = arrays["row_sums"], arrays["lines"]
    _need(row_sums.dtype == np.float64 and row_sums.shape == (n_rows,), "row_sums")
    _need(bool(np.isfinite(row_sums).all()), "row_sums")
    _need(signed or not (row_sums < 0.0).any(), "row_sums")
    _need(lines.dtype == np.int32 and lines.shape == (n_rows,), "lines")
    in_range = not n_rows or (lines.min() >= 0 and lines.max() < len(sums))
    _need(bool(in_range), "lines")
    found = np.bincount(lines, minlength=len(sums))
    _need(np.array_equal(found, sums.counts), "lines")
    zero = np.bincount(lines[row_sums == 0.0], minlength=len(sums))
    _need(np.array_equal(zero, sums.zero_counts), "zero_counts")
    pieces: RowPieces = []
    at = 0
    for length, exponent in layout:
        _need(is_count(length) and type(exponent) is int, "row_pieces")
        _need(abs(exponent) < 2048, "row_pieces")
        some = slice(at, at + length)
        pieces.append((row_sums[some], lines[some], exponent))
        at += length
    _need(at == n_rows, "row_pieces")
    return pieces


def _key_to_json(key: Hashable) -> Any:
    if isinstance(key, tuple):
        return [_key_to_json(part) for part in key]
    if isinstance(key, bool) or not isinstance(key, int | str | float):
        raise ParameterError(
            f"The key {key!r} of a piece cannot be written: use numbers, texts or "
            "tuples of them as keys."
        )
    return key


def _key_from_json(key: Any) -> Hashable:
    if isinstance(key, list):
        return tuple(_key_from_json(part) for part in key)
    _need(isinstance(key, int | str | float), "a key")
    return key  # type: ignore[no-any-return]
