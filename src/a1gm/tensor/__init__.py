"""Tables of more than two modes, with factors of modes and of sets of modes."""

from a1gm.tensor.fit import fit_tensor
from a1gm.tensor.result import TensorFit

__all__ = ["TensorFit", "fit_tensor"]
