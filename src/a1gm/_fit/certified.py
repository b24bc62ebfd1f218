"""How a fit was solved and how well, whatever its table."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

from a1gm._base.types import Solver
from a1gm._fit.messages import Summarised, solver_in_words
from a1gm._rows.labels import Names
from a1gm._solve.cell_error import CELLS_RIGHT


class Certified(Summarised, ABC):
    """A fit with a certificate; base of the fits."""

    tol: float
    _found: Any  # what the solver returned: its name, iterations and gap
    _sums_in_words = "row and column sums"  # what is fitted, in words

    def _column_names(self) -> Names:
        """Names of the columns of a table that has columns."""
        raise NotImplementedError

    @property
    def solver(self) -> Solver:
        """How it was solved: "closed form", "scaling" or "newton"."""
        found: Solver = self._found.solver
        return found

    @property
    def n_iter(self) -> int:
        """Iterations used; 0 for the closed form."""
        return int(self._found.n_iter)

    @property
    def certificate(self) -> float:
        """Largest relative mismatch between the margins of the fit and of the data.

        At the optimum the fitted table has the sums of the observed cells by every
        level of every margin, so 0 proves optimality.
        """
        return float(self._found.gap)

    @property
    def cell_error(self) -> float:
        """Bound on the relative error of any finite fitted cell, rounding included."""
        return float(self._found.cell_error)

    @property
    def converged(self) -> bool:
        """Whether the certificate is within ``tol`` and the cell error within 1e-8."""
        return self.certificate <= self.tol and self.cell_error <= CELLS_RIGHT

    @property
    @abstractmethod
    def divergence(self) -> float:
        """Kullback-Leibler divergence on the observed cells."""

    @property
    def deviance(self) -> float:
        """Twice the divergence."""
        return 2.0 * self.divergence

    def _quality(self) -> dict[str, str]:
        return {
            "solver": solver_in_words(self.solver, self.n_iter),
            "certificate": f"{self.certificate:.1e}",
            "cell error": f"{self.cell_error:.1e}",
        }
