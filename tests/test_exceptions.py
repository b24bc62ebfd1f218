"""Every error is one a caller would already catch, and one of ours."""

from __future__ import annotations

import pickle
import re
from pathlib import Path

import pytest
import tblib.pickling_support

from a1gm import exceptions
from a1gm._base.warn import warn_user
from a1gm.exceptions import Call, Option

KINDS = [
    kind
    for name in exceptions.__all__
    if issubclass(kind := getattr(exceptions, name), BaseException)
]

BUILTINS = {
    "ClusterError": RuntimeError,
    "EngineError": RuntimeError,
    "DataError": ValueError,
    "FileFormatError": ValueError,
    "InfiniteValuesError": ValueError,
    "LabelError": LookupError,
    "MissingExtraError": ImportError,
    "MissingFileError": FileNotFoundError,
    "NegativeValuesError": ValueError,
    "NotNumericError": TypeError,
    "NotRepresentableError": ValueError,
    "OutputError": OSError,
    "ParameterError": ValueError,
    "TableTooLargeError": MemoryError,
    "TotalsError": ValueError,
    "UndeterminedError": ValueError,
    "WeightsError": ValueError,
}


def test_errors_are_builtins_and_ours():
    names = {n for n in exceptions.__all__ if n.endswith("Error")} - {"A1gmError"}
    assert names == set(BUILTINS)
    for name in names:
        error = getattr(exceptions, name)
        assert issubclass(error, BUILTINS[name])
        assert issubclass(error, exceptions.A1gmError)


def test_warnings_are_user_warnings_and_ours():
    for name in exceptions.__all__:
        if name.endswith("Warning"):
            assert issubclass(getattr(exceptions, name), UserWarning)
            assert issubclass(getattr(exceptions, name), exceptions.A1gmWarning)


def test_the_page_lists_every_class():
    page = Path(__file__).parent.parent / "docs" / "exceptions.md"
    listed = set(re.findall(r"`(?:a1gm\.exceptions\.)?(\w+)`", page.read_text("utf-8")))
    assert set(exceptions.__all__) <= listed


@pytest.mark.parametrize("kind", KINDS)
def test_messages_travel_between_processes_with_their_parts_and_fields(kind):
    text = "What: ", Option("decimal", ","), " or ", [Call("fit_many", "X"), "."]
    message = kind(*text, advice="Do.", where="a.csv", count=2)
    for again in (pickle.loads(pickle.dumps(message)), tblib_copy(message)):
        assert type(again) is kind
        assert str(again) == "a.csv: What: decimal=',' or a1gm.fit_many(X). Do."
        assert (again.parts, again.count) == (message.parts, 2)


def tblib_copy(error):
    """Copy an error the way Dask brings it home from a worker."""
    make, arguments, *_ = tblib.pickling_support.pickle_exception(error)
    return make(*arguments)


def test_messages_are_written_in_another_style():
    error = exceptions.DataError("Pass ", Option("tol"), " in 'tol='.", advice="Do.")
    assert str(error) == "Pass tol= in 'tol='. Do."
    assert error.render(lambda part: f"--{part.name}") == "Pass --tol in 'tol='. Do."
    assert error.render(with_advice=False) == "Pass tol= in 'tol='."
    again = error.within("x").within("f").advised("Go.")
    assert str(again) == "f, x: Pass tol= in 'tol='. Go."


def test_a_number_of_the_system_and_the_name_of_a_package_are_kept():
    full = pickle.loads(pickle.dumps(exceptions.OutputError("full", errno=28)))
    assert (str(full), full.errno) == ("full", 28)
    assert exceptions.MissingExtraError("no x", name="x").name == "x"


def test_a_warning_is_given_as_it_is():
    with pytest.warns(exceptions.DataHintWarning) as caught:
        warn_user(exceptions.DataHintWarning("Pass ", Option("id"), ".", count=1))
    assert caught[0].message.count == 1
    assert caught[0].filename == __file__
