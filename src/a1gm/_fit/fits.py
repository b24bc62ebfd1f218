"""The fits of many tables by place, made when they are looked at."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from a1gm._base.types import AnyArray
from a1gm._fit.fit import RankOneFit
from a1gm._solve.many import SmallTables
from a1gm.exceptions import A1gmError


class Fits:
    """The fits of many tables, or their errors, by place.

    Most small tables are solved all at once, in ``small``; ``make`` gives the fit of
    one of them. ``others`` were fitted one by one.

    Attributes
    ----------
    errors : dict
        Places of the tables that could not be fitted, each with its error.
    others : dict
        Fits of the tables that may have something to warn of, by place.
    """

    def __init__(
        self,
        n_tables: int,
        others: Mapping[int, RankOneFit | A1gmError],
        small: SmallTables | None = None,
        make: Callable[[int], RankOneFit] | None = None,
    ) -> None:
        self._n_tables, self._small, self._make = n_tables, small, make
        self.errors = {k: e for k, e in others.items() if isinstance(e, A1gmError)}
        self.others = {k: f for k, f in others.items() if isinstance(f, RankOneFit)}
        self._made = dict(self.others)

    def __len__(self) -> int:
        return self._n_tables

    def __getitem__(self, k: int) -> RankOneFit:
        fit = self._made.get(k)
        if fit is None:
            assert self._make is not None
            fit = self._made.setdefault(k, self._make(k))
        return fit

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the fits themselves: what solved them lies in the kernel's memory."""
        fits = {k: self[k] for k in range(self._n_tables) if k not in self.errors}
        return Fits, (self._n_tables, {**self.errors, **fits})

    def lines(self, k: int, side: str) -> tuple[AnyArray, AnyArray]:
        """Factor and block of each row ("row") or column ("col") of a table."""
        if self._small is not None and self._small.settled[k]:
            factor = self._small.factors(k)[side == "col"]
            return factor, np.zeros(len(factor), np.int32)
        fit = self[k]
        return getattr(fit, f"{side}_factor"), getattr(fit, f"{side}_block")
