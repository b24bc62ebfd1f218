"""``a1gm.load``: read a fit of any kind."""

from __future__ import annotations

import os
from typing import Any

from a1gm._base.types import AnyArray
from a1gm._fit.fit import RankOneFit
from a1gm._fit.many import ManyFits
from a1gm._fit.save import KIND, KIND_OF_MANY, Readers, fit_from_arrays, read_model
from a1gm.engines.lazy import LAZY_FRAMES
from a1gm.tensor.result import KIND_OF_TENSOR, TensorFit


def load(path: str | os.PathLike[str]) -> Any:
    """Read a fit that ``fit.save(path)`` wrote, or many by ``many.save(path)``.

    Parameters
    ----------
    path : path-like
        The file. Nothing in it is executed, and everything is checked before it is
        used.

    Returns
    -------
    RankOneFit, ManyFits or TensorFit
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
    readers: Readers = {
        KIND: _fit_of,
        KIND_OF_MANY: ManyFits._from_arrays,
        KIND_OF_TENSOR: TensorFit._from_arrays,
    }
    return read_model(path, readers)


def _fit_of(content: dict[str, Any], arrays: dict[str, AnyArray]) -> RankOneFit:
    solved, rows, table, options = fit_from_arrays(content, arrays)
    table.engine = LAZY_FRAMES
    return RankOneFit(solved, rows, table, **options)
