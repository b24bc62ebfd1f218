"""Which columns are the table: by names and types."""

import pytest

from a1gm._rows.columns import choose
from a1gm.exceptions import LabelError, NotNumericError


def number(*names):
    return dict.fromkeys(names, "number")


@pytest.mark.parametrize(
    ("schema", "table", "ids"),
    [
        *(
            (number(name, "a", "24"), ["a", "24"], [name])
            for name in (
                *("Unnamed: 0", "year", "origin", "AY", "store", "sku", "customer"),
                *("date", "store_nbr"),
            )
        ),
        ({"day": "date", "a": "number", "": "number"}, ["a", ""], ["day"]),
    ],
)
def test_number_columns_that_are_not_labels_are_the_table(schema, table, ids):
    """More of them: tests/ways/test_columns.py."""
    choice = choose(schema)
    assert (choice.table, choice.ids, choice.kept) == (table, ids, [])


TEN = list(map(str, range(1, 11)))
FIVE = list(range(1990, 1995))


@pytest.mark.parametrize(
    ("schema", "table"),
    [
        (
            {"shop": "text", "city": "text", "open": "bool", **number("jan", "feb")},
            ["jan", "feb"],
        ),
        (number("AccidentYear", "12", "24"), ["12", "24"]),
        (number("origin", *TEN), TEN),
        (number("site", *FIVE), FIVE),
        (number("week_1", "week_2"), ["week_1", "week_2"]),
        (number("item1", "item2"), ["item1", "item2"]),
        (number("売上", "Год"), ["売上", "Год"]),
        (number("Ozone", "Wind", "Month", "Day"), ["Ozone", "Wind"]),
        (number("", "jan", "shop_sales"), ["jan", "shop_sales"]),
        (
            number("body_wt", "danger_index", "grams per day"),
            ["body_wt", "danger_index", "grams per day"],
        ),
        (number("store_nbr", "sales_per_store", "b"), ["sales_per_store", "b"]),
        (number("customer_id", "sku_no", "a", "b"), ["a", "b"]),
        (number("Yes", "No"), ["Yes", "No"]),
        (number("Online", "Store", "Phone"), ["Online", "Store", "Phone"]),
        (number("Control", "Patient"), ["Control", "Patient"]),
        (number("Morning", "Day", "Night"), ["Morning", "Day", "Night"]),
        (
            number("births per year", "deaths per year", "moves"),
            ["births per year", "deaths per year", "moves"],
        ),
        ({"city": "text", **number("year", "jan", "feb")}, ["jan", "feb"]),
    ],
)
def test_names_are_labels_where_they_lead_or_are_times(schema, table):
    assert choose(schema).table == table


def test_columns_with_a_named_axis_are_all_data():
    assert choose(number("No", "Yes"), has_axis=True).table == ["No", "Yes"]


def test_columns_with_totals_are_data():
    names = ["Store", "Online", "Phone"]
    assert choose(number(*names)).ids == ["Store"]
    assert choose(number(*names), data=[*names, "Fax"]).table == names
    schema = {"place": "text", **number("No", "Yes")}
    assert choose(schema, data=["No"]).table == ["No", "Yes"]


@pytest.mark.parametrize(
    "names", [("No", "Yes"), ("Day", "Night"), ("id", "sales"), ("Month", "Year")]
)
def test_one_column_left_by_guesses_is_refused(names):
    with pytest.raises(LabelError, match="taken for") as raised:
        choose(number(*names))
    assert all(repr(name) in str(raised.value) for name in names)
    assert choose(number(*names), columns=names).table == [*names]


def test_a_long_table_is_refused_with_the_call_that_fits_it():
    schema = {"shop": "text", **number("week", "units")}
    with pytest.raises(LabelError) as raised:
        choose(schema)
    call = "a1gm.fit_long(X, keys=['shop', 'week'], value='units')"
    assert str(raised.value).endswith(f"if the table has one row per cell, {call}.")


def test_text_is_no_guess():
    assert choose({"shop": "text", **number("sales")}).table == ["sales"]
    assert choose(number("id", "sales"), fewest=1).table == ["sales"]


def test_what_is_asked_for_is_not_inferred():
    choice = choose(number("id", "a", "b"), has_index=True)
    assert (choice.table, choice.ids, choice.kept) == (["a", "b"], [], ["id"])
    schema = {"shop": "text", **number("year", "a", "b"), "note": "text"}
    choice = choose(schema, id=["shop"], columns=["year", "a"])
    assert (choice.table, choice.ids) == (["year", "a"], ["shop"])
    assert choice.kept == ["b", "note"]
    assert choice.warning("X") is None
    choice = choose(schema, exclude=["year", "note"])
    assert choice.kept == ["year", "note"]
    assert choice.warning("X") is None  # leading text only
    assert choose(schema, id=["shop"]).kept == ["year", "note"]


def test_the_warning_names_inferred_columns_and_the_options():
    schema = {"shop": "text", **number("year", "a", "b"), "note": "text"}
    text = str(choose(schema).warning("X"))
    assert "'year' as row labels" in text
    assert "'note' as not part of the table" in text
    assert "'shop'" not in text
    for option in ("columns=", "id=", "exclude="):
        assert option in text


@pytest.mark.parametrize(
    ("schema", "options", "error", "part"),
    [
        (number("a"), {"id": ["b"]}, LabelError, "'b'"),
        (number("id", "year"), {}, LabelError, "'id', 'year' were taken for labels"),
        (number("id"), {}, LabelError, "'id' was taken for labels"),
        ({"a": "text", "b": "date"}, {}, NotNumericError, "'a', 'b'"),
        (number("a"), {"exclude": ["a"]}, LabelError, "columns="),
    ],
)
def test_refused(schema, options, error, part):
    with pytest.raises(error, match="X has no") as raised:
        choose(schema, **options)
    assert part in str(raised.value)
