"""Options that commands share, and their output: text, JSON, progress, advice."""

from __future__ import annotations

import codecs
import contextlib
import csv
import functools
import io
import json
import shlex
import sys
import threading
import time
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, field, fields
from itertools import chain
from typing import Annotated, Any, TypeAlias

import typer

from a1gm._base.words import shown
from a1gm.exceptions import A1gmError, Call, Option, Part, See

TableArgument: TypeAlias = Annotated[
    list[str],
    typer.Argument(
        metavar="FILE",
        help="The table: a file, or several files, folders or globs that are one "
        "table; - for standard input.",
    ),
]
FolderOption: TypeAlias = Annotated[
    str, typer.Option("--out", "-o", metavar="PATH", help="The folder for the results.")
]
SampleOption: TypeAlias = Annotated[
    int | None,
    typer.Option(
        metavar="N",
        min=2,
        help="Rows (or columns, if there are more) of a random sample. Default: as "
        "many as have 200,000 known cells.",
    ),
]
_TOTALS_HELP = (
    "A file with the totals of the {}s: a line per total, its name before the number. "
    "Those that are not there are not known."
)
RowTotalsOption: TypeAlias = Annotated[
    str | None, typer.Option(metavar="FILE", help=_TOTALS_HELP.format("row"))
]
ColTotalsOption: TypeAlias = Annotated[
    str | None, typer.Option(metavar="FILE", help=_TOTALS_HELP.format("column"))
]
_SHOW_AFTER_SECONDS = 1.0
#: Replacements for characters that a stream cannot encode.
_PLAIN = {
    **dict(zip("×≈–·│░▒▓█", "x~--|.+%#", strict=True)),
    "⊗": "(x)",
    "≤": "<=",
    "≥": ">=",
    "…": "...",
}
#: Characters that messages write as escapes, such as a tab.
_ESCAPED = {repr(mark)[1:-1]: mark for mark in "\t\xa0\u202f"}
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
    weights: str | None = _option(
        "A file like the table with the weight of each cell, 0 to ignore it; one row "
        "for weights of columns, one column for weights of rows. With --long: the "
        "column with the weights.",
        metavar="FILE",
    )
    exposure: str | None = _option(
        "As --weights, with how much there was to count in each cell: hours, area.",
        metavar="FILE",
    )
    long: str | None = _option(
        "The file has one row per cell: its columns with the row key, the column key "
        "and the value, such as shop,month,sales; fit, impute, assess and report take "
        "more keys, the value last.",
        metavar="ROW,COLUMN,VALUE",
    )
    interactions: list[str] | None = _option(  # noqa: RUF009 - a field()
        "With --long and three keys or more: keys that act together, such as "
        "site:year; several sets are separated by commas. Repeatable.",
        metavar="SETS",
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
    header: bool = _option("Whether the first line names the columns.", True)
    strict: bool = _option(
        "Exit 1 if the data do not determine some cells; write nothing.", False
    )
    json: bool = _option(
        "Print a summary as JSON; errors and warnings, too, one object per line.", False
    )
    quiet: bool = _option("Print errors only.", False)
    escape_formulas: bool = _option(
        "In CSV files put ' before text that a spreadsheet would take for a formula: "
        "=, +, - or @ at the beginning, unless it is a number.",
        False,
    )
    overwrite: bool = _option("Replace existing files.", False)
    debug: bool = _option("Show the traceback of an error.", False)

    @property
    def reading(self) -> dict[str, Any]:
        """The options of ``a1gm.fit_file`` for reading files."""
        from a1gm._rows.files.source import TableOptions

        names = [f.name for f in fields(TableOptions) if hasattr(self, f.name)]
        given = {name: getattr(self, name) for name in names}
        for name in ("columns", "exclude", "id"):
            given[name] = split_names(given[name]) or None
        for name in ("delimiter", "thousands"):
            given[name] = _ESCAPED.get(given[name], given[name])
        return given

    @property
    def fitting(self) -> dict[str, Any]:
        """The options of ``a1gm.fit`` for fitting."""
        given: dict[str, Any] = {"negatives": self.negatives}
        given["on_undetermined"] = "raise" if self.strict else "warn"
        given |= {"tol": self.tol} if self.tol is not None else {}
        given |= {"max_iter": self.max_iter} if self.max_iter is not None else {}
        return given | {"n_threads": self.threads}

    @property
    def writing(self) -> dict[str, Any]:
        """The options for writing tables."""
        names = "overwrite", "escape_formulas"
        return {name: getattr(self, name) for name in names}

    def echo(self, text: str, level: str = "info", **fields: Any) -> None:
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
            self.echo(line)


LONG_OPTIONS = "long", "interactions", "by", "duplicates"
#: Options about a table, for commands that read none.
TABLE_OPTIONS = {f.name for f in fields(Options)} - {"quiet", "overwrite", "debug"}


def split_names(values: Collection[str] | None) -> list[str]:
    """Split names at commas; a name with a comma is in quotes, as in CSV."""
    try:
        return list(chain.from_iterable(csv.reader(values or ())))
    except csv.Error as error:
        raise UsageError(
            "A name with a line break must be in double quotes, as in CSV."
        ) from error


def _joined(names: Collection[str]) -> str:
    """Join names by commas, as `split_names` splits them."""
    line = io.StringIO()
    csv.writer(line, lineterminator="").writerow(names)
    return line.getvalue()


# ------------------------------------------------------------------------- output
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
def progress_bar(text: str, *, quiet: bool) -> Iterator[Any]:
    """Yield a function that shows the rows done and the fraction of the work done.

    Until it is called the bar only shows that work goes on. None where nothing is to be
    shown.
    """
    if quiet or not sys.stderr.isatty():
        yield None
        return
    from rich import progress
    from rich.console import Console

    columns = (
        # Not markup: the text has the name of a file.
        progress.TextColumn("{task.description}", markup=False),
        progress.BarColumn(),
        progress.TaskProgressColumn(),
        progress.TextColumn("{task.fields[speed]}"),
        progress.TimeRemainingColumn(),
    )
    started = time.monotonic()
    with progress.Progress(
        *columns, console=Console(stderr=True), transient=True
    ) as bar:
        # Without a total it moves to and fro: how much is left is not known yet.
        task = bar.add_task(text, total=None, visible=False, speed="")
        appear = functools.partial(bar.update, task, visible=True)
        timer = threading.Timer(_SHOW_AFTER_SECONDS, appear)

        def show(rows: int, fraction: float) -> None:
            elapsed = time.monotonic() - started
            bar.update(
                task,
                total=1.0,
                completed=fraction,
                visible=elapsed >= _SHOW_AFTER_SECONDS,
                speed=f"{rows / elapsed:,.0f} rows/s",
            )

        timer.start()
        try:
            yield show
        finally:
            timer.cancel()


# ------------------------------------------------------------------------- advice
def command_style(part: Part) -> str:
    """Write a part of a message as options of the command line."""
    styles: dict[type, Callable[[Any], str]]
    styles = {Option: _option_text, Call: _call, See: _see}
    return styles[type(part)](part)


def _option_text(option: Option) -> str:
    name, value = "--" + option.name.replace("_", "-"), option.value
    if name == "--n-threads":
        name = "--threads"
    if value is None or value is True:
        return name
    if value is False:
        return f"--no-{option.name}"
    values = value if isinstance(value, list) else [str(value)]
    if isinstance(value, list) and name != "--missing":  # which takes one token
        values = [_joined(value)]
    return " ".join(f"{name} {_quoted(text)}" for text in values)


def _call(call: Call) -> str:
    if call.function == "impute":
        options_text = " ".join(f"{_option_text(o)} FILE" for o in call.options)
        return f"a1gm impute FILE {options_text}"
    if call.function not in ("fit_long", "fit_groups"):
        return str(call)
    options = {option.name: option.value for option in call.options}
    long = f"--long {_quoted(_joined([*options['keys'], options['value']]))}"
    if "by" not in options:
        return long
    # The commands that take one table have no --by.
    return f"{long} --by {_quoted(str(options['by']))} (fit, impute and assess)"


def _see(see: See) -> str:
    return "; a1gm report lists them" if see.attribute == "fit.undetermined" else ""


def _quoted(value: str) -> str:
    """Quote for a shell, punctuation always: a comma alone is easily overlooked."""
    if not value.isprintable() and value not in _ESCAPED.values():
        return f"$'{''.join(map(_in_shell, value))}'"
    quoted = shlex.quote(value)
    is_word = any(map(str.isalnum, value)) or quoted != value
    return quoted if is_word else f"'{value}'"


def _in_shell(letter: str) -> str:
    """Write a letter as shells do within $'...'."""
    if letter.isprintable():
        return f"\\{letter}" if letter in "\\'" else letter
    return f"\\U{ord(letter):08x}" if ord(letter) > 0x7F else repr(letter)[1:-1]
