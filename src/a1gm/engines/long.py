"""Long tables counted by the engine that has them: no pivot, and no rows come here.

The distinct columns get codes; the cells of a row add up to a key, the sum of
``2**code``; rows with the same key are one pattern. A sum of n powers of two has n bits
only if all differ, which shows pairs that are there twice.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np

from a1gm._base.types import Floats
from a1gm._base.words import counted
from a1gm._fit.place import Columns
from a1gm._observe.patterns import Patterns
from a1gm._rows.labels import check_there
from a1gm._rows.long import Duplicates, labels_of
from a1gm.engines.count import (
    BITS,
    check_counts,
    floats,
    integers,
    marks_of_faults,
    patterns_of_margins,
)
from a1gm.engines.place import (
    Frame,
    Rule,
    collect,
    column,
    double,
    first_of,
    number,
    open_lazy,
    whole,
    with_plain_names,
)
from a1gm.exceptions import (
    DataError,
    LabelError,
    NotNumericError,
    NotRepresentableError,
    Option,
    ParameterError,
    TableTooLargeError,
)

MOST_COLUMNS = 100 * BITS
MOST_BLOCKS = 64  # of one expression
PREDICTED = "predicted"


@dataclass
class LongTable:
    """The cells of a long table, with keys i and j and value v, NULL if missing.

    ``names`` are those of its keys and of its value.
    """

    cells: Frame
    names: tuple[Any, Any, Any]

    @classmethod
    def of(cls, X: Any, keys: Any, value: Any, duplicates: Duplicates) -> LongTable:
        """Open a lazy frame; pairs that are there twice are added up if asked for."""
        are_two = isinstance(keys, list | tuple) and len(keys) == 2
        if not (are_two and all(isinstance(name, str) for name in (*keys, value))):
            raise ParameterError(
                "A lazy long table needs keys=[row, column], the names of two columns, "
                "and value=, that of the values."
            )
        frame, names = open_lazy(X), (*keys, value)
        schema = frame.collect_schema()
        check_there("The frame", names, schema.names())
        i, j, v = (f"c{schema.names().index(name)}" for name in names)
        dtype = schema[value]
        if not (dtype.is_numeric() or dtype == nw.Boolean):
            raise NotNumericError(
                f"The column {value!r} holds {dtype}, not numbers. Convert it first."
            )
        cells = with_plain_names(frame).select(
            i=nw.col(i), j=nw.col(j), v=number(v, dtype)
        )
        if duplicates == "sum":  # missing where no row of a pair has a value
            x = nw.col("v")
            pairs = cells.group_by("i", "j").agg(s=x.sum(), n=x.count())
            has_value = nw.when(nw.col("n") > 0)
            cells = pairs.select("i", "j", v=has_value.then(nw.col("s")))
        return cls(cells, names)

    # ----------------------------------------------------------------------- counting
    def observe(self) -> tuple[Patterns, Any]:
        """Count the patterns; also the labels of the columns."""
        columns = self._columns()
        found = collect(columns, "sums the columns of a long table").sort_by("code")
        labels = labels_of(found["j"].combine_chunks())
        if len(labels) == 0:
            raise DataError(
                "Found 0 rows while a minimum of 1 is required: X is empty."
            )
        if len(labels) > MOST_COLUMNS:
            raise TableTooLargeError(
                f"X has {counted(len(labels), 'column')}, more than {MOST_COLUMNS:,}. "
                "Swap the keys if it has fewer rows, or collect it first."
            )
        sums = self._checked(found, labels)
        low = [x for x in found["low"].to_pylist() if x is not None]
        has_zeros = min(low, default=0.0) == 0.0
        seen, lines = patterns_of_margins(
            *self._rows(columns, len(labels), has_zeros),
            "counts the patterns of a long table",
            sums,
            most=nw.col("cells").max(),
        )
        if (seen.degrees() != integers(lines, "most")).any():
            raise LabelError(
                "Some pairs of keys occur twice. A cell has one value: pass ",
                Option("duplicates", "sum"),
                " to add them up, or drop the rows that repeat others.",
            )
        return seen, labels

    def _columns(self) -> Frame:
        """Each column with its code, sum, least cell, and what is wrong in it."""
        v = nw.col("v")
        marks = marks_of_faults(v)
        marks["lost"] = nw.when(nw.col("i").is_null()).then(whole(1))
        counts = {name: nw.col(name).sum() for name in marks}
        columns = self.cells.with_columns(**marks).group_by("j")
        found = columns.agg(s=v.sum(), low=v.min(), **counts)
        return found.with_row_index("code", order_by="j")

    def _checked(self, found: Any, labels: Any) -> Floats:
        """Sums of the columns; raise for what is wrong in them."""
        has_lost = found["j"].null_count, integers(found, "lost").any()
        if any(has_lost):
            raise LabelError(
                f"The key {self.names[1 if has_lost[0] else 0]!r} is missing in some "
                "rows. Every row of a long table needs all keys: drop these rows, or "
                "name the key."
            )
        faults = (integers(found, kind).tolist() for kind in ("inf", "neg"))
        check_counts(labels.tolist(), *faults)
        sums = floats(found, "s")
        if not np.isfinite(sums.sum()):
            raise NotRepresentableError(
                "The sums of X are above the largest float64 (1.8e308). Divide the "
                "values by a power of ten first."
            )
        return sums

    def _rows(
        self, columns: Frame, m: int, has_zeros: bool
    ) -> tuple[Frame, dict[str, Any]]:
        """One line per row: its sum r, number of cells, and keys k* and p*."""
        code, v = nw.col("code"), nw.col("v")
        keys: dict[str, Any] = {}
        for first in range(0, m, BITS):
            # Powers of two are exact; a chain of CASE would run on every cell.
            bit = (double(2.0) ** (code - first)).cast(nw.Int64)
            is_here = (code >= first) & (code < first + BITS)
            keys[f"k{first}"] = nw.when(is_here).then(bit).otherwise(whole(0))
        cells = self.cells.join(columns.select("j", **keys), on="j").with_columns(
            nw.when(~v.is_null()).then(nw.col(key)).otherwise(whole(0)).alias(key)
            for key in keys
        )
        if has_zeros:
            above = nw.when(v > double(0.0))
            positive = {
                "p" + key[1:]: above.then(nw.col(key)).otherwise(whole(0))
                for key in keys
            }
            cells, keys = cells.with_columns(**positive), keys | positive
        sums = {key: nw.col(key).sum() for key in keys}
        rows = cells.group_by("i").agg(r=v.sum(), cells=v.count(), **sums)
        return rows.with_columns(nw.col(key).cast(nw.Int64) for key in keys), keys

    # --------------------------------------------------------------------- predicting
    def predicted(self, X: Any, columns: Columns, labels: Any) -> Any:
        """Pairs with their fitted values, by a join with the rows; no query is run.

        NULL for keys that are not in the fit, and where the data determine no value.
        """
        rule = Rule(columns)
        if len(rule.components) > MOST_BLOCKS:
            raise ParameterError(
                f"The fit has {len(rule.components)} blocks, and predict of a lazy "
                f"frame takes {MOST_BLOCKS}. Collect the table, and fit that."
            )
        pairs, row, col = open_lazy(X), *self.names[:2]
        own = pairs.collect_schema().names()
        check_there("The frame", (row, col), own)
        if PREDICTED in own:
            raise LabelError(f"The frame has a column {PREDICTED!r}. Rename it.")
        i, j = (f"c{own.index(name)}" for name in (row, col))
        mapped = {
            f"y{c}": _mapped(pairs, j, labels, rule.h, rule.label, c)
            for c in rule.components
        }
        found = with_plain_names(pairs).with_columns(**mapped)
        rows = self._placed(rule, labels)
        found = found.join(rows, left_on=i, right_on="i", how="left")
        values = [
            nw.when(~column("y", c).is_null()).then(rule.fitted(c, column("y", c)))
            for c in rule.components
        ]
        kept = [nw.col(f"c{k}").alias(name) for k, name in enumerate(own)]
        value = first_of(*values).alias(PREDICTED)
        return found.select(*kept, value).to_native()

    def _placed(self, rule: Rule, labels: Any) -> Frame:
        """The rows by their keys i, with their factors w."""
        v, cells = nw.col("v"), self.cells.filter(~nw.col("v").is_null())
        sums: dict[str, nw.Expr] = {}
        for c in rule.components:
            h = _mapped(cells, "j", labels, rule.weights, rule.label, c)
            cells = cells.with_columns(**{f"h{c}": h})
            own = nw.when(~column("h", c).is_null()).then(v)
            cells = cells.with_columns(**{f"s{c}": own})
            sums |= {name: nw.col(name).sum() for name in (f"s{c}", f"h{c}")}
        rows = cells.group_by("i").agg(**sums)
        return rows.select("i", **rule.factors())


def _mapped(
    frame: Frame, key: str, labels: Any, h: Floats, label: list[int], c: int
) -> nw.Expr:
    """Factor of the column of component c that a key names; NULL for any other."""
    own = np.asarray(label) == c
    names, values = labels[own].tolist(), h[own].tolist()
    engine = frame.implementation
    if engine.is_ibis() or engine.is_pyspark_connect():  # have no such mapping
        pairs = zip(names, values, strict=True)
        return first_of(
            *(nw.when(nw.col(key) == name).then(double(x)) for name, x in pairs)
        )
    return nw.col(key).replace_strict(
        names, values, default=None, return_dtype=nw.Float64
    )
