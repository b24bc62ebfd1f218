"""Every error is one a caller would already catch, and one of ours."""

from __future__ import annotations

import pickle
import re
import warnings
from pathlib import Path

import pytest

import a1gm
from a1gm import exceptions

BUILTINS = {
    "ClusterError": RuntimeError,
    "DataError": ValueError,
    "DimensionError": ValueError,
    "FileFormatError": ValueError,
    "InfiniteValuesError": ValueError,
    "LabelError": ValueError,
    "MissingExtraError": ImportError,
    "MissingFileError": FileNotFoundError,
    "ModelFileError": ValueError,
    "NegativeValuesError": ValueError,
    "NoSuchCellError": IndexError,
    "NotNumericError": TypeError,
    "NotRepresentableError": ValueError,
    "NothingObservedError": ValueError,
    "OutputError": OSError,
    "ParameterError": ValueError,
    "TableTooLargeError": MemoryError,
    "UndeterminedError": ValueError,
    "WeightsError": ValueError,
}


@pytest.mark.parametrize("name", sorted(BUILTINS))
def test_errors_are_builtins_and_ours(name):
    error = getattr(exceptions, name)
    assert issubclass(error, BUILTINS[name])
    assert issubclass(error, exceptions.A1gmError)
    assert error.__doc__


def test_there_are_no_other_errors():
    defined = {n for n in exceptions.__all__ if n.endswith("Error")} - {"A1gmError"}
    assert defined == set(BUILTINS)


def test_warnings_are_user_warnings_and_ours():
    for name in exceptions.__all__:
        if name.endswith("Warning"):
            assert issubclass(getattr(exceptions, name), UserWarning)
            assert issubclass(getattr(exceptions, name), exceptions.A1gmWarning)


def test_the_page_lists_every_class():
    page = Path(__file__).parent.parent / "docs" / "exceptions.md"
    listed = set(re.findall(r"`(?:a1gm\.exceptions\.)?(\w+)`", page.read_text("utf-8")))
    assert set(exceptions.__all__) <= listed


def test_the_tree_in_the_docstring_is_complete():
    drawn = set(re.findall(r"\b([A-Z]\w+(?:Error|Warning))\b", exceptions.__doc__))
    assert set(exceptions.__all__) <= drawn


@pytest.mark.parametrize("name", sorted(exceptions.__all__))
def test_errors_can_be_made_the_way_dask_brings_them_home(name):
    error = getattr(exceptions, name)
    assert str(error.__new__(error, "why")) == "why"


@pytest.mark.parametrize("name", sorted(exceptions.__all__))
def test_errors_can_travel_between_processes(name):
    error = getattr(exceptions, name)("what, where, what to do")
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is type(error)
    assert str(again) == str(error)


def test_one_class_silences_every_warning():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", exceptions.A1gmWarning)
        a1gm.fit([[1.0, float("nan")], [float("nan"), 2.0]])
