"""Errors of joint fits where nothing is ordinary; the numbers are in the oracles."""

from __future__ import annotations

import pickle
import warnings

import numpy as np
import pandas as pd
import pytest

import a1gm
from a1gm.exceptions import EmptyLineWarning, LabelError, ParameterError

nan = np.nan
X = np.array([[20.0, 41.0, 57.0], [12.0, 18.0, nan], [9.0, 25.0, 30.0]])
Y = np.array([[9.0, 22.0, 31.0], [5.0, nan, 11.0]])


def test_names_and_words():
    assert set(a1gm.fit_nmmf(X, Y, alpha=0.0).uncertainty()) == {"X"}
    frame = pd.DataFrame(X, columns=list("abc"), index=list("rst"))
    u = a1gm.fit_nmmf(frame, Y).uncertainty()["X"]
    assert "table: X" in repr(u)
    assert "<table>" in u._repr_html_()
    assert u.standard_error("s", "c") == u.standard_error(1, 2)
    assert list(u.totals("column").labels) == list("abc")
    assert u.index("b").value[1] == 1.0
    with pytest.raises(ParameterError, match="do not pair up"):
        u.standard_error([0, 1], [0, 1, 2])
    with pytest.raises(LabelError, match="No column is called 'd'"):
        u.standard_error("s", "d")


def test_a_pickled_fit_keeps_its_errors_but_not_its_missing_cells():
    fit = a1gm.fit_nmmf(X, Y, alpha=2.0)
    own, again = (f.uncertainty()["Y"] for f in (fit, pickle.loads(pickle.dumps(fit))))
    assert again.dispersion == pytest.approx(own.dispersion)
    assert again.standard_error(1, 1) == pytest.approx(own.standard_error(1, 1))
    with pytest.raises(ParameterError, match="pickled without its tables"):
        again.totals()


def test_a_base_without_a_factor_is_refused_by_its_name_in_the_table():
    more = pd.DataFrame(np.vstack([Y, np.zeros(3)]), index=list("uvw"))
    u = a1gm.fit_nmmf(X, more).uncertainty("poisson")["Y"]
    with pytest.raises(ParameterError, match=r"row 'w', has no factor.*Choose another"):
        u.index("w", by="row")
    assert np.isnan(u.index(None, by="row").value).tolist() == [False, False, True]


def test_what_the_fit_has_warned_of_is_not_said_again():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.poisson(20.0, (5, 4)) + 1.0, index=list("abcde"))
    frame.loc["d"] = np.nan
    with pytest.warns(EmptyLineWarning, match="'d'"):
        fit = a1gm.fit_nmmf(frame)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = fit.uncertainty()
    assert found["X"].dof == 9
