"""`Columns.place` as expressions: holes are filled where the rows are.

Expressions of narwhals, written once: an engine turns them into its own query. Columns
get plain names first (``c0``, ``c1``, ...), so no name of a user's is ever written into
an expression.

One column ``w`` per component is the row's factor there: NULL where the row observes
nothing of it, 0 where it has zeros only. So a hole is
``coalesce(w h, CASE WHEN the row leads to the component and it does not lead back
THEN 0 END)``, whatever the blocks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from operator import add, and_, or_
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np

from a1gm._base.types import Floats, OnUndetermined
from a1gm._base.words import counted
from a1gm._fit.place import Columns
from a1gm._rows.columns import Choice, ColumnOptions
from a1gm._rows.frames import kinds_of, new_names
from a1gm._rows.lazy import Frame, collect, open_lazy, with_plain_names
from a1gm._rows.libraries import ColumnNames
from a1gm.exceptions import (
    DataError,
    LabelError,
    NotRepresentableError,
    ParameterError,
    TableTooLargeError,
)

MAX = 1.7976931348623157e308
INFINITY = float("inf")  # as a number: SQLite reads no such text
FENCED = ("postgres", "sqlite")  # they write out an expression wherever it is used

FACTOR = "row_factor"
BAD_CELLS = "Negative or infinite values in data, in {} of X. Mark them as NULL."
BAD_ROWS = BAD_CELLS.format("rows")
MOST_WITH_ERRORS = 64


# ------------------------------------------------------------------------------ numbers
def double(value: float) -> nw.Expr:
    """A number that is a double everywhere: in PostgreSQL ``0.5`` is a decimal."""
    return nw.lit(repr(float(value))).cast(nw.Float64)


def whole(value: int) -> nw.Expr:
    """A number that is an integer of 64 bits everywhere."""
    return nw.lit(value, nw.Int64)


def column(letter: str, k: int) -> nw.Expr:
    """A column of our own, such as x0."""
    return nw.col(f"{letter}{k}")


def combined(op: Callable[[Any, Any], Any], parts: Sequence[nw.Expr]) -> nw.Expr:
    """Join expressions as a balanced tree: engines limit the depth of a chain."""
    half = len(parts) // 2
    if not half:
        return parts[0]
    joined: nw.Expr = op(combined(op, parts[:half]), combined(op, parts[half:]))
    return joined


def first_of(*parts: nw.Expr) -> nw.Expr:
    """The first that is not NULL: SQLite has no such function of one argument."""
    return nw.coalesce(*parts) if len(parts) > 1 else parts[0]


def number(name: str, dtype: Any, *, may_be_nan: bool = True) -> nw.Expr:
    """A column as doubles; NaN, which engines order above all numbers, as NULL."""
    x = nw.col(name)
    if dtype == nw.Boolean:  # PostgreSQL casts these to integers only
        x = x.cast(nw.Int32)
    if dtype != nw.Float64:
        x = x.cast(nw.Float64)
    if may_be_nan and dtype.is_float():
        return nw.when(x <= INFINITY).then(x)
    return x


# ------------------------------------------------------------------------------- frames
def needs_fences(frame: Frame) -> bool:
    """Whether an engine needs fences between steps: see `LazyTable.step`."""
    if not frame.implementation.is_ibis():
        return False
    backends = frame.to_native()._find_backends()[0]
    return any(backend.name in FENCED for backend in backends)


def with_logs(frame: Frame, numbers: dict[str, nw.Expr]) -> Frame:
    """The frame with the logarithms of numbers, which are positive or NULL.

    Ibis is asked itself: narwhals would have a logarithm to a base of it, which is one
    of decimals in PostgreSQL, 50 times slower.
    """
    frame = frame.with_columns(**numbers)
    if not frame.implementation.is_ibis():
        return frame.with_columns(nw.col(name).log() for name in numbers)
    native: Any = frame.to_native()
    logs = native.mutate(**{name: native[name].ln() for name in numbers})
    logged: Frame = nw.from_native(logs)
    return logged


def refusing(frame: Frame, is_bad: nw.Expr) -> Frame:
    """The frame, whose query fails at a bad row, where the engine can raise an error.

    By a filter, which no engine leaves out.
    """
    engine = frame.implementation
    native: Any = frame.with_columns(bad=nw.when(is_bad).then(whole(1))).to_native()
    if engine.is_polars():
        import polars as pl

        bad = pl.col("bad").map_batches(
            _check_rows, return_dtype=pl.Boolean, is_elementwise=True
        )
        native = native.filter(bad)
    elif engine.is_duckdb():
        native = native.filter(
            f"CASE WHEN bad = 1 THEN error('{BAD_ROWS}') ELSE TRUE END"
        )
    elif engine.is_pyspark() or engine.is_pyspark_connect():
        from pyspark.sql import functions

        error = functions.raise_error(functions.lit(BAD_ROWS)).cast("boolean")
        is_right = functions.when(functions.col("bad") == 1, error).otherwise(True)
        native = native.filter(is_right)
    else:
        return frame
    refused: Frame = nw.from_native(native)
    return refused


def _check_rows(bad: Any) -> Any:
    """Marks of rows that are right; raise for any other."""
    if bad.count():
        raise DataError(BAD_ROWS)
    return bad.is_null()


# ------------------------------------------------------------------------------- tables
@dataclass(frozen=True)
class LazyTable:
    """A lazy frame with plain names, and which of its columns are the table.

    ``names`` are those of the table, ``places`` their positions in the frame.
    """

    frame: Frame
    schema: Any
    names: ColumnNames
    places: list[int]
    choice: Choice | None
    is_fenced: bool

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
        choice = options.choose(kinds_of(schema, options), "X", has_index=False)
        options.warn(choice, "X")
        chosen = names if choice is None else names.like(choice.table)
        places = {name: k for k, name in enumerate(names)}
        return cls(
            with_plain_names(frame),
            schema,
            chosen,
            [places[name] for name in chosen],
            choice,
            needs_fences(frame) if is_fenced is None else is_fenced,
        )

    @property
    def others(self) -> list[int]:
        """Positions of the columns that are not the table."""
        return [k for k in range(len(self.schema)) if k not in set(self.places)]

    def cells(self, *others: str, may_be_nan: bool = True) -> Frame:
        """Cells as doubles x0, x1, ..., behind ``others``."""
        dtypes = self.schema.dtypes()
        x = [number(f"c{k}", dtypes[k], may_be_nan=may_be_nan) for k in self.places]
        return self.frame.select(*others, **{f"x{j}": v for j, v in enumerate(x)})

    def step(self, frame: Frame) -> Frame:
        """A frame whose columns are computed once, by a LIMIT that no table reaches."""
        return frame.head(1 << 62) if self.is_fenced else frame

    def placed(self, rule: Rule) -> Frame:
        """The other columns, cells x, and s, h and w of the row in each component."""
        frame = self.cells(*(f"c{k}" for k in self.others))
        for step in (rule.sums(), rule.factors()):
            frame = self.step(frame).with_columns(**step)
        return self.step(frame)

    def checked(self, rule: Rule) -> Frame:
        """The frame `placed`, whose query fails at a bad cell where it can."""
        return refusing(self.placed(rule), rule.is_bad())

    # ------------------------------------------------------------------------ answers
    def fill(
        self,
        columns: Columns,
        on_undetermined: OnUndetermined | None = None,
        default: OnUndetermined = "warn",
    ) -> Any:
        """The frame with its holes filled; other columns and their order untouched.

        A negative or infinite cell fails the query; where the engine cannot raise an
        error, its row stays as it is. No query is run.
        """
        if on_undetermined == "raise":
            raise ParameterError(
                'on_undetermined="raise" cannot be used with a lazy frame, which is '
                "filled when it is collected or written. See fit.n_undetermined."
            )
        rule = Rule(columns)
        return self.checked(rule).select(self._filled(rule)).to_native()

    def _filled(self, rule: Rule) -> list[nw.Expr]:
        values = {k: nw.col(f"c{k}") for k in self.others}
        for j, k in enumerate(self.places):
            value = rule.value(j)
            is_single = self.schema.dtypes()[k] == nw.Float32
            values[k] = value.cast(nw.Float32) if is_single else value
        return [values[k].alias(name) for k, name in enumerate(self.schema.names())]

    def fill_with_errors(
        self, columns: Columns, covariance: Floats, dispersion: float, suffix: str
    ) -> Any:
        """The filled frame, and behind it the prediction errors of the fills.

        ``covariance`` is that of the logarithms of the column factors. Errors are NULL
        where nothing is filled. No query is run.
        """
        names = new_names(self.names, suffix, self.schema.names())
        if len(names) > MOST_WITH_ERRORS:
            raise TableTooLargeError(
                f"X has {len(names)} columns. Errors of a lazy frame have a term for "
                f"each pair of columns, up to {MOST_WITH_ERRORS} of them: collect X."
            )
        rule = Rule(columns)
        frame = self.checked(rule)
        for step in rule.spread(np.nan_to_num(covariance)):
            frame = self.step(frame.with_columns(**step))
        errors = [
            rule.error(j, covariance[j, j], dispersion).alias(name)
            for j, name in enumerate(names)
        ]
        return frame.select(*self._filled(rule), *errors).to_native()

    def factors(self, columns: Columns, *, warns: bool = False) -> Any:
        """The columns that are not the table, and the factor of each row.

        NULL where a row has no factor, or several. No query is run.
        """
        names = self.schema.names()
        kept = [nw.col(f"c{k}").alias(names[k]) for k in self.others]
        if FACTOR in [names[k] for k in self.others]:
            raise LabelError(
                f"X has a column {FACTOR!r}, the name of the row factors. Rename it."
            )
        rule = Rule(columns)
        return self.checked(rule).select(*kept, rule.factor().alias(FACTOR)).to_native()

    def divergence(self, columns: Columns) -> float:
        """Compute the divergence of all rows, in one query."""
        return self.statistics(columns)["divergence"]

    def statistics(self, columns: Columns) -> dict[str, float]:
        """Divergence, Pearson's statistic and sum of r log r of all rows, by a query.

        Raises DataError for negative and infinite cells, and NotRepresentableError
        where a positive cell has a fitted value of 0.
        """
        rule = Rule(columns)
        cells = [rule.scatter(j) for j in range(len(self.names))]
        sums = {
            "divergence": combined(add, [cell[0] for cell in cells]),
            "pearson_chi2": combined(add, [cell[1] for cell in cells]),
            "row_logs": rule.total("s") * nw.col("log_sum"),
            "n_bad": nw.when(rule.is_bad()).then(whole(1)),
        }
        rows = self.step(with_logs(self.placed(rule), rule.ratios()))
        lines = rows.select(**sums).select(
            **{name: nw.col(name).sum() for name in sums}
        )
        found = collect(lines, "sums the scatter of the cells").to_pylist()[0]
        n_bad = int(found.pop("n_bad") or 0)
        if n_bad:
            raise DataError(BAD_CELLS.format(counted(n_bad, "row")), count=n_bad)
        if np.isinf(found["divergence"] or 0.0):
            raise NotRepresentableError(
                "A positive cell has a fitted value of 0, or the divergence is above "
                "the largest float64, so it cannot be computed."
            )
        return {name: max(float(value or 0.0), 0.0) for name, value in found.items()}


class Rule:
    """What a row gets, as expressions.

    Of its cells x, and in each component of the sum s of its cells, of the sum h of the
    factors of their columns, and of its factor w. These are NULL where a cell is
    infinite or, unless signed, negative: such a row is bad, and stays as it is.
    """

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

    # --------------------------------------------------------------------------- rows
    def sums(self) -> dict[str, nw.Expr]:
        """Sums s and h of a row, of its cells x."""
        found = {}
        for c in self.components:
            own = [j for j, label in enumerate(self.label) if label == c]
            found[f"s{c}"] = combined(add, [self._term(j) for j in own])
            found[f"h{c}"] = combined(add, [self._weight(j) for j in own])
        return found

    def _term(self, j: int) -> nw.Expr:
        x, zero = column("x", j), double(0.0)
        if self.signed:
            return nw.coalesce(x, zero)
        # NULL, and so the sum, for a cell below zero; no -0.0 in the sum.
        nothing = nw.when(x.is_null() | (x == zero)).then(zero)
        return nw.when(x > zero).then(x).otherwise(nothing)

    def is_bad(self) -> nw.Expr:
        """Whether a row has a negative or infinite cell, after `sums`; or NULL."""
        sums = [column("s", c) for c in self.components]
        alone = [column("x", j) for j, c in enumerate(self.label) if c < 0]
        faults = [x > double(MAX) for x in sums + alone]
        if self.signed:
            faults += [x < double(-MAX) for x in sums]
        else:
            faults += [x.is_null() for x in sums]
            faults += [x < double(0.0) for x in alone]
        return combined(or_, faults)

    def _weight(self, j: int) -> nw.Expr:
        is_hole = column("x", j).is_null()
        return nw.when(is_hole).then(double(0.0)).otherwise(double(self.weights[j]))

    @property
    def weights(self) -> Any:
        """Factors of the columns; 1 for a column of zeros."""
        return np.where(self.h == 0.0, 1.0, self.h)

    def factors(self) -> dict[str, nw.Expr]:
        """Factors w of a row, of its sums."""
        zero, most = double(0.0), double(MAX)
        found: dict[str, nw.Expr] = {}
        for c in self.components:
            s, reach = column("s", c), column("h", c)
            if self.signed:
                is_known = (reach != zero) & (s <= most) & (s >= double(-MAX))
            else:
                is_known = (reach > zero) & (s <= most)
            has_data = self.h[np.asarray(self.label) == c].any()
            found[f"w{c}"] = nw.when(is_known).then(s / reach if has_data else zero)
        return found

    def total(self, letter: str) -> nw.Expr:
        """Sum of s or of w over the components."""
        each = [nw.coalesce(column(letter, c), double(0.0)) for c in self.components]
        return combined(add, each)

    def factor(self) -> nw.Expr:
        """The one factor of a row; NULL where it has none, or several."""
        zero, w = double(0.0), [column("w", c) for c in self.components]
        if self.signed:
            return w[0] + zero
        is_held = [nw.when(v > zero).then(whole(1)).otherwise(whole(0)) for v in w]
        is_touched = combined(or_, [~v.is_null() for v in w])
        is_zero = (self.total("s") == zero) & is_touched
        is_known = (combined(add, is_held) == whole(1)) | is_zero
        return nw.when(is_known).then(self.total("w"))

    # -------------------------------------------------------------------------- cells
    def fitted(self, c: int, h: nw.Expr) -> nw.Expr:
        """Value of a cell in a column of component c with factor h."""
        zero, found = double(0.0), [column("w", c) * h]
        behind, ahead = (
            [k for k in self.components if reached[k] and k != c]
            for reached in (self.graph.behind([c]), self.graph.ahead([c]))
        )
        if behind:
            leads = combined(or_, [~column("w", k).is_null() for k in behind])
            stays = [~(nw.coalesce(column("w", k), zero) > zero) for k in ahead]
            found.append(nw.when(combined(and_, [leads, *stays])).then(zero))
        return first_of(*found)

    def value(self, j: int) -> nw.Expr:
        """The cell, or what fills its hole."""
        x, c = column("x", j), self.label[j]
        return x if c < 0 else nw.coalesce(x, self.fitted(c, double(self.h[j])))

    def spread(self, covariance: Floats) -> Iterator[dict[str, nw.Expr]]:
        """Steps to the covariance of each column with the row, a, and of the row, q."""
        own = {
            c: [j for j, label in enumerate(self.label) if label == c]
            for c in self.components
        }
        yield {
            f"b{j}": self._weight(j)
            / nw.when(column("h", c) > double(0.0)).then(column("h", c))
            for c in own
            for j in own[c]
        }
        along = {
            j: [column("b", k) * double(covariance[j, k]) for k in own[c]]
            for c in own
            for j in own[c]
        }
        yield {f"a{j}": combined(add, parts) for j, parts in along.items()}
        across = {c: [column("b", k) * column("a", k) for k in own[c]] for c in own}
        yield {f"q{c}": combined(add, parts) for c, parts in across.items()}

    def error(self, j: int, variance: float, dispersion: float) -> nw.Expr:
        """Prediction error of what fills a hole, after `spread`; else NULL."""
        c, zero, phi = self.label[j], double(0.0), double(dispersion)
        if c < 0:
            return nw.lit(None, nw.Float64)
        f, r = self.fitted(c, double(self.h[j])), column("s", c)
        of_columns = double(variance) - double(2.0) * column("a", j) + column("q", c)
        of_columns = nw.when(of_columns > zero).then(of_columns).otherwise(zero)
        found = nw.when(f > zero).then(
            (f * f * (phi / r + of_columns) + f * phi).sqrt()
        )
        is_filled = column("x", j).is_null()
        return nw.when(is_filled).then(found.otherwise(nw.when(f == zero).then(zero)))

    def ratios(self) -> dict[str, nw.Expr]:
        """Positive numbers whose logarithms `scatter` needs; NULL for others.

        Cells over their fitted values, l*, and the sum of the row.
        """
        zero, total = double(0.0), self.total("s")
        numbers: dict[str, nw.Expr] = {"log_sum": nw.when(total > zero).then(total)}
        for j, c in enumerate(self.label):
            if c >= 0:
                x, f = column("x", j), column("w", c) * double(self.h[j])
                numbers[f"l{j}"] = nw.when((x > zero) & (f > zero)).then(x / f)
        return numbers

    def scatter(self, j: int) -> tuple[nw.Expr, nw.Expr]:
        """Parts of an observed cell in the divergence and in Pearson's statistic."""
        c, zero = self.label[j], double(0.0)
        if c < 0:
            return zero, zero
        x, f = column("x", j), column("w", c) * double(self.h[j])
        divergence = nw.coalesce(
            x * column("l", j) - x + f,
            nw.when(x > zero).then(nw.lit(INFINITY)),
            nw.when(~x.is_null()).then(f),
            zero,
        )
        square = (x - f) * (x - f) / nw.when(f > zero).then(f)
        return divergence, nw.coalesce(square, zero)
