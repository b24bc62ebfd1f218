"""The options that commands share, and how a command runs and fails."""

from __future__ import annotations

import csv
import functools
import inspect
import json
import os
import sys
import traceback
import warnings
from collections.abc import Callable, Collection
from dataclasses import Field, dataclass, field, fields
from typing import Annotated, Any, TypeAlias, get_type_hints

import typer

from a1gm._base.words import shown
from a1gm.cli.console import command_style, to_json
from a1gm.exceptions import (
    A1gmError,
    A1gmWarning,
    LabelError,
    MissingFileError,
    ParameterError,
)

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
_KEYWORD = inspect.Parameter.KEYWORD_ONLY
_PREFIXES = {"error": "a1gm: ", "warning": "warning: ", "note": "note: ", "info": ""}


class UsageError(A1gmError):
    """A command line that cannot work, refused before any data are read."""


def one_of(*allowed: str) -> dict[str, Any]:
    """Describe an option that takes one of some words."""

    def check(value: str) -> str:
        if value not in allowed:
            raise typer.BadParameter(f"{value!r} is not {' or '.join(allowed)}.")
        return value

    return {"metavar": "|".join(allowed), "callback": check}


def _option(text: str, default: Any = None, **more: Any) -> Any:
    return field(default=default, metadata={"help": text, **more})


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
    quiet: bool = _option("Print errors only.", False)
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
            "delimiter": _unescaped(self.delimiter),
            "decimal": self.decimal,
            "thousands": _unescaped(self.thousands),
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

    def say(self, text: str, level: str = "info", **fields: Any) -> None:
        """Print a message on standard error, unless ``--quiet`` or an error.

        ``level`` is error, warning, note (a decision made for the user) or info. With
        ``--json`` it is one of the fields of an object.
        """
        if self.quiet and level != "error":
            return
        if self.json:
            line = json.dumps({"level": level, "message": text.strip(), **fields})
        else:  # a terminal would obey escape sequences in names
            line = shown(_PREFIXES[level] + text, keep="\n")
        sys.stderr.write(line + "\n")
        sys.stderr.flush()

    def finish(self, summary: dict[str, Any], *lines: str) -> None:
        """Print the summary of a command with ``--json``, and lines for people."""
        if self.json:
            sys.stdout.write(to_json(summary))
        for line in lines:
            self.say(line)


LONG_OPTIONS = "long", "by", "duplicates"
#: Options about a table, for commands that read none.
TABLE_OPTIONS = {f.name for f in fields(Options)} - {"quiet", "overwrite", "debug"}


def split_names(values: Collection[str] | None) -> list[str]:
    """Split names at commas; a name with a comma is in quotes, as in CSV."""
    lines = (next(csv.reader([value]), []) for value in values or ())
    return [name for line in lines for name in line]


def _unescaped(text: str | None) -> str | None:
    r"""Return the character that messages write as an escape, such as ``\t``."""
    escapes = {repr(mark)[1:-1]: mark for mark in "\t\xa0\u202f"}
    return None if text is None else escapes.get(text, text)


# ----------------------------------------------------------------------- commands
def command(
    body: Callable[..., None], without: Collection[str] = ()
) -> Callable[..., None]:
    """Make a typer command of a function with a parameter ``options``.

    The shared options become parameters of the command, except those in ``without``.
    Errors of the library become one line on standard error and an exit code.
    """
    hints = get_type_hints(body, include_extras=True)
    own = [
        parameter.replace(kind=_KEYWORD, annotation=hints[parameter.name])
        for parameter in inspect.signature(body).parameters.values()
        if parameter.name != "options"
    ]
    shared = [_parameter(f) for f in fields(Options) if f.name not in without]
    parameters = own + shared

    @functools.wraps(body)
    def run(**arguments: Any) -> None:
        names = [option.name for option in shared if option.name in arguments]
        options = Options(**{name: arguments.pop(name) for name in names})
        _run(functools.partial(body, **arguments, options=options), options)

    run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    run.__annotations__ = {p.name: p.annotation for p in parameters}
    return run


def help_of(body: Callable[..., None]) -> str:
    """The help of a command; a mark keeps click from joining the lines of examples."""
    text = inspect.cleandoc(body.__doc__ or "")
    return text.replace("Example:\n", "\b\nExample:\n")


def _parameter(option: Field[Any]) -> inspect.Parameter:
    """Describe a shared option to typer."""
    names = [f"--{option.name.replace('_', '-')}", *["-q"] * (option.name == "quiet")]
    kind = get_type_hints(Options)[option.name]
    how: Any = typer.Option(*names, **option.metadata)
    return inspect.Parameter(
        option.name, _KEYWORD, default=option.default, annotation=Annotated[kind, how]
    )


def _run(body: Callable[[], None], options: Options) -> None:
    """Run a command; end the process with a message and an exit code if it fails."""
    unreadable: list[str] = []

    def show(warning: A1gmWarning, *_: Any, **__: Any) -> None:
        text, kind = warning.render(command_style), type(warning).__name__
        if getattr(warning, "is_broken", False):
            unreadable.append(text)  # shown at the end, as an error
            return
        is_note = kind == "SkippedWarning" or getattr(warning, "is_inferred", False)
        options.say(text, "note" if is_note else "warning", kind=kind)

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            warnings.simplefilter("always", A1gmWarning)
            warnings.showwarning = show  # type: ignore[assignment]
            _set_up_pyarrow(options)
            body()
            sys.stdout.flush()
        if unreadable:
            _stop(1, unreadable[0], options, kind="SkippedWarning")
    except KeyboardInterrupt as stopped:
        notes = getattr(stopped, "__notes__", ["nothing was written."])
        _stop(130, f"interrupted; {' '.join(notes)}", options)
    except BrokenPipeError:
        # The reader has seen enough; the interpreter must not complain at its end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise typer.Exit(0) from None
    except A1gmError as error:
        usage = ParameterError, LabelError, MissingFileError, UsageError
        notes = getattr(error, "__notes__", [])  # files that are new all the same
        text = " ".join([error.render(command_style), *notes])
        code = 2 if isinstance(error, usage) else 1
        _stop(code, text, options, kind=type(error).__name__)
    except MemoryError:
        _stop(1, "not enough memory for this table.", options)
    except typer.Exit:
        raise
    except Exception as error:  # noqa: BLE001 - a fault of ours: no traceback
        text = f"internal error: {type(error).__name__}: {error}."
        _stop(1, f"{text} Run with --debug to see where.", options)


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


def _stop(code: int, text: str, options: Options, **fields: Any) -> None:
    if options.debug:
        traceback.print_exc()
    options.say(text, "error", **fields, exit_code=code)
    raise typer.Exit(code) from None
