"""``a1gm.fit``: the steps put together."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from support import oracles
from support.tables import KINDS, make_table

import a1gm
from a1gm import _kernel
from a1gm._kernel import reference
from a1gm.exceptions import ParameterError

nan = np.nan
pytestmark = pytest.mark.filterwarnings("ignore::a1gm.exceptions.A1gmWarning")


@pytest.mark.parametrize(
    ("kind", "solver"),
    [
        ("complete", "closed form"),
        ("corner", "closed form"),
        ("grid", "closed form"),
        ("staircase", "closed form"),
        ("at random", "scaling"),
        ("banded", "newton"),
    ],
)
def test_the_way_it_was_solved_is_told(kind, solver):
    X = make_table(kind, 60, 50, seed=1)
    fit = a1gm.fit(X)
    assert fit.solver == solver
    assert (fit.n_iter == 0) == (solver == "closed form")


@pytest.mark.parametrize("shape", [(2000, 300), (900, 1000)])
@pytest.mark.parametrize("share", [0.02, 0.5, 0.97])
def test_wide_tables_of_any_density(shape, share):
    rng = np.random.default_rng(2)
    X = rng.uniform(0.5, 2.0, shape)
    X[rng.random(shape) < share] = nan
    fit = a1gm.fit(X)
    assert oracles.certificate(X, fit) <= 1e-10


@pytest.mark.parametrize("kind", sorted(KINDS))
def test_tolerances_are_kept(kind):
    X = make_table(kind, 40, 30, seed=6)
    for tol in (1e-3, 1e-6, 1e-12):
        fit = a1gm.fit(X, tol=tol)
        assert fit.certificate <= tol + 1e-14
        assert fit.converged
        assert fit.tol == tol


@pytest.mark.parametrize("n_threads", [1, 2, 3, 4, None])
@pytest.mark.parametrize("kind", ["few patterns", "at random", "staircase"])
def test_threads_leave_no_trace(kind, n_threads):
    X = make_table(kind, 90_000, 9, seed=7)
    one, other = a1gm.fit(X, n_threads=1), a1gm.fit(X, n_threads=n_threads)
    np.testing.assert_allclose(other.row_factor, one.row_factor, rtol=1e-12)
    np.testing.assert_allclose(other.col_factor, one.col_factor, rtol=1e-12)


# -------------------------------------------------------------- the NumPy kernel
@pytest.fixture
def numpy_kernel(monkeypatch):
    for name, module in list(sys.modules.items()):
        is_ours = name.startswith("a1gm")
        if is_ours and getattr(module, "kernel", None) is _kernel.kernel:
            monkeypatch.setattr(module, "kernel", reference)


@pytest.mark.parametrize("kind", sorted(KINDS))
@pytest.mark.parametrize("zeros", [0.0, 0.3])
def test_both_kernels_give_the_same_fit(kind, zeros, request):
    X = make_table(kind, 25, 14, seed=9, zeros=zeros)
    fast = a1gm.fit(X)
    request.getfixturevalue("numpy_kernel")
    slow = a1gm.fit(X)
    assert oracles.certificate(X, slow) <= 1e-10
    np.testing.assert_allclose(slow.row_factor, fast.row_factor, rtol=1e-7, atol=1e-300)
    np.testing.assert_allclose(slow.col_factor, fast.col_factor, rtol=1e-7, atol=1e-300)
    np.testing.assert_array_equal(slow.row_block, fast.row_block)
    np.testing.assert_array_equal(slow.col_block, fast.col_block)
    assert slow.attained == fast.attained
    assert slow.n_undetermined == fast.n_undetermined
    assert (slow.n_iter == 0) == (fast.n_iter == 0)


@pytest.mark.nightly
@pytest.mark.skipif(not _kernel.is_compiled, reason="this is that run")
def test_the_suite_passes_on_the_numpy_kernel():
    here = Path(__file__).parents[1]
    files = [
        "properties/test_exactness.py",
        "fit/test_fates.py",
        "observe/test_weights.py",
        "solve/test_signed.py",
        "solve/test_range.py",
        "solve/test_patterns.py",
        "rows/test_read.py",
    ]
    # Thin cuts, as of scales far apart, are settled by the compiled kernel only.
    large = "wide or many or scales or larger or empty_rows"
    result = subprocess.run(
        [
            *(sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider"),
            *("-m", "not oracle and not nightly", "-k", f"not ({large})"),
            *(str(here / file) for file in files),
        ],
        env={
            **os.environ,
            "A1GM_KERNEL": "numpy",
            "HYPOTHESIS_PROFILE": "quick",
        },
        cwd=here.parent,
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 0, result.stdout[-3000:]


# ------------------------------------------------------------------------- rank 1
def test_other_ranks_are_refused_with_a_lesson():
    X = np.ones((3, 2))
    assert a1gm.fit(X, rank=1).converged
    for other in (2, 0, True, "auto"):
        with pytest.raises(ParameterError, match=r"rank=.*rank 1 only"):
            a1gm.fit(X, rank=other)


def test_an_unknown_option_is_a_type_error():
    with pytest.raises(TypeError, match="unexpected keyword argument 'tolerance'"):
        a1gm.fit(np.ones((2, 2)), tolerance=1e-3)


@pytest.mark.parametrize(
    ("name", "bad"),
    [
        *(("tol", bad) for bad in (np.nan, 0.0, -1.0, np.inf, "x", True)),
        *(("max_iter", bad) for bad in (0, -1, 1.5, np.nan, "x", None, True, 10**19)),
        *(("n_threads", bad) for bad in (0, -1, 1.5, "x", True)),
        *(("negatives", bad) for bad in ("abs", None, 1)),
        *(("on_undetermined", bad) for bad in ("error", None, 1)),
        *(("absent", bad) for bad in ("zero", "missing", 0)),
    ],
)
def test_bad_options_are_refused_by_name(name, bad):
    with pytest.raises(a1gm.exceptions.ParameterError, match=name):
        a1gm.fit(np.ones((2, 2)), **{name: bad})


def test_no_tolerance_is_the_usual_one_everywhere(tmp_path):
    X, frame = np.ones((2, 2)), pd.DataFrame({"i": [0, 1], "j": [0, 1], "x": [1, 1]})
    path = tmp_path / "x.csv"
    path.write_text("x,y\n1,2\n2,4\n")
    table = a1gm.PatternTable().update(X)
    pairs = {"keys": ["i", "j"], "value": "x", "on_undetermined": "ignore"}
    fits = [
        a1gm.fit(X, tol=None),
        a1gm.fit_file(path, tol=None),
        a1gm.impute_file(path, tmp_path / "filled.csv", tol=None),
        a1gm.fit_long(frame, **pairs, tol=None),
        a1gm.fit_many([X], tol=None)[0],
        a1gm.fit_groups(frame.assign(g=1), "g", **pairs, tol=None)[1],
        a1gm.fit_tensor(np.ones((2, 2, 2)), tol=None),
        a1gm.fit_nmmf(X, X, tol=None),
        a1gm.scale(X, [1, 1], [1, 1], tol=None),
        table.solve(tol=None),
    ]
    assert {fit.tol for fit in fits} == {1e-10}
    for estimator in (a1gm.RankOneNMF, a1gm.RankOneImputer):
        assert estimator(tol=None).fit(X).n_features_in_ == 2


def test_impute_has_bounds_and_rounds():
    X = np.array([[1.0, 2, 3], [2, np.nan, 7], [2, 1, 4]])
    filled, lower, upper = a1gm.impute(X, interval=0.9)
    fit = a1gm.fit(X)
    np.testing.assert_array_equal(filled, fit.impute(X))
    bounds = fit.uncertainty().interval(X, 0.9)
    np.testing.assert_array_equal([lower, upper], bounds)
    np.testing.assert_array_equal(a1gm.impute(X, round=0), fit.impute(X, round=0))
    with pytest.raises(TypeError, match=r"^impute\(\) got an unexpected keyword"):
        a1gm.impute(X, intervals=0.9)


def test_numpy_numbers_are_good_options():
    options = {"tol": np.float32(1e-9), "max_iter": np.int64(500)}
    assert a1gm.fit(np.ones((2, 2)), n_threads=np.uint8(2), **options).converged


@pytest.mark.parametrize("n_threads", [2**31, 2**63, 2**70])
def test_more_threads_than_can_be_counted_are_as_many_as_help(n_threads):
    X = np.ones((3, 2))
    a1gm.fit(X, n_threads=n_threads)
    a1gm.fit_nmmf(X, X, n_threads=n_threads)
    a1gm.PatternTable(n_threads=n_threads).update(X).solve()
    a1gm.RankOneNMF(n_threads=n_threads).fit(X)
