"""The content of a report about a fit of several modes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np

from a1gm import plot
from a1gm._base.types import Floats, Ints
from a1gm._base.words import counted, shown
from a1gm._observe.patterns import weighted_counts
from a1gm._rows.labels import are_ordered, plain_text
from a1gm.exceptions import A1gmError, ParameterError
from a1gm.plot.pictures import cells_on, margin
from a1gm.report.figures import drawn
from a1gm.report.findings import WHY
from a1gm.report.tables import MOST_LINES, number, table
from a1gm.tensor.assess import assess_margins
from a1gm.tensor.result import TensorFit, margins_in_words, mode_in_words
from a1gm.tensor.sure import TensorUncertainty

MOST_MISFITS, MOST_BARS = 50, 15
ROUNDING = 1e-9  # of a cell: a smaller difference is not a residual
_WHY = WHY | {"undetermined": "the observed cells leave its scale free"}


class Margins:
    """A fit of several modes, and what follows from it."""

    def __init__(self, X: Any, fit: TensorFit) -> None:
        self.fit = fit
        if X is not None:
            cells, own = fit._read(X), fit._cells
            is_same = (~np.isnan(cells)).sum() == len(own.values)
            if not is_same or not np.array_equal(cells[own.index], own.values):
                raise ParameterError(
                    "This is not the table that was fitted. Pass None: the fit has "
                    "kept its cells."
                )
        self.missing = fit._flat()
        self.index = np.unravel_index(self.missing, fit.shape)
        self.fills: Floats = fit._each(self.missing, fit._fitted)
        self.is_filled = ~np.isnan(self.fills)
        self._every = range(len(fit.shape))

    @cached_property
    def names(self) -> list[list[str]]:
        """Names of the levels of each mode."""
        return [
            [shown(plain_text(name)) or "(no name)" for name in finder.names]
            for finder in self.fit._finders
        ]

    def keys(self, modes: Sequence[int], index: Sequence[Ints]) -> dict[str, Any]:
        """Levels of some modes by their names, as columns of a table."""
        return {
            shown(self.fit.modes[k]): [self.names[k][at] for at in own.tolist()]
            for k, own in zip(modes, index, strict=True)
        }

    @property
    def notes(self) -> list[str]:
        """Notes about separate scales, and cells that only lack an exposure."""
        notes = []
        if self.fit.n_free > 0:
            notes.append(
                "Parts of the table have separate scales: compare factors within a "
                "part only."
            )
        if n := int((~self.is_filled).sum()) - self.fit.n_undetermined:
            cells = counted(n, "missing cell has", "missing cells have")
            notes.append(f"{cells} no known exposure: not filled.")
        return notes

    # -------------------------------------------------------------------- how sure
    @cached_property
    def _uncertainty(self) -> tuple[TensorUncertainty | None, str]:
        try:
            sure = self.fit.uncertainty()
            sure.totals()
        except A1gmError as error:
            return None, error.render(with_advice=False)
        return sure, ""

    @property
    def sure(self) -> TensorUncertainty | None:
        """The uncertainty of the fit, if it has one."""
        return self._uncertainty[0]

    @property
    def why_not_sure(self) -> str:
        """The reason why the fit has no uncertainty."""
        return self._uncertainty[1]

    def totals(self, mode: int | None = None) -> tuple[Floats, Floats]:
        """Totals of the filled cells, of all or by a mode, and errors or NaN."""
        if self.sure is not None:
            found = self.sure.totals(() if mode is None else self.fit.modes[mode])
            return found.value, found.se
        n = 1 if mode is None else self.fit.shape[mode]
        owner = np.zeros_like(self.missing) if mode is None else self.index[mode]
        filled = self.is_filled
        value = weighted_counts(owner[filled], self.fills[filled], n)
        return value, np.full(n, np.nan)

    def assessed(self) -> dict[str, str]:
        """Whether the margins fill better than means, and how that was tested."""
        texts = dict.fromkeys(("mark", "verdict", "comparison", "why_not_tested"), "")
        fit = self.fit
        try:
            found = assess_margins(fit._cells, list(fit.margins), 0.1, 5, 0)
        except A1gmError as error:
            return texts | {"why_not_tested": error.render(with_advice=False)}
        name = margins_in_words(fit.margins)
        own, means = found.scores[name], f"the means of {mode_in_words(found.means_of)}"
        if not own.n_known:
            why_not = "No hidden cell can be known from the others."
            return texts | {"why_not_tested": why_not}
        is_better = own.skill > 0.0
        texts["mark"] = "good" if is_better else "bad"
        texts["verdict"] = (
            f"{name} is {'' if is_better else 'not '}better than {means}."
        )
        if is_better and found.best != name:
            texts["mark"] = "unclear"
            texts["verdict"] = f"{name} fills less well than {found.best}."
        texts["comparison"] = (
            f"On {own.n_known:,} of {counted(found.n_hidden, 'hidden cell')}, those "
            f"that it knows, its mean absolute error is {own.mean_absolute_error:.3g}, "
            f"a skill of {own.skill:.2f} over these means."
        )
        for other, score in found.scores.items():
            if other != name:
                texts["comparison"] += f" That of {other}: {score.skill:.2f}."
        return texts

    # -------------------------------------------------------------------- sections
    def counts(self) -> dict[str, str]:
        """The table in a few numbers; an empty text where one is 0."""
        fit, n_missing, n_filled = (
            self.fit,
            len(self.missing),
            int(self.is_filled.sum()),
        )
        (total,), (error,) = self.totals()
        n_unknown = fit.n_undetermined
        share = f"{100 * n_missing / math.prod(fit.shape):.3g} %"
        is_weighted = fit._cells.weights is not None
        return {
            "size": " × ".join(f"{n:,}" for n in fit.shape),
            "dimensions": " × ".join(map(shown, fit.modes)),
            "n_missing": f"{n_missing:,}",
            "share": share if n_missing else "",
            "filled": counted(n_filled, "filled cell") if n_filled else "",
            "total": number(total),
            "error": "" if math.isnan(error) else number(error),
            "n_unknown": f"{n_unknown:,}",
            "unknown_cells": "cell" if n_unknown == 1 else "cells",
            "sure": "" if self.sure is None else "yes",
            "why_not_sure": self.why_not_sure,
            "exposure": "yes" if fit._cells.exposed else "",
            "weights": "yes" if is_weighted and not fit._cells.exposed else "",
            "margins": "yes",
            "overlap": "yes" if sum(map(len, fit.margins)) > len(fit.modes) else "",
            **dict.fromkeys(("below", "blocks", "uncompared", "odd", "cut"), ""),
        }

    def totals_by_mode(self) -> list[tuple[str, str, str]]:
        """Figure, caption and table of the filled totals by each mode."""
        parts = []
        for k, mode in enumerate(self.fit.modes):
            at = self.index[k][self.is_filled]
            n_filled = np.bincount(at, minlength=self.fit.shape[k])
            if (n_filled > 0).sum() < 2:
                continue
            (value, error), name = self.totals(k), shown(mode)
            order, caption = np.flatnonzero(n_filled), f"By {name}"
            if not are_ordered([self.names[k][at] for at in order.tolist()]):
                order = order[np.argsort(-value[order], kind="stable")]
                caption += ", largest first"
            columns = self.keys([k], [order]) | {
                "filled total": value[order],
                "± s.e.": error[order],
                "cells filled": n_filled[order].astype(np.float64),
            }
            n_left = np.bincount(self.index[k], minlength=len(n_filled)) - n_filled
            if n_left[order].any():
                columns["cells unknown"] = n_left[order].astype(np.float64)
            listing = table(f"Filled totals by {name}", columns, len(order))
            figure = self._totals_figure(k, order)
            parts.append((figure, caption, listing))
        return parts

    def _totals_figure(self, mode: int, order: Ints) -> str:
        """Draw the totals by a mode with their errors; empty without them."""
        if self.sure is None:
            return ""
        found, name = (
            self.sure.totals(self.fit.modes[mode]),
            shown(self.fit.modes[mode]),
        )
        names = [self.names[mode][k] for k in order.tolist()]
        value, se = found.value[order], found.se[order]
        found = replace(found, labels=names, value=value, se=se)
        return drawn(
            lambda axes: plot.totals(found, most=MOST_BARS, ax=axes),
            f"Filled totals by {name}, with standard errors.",
            name=f"totals-{mode}",
            height=1.1 + 0.26 * min(MOST_BARS, len(order)),
        )

    def factors(self) -> list[tuple[str, str, str]]:
        """Figure, caption and table of the factor of each margin."""
        parts = []
        for k, own in enumerate(self.fit.margins):
            modes = self.fit._groups[k]
            factor = list(self.fit.factors.values())[k]
            name = " × ".join(map(shown, own))
            labels = self.fit._finders[modes[0]].labels
            is_ordered = len(own) == 1 and labels is not None and are_ordered(labels)
            order = np.flatnonzero(~np.isnan(factor))
            if not is_ordered:
                order = order[np.argsort(-factor.ravel()[order], kind="stable")]
            index = np.unravel_index(order[:MOST_LINES], factor.shape)
            columns = {**self.keys(modes, index), "factor": factor[index]}
            is_bars = len(own) != 2 and not is_ordered
            figure = self._factor_figure(k, len(order) if is_bars else 0)
            parts.append((figure, name, table(name, columns, len(order))))
        return parts

    def _factor_figure(self, k: int, n_bars: int) -> str:
        return drawn(
            lambda axes: margin(self.fit, k, most=MOST_BARS, ax=axes),
            f"The factor of {' × '.join(map(shown, self.fit.margins[k]))}.",
            name=f"margin-{k}",
            height=1.1 + 0.26 * min(MOST_BARS, n_bars) if n_bars else 3.6,
        )

    def misfits(self) -> str:
        """List the cells that fit worst; empty if all are fitted exactly."""
        cells = self.fit._observed
        dispersion = 1.0 if self.sure is None else self.sure.dispersion
        scaled = cells.residuals("pearson") / math.sqrt(dispersion or 1.0)
        is_rounding = np.abs(cells.x - cells.fitted) <= ROUNDING * np.abs(cells.x)
        scaled[is_rounding] = 0.0
        worst = np.argsort(-np.abs(scaled), kind="stable")[:MOST_MISFITS]
        worst = worst[scaled[worst] != 0.0]
        columns = self.keys(self._every, [at[worst] for at in self.fit._cells.index])
        columns |= {"observed": cells.x[worst], "fitted": cells.fitted[worst]}
        columns |= {"residual": scaled[worst]}
        if not len(worst):
            return ""
        return table("Worst-fitting cells", columns, len(cells.x))

    def fit_figure(self) -> str:
        """Draw the observed cells against their fitted values."""
        cells = self.fit._observed
        return drawn(
            lambda axes: cells_on(axes, cells.x, cells.fitted),
            "Observed cells against their fitted values; the line marks equality.",
            name="fit",
        )

    def unknown(self) -> str:
        """List the cells that cannot be known, and the reasons; empty without any."""
        cells = self.fit.undetermined[:MOST_LINES]
        n = self.fit.n_undetermined
        if not n:
            return ""
        why = [f"{kind}: {_WHY[kind]}" for kind in cells.kind.tolist()]
        columns = {**self.keys(self._every, cells.positions), "why": why}
        return table(f"{counted(n, 'cell')} without a value", columns, n)

    def facts(self) -> dict[str, str]:
        """How the fit was computed, and what is proved."""
        found = {**self.fit.summary(), "divergence": number(self.fit.divergence)}
        if self.sure is not None:
            dof = counted(self.sure.dof, "degree of freedom", "degrees of freedom")
            found["dispersion"] = f"{number(self.sure.dispersion)}, {dof}"
        return found
