"""BLAS on a single thread: for small matrices its threads only wait for each other."""

from __future__ import annotations

from threading import Lock
from typing import Any


class _SingleThread:
    """A context of the whole process; the last that leaves it restores the threads."""

    def __init__(self) -> None:
        self._lock, self._n_inside = Lock(), 0
        self._controller: Any = None
        self._limit: Any = None

    def __enter__(self) -> None:
        with self._lock:
            if self._controller is None:
                from threadpoolctl import ThreadpoolController

                self._controller = ThreadpoolController().select(user_api="blas")
            if self._n_inside == 0:
                self._limit = self._controller.limit(limits=1)
            self._n_inside += 1

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._n_inside -= 1
            if self._n_inside == 0:
                self._limit.restore_original_limits()


single_threaded_blas = _SingleThread()
