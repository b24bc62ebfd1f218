"""Threads, failures half-way, refits and optional packages."""

from __future__ import annotations

import multiprocessing
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from joblib import Parallel, delayed
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

import a1gm
from a1gm import RankOneImputer, RankOneNMF

MODELS = [RankOneNMF(), RankOneImputer()]
models = pytest.mark.parametrize("model", MODELS, ids=str)


def table(n=300, m=6, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.gamma(2.0, size=(n, m))
    X[rng.random(X.shape) < 0.2] = np.nan
    X[0], X[:, 0] = 1.0, 1.0
    return X


def col_factor(X):
    return a1gm.fit(X, n_threads=2).col_factor


# -------------------------------------------------------------------------- threads
def test_threads_do_not_disturb_each_other():
    tables = [table(seed=seed) for seed in range(8)]
    expected = [col_factor(X) for X in tables]
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(col_factor, tables * 4))
    for k, factor in enumerate(found):
        np.testing.assert_array_equal(factor, expected[k % 8])


def test_one_model_serves_many_threads():
    X = table()
    model = RankOneImputer().fit(X)
    expected = model.transform(X)
    with ThreadPoolExecutor(4) as pool:
        for found in pool.map(lambda _: model.transform(X), range(16)):
            np.testing.assert_array_equal(found, expected)


def test_nested_jobs():
    X = table()
    fits = Parallel(n_jobs=2)(delayed(a1gm.fit)(X, n_threads=2) for _ in range(3))
    for fit in fits:
        np.testing.assert_array_equal(fit.col_factor, col_factor(X))


@pytest.mark.skipif(sys.platform == "win32", reason="no fork")
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_fork_after_threads_were_used():
    X = table(40_000, 10)
    expected = col_factor(X)
    with multiprocessing.get_context("fork").Pool(1) as pool:
        found = pool.apply_async(col_factor, (X,)).get(timeout=60)
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("n_threads", [1, 2, 3, 7])
def test_any_number_of_threads_gives_the_answer(n_threads):
    X = table(40_000, 10)
    found = a1gm.fit(X, n_threads=n_threads).col_factor
    np.testing.assert_allclose(found, a1gm.fit(X, n_threads=1).col_factor, rtol=1e-12)


# ------------------------------------------------------------------ failing half-way
@models
def test_a_failed_fit_leaves_the_model_as_it_was(model):
    X = table()
    model = clone(model).fit(X)
    before = model.transform(X)
    state = dict(vars(model))
    bad = X[:, :4].copy()
    bad[7, 2] = -1.0
    with pytest.raises(ValueError, match="Negative values in data"):
        model.fit(bad)
    assert vars(model).keys() == state.keys()
    assert [name for name in state if vars(model)[name] is not state[name]] == []
    np.testing.assert_array_equal(model.transform(X), before)


@models
def test_an_interrupted_fit_leaves_the_model_as_it_was(model, monkeypatch):
    X = table()
    model = clone(model).fit(X)
    before = model.transform(X)

    def interrupt(*args, **kwargs):
        raise KeyboardInterrupt

    home = (
        "a1gm.estimators._nmf"
        if isinstance(model, RankOneNMF)
        else ("a1gm.estimators._imputer")
    )
    monkeypatch.setattr(f"{home}.fit_patterns", interrupt)
    with pytest.raises(KeyboardInterrupt):
        model.fit(X[:, :3])
    np.testing.assert_array_equal(model.transform(X), before)


def test_a_failed_partial_fit_counts_nothing():
    X = table()
    model = RankOneNMF().partial_fit(X[:100])
    bad = X[100:200].copy()
    bad[50, 1] = np.inf
    for weight in (None, np.ones(100)):
        with pytest.raises(ValueError, match=r"X\[150, 1\] = inf"):
            model.partial_fit(bad, sample_weight=weight)
    model.partial_fit(X[100:])
    np.testing.assert_allclose(
        model.components_, RankOneNMF().fit(X).components_, rtol=1e-12
    )


# ---------------------------------------------------------------- unfitted and refits
@models
def test_unfitted_use(model):
    for method in ("transform", "inverse_transform", "get_feature_names_out"):
        with pytest.raises(NotFittedError):
            getattr(clone(model), method)(*([table()] if "transform" in method else []))
    assert not hasattr(RankOneNMF(), "components_")
    assert not hasattr(RankOneNMF(), "reconstruction_err_")


@models
def test_clone_and_refit_start_clean(model):
    import pandas as pd

    X = table()
    fitted = clone(model).fit(pd.DataFrame(X, columns=list("abcdef")))
    assert list(fitted.feature_names_in_) == list("abcdef")
    fitted.fit(X[:, :4])
    assert fitted.n_features_in_ == 4
    assert not hasattr(fitted, "feature_names_in_")
    fresh = clone(fitted)
    with pytest.raises(NotFittedError):
        fresh.transform(X)
    np.testing.assert_array_equal(
        fitted.transform(X[:, :4]), clone(model).fit(X[:, :4]).transform(X[:, :4])
    )


def test_set_params_counts_at_the_next_fit():
    model = RankOneNMF().fit(table())
    model.set_params(tol=-1.0)
    assert model.components_.shape == (1, 6)
    with pytest.raises(ValueError, match="tol"):
        model.fit(table())


# --------------------------------------------------------------- packages not there
def run(code, **env):
    import os

    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, **env},
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_without_the_compiled_kernel_the_other_one_speaks_once():
    out = run(
        "import sys\nsys.modules['a1gm._kernel._native'] = None\n"
        "import warnings, numpy as np, a1gm\n"
        "X = np.array([[1.0, 2.0], [2.0, np.nan]])\n"
        "with warnings.catch_warnings(record=True) as seen:\n"
        "    warnings.simplefilter('always')\n"
        "    for _ in range(3): assert a1gm.fit(X).impute(X)[1, 1] == 4.0\n"
        "print([w.category.__name__ for w in seen])\n"
    )
    assert out.strip() == "['SlowKernelWarning']"


def test_the_reference_kernel_reads_every_container():
    run(
        "import numpy as np, pandas as pd, polars as pl, scipy.sparse as sp, a1gm\n"
        "X = np.array([[1.0, 2.0, 3.0], [2.0, np.nan, 6.0], [1.0, 1.0, np.nan]])\n"
        "want = a1gm.fit(X).col_factor\n"
        "S = sp.csr_array(X)\n"
        "for t in (pd.DataFrame(X), pl.DataFrame(X), pl.DataFrame(X).fill_nan(None)):\n"
        "    np.testing.assert_allclose(a1gm.fit(t).col_factor, want, rtol=1e-9)\n"
        "found = a1gm.fit(S, absent='missing').col_factor\n"
        "np.testing.assert_allclose(found, want, rtol=1e-9)\n",
        A1GM_KERNEL="numpy",
    )
