"""Which kernel is used, and on how many threads."""

from __future__ import annotations

import os
import subprocess
import sys

from a1gm import _kernel


def run(code: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-W", "error", "-c", code],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=False,
    )


def test_the_numpy_kernel_can_be_chosen():
    code = "import a1gm._kernel as k; print(k.is_compiled, k.kernel.__name__)"
    assert run(code, A1GM_KERNEL="numpy").stdout.split() == [
        "False",
        "a1gm._kernel.reference",
    ]
    assert run(code, A1GM_KERNEL="").stdout.split()[0] == "True"


def test_a_broken_kernel_is_told_once():
    code = """
import sys, warnings
sys.modules["a1gm._kernel._native"] = None
import numpy as np, a1gm
with warnings.catch_warnings(record=True) as said:
    warnings.simplefilter("always")
    for _ in range(3):
        a1gm.fit(np.ones((2, 2)))
print([w.category.__name__ for w in said])
"""
    result = run(code, A1GM_KERNEL="")
    assert result.stdout.strip() == "['SlowKernelWarning']", result.stderr


def test_threads_as_asked_for_and_at_least_one():
    assert _kernel.threads_for(10**9, 3) == 3
    assert _kernel.threads_for(10**9, 2**70) == _kernel.MOST_THREADS
    assert _kernel.threads_for(10, None) >= 1
    assert _kernel.threads_for(10**9, None) >= 1


def test_the_reference_kernel_reads_every_container():
    done = run(
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
    assert done.returncode == 0, done.stderr
