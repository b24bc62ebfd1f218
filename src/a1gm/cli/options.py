"""The options of the commands, and what happens when a command fails."""

from __future__ import annotations

import csv
import functools
import inspect
import os
import sys
import traceback
import warnings
from collections.abc import Callable, Collection
from contextlib import contextmanager
from dataclasses import Field, dataclass, field, fields
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias, get_type_hints

import typer

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

if TYPE_CHECKING:
    from collections.abc import Iterator

TableArgument: TypeAlias = Annotated[
    list[str],
    typer.Argument(
        metavar="FILE",
        help="The table: a file, or several files, folders or globs that are one "
        "table; - for standard input.",
    ),
]
FolderOption: TypeAlias = Annotated[
    str,
    typer.Option("--out", "-o", metavar="PATH", help="The folder for the results."),
]


class UsageError(A1gmError):
    """A command line that cannot work, found before any data are read."""


def one_of(*allowed: str) -> dict[str, Any]:
    """Describe an option that allows only some words."""

    def check(value: str) -> str:
        if value not in allowed:
            raise typer.BadParameter(f"{value!r} is not {' or '.join(allowed)}.")
        return value

    return {"metavar": "|".join(allowed), "callback": check}


def _option(text: str, default: Any = None, *, short: str = "", **more: Any) -> Any:
    return field(default=default, metadata={"help": text, "short": short, **more})


@dataclass(frozen=True)
class Options:
    """The options that commands share, each named like its field."""

    columns: list[str] | None = _option(  # noqa: RUF009 - a field()
        "The columns of the table, separated by commas; repeatable. A name with a "
        "comma is put in quotes: '\"a,b\",c'. Default: number columns, unless their "
        "name is a label.",
        metavar="NAMES",
    )
    exclude: list[str] | None = _option(  # noqa: RUF009 - a field()
        "Columns that are not part of the table; they are kept as they are.",
        metavar="NAMES",
    )
    id: list[str] | None = _option(  # noqa: RUF009 - a field()
        "The columns that label the rows.", metavar="NAMES"
    )
    long: str | None = _option(
        "The file has one row per cell: its columns with the row key, the column key "
        "and the value, such as shop,month,sales.",
        metavar="ROW,COLUMN,VALUE",
    )
    by: list[str] | None = _option(  # noqa: RUF009 - a field()
        "With --long: the columns that identify one of many tables.", metavar="NAMES"
    )
    duplicates: str = _option(
        "With --long: 'raise' refuses a pair with two values; 'sum' adds them.",
        "raise",
        **one_of("raise", "sum"),
    )
    missing: list[str] | None = _option(  # noqa: RUF009 - a field()
        "A token that marks a missing cell, in addition to an empty cell, NA and NaN; "
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
        "'raise' refuses cells below zero; 'allow' fits the row and column sums.",
        "raise",
        **one_of("raise", "allow"),
    )
    tol: float | None = _option(
        "The certificate to reach: the largest relative error of the fitted row and "
        "column sums, such as 1e-8.",
        metavar="NUMBER",
    )
    max_iter: int | None = _option(
        "The maximum number of iterations.", min=1, metavar="N"
    )
    threads: int | None = _option(
        "The number of threads. Default: all cores.", min=1, metavar="N"
    )
    sheet: str | None = _option(
        "The sheet of a spreadsheet. Default: the only one with cells.", metavar="NAME"
    )
    skip_bad: bool = _option(
        "Skip files that cannot be read, among several; exit 1 at the end.", False
    )
    strict: bool = _option(
        "Exit 1 if the data do not determine some cells; write nothing.", False
    )
    json: bool = _option(
        "Print a summary as JSON; errors and warnings, too, one object per line.", False
    )
    quiet: bool = _option("Print errors only.", False, short="-q")
    overwrite: bool = _option("Replace existing files.", False)
    debug: bool = _option("Show the traceback of an error.", False)

    @property
    def reading(self) -> dict[str, Any]:
        """The options of ``a1gm.fit_file`` for reading files."""
        return {
            "columns": split_names(self.columns) or None,
            "exclude": split_names(self.exclude),
            "id": split_names(self.id) or None,
            "missing": self.missing or (),
            "delimiter": _mark(self.delimiter),
            "decimal": self.decimal,
            "thousands": _mark(self.thousands),
            "encoding": self.encoding,
            "sheet": self.sheet,
            "skip_bad": self.skip_bad,
        }

    @property
    def fitting(self) -> dict[str, Any]:
        """The options of ``a1gm.fit`` for fitting."""
        given = {"tol": self.tol, "max_iter": self.max_iter, "n_threads": self.threads}
        return {
            "negatives": self.negatives,
            **{name: value for name, value in given.items() if value is not None},
        }

    @property
    def on_undetermined(self) -> Any:
        """What to do about cells that the data do not determine."""
        return "raise" if self.strict else "warn"


LONG_OPTIONS = "long", "by", "duplicates"
#: Options about a table, which a command without one does not take.
TABLE_OPTIONS = {f.name for f in fields(Options)} - {"quiet", "overwrite", "debug"}


def split_names(values: Collection[str] | None) -> list[str]:
    """Split names at commas; a name with a comma is in quotes, as in CSV."""
    lines = (next(csv.reader([value]), []) for value in values or ())
    return [name for line in lines for name in line]


def _mark(text: str | None) -> str | None:
    """Return a character, also if it is written as messages show invisible ones."""
    shown = {repr(mark)[1:-1]: mark for mark in "\t\xa0\u202f"}
    return None if text is None else shown.get(text, text)


# ----------------------------------------------------------------------- commands
def command(
    body: Callable[..., None], without: Collection[str] = ()
) -> Callable[..., None]:
    """Make a typer command of a function whose last parameter is an `Options`.

    The shared options become parameters of the command, except those in ``without``.
    Errors of the library become one line on standard error and an exit code.
    """
    hints = get_type_hints(body, include_extras=True)
    own = [
        parameter.replace(
            annotation=hints[parameter.name], kind=inspect.Parameter.KEYWORD_ONLY
        )
        for parameter in inspect.signature(body).parameters.values()
        if parameter.name != "options"
    ]
    kinds = get_type_hints(Options)
    shared = [option for option in fields(Options) if option.name not in without]
    parameters = own + [_parameter(option, kinds[option.name]) for option in shared]

    @functools.wraps(body)
    def run(**arguments: Any) -> None:
        options = Options(
            **{o.name: arguments.pop(o.name) for o in shared if o.name in arguments}
        )
        with speaking(json=options.json):
            _run_guarded(lambda: body(**arguments, options=options), options)

    run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    run.__annotations__ = {p.name: p.annotation for p in parameters}
    return run


def _parameter(option: Field[Any], kind: Any) -> inspect.Parameter:
    """Describe a shared option to typer."""
    how = dict(option.metadata)
    names = [f"--{option.name.replace('_', '-')}", how.pop("short")]
    return inspect.Parameter(
        option.name,
        inspect.Parameter.KEYWORD_ONLY,
        default=option.default,
        annotation=Annotated[kind, typer.Option(*filter(None, names), **how)],
    )


def _run_guarded(body: Callable[[], None], options: Options) -> None:
    broken: list[str] = []
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            warnings.simplefilter("always", A1gmWarning)
            warnings.showwarning = _shown_by(options, broken)
            _set_up_pyarrow(options)
            body()
            sys.stdout.flush()
        if broken:
            _stop(1, broken[0], options, kind="SkippedWarning")
    except KeyboardInterrupt as stopped:
        notes = getattr(stopped, "__notes__", ["nothing was written."])
        _stop(130, f"interrupted; {' '.join(notes)}", options)
    except BrokenPipeError:
        # The reader has seen enough; the interpreter must not complain at its end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise typer.Exit(0) from None
    except A1gmError as error:
        is_usage = isinstance(
            error, ParameterError | LabelError | MissingFileError | UsageError
        )
        notes = getattr(error, "__notes__", [])  # files that are new all the same
        words = " ".join([error.render(command_style), *notes])
        kind = type(error).__name__
        _stop(2 if is_usage else 1, words, options, kind=kind)
    except MemoryError:
        _stop(1, "not enough memory for this table.", options)
    except typer.Exit:
        raise
    except Exception as error:  # noqa: BLE001 - the last line of defence: no traceback
        what = f"internal error: {type(error).__name__}: {error}."
        _stop(1, f"{what} Run with --debug to see where.", options)


def _set_up_pyarrow(options: Options) -> None:
    from a1gm._base.optional import require_pyarrow
    from a1gm._kernel import threads_for

    pyarrow = require_pyarrow("cli")
    # Its own handling of Ctrl-C loses the signal that comes between two reads.
    pyarrow.enable_signal_handlers(False)
    # The first array imports packages and swallows a Ctrl-C meanwhile: have it now,
    # before there is anything to interrupt.
    pyarrow.array([""])
    if options.threads is not None:
        pyarrow.set_cpu_count(threads_for(0, options.threads))


def _shown_by(options: Options, broken: list[str]) -> Callable[..., None]:
    """Return what shows a warning; one about unreadable files is kept for the end."""

    def show(warning: A1gmWarning, *_: Any, **__: Any) -> None:
        words, kind = warning.render(command_style), type(warning).__name__
        if isinstance(warning, SkippedWarning) and warning.is_broken:
            broken.append(words)
        elif not options.quiet:
            is_note = isinstance(warning, SkippedWarning) or (
                isinstance(warning, DataHintWarning) and warning.is_inferred
            )
            say(words, "note" if is_note else "warning", kind=kind)

    return show


def _stop(code: int, words: str, options: Options, **about: Any) -> None:
    if options.debug:
        traceback.print_exc()
    say(words, "error", **about, exit_code=code)
    raise typer.Exit(code) from None


@contextmanager
def usage_errors() -> Iterator[None]:
    """Turn an OutputError into a UsageError: no data were read yet."""
    try:
        yield
    except OutputError as error:
        raise UsageError(error.all_parts) from error


def unwrapped(text: str) -> str:
    r"""Join the lines of each paragraph, except after the mark \b for fixed lines.

    Help is printed by click, which fails on a terminal without UTF-8.
    """
    # Docstrings are raw, so the mark arrives as two letters.
    paragraphs = inspect.cleandoc(text).replace("\\b\n", "\b\n").split("\n\n")
    return printable(
        "\n\n".join(
            part if part.startswith("\b") else part.replace("\n", " ")
            for part in paragraphs
        )
    )
