"""Warnings that point at the line of the user that led to them."""

import warnings

import numpy as np
import pytest

import a1gm
from a1gm._base.warn import warn_user

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
        (["a1gm.nmmf", "a1gm", "sklearn.pipeline"], __file__),
        (["a1gm.estimators", "elsewhere", "sklearn.utils"], "<elsewhere>"),
        (["a1gmore"], "<a1gmore>"),
        # Decorators, context managers and cached properties stand in between.
        (["a1gm", "numpy._core._ufunc_config", "contextlib", "a1gm"], __file__),
        (["a1gm", "functools", "a1gm", "pandas.core.frame"], __file__),
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


def test_every_warning_of_the_package_points_here(tmp_path):
    """Files, blocks of rows and estimators: however deep it is found."""
    X = np.array([[1.0, np.nan], [np.nan, 2.0], [np.nan, np.nan]])
    path = tmp_path / "table.csv"
    path.write_text("a,b\n1,\n,2\n,\n")
    total = tmp_path / "total.csv"
    total.write_text("shop,jan,feb\na,1,2\nb,2,3\nTotal,3,5\n")
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        a1gm.fit(X)
        a1gm.fit(X, on_undetermined="ignore").impute(X, on_undetermined="warn")
        a1gm.fit_file(path)
        a1gm.fit_file(total)
        a1gm.PatternTable().update(X).solve()
        a1gm.RankOneNMF().fit(X).transform(X)
        a1gm.RankOneImputer().fit(X).transform(X)
        a1gm.fit_nmmf(X).impute(X, on_undetermined="warn")
        several = a1gm.fit_nmmf(X, Z=X[:, :1])
        several.impute(X, on_undetermined="warn")
    assert len({w.lineno for w in said}) >= 10
    assert {w.filename for w in said} == {__file__}
