"""Which kernel is used, and on how many threads."""

from __future__ import annotations

from support.commands import run_python

from a1gm import _kernel


def test_the_numpy_kernel_can_be_chosen():
    code = "import a1gm._kernel as k; print(k.is_compiled, k.kernel.__name__)"
    assert run_python(code, A1GM_KERNEL="numpy").stdout.split() == [
        "False",
        "a1gm._kernel.reference",
    ]
    assert run_python(code, A1GM_KERNEL="").stdout.split()[0] == "True"


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
    result = run_python(code, A1GM_KERNEL="")
    assert result.stdout.strip() == "['SlowKernelWarning']", result.stderr


def test_threads_as_asked_for_and_at_least_one():
    assert _kernel.threads_for(10**9, 3) == 3
    assert _kernel.threads_for(10**9, 2**70) == _kernel.MOST_THREADS
    assert _kernel.threads_for(10, None) >= 1
    assert _kernel.threads_for(10**9, None) >= 1
