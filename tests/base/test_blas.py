"""Threads of BLAS, inside and after fits on several threads."""

from __future__ import annotations

from a1gm._base.blas import single_threaded_blas


def n_threads():
    from threadpoolctl import threadpool_info

    return [
        own["num_threads"] for own in threadpool_info() if own["user_api"] == "blas"
    ]


def test_the_last_that_leaves_restores_the_threads():
    before = n_threads()
    with single_threaded_blas:
        with single_threaded_blas:
            assert set(n_threads()) == {1}
        assert set(n_threads()) == {1}
    assert n_threads() == before
