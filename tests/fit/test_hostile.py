"""Hostile model files and bytes of pattern tables: refused in words, never obeyed.

Every field of every kind of container is changed (type, shape, range, order, size,
sign, missing, extra), the container packed again with valid sizes and checksums, and
opened by another process, which then asks all that can be asked.
"""

from __future__ import annotations

import copy
import multiprocessing
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support import hostile
from support.containers import Arrays, Header, pack, unpack
from ways.file_ways import masks_on_disk, write_parquet
from ways.ways import in_pieces

import a1gm
from a1gm._observe import observe as _observe

nan = np.nan
PATIENCE = 30  # seconds; a mutated table is as small as the one it was
pytestmark = [
    pytest.mark.filterwarnings("ignore::a1gm.exceptions.A1gmWarning"),
    pytest.mark.skipif(sys.platform == "win32", reason="limits memory as Unix does"),
]


# ---------------------------------------------------------------------- the subjects
def table(n: int = 8, m: int = 5, share: float = 0.3) -> np.ndarray:
    rng = np.random.default_rng(0)
    X = rng.gamma(2.0, size=(n, m))
    X[rng.random(X.shape) < share] = nan
    X[0], X[:, 0] = 1.0, 1.0
    return X


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
WIDE = table(12, 70, 0.5)


def sparse(X: np.ndarray) -> sp.csr_array:
    rows, cols = np.nonzero(~np.isnan(X))
    return sp.csr_array((X[rows, cols], (rows, cols)), shape=X.shape)


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


def weighted(X: np.ndarray) -> Any:
    return a1gm.fit(X, weights=np.linspace(0.5, 2.0, X.size).reshape(X.shape))


def streamed(X: np.ndarray, folder: Path) -> Any:
    with masks_on_disk():
        return a1gm.fit_file(write_parquet(X, folder / "table.parquet"))


def negative() -> Any:
    X = table()
    X[0, 0] = -0.25
    return a1gm.fit(X, negatives="allow")


def labelled_table() -> Any:
    frame = pd.DataFrame(table(), columns=list("abcde"))
    return a1gm.PatternTable().update(frame, key="a").update(frame, key=("b", 1))


MODELS: dict[str, Callable[[Path], Any]] = {
    "patterns": lambda folder: a1gm.fit(table()),
    "patterns and blocks": lambda folder: a1gm.fit(BLOCKS),
    "masks": lambda folder: in_masks(WIDE),
    "masks and zeros": lambda folder: in_masks(with_zeros(WIDE)),
    "pairs": lambda folder: a1gm.fit(sparse(table()), absent="missing"),
    "pairs and blocks": lambda folder: a1gm.fit(sparse(BLOCKS), absent="missing"),
    "weighted": lambda folder: weighted(table()),
    "labels": lambda folder: labelled(),
    "negatives": lambda folder: negative(),
    "bits from files": lambda folder: streamed(table(), folder),
    "bits from files, blocks": lambda folder: streamed(BLOCKS, folder),
    "without rows": lambda folder: in_pieces(table(), keep_rows=False).solve(),
    "with scatter": lambda folder: in_pieces(table(), uncertainty=True).solve(),
}
TABLES: dict[str, Callable[[], Any]] = {
    "table with rows": lambda: in_pieces(table()),
    "table without rows": lambda: in_pieces(table(), keep_rows=False),
    "table with scatter": lambda: in_pieces(table(), uncertainty=True),
    "table of blocks": lambda: in_pieces(BLOCKS),
    "table with labels and keys": labelled_table,
    "table of many columns": lambda: in_pieces(table(9, 70)),
    "empty table": a1gm.PatternTable,
}
SUBJECTS = [*MODELS, *TABLES]


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
        if self.where and self.where[0] == "arrays":
            return False
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
        if path or key != "arrays":  # the layout is packed anew
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
    found = Worker()
    yield found
    found.stop()


# -------------------------------------------------------------------------- the tests
@pytest.mark.parametrize("subject", SUBJECTS)
def test_what_is_packed_again_unchanged_is_read(containers, worker, subject):
    header, arrays = containers(subject)
    assert worker.verdict(subject, header, arrays) == "fine"


@pytest.mark.parametrize("subject", SUBJECTS)
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
