"""The patterns of a table, counted by the engine that has it.

Wide lines have the sum of every column for each pattern. Where patterns are many, or
columns more than an engine returns, narrow lines have the sum of the row only.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np

from a1gm._base.bits import pack_bits
from a1gm._base.types import AnyArray, Bools, Floats, Negatives
from a1gm._base.words import counted
from a1gm._observe.accumulate import bytes_needed
from a1gm._observe.patterns import Patterns
from a1gm._observe.sparse import LIFT, TINY
from a1gm._rows.columns import Choice
from a1gm.engines.place import LazyTable
from a1gm.engines.query import (
    BITS,
    Frame,
    cells_of,
    collect,
    faults,
    margins,
    narrow_lines,
    observed_keys,
    wide_lines,
)
from a1gm.exceptions import (
    DataError,
    EngineError,
    InfiniteValuesError,
    NegativeValuesError,
    Option,
    TableTooLargeError,
)

WIDE_BYTES = 1 << 28  # of the sums of all patterns
WIDE_COLUMNS = 700  # SQLite returns 2,000 columns, PostgreSQL 1,664
FEW_COLUMNS = 16  # have at most 65,536 patterns
PROBED_ROWS = 1 << 14  # first rows that show whether patterns are many
MANY_PATTERNS = 1 << 12  # among these
MOST_LINES = 1 << 24
DOWN = 64  # power of two by which cells are divided where sums overflow
COLUMNS_AT_ONCE = 400
SAME = 1e-9  # relative: sums of one table in two queries


def observe_table(
    table: LazyTable, negatives: Negatives
) -> tuple[Patterns, Any, Choice | None]:
    """Count the patterns of a lazy table; raise for cells that cannot be fitted."""
    seen = _Counter(table, negatives).patterns()
    if seen.n_rows == 0:
        raise DataError(
            "Found a table with 0 rows while a minimum of 1 is required: X is empty."
        )
    return seen, table.names, table.choice


class _Counter:
    """One table while it is counted."""

    def __init__(self, table: LazyTable, negatives: Negatives) -> None:
        self.table, self.negatives = table, negatives
        self.m = len(table.names)
        self.exponent = self.n_negative = 0
        self.may_be_nan = False  # NaN makes a sum NaN, so it is looked for only then

    @property
    def cells(self) -> Frame:
        return cells_of(
            self.table.frame,
            self.table.places,
            may_be_nan=self.may_be_nan,
            exponent=self.exponent,
        )

    def patterns(self) -> Patterns:
        if not self._has_many_patterns():
            while (found := self._wide()) is None:
                pass
            if isinstance(found, Patterns):
                return found
        self.exponent, self.may_be_nan = 0, False
        while (sums := self._margins()) is None:
            pass
        return self._narrow(*sums)

    def _has_many_patterns(self) -> bool:
        if self.m <= FEW_COLUMNS:
            return False
        if self.m > WIDE_COLUMNS:
            return True
        keys = observed_keys(self.m)
        some = self.cells.head(PROBED_ROWS).select(**keys)
        lines = some.unique(list(keys)).select(n=nw.len())
        found = collect(lines, "counts the patterns of the first rows")
        return int(found["n"][0].as_py()) > MANY_PATTERNS

    # ------------------------------------------------------------------------- wide
    def _wide(self) -> Patterns | str | None:
        """The patterns with their sums; None to be asked again, text if too many."""
        most = WIDE_BYTES // bytes_needed(1, self.m)
        lines = wide_lines(self.cells, self.m, signed=self.negatives == "allow")
        found = collect(lines.head(most + 1), "counts the patterns of holes")
        if found.num_rows > most:
            return "too many"
        seen, low = _patterns_of(found, self.m)
        if not self._is_right(float(seen.sums.sum()), low):
            return None
        seen.exponent, seen.n_negative = self.exponent, self.n_negative
        return seen

    def _is_right(self, total: float, low: float) -> bool:
        """Whether sums can be used; if not, how to ask again is settled."""
        if self.negatives == "allow" and low < 0.0 and not self.n_negative:
            self._check_cells()
        if np.isfinite(total) and (low >= 0.0 or self.negatives == "allow"):
            if not (0.0 < total < TINY and self.exponent == 0):
                return True
            self.exponent = -int(np.log2(LIFT))
            return False
        if not self.may_be_nan:
            self.may_be_nan = True
            self._check_cells()
        elif not self.exponent:
            self.exponent = DOWN
        else:
            raise DataError(
                "The sums of X are above the largest float64 (1.8e308). Divide the "
                "data by a power of ten first."
            )
        return False

    def _check_cells(self) -> None:
        """Raise for bad cells, with how many a column has; count negative ones."""
        cells = cells_of(self.table.frame, self.table.places, may_be_nan=True)
        counts: dict[str, Any] = {}
        for some in self._slices():
            found = collect(faults(cells, some), "counts negative and infinite cells")
            counts |= found.to_pylist()[0]
        infinite, negative = (
            [int(counts[f"{kind}{j}"] or 0) for j in range(self.m)]
            for kind in ("inf", "neg")
        )
        self.n_negative = sum(negative)
        check_counts(self.table.names, infinite, negative, self.negatives)

    # ----------------------------------------------------------------------- narrow
    def _slices(self) -> list[range]:
        starts = range(0, self.m, COLUMNS_AT_ONCE)
        return [range(k, min(k + COLUMNS_AT_ONCE, self.m)) for k in starts]

    def _margins(self) -> tuple[Floats, bool] | None:
        """Sums of the columns, and whether a cell is not positive; None: again."""
        if self.negatives == "allow":
            raise TableTooLargeError(
                "With ",
                Option("negatives", "allow"),
                " a sum per pattern of holes is kept, and X has too many. Leave out "
                "columns with ",
                Option("exclude"),
                ".",
            )
        what, sums, low = "sums the columns", np.zeros(self.m), np.inf
        for some in self._slices():
            found = collect(margins(self.cells, some), what).to_pylist()[0]
            sums[some] = [float(found[f"s{j}"] or 0.0) for j in some]
            least = [float(found[f"a{j}"]) for j in some if found[f"a{j}"] is not None]
            low = min([low, *least])
        if not self._is_right(float(sums.sum()), low):
            return None
        return sums, low == 0.0

    def _narrow(self, col_sums: Floats, has_zeros: bool) -> Patterns:
        lines = narrow_lines(self.cells, self.m, has_zeros=has_zeros)
        what = "counts the patterns of holes by the sums of their rows"
        found = collect(lines.head(MOST_LINES + 1), what)
        if found.num_rows > MOST_LINES:
            raise TableTooLargeError(
                f"X has more than {MOST_LINES:,} patterns of holes, which are not "
                "brought here. Stream its rows instead: pass a reader of Arrow batches "
                "(relation.to_arrow_reader() of DuckDB, table.to_pyarrow_batches() of "
                "Ibis) to a1gm.fit."
            )
        row_sums = floats(found, "r")
        if abs(row_sums.sum() - col_sums.sum()) > SAME * abs(col_sums.sum()):
            raise EngineError(
                "The sums of the rows are not those of the columns: X was changed "
                "between two queries. Fit a snapshot of it."
            )
        counts, observed = integers(found, "n"), bits_of(found, "k", self.m)
        positive = bits_of(found, "p", self.m) if has_zeros else observed
        return _in_order(
            self.m,
            observed,
            exponent=self.exponent,
            positive=pack_bits(positive) if has_zeros else None,
            row_margin=row_sums,
            col_margin=col_sums,
            counts=counts,
            zero_counts=np.where(positive.any(axis=1), 0, counts),
        )


def check_counts(
    names: Sequence[Any],
    infinite: list[int],
    negative: list[int],
    negatives: Negatives = "raise",
) -> None:
    """Raise for bad cells, of which each column has so many."""
    kinds: Any = [("Infinite", InfiniteValuesError, infinite, ())]
    if negatives == "raise":
        allow = ", or pass ", Option("negatives", "allow"), " to fit the margins only"
        kinds.append(("Negative", NegativeValuesError, negative, allow))
    for word, error, each, advice in kinds:
        bad = [j for j, n in enumerate(each) if n]
        if bad:
            some = ", ".join(f"{names[j]!r} has {each[j]:,}" for j in bad[:8])
            more = f" and {counted(len(bad) - 8, 'column')} more" * (len(bad) > 8)
            raise error(
                f"{word} values in data: column {some}{more}.",
                advice=["Mark them as NULL", advice, "."],
                column=bad[0],
                count=sum(each),
            )


# --------------------------------------------------------------------- lines of a query
def wide_patterns(lines: Any, names: tuple[Any, ...]) -> Patterns:
    """Patterns of wide lines; raise for bad cells, by the sums of their columns."""
    m = len(names)
    seen, low = _patterns_of(lines, m)
    if low < 0.0 or not np.isfinite(seen.sums).all():
        least = [floats(lines, f"a{j}").min() for j in range(m)]
        bad = [j for j in range(m) if least[j] < 0.0]
        what = "negative values" if bad else "values that do not add up in float64"
        bad = bad or np.flatnonzero(~np.isfinite(seen.sums).all(axis=0)).tolist()
        columns = ", ".join(repr(names[j]) for j in bad[:8])
        raise DataError(
            f"The table has {what} in {columns}. Mark them as NULL.", column=bad[0]
        )
    return seen


def _patterns_of(lines: Any, m: int) -> tuple[Patterns, float]:
    """Patterns of wide lines, whatever their sums; and the least cell, or 0."""
    observed = bits_of(lines, "k", m)
    sums = np.stack([floats(lines, f"s{j}") for j in range(m)], axis=1)
    low = min(
        float(np.fmin.reduce(floats(lines, f"a{j}"), initial=0.0)) for j in range(m)
    )
    seen = _in_order(
        m,
        observed,
        sums=np.where(observed, sums, 0.0),
        counts=integers(lines, "n"),
        zero_counts=integers(lines, "zero"),
    )
    return seen, low


def _in_order(m: int, observed: Bools, exponent: int = 0, **fields: Any) -> Patterns:
    """Patterns in an order that does not depend on the engine."""
    order = np.lexsort(~observed.T[::-1])
    moved = {
        name: values if values is None or name == "col_margin" else values[order]
        for name, values in fields.items()
    }
    keys = pack_bits(observed[order])
    return Patterns(m, keys=keys, exponent=exponent, **moved)


def floats(lines: Any, name: str) -> Floats:
    """A column of sums; 0 where a pattern has none."""
    values = lines[name].cast("float64").fill_null(0.0)
    return np.asarray(values.to_numpy())


def integers(lines: Any, name: str) -> AnyArray:
    """A column of counts or keys."""
    return np.asarray(lines[name].cast("int64").fill_null(0).to_numpy())


def bits_of(lines: Any, letter: str, m: int) -> Bools:
    """Which columns the keys of each line mark."""
    words = [
        integers(lines, f"{letter}{first}")[:, None] >> np.arange(min(BITS, m - first))
        for first in range(0, m, BITS)
    ]
    return (np.concatenate(words, axis=1) & 1).astype(bool)
