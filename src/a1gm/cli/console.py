"""Words for people, on any terminal."""

from __future__ import annotations

import codecs
import contextlib
import json
import math
import sys
import time
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from typing import Any

from a1gm._base.words import shown

_SHOW_AFTER_SECONDS = 1.0
#: What stands for characters that a stream cannot print.
_PLAIN = {
    "×": "x",
    "⊗": "(x)",
    "≈": "~",
    "≤": "<=",
    "≥": ">=",
    "–": "-",
    "…": "...",
    "·": "-",
    "│": "|",
    "░": ".",
    "▒": "+",
    "▓": "%",
    "━": "-",
    "╸": "-",
    "╺": "-",
    **dict.fromkeys("█▏▎▍▌▋▊▉", "#"),
}


def _by_plain_ones(error: UnicodeError) -> tuple[str, int]:
    assert isinstance(error, UnicodeEncodeError)
    found = error.object[error.start : error.end]
    return "".join(_PLAIN.get(c, ascii(c)[1:-1]) for c in found), error.end


codecs.register_error("a1gm.plain", _by_plain_ones)


def speak_plainly() -> None:
    """Print characters that a terminal does not have by ones that every one has."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="a1gm.plain")


def printable(words: str) -> str:
    """Write words as standard output can print them."""
    encoding = getattr(sys.stdout, "encoding", None) or "utf-8"
    return words.encode(encoding, "a1gm.plain").decode(encoding)


_AS_JSON: ContextVar[bool] = ContextVar("_AS_JSON", default=False)
_BEFORE = {"error": "a1gm: ", "warning": "warning: ", "note": "note: ", "info": ""}


@contextlib.contextmanager
def speaking(*, json: bool) -> Iterator[None]:
    """Say everything for programs meanwhile, one JSON object a line, if so asked."""
    before = _AS_JSON.set(json)
    try:
        yield
    finally:
        _AS_JSON.reset(before)


def say(words: str, level: str = "info", **about: Any) -> None:
    """Print a line; characters that a terminal would obey are escaped.

    ``level`` is error, warning, note (what was decided for the user) or info; for
    programs it stands in the object, and so does what is said ``about`` the words.
    """
    if _AS_JSON.get():
        line = json.dumps({"level": level, "message": words.strip(), **about})
    else:
        line = shown(_BEFORE[level] + words, keep="\n")
    sys.stderr.write(line + "\n")
    sys.stderr.flush()


def text_of_json(summary: dict[str, Any]) -> str:
    """Write a summary for programs; a number that is not finite becomes null."""
    return json.dumps(_plain(summary), indent=2, allow_nan=False) + "\n"


def _plain(value: Any) -> Any:
    """Turn numbers and arrays into what JSON can hold."""
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if hasattr(value, "tolist"):  # numbers and arrays of NumPy
        return _plain(value.tolist())
    return None if isinstance(value, float) and not math.isfinite(value) else value


@contextlib.contextmanager
def progress_bar(words: str, *, quiet: bool) -> Iterator[Callable[[int, float], None]]:
    """Show a bar with rows per second and time left, once a second has passed.

    Yields
    ------
    callable
        Takes the rows done so far and the fraction of the work done.
    """
    if quiet or not sys.stderr.isatty():
        yield lambda _rows, _fraction: None
        return
    started = time.monotonic()
    bar: Any = None
    task: Any = None

    def show(rows: int, fraction: float) -> None:
        nonlocal bar, task
        elapsed = time.monotonic() - started
        if bar is None:
            if elapsed < _SHOW_AFTER_SECONDS:
                return
            bar = _make_bar()
            bar.start()
            task = bar.add_task(words, total=1.0, speed="", left="")
        left = elapsed * (1 - fraction) / fraction if fraction > 0 else 0.0
        bar.update(
            task,
            completed=fraction,
            speed=f"{rows / elapsed:,.0f} rows/s",
            left=f"{_duration(left)} left",
        )

    try:
        yield show
    finally:
        if bar is not None:
            bar.stop()


def _duration(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    if hours:
        return f"{hours} h {minutes:02d} min"
    return f"{minutes} min {rest:02d} s" if minutes else f"{rest} s"


def _make_bar() -> Any:
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn

    return Progress(
        TextColumn("{task.description}", markup=False),  # it has the name of a file
        BarColumn(),
        TaskProgressColumn(),
        TextColumn("{task.fields[speed]}"),
        TextColumn("{task.fields[left]}"),
        console=Console(stderr=True),
        transient=True,
    )
