"""Options every command shares, and what happens when a command fails."""

from __future__ import annotations

import functools
import inspect
import os
import sys
import traceback
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from typing import Annotated, Any, Optional, get_type_hints

import typer

from a1gm.cli.console import say, warn
from a1gm.exceptions import (
    A1gmError,
    A1gmWarning,
    LabelError,
    OutputError,
    ParameterError,
)


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
        ),
    ] = "raise"
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
    except (ParameterError, LabelError, UsageError) as error:
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


def check_output(path: str, *, common: Common, source: str | None = None) -> None:
    """Refuse a place that cannot be written to, before the data are read."""
    from a1gm._base.atomic import check_target

    if path == "-":
        return
    try:
        check_target(path, overwrite=common.overwrite, source=source)
    except OutputError as error:
        raise UsageError(_words_of(error)) from error


def split_names(values: Sequence[str] | None, known: Sequence[str]) -> list[str]:
    """Split names at commas, unless a column is called so."""
    names: list[str] = []
    for value in values or ():
        names += [value] if value in known else value.split(",")
    return names


def _words_of(error: A1gmError) -> str:
    # An OSError with a number would print it in brackets.
    return str(getattr(error, "strerror", None) or error)


def _shown_by(common: Common) -> Callable[..., None]:
    def show(message: Warning | str, *_: Any, **__: Any) -> None:
        if not common.quiet:
            warn(str(message))

    return show


def _stop(code: int, words: str, common: Common) -> None:
    if common.debug:
        traceback.print_exc()
    say(f"a1gm: {words}")
    raise typer.Exit(code) from None
