"""Theorem 1: the best rank-1 factorisation of three tables that share factors."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from a1gm._base.types import Floats
from a1gm._base.words import counted
from a1gm.exceptions import DataError
from a1gm.paper._checks import as_complete_table, check_not_negative


def rank1_nmmf(
    X: npt.ArrayLike,
    Y: npt.ArrayLike | None = None,
    Z: npt.ArrayLike | None = None,
    alpha: float = 1.0,
    beta: float = 1.0,
) -> tuple[Floats, Floats, Floats, Floats]:
    r"""Factorise ``X ≈ w⊗h``, ``Y ≈ a⊗h`` and ``Z ≈ w⊗b`` together, at best.

    Parameters
    ----------
    X : array_like of shape (I, J)
        Non-negative, complete.
    Y : array_like of shape (N, J), optional
        Shares the columns of ``X``. ``None`` and ``N = 0`` mean that there is none.
    Z : array_like of shape (I, M), optional
        Shares the rows of ``X``. ``None`` and ``M = 0`` mean that there is none.
    alpha, beta : float, default 1.0
        Weights of the errors of ``Y`` and of ``Z``, not negative. A weight of 0
        keeps that table from moving the shared factors; its own factor is still
        the best one.

    Returns
    -------
    w : ndarray of shape (I,)
    h : ndarray of shape (J,)
    a : ndarray of shape (N,)
    b : ndarray of shape (M,)
        The global minimum of ``D(X, w⊗h) + alpha D(Y, a⊗h) + beta D(Z, w⊗b)``.
        ``w`` and ``h`` have the same sum, unless ``X`` is zero in every cell (see
        Notes).

    Raises
    ------
    DataError
        If a table has a missing, negative or infinite cell, or if ``X`` is zero in
        every cell while both ``alpha * Y`` and ``beta * Z`` are not: no minimum
        exists then. Use `a1gm.fit_nmmf` for tables with missing cells.
    DataError
        If ``Y`` has other columns, or ``Z`` other rows, than ``X``.
    ParameterError
        If a weight is negative or not finite.

    Notes
    -----
    Theorem 1 of Ghalamkari & Sugiyama (2022), with ``S`` the sum of all cells::

        w_i = sqrt(S(X)) / (S(X) + beta S(Z)) (sum_j X_ij + beta sum_m Z_im)
        h_j = sqrt(S(X)) / (S(X) + alpha S(Y)) (sum_i X_ij + alpha sum_n Y_nj)
        a_n = sum_j Y_nj / sqrt(S(X))
        b_m = sum_i Z_im / sqrt(S(X))

    The formula needs ``S(X) > 0``. When ``X`` is zero in every cell it costs
    ``sum(w) sum(h)``, and a minimum exists if and only if ``alpha S(Y) = 0`` or
    ``beta S(Z) = 0``:

    - With ``alpha S(Y) > 0`` alone, ``w = 0`` and ``a``, ``h`` are the best
      factors of ``Y``; ``h`` sums to 1. With ``beta S(Z) > 0`` alone, likewise
      ``h = 0``, and ``w`` sums to 1.
    - With neither, the cost is 0. All factors are 0, but for a table of weight 0 (the
      first, if there are two): the factor it shares is uniform with sum 1, and its own
      is the best for that.
    - With both, the cost comes as close as one likes to the sum of the two least
      costs, by making ``w``, ``h`` smaller and ``a``, ``b`` larger, and never there:
      ``w = 0`` or ``h = 0`` would make the cost of ``Z`` or ``Y`` infinite.

    A table whose shared factor is 0 and whose weight is 0 has no best factor of its
    own; it gets 0.

    Examples
    --------
    >>> import numpy as np
    >>> from a1gm import paper
    >>> X = np.array([[1.0, 2.0], [3.0, 3.0]])
    >>> w, h, a, b = paper.rank1_nmmf(X, Y=[[2.0, 1.0]], Z=[[4.0], [5.0]])
    >>> np.outer(w, h)
    array([[1.75, 1.75],
           [2.75, 2.75]])
    >>> np.outer(a, h), np.outer(w, b)
    (array([[1.5, 1.5]]), array([[3.5],
           [5.5]]))
    """
    x, y, z = as_triple(X, Y, Z)
    check_not_negative(alpha, "alpha")
    check_not_negative(beta, "beta")
    return theorem1(x, y, z, alpha, beta)


def theorem1(
    x: Floats, y: Floats, z: Floats, alpha: float = 1.0, beta: float = 1.0
) -> tuple[Floats, Floats, Floats, Floats]:
    """Compute the formula of `rank1_nmmf` on checked tables."""
    if not x.any():
        factors = factors_of_zero_x(y, z, alpha, beta)
        if factors is None:
            raise DataError(
                "X is zero in every cell, while Y and Z are not and have positive "
                "weights: no minimum exists, for w and h fit Y and Z ever better the "
                "smaller they are, but neither may be 0. Factorise Y and Z each alone "
                "with rank1_nmf, or use a1gm.fit_nmmf."
            )
        return factors
    return theorem1_from_sums(
        float(x.sum()),
        x.sum(axis=1) + beta * z.sum(axis=1),
        x.sum(axis=0) + alpha * y.sum(axis=0),
        y.sum(axis=1),
        z.sum(axis=0),
    )


def theorem1_from_sums(
    sum_x: float, xz_rows: Floats, xy_columns: Floats, y_rows: Floats, z_columns: Floats
) -> tuple[Floats, Floats, Floats, Floats]:
    """Compute the formula of `rank1_nmmf` from the sums that enter it."""
    root = np.sqrt(sum_x)
    w = root / xz_rows.sum() * xz_rows
    h = root / xy_columns.sum() * xy_columns
    return w, h, y_rows / root, z_columns / root


def as_triple(
    X: npt.ArrayLike, Y: npt.ArrayLike | None, Z: npt.ArrayLike | None
) -> tuple[Floats, Floats, Floats]:
    """Check the three tables and replace an absent one by an empty one."""
    x = as_complete_table(X)
    n_rows, n_columns = x.shape
    Y = np.empty((0, n_columns)) if Y is None else Y
    Z = np.empty((n_rows, 0)) if Z is None else Z
    y = as_complete_table(Y, "Y", may_be_empty=True)
    z = as_complete_table(Z, "Z", may_be_empty=True)
    if y.shape[1] != n_columns:
        raise DataError(
            f"Y has {counted(y.shape[1], 'column')} and X has {n_columns}; Y shares "
            "the columns of X."
        )
    if z.shape[0] != n_rows:
        raise DataError(
            f"Z has {counted(z.shape[0], 'row')} and X has {n_rows}; Z shares the rows "
            "of X."
        )
    return x, y, z


def factors_of_zero_x(
    y: Floats, z: Floats, alpha: float = 1.0, beta: float = 1.0
) -> tuple[Floats, Floats, Floats, Floats] | None:
    """Minimise the cost when ``X`` is zero; None when no minimum exists.

    The notes of `rank1_nmmf` say why. The cost of ``X``, sum(w) sum(h), must be 0.
    """
    steers_y, steers_z = alpha > 0 and bool(y.any()), beta > 0 and bool(z.any())
    if steers_y and steers_z:
        return None
    if steers_z or (z.any() and not y.any()):
        b, w, a, h = _factors_beside_zero(z.T, y.T, steers=steers_z)
    else:
        a, h, b, w = _factors_beside_zero(y, z, steers=steers_y)
    return w, h, a, b


def _factors_beside_zero(
    table: Floats, other: Floats, *, steers: bool
) -> tuple[Floats, Floats, Floats, Floats]:
    """Factors of a table that has its shared factor for itself, and 0 for the other.

    Both are given as ``Y``: the shared factor is that of the columns.
    """
    zeros = np.zeros(other.shape[1]), np.zeros(other.shape[0])
    n_rows, n_shared = table.shape
    if not table.any():
        return np.zeros(n_rows), np.zeros(n_shared), *zeros
    shared = (
        table.sum(axis=0) / table.sum() if steers else np.full(n_shared, 1 / n_shared)
    )
    return table.sum(axis=1), shared, *zeros
