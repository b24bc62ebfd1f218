"""Fits, models and pattern tables that several threads or processes use at once."""

from __future__ import annotations

import copy
import multiprocessing
import pickle
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from joblib import Parallel, delayed
from support.commands import run_python
from support.tables import gamma_table

import a1gm
from a1gm import PatternTable, RankOneImputer

N_THREADS = 8
SAME = 1e-12  # sums are compensated: only the last division rounds


@pytest.fixture(autouse=True)
def impatient() -> Iterator[None]:
    """Let the interpreter change threads as often as it can."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


def make_pieces(n: int = 200) -> list[np.ndarray]:
    return np.array_split(gamma_table(n * 25), n)


def on_threads(work: Callable[[int], object], times: int = N_THREADS) -> list[object]:
    with ThreadPoolExecutor(N_THREADS) as pool:
        return list(pool.map(work, range(times)))


def assert_counts_all(table: PatternTable, pieces: list[np.ndarray]) -> None:
    X = np.vstack(pieces)
    assert table.n_rows == len(X)
    fit, whole = table.solve(), a1gm.fit(X)
    np.testing.assert_allclose(fit.col_factor, whole.col_factor, rtol=SAME)
    if table.keep_rows:  # in the order in which the pieces came
        rows = np.sort(fit.row_factor)
        np.testing.assert_allclose(rows, np.sort(whole.row_factor), rtol=1e-10)


@pytest.mark.parametrize("keep_rows", [True, False])
def test_pieces_from_several_threads_are_all_counted(keep_rows: bool) -> None:
    pieces, table = make_pieces(), PatternTable(keep_rows=keep_rows)
    on_threads(lambda k: table.update(pieces[k]), len(pieces))
    assert_counts_all(table, pieces)
    assert len(table.pieces) == len(pieces)


def test_a_piece_that_all_threads_bring_counts_once() -> None:
    pieces, table = make_pieces(20), PatternTable()
    on_threads(lambda _: [table.update(p, key=k) for k, p in enumerate(pieces)])
    assert_counts_all(table, pieces)


def test_tables_merged_into_one_and_into_each_other() -> None:
    pieces, table = make_pieces(), PatternTable()
    tables = [PatternTable().update(p, key=k) for k, p in enumerate(pieces)]
    on_threads(lambda k: table.merge(tables[k]), len(tables))
    assert_counts_all(table, pieces)
    one, other = tables[0], copy.deepcopy(table)
    on_threads(lambda k: one.merge(other) if k % 2 else other.merge(one), 200)
    assert_counts_all(one, pieces)
    assert_counts_all(other, pieces)


def test_what_is_read_meanwhile_is_whole() -> None:
    pieces, table = make_pieces(), PatternTable()
    table.update(pieces[0])

    def work(k: int) -> None:
        if k % 2:
            table.update(pieces[k // 2 + 1])
            return
        copies = (
            lambda: PatternTable.from_bytes(table.to_bytes()),
            lambda: pickle.loads(pickle.dumps(table)),
            lambda: copy.copy(table),
        )
        seen = copies[k // 2 % 3]()
        assert seen.n_rows == 25 * len(seen.pieces)
        fit = seen.solve()
        assert len(fit.row_factor) == seen.n_rows
        assert fit.certificate < 1e-10
        assert table.solve().certificate < 1e-10
        assert table.nbytes > 0

    on_threads(work, 2 * len(pieces) - 2)
    assert_counts_all(table, pieces)


SAME_PROCESS = """
import os, sys
os.getpid = lambda: 1
import numpy as np, a1gm
sys.stdout.buffer.write(a1gm.PatternTable().update(np.ones((2, 3))).to_bytes())
"""


def test_pieces_of_two_machines_are_not_taken_for_one() -> None:
    """In containers every process may have the same number."""
    made = [
        subprocess.run(
            [sys.executable, "-c", SAME_PROCESS], capture_output=True, check=True
        ).stdout
        for _ in range(2)
    ]
    first, second = map(PatternTable.from_bytes, made)
    assert first.merge(second).n_rows == 4


IN_THE_BACKGROUND = """
import threading
import numpy as np
import a1gm

X = np.random.default_rng(0).poisson(30.0, (20_000, 50)).astype(float)
X[::3, 7] = np.nan
fit = a1gm.fit(X)
calls = {"fit": lambda: a1gm.fit(X), "fill": lambda: fit.impute(X)}
has_begun = threading.Event()


def work():
    while True:
        has_begun.set()
        calls["KIND"]()


for _ in range(2):
    threading.Thread(target=work, daemon=True).start()
has_begun.wait()
"""


@pytest.mark.parametrize("kind", ["fit", "fill"])
def test_the_process_ends_in_order_while_a_daemon_thread_works(kind: str) -> None:
    """The thread is ended when it takes the lock again: nothing may be unwound."""
    code = IN_THE_BACKGROUND.replace("KIND", kind)
    for _ in range(3):
        done = run_python(code)
        assert (done.returncode, done.stderr) == (0, "")


def col_factor(X):
    return a1gm.fit(X, n_threads=2).col_factor


def test_fits_and_one_model_on_many_threads():
    X = gamma_table()
    model = RankOneImputer().fit(X)
    for work in (lambda _: model.transform(X), lambda _: a1gm.fit(X).row_factor):
        expected = work(0)
        for found in on_threads(work, 16):
            np.testing.assert_array_equal(found, expected)


def test_nested_jobs():
    X = gamma_table()
    fits = Parallel(n_jobs=2)(delayed(a1gm.fit)(X, n_threads=2) for _ in range(3))
    for fit in fits:
        np.testing.assert_array_equal(fit.col_factor, col_factor(X))


@pytest.mark.skipif(sys.platform == "win32", reason="no fork")
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_fork_after_threads_were_used():
    X = gamma_table(40_000, 10)
    expected = col_factor(X)
    with multiprocessing.get_context("fork").Pool(1) as pool:
        found = pool.apply_async(col_factor, (X,)).get(timeout=60)
    np.testing.assert_array_equal(found, expected)
