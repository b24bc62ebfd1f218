"""How a file is to be read: the options every file command shares."""

from __future__ import annotations

import codecs
from collections.abc import Sequence
from dataclasses import dataclass

from a1gm.exceptions import ParameterError

#: Cells that mean "missing" in a text file without being told. Only these, because
#: readers disagree on every other token (``NULL``, ``-``, ``?``, ``n/a``): those are
#: refused with the cell until the user names them.
DEFAULT_MISSING = ("", "NA", "NaN", "nan")


@dataclass(frozen=True, kw_only=True)
class TableOptions:
    """Which columns form the table, and how text becomes numbers.

    Parameters
    ----------
    columns : sequence of str, optional
        The columns of the table. Default: every numeric column of the file.
    exclude : sequence of str
        Columns to leave out of the table; they are passed through.
    id : sequence of str
        Columns that name the rows; they are passed through.
    missing : sequence of str
        Further tokens that mark a missing cell, beside an empty cell, ``NA`` and
        ``NaN``. A token that is a number also matches equal numbers (``-999`` marks
        ``-999.0``).
    delimiter : str, optional
        The character between cells. Default: a tab for ``.tsv``, else a comma.
    decimal : str
        The decimal mark, ``"."`` or ``","``.
    thousands : str, optional
        The character between groups of three digits. Default: none is accepted.
    encoding : str
        The text encoding.
    batch_rows : int, optional
        The most rows in one block. Default: blocks of a few megabytes.
    """

    columns: Sequence[str] | None = None
    exclude: Sequence[str] = ()
    id: Sequence[str] = ()
    missing: Sequence[str] = ()
    delimiter: str | None = None
    decimal: str = "."
    thousands: str | None = None
    encoding: str = "utf-8"
    batch_rows: int | None = None

    def __post_init__(self) -> None:
        self._check_marks()
        self._check_names()
        try:
            codecs.lookup(self.encoding)
        except LookupError:
            raise ParameterError(
                f"Unknown encoding {self.encoding!r}. "
                "Use a name Python knows: utf-8, latin-1, cp1252, utf-16, ..."
            ) from None
        if self.batch_rows is not None and self.batch_rows < 1:
            raise ParameterError(f"batch_rows must be >= 1, got {self.batch_rows}.")

    def _check_marks(self) -> None:
        if self.decimal not in (".", ","):
            raise ParameterError(f"decimal must be '.' or ',', got {self.decimal!r}.")
        if self.delimiter is not None and (
            len(self.delimiter) != 1
            or not self.delimiter.isascii()
            or self.delimiter in '"\r\n'
        ):
            raise ParameterError(
                "delimiter must be one ASCII character other than a quote or a line "
                f"end, got {self.delimiter!r}."
            )
        if self.thousands is not None and (
            len(self.thousands) != 1
            or self.thousands.isalnum()
            or self.thousands in '+-"\r\n'
        ):
            raise ParameterError(
                "thousands must be one mark such as ',' or ' ', got "
                f"{self.thousands!r}."
            )
        if self.thousands == self.decimal:
            raise ParameterError(
                f"decimal and thousands are both {self.decimal!r}; they must differ."
            )

    def _check_names(self) -> None:
        for field in ("columns", "exclude", "id", "missing"):
            if isinstance(getattr(self, field), str):
                raise ParameterError(
                    f"{field} must be a list of names, got the single text "
                    f"{getattr(self, field)!r}; write [{getattr(self, field)!r}]."
                )
        twice = [
            name
            for name in self.columns or ()
            if list(self.columns or ()).count(name) > 1
        ]
        if twice:
            raise ParameterError(f"Column {twice[0]!r} is named twice in columns.")
        both = set(self.columns or ()) & {*self.exclude, *self.id}
        if both:
            raise ParameterError(
                f"Column {min(both)!r} is asked for both as part of the table and "
                "left out of it (columns against exclude or id)."
            )

    @property
    def missing_tokens(self) -> tuple[str, ...]:
        """Every text that marks a missing cell."""
        return tuple(dict.fromkeys((*DEFAULT_MISSING, *self.missing)))

    @property
    def missing_numbers(self) -> tuple[float, ...]:
        """The tokens that are numbers, such as -999."""
        return tuple(
            number for number in map(_as_number, self.missing) if number is not None
        )


def _as_number(token: str) -> float | None:
    try:
        return float(token)
    except ValueError:
        return None


def hint(option: str, value: str) -> str:
    """Name an option the way both kinds of user write it."""
    python = f"{option}=[{value!r}]" if option in _LISTS else f"{option}={value!r}"
    return f"--{option} {_shell_quoted(value)} (in Python: {python})"


_LISTS = frozenset({"columns", "exclude", "id", "missing"})


def _shell_quoted(value: str) -> str:
    if value.strip("-") and all(c.isalnum() or c in "_./-" for c in value):
        return value
    return "'" + value.replace("'", "'\\''") + "'" if value != "\t" else "'\\t'"
