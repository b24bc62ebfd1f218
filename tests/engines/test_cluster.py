"""Clusters that lose workers, and collections that are cut in odd ways."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import dask
import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
from support.clusters import kill_always, kill_once, local_cluster, slow_copy
from support.lazy import need_spark
from support.tables import gamma_table

import a1gm
from a1gm.exceptions import ClusterError, DataError, TableTooLargeError

SAME = 1e-12
pytestmark = [pytest.mark.nightly, pytest.mark.timeout(90)]


@pytest.mark.cluster
def test_a_killed_worker_changes_nothing(tmp_path: Path) -> None:
    X = gamma_table()
    lazy = da.from_array(X, chunks=(20, 6))
    with local_cluster(2) as client:
        pids = client.run(os.getpid)
        doomed = next(iter(pids.values()))
        slow = lazy.map_blocks(slow_copy, dtype=float, meta=np.zeros((0, 0)))
        timer = threading.Timer(0.8, os.kill, (doomed, signal.SIGKILL))
        timer.start()
        fit = a1gm.distributed.fit(slow)
        timer.join()
        # And one that dies of its work, once.
        mortal = lazy.map_blocks(
            kill_once, str(tmp_path / "mark"), dtype=float, meta=np.zeros((0, 0))
        )
        again = a1gm.distributed.fit(mortal)
    assert (tmp_path / "mark").exists()
    whole = a1gm.fit(X)
    assert fit.shape == again.shape == (400, 6)
    np.testing.assert_allclose(fit.col_factor, whole.col_factor, rtol=SAME)
    assert np.array_equal(again.col_factor, fit.col_factor)


@pytest.mark.cluster
def test_work_that_kills_every_worker_is_given_up() -> None:
    lazy = da.from_array(gamma_table(), chunks=(200, 6))
    deadly = lazy.map_blocks(kill_always, dtype=float, meta=np.zeros((0, 0)))
    with (
        dask.config.set({"distributed.scheduler.allowed-failures": 0}),
        local_cluster(1),
        pytest.raises(ClusterError, match=r"gave up on a partition.*smaller part"),
    ):
        a1gm.distributed.fit(deadly)


@pytest.mark.cluster
def test_the_only_worker_gone_for_good_is_said() -> None:
    lazy = da.from_array(gamma_table(), chunks=(20, 6))
    slow = lazy.map_blocks(slow_copy, dtype=float, meta=np.zeros((0, 0)))
    with local_cluster(0) as client:
        worker = _lonely_worker(client.scheduler.address)
        try:
            client.wait_for_workers(1, timeout=40)
            timer = threading.Timer(0.8, worker.kill)
            timer.start()
            start = time.monotonic()
            with pytest.raises(ClusterError, match="All workers of the cluster are"):
                a1gm.distributed.fit(slow, worker_timeout=2.0)
            assert time.monotonic() - start < 30
            timer.join()
        finally:
            worker.kill()
            worker.wait()


def _lonely_worker(address: str) -> subprocess.Popen[bytes]:
    """Start a worker that nobody restarts."""
    command = [sys.executable, "-m", "distributed.cli.dask_worker", address]
    options = ["--no-nanny", "--nthreads", "1", "--no-dashboard"]
    # The worker must find the functions of this file.
    environment = os.environ | {"PYTHONPATH": str(Path(__file__).parent)}
    return subprocess.Popen(
        command + options,
        env=environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )


@pytest.mark.timeout(240)
def test_a_killed_executor_of_spark_changes_nothing() -> None:
    need_spark()
    program = Path(__file__).parents[1] / "support" / "lost_executor.py"
    # Its own process, which ends with its JVM and executors.
    done = subprocess.run(
        [sys.executable, str(program)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr[-2000:]
    found = json.loads(done.stdout.splitlines()[-1])
    assert len(found["tasks_done"]) == len(found["lost"]) == 1
    k = np.arange(20)
    X = np.stack([k % 7 + 1.0, k % 5 + 2.0, k % 2 + 0.5], axis=1)
    X[k % 3 == 0, 1] = X[k % 4 == 0, 2] = np.nan
    np.testing.assert_allclose(found["factor"], a1gm.fit(X).col_factor, rtol=SAME)


def test_unknown_lengths_are_handled() -> None:
    X = gamma_table()
    frame = dd.from_pandas(pd.DataFrame(X), npartitions=4)
    lazy = frame[frame[0] > 1.0].to_dask_array()
    assert np.isnan(lazy.shape[0])
    kept = X[X[:, 0] > 1.0]
    fit, whole = a1gm.distributed.fit(lazy), a1gm.fit(kept)
    np.testing.assert_allclose(fit.col_factor, whole.col_factor, rtol=SAME)
    np.testing.assert_allclose(fit.row_factor.compute(), whole.row_factor, rtol=1e-11)
    np.testing.assert_allclose(
        fit.impute(lazy).compute(), whole.impute(kept), rtol=1e-11
    )


def test_empty_partitions_are_handled() -> None:
    X = gamma_table()
    frame = pd.DataFrame(X, columns=list("abcdef"))
    lazy = dd.from_pandas(frame, npartitions=8)
    some = lazy.map_partitions(lambda part: part[part.index > 120])
    assert some.map_partitions(len).compute().min() == 0
    fit, whole = a1gm.distributed.fit(some), a1gm.fit(X[121:])
    np.testing.assert_allclose(fit.col_factor, whole.col_factor, rtol=SAME)
    assert len(fit.impute(some).compute()) == len(fit.row_factor.compute()) == 279
    with pytest.raises(DataError, match="every partition is empty"):
        a1gm.distributed.fit(lazy.map_partitions(lambda part: part[:0]))


def test_column_chunks_are_refused_with_the_call_that_helps() -> None:
    X = gamma_table()
    lazy = da.from_array(X, chunks=(100, 2))
    with pytest.raises(DataError, match=r"x = x\.rechunk\(\{1: -1\}\)"):
        a1gm.distributed.fit(lazy)
    fit = a1gm.distributed.fit(lazy.rechunk({1: -1}))
    np.testing.assert_allclose(fit.col_factor, a1gm.fit(X).col_factor, rtol=SAME)


def test_tables_too_large_are_refused_with_an_estimate() -> None:
    lazy = da.from_array(gamma_table(m=20), chunks=(100, 20))
    with pytest.raises(TableTooLargeError, match=r"would need [\d,]+ bytes"):
        a1gm.distributed.fit(lazy, max_bytes=10_000)
    with pytest.raises(TableTooLargeError, match=r"would need [\d,]+ bytes"):
        a1gm.distributed.fit(lazy, max_bytes=120_000)  # each fits, their union not
