"""A Dask cluster of processes on this machine."""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Iterator
from typing import Any


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
