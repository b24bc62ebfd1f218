"""Options every command shares, and what happens when a command fails."""

from __future__ import annotations

import contextlib
import functools
import inspect
import os
import sys
import traceback
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Annotated, Any, Optional, get_type_hints

import typer

from a1gm.cli.console import say, warn
from a1gm.cli.options_in_words import in_command_words
from a1gm.exceptions import (
    A1gmError,
    A1gmWarning,
    LabelError,
    MissingFileError,
    OutputError,
    ParameterError,
)


def one_of(*allowed: str) -> Callable[[str], str]:
    """Make a check of an option that takes some words only."""

    def check(value: str) -> str:
        if value not in allowed:
            raise typer.BadParameter(f"{value!r} is not {' or '.join(allowed)}.")
        return value

    return check


def _option(*names: str, text: str, **more: Any) -> Any:
    return typer.Option(*names, help=text, **more)


@dataclass(frozen=True)
class Common:
    """The options every command shares."""

    columns: Annotated[
        Optional[list[str]],  # noqa: UP045 - typer reads it
        _option(
            "--columns",
            text="The columns of the table, separated by commas; repeatable. "
            "Default: every numeric column.",
            metavar="NAMES",
        ),
    ] = None
    exclude: Annotated[
        Optional[list[str]],  # noqa: UP045
        _option(
            "--exclude",
            text="Columns to leave out of the table; they are passed through.",
            metavar="NAMES",
        ),
    ] = None
    id: Annotated[
        Optional[list[str]],  # noqa: UP045
        _option(
            "--id",
            text="The column that names the rows; repeatable.",
            metavar="NAME",
        ),
    ] = None
    missing: Annotated[
        Optional[list[str]],  # noqa: UP045
        _option(
            "--missing",
            text="A token that marks a missing cell, beside an empty cell, NA and NaN; "
            "repeatable.",
            metavar="TOKEN",
        ),
    ] = None
    delimiter: Annotated[
        Optional[str],  # noqa: UP045
        _option(
            "--delimiter",
            text="The character between cells; '\\t' for a tab. Default: a comma, "
            "a tab for .tsv.",
            metavar="CHAR",
        ),
    ] = None
    decimal: Annotated[
        str,
        _option("--decimal", text="The decimal mark.", metavar="CHAR"),
    ] = "."
    thousands: Annotated[
        Optional[str],  # noqa: UP045
        _option(
            "--thousands",
            text="The mark between groups of three digits. Default: none.",
            metavar="CHAR",
        ),
    ] = None
    encoding: Annotated[
        str,
        _option("--encoding", text="The text encoding.", metavar="NAME"),
    ] = "utf-8"
    negatives: Annotated[
        str,
        _option(
            "--negatives",
            text="'raise' refuses cells below zero; 'allow' fits the margins only.",
            metavar="raise|allow",
            callback=one_of("raise", "allow"),
        ),
    ] = "raise"
    tol: Annotated[
        Optional[float],  # noqa: UP045
        _option(
            "--tol",
            text="The certificate to reach. Default: that of the library.",
        ),
    ] = None
    max_iter: Annotated[
        Optional[int],  # noqa: UP045
        _option("--max-iter", text="The most iterations. Default: 1000.", min=1),
    ] = None
    threads: Annotated[
        Optional[int],  # noqa: UP045
        _option(
            "--threads",
            text="Threads to use. Default: all cores.",
            min=1,
        ),
    ] = None
    json: Annotated[bool, _option("--json", text="Print a summary for programs.")] = (
        False
    )
    quiet: Annotated[bool, _option("--quiet", "-q", text="Say nothing but errors.")] = (
        False
    )
    overwrite: Annotated[
        bool,
        _option("--overwrite", text="Replace files that exist."),
    ] = False
    debug: Annotated[
        bool, _option("--debug", text="Show the traceback of an error.")
    ] = False

    @property
    def budget(self) -> dict[str, Any]:
        """``tol`` and ``max_iter`` where they were given."""
        given = {"tol": self.tol, "max_iter": self.max_iter}
        return {name: value for name, value in given.items() if value is not None}


def command(body: Callable[..., None]) -> Callable[..., None]:
    """Make a typer command of a function whose last parameter is a `Common`.

    The shared options become parameters of their own; errors of the library become one
    line on standard error and an exit code.
    """
    hints = get_type_hints(body, include_extras=True)
    shared_hints = get_type_hints(Common, include_extras=True)
    own = [
        parameter.replace(annotation=hints[parameter.name])
        for parameter in inspect.signature(body).parameters.values()
        if parameter.name != "common"
    ]
    shared = [
        inspect.Parameter(
            field.name,
            inspect.Parameter.KEYWORD_ONLY,
            default=field.default,
            annotation=shared_hints[field.name],
        )
        for field in fields(Common)
    ]

    @functools.wraps(body)
    def run(**arguments: Any) -> None:
        common = Common(
            **{field.name: arguments.pop(field.name) for field in fields(Common)}
        )
        _run_guarded(lambda: body(**arguments, common=common), common)

    named = [p.replace(kind=inspect.Parameter.KEYWORD_ONLY) for p in own]
    run.__signature__ = inspect.Signature([*named, *shared])  # type: ignore[attr-defined]
    run.__annotations__ = {p.name: p.annotation for p in [*named, *shared]}
    return run


def _run_guarded(body: Callable[[], None], common: Common) -> None:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            warnings.simplefilter("always", A1gmWarning)
            warnings.showwarning = _shown_by(common)
            _set_up_pyarrow(common)
            body()
            sys.stdout.flush()
    except KeyboardInterrupt:
        _stop(130, "interrupted; nothing was written.", common)
    except BrokenPipeError:
        # The reader has seen enough; the interpreter must not complain at its end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise typer.Exit(0) from None
    except (ParameterError, LabelError, MissingFileError, UsageError) as error:
        _stop(2, str(error), common)
    except A1gmError as error:
        _stop(1, _words_of(error), common)
    except MemoryError:
        _stop(1, "not enough memory for this table.", common)
    except typer.Exit:
        raise
    except Exception as error:  # noqa: BLE001 - the last line of defence: no traceback
        kind = type(error).__name__
        _stop(
            1,
            f"internal error: {kind}: {error}. Run with --debug to see where.",
            common,
        )


def _set_up_pyarrow(common: Common) -> None:
    from a1gm._base.optional import require_pyarrow

    pyarrow = require_pyarrow()
    # Its own handling of Ctrl-C loses the signal that comes between two reads.
    pyarrow.enable_signal_handlers(False)
    # The first array imports packages and swallows a Ctrl-C meanwhile: have it now,
    # before there is anything to interrupt.
    pyarrow.array([""])
    if common.threads is not None:
        pyarrow.set_cpu_count(common.threads)


def unwrapped(text: str) -> str:
    r"""Join the lines of each paragraph, except after the mark \b for fixed lines."""
    # Docstrings are raw, so the mark arrives as two letters.
    paragraphs = inspect.cleandoc(text).replace("\\b\n", "\b\n").split("\n\n")
    return "\n\n".join(
        part if part.startswith("\b") else part.replace("\n", " ")
        for part in paragraphs
    )


class UsageError(A1gmError):
    """A command that cannot be meant."""


@contextlib.contextmanager
def usage_errors() -> Iterator[None]:
    """Take a place that cannot be written to for bad usage; no data were read."""
    try:
        yield
    except OutputError as error:
        raise UsageError(_words_of(error)) from error


def check_folder(out: str, names: Sequence[str], common: Common) -> None:
    """Refuse a folder for results that cannot be written, before the data are read."""
    from a1gm._base.atomic import check_target

    folder = Path(out)
    if folder.exists() and not folder.is_dir():
        raise UsageError(f"{out} is a file; name a folder for the results.")
    with usage_errors():
        for name in names if folder.exists() else ():
            check_target(folder / name, overwrite=common.overwrite)


def _words_of(error: A1gmError) -> str:
    # An OSError with a number would print it in brackets.
    return str(getattr(error, "strerror", None) or error)


def _shown_by(common: Common) -> Callable[..., None]:
    def show(message: Warning | str, *_: Any, **__: Any) -> None:
        if not common.quiet:
            warn(in_command_words(str(message)))

    return show


def _stop(code: int, words: str, common: Common) -> None:
    if common.debug:
        traceback.print_exc()
    say(f"a1gm: {in_command_words(words)}")
    raise typer.Exit(code) from None
