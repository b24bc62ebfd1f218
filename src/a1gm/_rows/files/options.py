"""Options of reading table files."""

from __future__ import annotations

import codecs
import contextlib
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from a1gm.exceptions import Option, ParameterError

#: Cells that mean "missing" in a text file by default. Only these: readers disagree on
#: every other token (``NULL``, ``-``, ``?``, ``n/a``), which is refused with its cell
#: until the user names it.
DEFAULT_MISSING = ("", "NA", "NaN", "nan")


@dataclass(frozen=True, kw_only=True)
class TableOptions:
    """Which columns form the table, and how text becomes numbers.

    Parameters
    ----------
    columns : sequence of str, optional
        Columns of the table. Default: every number column that is not a label.
    exclude : sequence of str, optional
        Columns to leave out of the table; they are passed through.
    id : sequence of str, optional
        Columns that label the rows, also in messages; they are passed through. Default:
        the index that pandas wrote, or the columns before the first one that is data.
        Text, dates and number columns whose name is a label (``id``, ``year``,
        ``store_nbr``, ...) are not data; a ``DataHintWarning`` names what was inferred.
    missing : sequence of str, optional
        Further tokens that mark a missing cell, beside an empty cell, ``NA`` and
        ``NaN``. A token that is a number also matches equal numbers (``"-999"`` marks
        ``-999.0``).
    delimiter : str, optional
        The character between the cells of text. Default: a tab for ``.tsv``, else a
        comma.
    decimal : str, optional
        The decimal mark of text, ``"."`` or ``","``. Default: a point; a
        ``DataHintWarning`` names points that may separate thousands.
    thousands : str, optional
        The character between groups of three digits in text. Default: none.
    encoding : str, default="utf-8"
        The encoding of text.
    sheet : str, optional
        The sheet of a spreadsheet. Default: the only one with cells in it.
    skip_bad : bool, default=False
        Whether to go on without files that cannot be read, among several; a
        ``SkippedWarning`` names them.
    batch_rows : int, optional
        The most rows read at once. Default: pieces of a few megabytes.
    """

    columns: Sequence[str] | None = None
    exclude: Sequence[str] = ()
    id: Sequence[str] | None = None
    missing: Sequence[str] = ()
    delimiter: str | None = None
    decimal: str | None = None
    thousands: str | None = None
    encoding: str = "utf-8"
    sheet: str | None = None
    skip_bad: bool = False
    batch_rows: int | None = None

    def __post_init__(self) -> None:
        self._check_marks()
        self._check_lists()
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
        if self.decimal not in (None, ".", ","):
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
        if self.thousands == self.point:
            raise ParameterError(
                f"decimal and thousands are both {self.point!r}; they must differ."
            )

    def _check_lists(self) -> None:
        """Raise for a single text, and keep the lists as tuples of texts."""
        for option in ("columns", "exclude", "id", "missing"):
            given = getattr(self, option)
            if isinstance(given, str):
                raise ParameterError(
                    f"{option} must be a list of names, got the single text {given!r}; "
                    "write ",
                    Option(option, [given]),
                    ".",
                )
            if given is not None or option not in ("columns", "id"):
                kept = tuple(str(name) for name in (() if given is None else given))
                object.__setattr__(self, option, kept)

    def _check_names(self) -> None:
        columns = self.columns or ()
        times = Counter(columns)
        twice = [name for name in columns if times[name] > 1]
        if twice:
            raise ParameterError(f"Column {twice[0]!r} is named twice in columns.")
        both = set(columns) & {*self.exclude, *(self.id or ())}
        if both:
            raise ParameterError(
                f"Column {min(both)!r} is asked for both as part of the table and "
                "left out of it (columns against exclude or id)."
            )

    @property
    def point(self) -> str:
        """The decimal mark, given or not."""
        return self.decimal or "."

    @property
    def missing_tokens(self) -> tuple[str, ...]:
        """Every text that marks a missing cell."""
        return tuple(dict.fromkeys((*DEFAULT_MISSING, *self.missing)))

    @property
    def missing_numbers(self) -> tuple[float, ...]:
        """The tokens that are numbers, such as -999."""
        numbers = []
        for token in self.missing:
            with contextlib.suppress(ValueError):
                numbers.append(float(token))
        return tuple(numbers)
