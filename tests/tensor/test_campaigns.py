"""A sample of ``python -m attack.tensor``, which tries thousands of tables."""

from __future__ import annotations

import pytest

pytest.importorskip("flint")
pytest.importorskip("statsmodels")
from attack.tensor import KINDS, large

N_TABLES = {
    "optimum": 22,
    "errors": 11,
    "fates": 10,
    "routes": 22,
    "arrays": 16,
    "bridges": 18,
    "links": 12,
    "large": 10,
}


@pytest.mark.oracle
@pytest.mark.parametrize(
    ("kind", "seed"),
    [(kind, 1000 + seed) for kind, n in N_TABLES.items() for seed in range(n)],
)
@pytest.mark.filterwarnings("ignore::UserWarning", "ignore::RuntimeWarning")
def test_tables_of_several_modes(kind, seed):
    KINDS[kind](seed)


@pytest.mark.nightly
def test_links_of_a_millionth_are_rarely_flagged():
    figures = [large(seed) for seed in range(60)]
    n_links = sum(own.get("tables with links of 1e-6", 0.0) for own in figures)
    n_flagged = sum(own.get("of these flagged", 0.0) for own in figures)
    assert n_links > 20
    assert n_flagged <= 0.05 * n_links
