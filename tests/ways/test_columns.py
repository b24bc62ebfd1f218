"""Which columns are the table: the same by every way in, by names and types."""

from __future__ import annotations

import datetime
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import dask
import dask.dataframe as dd
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import feather
from support.commands import run
from support.lazy import duckdb_relation, from_duckdb

import a1gm
from a1gm.exceptions import (
    A1gmError,
    A1gmWarning,
    DataHintWarning,
    EmptyLineWarning,
    NotNumericError,
)
from ways.ways import Noted, noted

N_ROWS = 6
RNG = np.random.default_rng(0)
Columns = dict[Any, list[Any]]


# -------------------------------------------------------------------------- tables
@dataclass(frozen=True)
class Labelled:
    """A table with labels: its columns, those that are fitted, those that name rows."""

    columns: Columns
    table: list[Any]
    ids: list[Any] = field(default_factory=list)
    warned: frozenset[type[Warning]] = frozenset()
    ways: tuple[str, ...] = ()  # all ways if empty


def cells(k: int) -> list[Any]:
    """A column of numbers with a hole, neither whole nor rising."""
    column: list[Any] = [k + 2.5, 3.25, 7.5 * k + 1.5, 2.0, 11.5, k + 4.75]
    column[(2 * k + 1) % N_ROWS] = None
    return column


def data(*names: Any) -> Columns:
    return {name: cells(k) for k, name in enumerate(names)}


def labels(*names: str) -> Columns:
    """Columns of whole numbers that only rise."""
    return {name: list(range(1, N_ROWS + 1)) for name in names}


TEXT = [f"r{i}" for i in range(N_ROWS)]
CITIES = ["Rome", "Oslo", "Rome", "Bern", "Oslo", "Rome"]
DATES = [datetime.date(2024, 1, 1 + i) for i in range(N_ROWS)]
BOOLS = [True, False, True, True, False, True]
ROWS = frozenset([DataHintWarning])


def numbered(name: str, first: int = 1, *names: Any) -> Labelled:
    """Numbers that name the rows, then data."""
    names = names or ("a", "b", "c")
    ids = {name: [first + i for i in range(N_ROWS)]}
    return Labelled({**ids, **data(*names)}, list(names), [name], ROWS)


def only_data(*names: Any, **options: Any) -> Labelled:
    return Labelled(data(*names), list(names), **options)


A, TYPED = ("a", "b", "c"), ("pandas", "pyarrow", "Parquet", "Feather")
FRAMES = ("pandas", "Dask")
FILES = ("CSV", "Parquet", "Feather", "sheet", "command")
TABLES: dict[str, Labelled] = {
    "id": numbered("id"),
    "AccidentYear": numbered("AccidentYear", 1981, "12", "24", "36"),
    "sites by years": numbered("site", 1, *map(str, range(1990, 2021))),
    "unnamed": numbered("", 1, "jan", "shop_sales"),
    "two ids": Labelled(
        {**labels("customer_id", "sku_no"), **data(*A)},
        list(A),
        ["customer_id", "sku_no"],
        ROWS,
    ),
    "text": Labelled({"shop": TEXT, **data(*A)}, list(A), ["shop"]),
    "text and year": Labelled(
        {"shop": CITIES, **labels("year"), **data(*A)}, list(A), ["shop", "year"], ROWS
    ),
    "date": Labelled({"when": DATES, **data(*A)}, list(A), ["when"]),
    "text, text, bool": Labelled(
        {"shop": TEXT, "city": CITIES, "open": BOOLS, **data("jan", "feb")},
        ["jan", "feb"],
        ["shop", "city"],
        ROWS,
    ),
    "bool": Labelled({"open": BOOLS, **data(*A)}, list(A), [], ROWS),
    "text last": Labelled({**data(*A), "note": CITIES}, list(A), [], ROWS),
    "date and bool between": Labelled(
        {**data("a"), "when": DATES, "open": BOOLS, **data("b", "c")},
        list(A),
        [],
        ROWS,
    ),
    "month and day last": Labelled(
        {**data("Ozone", "Wind"), **labels("Month", "Day")}, ["Ozone", "Wind"], [], ROWS
    ),
    "levels called like labels": Labelled(
        {"city": CITIES, **data("Online", "Store")}, ["Online", "Store"], ["city"]
    ),
    "a time per data": only_data("births per year", "deaths per year", "moves"),
    "one time behind data": only_data("Morning", "Day", "Night"),
    "weeks": only_data(*(f"week_{k}" for k in range(1, 53))),
    "items": only_data("item1", "item2"),
    "names without Latin letters": only_data("売上", "Год", "Ελλάδα"),
    "names that end like labels": only_data("body_wt", "danger_index", "grams per day"),
    "id with a hole": Labelled(
        {"id": [1, 2, None, 4, 5, 6], **data(*A)}, list(A), ["id"], ROWS
    ),
    "empty column": Labelled(
        {**data("a", "b"), "none": [None] * N_ROWS, **data("c")},
        ["a", "b", "none", "c"],
        warned=frozenset([EmptyLineWarning]),
        ways=("pandas", "polars", "pyarrow", *FILES),  # Dask takes it for text
    ),
    "integer column names": replace(only_data(0, 1, 2), ways=FRAMES),
    "years as integer names": replace(
        numbered("site", 1, *range(1990, 1995)), ways=FRAMES
    ),
    "index of two levels": Labelled(
        {"shop": TEXT, "city": CITIES, **data(*A)}, list(A), ["shop", "city"]
    ),
    "category": Labelled(
        {"shop": pd.Categorical(CITIES), **data(*A)}, list(A), ["shop"]
    ),
    "category of numbers": Labelled(
        {"shop": pd.Categorical([7, 8, 7, 9, 8, 7]), **data(*A)},
        list(A),
        ["shop"],
        ways=TYPED,
    ),
}
#: Tables that nothing can be fitted of, or that mix numbers and text.
REFUSED: dict[str, Columns] = {
    "only labels": labels("year", "id"),
    "only text": {"shop": TEXT, "city": CITIES},
    "text and labels": {"shop": TEXT, **labels("year")},
    "one column left": data("No", "Yes"),
}


# ----------------------------------------------------------------------------- ways
@dataclass
class Outcome:
    """What a way made of a table."""

    table: list[str]
    rows: list[str] | None  # None: not known to the fit
    filled: pd.DataFrame
    warned: set[type[Warning]] | bool  # or whether anything was printed


def arrow_table(columns: Columns) -> pa.Table:
    plain = {
        str(name): column if isinstance(column, list) else pa.array(column)
        for name, column in columns.items()
    }
    return pa.table(plain)


def polars_frame(columns: Columns) -> pl.DataFrame:
    numbered = {str(k): column for k, column in enumerate(columns.values())}
    frame = pl.from_arrow(arrow_table(numbered))
    assert isinstance(frame, pl.DataFrame)
    frame.columns = list(map(str, columns))  # from_arrow replaces an empty name
    return frame


def as_pandas(frame: Any) -> pd.DataFrame:
    if isinstance(frame, pd.DataFrame):
        return frame
    if isinstance(frame, pl.LazyFrame):
        return frame.collect().to_pandas()
    if hasattr(frame, "sql_query"):  # a relation of DuckDB
        return from_duckdb(frame).to_pandas()
    return (frame.compute if hasattr(frame, "compute") else frame.to_pandas)()


def named(label: Any) -> str:
    """A label as text, the same for all types that hold it."""
    if isinstance(label, tuple):
        return " · ".join(map(named, label))
    if label is None or label != label:  # noqa: PLR0124 - NaN
        return ""
    if isinstance(label, float) and label.is_integer():
        label = int(label)
    return str(label).removesuffix(" 00:00:00")


def outcome(fit: Any, filled: pd.DataFrame, found: Noted) -> Outcome:
    names = fit.row_labels
    return Outcome(
        [named(name) for name in fit.col_labels],
        None if names is None else [named(name) for name in names],
        filled,
        found.classes,
    )


def in_memory(make: Callable[[Columns], Any], fit_of=a1gm.fit):
    def ask(columns: Columns, folder: Path) -> Outcome:
        given = make(columns)
        with noted() as found:
            fit = fit_of(given)
            filled = as_pandas(fit.impute(given))
        if isinstance(filled.index, pd.MultiIndex):
            filled = filled.reset_index()
        return outcome(fit, filled, found)

    return ask


WRITERS: dict[str, Callable[[Columns, Path], Any]] = {
    ".csv": lambda columns, path: pd.DataFrame(columns, dtype=object).to_csv(
        path, index=False
    ),
    ".parquet": lambda columns, path: pq.write_table(arrow_table(columns), path),
    ".feather": lambda columns, path: feather.write_feather(arrow_table(columns), path),
    ".xlsx": lambda columns, path: pd.DataFrame(columns).to_excel(path, index=False),
}
READERS: dict[str, Callable[[Path], pd.DataFrame]] = {
    ".csv": lambda path: pd.read_csv(path).rename(columns={"Unnamed: 0": ""}),
    ".parquet": lambda path: pq.read_table(path).to_pandas(),
    ".feather": lambda path: feather.read_table(path).to_pandas(),
}


def of_file(suffix: str):
    def ask(columns: Columns, folder: Path) -> Outcome:
        path = folder / f"table{suffix}"
        out = folder / f"filled{suffix if suffix in READERS else '.csv'}"
        WRITERS[suffix](columns, path)
        with noted() as found:
            fit = a1gm.fit_file(path)
            a1gm.impute_file(path, out, fit=fit)
        return outcome(fit, READERS[out.suffix](out), found)

    return ask


def by_command(columns: Columns, folder: Path) -> Outcome:
    path, out, results = folder / "table.csv", folder / "filled.csv", folder / "results"
    WRITERS[".csv"](columns, path)
    done = run("fit", path, "-o", results, code=None)
    if done.exit_code:
        raise A1gmError(done.stderr)
    run("impute", path, "-o", out)
    factors = [
        pd.read_csv(results / name, dtype={0: str}, keep_default_na=False)
        for name in ("row_factor.csv", "col_factor.csv")
    ]
    lines = done.stderr.splitlines()
    warned = any(line.startswith(("note:", "warning:")) for line in lines)
    ids = factors[0].loc[:, :"row_factor"].iloc[:, :-1]
    rows = [named(tuple(line)) for line in ids.itertuples(index=False)]
    names = [named(x) for x in factors[1].iloc[:, 0]]
    return Outcome(names, rows, READERS[".csv"](out), warned)


WAYS: dict[str, Callable[[Columns, Path], Outcome]] = {
    "pandas": in_memory(pd.DataFrame),
    "polars": in_memory(polars_frame),
    "pyarrow": in_memory(arrow_table),
    "Dask": in_memory(
        lambda columns: dd.from_pandas(pd.DataFrame(columns), 2, sort=False),
        a1gm.distributed.fit,
    ),
    "lazy polars": in_memory(lambda columns: polars_frame(columns).lazy()),
    "DuckDB": in_memory(lambda columns: duckdb_relation(arrow_table(columns))),
    "CSV": of_file(".csv"),
    "Parquet": of_file(".parquet"),
    "Feather": of_file(".feather"),
    "sheet": of_file(".xlsx"),
    "command": by_command,
}


@pytest.fixture(autouse=True)
def _in_this_thread():
    with dask.config.set(scheduler="synchronous"):
        yield


@pytest.mark.parametrize(
    ("name", "way"),
    [
        (name, way)
        for name in TABLES
        for way in TABLES[name].ways or WAYS
        if (name, way) != ("unnamed", "DuckDB")  # where every column has a name
    ],
)
def test_same_table_by_every_way(way, name, tmp_path):
    table = TABLES[name]
    columns = table.columns
    if name == "index of two levels" and way == "pandas":
        frame = pd.DataFrame(columns).set_index(table.ids)
        found = in_memory(lambda _: frame)(columns, tmp_path)
    else:
        found = WAYS[way](columns, tmp_path)
    assert found.table == list(map(str, table.table))
    if found.rows is not None and table.ids:
        lines = zip(*(columns[one] for one in table.ids), strict=True)
        assert found.rows == [named(line) for line in lines]
    is_given = {name: not hasattr(x, "categories") for name, x in columns.items()}
    X = np.array([columns[one] for one in table.table], float).T
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", A1gmWarning)
        right = a1gm.impute(X)
    found.filled.columns = [str(one) for one in found.filled.columns]
    filled = found.filled[list(map(str, table.table))].to_numpy(float)
    np.testing.assert_allclose(filled, right, rtol=1e-9)
    assert list(found.filled) == list(map(str, columns))
    for one in columns:
        if one not in table.table and is_given[one]:
            assert [named(x) for x in found.filled[str(one)]] == [
                named(x) for x in columns[one]
            ]
    wanted = bool(table.warned) if isinstance(found.warned, bool) else table.warned
    assert found.warned == wanted


# --------------------------------------------------------- the same table once more
SALES: Columns = {"jan": [1.0, 2, 3, 4, 5], "feb": [2.0, 4, 6, None, 10]}
KEYS = ["shop", "variable"]
SHOPS: Columns = {"shop": list("abcde"), **SALES}


@pytest.mark.filterwarnings("ignore::a1gm.exceptions.DataHintWarning")
def test_bools_are_not_data_in_pieces_or_in_an_assessment():
    frame = pd.DataFrame({"open": [True, False, True, True, False], **SALES})
    table = a1gm.PatternTable().update(frame[:2]).update(frame[2:])
    assert list(table.solve().col_labels) == ["jan", "feb"]
    numbers = a1gm.assess(frame[["jan", "feb"]], random_state=0)
    assert a1gm.assess(frame, random_state=0) == numbers


@pytest.mark.parametrize(
    "fit_of",
    [
        lambda frame: a1gm.fit_many([frame])[0],
        lambda frame: a1gm.fit_long(frame.melt("shop"), KEYS, "value"),
        lambda frame: a1gm.fit_groups(
            frame.melt("shop").assign(year=1), "year", KEYS, "value"
        )[1],
    ],
)
def test_fits_of_several_tables_read_a_frame_again(fit_of):
    frame = pd.DataFrame(SHOPS)
    filled = fit_of(frame).impute(frame)
    assert filled["feb"].tolist() == pytest.approx([2, 4, 6, 8, 10])


@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame, pa.table])
def test_text_with_a_missing_cell_that_looks_like_numbers(make):
    frame = make({"price": ["1,5", None, "3,5", "4,5", "2,5"], **SALES})
    frames = [frame]
    if make is pd.DataFrame:
        types = {"types_mapper": pd.ArrowDtype}
        frames += [frame.convert_dtypes(), pa.table(dict(frame)).to_pandas(**types)]
    for one in frames:
        with pytest.warns(DataHintWarning, match="text such as '1,5'"):
            a1gm.fit(one)


TO_FILE: dict[str, Callable[[pd.DataFrame, Path], None]] = {
    "a.csv": lambda frame, path: frame.to_csv(path, index=False),
    "a.parquet": lambda frame, path: frame.to_parquet(path),
    "a.xlsx": lambda frame, path: frame.to_excel(path, index=False),
}


def as_file(name: str, columns: Columns, folder: Path) -> Path:
    TO_FILE[name](pd.DataFrame(columns), folder / name)
    return folder / name


@pytest.mark.parametrize("name", TO_FILE)
@pytest.mark.filterwarnings("ignore::a1gm.exceptions.DataHintWarning")
def test_whole_numbers_with_a_hole_are_labels_and_no_positions(name, tmp_path):
    columns = {"store_id": [4, None, 0, 1, 3], **SALES}
    fit = a1gm.fit_file(as_file(name, columns, tmp_path))
    assert list(fit.row_labels) == ["4", "", "0", "1", "3"]
    assert fit.predict(3, "jan") == pytest.approx(5.0)


def test_labels_with_other_fractions_keep_theirs(tmp_path):
    columns = {"version": ["1.0", "1.1", "1.2", "1.3", "2.0"], **SALES}
    path = as_file("a.csv", columns, tmp_path)
    assert a1gm.fit_file(path, id=["version"]).row_labels[0] == "1.0"


@pytest.mark.parametrize("name", ["a.csv", "a.xlsx"])
def test_times_are_written_alike_in_text_and_sheets(name, tmp_path):
    when = pd.date_range("2024-01-01 03:00", periods=5)
    fit = a1gm.fit_file(as_file(name, {"when": when, **SALES}, tmp_path))
    assert fit.predict(when[4], "feb") == pytest.approx(10.0)


@pytest.mark.filterwarnings("ignore::a1gm.exceptions.EmptyLineWarning")
def test_empty_column_of_arrow_in_pandas_is_of_numbers():
    table = pa.table({**SALES, "none": pa.nulls(5)})
    fit = a1gm.fit(table.to_pandas(types_mapper=pd.ArrowDtype))
    assert list(fit.col_labels) == ["jan", "feb", "none"]


@pytest.mark.parametrize("name", TO_FILE)
@pytest.mark.parametrize(
    "asked", [{"id": ["Kunde"]}, {"exclude": ["Kunde"]}, {"columns": ["feb", "jan"]}]
)
def test_asked_columns_of_a_file_are_kept_in_its_order(name, asked, tmp_path):
    columns = {"Kunde": [5, 3, 9, 1, 2], **SALES}
    fit = a1gm.fit_file(as_file(name, columns, tmp_path), **asked)
    assert list(fit.col_labels) == ["jan", "feb"]
    assert fit.col_factor[1] == pytest.approx(2 * fit.col_factor[0])
    fit.save(tmp_path / "fit.json")
    for one in (fit, a1gm.load(tmp_path / "fit.json")):
        assert one.impute(pd.DataFrame(columns))["feb"][3] == pytest.approx(8.0)


def test_another_file_is_filled_by_name_in_whatever_order_is_asked(tmp_path):
    fit, asked = a1gm.fit(pd.DataFrame(SALES)), ["feb", "jan"]
    path, out = as_file("a.csv", SALES, tmp_path), tmp_path / "out.csv"
    a1gm.impute_file(path, out, fit=fit, columns=asked)
    assert pd.read_csv(out)["feb"][3] == pytest.approx(8.0)


@pytest.mark.parametrize("name", TO_FILE)
@pytest.mark.parametrize("cells", [list("abcde"), [True, False] * 2 + [True]])
def test_asked_column_of_text_is_refused(name, cells, tmp_path):
    if name == "a.parquet" and cells[0] is True:
        return  # bools with a type are numbers, where asked for
    path = as_file(name, {"shop": cells, **SALES}, tmp_path)
    with pytest.raises(NotNumericError, match="column 'shop'"):
        a1gm.fit_file(path, columns=["shop", "jan"])


@pytest.mark.filterwarnings("ignore::a1gm.exceptions.DataHintWarning")
def test_text_without_a_cell_in_a_later_piece():
    table = a1gm.PatternTable().update(pa.table({"a": [1.0], "b": [2.0], "n": ["x"]}))
    table.update(pa.table({"a": [2.0], "b": [4.0], "n": pa.nulls(1)}))
    assert list(table.solve().col_labels) == ["a", "b"]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", REFUSED)
def test_tables_without_a_column_to_fit_are_refused(way, name, tmp_path):
    with pytest.raises(A1gmError):
        WAYS[way](REFUSED[name], tmp_path)


@pytest.mark.parametrize("way", ["pandas", "CSV", "sheet", "command"])
def test_numbers_and_text_in_one_column_are_refused(way, tmp_path):
    mixed = {**data("a", "b"), "c": [1, "n/k", 2.5, None, 3, 4]}
    with pytest.raises(A1gmError, match="n/k"):
        WAYS[way](mixed, tmp_path)


# ----------------------------------------------------------------------- cross-tables
@pytest.fixture(params=[("No", "Yes"), ("Store", "Online"), ("Day", "Night", "id")])
def cross(request):
    """A cross-table whose columns are called like labels."""
    rng = np.random.default_rng(0)
    shops = pd.Series(rng.integers(1, 6, 200), name="shop")
    levels = pd.Series(rng.choice(request.param, 200), name="level")
    return pd.crosstab(shops, levels)


def test_all_columns_of_a_cross_table_are_data(cross, tmp_path):
    names = list(cross)
    assert list(a1gm.fit(cross).col_labels) == names
    with pytest.warns(DataHintWarning, match="'note' as not part of the table"):
        assert list(a1gm.fit(cross.assign(note="x")).col_labels) == names
    assert list(a1gm.distributed.fit(dd.from_pandas(cross, 2)).col_labels) == names
    cross.to_parquet(tmp_path / "cross.parquet")
    fit = a1gm.fit_file(tmp_path / "cross.parquet")
    assert list(fit.col_labels) == names
    assert list(fit.row_labels) == list("12345")


def test_labels_of_a_cross_table_after_reset_index_name_the_rows(cross):
    sites = cross.set_axis(list("abcdefgh")[: cross.shape[1]], axis=1)
    sites = sites.rename_axis(columns="level").reset_index()
    with pytest.warns(DataHintWarning, match="'shop' as row labels"):
        assert "shop" not in a1gm.fit(sites).col_labels
    named = cross.set_axis(list("abcde")).rename_axis("shop").reset_index()
    assert list(a1gm.fit(named).col_labels) == list(cross)


PIVOTS: dict[str, Callable[[pd.DataFrame], pd.DataFrame]] = {
    "pivot_table": lambda cells: cells.pivot_table(
        index=["name", "year"], columns="product", values="sales"
    ),
    "unstack": lambda cells: (
        cells.groupby(["name", "year", "product"]).sales.sum().unstack()
    ),
    "crosstab": lambda cells: pd.crosstab(
        [cells["name"], cells["year"]],
        cells["product"],
        values=cells.sales,
        aggfunc="sum",
    ),
}
RESET: dict[str, Callable[[pd.DataFrame], pd.DataFrame]] = {
    "all": lambda frame: frame.reset_index(),
    "name": lambda frame: frame.reset_index().set_index("name"),
    "one": lambda frame: frame.reset_index(level=1),
    "some rows": lambda frame: frame.reset_index(level=1).reset_index(drop=True)[1:],
}


@pytest.mark.parametrize("pivot", PIVOTS)
@pytest.mark.parametrize("reset", RESET)
@pytest.mark.parametrize("products", [("apples", "pears"), ("zinc", "zircon")])
def test_keys_of_a_pivot_after_reset_index_are_labels(pivot, reset, products, tmp_path):
    keys = pd.MultiIndex.from_product(
        [["north", "south"], range(2000, 2005), products],
        names=["name", "year", "product"],
    )
    sales = RNG.gamma(3, 9, len(keys))
    cells = pd.Series(sales, keys, name="sales").reset_index()
    frame = RESET[reset](PIVOTS[pivot](cells))
    frame.to_parquet(tmp_path / "pivot.parquet")
    ways = (a1gm.fit, frame), (a1gm.fit_file, tmp_path / "pivot.parquet")
    for fit_of, table in ways:
        with noted() as found:
            assert list(fit_of(table).col_labels) == sorted(products)
        assert any("took 'year' as" in text for text in found.texts)


@pytest.mark.parametrize("levels", [("No", "Yes"), ("Day", "Night", "Dusk")])
def test_levels_called_like_labels_stay_data_behind_a_number_key(levels):
    years = pd.Series(RNG.integers(2000, 2006, 200), name="year")
    table = pd.crosstab(years, pd.Series(RNG.choice(levels, 200), name="level"))
    with pytest.warns(DataHintWarning, match="'year' as row labels"):
        assert list(a1gm.fit(table.reset_index()).col_labels) == sorted(levels)


def test_levels_in_the_order_of_their_categories_are_data(tmp_path):
    levels = pd.Categorical(RNG.choice(["No", "Maybe", "Yes"], 200))
    levels = pd.Series(levels.reorder_categories(["No", "Maybe", "Yes"]), name="level")
    table = pd.crosstab(pd.Series(RNG.integers(1, 6, 200), name="shop"), levels)
    table.to_parquet(tmp_path / "cross.parquet")
    for fit in (a1gm.fit(table), a1gm.fit_file(tmp_path / "cross.parquet")):
        assert list(fit.col_labels) == ["No", "Maybe", "Yes"]


def test_margins_of_a_cross_table_are_hinted_at():
    shops = pd.Series(RNG.integers(1, 6, 200), name="shop")
    years = pd.Series(RNG.integers(2000, 2006, 200), name="year")
    levels = pd.Series(RNG.choice(["No", "Yes"], 200), name="level")
    for rows in (shops, [shops, years]):
        with noted() as found:
            a1gm.fit(pd.crosstab(rows, levels, margins=True))
        assert any("column 'All' looks like the total" in text for text in found.texts)
        assert any("row 'All' looks like the total" in text for text in found.texts)


def test_columns_with_totals_are_data_for_scale(cross, tmp_path):
    plain = pd.DataFrame(cross.to_numpy() + 1.0, columns=list(cross))
    totals = pd.Series(100.0, list(cross))
    wanted = a1gm.scale(plain.to_numpy(), col_totals=totals.to_numpy()).table
    np.testing.assert_allclose(a1gm.scale(plain, col_totals=totals).table, wanted)
    plain.to_csv(tmp_path / "seed.csv", index=False)
    totals.rename("total").to_csv(tmp_path / "totals.csv", index_label="level")
    out = tmp_path / "out.csv"
    run(
        "scale",
        tmp_path / "seed.csv",
        "--col-totals",
        tmp_path / "totals.csv",
        "-o",
        out,
    )
    np.testing.assert_allclose(pd.read_csv(out), wanted)


# ------------------------------------------------------------------ names of columns
NAMED: dict[str, Callable[..., Any]] = {
    "fit": lambda frame, folder, **names: a1gm.fit(frame, **names),
    "fit_many": lambda frame, folder, **names: a1gm.fit_many([frame], **names)[0],
    "fit_file": lambda frame, folder, **names: a1gm.fit_file(folder, **names),
    "impute_file": lambda frame, folder, **names: a1gm.impute_file(
        folder, folder.with_name("filled.csv"), **names
    ),
    "PatternTable": lambda frame, folder, **names: (
        a1gm.PatternTable(**names).update(frame[:3]).update(frame[3:]).solve()
    ),
    "Dask": lambda frame, folder, **names: a1gm.distributed.fit(
        dd.from_pandas(frame, npartitions=2), **names
    ),
    "lazy polars": lambda frame, folder, **names: a1gm.fit(
        pl.from_pandas(frame).lazy(), **names
    ),
    "DuckDB": lambda frame, folder, **names: a1gm.fit(
        duckdb_relation(pa.Table.from_pandas(frame)), **names
    ),
    "reader": lambda frame, folder, **names: a1gm.fit(
        pa.Table.from_pandas(frame).to_reader(), **names
    ),
}
NOT_AGAIN = "PatternTable", "Dask", "reader"  # the table is not read a second time


@pytest.mark.parametrize("way", NAMED)
@pytest.mark.parametrize(
    ("names", "fitted"),
    [
        ({"id": "a"}, ["b", "c", "d"]),
        ({"exclude": "b"}, ["a", "c", "d"]),
        ({"columns": ["b", "d"]}, ["b", "d"]),
        ({"id": "d", "exclude": ["b"]}, ["a", "c"]),
    ],
)
def test_every_way_takes_the_names_of_columns(way, names, fitted, tmp_path):
    frame = pd.DataFrame(data("a", "b", "c", "d"))
    path = tmp_path / "t.csv"
    frame.to_csv(path, index=False)
    fit = NAMED[way](frame, path, **names)
    assert list(fit.col_labels) == fitted
    truth = a1gm.fit(frame[fitted].to_numpy(float))
    np.testing.assert_allclose(fit.col_factor, truth.col_factor, rtol=1e-12)
    if way not in NOT_AGAIN:
        assert fit.divergence == pytest.approx(truth.divergence)
    with pytest.raises((A1gmError, A1gmWarning), match="is not the name of one"):
        NAMED[way](frame, path, id=[["a"]])


@pytest.mark.parametrize("way", NAMED)
def test_what_was_inferred_is_said_once(way, tmp_path):
    frame = pd.DataFrame({**labels("year"), **data("a", "b", "c")})
    path = tmp_path / "t.csv"
    frame.to_csv(path, index=False)
    with noted() as found:
        fit = NAMED[way](frame, path)
        assert np.isnan(fit.divergence) == (way in NOT_AGAIN)
    assert [text.count("'year'") for text in found.texts] == [1]
