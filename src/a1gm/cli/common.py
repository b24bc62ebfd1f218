"""Options every command shares, and what happens when a command fails."""

from __future__ import annotations

import contextlib
import functools
import inspect
import os
import sys
import traceback
import warnings
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import Field, dataclass, field, fields
from pathlib import Path
from typing import Annotated, Any, TypeAlias, get_type_hints

import typer

from a1gm._base.words import shown
from a1gm.cli.console import printable, say, speaking
from a1gm.cli.style import command_style
from a1gm.exceptions import (
    A1gmError,
    A1gmWarning,
    DataHintWarning,
    LabelError,
    MissingFileError,
    OutputError,
    ParameterError,
    SkippedWarning,
)

TableArgument: TypeAlias = Annotated[
    list[str],
    typer.Argument(
        metavar="FILE",
        help="The table: a file, or several files, folders or globs that are one "
        "table; - for standard input.",
    ),
]


def one_of(*allowed: str) -> Callable[[str], str]:
    """Make the check of an option that allows only some words."""

    def check(value: str) -> str:
        if value not in allowed:
            raise typer.BadParameter(f"{value!r} is not {' or '.join(allowed)}.")
        return value

    return check


def _option(text: str, default: Any = None, *, short: str = "", **more: Any) -> Any:
    return field(default=default, metadata={"help": text, "short": short, **more})


@dataclass(frozen=True)
class Common:
    """The options every command shares, each named like its field."""

    columns: list[str] | None = _option(  # noqa: RUF009 - a field()
        "The columns of the table, separated by commas; repeatable. Default: every "
        "numeric column.",
        metavar="NAMES",
    )
    exclude: list[str] | None = _option(  # noqa: RUF009 - a field()
        "Columns to leave out of the table; they are passed through.", metavar="NAMES"
    )
    id: list[str] | None = _option(  # noqa: RUF009 - a field()
        "The column that names the rows; repeatable.", metavar="NAME"
    )
    long: str | None = _option(
        "The file has one row per cell: its columns with the row key, the column key "
        "and the value, such as shop,month,sales.",
        metavar="ROW,COLUMN,VALUE",
    )
    by: list[str] | None = _option(  # noqa: RUF009 - a field()
        "With --long: the column that says which of many tables a row belongs to; "
        "repeatable.",
        metavar="NAME",
    )
    duplicates: str = _option(
        "With --long: 'raise' refuses a pair that is there twice; 'sum' adds its "
        "values.",
        "raise",
        metavar="raise|sum",
        callback=one_of("raise", "sum"),
    )
    missing: list[str] | None = _option(  # noqa: RUF009 - a field()
        "A token that marks a missing cell, beside an empty cell, NA and NaN; "
        "repeatable.",
        metavar="TOKEN",
    )
    delimiter: str | None = _option(
        "The character between cells; '\\t' for a tab. Default: a comma, a tab for "
        ".tsv.",
        metavar="CHAR",
    )
    decimal: str | None = _option("The decimal mark. Default: .", metavar="CHAR")
    thousands: str | None = _option(
        "The mark between groups of three digits. Default: none.", metavar="CHAR"
    )
    encoding: str = _option("The text encoding.", "utf-8", metavar="NAME")
    negatives: str = _option(
        "'raise' refuses cells below zero; 'allow' fits the margins only.",
        "raise",
        metavar="raise|allow",
        callback=one_of("raise", "allow"),
    )
    tol: float | None = _option(
        "The certificate to reach: the share by which fitted sums of rows and columns "
        "may be off, such as 1e-8.",
        metavar="NUMBER",
    )
    max_iter: int | None = _option("The most iterations.", min=1, metavar="N")
    threads: int | None = _option(
        "Threads to use. Default: all cores.", min=1, metavar="N"
    )
    sheet: str | None = _option(
        "The sheet of a spreadsheet. Default: the only one with cells.", metavar="NAME"
    )
    skip_bad: bool = _option(
        "Go on without files that cannot be read, among several; exit 1 at the end.",
        False,
    )
    strict: bool = _option("Exit 1 when cells cannot be known; write nothing.", False)
    json: bool = _option(
        "Print a summary for programs; errors and warnings as JSON, too, one a line.",
        False,
    )
    quiet: bool = _option("Say nothing but errors.", False, short="-q")
    overwrite: bool = _option("Replace files that exist.", False)
    debug: bool = _option("Show the traceback of an error.", False)

    @property
    def budget(self) -> dict[str, Any]:
        """``tol`` and ``max_iter`` where they were given."""
        given = {"tol": self.tol, "max_iter": self.max_iter}
        return {name: value for name, value in given.items() if value is not None}


#: What a command without a table of the user has no use for.
TABLE_OPTIONS = tuple(
    option.name
    for option in fields(Common)
    if option.name not in ("quiet", "overwrite", "debug")
)


def command(
    body: Callable[..., None], hidden: Collection[str] = ()
) -> Callable[..., None]:
    """Make a typer command of a function whose last parameter is a `Common`.

    The shared options become parameters of their own, and the help does not list the
    ``hidden`` ones; errors of the library become one line on standard error and an
    exit code.
    """
    hints = get_type_hints(body, include_extras=True)
    own = [
        parameter.replace(
            annotation=hints[parameter.name], kind=inspect.Parameter.KEYWORD_ONLY
        )
        for parameter in inspect.signature(body).parameters.values()
        if parameter.name != "common"
    ]
    kinds = get_type_hints(Common)
    parameters = own + [
        _parameter(f, kinds[f.name], hidden=f.name in hidden) for f in fields(Common)
    ]

    @functools.wraps(body)
    def run(**arguments: Any) -> None:
        common = Common(**{f.name: arguments.pop(f.name) for f in fields(Common)})
        _run_guarded(lambda: body(**arguments, common=common), common)

    run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    run.__annotations__ = {p.name: p.annotation for p in parameters}
    return run


def _parameter(
    option: Field[Any], kind: Any, *, hidden: bool = False
) -> inspect.Parameter:
    """Describe a shared option to typer."""
    how = {**option.metadata, "hidden": hidden}
    names = [f"--{option.name.replace('_', '-')}", how.pop("short")]
    return inspect.Parameter(
        option.name,
        inspect.Parameter.KEYWORD_ONLY,
        default=option.default,
        annotation=Annotated[kind, typer.Option(*filter(None, names), **how)],
    )


def _run_guarded(body: Callable[[], None], common: Common) -> None:
    broken: list[str] = []
    try:
        with (
            speaking(json=common.json),
            warnings.catch_warnings(),
        ):
            warnings.simplefilter("ignore")
            warnings.simplefilter("always", A1gmWarning)
            warnings.showwarning = _shown_by(common, broken)
            _set_up_pyarrow(common)
            body()
            sys.stdout.flush()
        if broken:
            _stop(1, broken[0], common, kind="SkippedWarning")
    except KeyboardInterrupt:
        _stop(130, "interrupted; nothing was written.", common)
    except BrokenPipeError:
        # The reader has seen enough; the interpreter must not complain at its end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise typer.Exit(0) from None
    except A1gmError as error:
        is_usage = isinstance(
            error, ParameterError | LabelError | MissingFileError | UsageError
        )
        words, kind = error.render(command_style), type(error).__name__
        _stop(2 if is_usage else 1, words, common, kind=kind)
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
    from a1gm._kernel import threads_for

    pyarrow = require_pyarrow("cli")
    # Its own handling of Ctrl-C loses the signal that comes between two reads.
    pyarrow.enable_signal_handlers(False)
    # The first array imports packages and swallows a Ctrl-C meanwhile: have it now,
    # before there is anything to interrupt.
    pyarrow.array([""])
    if common.threads is not None:
        pyarrow.set_cpu_count(threads_for(0, common.threads))


def unwrapped(text: str) -> str:
    r"""Join the lines of each paragraph, except after the mark \b for fixed lines.

    Help is printed by click, which takes a terminal without UTF-8 for a mistake.
    """
    # Docstrings are raw, so the mark arrives as two letters.
    paragraphs = inspect.cleandoc(text).replace("\\b\n", "\b\n").split("\n\n")
    return printable(
        "\n\n".join(
            part if part.startswith("\b") else part.replace("\n", " ")
            for part in paragraphs
        )
    )


class UsageError(A1gmError):
    """A command line that cannot work, found before any data are read."""


@contextlib.contextmanager
def usage_errors() -> Iterator[None]:
    """Turn an OutputError into a UsageError: no data were read yet."""
    try:
        yield
    except OutputError as error:
        raise UsageError(error.all_parts) from error


def check_folder(out: str, names: Sequence[str], common: Common) -> None:
    """Raise if the folder cannot take the results, before the data are read."""
    from a1gm._base.atomic import check_target

    folder = Path(out)
    if folder.exists() and not folder.is_dir():
        raise UsageError(f"{shown(out)} is a file; name a folder for the results.")
    with usage_errors():
        for name in names if folder.exists() else ():
            check_target(folder / name, overwrite=common.overwrite)


def _shown_by(common: Common, broken: list[str]) -> Callable[..., None]:
    """What shows a warning; of broken files it is kept for the end."""

    def show(warning: A1gmWarning, *_: Any, **__: Any) -> None:
        words, kind = warning.render(command_style), type(warning).__name__
        if isinstance(warning, SkippedWarning) and warning.is_broken:
            broken.append(words)
        elif not common.quiet:
            is_note = isinstance(warning, SkippedWarning) or (
                isinstance(warning, DataHintWarning) and warning.is_inferred
            )
            say(words, "note" if is_note else "warning", kind=kind)

    return show


def _stop(code: int, words: str, common: Common, **about: Any) -> None:
    if common.debug:
        traceback.print_exc()
    with speaking(json=common.json):
        say(words, "error", **about, exit_code=code)
    raise typer.Exit(code) from None
