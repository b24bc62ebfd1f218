"""The application of typer, and how its commands run and fail."""

from __future__ import annotations

import functools
import inspect
import sys
import traceback
import warnings
from collections.abc import Callable
from dataclasses import Field, fields
from typing import Annotated, Any, get_type_hints

import typer

from a1gm._base.version import __version__
from a1gm.cli import FULL, drop_output, is_full
from a1gm.cli.options import Options, UsageError, command_style
from a1gm.exceptions import (
    A1gmError,
    A1gmWarning,
    LabelError,
    MissingFileError,
    ParameterError,
    TotalsError,
)

_KEYWORD, _KINDS = inspect.Parameter.KEYWORD_ONLY, get_type_hints(Options)
app = typer.Typer(
    name="a1gm",
    # Plain help: drawing it with rich would double the time it takes to answer.
    rich_markup_mode=None,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def a1gm(
    version: Annotated[
        bool, typer.Option("--version", help="Show the version.")
    ] = False,
) -> None:
    """Explain a table with missing cells by one factor per row and one per column.

    The best rank-1 table under the Kullback-Leibler divergence on the observed cells,
    exact for every pattern of missing cells. A table is a file, several files or a
    folder: CSV, TSV, gzipped text, spreadsheets, Parquet, Feather, or - for standard
    input. It has one row of cells per line, or with --long one cell per line.

    Example:
      a1gm inspect sales.csv
      a1gm impute sales.csv -o filled.csv
      a1gm impute sales.xlsx --long shop,month,sales -o filled.csv
      a1gm report sales.csv -o report.html
    """
    if version:
        typer.echo(f"a1gm {__version__}")
        raise typer.Exit


def _help_of(body: Callable[..., None]) -> str:
    """The help of a command; a mark keeps click from joining the lines of examples."""
    text = inspect.cleandoc(body.__doc__ or "")
    return text.replace("Example:\n", "\b\nExample:\n")


app.callback(help=_help_of(a1gm), invoke_without_command=True)(a1gm)


def command(*without: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Make a command of a function that has a parameter ``options``.

    The shared options become parameters of the command, except those in ``without``.
    Errors of the library become one line on standard error and an exit code.
    """

    def register(body: Callable[..., None]) -> Callable[..., None]:
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
            names = {option.name for option in shared} & arguments.keys()
            options = Options(**{name: arguments.pop(name) for name in names})
            _run(functools.partial(body, **arguments, options=options), options)

        run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
        run.__annotations__ = {p.name: p.annotation for p in parameters}
        app.command(body.__name__, help=_help_of(body))(run)
        return run

    return register


def _parameter(option: Field[Any]) -> inspect.Parameter:
    """Describe a shared option to typer."""
    names = [f"--{option.name.replace('_', '-')}", *["-q"] * (option.name == "quiet")]
    if option.default is True:
        names[0] += f"/--no-{option.name}"
    how: Any = typer.Option(*names, **option.metadata)
    kind: Any = Annotated[_KINDS[option.name], how]
    return inspect.Parameter(
        option.name, _KEYWORD, default=option.default, annotation=kind
    )


def _run(body: Callable[[], None], options: Options) -> None:
    """Run a command; end the process with a message and an exit code if it fails."""

    def show(warning: A1gmWarning, *_: Any, **__: Any) -> None:
        text, kind = warning.render(command_style), type(warning).__name__
        is_note = kind == "SkippedWarning" or getattr(warning, "is_inferred", False)
        options.echo(text, "note" if is_note else "warning", kind=kind)

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            warnings.simplefilter("always", A1gmWarning)
            warnings.showwarning = show  # type: ignore[assignment]
            _set_up_pyarrow(options)
            body()
            sys.stdout.flush()
    except KeyboardInterrupt as stopped:
        notes = getattr(stopped, "__notes__", ["nothing was written."])
        _stop(130, f"interrupted; {' '.join(notes)}", options)
    except BrokenPipeError:
        # The reader has seen enough; the interpreter must not complain at its end.
        drop_output()
        raise typer.Exit(0) from None
    except A1gmError as error:
        # A label may be one that was typed, or that of a row of the data.
        usage = ParameterError, LabelError, MissingFileError, UsageError
        notes = getattr(error, "__notes__", [])  # files that are new all the same
        text = " ".join([error.render(command_style), *notes])
        code = 2 if isinstance(error, usage) and error.row is None else 1
        proof = {}
        if isinstance(error, TotalsError):
            names = "rows", "cols", "needs", "has", "side"
            proof = {name: getattr(error, name) for name in names}
        _stop(code, text, options, kind=type(error).__name__, **proof)
    except MemoryError:
        _stop(1, "not enough memory for this table.", options)
    except typer.Exit:
        raise
    except Exception as error:  # noqa: BLE001 - a fault of ours: no traceback
        if is_full(error):
            drop_output()
            _stop(1, FULL.format(error.strerror), options)
        text = f"internal error: {type(error).__name__}: {error}."
        _stop(1, f"{text} Run with --debug to see where.", options)


def _set_up_pyarrow(options: Options) -> None:
    from a1gm._base.optional import require
    from a1gm._kernel import threads_for

    pyarrow = require("pyarrow", "cli", "Reading and writing table files")
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
    options.echo(text, "error", **fields, exit_code=code)
    raise typer.Exit(code) from None
