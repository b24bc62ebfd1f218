"""Which keys act together: sets of margins, judged on the same hidden cells."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np

from a1gm._api.fit import FitOptions
from a1gm._api.scores import Scored, misses, skill_of
from a1gm._base.types import Floats
from a1gm._base.words import counted
from a1gm._fit.residuals import divergence_of_cells
from a1gm._fit.sure.arguments import generator_of, is_share
from a1gm._observe.patterns import weighted_counts
from a1gm._solve.cell_error import CELLS_RIGHT
from a1gm.exceptions import DataError, Option, ParameterError
from a1gm.tensor.fit import fit_cells
from a1gm.tensor.read import Cells, margins_of
from a1gm.tensor.result import margins_in_words, mode_in_words

MOST_SETS = 64  # of margins that "all" means: pairs of four modes
MOST_LINES = 10  # that are printed
MOST_OBSERVED = 200_000  # cells of the levels that are judged


class MarginScore(NamedTuple):
    """How well a set of margins fills hidden cells."""

    skill: float  #: 1 - its mean absolute error / that of the means, above 0 is better.
    mean_absolute_error: float  #: Of the hidden cells that it knows.
    deviance: float  #: Mean deviance of these cells.
    n_known: int  #: How many of the hidden cells it knows.


@dataclass(frozen=True, repr=False)
class TensorAssessment(Scored):
    """Sets of margins against the means of levels, on the same hidden cells.

    Attributes
    ----------
    scores : dict
        ``MarginScore`` by the set of margins, the best first: as if hidden cells that a
        set does not know were filled by these means.
    n_hidden : int
        Hidden cells, in all repeats.
    means_of : name
        The mode whose levels' means are compared with: the best of all modes.
    part : str
        Which levels of the longest mode were judged; empty if all were.
    """

    _of = "margins"
    scores: dict[str, MarginScore]
    n_hidden: int
    means_of: Any
    part: str = ""

    @property
    def best(self) -> str:
        """The set of margins that fills the hidden cells best."""
        return next(iter(self.scores))

    @property
    def verdict(self) -> str:
        """One sentence."""
        score, means = self.scores[self.best], mode_in_words(self.means_of)
        cells = counted(self.n_hidden, "hidden cell")
        if not score.skill > 0.0:
            return f"No set of margins is better than the means of {means} on {cells}."
        how = "best" if len(self.scores) > 1 else f"better than the means of {means}"
        return (
            f"{self.best} is {how}: on {cells}, of which it knows {score.n_known:,}, "
            f"its mean absolute error is {score.mean_absolute_error:.3g}, "
            f"{score.skill:.0%} below that of the means of {means}."
        )

    def _grids(self) -> list[list[list[str]]]:
        grid = [["margins", "skill", "mean absolute error", "deviance", "known"]]
        for name, s in list(self.scores.items())[:MOST_LINES]:
            numbers = f"{s[0]:.3f}", f"{s[1]:.4g}", f"{s[2]:.4g}", f"{s[3]:,}"
            grid.append([name, *numbers])
        return [grid]

    @property
    def _notes(self) -> list[str]:
        more = counted(len(self.scores) - MOST_LINES, "more set", "more sets")
        is_cut = len(self.scores) > MOST_LINES
        notes = [f"{more} of margins: to_frame() has all."] if is_cut else []
        return [*notes, f"Judged: {self.part}."] if self.part else notes


def assess_margins(
    cells: Cells, interactions: Any, hide: Any, repeats: int, random_state: Any
) -> TensorAssessment:
    """Judge sets of margins; ``interactions`` as in ``a1gm.assess``."""
    if not is_share(hide):
        raise ParameterError(
            "For more than two keys ",
            Option("hide"),
            f" is a share between 0 and 1, got {hide!r}.",
        )
    cells, part = _sampled(cells)
    modes, n = cells.modes, len(cells.values)
    sets = {margins_in_words(own): own for own in _sets_of(interactions, modes)}
    random = generator_of(random_state)
    n_hidden = round(float(hide) * n)
    if not 1 <= n_hidden < n:
        raise DataError(
            f"The table has {counted(n, 'observed cell')}: too few to hide a share of "
            f"{hide}."
        )
    options, parts = FitOptions("raise", "ignore"), []
    for _ in range(repeats):
        hidden = np.zeros(n, bool)
        hidden[random.choice(n, n_hidden, replace=False)] = True
        seen, out = cells.only(~hidden), cells.only(hidden)
        fits = [fit_cells(seen, own, options, is_quiet=True) for own in sets.values()]
        v = np.ones(n_hidden) if out.exposed else out.weights_or_ones
        fills = [fit._fitted(out.index) for fit in fits]
        parts.append(np.stack([out.values, v, *_means(seen, out), *fills]))
    x, v, *guesses = np.concatenate(parts, axis=1)
    rivals, guesses = guesses[: len(modes)], guesses[len(modes) :]
    best = int(np.argmin([v @ misses(x, rival, CELLS_RIGHT) for rival in rivals]))
    rival = rivals[best]
    gains = [_score(x, np.where(np.isnan(y), rival, y), rival, v) for y in guesses]
    order = sorted(range(len(sets)), key=lambda k: -gains[k].skill)
    names, scores = list(sets), [_score(x, guess, rival, v) for guess in guesses]
    by_name = {names[k]: scores[k] for k in order}
    return TensorAssessment(by_name, len(x), modes[best], part)


def _sampled(cells: Cells) -> tuple[Cells, str]:
    """Some levels of the longest mode of a large table, always the same ones."""
    n, longest = cells.n_observed, int(np.argmax(cells.shape))
    n_levels = cells.shape[longest]
    n_judged = max(2, MOST_OBSERVED * n_levels // max(n, 1))
    if n <= MOST_OBSERVED or n_judged >= n_levels:
        return cells, ""
    levels = np.random.default_rng(0).choice(n_levels, n_judged, replace=False)
    is_judged = np.zeros(n_levels, bool)
    is_judged[levels] = True
    judged = cells.only(is_judged[cells.index[longest]])
    of_mode = mode_in_words(cells.modes[longest])
    part = f"{n_judged:,} of {n_levels:,} levels of {of_mode}, drawn at random"
    return judged, part


def _sets_of(interactions: Any, modes: Sequence[Any]) -> list[list[tuple[Any, ...]]]:
    """Sets of margins: those of all pairs of modes, or the ones given and rank 1."""
    chosen = [None, interactions]
    if isinstance(interactions, str) and interactions == "all":
        pairs = list(combinations(modes, 2)) if len(modes) > 2 else []
        if 2 ** len(pairs) > MOST_SETS:
            are_text = all(isinstance(mode, str) for mode in modes)
            pair = ":".join(pairs[0]) if are_text else pairs[0]
            raise ParameterError(
                Option("interactions", "all"),
                f" would try {2 ** len(pairs):,} sets of pairs of {len(modes)} keys. "
                "Pass one set, such as ",
                Option("interactions", [pair]),
                ", which is compared with rank 1.",
            )
        sizes = range(len(pairs) + 1)
        chosen = [some for k in sizes for some in combinations(pairs, k)]
    found = dict.fromkeys(margins_of(some, modes) for some in chosen)
    return [[tuple(modes[k] for k in group) for group in groups] for groups in found]


def _means(seen: Cells, out: Cells) -> Iterator[Floats]:
    """Yield means, or rates, of the seen cells of a level, mode by mode, as guesses.

    Those of all where nothing of a level is seen.
    """
    weights = seen.weights_or_ones
    above = seen.values if seen.exposed else seen.values * weights
    for here, there, n in zip(seen.index, out.index, seen.shape, strict=True):
        sums, counts = (weighted_counts(here, each, n) for each in (above, weights))
        rates = np.full(n, above.sum() / weights.sum())
        np.divide(sums, counts, out=rates, where=counts > 0.0)
        yield rates[there] * (out.weights_or_ones if out.exposed else 1.0)


def _score(x: Floats, guess: Floats, rival: Floats, v: Floats) -> MarginScore:
    known = ~np.isnan(guess)
    if not known.any():
        return MarginScore(np.nan, np.nan, np.nan, 0)
    x, guess, rival, v = x[known], guess[known], rival[known], v[known] / v.max()
    own, other = (misses(x, made, CELLS_RIGHT) for made in (guess, rival))
    with np.errstate(divide="ignore"):
        deviance = 2.0 * np.average(divergence_of_cells(x, guess), weights=v)
    error, n = float(np.average(own, weights=v)), int(known.sum())
    return MarginScore(skill_of(own, other, v), error, float(deviance), n)
