r"""Information geometry of three tables that share factors.

The cells of ``X`` (I × J), ``Y`` (N × J, below ``X``) and ``Z`` (I × M, right of
``X``) lie in one block table ``[[X, Z], [Y, ·]]`` whose bottom right corner does not
belong to it. Ω is the set of its cells, ordered by ``(s, t) ≤ (k, l)`` when ``s ≤ k``
and ``t ≤ l``. Divided by their sum the cells are a distribution p on Ω, with two
coordinate systems:

- natural, θ: ``p(k, l) = exp(Σ_{(s,t) ≤ (k,l)} θ_st)``,
- expectation, η: ``η_kl = Σ_{(k,l) ≤ (s,t)} p(s, t)``, both sums within Ω.

The coordinates in the first row and the first column are the *one-body* ones, the
others the *two-body* ones. Every function here writes coordinates as a table of
the shape of the block table, with NaN in the corner, and counts from 0, so η_11 of
the paper is ``eta[0, 0]``.

What holds, for positive tables:

1. ``X = w⊗h``, ``Y = a⊗h``, ``Z = w⊗b`` for some factors if and only if every
   two-body θ is 0 (`has_rank_one_theta`).
2. Without a corner, that is with ``Y`` or ``Z`` empty, this is the same as
   ``η_ij = η_i1 η_1j`` for all i, j (``η_11`` is 1).
3. With a corner that product is not the condition: for a rank-1 triple

   ``η_i1 η_1j − η_ij = S(Y) S(Z) / S(X) · Σ_{s<i, t<j} X_st`` for (i, j) in X

   (sums of the normalised tables), which is positive for i, j ≥ 2. The condition on
   η holds after the part on the far side of the corner is taken off:
   ``[X; Y]`` has rank 1, that is with ``e_ij = η_ij − η_i,J+1`` for j ≤ J and every i,
   ``e_ij e_11 = e_i1 e_1j``; and ``[X Z]`` has rank 1, that is with
   ``f_ij = η_ij − η_I+1,j`` for i ≤ I and every j, ``f_ij f_11 = f_i1 f_1j``.
   Together they are equivalent to rank 1 (`has_rank_one_eta`). η outside Ω is 0.
4. The m-projection onto the rank-1 triples, which minimises the Kullback-Leibler
   divergence, keeps every one-body η (`project`). It is Theorem 1.

With weights α and β, use ``alpha * Y`` and ``beta * Z`` here: the weighted cost of
(X, Y, Z) is the plain cost of these.
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from a1gm._base.types import Floats
from a1gm.exceptions import DataError
from a1gm.paper._checks import as_floats, check_not_negative
from a1gm.paper.nmmf import as_triple, theorem1

__all__ = [
    "expectation",
    "from_expectation",
    "from_natural",
    "has_rank_one_eta",
    "has_rank_one_theta",
    "natural",
    "one_body",
    "project",
    "two_body",
]

Triple: TypeAlias = tuple[Floats, Floats, Floats]
COORDINATES = "The table of coordinates"


def natural(
    X: npt.ArrayLike, Y: npt.ArrayLike | None = None, Z: npt.ArrayLike | None = None
) -> Floats:
    """Compute the natural parameters θ of a triple.

    Parameters
    ----------
    X, Y, Z : array_like of shape (I, J), (N, J), (I, M)
        Positive tables; ``Y`` and ``Z`` may be absent. Only their proportions count.

    Returns
    -------
    ndarray of shape (I + N, J + M)
        θ, with NaN in the corner. ``theta[0, 0]`` normalises the distribution.

    Raises
    ------
    DataError
        If a cell is not positive: its logarithm would not be finite.

    Examples
    --------
    >>> import numpy as np
    >>> from a1gm.paper import geometry
    >>> theta = geometry.natural([[1.0, 2.0], [3.0, 6.0]], Y=[[1.0, 2.0]])
    >>> np.exp(theta).round(4)
    array([[0.0667, 2.    ],
           [3.    , 1.    ],
           [0.3333, 1.    ]])
    """
    x, y, z = _normalised(X, Y, Z)
    if min(table.min(initial=np.inf) for table in (x, y, z)) <= 0:
        raise DataError(
            "X, Y or Z has a zero cell, and natural parameters are logarithms. Use "
            "positive tables, or the expectation parameters, which allow zeros."
        )
    logs = np.log(_join(x, y, z, corner=1.0))
    theta = np.diff(np.diff(logs, axis=0, prepend=0), axis=1, prepend=0)
    return _blank_corner(theta, x.shape)


def from_natural(theta: npt.ArrayLike, shape: tuple[int, int]) -> Triple:
    """Compute the distribution with given natural parameters.

    Parameters
    ----------
    theta : array_like of shape (I + N, J + M)
        Natural parameters; the corner is not read.
    shape : tuple (I, J)
        Shape of ``X``.

    Returns
    -------
    X, Y, Z : ndarray of shape (I, J), (N, J), (I, M)
        They sum to 1 if ``theta[0, 0]`` normalises them, as `natural` returns it.

    Examples
    --------
    >>> from a1gm.paper import geometry
    >>> theta = geometry.natural([[0.1, 0.2]], Z=[[0.7]])
    >>> X, Y, Z = geometry.from_natural(theta, (1, 2))
    >>> X.round(12), Z.round(12)
    (array([[0.1, 0.2]]), array([[0.7]]))
    """
    values = _zero_corner(theta, shape)
    return _split(np.exp(values.cumsum(axis=0).cumsum(axis=1)), shape)


def expectation(
    X: npt.ArrayLike, Y: npt.ArrayLike | None = None, Z: npt.ArrayLike | None = None
) -> Floats:
    """Compute the expectation parameters η of a triple.

    Parameters
    ----------
    X, Y, Z : array_like of shape (I, J), (N, J), (I, M)
        Non-negative tables, not all zero; ``Y`` and ``Z`` may be absent.

    Returns
    -------
    ndarray of shape (I + N, J + M)
        η, with NaN in the corner. ``eta[0, 0]`` is 1.

    Examples
    --------
    >>> from a1gm.paper import geometry
    >>> geometry.expectation([[1.0, 2.0], [3.0, 4.0]])
    array([[1. , 0.6],
           [0.7, 0.4]])
    """
    x, y, z = _normalised(X, Y, Z)
    block = _join(x, y, z, corner=0.0)
    # sums of what lies below and to the right: cumulative from the far end
    eta = block[::-1, ::-1].cumsum(axis=0).cumsum(axis=1)[::-1, ::-1]
    return _blank_corner(eta, x.shape)


def from_expectation(eta: npt.ArrayLike, shape: tuple[int, int]) -> Triple:
    """Compute the distribution with given expectation parameters.

    Parameters
    ----------
    eta : array_like of shape (I + N, J + M)
        Expectation parameters; the corner is not read.
    shape : tuple (I, J)
        Shape of ``X``.

    Returns
    -------
    X, Y, Z : ndarray of shape (I, J), (N, J), (I, M)
        The distribution. Parameters that belong to none give negative cells.

    Examples
    --------
    >>> from a1gm.paper import geometry
    >>> X, Y, Z = geometry.from_expectation([[1.0, 0.6], [0.7, 0.4]], (2, 2))
    >>> X.round(12)
    array([[0.1, 0.2],
           [0.3, 0.4]])
    """
    values = _zero_corner(eta, shape)
    block = -np.diff(values, axis=0, append=0)
    return _split(-np.diff(block, axis=1, append=0), shape)


def one_body(coordinates: npt.ArrayLike) -> tuple[Floats, Floats]:
    """Take the one-body part of θ or η: the first column and the first row.

    Parameters
    ----------
    coordinates : array_like of shape (I + N, J + M)
        As `natural` or `expectation` returns them.

    Returns
    -------
    column : ndarray of shape (I + N,)
    row : ndarray of shape (J + M,)
        They share their first value, which belongs to neither.

    Examples
    --------
    >>> from a1gm.paper import geometry
    >>> geometry.one_body([[1.0, 0.6], [0.7, 0.4]])
    (array([1. , 0.7]), array([1. , 0.6]))
    """
    table = as_floats(coordinates, COORDINATES)
    return table[:, 0].copy(), table[0, :].copy()


def two_body(coordinates: npt.ArrayLike) -> Floats:
    """Take the two-body part of θ or η: all but the first row and column.

    Parameters
    ----------
    coordinates : array_like of shape (I + N, J + M)
        As `natural` or `expectation` returns them, with NaN in the corner.

    Returns
    -------
    ndarray of one dimension
        Row by row, without the corner.

    Examples
    --------
    >>> from a1gm.paper import geometry
    >>> geometry.two_body([[1.0, 0.6], [0.7, 0.4]])
    array([0.4])
    """
    inner = as_floats(coordinates, COORDINATES)[1:, 1:]
    return np.asarray(inner[~np.isnan(inner)])


def has_rank_one_theta(theta: npt.ArrayLike, tol: float = 1e-9) -> bool:
    """Tell from θ whether the triple has rank 1: every two-body θ is 0.

    Parameters
    ----------
    theta : array_like of shape (I + N, J + M)
        Natural parameters.
    tol : float, default 1e-9
        Largest absolute value taken for 0.

    Returns
    -------
    bool

    Examples
    --------
    >>> from a1gm.paper import geometry
    >>> geometry.has_rank_one_theta(geometry.natural([[1.0, 2.0], [3.0, 6.0]]))
    True
    >>> geometry.has_rank_one_theta(geometry.natural([[1.0, 2.0], [3.0, 7.0]]))
    False
    """
    check_not_negative(tol, "tol")
    return bool((np.abs(two_body(theta)) <= tol).all())


def has_rank_one_eta(
    eta: npt.ArrayLike, shape: tuple[int, int], tol: float = 1e-9
) -> bool:
    """Tell from η whether the triple has rank 1.

    Parameters
    ----------
    eta : array_like of shape (I + N, J + M)
        Expectation parameters.
    shape : tuple (I, J)
        Shape of ``X``.
    tol : float, default 1e-9
        Largest difference between a cell and the one that its row and column would
        have at rank 1, as a share of the latter.

    Returns
    -------
    bool
        Statement 3 of this module; without a corner it is ``η_ij = η_i1 η_1j``.

    Notes
    -----
    The differences of ``e_ij e_11 − e_i1 e_1j`` from one cell to the next are
    ``p_ij S − r_i c_j``, with ``r``, ``c`` and ``S`` the sums of the rows, the columns
    and all cells of ``[X; Y]``, and so for ``[X Z]``. These are compared cell by cell,
    for η itself would hide a small cell among large ones. A cell that is small beside
    the rounding of η, which sums to 1, is not judged.

    Examples
    --------
    >>> from a1gm.paper import geometry
    >>> triple = [[1.0, 2.0], [3.0, 6.0]], [[1.0, 2.0]], [[1.0], [3.0]]
    >>> geometry.has_rank_one_eta(geometry.expectation(*triple), (2, 2))
    True
    """
    check_not_negative(tol, "tol")
    x, y, z = from_expectation(eta, shape)
    return all(
        _is_product(cells, float(tol))
        for cells in (np.vstack((x, y)), np.hstack((x, z)))
    )


def _is_product(cells: Floats, tol: float) -> bool:
    """Tell whether each cell is its row's sum times its column's over that of all."""
    total = cells.sum()
    product = np.outer(cells.sum(axis=1), cells.sum(axis=0))
    # Each cell is a difference of sums, and has their rounding.
    rounding = 4 * sum(cells.shape) * np.finfo(np.float64).eps * total
    return bool((np.abs(cells * total - product) <= tol * product + rounding).all())


def project(
    X: npt.ArrayLike, Y: npt.ArrayLike | None = None, Z: npt.ArrayLike | None = None
) -> Triple:
    """Project a triple to the nearest one of rank 1: the m-projection.

    Parameters
    ----------
    X, Y, Z : array_like of shape (I, J), (N, J), (I, M)
        Non-negative tables; ``Y`` and ``Z`` may be absent. When ``X`` is zero in
        every cell, so must ``Y`` or ``Z`` be: else there is no nearest one.

    Returns
    -------
    X, Y, Z : ndarray
        ``w⊗h``, ``a⊗h``, ``w⊗b`` of Theorem 1, in the units given. Their one-body η
        are those of the input: rows and columns keep their sums.

    Examples
    --------
    >>> from a1gm.paper import geometry
    >>> X, Y, Z = geometry.project([[1.0, 2.0], [3.0, 4.0]])
    >>> X
    array([[1.2, 1.8],
           [2.8, 4.2]])
    """
    w, h, a, b = theorem1(*as_triple(X, Y, Z))
    return np.outer(w, h), np.outer(a, h), np.outer(w, b)


def _normalised(
    X: npt.ArrayLike, Y: npt.ArrayLike | None, Z: npt.ArrayLike | None
) -> Triple:
    """Divide a triple by the sum of all its cells."""
    x, y, z = as_triple(X, Y, Z)
    total = x.sum() + y.sum() + z.sum()
    if total == 0:
        raise DataError(
            "X, Y and Z are zero in every cell, so they are no distribution. At least "
            "one cell must be positive."
        )
    return x / total, y / total, z / total


def _join(x: Floats, y: Floats, z: Floats, corner: float) -> Floats:
    """Write a triple as one block table with a constant corner."""
    return np.block([[x, z], [y, np.full((len(y), z.shape[1]), corner)]])


def _split(block: Floats, shape: tuple[int, int]) -> Triple:
    """Undo `_join`."""
    n, m = shape
    return block[:n, :m], block[n:, :m], block[:n, m:]


def _blank_corner(block: Floats, shape: tuple[int, ...]) -> Floats:
    """Put NaN where no coordinate exists."""
    block[shape[0] :, shape[1] :] = np.nan
    return block


def _zero_corner(coordinates: npt.ArrayLike, shape: tuple[int, int]) -> Floats:
    """Check a table of coordinates and make its corner 0."""
    block = as_floats(coordinates, COORDINATES).copy()
    limits = np.reshape(shape, -1).tolist()  # None and numbers too
    fits = len(limits) == 2 and all(
        isinstance(n, int) and 1 <= n <= limit
        for n, limit in zip(limits, block.shape, strict=True)
    )
    if not fits:
        raise DataError(
            f"The coordinates have shape {block.shape} and X has shape {shape!r}; pass "
            "the (rows, columns) of X, two integers >= 1: X must fit into the top left "
            "of the table of coordinates."
        )
    block[shape[0] :, shape[1] :] = 0.0
    return block
