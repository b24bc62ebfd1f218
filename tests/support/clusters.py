"""A Dask cluster of processes on this machine."""

from __future__ import annotations

import contextlib
import os
import signal
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np


@contextlib.contextmanager
def local_cluster(n_workers: int, **options: Any) -> Iterator[Any]:
    from distributed import Client, LocalCluster

    with warnings.catch_warnings():
        # Dask warns of a port in use and of workers that died; both are expected.
        warnings.simplefilter("ignore")
        cluster = LocalCluster(
            n_workers=n_workers,
            threads_per_worker=1,
            processes=True,
            dashboard_address=None,
            silence_logs=50,
            **options,
        )
        with cluster, Client(cluster) as client:
            yield client


# Work for the workers: they import it from here, by the path of the tests.
def slow_copy(block: np.ndarray) -> np.ndarray:
    time.sleep(0.15)
    return block


def kill_once(block: np.ndarray, mark: str) -> np.ndarray:
    """Die on the first partition that comes, with everything computed before."""
    time.sleep(0.05)
    if block.size and not Path(mark).exists():
        Path(mark).write_text("dead")
        os.kill(os.getpid(), signal.SIGKILL)
    return block


def kill_always(block: np.ndarray) -> np.ndarray:
    if block.size:
        os.kill(os.getpid(), signal.SIGKILL)
    return block
