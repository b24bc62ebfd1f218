"""Output of the commands: text that any terminal can print, JSON, progress, advice."""

from __future__ import annotations

import codecs
import contextlib
import csv
import io
import json
import shlex
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

from a1gm.exceptions import Call, Option, Part, See

_SHOW_AFTER_SECONDS = 1.0
#: Replacements for characters that a stream cannot encode.
_PLAIN = {
    **dict(zip("×≈–·│░▒▓█", "x~--|.+%#", strict=True)),
    "⊗": "(x)",
    "≤": "<=",
    "≥": ">=",
    "…": "...",
}


def _replace_by_plain(error: UnicodeError) -> tuple[str, int]:
    assert isinstance(error, UnicodeEncodeError)
    text = error.object[error.start : error.end]
    return "".join(_PLAIN.get(c, ascii(c)[1:-1]) for c in text), error.end


codecs.register_error("a1gm.plain", _replace_by_plain)


def replace_unprintable() -> None:
    """Make standard output and error replace characters that they cannot encode."""
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(AttributeError):  # not a text stream, or closed
            stream.reconfigure(errors="a1gm.plain")  # type: ignore[union-attr]


def to_json(summary: dict[str, Any]) -> str:
    """Write a summary as JSON; a number that is not finite becomes null."""
    text = json.dumps(summary, default=lambda array: array.tolist())
    plain = json.loads(text, parse_constant=lambda _: None)
    return json.dumps(plain, indent=2, allow_nan=False) + "\n"


@contextlib.contextmanager
def progress_bar(text: str, *, quiet: bool) -> Iterator[Callable[[int, float], None]]:
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

    def show(rows: int, fraction: float) -> None:
        nonlocal bar
        elapsed = time.monotonic() - started
        if bar is None and elapsed < _SHOW_AFTER_SECONDS:
            return
        if bar is None:
            bar = _make_bar()
            bar.add_task(text, total=1.0, speed="")
            bar.start()
        speed = f"{rows / elapsed:,.0f} rows/s"
        bar.update(bar.task_ids[0], completed=fraction, speed=speed)

    try:
        yield show
    finally:
        if bar is not None:
            bar.stop()


def _make_bar() -> Any:
    from rich import progress
    from rich.console import Console

    return progress.Progress(
        # Not markup: the text has the name of a file.
        progress.TextColumn("{task.description}", markup=False),
        progress.BarColumn(),
        progress.TaskProgressColumn(),
        progress.TextColumn("{task.fields[speed]}"),
        progress.TimeRemainingColumn(),
        console=Console(stderr=True),
        transient=True,
    )


# ------------------------------------------------------------------------- advice
def command_style(part: Part) -> str:
    """Write a part of a message as options of the command line.

    Examples
    --------
    >>> command_style(Option("missing", ["-"])), command_style(Option("max_iter"))
    ("--missing '-'", '--max-iter')
    >>> keys = Option("keys", ["a", "b"]), Option("value", "c d")
    >>> command_style(Call("fit_groups", "X", (Option("by", "g"), *keys)))
    "--long 'a,b,c d' --by g (fit and impute)"
    """
    styles: dict[type, Callable[[Any], str]] = {Option: _option, Call: _call, See: _see}
    return styles[type(part)](part)


def _option(option: Option) -> str:
    name, value = "--" + option.name.replace("_", "-"), option.value
    if name == "--n-threads":
        name = "--threads"
    if value is None or value is True:
        return name
    values = value if isinstance(value, list) else [str(value)]
    if not any("," in text for text in values):
        values = [",".join(values)]
    return " ".join(f"{name} {_quoted(text)}" for text in values)


def _call(call: Call) -> str:
    if call.function not in ("fit_long", "fit_groups"):
        return str(call)
    options = {option.name: option.value for option in call.options}
    line = io.StringIO()
    names = [*options["keys"], options["value"]]
    csv.writer(line, lineterminator="").writerow(names)
    long = f"--long {_quoted(line.getvalue())}"
    if "by" not in options:
        return long
    # The commands that take one table have no --by.
    return f"{long} --by {_quoted(str(options['by']))} (fit and impute)"


def _see(see: See) -> str:
    return "; a1gm report lists them" if see.attribute == "fit.undetermined" else ""


def _quoted(value: str) -> str:
    """Quote for a shell, punctuation always: a comma alone is easily overlooked."""
    quoted = shlex.quote(value)
    is_word = any(map(str.isalnum, value)) or quoted != value
    return quoted if is_word else f"'{value}'"
