"""A fit as arrays and plain values, to be written to a file and read back."""

from __future__ import annotations

import math
import os
from dataclasses import fields
from typing import Any

import numpy as np

from a1gm._solve.components import Components
from a1gm._solve.column_graph import ColumnGraph
from a1gm._solve.expand import Factors
from a1gm._result.fates import FATES
from a1gm._observe.statistics import (
    PairStatistics,
    Statistics,
    TableStatistics,
    WideStatistics,
)
from a1gm._result.stream import ColumnStream, Totals
from a1gm._result.streamed import StreamedFit
from a1gm._base.types import AnyArray
from a1gm.exceptions import ModelFileError, ParameterError
from a1gm._result.model_file import read_model, write_model
from a1gm._result.fit import RankOneFit

__all__ = ["load", "save_fit"]

KIND = "RankOneFit"
COLUMNS_ONLY = "columns only"
STATISTICS: dict[str, type[Any]] = {
    "table": TableStatistics,
    "wide": WideStatistics,
    "pairs": PairStatistics,
}


def load(path: str | os.PathLike[str]) -> RankOneFit:
    """Read a fit that ``fit.save(path)`` wrote.

    Parameters
    ----------
    path : path-like
        The file. Nothing in it is executed, and sizes are checked before memory is
        taken.

    Returns
    -------
    RankOneFit
        The same factors, certificate and knowledge of what can be known; the data
        themselves are not in the file.

    Raises
    ------
    ModelFileError
        The file is damaged, hostile, of something else, or of a newer release.
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
    kind, content, arrays = read_model(path)
    if kind != KIND:
        msg = f"{path} is refused: it holds a {kind!r}, and only {KIND!r} is known."
        raise ModelFileError(msg)
    try:
        fit = _fit_of(content, arrays)
    except (KeyError, TypeError, ValueError) as error:
        msg = (
            f"{path} is refused: its parts do not make a fit ({error!r}). Save the "
            "model again with its save()."
        )
        raise ModelFileError(msg) from error
    _check_shapes(fit, path)
    return fit


def save_fit(fit: RankOneFit, path: str | os.PathLike[str], *, overwrite: bool) -> None:
    """Write a fit to a file, whole or not at all."""
    # A streamed fit is saved without its rows, which may be more than memory holds.
    has_rows = fit._has_rows and type(fit) is RankOneFit
    _check_can_be_saved(fit)
    content: dict[str, Any] = {
        "tol": fit.tol,
        "exponent": fit._exponent,
        "has_negatives": fit._has_negatives,
        "on_undetermined": fit._on_undetermined,
        "has_rows": has_rows,
        "absent": fit._absent,
        "backend": fit._backend,
        "divergence": _number(fit.divergence) if has_rows else None,
        "row_labels": _plain_labels(fit.row_labels) if has_rows else None,
        "col_labels": _plain_labels(fit.col_labels),
    }
    arrays: dict[str, AnyArray] = {"row_factor": np.zeros(0)}
    if has_rows:
        arrays["row_factor"] = fit._row_factor
    if has_rows and fit._line_of_row is not None:
        arrays["line_of_row"] = fit._line_of_row
    for part, value in _parts_of(fit, content).items():
        content[part] = _take_apart(part, value, arrays)
    write_model(path, KIND, content, arrays, overwrite=overwrite)


def _parts_of(fit: RankOneFit, content: dict[str, Any]) -> dict[str, Any]:
    """Say which dataclasses make the fit, and note their kind in the content."""
    parts: dict[str, Any] = {"factors": fit._factors}
    if isinstance(fit, StreamedFit) and not isinstance(
        fit._statistics, TableStatistics
    ):
        # As many patterns as rows: of the mask only what the columns know is kept.
        content["statistics_kind"] = COLUMNS_ONLY
        content["n_rows"] = fit.n_rows
        fates = fit._knowledge.counts
        totals = Totals(fit.n_empty_rows, fit._given_up.n, fates)
        return parts | {"graph": fit._stream.graph, "totals": totals}
    names = {kind: name for name, kind in STATISTICS.items()}
    content["statistics_kind"] = names[type(fit._statistics)]
    parts["statistics"] = fit._statistics
    if fit._components is not None:
        parts["components"] = fit._components
    return parts


def _check_can_be_saved(fit: RankOneFit) -> None:
    kind = type(fit).__name__
    if kind not in ("RankOneFit", "StreamedFit"):
        msg = (
            f"This {kind} cannot be saved to a file on its own: it needs the tables "
            "it was made from. Keep its col_factor, or use pickle."
        )
        raise ParameterError(msg)


def _take_apart(part: str, value: Any, arrays: dict[str, AnyArray]) -> dict[str, Any]:
    """Put the arrays of a dataclass with the others, and return the rest."""
    rest: dict[str, Any] = {}
    for field in fields(value):
        found = getattr(value, field.name)
        if isinstance(found, np.ndarray):
            arrays[f"{part}.{field.name}"] = found
        else:
            rest[field.name] = found.item() if isinstance(found, np.generic) else found
    return rest


def _put_together(
    part: str, kind: type[Any], content: dict[str, Any], arrays: dict[str, AnyArray]
) -> Any:
    values = dict(content[part])
    for field in fields(kind):
        name = f"{part}.{field.name}"
        if name in arrays:
            values[field.name] = arrays[name]
    return kind(**values)


def _fit_of(content: dict[str, Any], arrays: dict[str, AnyArray]) -> RankOneFit:
    factors: Factors = _put_together("factors", Factors, content, arrays)
    common = {
        "row_factor": arrays["row_factor"],
        "col_factor": factors.col_factor,
        "factors": factors,
        "source": None,
        "exponent": int(content["exponent"]),
        "has_negatives": bool(content["has_negatives"]),
        "tol": float(content["tol"]),
        "row_labels": content["row_labels"],
        "col_labels": content["col_labels"],
        "on_undetermined": content["on_undetermined"],
        "has_rows": bool(content["has_rows"]),
    }
    if content["statistics_kind"] == COLUMNS_ONLY:
        return _columns_fit(content, arrays, common)
    kind = STATISTICS[content["statistics_kind"]]
    statistics: Statistics = _put_together("statistics", kind, content, arrays)
    components = None
    if "components" in content:
        components = _put_together("components", Components, content, arrays)
    fit = RankOneFit(
        statistics=statistics,
        line_of_row=arrays.get("line_of_row"),
        components=components,
        **common,
    )
    fit._absent, fit._backend = content["absent"], content["backend"]
    if content["divergence"] is not None:
        fit.__dict__["divergence"] = float(content["divergence"])
    return fit


def _columns_fit(
    content: dict[str, Any], arrays: dict[str, AnyArray], common: dict[str, Any]
) -> StreamedFit:
    """Put together the fit of a table whose rows were left behind."""
    graph = _put_together("graph", ColumnGraph, content, arrays)
    totals = _put_together("totals", Totals, content, arrays)
    stream = ColumnStream(int(content["n_rows"]), graph, totals)
    rest = {"statistics": None, "line_of_row": None, "components": None}
    return StreamedFit(stream=stream, **(common | rest | {"has_rows": False}))


def _check_shapes(fit: RankOneFit, path: str | os.PathLike[str]) -> None:
    """Refuse parts that do not fit together: they would be read out of bounds."""
    if isinstance(fit, StreamedFit):
        _check_columns_fit(fit, path)
        return
    n_lines, n_cols = fit._statistics.n_lines, fit._statistics.n_cols
    factors = fit._factors
    sizes = [
        (len(factors.line_factor), n_lines),
        (len(factors.line_block), n_lines),
        (len(factors.col_factor), n_cols),
        (len(factors.col_block), n_cols),
    ]
    if fit._components is not None:
        sizes += [(len(fit._components.line), n_lines)]
        sizes += [(len(fit._components.col), n_cols)]
    if fit._has_rows:
        rows = n_lines if fit._line_of_row is None else len(fit._line_of_row)
        sizes += [(len(fit._row_factor), rows)]
    ranges = [(fit._line_of_row, n_lines)]
    if isinstance(fit._statistics, PairStatistics):
        ranges += [(fit._statistics.cols, n_cols)]
    in_range = all(
        index is None or not len(index) or (index.min() >= 0 and index.max() < n)
        for index, n in ranges
    )
    if not in_range or any(found != expected for found, expected in sizes):
        raise _misfit(path)


def _check_columns_fit(fit: StreamedFit, path: str | os.PathLike[str]) -> None:
    graph, n_cols = fit._stream.graph, len(fit.col_factor)
    assert fit._stream.totals is not None
    shapes = [
        (graph.label.shape, (n_cols,)),
        (fit._factors.col_block.shape, (n_cols,)),
        (graph.reach.shape, (graph.n, graph.n)),
        (fit._stream.totals.fates.shape, (len(FATES),)),
    ]
    kinds = [(graph.label, "i"), (graph.reach, "b"), (fit._stream.totals.fates, "i")]
    if any(found != expected for found, expected in shapes) or any(
        array.dtype.kind != kind for array, kind in kinds
    ):
        raise _misfit(path)
    if n_cols and not (graph.label.min() >= -1 and graph.label.max() < graph.n):
        raise _misfit(path)


def _misfit(path: str | os.PathLike[str]) -> ModelFileError:
    return ModelFileError(f"{path} is refused: its arrays do not fit together.")


def _number(value: float) -> float | None:
    return None if math.isnan(value) else value


def _plain_labels(labels: Any) -> list[Any] | None:
    """Labels as JSON keeps them: numbers and texts; anything else by its text."""
    if labels is None:
        return None
    plain = (x.item() if isinstance(x, np.generic) else x for x in labels)
    return [x if isinstance(x, str | int | float) else str(x) for x in plain]
