"""`Columns.place` as expressions: holes are filled where the rows are.

One column ``w`` per component is the row's factor there: NULL where the row observes
nothing of it, 0 where it has zeros only. So a hole is
``coalesce(x, w h, CASE WHEN the row leads to the component and it does not lead back
THEN 0 END)``, whatever the blocks.
"""

from __future__ import annotations

from dataclasses import dataclass
from operator import add, and_, or_
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np

from a1gm._fit.place import Columns
from a1gm._rows.columns import Choice, ColumnOptions
from a1gm._rows.frames import ColumnNames, kinds_of_schema
from a1gm.engines.query import (
    INFINITY,
    MAX,
    Frame,
    collect,
    combined,
    double,
    needs_fences,
    number,
    open_lazy,
    whole,
    with_plain_names,
)
from a1gm.exceptions import LabelError, NotRepresentableError, ParameterError


@dataclass(frozen=True)
class LazyTable:
    """A lazy frame with plain names, and which of its columns are the table.

    ``names`` are those of the table, ``places`` their positions in the frame.
    """

    frame: Frame
    all_names: list[str]
    names: ColumnNames
    places: list[int]
    choice: Choice | None
    is_fenced: bool

    @staticmethod
    def opens(X: Any) -> bool:
        """Whether X is a lazy frame."""
        return open_lazy(X) is not None

    @classmethod
    def of(
        cls, X: Any, options: ColumnOptions, *, is_fenced: bool | None = None
    ) -> LazyTable:
        """Open a lazy frame; its columns are chosen by names and types.

        ``is_fenced`` is for a table without an engine.
        """
        frame = open_lazy(X)
        schema = frame.collect_schema()
        names = ColumnNames(schema.names())
        kinds = kinds_of_schema(schema, options)
        choice = options.choose(kinds, "X", has_index=False)
        chosen = names if choice is None else names.like(choice.table)
        places = {name: k for k, name in enumerate(names)}
        return cls(
            with_plain_names(frame),
            list(names),
            chosen,
            [places[name] for name in chosen],
            choice,
            needs_fences(frame) if is_fenced is None else is_fenced,
        )

    def step(self, frame: Frame) -> Frame:
        """A frame whose columns are computed once, by a LIMIT that no table reaches."""
        return frame.head(1 << 62) if self.is_fenced else frame

    # ------------------------------------------------------------------------ answers
    def filled(self, columns: Columns) -> Any:
        """The frame with its holes filled; other columns and their order untouched."""
        dtypes = self.frame.collect_schema().dtypes()
        rule, values = _Rule(columns), {}
        for j, k in enumerate(self.places):
            value = rule.value(j)
            is_single = dtypes[k] == nw.Float32
            values[k] = value.cast(nw.Float32) if is_single else value
        return self._named(
            rule.placed(self),
            [values.get(k, nw.col(f"c{k}")) for k in range(len(self.all_names))],
            self.all_names,
        )

    def factors(self, columns: Columns) -> Any:
        """The columns that are not the table, and the factor of each row.

        NULL where a row has no factor, or several.
        """
        name = "row_factor"
        others = [k for k in range(len(self.all_names)) if k not in set(self.places)]
        names = [self.all_names[k] for k in others]
        if name in names:
            raise LabelError(
                f"X has a column {name!r}, the name of the row factors. Rename it."
            )
        rule = _Rule(columns)
        found = [*(nw.col(f"c{k}") for k in others), rule.factor()]
        return self._named(rule.placed(self), found, [*names, name])

    def statistics(self, columns: Columns) -> dict[str, float]:
        """Divergence, Pearson's statistic and sum of r log r of all rows, by a query.

        Raises NotRepresentableError where a positive cell has a fitted value of 0.
        """
        rule = _Rule(columns)
        cells = [rule.scatter(j) for j in range(len(self.names))]
        r = combined(add, [nw.coalesce(_s(c), double(0.0)) for c in rule.components])
        sums = {
            "divergence": combined(add, [cell[0] for cell in cells]),
            "pearson_chi2": combined(add, [cell[1] for cell in cells]),
            "row_logs": nw.when(r > double(0.0)).then(r * r.log()),
        }
        lines = rule.placed(self).select(**sums)
        lines = lines.select(**{name: nw.col(name).sum() for name in sums})
        found = collect(lines, "sums the scatter of the cells").to_pylist()[0]
        if np.isinf(found["divergence"] or 0.0):
            raise NotRepresentableError(
                "A positive cell has a fitted value of 0, or the divergence is above "
                "the largest float64, so it cannot be computed."
            )
        return {name: max(float(value or 0.0), 0.0) for name, value in found.items()}

    @staticmethod
    def _named(frame: Frame, values: list[nw.Expr], names: list[str]) -> Any:
        pairs = zip(values, names, strict=True)
        return frame.select(value.alias(name) for value, name in pairs).to_native()


def _x(j: int) -> nw.Expr:
    return nw.col(f"x{j}")


def _s(c: int) -> nw.Expr:
    return nw.col(f"s{c}")


def _w(c: int) -> nw.Expr:
    return nw.col(f"w{c}")


class _Rule:
    """What a row gets, as expressions in its cells x and its factors w."""

    def __init__(self, columns: Columns) -> None:
        self.h = np.nan_to_num(columns.factor)
        self.graph, self.signed = columns.graph, columns.takes_negatives
        self.label = self.graph.label.tolist()
        self.components = sorted({c for c in self.label if c >= 0})
        if self.signed and not self.graph.is_single:
            raise ParameterError(
                "A fit with negative cells and several blocks places rows in memory "
                'only. Collect X first, or fit without negatives="allow".'
            )

    def placed(self, table: LazyTable) -> Frame:
        """The frame with cells x, and s and w of the row in each component.

        They are NULL where a cell is infinite or, unless signed, negative: such a row
        stays as it is.
        """
        dtypes = table.frame.collect_schema().dtypes()
        pairs = enumerate(table.places)
        x = {f"x{j}": number(f"c{k}", dtypes[k]) for j, k in pairs}
        sums, factors = {}, {}
        for c in self.components:
            own = [j for j, label in enumerate(self.label) if label == c]
            sums[f"s{c}"] = combined(add, [self._term(j) for j in own])
            sums[f"h{c}"] = combined(add, [self._weight(j) for j in own])
            factors[f"w{c}"] = self._row_factor(c, has_data=bool(self.h[own].any()))
        others = [f"c{k}" for k in range(len(dtypes)) if k not in set(table.places)]
        frame = table.frame.select(*others, **x)
        for step in (sums, factors):
            frame = table.step(frame).with_columns(**step)
        return table.step(frame)

    def _term(self, j: int) -> nw.Expr:
        x, zero = _x(j), double(0.0)
        if self.signed:
            return nw.coalesce(x, zero)
        # NULL, and so the sum, for a cell below zero; no -0.0 in the sum.
        nothing = nw.when(x.is_null() | (x == zero)).then(zero)
        return nw.when(x > zero).then(x).otherwise(nothing)

    def _weight(self, j: int) -> nw.Expr:
        """Factor of the column if it is observed; 1 for a column of zeros."""
        h = double(self.h[j] or 1.0)
        return nw.when(_x(j).is_null()).then(double(0.0)).otherwise(h)

    def _row_factor(self, c: int, *, has_data: bool) -> nw.Expr:
        s, reach = _s(c), nw.col(f"h{c}")
        is_known = (reach > double(0.0)) & (s <= double(MAX))
        if self.signed:
            is_known = (reach != double(0.0)) & (s <= double(MAX)) & (s >= double(-MAX))
        return nw.when(is_known).then(s / reach if has_data else double(0.0))

    # -------------------------------------------------------------------------- cells
    def value(self, j: int) -> nw.Expr:
        """The cell, or what fills its hole."""
        c, zero = self.label[j], double(0.0)
        if c < 0:
            return _x(j)
        found = [_x(j), _w(c) * double(self.h[j])]
        behind = self._others(self.graph.behind([c]), c)
        if behind:
            leads = combined(or_, [~_w(k).is_null() for k in behind])
            ahead = self._others(self.graph.ahead([c]), c)
            stays = [~(nw.coalesce(_w(k), zero) > zero) for k in ahead]
            found.append(nw.when(combined(and_, [leads, *stays])).then(zero))
        return nw.coalesce(*found)

    def _others(self, reached: Any, c: int) -> list[int]:
        return [k for k in self.components if reached[k] and k != c]

    def factor(self) -> nw.Expr:
        """The factor of the row."""
        zero = double(0.0)

        def total(column: Any) -> nw.Expr:
            each = [nw.coalesce(column(c), zero) for c in self.components]
            return combined(add, each)

        if self.signed:
            return _w(self.components[0]) + zero
        is_held = [
            nw.when(_w(c) > zero).then(whole(1)).otherwise(whole(0))
            for c in self.components
        ]
        is_touched = combined(or_, [~_w(c).is_null() for c in self.components])
        is_zero = (total(_s) == zero) & is_touched
        is_known = (combined(add, is_held) == whole(1)) | is_zero
        return nw.when(is_known).then(total(_w))

    def scatter(self, j: int) -> tuple[nw.Expr, nw.Expr]:
        """Parts of an observed cell in the divergence and in Pearson's statistic."""
        c, zero = self.label[j], double(0.0)
        if c < 0:
            return zero, zero
        x, f = _x(j), _w(c) * double(self.h[j])
        infinite = nw.lit(INFINITY)
        log = nw.when((x > zero) & (f > zero)).then(x * (x / f).log() - x + f)
        square = nw.when(f > zero).then((x - f) * (x - f) / f)
        rest = nw.when(x > zero).then(infinite).otherwise(nw.coalesce(f, zero))
        parts = log.otherwise(rest), square.otherwise(zero)
        return tuple(nw.when(x.is_null()).then(zero).otherwise(part) for part in parts)  # type: ignore[return-value]
