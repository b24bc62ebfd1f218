"""Array aliases used across the package."""

from __future__ import annotations

from typing import Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

Floats: TypeAlias = npt.NDArray[np.float64]
Ints: TypeAlias = npt.NDArray[np.int64]
SmallInts: TypeAlias = npt.NDArray[np.int32]
Bools: TypeAlias = npt.NDArray[np.bool_]
Words: TypeAlias = npt.NDArray[np.uint64]
AnyArray: TypeAlias = npt.NDArray[Any]

Negatives: TypeAlias = Literal["raise", "allow"]
Absent: TypeAlias = Literal["missing", "zero"]
OnUndetermined: TypeAlias = Literal["warn", "raise", "ignore"]
Solver: TypeAlias = Literal["closed form", "scaling", "newton"]
Fate: TypeAlias = Literal["finite", "zero", "unbounded", "undetermined"]
