"""Any answer of the package as arrays, lists, numbers and text that can be compared."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np


def plain(answer: Any) -> Any:
    """``answer`` without classes of any library; types of containers become text."""
    if answer is None or isinstance(answer, (str, bool, int, float)):
        return answer
    if isinstance(answer, np.generic):
        return answer.item()
    if isinstance(answer, np.ma.MaskedArray):
        return ["masked", plain(answer.filled(np.nan))]
    if isinstance(answer, np.ndarray):
        return (
            answer if answer.dtype.kind in "fiub" else [plain(v) for v in answer.flat]
        )
    if isinstance(answer, Mapping):
        return {str(key): plain(value) for key, value in answer.items()}
    if type(answer).__module__.split(".")[0] in ("pandas", "polars", "pyarrow"):
        return _frame(answer)
    if hasattr(answer, "toarray"):
        return ["sparse", np.asarray(answer.toarray())]
    if is_dataclass(answer) and not isinstance(answer, type):
        return {f.name: plain(getattr(answer, f.name)) for f in fields(answer)}
    if isinstance(answer, (list, tuple)):
        return [plain(value) for value in answer]
    return str(answer)


def _frame(frame: Any) -> Any:
    module = type(frame).__module__.split(".")[0]
    name = type(frame).__name__
    if module == "pandas":
        if name not in ("DataFrame", "Series"):
            return [str(value) for value in frame]
        index = [str(label) for label in frame.index]
        if name == "Series":
            return [name, index, _column(frame.to_numpy())]
        types = [str(dtype) for dtype in frame.dtypes]
        cells = [_column(frame.iloc[:, j].to_numpy()) for j in range(frame.shape[1])]
        return [name, [str(c) for c in frame.columns], types, index, cells]
    if module == "polars":
        if name == "LazyFrame":
            return ["LazyFrame", _frame(frame.collect())]
        if name == "Series":
            return [name, _column(np.array(frame.to_list(), dtype=object))]
        types = [str(dtype) for dtype in frame.dtypes]
        cells = [_column(np.array(c.to_list(), dtype=object)) for c in frame]
        return [name, frame.columns, types, cells]
    if name == "Table":
        types = [str(field.type) for field in frame.schema]
        cells = [_column(np.array(c.to_pylist(), dtype=object)) for c in frame.columns]
        return [name, frame.column_names, types, cells]
    return str(frame)


def _column(cells: np.ndarray) -> Any:
    """Cells as float64 where all are numbers or missing, text otherwise."""
    try:
        return np.array([np.nan if v is None else float(v) for v in cells])
    except (TypeError, ValueError):
        return [str(v) for v in cells]


def differences(old: Any, new: Any, place: str = "") -> list[str]:
    """Where two plain answers differ: numbers by more than 1e-9 of the larger one."""
    if isinstance(old, Mapping) and isinstance(new, Mapping):
        places = []
        for key in sorted(set(old) | set(new)):
            inner = f"{place}.{key}" if place else key
            if key not in old or key not in new:
                places.append(f"{inner} only {'new' if key in new else 'old'}")
            else:
                places += differences(old[key], new[key], inner)
        return places
    if isinstance(old, np.ndarray) or isinstance(new, np.ndarray):
        return [] if _same_numbers(old, new) else [place]
    if isinstance(old, list) and isinstance(new, list):
        if len(old) != len(new):
            return [f"{place} length"]
        unequal: list[str] = []
        for first, second in zip(old, new, strict=True):
            unequal += differences(first, second, place)
        return unequal[:1]
    if isinstance(old, float) and isinstance(new, float):
        return [] if _same_numbers(np.array(old), np.array(new)) else [place]
    return [] if type(old) is type(new) and old == new else [place]


def _same_numbers(old: Any, new: Any) -> bool:
    old = np.asarray(old)
    new = np.asarray(new)
    if old.shape != new.shape or "O" in (old.dtype.kind, new.dtype.kind):
        return False
    if old.dtype.kind in "iub" and new.dtype.kind in "iub":
        return bool(np.array_equal(old, new))
    old = old.astype(float)
    new = new.astype(float)
    size = np.max(np.abs(old), initial=0.0, where=np.isfinite(old))
    return bool(
        np.allclose(old, new, rtol=1e-9, atol=max(1e-12 * size, 1e-11), equal_nan=True)
    )
