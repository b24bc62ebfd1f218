"""The kernel in NumPy: what the compiled one computes, written to be read.

Every function has a twin of the same name and signature in the compiled module.
"""

from a1gm._kernel.reference.flow import Flow
from a1gm._kernel.reference.many import SmallFits, solve_many
from a1gm._kernel.reference.observe import expand_rows, observe, observe_weighted
from a1gm._kernel.reference.place import (
    divergence,
    fill_rows,
    pearson,
    row_factors,
    square_sums,
)
from a1gm._kernel.reference.reduce import reduce_mask, reduce_pairs, reduce_table
from a1gm._kernel.reference.reduced import Reduced
from a1gm._kernel.reference.solve import (
    mask_product,
    solve_nested,
    solve_plain,
    solve_weighted,
    solve_wide,
    weighted_product,
)
from a1gm._kernel.reference.streams import read_stream, write_stream
from a1gm._kernel.reference.sums import add_patterns

__all__ = [
    "Flow",
    "Reduced",
    "SmallFits",
    "add_patterns",
    "divergence",
    "expand_rows",
    "fill_rows",
    "mask_product",
    "observe",
    "observe_weighted",
    "pearson",
    "read_stream",
    "reduce_mask",
    "reduce_pairs",
    "reduce_table",
    "row_factors",
    "solve_many",
    "solve_nested",
    "solve_plain",
    "solve_weighted",
    "solve_wide",
    "square_sums",
    "weighted_product",
    "write_stream",
]
