"""Options that ``fit_file`` and ``impute_file`` share, declared and described once."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from typing import Any, TypedDict, TypeVar

from a1gm._api.options import DEFAULT_MAX_ITER, DEFAULT_TOL, check_options
from a1gm._base.types import Negatives, OnUndetermined
from a1gm._base.words import listed
from a1gm._rows.files.options import TableOptions
from a1gm._rows.files.table import Progress

_Function = TypeVar("_Function", bound=Callable[..., object])


class FileOptions(TypedDict, total=False):
    """What both functions take: see :class:`TableOptions` and :class:`FitOptions`."""

    columns: Sequence[str] | None
    exclude: Sequence[str] | None
    id: Sequence[str] | None
    missing: Sequence[str] | None
    delimiter: str | None
    decimal: str | None
    thousands: str | None
    encoding: str
    sheet: str | None
    skip_bad: bool
    batch_rows: int | None
    negatives: Negatives
    tol: float
    max_iter: int
    n_threads: int | None
    progress: Progress | None


@dataclass(frozen=True, kw_only=True)
class FitOptions:
    """How a table is fitted.

    Parameters
    ----------
    negatives : {"raise", "allow"}, default="raise"
        What to do with cells below zero: refuse them, or fit the margins only.
    tol, max_iter, n_threads
        As in ``a1gm.fit``.
    progress : callable, optional
        Called with the rows done so far and the fraction of the files read.
    """

    negatives: Negatives = "raise"
    tol: float = DEFAULT_TOL
    max_iter: int = DEFAULT_MAX_ITER
    n_threads: int | None = None
    progress: Progress | None = None

    def check(self, on_undetermined: OnUndetermined = "warn") -> None:
        """Raise for options outside their allowed values."""
        check_options(
            tol=self.tol,
            max_iter=self.max_iter,
            n_threads=self.n_threads,
            negatives=self.negatives,
            on_undetermined=on_undetermined,
        )


def split_options(
    options: FileOptions, on_undetermined: OnUndetermined
) -> tuple[TableOptions, FitOptions]:
    """Validate the options; split them into reading and fitting options.

    Raises
    ------
    TypeError
        There is no such option.
    """
    for name in options:
        if name not in FileOptions.__annotations__:
            known = listed(list(FileOptions.__annotations__), most=99)
            raise TypeError(f"There is no option {name!r}. There are: {known}.")
    given: dict[str, Any] = dict(options)
    fitting = {f.name: given.pop(f.name) for f in fields(FitOptions) if f.name in given}
    fit = FitOptions(**fitting)
    fit.check(on_undetermined)
    return TableOptions(**given), fit


def takes_file_options(function: _Function) -> _Function:
    """Write the shared options into the signature and the docstring of a function."""
    signature = inspect.signature(function)
    own = list(signature.parameters.values())[:-1]
    shared = [
        inspect.Parameter(
            field.name,
            inspect.Parameter.KEYWORD_ONLY,
            default=field.default,
            annotation=FileOptions.__annotations__[field.name],
        )
        for kind in (TableOptions, FitOptions)
        for field in fields(kind)
    ]
    parameters = [*own, *shared]
    function.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
    text = inspect.getdoc(function)
    if text is not None:  # python -OO has none
        described = [_parameters_of(kind) for kind in (TableOptions, FitOptions)]
        function.__doc__ = text.replace("{shared options}", "\n".join(described))
    return function


def _parameters_of(kind: type) -> str:
    """The section on parameters of a docstring, without the indent of the source."""
    return (inspect.getdoc(kind) or "").partition("----------\n")[2].rstrip()
