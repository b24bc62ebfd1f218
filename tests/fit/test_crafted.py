"""Crafted models and bytes of pattern tables: row 69 of the list of faults.

Each is refused in words, at once, with no more memory than the bytes themselves.
"""

from __future__ import annotations

import io
import json
import os
import pickle
import time
import tracemalloc
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from support.containers import Arrays, Header, pack, unpack

import a1gm
from a1gm import PatternTable
from a1gm.exceptions import FileFormatError, ParameterError

nan = np.nan
X = np.array([[1.0, 2, nan], [2, nan, 1], [nan, 1, 3], [0, 0, 0]])
NAMED = pd.DataFrame(X, columns=list("abc"))
AT_ONCE = 2.0  # seconds; a busy machine included


def opened(kind: str, data: bytes, folder: Path) -> Any:
    if kind == "PatternTable":
        return PatternTable.from_bytes(data)
    (folder / "model.a1gm").write_bytes(data)
    return a1gm.load(folder / "model.a1gm")


def made(kind: str, folder: Path) -> bytes:
    if kind == "PatternTable":
        return PatternTable().update(NAMED, key="a").to_bytes()
    a1gm.fit(NAMED).save(folder / "good.a1gm", overwrite=True)
    return (folder / "good.a1gm").read_bytes()


def assert_refused(kind: str, data: bytes, folder: Path) -> str:
    tracemalloc.start()
    started = time.perf_counter()
    with pytest.raises(FileFormatError, match="refused") as caught:
        opened(kind, data, folder)
    seconds, (_, peak) = time.perf_counter() - started, tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert seconds < AT_ONCE
    assert peak < 100 * len(data) + (8 << 20)
    return str(caught.value)


kinds = pytest.mark.parametrize("kind", ["PatternTable", "RankOneFit"])


# ----------------------------------------------------------------------- containers
def archive_of(entries: dict[str, bytes]) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        for name, data in entries.items():
            archive.writestr(name, data)
    return file.getvalue()


def crafted(header: str | bytes, **arrays: bytes) -> bytes:
    more = {f"{name}.npy": data for name, data in arrays.items()}
    return archive_of({"header.json": header, **more})


def header_of(kind: str, **changes: Any) -> str:
    header = {"format": "a1gm model", "format_version": 2, "package_version": "1"}
    return json.dumps(header | {"kind": kind, "arrays": {}, "content": {}} | changes)


def array_of(shape: tuple[int, ...], text: str | None = None) -> bytes:
    """A .npy entry that claims a shape, or has another text for its header."""
    file = io.BytesIO()
    description = {"descr": "<f8", "fortran_order": False, "shape": shape}
    np.lib.format.write_array_header_1_0(file, description)
    if text is None:
        return file.getvalue()
    return file.getvalue()[:8] + len(text).to_bytes(2, "little") + text.encode()


def claims(kind: str, *shape: int, text: str | None = None) -> bytes:
    layout = {"x": {"dtype": "<f8", "shape": list(shape)}}
    array = array_of(shape, text)
    return crafted(header_of(kind, arrays=layout), x=array)


CRAFTED: dict[str, Callable[[str], bytes]] = {
    "shape of 2^40 by 0": lambda kind: claims(kind, 2**40, 0),
    "shape of 0 by 2^40": lambda kind: claims(kind, 0, 2**40),
    "shape of 2^20 by 0": lambda kind: claims(kind, 2**20, 0),
    "open brackets as an array": lambda kind: claims(kind, 0, text="((((\n"),
    "text as an array": lambda kind: claims(kind, 0, text="\x00'\n"),
    "deep lists": lambda kind: crafted("[" * 10**6),
    "deep lists in its content": lambda kind: crafted(
        header_of(kind, content=0)[:-2] + "[" * 10**5 + "]" * 10**5 + "}"
    ),
    "number of 10^5 digits": lambda kind: crafted(
        header_of(kind).replace("2,", "9" * 10**5 + ",", 1)
    ),
    "type of many brackets": lambda kind: crafted(
        header_of(kind, arrays={"x": {"dtype": "(" * 10**5, "shape": [0]}}),
        x=b"",
    ),
    "type of objects": lambda kind: crafted(
        header_of(kind, arrays={"x": {"dtype": "O", "shape": [0]}}), x=b""
    ),
    "not text": lambda kind: crafted(b"\xff\xfe\x00"),
    "a number": lambda kind: crafted("1"),
    "no arrays": lambda kind: crafted(header_of(kind, arrays=1)),
    "no content": lambda kind: crafted(header_of(kind, content=None)),
}


def with_header(**changes: Any) -> Callable[[dict[str, bytes]], Any]:
    def change(entries: dict[str, bytes]) -> None:
        header = json.loads(entries["header.json"])
        entries["header.json"] = json.dumps(header | changes).encode()

    return change


def with_array(array: np.ndarray) -> Callable[[dict[str, bytes]], Any]:
    """Another array in the place of the first."""

    def change(entries: dict[str, bytes]) -> None:
        file = io.BytesIO()
        np.save(file, array, allow_pickle=True)
        entries[next(name for name in entries if name.endswith(".npy"))] = (
            file.getvalue()
        )

    return change


ENTRIES: dict[str, tuple[Callable[[dict[str, bytes]], Any], str]] = {
    "not a model": (with_header(format="other"), "not that of a1gm"),
    "future": (with_header(format_version=99), "upgrade a1gm"),
    "past": (with_header(format_version=1), "earlier release"),
    "bad version": (with_header(format_version="x"), "format version"),
    "other kind": (with_header(kind="Other"), "Other"),
    "no content": (with_header(content={}), "do not make a"),
    "pickle": (with_array(np.array([{}], object)), "refused"),
    "other shape": (with_array(np.ones((20, 2))), "refused"),
    "no header": (lambda entries: entries.pop("header.json"), "no header"),
    "text header": (lambda e: e.update({"header.json": b"[1"}), "refused"),
    "more entries": (lambda e: e.update({"extra.npy": b"x"}), "not those"),
    "many entries": (lambda e: e.update({f"{k}": b"" for k in range(99)}), "entries"),
}


@kinds
@pytest.mark.parametrize("what", ENTRIES)
def test_fault_52_changed_entries(kind, what, tmp_path):
    with zipfile.ZipFile(io.BytesIO(made(kind, tmp_path))) as archive:
        entries = {name: archive.read(name) for name in archive.namelist()}
    change, words = ENTRIES[what]
    change(entries)
    assert words in assert_refused(kind, archive_of(entries), tmp_path)


@kinds
@pytest.mark.parametrize("data", [b"", b"PK\x03\x04", pickle.dumps([1]), b"x" * 100])
def test_fault_52_other_bytes(kind, data, tmp_path):
    assert_refused(kind, data, tmp_path)


@kinds
@pytest.mark.parametrize("what", CRAFTED)
def test_crafted_containers(kind, what, tmp_path):
    assert_refused(kind, CRAFTED[what](kind), tmp_path)


@kinds
@pytest.mark.parametrize("flags", [0x1, 0x20, 0x40])
@pytest.mark.parametrize("method", [0, 1, 8, 9, 12, 14, 97, 99])
def test_ways_of_packing_that_are_not_ours(kind, flags, method, tmp_path):
    """Encrypted, patched or packed entries: NotImplementedError in zipfile."""
    data = bytearray(made(kind, tmp_path))
    for mark, at in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        place = data.index(mark) + at
        data[place : place + 4] = flags.to_bytes(2, "little") + bytes([method, 0])
    assert_refused(kind, bytes(data), tmp_path)


@kinds
def test_any_bytes_changed(kind, tmp_path):
    good = made(kind, tmp_path)
    rng = np.random.default_rng(0)
    for _ in range(500):
        data = bytearray(good)
        for place in rng.integers(0, len(data), rng.integers(1, 4)):
            data[place] = rng.choice([0, 1, 91, 127, 128, 255])
        if rng.random() < 0.3:
            del data[int(rng.integers(len(data))) :]
        try:
            opened(kind, bytes(data), tmp_path)
        except FileFormatError as error:
            assert "refused" in str(error)  # noqa: PT017 - some changes do not matter


# ---------------------------------------------------------------------- their parts
def key_beyond(header: Header, arrays: Arrays) -> None:
    arrays["patterns.keys"] = arrays["patterns.keys"] | np.uint64(1 << 40)


def put(name: str, at: Any, value: float) -> Callable[[Header, Arrays], None]:
    def change(header: Header, arrays: Arrays) -> None:
        arrays[f"patterns.{name}"] = arrays[f"patterns.{name}"].copy()
        arrays[f"patterns.{name}"][at] = value

    return change


def say(**content: Any) -> Callable[[Header, Arrays], None]:
    return lambda header, arrays: header["content"].update(content)


def say_of_patterns(**content: Any) -> Callable[[Header, Arrays], None]:
    return lambda header, arrays: header["content"]["patterns"].update(content)


def signed_without_leave(header: Header, arrays: Arrays) -> None:
    say_of_patterns(n_negative=1)(header, arrays)
    put("sums", (0, 0), -1.0)(header, arrays)


PARTS: dict[str, Callable[[Header, Arrays], None]] = {
    "key bits beyond the columns": key_beyond,
    "NaN sum": put("sums", (0, 0), nan),
    "NaN rest of a sum": put("low", (0, 0), nan),
    "infinite sum": put("sums", (0, 0), np.inf),
    "negative sum": put("sums", (0, 0), -1.0),
    "negative rest of a sum": put("low", (0, 0), -1e9),
    "negative sum that nobody allowed": signed_without_leave,
    "sum of a missing cell": put("sums", (0, 2), 1.0),
    "NaN sum of a row": put("sum_of_row", 0, nan),
    "negative sum of a row": put("sum_of_row", 0, -1.0),
    "other zero rows": put("sum_of_row", 0, 0.0),
    "pattern of a row beyond the patterns": put("pattern_of_row", 0, 99),
    "other patterns of rows": put("pattern_of_row", 0, 1),
    "negative count": put("counts", 0, -1),
    "labels that repeat": say(labels=["a", "a", "b"]),
    "labels of two kinds": say(labels=["a", 1, "b"]),
    "labels of nothing": say(labels=[None, "a", "b"]),
    "labels that are lists": say(labels=[["a"], "b", "c"]),
    "too many labels": say(labels=list("abcd")),
    "columns of 2^62": say(n_columns=2**62),
    "rows of 2^62": say(n_rows=2**62 - 1),
    "keys that nest": say(pieces=[[[{}]]]),
    "exponent of 2^40": say_of_patterns(exponent=2**40),
    "columns of 2^40": say_of_patterns(n_cols=2**40),
}


@pytest.mark.parametrize("what", PARTS)
def test_crafted_parts_of_a_pattern_table(what, tmp_path):
    header, arrays = unpack(made("PatternTable", tmp_path))
    PARTS[what](header, arrays)
    words = assert_refused("PatternTable", pack(header, arrays), tmp_path)
    assert "Write them again with to_bytes" in words


def test_factors_below_zero_that_were_allowed_are_read(tmp_path):
    columns = np.array([[5.0, -2.0, 3.0], [4.0, -1.0, 2.0], [6.0, -3.0, 2.0]])
    for k, X in enumerate((columns, columns.T)):  # a row then sums to less than 0
        table = PatternTable(negatives="allow").update(X)
        fits = [a1gm.fit(X, negatives="allow"), table.solve()]
        fits.append(PatternTable.from_bytes(table.to_bytes()).solve())
        for fit in fits:
            path = tmp_path / "signed.a1gm"
            fit.save(path, overwrite=True)
            again = a1gm.load(path)
            assert (again.row_factor, again.col_factor)[1 - k].min() < 0.0
            np.testing.assert_allclose(again.row_factor, X.sum(1))
            np.testing.assert_array_equal(again.impute(X), X)


# ------------------------------------------------------------------------ no files
@pytest.mark.timeout(20)
@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes")
def test_a_pipe_is_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(FileFormatError, match="pipe or a device"):
        a1gm.load(tmp_path / "pipe")


def test_a_name_with_nul(tmp_path):
    with pytest.raises(FileFormatError, match="cannot be read"):
        a1gm.load(f"{tmp_path}/a\0b")


@pytest.mark.parametrize("data", [None, "text", 12, [1], {}])
def test_things_that_are_no_bytes(data):
    with pytest.raises(ParameterError, match="takes bytes, as to_bytes gives them"):
        PatternTable.from_bytes(data)
    with pytest.raises(FileFormatError, match="not those of a pattern table"):
        PatternTable.from_bytes(b"")


@kinds
def test_bytes_before_or_behind_an_archive_are_refused(kind, tmp_path):
    good = made(kind, tmp_path)
    for data in (good + b"z", b"z" + good, good + good):
        with pytest.raises(FileFormatError, match="other bytes"):
            opened(kind, data, tmp_path)


def test_bytes_come_in_any_buffer():
    good = PatternTable().update(NAMED).to_bytes()
    for data in (bytearray(good), memoryview(good)):
        assert PatternTable.from_bytes(data).to_bytes() == good
