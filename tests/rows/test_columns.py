"""Which columns are the table: by names and types."""

import pytest

from a1gm._rows.columns import choose, is_label
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
        (number("store", "sales_per_store"), ["sales_per_store"], ["store"]),
        ({"day": "date", "a": "number", "": "number"}, ["a", ""], ["day"]),
    ],
)
def test_number_columns_that_are_not_labels_are_the_table(schema, table, ids):
    """More of them: tests/ways/test_columns.py."""
    choice = choose(schema)
    assert (choice.table, choice.ids, choice.kept) == (table, ids, [])


def test_german_names_of_labels():
    names = ["PLZ", "Filiale", "Kunde", "Artikel", "Jahr", "Monat"]
    for name in names:
        assert is_label(name, leads=False, is_first=False)
    assert not is_label("Umsatz", leads=True, is_first=True)


def test_what_is_asked_for_is_not_inferred():
    choice = choose(number("id", "a"), has_index=True)
    assert (choice.table, choice.ids, choice.kept) == (["a"], [], ["id"])
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
    schema = {"shop": "text", **number("year", "a"), "note": "text"}
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
