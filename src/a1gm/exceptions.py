"""Every error and warning of the package.

Every error is an `A1gmError` and one of Python's own errors, every warning an
`A1gmWarning` and a ``UserWarning``: there is one class for each thing that a caller
would catch.

A message is made of parts: text, and what a reader can do as data (`Option`, `Call`,
`See`). ``str(error)`` writes them for Python; ``error.render(style)`` writes them in
another style, as the command line does. No code reads a message; what code needs is
in fields.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Self, TypeAlias

__all__ = [
    "A1gmError",
    "A1gmWarning",
    "Call",
    "ClusterError",
    "ConvergenceWarning",
    "DataError",
    "DataHintWarning",
    "EmptyLineWarning",
    "EngineError",
    "FileFormatError",
    "InfiniteValuesError",
    "LabelError",
    "MissingExtraError",
    "MissingFileError",
    "NegativeValuesError",
    "NotNumericError",
    "NotRepresentableError",
    "Option",
    "OutputError",
    "ParameterError",
    "See",
    "SkippedWarning",
    "SlowKernelWarning",
    "TableTooLargeError",
    "TotalsError",
    "UndeterminedError",
    "UndeterminedWarning",
    "WeightsError",
]


@dataclass(frozen=True)
class Option:
    """An option in a message: ``Option("decimal", ",")`` is ``decimal=','``.

    Without a value it is ``decimal=``.
    """

    name: str
    value: Any = None

    def __str__(self) -> str:
        return f"{self.name}={'' if self.value is None else repr(self.value)}"


@dataclass(frozen=True)
class Call:
    """A call in a message: ``Call("fit_many", "X")`` is ``a1gm.fit_many(X)``."""

    function: str
    argument: str
    options: tuple[Option, ...] = ()

    def __str__(self) -> str:
        arguments = ", ".join(map(str, (self.argument, *self.options)))
        return f"a1gm.{self.function}({arguments})"


@dataclass(frozen=True)
class See:
    """An attribute with more: ``See("fit.undetermined")`` ends a sentence with it.

    ``option`` is needed to get the object that has it.
    """

    attribute: str
    option: Option | None = None

    def __str__(self) -> str:
        if self.option is None:
            return f"; see {self.attribute}"
        return f"; with {self.option}, see {self.attribute}"


Part: TypeAlias = str | Option | Call | See
Text: TypeAlias = "Part | Sequence[Text]"


def parts_of(text: Text) -> tuple[Part, ...]:
    """Flatten text that is made of parts."""
    if isinstance(text, str | Option | Call | See):
        return (text,)
    return tuple(part for some in text for part in parts_of(some))


def separated(sentences: Iterable[Text]) -> list[Text]:
    """Put a space between sentences, leaving out empty ones."""
    return [part for text in sentences if text for part in (" ", text)][1:]


class _Message:
    """Base of errors and warnings: a text in parts, and fields for programs.

    ``advice`` is what to do, as sentences that follow the text. ``fields`` are any of
    the attributes that the class declares; ``where`` is written before the text:
    ``"sales.csv, line 3"``.
    """

    parts: tuple[Part, ...]
    advice: tuple[Part, ...]
    column: int | None = None
    row: int | None = None
    where: str | None = None
    count: int | None = None

    def __init__(self, *text: Text, advice: Text = (), **fields: Any) -> None:
        self.parts, self.advice = parts_of(text), parts_of(advice)
        # Not super(): OSError would take several parts for a number and a file name.
        BaseException.__init__(self, *self.parts)  # type: ignore[arg-type]
        for name, value in fields.items():
            setattr(self, name, value)
        self._fields = fields

    def __str__(self) -> str:
        return self.render()

    def render(
        self, style: Callable[[Part], str] = str, *, with_advice: bool = True
    ) -> str:
        """Write the message; ``style`` writes the parts that are not text."""
        parts = self.all_parts if with_advice else self.advised().all_parts
        return "".join(p if isinstance(p, str) else style(p) for p in parts)

    @property
    def all_parts(self) -> tuple[Part, ...]:
        """Place, text and advice, to be put into another message."""
        where = (f"{self.where}: ",) if self.where else ()
        advice = (" ", *self.advice) if self.advice else ()
        return (*where, *self.parts, *advice)

    def at(self, where: str) -> Self:
        """Return the same message about another place."""
        fields = {**self._fields, "where": where}
        return type(self)(self.parts, advice=self.advice, **fields)

    def within(self, where: str) -> Self:
        """Return the same message with the place within a larger one."""
        return self.at(f"{where}, {self.where}" if self.where else where)

    def advised(self, *advice: Text) -> Self:
        """Return the same message with other advice."""
        return type(self)(self.parts, advice=advice, **self._fields)

    def __reduce__(self) -> tuple[Any, ...]:
        make = partial(type(self), self.parts, advice=self.advice, **self._fields)
        return make, ()


class A1gmError(_Message, Exception):
    """Base of every error that this package raises on purpose."""


class DataError(A1gmError, ValueError):
    """The table cannot be fitted; ``column`` is the position of the cause, if any."""


class NegativeValuesError(DataError):
    """A cell is below zero and ``negatives="raise"``."""


class InfiniteValuesError(DataError):
    """A cell is +inf or -inf."""


class NotNumericError(DataError, TypeError):
    """The table holds something that is not a real number."""

    columns: tuple[Any, ...] = ()


class LabelError(DataError, IndexError, KeyError):
    """A row or column does not exist, or names are repeated or of mixed types."""


class UndeterminedError(DataError):
    """Cells that the data do not determine, with ``on_undetermined="raise"``."""


class NotRepresentableError(DataError):
    """A sum, a factor or a fill, or its square, is outside the range of float64."""


class TotalsError(DataError):
    """No table has these totals; the fields prove it.

    The ``rows`` need ``needs``, the sum of their totals, and the only columns that they
    can use are ``cols``, whose totals sum to ``has``, which is less; or the other way
    round where ``side`` is "column". Both are positions. Known cells are subtracted
    from the totals; where those of one row or column exceed its total, ``needs`` is
    their sum and ``has`` the total.
    """

    rows: tuple[int, ...] = ()
    cols: tuple[int, ...] = ()
    needs: float = 0.0
    has: float = 0.0
    side: str = "row"


class WeightsError(A1gmError, ValueError):
    """Weights have another shape than the table, or are negative or NaN."""


class ParameterError(A1gmError, ValueError):
    """An option is outside its allowed values."""


class TableTooLargeError(A1gmError, MemoryError):
    """The statistics of the table do not fit in the memory allowed."""


class FileFormatError(A1gmError, ValueError):
    """A file cannot be read as a table or a model; ``is_empty`` if it has no rows."""

    is_empty: bool = False


class MissingFileError(FileFormatError, FileNotFoundError):
    """A file to be read does not exist."""


class OutputError(A1gmError, OSError):
    """A file cannot be written, or must not be overwritten."""


class ClusterError(A1gmError, RuntimeError):
    """The cluster lost the workers needed to finish."""


class EngineError(A1gmError, RuntimeError):
    """A database or another engine refused a query, or lost it."""


class MissingExtraError(A1gmError, ImportError):
    """An optional package is needed and not installed."""


class A1gmWarning(_Message, UserWarning):
    """Base of every warning of this package."""


class UndeterminedWarning(A1gmWarning):
    """The data do not determine the values of some cells."""


class EmptyLineWarning(A1gmWarning):
    """A row or a column has no observed cell; its factor is NaN."""


class ConvergenceWarning(A1gmWarning):
    """The certificate or the cell error of a fit is too large."""


class DataHintWarning(A1gmWarning):
    """Something about the table may not be what the user expects.

    Columns that were taken for labels (``is_inferred``), a total row, a column
    that numbers the rows, numbers written as text, a table that the column means fit
    better.
    """

    is_inferred: bool = False


class SkippedWarning(A1gmWarning):
    """Files or tables were left out."""


class SlowKernelWarning(A1gmWarning):
    """The compiled kernel is not available; the NumPy version is used."""
