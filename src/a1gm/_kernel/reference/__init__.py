"""The kernel in NumPy: what a fit needs, written to be read.

Ways that are only fast have no NumPy version: they decline, as the compiled ones do
where a table is not for them, by returning None. Then the caller takes the general way.
"""

from typing import Any

from a1gm._kernel.reference.cells import fit_cells, multiply_cells, scale_cells
from a1gm._kernel.reference.passes import (
    add_patterns,
    bits_product,
    collect_bits,
    divergence,
    expand_rows,
    observe,
    observe_weighted,
    reach_of_bits,
    square_sums,
)
from a1gm._kernel.reference.reduce import reduce_mask, reduce_pairs, reduce_table
from a1gm._kernel.reference.reduced import Flow, Reduced


def _decline(*args: Any, **kwargs: Any) -> None:
    """Leave the table to the general way."""


fill_rows = pearson = row_factors = _decline
solve_bits = solve_nested = solve_plain = _decline
read_stream = write_stream = _decline

__all__ = [
    "Flow",
    "Reduced",
    "add_patterns",
    "bits_product",
    "collect_bits",
    "divergence",
    "expand_rows",
    "fit_cells",
    "multiply_cells",
    "observe",
    "observe_weighted",
    "reach_of_bits",
    "reduce_mask",
    "reduce_pairs",
    "reduce_table",
    "scale_cells",
    "square_sums",
]
