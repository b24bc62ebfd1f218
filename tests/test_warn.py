"""Warnings that point at the line of the user that led to them."""

import warnings

import pytest

from a1gm._warn import warn_user

CALLS_ON = "def call(function, *given):\n    return function(*given)\n"


def in_module(name):
    """A function of a module of that name, which calls another one."""
    made = {"__name__": name}
    exec(compile(CALLS_ON, f"<{name}>", "exec"), made)
    return made["call"]


@pytest.mark.parametrize(
    ("through", "where"),
    [
        ([], __file__),
        (["a1gm.nmmf.result", "a1gm", "sklearn.pipeline"], __file__),
        (["a1gm.estimators", "elsewhere", "sklearn.utils"], "<elsewhere>"),
        (["a1gmore"], "<a1gmore>"),
    ],
)
def test_it_points_at_the_innermost_line_outside(through, where):
    call = warn_user
    given = ["careful", UserWarning]
    for name in through:
        call, given = in_module(name), [call, *given]
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        call(*given)
    assert [w.filename for w in said] == [where]
    assert str(said[0].message) == "careful"
