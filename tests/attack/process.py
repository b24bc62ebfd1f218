"""A process that answers lines ``KIND SEED`` by pickles; its end is an answer, too.

Nothing here loads the package: a sanitizer is loaded into the process alone.
"""

from __future__ import annotations

import contextlib
import os
import pickle
import queue
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

PATIENCE = 60.0  # seconds for one answer


class Worker:
    """A process that runs a module; a new one when it has crashed or hung."""

    def __init__(self, module: str, **environment: str) -> None:
        path = [str(Path(__file__).parents[1]), os.environ.get("PYTHONPATH")]
        self.env = os.environ | {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
        self.env |= {"PYTHONPATH": os.pathsep.join(filter(None, path))} | environment
        self.command = [sys.executable, "-m", module]
        self._start()

    def _start(self) -> None:
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
        self.process = subprocess.Popen(self.command, env=self.env, **pipes)
        self.answers: queue.Queue[Any] = queue.Queue()
        parts = (self.process.stdout, self.answers)
        self.reader = threading.Thread(target=self._read, args=parts, daemon=True)
        self.reader.start()

    @staticmethod
    def _read(pipe: Any, answers: queue.Queue[Any]) -> None:
        with contextlib.suppress(EOFError, pickle.UnpicklingError):
            while True:
                answers.put(pickle.load(pipe))
        answers.put(None)

    def ask(self, name: str, seed: int, patience: float = PATIENCE) -> tuple[Any, str]:
        """The answer; None if the process ends or is silent, with what it did."""
        self.process.stdin.write(f"{name} {seed}\n".encode())
        self.process.stdin.flush()
        try:
            answer = self.answers.get(timeout=patience)
            is_end = answer is None
            end = f"crash: exit code {self.process.wait()}" if is_end else ""
        except queue.Empty:
            answer, end = None, "hang"
            self.process.kill()
        if end:
            self.close()
            self._start()
        return answer, end

    def close(self) -> int:
        """End the process; its exit code is not 0 when a sanitizer has found a leak."""
        self.process.stdin.close()
        code = self.process.wait()
        self.reader.join()
        self.process.stdout.close()
        return code


def serve(answer: Callable[[str, int], Any]) -> None:
    """Answer the lines of standard input, in the process of a worker."""
    out = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what prints does not disturb
    os.fsync = lambda _: None  # files that nobody keeps
    for line in sys.stdin:
        name, _, seed = line.strip().rpartition(" ")
        pickle.dump(answer(name, int(seed)), out)
        out.flush()
