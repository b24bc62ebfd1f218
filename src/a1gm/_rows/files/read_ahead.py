"""Read the next pieces on another thread while the last one is worked on."""

from __future__ import annotations

import contextlib
import queue
import threading
from collections.abc import Generator, Iterator
from typing import TypeVar

_Item = TypeVar("_Item")
DEPTH = 2  # pieces waiting; memory holds these, the one read and the one worked on


def read_ahead(items: Iterator[_Item], depth: int = DEPTH) -> Generator[_Item]:
    """Yield the items in order, taken from the iterator on a second thread.

    An error of the iterator is raised where its item would have come. When the
    consumer stops early the thread ends too, and the iterator is closed.
    """
    waiting: queue.Queue[tuple[_Item | None, BaseException | None]]
    waiting = queue.Queue(depth)
    stopped = threading.Event()

    def put(entry: tuple[_Item | None, BaseException | None]) -> bool:
        while not stopped.is_set():
            with contextlib.suppress(queue.Full):
                waiting.put(entry, timeout=0.1)
                return True
        return False

    def run() -> None:
        error: BaseException | None = None
        try:
            for item in items:
                if not put((item, None)):
                    break
        except BaseException as raised:  # noqa: BLE001 - raised again by the consumer
            error = raised
        finally:
            close = getattr(items, "close", None)
            if close is not None:
                close()
        put((None, error))

    thread = threading.Thread(target=run, name="a1gm-read-ahead", daemon=True)
    thread.start()
    try:
        while True:
            item, error = waiting.get()
            if error is not None:
                raise error
            if item is None:
                return
            yield item
    finally:
        stopped.set()
        thread.join()
