"""Tables of more than two modes, with factors of modes and of sets of modes."""

from a1gm.tensor.assess import TensorAssessment
from a1gm.tensor.fit import fit_tensor
from a1gm.tensor.result import TensorFit
from a1gm.tensor.sure import TensorUncertainty

__all__ = ["TensorAssessment", "TensorFit", "TensorUncertainty", "fit_tensor"]
