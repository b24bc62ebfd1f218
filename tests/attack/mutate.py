"""Damaged files and bytes: the right answer or words, never anything raw."""

from __future__ import annotations

import csv
import gzip
import io
import re
import warnings
from functools import cache
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet

import a1gm
from a1gm.exceptions import A1gmError

from .judge import FOLDER
from .zoo import ANNOUNCED, DAMAGED, RIGHT, WRONG, Verdict, with_holes

TOKENS = rb'nan " 1e999 -1 , ; NULL inf 0x1 -'.split()
TOKENS += [b"\0", b"\n", b"\r", b"\xff\xfe"]
DELIMITER = {"tsv": "\t"}
NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")


@cache
def table() -> np.ndarray:
    rng = np.random.default_rng(5)
    X = with_holes(rng, np.round(rng.gamma(2.0, 10.0, (40, 6)), 2), 0.2)
    X[3, 2] = 0.0
    return X


@cache
def whole(form: str) -> bytes:
    """The bytes before they are damaged."""
    X = table()
    if form == "bytes":
        return a1gm.PatternTable().update(X[:20]).update(X[20:]).to_bytes()
    path = FOLDER / f"whole.{form}"
    if form == "model":
        a1gm.fit(X).save(path)
        return path.read_bytes()
    names = ["a", "b,1", "c", "d d", "é", "f"]
    if form in ("parquet", "feather"):
        columns = [pa.array(x, from_pandas=True) for x in X.T]
        frame = pa.table(columns, names=names)
        if form == "feather":
            pa.feather.write_feather(frame, path)
        else:
            pa.parquet.write_table(frame, path, row_group_size=16)
        return path.read_bytes()
    text = io.StringIO()
    writer = csv.writer(text, delimiter=DELIMITER.get(form, ","))
    writer.writerow(names)
    writer.writerows(
        [["" if np.isnan(x) else repr(float(x)) for x in row] for row in X]
    )
    data = text.getvalue().encode()
    return gzip.compress(data, mtime=0) if form == "csv.gz" else data


def damaged(rng: np.random.Generator, data: bytes) -> bytes:
    """A few faults at random places."""
    out = bytearray(data)
    for _ in range(int(rng.choice([1, 1, 2, 4]))):
        a, b = sorted(rng.integers(0, len(out) + 1, 2).tolist())
        b = min(b, a + int(rng.choice([1, 8, 64, 4096])))
        fault = rng.integers(7)
        if fault <= 1 and out:  # the commonest: bits
            out[min(a, len(out) - 1)] ^= 1 << int(rng.integers(8))
        elif fault == 2:
            del out[int(rng.integers(0, len(out) + 1)) :]
        elif fault == 3:
            del out[a:b]
        elif fault == 4:
            out[b:b] = out[a:b]
        elif fault == 5:
            out[a:a] = TOKENS[int(rng.integers(len(TOKENS)))]
        else:
            out[a:b] = rng.bytes(b - a)
    return bytes(out)


def judge_damaged(name: str, seed: int) -> Verdict:
    """Open damaged bytes and use what comes of it."""
    form = DAMAGED[name]
    rng = np.random.default_rng([seed, *name.encode()])
    data = damaged(rng, whole(form))
    path = FOLDER / f"damaged.{form}"
    path.write_bytes(data)
    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            found = open_and_use(form, path, data)
        for w in caught:
            if not issubclass(w.category, a1gm.exceptions.A1gmWarning):
                return Verdict(WRONG, f"raw warning: {w.message}")
    except A1gmError as error:
        words = str(error)
        if len(words) < 20:
            return Verdict(WRONG, f"no words: {error!r}")
        return Verdict(ANNOUNCED, words)
    except BaseException as error:  # noqa: BLE001
        return Verdict(WRONG, f"raw {type(error).__name__}: {error}")
    expected = expected_answer(form, path, data)
    if expected is None:
        return Verdict(RIGHT)
    with np.errstate(all="ignore"):
        same = found.shape == expected.shape and np.allclose(
            found, expected, rtol=1e-9, atol=0.0, equal_nan=True
        )
    return Verdict(RIGHT) if same else Verdict(WRONG, "another table was read")


def open_and_use(form: str, path: Path, data: bytes) -> np.ndarray:
    """What the package makes of it: its factors of the columns."""
    if form == "bytes":
        fit = a1gm.PatternTable.from_bytes(data).solve()
    elif form == "model":
        fit = a1gm.load(path)
        fit.impute(np.where(np.arange(6) % 2, 1.0, np.nan)[None, :])
    else:
        fit = a1gm.fit_file(path)
        a1gm.impute_file(path, FOLDER / f"filled.{form}", overwrite=True)
    (fit.certificate, fit.converged, repr(fit), np.asarray(fit.row_factor[:5]))
    return np.asarray(fit.col_factor)


def expected_answer(form: str, path: Path, data: bytes) -> np.ndarray | None:
    """Factors of the columns of what another reader reads; None where it will not."""
    if form in ("bytes", "model"):
        return a1gm.fit(table()).col_factor
    try:
        if form == "parquet":
            X = pa.parquet.read_table(path)
        elif form == "feather":
            X = pa.feather.read_table(path)
        else:
            X = read_text(form, data)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return a1gm.fit(X).col_factor
    except (ValueError, TypeError, OSError, EOFError, csv.Error, pa.ArrowException):
        return None


def read_text(form: str, data: bytes) -> np.ndarray:
    """Read plain text with Python's reader; ValueError for whatever is not plain."""
    text = (gzip.decompress(data) if form == "csv.gz" else data).decode()
    if '"' in text.partition("\n")[2] or "\0" in text:
        raise ValueError
    lines = list(csv.reader(io.StringIO(text), delimiter=DELIMITER.get(form, ",")))
    rows = [line for line in lines[1:] if line]
    if any(len(line) != len(lines[0]) for line in rows):
        raise ValueError
    for x in (x for row in rows for x in row):
        if x and not NUMBER.fullmatch(x):
            raise ValueError
    return np.array([[float(x) if x else np.nan for x in row] for row in rows])
