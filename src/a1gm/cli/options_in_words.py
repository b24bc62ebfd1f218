"""Advice of the library, written as options of the command line."""

from __future__ import annotations

import ast
import csv
import io
import re

#: Options of the library and what the commands call them.
_NAMES = {
    **{name: f"--{name}" for name in ("columns", "exclude", "id", "missing")},
    **{name: f"--{name}" for name in ("delimiter", "decimal", "thousands", "encoding")},
    **{
        name: f"--{name}"
        for name in ("negatives", "overwrite", "mark", "tol", "duplicates", "sheet")
    },
    "interval": "--interval",
    "max_iter": "--max-iter",
    "skip_bad": "--skip-bad",
    "n_threads": "--threads",
}
#: Words about what only a user of the library holds.
_PHRASES = {
    "read it into a frame and fit that with": "pass",
    "See fit.cell_error; fit such parts": "Fit such parts",
    "; see many.failed.": ".",
    "; look at many[key].": ".",
}
_TEXT = r"'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\""
_ONE = rf"(?:{_TEXT}|\.\.\.)"
_LONG = re.compile(
    rf"a1gm\.fit_(?:long|groups)\(\w+, (?:by=({_TEXT}), )?"
    rf"keys=(\[{_ONE}, {_ONE}\]), value=({_TEXT})\)"
)
_OPTION = re.compile(rf"\b({'|'.join(_NAMES)})=(\[{_ONE}(?:, {_ONE})*\]|{_ONE}|True)")


def in_command_words(text: str) -> str:
    r"""Turn options as Python has them into options of the command line.

    Examples
    --------
    >>> in_command_words("Pass missing=['-'] or leave it out of columns=[...].")
    "Pass --missing '-' or leave it out of --columns."
    >>> in_command_words("Raise max_iter (or tol), or pass delimiter='\\t'.")
    "Raise --max-iter (or --tol), or pass --delimiter '\\t'."
    >>> in_command_words("Pass columns=['x', 'y z'].")
    "Pass --columns 'x,y z'."
    >>> in_command_words("fit it with a1gm.fit_long(X, keys=['a', 'b'], value='c d').")
    "fit it with --long 'a,b,c d'."
    >>> in_command_words("a1gm.fit_groups(X, by='g', keys=['a', 'b'], value='c')")
    '--long a,b,c --by g (fit and impute take it)'
    """
    for of_library, of_command in _PHRASES.items():
        text = text.replace(of_library, of_command)
    text = _LONG.sub(lambda found: _long(*found.groups()), text)
    text = _OPTION.sub(lambda found: _option(found[1], found[2]), text)
    return re.sub(r"(?<=Raise )max_iter \(or tol\)", "--max-iter (or --tol)", text)


def _long(by: str | None, keys: str, value: str) -> str:
    """Three names as --long takes them: in quotes where they hold a comma."""
    line = io.StringIO()
    csv.writer(line, lineterminator="").writerow(
        [*ast.literal_eval(keys), ast.literal_eval(value)]
    )
    long = f"--long {_shell_quoted(line.getvalue())}"
    if by is None:
        return long
    # The commands that take one table have no --by.
    return f"{long} --by {_shell_quoted(ast.literal_eval(by))} (fit and impute take it)"


def _option(name: str, value: str) -> str:
    given = ast.literal_eval(value)
    if isinstance(given, list) and len(given) > 1:
        if not any("," in text for text in given):
            return f"{_NAMES[name]} {_shell_quoted(','.join(given))}"
        return " ".join(f"{_NAMES[name]} {_shell_quoted(text)}" for text in given)
    given = given[0] if isinstance(given, list) else given
    if given is ... or given is True:
        return _NAMES[name]
    return f"{_NAMES[name]} {_shell_quoted(given)}"


def _shell_quoted(value: str) -> str:
    if any(map(str.isalnum, value)) and all(c.isalnum() or c in "_./-," for c in value):
        return value
    return "'" + value.replace("'", "'\\''") + "'" if value != "\t" else "'\\t'"
