"""Which keys act together: sets of margins, judged on the same hidden cells."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np

from a1gm._api.fit import FitOptions
from a1gm._base.types import Floats
from a1gm._base.words import counted
from a1gm._fit.frames import labelled_frame
from a1gm._fit.messages import html_grid, text_grid
from a1gm._fit.residuals import divergence_of_cells
from a1gm._fit.sure.arguments import generator_of, is_share
from a1gm._observe.patterns import weighted_counts
from a1gm.exceptions import DataError, ParameterError
from a1gm.tensor.fit import fit_cells
from a1gm.tensor.problem import Margin
from a1gm.tensor.read import Cells, margins_of

MOST_SETS = 64  # of margins that "all" means: pairs of four modes


class MarginScore(NamedTuple):
    """How well a set of margins fills hidden cells."""

    skill: float  #: 1 - its mean absolute error / that of the means, above 0 is better.
    mean_absolute_error: float  #: Of the hidden cells that it knows.
    deviance: float  #: Mean deviance of these cells.
    n_known: int  #: How many of the hidden cells it knows.


@dataclass(frozen=True, repr=False)
class TensorAssessment:
    """Sets of margins against the means of levels, on the same hidden cells.

    Attributes
    ----------
    scores : dict
        ``MarginScore`` by the set of margins, the best first.
    n_hidden : int
        Hidden cells, in all repeats.
    means_of : name
        The mode whose levels' means are compared with: the best of all modes.
    """

    scores: dict[str, MarginScore]
    n_hidden: int
    means_of: Any

    @property
    def best(self) -> str:
        """The set of margins with the largest skill."""
        return next(iter(self.scores))

    @property
    def verdict(self) -> str:
        """One sentence."""
        score = self.scores[self.best]
        cells = counted(self.n_hidden, "hidden cell")
        if not score.skill > 0.0:
            return (
                f"No set of margins is better than the means of {self.means_of!r} on "
                f"{cells}."
            )
        return (
            f"{self.best} is best: on {cells}, of which it knows {score.n_known:,}, "
            f"its mean absolute error is {score.mean_absolute_error:.3g}, "
            f"{score.skill:.0%} below that of the means of {self.means_of!r}."
        )

    def to_frame(self, backend: str = "pandas") -> Any:
        """The scores as a frame of pandas, polars or pyarrow."""
        columns = {
            name: np.array([getattr(score, name) for score in self.scores.values()])
            for name in MarginScore._fields
        }
        return labelled_frame("margins", list(self.scores), columns, backend)

    def _grid(self) -> list[list[str]]:
        head = ["margins", "skill", "mean absolute error", "deviance", "known"]
        return [head] + [
            [name, f"{s[0]:.3f}", f"{s[1]:.4g}", f"{s[2]:.4g}", f"{s[3]:,}"]
            for name, s in self.scores.items()
        ]

    def __repr__(self) -> str:
        return f"{self.verdict}\n{text_grid(self._grid())}"

    def _repr_html_(self) -> str:
        return f"<p>{escape(self.verdict)}</p>{html_grid(self._grid())}"


def assess_margins(
    cells: Cells, interactions: Any, hide: Any, repeats: int, random_state: Any
) -> TensorAssessment:
    """Judge sets of margins; ``interactions`` as in ``a1gm.assess``."""
    if not is_share(hide):
        raise ParameterError(
            "hide must be a share between 0 and 1 for more than two keys, got "
            f"{hide!r}."
        )
    sets = _sets_of(interactions, cells.modes)
    random = generator_of(random_state)
    n = len(cells.values)
    n_hidden = round(float(hide) * n)
    if not 1 <= n_hidden < n:
        raise DataError(
            f"{counted(n, 'observed cell')} are too few to hide a share of {hide}."
        )
    found: dict[tuple[Margin, ...], list[Floats]] = {groups: [] for groups in sets}
    means: list[list[Floats]] = [[] for _ in cells.modes]
    truth, weights = [], []
    options = FitOptions("raise", "ignore")
    for _ in range(repeats):
        hidden = np.zeros(n, bool)
        hidden[random.choice(n, n_hidden, replace=False)] = True
        seen, out = cells.only(~hidden), cells.only(hidden)
        truth.append(out.values)
        weights.append(np.ones(n_hidden) if out.exposed else out.weights_or_ones)
        for mode, of_mode in enumerate(means):
            of_mode.append(_means(seen, out, mode))
        for groups, guesses in found.items():
            names = [tuple(cells.modes[k] for k in group) for group in groups]
            fit = fit_cells(seen, names, options, is_quiet=True)
            exposure = out.weights if out.exposed else None
            guesses.append(fit._fitted(out.index, exposure))
    x, v = np.concatenate(truth), np.concatenate(weights)
    rivals = [np.concatenate(own) for own in means]
    off = [float(np.average(np.abs(x - rival), weights=v)) for rival in rivals]
    best = int(np.argmin(off))
    scores = {
        _name(groups, cells.modes): _score(x, np.concatenate(guesses), rivals[best], v)
        for groups, guesses in found.items()
    }
    skill = np.nan_to_num([score.skill for score in scores.values()], nan=-np.inf)
    order = np.argsort(-skill, kind="stable")
    ranked = dict(list(scores.items())[k] for k in order)
    return TensorAssessment(ranked, len(x), cells.modes[best])


def _sets_of(interactions: Any, modes: Sequence[Any]) -> list[tuple[Margin, ...]]:
    """Sets of margins: those of all pairs of modes, or the ones given and rank 1."""
    if isinstance(interactions, str) and interactions == "all":
        pairs = list(combinations(range(len(modes)), 2))
        if 2 ** len(pairs) > MOST_SETS:
            raise ParameterError(
                f'interactions="all" would try {2 ** len(pairs):,} sets of pairs of '
                f"{len(modes)} keys. Pass a list of the sets to compare."
            )
        chosen: list[Any] = [
            some for k in range(len(pairs) + 1) for some in combinations(pairs, k)
        ]
        if len(modes) == 2:
            chosen = [None]
        return list(dict.fromkeys(margins_of(some, modes) for some in chosen))
    return list(
        dict.fromkeys([margins_of(None, modes), margins_of(interactions, modes)])
    )


def _name(groups: Sequence[Margin], modes: Sequence[Any]) -> str:
    return " ".join(
        "{" + ", ".join(str(modes[k]) for k in group) + "}" for group in groups
    )


def _means(seen: Cells, out: Cells, mode: int) -> Floats:
    """Mean, or rate, of the other cells of a level; that of all without any."""
    n = seen.shape[mode]
    weights = seen.weights_or_ones
    above = seen.values if seen.exposed else seen.values * weights
    sums = weighted_counts(seen.index[mode], above, n)
    counts = weighted_counts(seen.index[mode], weights, n)
    whole = above.sum() / weights.sum()
    rates = np.divide(sums, counts, out=np.full(n, whole), where=counts > 0.0)
    found: Floats = rates[out.index[mode]]
    return found * out.weights if out.exposed and out.weights is not None else found


def _score(x: Floats, guess: Floats, rival: Floats, v: Floats) -> MarginScore:
    known = ~np.isnan(guess)
    if not known.any():
        return MarginScore(np.nan, np.nan, np.nan, 0)
    x, guess, rival, v = x[known], guess[known], rival[known], v[known]
    own, other = (np.average(np.abs(x - y), weights=v) for y in (guess, rival))
    with np.errstate(divide="ignore"):
        deviance = 2.0 * np.average(divergence_of_cells(x, guess), weights=v)
    skill = 1.0 - own / other if other > 0.0 else (0.0 if own == 0.0 else -np.inf)
    return MarginScore(float(skill), float(own), float(deviance), int(known.sum()))
