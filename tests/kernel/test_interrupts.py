"""Signals inside a long native step end it within a second (FAULTS 78)."""

import signal
import time
from functools import partial

import numpy as np
import pytest

from a1gm._base.bits import pack_bits
from a1gm._kernel import is_compiled, kernel


class _Enough(Exception):
    """What a signal raises here in place of KeyboardInterrupt."""


@pytest.fixture
def stopped_after():
    """Send a signal after some seconds of work; return how much more was done."""

    def raise_enough(*_):
        raise _Enough

    def measure(seconds, work):
        signal.setitimer(signal.ITIMER_PROF, seconds)
        started = time.process_time()  # whatever else the machine does
        with pytest.raises(_Enough):
            work()
        return time.process_time() - started - seconds

    before = signal.signal(signal.SIGPROF, raise_enough)
    yield measure
    signal.setitimer(signal.ITIMER_PROF, 0)
    signal.signal(signal.SIGPROF, before)


pytestmark = pytest.mark.skipif(not is_compiled, reason="NumPy is interrupted anyway")


@pytest.mark.parametrize("n_threads", [1, 2])
@pytest.mark.parametrize("holes", [0.0, 0.1])
def test_a_pass_is_interrupted(stopped_after, holes, n_threads):
    rng = np.random.default_rng(0)
    row = np.where(rng.random((1, 20_000)) < holes, np.nan, 1.0)
    part = (np.broadcast_to(row, (400_000, 20_000)), None, None, 0)  # seconds long
    observe = partial(kernel.observe, [part], n_threads, 1 << 20, False)
    assert stopped_after(0.1, observe) < 1.0
    few = (part[0][:100], *part[1:])  # the next call is not stopped
    row_sums, *_ = kernel.observe([few], n_threads, 1 << 20, False)
    np.testing.assert_array_equal(row_sums, np.full(100, np.nansum(row)))


def test_peeling_is_interrupted(stopped_after):
    n = 2_000_000
    first = np.random.default_rng(0).integers(0, n - 2, n)
    cols = (first[:, None] + np.arange(3)).astype(np.int32).ravel()
    ptr, sums = np.arange(0, 3 * n + 1, 3), np.ones(3 * n)
    reduce = partial(kernel.reduce_pairs, ptr, cols, sums, None, n)
    assert stopped_after(0.3, reduce) < 1.0


@pytest.mark.parametrize("n_threads", [1, 2])
@pytest.mark.parametrize("work", ["row_factors", "fill_rows", "divergence", "pearson"])
def test_placing_is_interrupted(stopped_after, work, n_threads):
    n, m = 400_000, 20_000  # seconds long
    h, nans = np.full(m, 1.0 / m), np.full(m, np.nan)
    part = (np.broadcast_to(np.ones((1, m)), (n, m)), None, None, 0)
    target = np.lib.stride_tricks.as_strided(np.empty((1, m)), (n, m), (0, 8))
    given = {
        "row_factors": (False, n_threads),
        "fill_rows": (nans, [target], False, n_threads),
        "divergence": (n_threads,),
        "pearson": (False, n_threads),
    }
    run = getattr(kernel, work)
    assert stopped_after(0.1, lambda: run([part], h, *given[work])) < 1.0


@pytest.mark.parametrize("factors", [0, 10**9])
def test_a_large_network_is_interrupted(stopped_after, factors):
    n = 400_000
    cols = np.random.default_rng(0).integers(0, n, (n, 4), np.int32)
    cols.sort(axis=1)
    cols += np.arange(4, dtype=np.int32)  # no column twice
    ptr, sums = np.arange(0, 4 * n + 1, 4), np.ones(4 * n)
    core = kernel.reduce_pairs(ptr, cols.ravel(), sums, None, n + 4)
    flow = kernel.Flow(core, *core.scale(core.start, 1e-9, 2, 2)[:2])
    c = core.core_col_sums  # no solution is good enough
    solve = partial(flow.solve, c, None, 0.0, 0.0, factors, 4, 2000)
    assert stopped_after(0.2, solve) < 1.0


def test_settling_is_interrupted(stopped_after):
    n = 1200  # 10 seconds
    rng = np.random.default_rng(0)
    bits = pack_bits(rng.random((n, n)) < 0.5)
    core = kernel.reduce_mask(bits, np.ones(n), np.ones(n), False, True)
    w, h = np.ones(n), np.ones(n)
    settle = partial(core.settle, w, h, None, None, None, 1e-10, 100, 0)
    assert stopped_after(0.1, settle) < 1.0
