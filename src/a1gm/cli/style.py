"""Advice of the library, written as options of the command line."""

from __future__ import annotations

import csv
import io

from a1gm.exceptions import Call, Option, Part, See

#: Options of the library that the command line calls otherwise.
_NAMES = {"n_threads": "threads"}
#: Calls that are options of the command line.
_LONG = "fit_long", "fit_groups"
#: Where the command line has what an attribute has.
_SEE = {"fit.undetermined": "; a1gm report lists them"}


def command_style(part: Part) -> str:
    r"""Write a part of a message for a user of the command line.

    Examples
    --------
    >>> command_style(Option("missing", ["-"])), command_style(Option("max_iter"))
    ("--missing '-'", '--max-iter')
    >>> command_style(Option("columns", ["x y", "z"]))
    "--columns 'x y,z'"
    >>> keys = Option("keys", ["a", "b"]), Option("value", "c d")
    >>> command_style(Call("fit_long", "X", keys))
    "--long 'a,b,c d'"
    >>> command_style(Call("fit_groups", "X", (Option("by", "g"), *keys)))
    "--long 'a,b,c d' --by g (fit and impute)"
    """
    if isinstance(part, Option):
        return _option(part)
    if isinstance(part, Call) and part.function in _LONG:
        return _long({option.name: option.value for option in part.options})
    if isinstance(part, See):
        return _SEE.get(part.attribute, "")
    return str(part)


def _option(option: Option) -> str:
    name = "--" + _NAMES.get(option.name, option.name).replace("_", "-")
    value = option.value
    if value is None or value is True:
        return name
    if not isinstance(value, list):
        return f"{name} {_quoted(str(value))}"
    if any("," in text for text in value):
        return " ".join(f"{name} {_quoted(text)}" for text in value)
    return f"{name} {_quoted(','.join(value))}"


def _long(options: dict[str, object]) -> str:
    """Three names as --long takes them: in quotes where they hold a comma."""
    line = io.StringIO()
    keys: list[object] = list(options["keys"])  # type: ignore[call-overload]
    csv.writer(line, lineterminator="").writerow([*keys, options["value"]])
    long = f"--long {_quoted(line.getvalue())}"
    by = options.get("by")
    # The commands that take one table have no --by.
    return long if by is None else f"{long} --by {_quoted(str(by))} (fit and impute)"


def _quoted(value: str) -> str:
    """Quote for a shell, so that an invisible character can be seen."""
    if any(map(str.isalnum, value)) and all(c.isalnum() or c in "_./-," for c in value):
        return value
    return "'\\t'" if value == "\t" else "'" + value.replace("'", "'\\''") + "'"
