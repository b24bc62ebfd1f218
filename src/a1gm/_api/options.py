"""Options that every fit shares, and what they may be."""

from __future__ import annotations

import math
from numbers import Integral, Real
from typing import Any

from a1gm.exceptions import ParameterError

DEFAULT_TOL = 1e-10
DEFAULT_MAX_ITER = 1000
# The usual types first: a test for an abstract one takes longer.
REAL: tuple[type, ...] = (float, int, Real)
INTEGRAL: tuple[type, ...] = (int, Integral)
NEGATIVES = ("raise", "allow")
ON_UNDETERMINED = ("warn", "raise", "ignore")


def check_options(
    *,
    tol: float,
    max_iter: int,
    n_threads: int | None,
    negatives: str,
    on_undetermined: str = "warn",
) -> dict[str, Any]:
    """Raise for options outside their allowed values; return all of them."""
    if not (_is_number(tol, REAL) and 0.0 < tol < math.inf):
        raise ParameterError(f"tol must be a positive number, got {tol!r}.")
    if not (_is_number(max_iter, INTEGRAL) and max_iter >= 1):
        raise ParameterError(
            f"max_iter must be an integer of at least 1, got {max_iter!r}."
        )
    if n_threads is not None and not (
        _is_number(n_threads, INTEGRAL) and n_threads >= 1
    ):
        raise ParameterError(
            f"n_threads must be None or an integer of at least 1, got {n_threads!r}."
        )
    if negatives not in NEGATIVES:
        raise ParameterError(
            f"negatives must be one of {NEGATIVES}, got {negatives!r}."
        )
    if on_undetermined not in ON_UNDETERMINED:
        raise ParameterError(
            f"on_undetermined must be one of {ON_UNDETERMINED}, "
            f"got {on_undetermined!r}."
        )
    return {
        "tol": tol,
        "max_iter": max_iter,
        "n_threads": n_threads,
        "negatives": negatives,
        "on_undetermined": on_undetermined,
    }


def check_rank(options: dict[str, Any]) -> None:
    """Accept ``rank=1`` and ``n_components=1``; any other rank raises and explains."""
    for name, value in options.items():
        if name not in ("rank", "n_components"):
            raise TypeError(f"fit() got an unexpected keyword argument {name!r}")
        if not (_is_number(value, INTEGRAL) and value == 1):
            raise ParameterError(
                f"{name}={value!r}: a1gm fits rank 1 only, one factor per row and one "
                "per column. The exact optimum that it certifies exists for rank 1; "
                "with more components the problem has many local optima. For those use "
                "sklearn.decomposition.NMF(solver='mu', beta_loss='kullback-leibler') "
                "on a table without holes, or a1gm.paper.kl_wnmf(X, rank=...)."
            )


def _is_number(value: Any, kinds: tuple[type, ...]) -> bool:
    return isinstance(value, kinds) and not isinstance(value, bool)
