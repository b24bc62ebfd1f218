"""Compute something on whatever runs Dask, and never wait for workers that are gone."""

from __future__ import annotations

import time
from typing import Any

from a1gm.exceptions import ClusterError

POLL_SECONDS = 0.5


def compute_safely(task: Any, worker_timeout: float) -> Any:
    """Compute a delayed object with the scheduler that Dask would choose.

    Parameters
    ----------
    task : dask.delayed.Delayed
        What to compute.
    worker_timeout : float
        On a cluster, seconds to wait while it has no worker at all.

    Raises
    ------
    ClusterError
        Workers were lost for good.
    """
    client = _current_client()
    if client is None:
        import dask

        return dask.compute(task)[0]
    return _compute_on(client, task, worker_timeout)


def _current_client() -> Any:
    """The cluster that Dask would use, or None for threads and the like."""
    import dask

    chosen = dask.config.get("scheduler", None)
    if chosen not in (None, "distributed", "dask.distributed"):
        return None
    try:
        from distributed import default_client
    except ImportError:
        return None
    try:
        return default_client()
    except ValueError:
        return None


def _compute_on(client: Any, task: Any, worker_timeout: float) -> Any:
    from distributed import wait
    from distributed.client import FutureCancelledError
    from distributed.scheduler import KilledWorker

    future = client.compute(task)
    last_seen = time.monotonic()
    try:
        while not future.done():
            try:
                wait(future, timeout=POLL_SECONDS)
            except TimeoutError:
                if client.nthreads():
                    last_seen = time.monotonic()
                elif time.monotonic() - last_seen > worker_timeout:
                    future.cancel()
                    raise ClusterError(
                        "All workers of the cluster are gone, and none came back "
                        f"within {worker_timeout:g} seconds. Start workers and run the "
                        "fit again; raise worker_timeout if they need longer to start."
                    ) from None
        return future.result()
    except KilledWorker as error:
        raise ClusterError(
            f"The cluster gave up on a partition: {error} A worker that dies again and "
            "again usually runs out of memory; use smaller partitions "
            "(x.rechunk, ddf.repartition) or workers with more memory."
        ) from error
    except (FutureCancelledError, OSError) as error:
        raise ClusterError(
            f"The connection to the cluster was lost during the fit ({error}). Nothing "
            "was changed; run it again when the cluster is back."
        ) from error
    finally:
        future.release()
