"""The columns of a frame that are its table, and those that name its rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from a1gm._base.types import Absent
from a1gm._rows.frames import names_of, open_frame
from a1gm._rows.labels import check_there, names_in
from a1gm._rows.read import read_input
from a1gm.exceptions import LabelError, NotNumericError, Option, ParameterError, Text


@dataclass(frozen=True)
class Chosen:
    """The columns that were fitted, of frames that have others as well."""

    columns: tuple[Any, ...]
    id: tuple[Any, ...] = ()

    def left_out(self, X: Any) -> list[Any]:
        """Columns of a frame that were not fitted and name no rows."""
        own = {*self.columns, *self.id}
        return [name for name in names_of(X) or () if name not in own]

    def has_others(self, X: Any) -> bool:
        """Whether X is a frame with columns that were not fitted."""
        return not set(names_of(X) or ()) <= set(self.columns)

    def of(self, X: Any) -> Any:
        """The fitted columns of X; X itself where it has no others."""
        if not self.has_others(X):
            return X
        import narwhals as nw

        frame = open_frame(X, "X")
        own = [c for c in frame.columns if c in self.columns]
        return frame.select(nw.col(own)).to_native()

    def row_names(self, X: Any) -> Any:
        """What the columns that name rows call those of X; None if it lacks them."""
        if not self.id or not set(self.id) <= set(names_of(X) or ()):
            return None
        return choose(X, self.id)[1]

    def put_back(self, X: Any, filled: Any) -> Any:
        """X with these columns in place of its own."""
        frame, new = open_frame(X, "X"), open_frame(filled, "X")
        return frame.with_columns(*new.iter_columns()).to_native()


def choose(
    X: Any, id: Any = None, columns: Any = None, exclude: Any = None
) -> tuple[Chosen, Any]:
    """Choose the columns of a frame; also give the names of its rows, if any.

    Raises
    ------
    ParameterError
        X is no frame.
    LabelError
        A name is not that of a column, or no column is left.
    """
    frame = None if names_of(X) is None else open_frame(X, "X")
    if frame is None:
        raise ParameterError(
            "id=, columns= and exclude= name columns of a frame, and X is none. Leave "
            "them out, and pass the columns that are the table."
        )
    names = list(frame.columns)
    ids, kept, left = (names_in(given) for given in (id, columns, exclude))
    check_there("X", (*ids, *kept, *left), names, LabelError)
    chosen = [
        name
        for name in names
        if name not in ids and name not in left and (columns is None or name in kept)
    ]
    if not chosen:
        raise LabelError("No column is left to fit. Name some with columns=.")
    labels = None
    if ids:
        values = [frame.get_column(name).to_list() for name in ids]
        labels = np.empty(len(frame), object)
        labels[:] = values[0] if len(ids) == 1 else list(zip(*values, strict=True))
    return Chosen(tuple(chosen), tuple(ids)), labels


def read_advised(X: Any, absent: Absent | None = None) -> Any:
    """Read a table; of a frame with columns of text, tell the options that choose."""
    try:
        return read_input(X, absent=absent)
    except NotNumericError as error:
        raise _advised(error, X) from None


def _advised(error: NotNumericError, X: Any) -> NotNumericError:
    left = list(error.columns)
    if not left:
        return error
    advice: list[Text] = []
    if left[0] == (names_of(X) or [None])[0]:
        advice += ["Pass ", Option("id", left.pop(0)), " if it names the rows"]
    if left:
        advice += [", and " if advice else "Pass "]
        advice += [Option("exclude", left if len(left) <= 5 else None), " to leave "]
        advice += ["it out" if len(left) == 1 else "them out"]
    return error.advised(advice, ".")
