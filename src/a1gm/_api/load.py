"""``a1gm.load``: a fit that was saved."""

from __future__ import annotations

import os

from a1gm._fit.fit import RankOneFit
from a1gm._fit.save import read_fit


def load(path: str | os.PathLike[str]) -> RankOneFit:
    """Read a fit that ``fit.save(path)`` wrote.

    Parameters
    ----------
    path : path-like
        The file. Nothing in it is executed, and everything is checked before it is
        used.

    Returns
    -------
    RankOneFit
        The same factors, certificate and fates of cells; the data
        themselves are not in the file. Names that are neither numbers nor text, such
        as periods and times, come back as text; their original types are accepted, too.

    Raises
    ------
    FileFormatError
        The file is damaged, hostile, of something else, or of another release.
    MissingFileError
        There is no such file; it is a ``FileNotFoundError`` as well.

    Examples
    --------
    >>> import numpy as np, a1gm, tempfile, pathlib
    >>> X = np.array([[1.0, 2.0], [2.0, np.nan]])
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "model.npz"
    >>> a1gm.fit(X).save(path)
    >>> a1gm.load(path).impute(X)
    array([[1., 2.],
           [2., 4.]])
    """
    solved, rows, table, options = read_fit(path)
    return RankOneFit(solved, rows, table, **options)
