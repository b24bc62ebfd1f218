"""How good a fit is, for people and for programs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from a1gm.cli.console import counted

if TYPE_CHECKING:
    from a1gm._fit.fit import RankOneFit
    from a1gm.nmmf import NMMFFit


def quality_of(fit: RankOneFit | NMMFFit) -> dict[str, Any]:
    """How good a fit is, for the summary of any command."""
    keys = ("divergence", "certificate", "cell_error", "converged", "solver", "n_iter")
    return {key: getattr(fit, key) for key in (*keys, "n_blocks")}


def certificate_in_words(fit: RankOneFit) -> str:
    """Explain what is proved of a fit."""
    how = (
        "in closed form"
        if fit.solver == "closed form"
        else f"by {fit.solver} in {counted(int(fit.n_iter), 'step')}"
    )
    return (
        f"Solved {how}. Certificate {fit.certificate:.1e}: the row and column sums of "
        "the fit differ from those of the data by at most this share. Cell error "
        f"{fit.cell_error:.1e}: no finite cell differs from the best fit's by more."
    )
