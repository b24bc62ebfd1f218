"""Hostile model files and bytes of pattern tables: refused in words, never obeyed.

Every field of every kind of container is changed (type, shape, range, order, size,
sign, missing, extra), the container packed again with valid sizes and checksums, and
opened by another process, which then asks all that can be asked. Containers that were
crafted by hand (row 69 of the list of faults) are refused at once.
"""

from __future__ import annotations

import copy
import io
import json
import multiprocessing
import os
import pickle
import sys
import time
import tracemalloc
import zipfile
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support.containers import MODEL_HEADER, Arrays, Header, pack, unpack
from support.frames import holed_table
from support.suite import daily
from ways.kinds import KINDS
from ways.ways import in_pieces

import a1gm
from a1gm._observe import observe as _observe
from a1gm.exceptions import FileFormatError, ParameterError

nan = np.nan
PATIENCE = 30  # seconds; a mutated table is as small as the one it was
pytestmark = pytest.mark.filterwarnings("ignore::a1gm.exceptions.A1gmWarning")


# ---------------------------------------------------------------------- the subjects
table = partial(holed_table, 8, 5, 0.3)
BLOCKS = np.array(
    [
        [0.0, 5, nan, nan, nan],
        [5, nan, nan, nan, nan],
        [nan, nan, 2, 4, nan],
        [nan, nan, nan, 3, nan],
        [nan, nan, nan, nan, nan],
        [nan, nan, 0, 0, nan],
    ]
)
WIDE = holed_table(12, 70, 0.5)


def in_masks(X: np.ndarray) -> Any:
    """Fit a small table as if its patterns were too many for a table of them."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_observe, "TABLE_CELLS", 1)
        return a1gm.fit(X)


def with_zeros(X: np.ndarray) -> np.ndarray:
    return np.where(X < 0.5, 0.0, X)


def labelled() -> Any:
    X = table()
    return a1gm.fit(pd.DataFrame(X, columns=list("abcde"), index=list("rstuvwxy")))


def labelled_table() -> Any:
    frame = pd.DataFrame(table(), columns=list("abcde"))
    return a1gm.PatternTable().update(frame, key="a").update(frame, key=("b", 1))


#: Kinds of fit, each of an ordinary table and of one of several blocks.
MODELS: dict[str, Callable[[Path], Any]] = {
    "masks": lambda folder: in_masks(WIDE),
    "masks and zeros": lambda folder: in_masks(with_zeros(WIDE)),
    "labels": lambda folder: labelled(),
    "with scatter": lambda folder: in_pieces(table(), uncertainty=True).solve(),
    **{
        f"{kind}, {name}": lambda folder, X=X, kind=kind: KINDS[kind](X, folder).fit
        for kind in ("in memory", "sparse", "file, masks")
        for name, X in {"table": table(), "blocks": BLOCKS}.items()
    },
    **{
        kind: lambda folder, kind=kind: KINDS[kind](table(), folder).fit
        for kind in ("weighted", "negatives", "pieces without rows")
    },
}
TABLES: dict[str, Callable[[], Any]] = {
    "table with rows": lambda: in_pieces(table()),
    "table without rows": lambda: in_pieces(table(), keep_rows=False),
    "table with scatter": lambda: in_pieces(table(), uncertainty=True),
    "table of blocks": lambda: in_pieces(BLOCKS),
    "table with labels and keys": labelled_table,
    "table of many columns": lambda: in_pieces(holed_table(9, 70, 0.3)),
    "empty table": a1gm.PatternTable,
}
SUBJECTS = [*MODELS, *TABLES]
ONE_OF_EACH_FORM = (
    "in memory, blocks",
    "file, masks, table",
    "weighted",
    "table with labels and keys",
)


@pytest.fixture(scope="module")
def containers(tmp_path_factory) -> Callable[[str], tuple[Header, Arrays]]:
    """Header and arrays of a subject, to be spoilt."""
    kept: dict[str, tuple[Header, Arrays]] = {}

    def get(subject: str) -> tuple[Header, Arrays]:
        if subject not in kept:
            folder = tmp_path_factory.mktemp("subject")
            if subject in TABLES:
                data = TABLES[subject]().to_bytes()
            else:
                MODELS[subject](folder).save(folder / "model.a1gm", overwrite=True)
                data = (folder / "model.a1gm").read_bytes()
            kept[subject] = unpack(data)
        header, arrays = kept[subject]
        return copy.deepcopy(header), dict(arrays)  # arrays are replaced, not changed

    return get


# ----------------------------------------------------------------------- the changes
def at(place: int, value: float) -> Callable[[np.ndarray], Any]:
    """Put a value at one place, if the type of the array can hold it."""

    def change(a: np.ndarray) -> np.ndarray:
        out = a.copy()
        with np.errstate(all="ignore"):
            out.flat[place] = value
        return out

    return change


def largest(a: np.ndarray) -> np.ndarray:
    kinds = {"f": np.finfo, "i": np.iinfo, "u": np.iinfo}
    is_bool = a.dtype.kind == "b"
    return np.full_like(a, True if is_bool else kinds[a.dtype.kind](a.dtype).max)


def cast(kind: str) -> Callable[[np.ndarray], np.ndarray]:
    def change(a: np.ndarray) -> np.ndarray:
        with np.errstate(all="ignore"):
            return np.nan_to_num(a).astype(kind)

    return change


VALUES = (-1, 0, 64, 2**31, 2**40, -(2**40), 2**62, nan, np.inf, 1e308, -0.5)
TYPES = ("f4", "f2", "i1", "i8", "u8", "b1", ">f8")
# What raises does not apply to the array.
CHANGES: dict[str, Callable[[np.ndarray], Any]] = {
    "empty": lambda a: a[:0],
    "no items": lambda a: np.zeros((0,) * max(a.ndim, 1), a.dtype),
    "one less": lambda a: a[:-1],
    "one more": lambda a: np.concatenate([a, a[-1:]]),
    "twice": lambda a: np.concatenate([a, a]),
    "flat": np.ravel,
    "a number": lambda a: a.reshape(-1)[0],
    "a column": lambda a: a.reshape(-1, 1),
    "turned": lambda a: a.T.copy() if a.ndim > 1 else a[None],
    "narrower": lambda a: a[:, :-1],
    "wider": lambda a: np.hstack([a, a]),
    "deep": lambda a: a.reshape(a.shape + (1,) * 20),
    "reversed": lambda a: a[::-1].copy(),
    "sorted down": lambda a: np.sort(a, axis=None)[::-1].reshape(a.shape).copy(),
    "all zero": np.zeros_like,
    "all one": np.ones_like,
    "all largest": largest,
    "negated": lambda a: ~a if a.dtype.kind == "b" else (0 - a).astype(a.dtype),
    **{f"as {kind}": cast(kind) for kind in TYPES},
    **{f"{x} at {place}": at(place, x) for place in (0, -1) for x in VALUES},
}
DEEP: list[Any] = []
for _ in range(400):
    DEEP = [DEEP]
REPLACEMENTS: dict[str, Any] = {
    **{repr(x): x for x in (None, True, -1, 0, 1, 2**40, 2**200, 1e308, nan, np.inf)},
    **{repr(x): x for x in ("x", "", [], [None], {}, {"a": {"b": [1, {"c": None}]}})},
    "long text": "x" * 100_000,
    "long list": [0] * 100_000,
    "deep list": DEEP,
}
MISSING, EXTRA = "missing", "extra"


class Change(NamedTuple):
    """One change to one field; ``where`` is an array's name or a path in the header."""

    where: str | tuple[Any, ...]
    how: str

    def apply(self, header: Header, arrays: Arrays) -> bool:
        """Change the container in place; False when the change does not apply."""
        if isinstance(self.where, str):
            return self._apply_to_array(arrays)
        *path, key = self.where
        holder: Any = header
        try:
            for step in path:
                holder = holder[step]
            if self.how == MISSING:
                del holder[key]
            elif self.how == EXTRA:
                holder[f"{key}_" if isinstance(holder, dict) else key] = 1
            else:
                holder[key] = copy.deepcopy(REPLACEMENTS[self.how])
        except (KeyError, IndexError, TypeError):  # changed away before
            return False
        return True

    def _apply_to_array(self, arrays: Arrays) -> bool:
        name = str(self.where)
        if name not in arrays:
            return False
        if self.how == MISSING:
            del arrays[name]
            return True
        if self.how == EXTRA:
            arrays[f"{name}_"] = arrays[name]
            return True
        try:
            arrays[name] = np.asarray(CHANGES[self.how](arrays[name]))
        except (IndexError, TypeError, ValueError, RuntimeError, OverflowError):
            return False
        return True


def fields_of(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Every field of a header, nested ones too; of a list its ends."""
    if isinstance(value, dict):
        keys: list[Any] = list(value)
    elif isinstance(value, list) and value:
        keys = sorted({0, len(value) - 1})
    else:
        return
    for key in keys:
        yield (*path, key)
        yield from fields_of(value[key], (*path, key))


def changes_of(header: Header, arrays: Arrays) -> list[Change]:
    """Every single change there is for a container."""
    found = [
        Change(path, how)
        for path in fields_of(header)
        for how in (*REPLACEMENTS, MISSING, EXTRA)
    ]
    found += [
        Change(name, how) for name in arrays for how in (*CHANGES, MISSING, EXTRA)
    ]
    return found


# ------------------------------------------------------------------------ the worker
class Worker:
    """Another process that opens containers, started again after each crash."""

    def __init__(self) -> None:
        self.pool: ProcessPoolExecutor | None = None

    def verdict(self, subject: str, header: Header, arrays: Arrays) -> str:
        """What becomes of a container: "fine", or what is wrong."""
        from support import hostile  # needs Unix

        if self.pool is None:
            spawn = multiprocessing.get_context("spawn")
            self.pool = ProcessPoolExecutor(1, spawn, hostile.prepare)
        kind = "table" if subject in TABLES else "model"
        found = self.pool.submit(hostile.verdict, kind, pack(header, arrays))
        try:
            return found.result(timeout=PATIENCE)
        except (BrokenProcessPool, TimeoutError) as error:
            self.stop()
            return f"the interpreter crashed or hangs: {error!r}"

    def stop(self) -> None:
        if self.pool is not None:
            for process in list((self.pool._processes or {}).values()):
                process.kill()
            self.pool.shutdown()
        self.pool = None


@pytest.fixture(scope="module")
def worker() -> Iterator[Worker]:
    if sys.platform == "win32":
        pytest.skip("limits memory as Unix does")
    found = Worker()
    yield found
    found.stop()


# -------------------------------------------------------------------------- the tests
@pytest.mark.parametrize("subject", SUBJECTS)
def test_what_is_packed_again_unchanged_is_read(containers, worker, subject):
    header, arrays = containers(subject)
    assert worker.verdict(subject, header, arrays) == "fine"


@pytest.mark.parametrize("subject", daily(SUBJECTS, ONE_OF_EACH_FORM))
def test_every_field_changed_in_every_way(containers, worker, subject):
    wrong: dict[Any, str] = {}
    for change in changes_of(*containers(subject)):
        if change.where in wrong:  # one fault of a field is enough
            continue
        header, arrays = containers(subject)
        if change.apply(header, arrays):
            verdict = worker.verdict(subject, header, arrays)
            if verdict != "fine":
                wrong[change.where] = f"{change.where} {change.how}: {verdict}"
    assert not wrong, "\n".join(wrong.values())


@settings(suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_several_fields_changed_at_once(containers, worker, data):
    subject = data.draw(st.sampled_from(SUBJECTS), label="subject")
    header, arrays = containers(subject)
    possible = changes_of(header, arrays)
    chosen = data.draw(
        st.lists(st.sampled_from(possible), min_size=2, max_size=5), label="changes"
    )
    for change in chosen:
        change.apply(header, arrays)
    assert worker.verdict(subject, header, arrays) == "fine"


@settings(suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_any_bit_of_an_array_changed(containers, worker, data):
    """Values that no list of bad ones has: the arrays' own bytes, at random."""
    subject = data.draw(st.sampled_from(SUBJECTS), label="subject")
    header, arrays = containers(subject)
    sized = [name for name, array in arrays.items() if array.nbytes]
    if not sized:
        return
    name = data.draw(st.sampled_from(sized), label="array")
    raw = np.frombuffer(bytearray(arrays[name].tobytes()), np.uint8)
    if arrays[name].dtype.kind == "b":
        raw = raw ^ 1
    else:
        place = data.draw(st.integers(0, len(raw) - 1), label="byte")
        raw[place] ^= 1 << data.draw(st.integers(0, 7), label="bit")
    arrays[name] = raw.view(arrays[name].dtype).reshape(arrays[name].shape)
    assert worker.verdict(subject, header, arrays) == "fine"


# ------------------------------------------------------------------ crafted containers
X = np.array([[1.0, 2, nan], [2, nan, 1], [nan, 1, 3], [0, 0, 0]])
NAMED = pd.DataFrame(X, columns=list("abc"))
AT_ONCE = 2.0  # seconds of work, whatever else the machine does
Entries = dict[str, bytes]
kinds = pytest.mark.parametrize("kind", ["PatternTable", "RankOneFit"])


def opened(kind: str, data: bytes, folder: Path) -> Any:
    if kind == "PatternTable":
        return a1gm.PatternTable.from_bytes(data)
    (folder / "model.a1gm").write_bytes(data)
    return a1gm.load(folder / "model.a1gm")


def made(kind: str, folder: Path) -> bytes:
    if kind == "PatternTable":
        return a1gm.PatternTable().update(NAMED, key="a").to_bytes()
    a1gm.fit(NAMED).save(folder / "good.a1gm", overwrite=True)
    return (folder / "good.a1gm").read_bytes()


def assert_refused(kind: str, data: bytes, folder: Path) -> str:
    """Refused in words, at once, with no more memory than the bytes themselves."""
    tracemalloc.start()
    started = time.process_time()
    with pytest.raises(FileFormatError, match="refused") as caught:
        opened(kind, data, folder)
    seconds, (_, peak) = time.process_time() - started, tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert seconds < AT_ONCE
    assert peak < 100 * len(data) + (8 << 20)
    return str(caught.value)


def with_header(**changes: Any) -> Callable[[Entries], Any]:
    def change(entries: Entries) -> None:
        header = json.loads(entries[MODEL_HEADER])
        entries[MODEL_HEADER] = json.dumps(header | changes).encode()

    return change


def with_text(make: Callable[[bytes], bytes]) -> Callable[[Entries], Any]:
    """Another text for the header, made of the one that is there."""
    return lambda entries: entries.update({MODEL_HEADER: make(entries[MODEL_HEADER])})


def with_array(array: np.ndarray) -> Callable[[Entries], Any]:
    """Another array in the place of the first."""

    def change(entries: Entries) -> None:
        file = io.BytesIO()
        np.save(file, array, allow_pickle=True)
        name = next(name for name in entries if name.endswith(".npy"))
        entries[name] = file.getvalue()

    return change


def claims(
    *shape: int, dtype: str = "<f8", text: str | None = None
) -> Callable[[Entries], Any]:
    """One array that claims a shape, or has another text for its own header."""
    file = io.BytesIO()
    description = {"descr": dtype, "fortran_order": False, "shape": shape}
    np.lib.format.write_array_header_1_0(file, description)
    entry = file.getvalue()
    if text is not None:
        entry = entry[:8] + len(text).to_bytes(2, "little") + text.encode()

    def change(entries: Entries) -> None:
        header = entries[MODEL_HEADER]
        entries.clear()
        entries.update({MODEL_HEADER: header, "x.npy": entry})

    return change


DIGITS = b'"format_version": ' + b"9" * 10**5 + b', "format_version"'
DEEP_TEXT = b'"content": ' + b"[" * 10**5 + b"]" * 10**5 + b', "content"'
#: Changes of the entries of an archive, and words of the refusal (fault 52).
ENTRIES: dict[str, tuple[Callable[[Entries], Any], str]] = {
    "not a model": (with_header(format="other"), "not that of a1gm"),
    "future": (with_header(format_version=99), "upgrade a1gm"),
    "past": (with_header(format_version=1), "fit again and save"),
    "bad version": (with_header(format_version="x"), "format version"),
    "other kind": (with_header(kind="Other"), "Other"),
    "empty content": (with_header(content={}), "do not make a"),
    "no content": (with_header(content=None), "do not make a"),
    "pickle": (with_array(np.array([{}], object)), "refused"),
    "other shape": (with_array(np.ones((20, 2))), "refused"),
    "no header": (lambda entries: entries.pop(MODEL_HEADER), "no header"),
    "more entries": (lambda e: e.update({"extra.npy": b"x"}), "refused"),
    "many entries": (lambda e: e.update({f"{k}": b"" for k in range(99)}), "refused"),
    "shape of 2^40 by 0": (claims(2**40, 0), "not one of numbers"),
    "shape of 2^20 by 0": (claims(2**20, 0), "refused"),
    "text as an array": (claims(0, text="\x00'\n"), "refused"),
    "type of many brackets": (claims(0, dtype="(" * 9000), "refused"),
    "type of objects": (claims(0, dtype="O"), "not one of numbers"),
    "header of bytes": (with_text(lambda _: b"\xff\xfe\x00"), "refused"),
    "header of a number": (with_text(lambda _: b"1"), "not that of a1gm"),
    "deep lists": (with_text(lambda _: b"[" * 10**6), "refused"),
    "deep lists in its content": (
        with_text(lambda text: text.replace(b'"content"', DEEP_TEXT)),
        "refused",
    ),
    "number of 10^5 digits": (
        with_text(lambda text: text.replace(b'"format_version"', DIGITS)),
        "refused",
    ),
}


@kinds
@pytest.mark.parametrize("what", ENTRIES)
def test_fault_52_changed_entries(kind, what, tmp_path):
    with zipfile.ZipFile(io.BytesIO(made(kind, tmp_path))) as archive:
        entries = {name: archive.read(name) for name in archive.namelist()}
    change, words = ENTRIES[what]
    change(entries)
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        for name, data in entries.items():
            archive.writestr(name, data)
    assert words in assert_refused(kind, file.getvalue(), tmp_path)


def packed(flags: int, method: int) -> Callable[[bytes], bytes]:
    """Encrypted, patched or packed entries: NotImplementedError in zipfile."""

    def change(good: bytes) -> bytes:
        data = bytearray(good)
        for mark, at in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
            place = data.index(mark) + at
            data[place : place + 4] = flags.to_bytes(2, "little") + bytes([method, 0])
        return bytes(data)

    return change


OTHER_BYTES: dict[str, tuple[Callable[[bytes], bytes], str]] = {
    "start of a zip file": (lambda _: b"PK\x03\x04", "refused"),
    "pickle": (lambda _: pickle.dumps([1]), "refused"),
    "bytes behind": (lambda good: good + b"z", "other bytes"),
    "twice": (lambda good: good + good, "other bytes"),
    **{
        f"packed by {flags} and {method}": (packed(flags, method), "refused")
        for flags in (0x1, 0x20, 0x40)
        for method in (0, 1, 8, 9, 12, 14, 97, 99)
    },
}


@kinds
@pytest.mark.parametrize("what", OTHER_BYTES)
def test_fault_52_other_bytes(kind, what, tmp_path):
    change, words = OTHER_BYTES[what]
    data = change(made(kind, tmp_path))
    assert words in assert_refused(kind, data, tmp_path)


# ---------------------------------------------------------------------- their parts
def key_beyond(header: Header, arrays: Arrays) -> None:
    arrays["patterns.keys"] = arrays["patterns.keys"] | np.uint64(1 << 40)


def put(name: str, at: Any, value: float) -> Callable[[Header, Arrays], None]:
    def change(header: Header, arrays: Arrays) -> None:
        arrays[f"patterns.{name}"] = arrays[f"patterns.{name}"].copy()
        arrays[f"patterns.{name}"][at] = value

    return change


def content(**values: Any) -> Callable[[Header, Arrays], None]:
    return lambda header, arrays: header["content"].update(values)


def patterns(**values: Any) -> Callable[[Header, Arrays], None]:
    return lambda header, arrays: header["content"]["patterns"].update(values)


def signed_without_leave(header: Header, arrays: Arrays) -> None:
    patterns(n_negative=1)(header, arrays)
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
    "labels that repeat": content(labels=["a", "a", "b"]),
    "labels of two kinds": content(labels=["a", 1, "b"]),
    "labels of nothing": content(labels=[None, "a", "b"]),
    "labels that are lists": content(labels=[["a"], "b", "c"]),
    "too many labels": content(labels=list("abcd")),
    "columns of 2^62": content(n_columns=2**62),
    "rows of 2^62": content(n_rows=2**62 - 1),
    "keys that nest": content(pieces=[[[{}]]]),
    "columns of 2^40": patterns(n_cols=2**40),
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
        table = a1gm.PatternTable(negatives="allow").update(X)
        fits = [a1gm.fit(X, negatives="allow"), table.solve()]
        fits.append(a1gm.PatternTable.from_bytes(table.to_bytes()).solve())
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
        a1gm.PatternTable.from_bytes(data)
    with pytest.raises(FileFormatError, match="not those of a pattern table"):
        a1gm.PatternTable.from_bytes(b"")


def test_bytes_come_in_any_buffer_and_are_the_same_on_another_day(monkeypatch):
    good = a1gm.PatternTable().update(NAMED).to_bytes()
    monkeypatch.setattr("time.time", lambda: 1e9)
    for data in (bytearray(good), memoryview(good)):
        assert a1gm.PatternTable.from_bytes(data).to_bytes() == good
