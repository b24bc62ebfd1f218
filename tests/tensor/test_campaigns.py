"""A sample of ``python -m attack.tensor``, which tries thousands of tables."""

from __future__ import annotations

import pytest

pytest.importorskip("flint")
pytest.importorskip("statsmodels")
from attack.tensor import KINDS

N_TABLES = {
    "optimum": 22,
    "errors": 11,
    "fates": 10,
    "routes": 22,
    "arrays": 16,
    "bridges": 18,
    "links": 12,
}


@pytest.mark.oracle
@pytest.mark.parametrize(
    ("kind", "seed"),
    [(kind, 1000 + seed) for kind, n in N_TABLES.items() for seed in range(n)],
)
@pytest.mark.filterwarnings("ignore::UserWarning", "ignore::RuntimeWarning")
def test_tables_of_several_modes(kind, seed):
    KINDS[kind](seed)
