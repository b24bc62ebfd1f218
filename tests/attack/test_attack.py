"""A small share of the attack with fixed seeds; `make attack` is all of it."""

from __future__ import annotations

import numpy as np
import pytest
from support.suite import daily

pytest.importorskip("flint")

from attack.__main__ import judge_apart, new_worker
from attack.judge import judge
from attack.oracle import truth_of
from attack.zoo import ANNOUNCED, DAMAGED, KINDS, RIGHT, case_of

nan = np.nan
TABLES = 30  # of a kind with share 1
FILES = 40  # of a format
#: Kinds of every run, one of each sort; the others run at night and in `make attack`.
EVERY_RUN = {
    *("zeros", "signed", "random sparse", "bridge with zeros", "weighted bridge"),
    *("extreme weights", "odd", "damaged csv", "damaged parquet", "damaged model"),
}


@pytest.mark.oracle
@pytest.mark.parametrize("kind", daily(KINDS, EVERY_RUN))
def test_nothing_is_silently_wrong(kind):
    for seed in range(int(np.ceil(TABLES * KINDS[kind].share))):
        verdict = judge(kind, seed)
        assert verdict.verdict in (RIGHT, ANNOUNCED), (seed, verdict)


#: Tables that were fitted wrong, proved too well, or spoken of by NumPy.
SEEN = {
    "span 120": [300711, 301132, 301181, 700338],
    "span 300": [
        *(636, 872, 966, 40087, 200566, 200777, 201252, 300537, 300565, 500038),
        *(700133, 701006, 701326),
    ],
    "extreme weights": [
        *(83, 168, 211, 251, 951, 1160, 1605, 1612, 20220, 300548, 500233, 1300527)
    ],
    "odd": [207, 217, 436, 445, 1488, 200002, 300052],
    "signed": [141, 345, 1161, 20051],
}


@pytest.mark.oracle
@pytest.mark.parametrize("kind", daily(SEEN, EVERY_RUN))
def test_what_was_seen_once_is_right_or_announced(kind):
    for seed in SEEN[kind]:
        verdict = judge(kind, seed)
        assert verdict.verdict in (RIGHT, ANNOUNCED), (seed, verdict)


@pytest.mark.parametrize("kind", daily(DAMAGED, EVERY_RUN))
def test_damaged_files_are_refused_or_read_right(kind):
    worker = new_worker()
    for seed in range(FILES):
        verdict = judge_apart(worker, kind, seed)
        assert verdict["verdict"] in (RIGHT, ANNOUNCED), (seed, verdict)
    worker.close()


# --------------------------------------------------------------- the oracle itself
def solve(X, start=None, *, exact=True):
    return truth_of(np.array(X), None, start, signed=False, exact=exact)


@pytest.mark.parametrize("exact", [False, True])
def test_the_oracle_knows_what_can_be_said_by_hand(exact):
    complete = np.arange(1.0, 13.0).reshape(4, 3)
    by_hand = np.outer(complete.sum(axis=1), complete.sum(axis=0)) / complete.sum()
    true = solve(complete, exact=exact)
    assert np.allclose(true.cells.astype(float), by_hand, rtol=1e-15)
    # A 2 x 2 table with a hole: the other three cells are met.
    true = solve([[1e-200, 1e200], [3e-150, nan]], exact=exact)
    hole = float(true.cells[1, 1] / np.longdouble(10.0) ** 250)
    assert np.isclose(hole, 3.0, rtol=1e-14)
    assert solve([[0.0, 5.0], [5.0, nan]]).fate[1, 1] == "unbounded"


@pytest.mark.parametrize("kind", ["bridge", "chain", "span 120", "weighted bridge"])
def test_the_oracle_does_not_depend_on_where_it_starts(kind):
    rng = np.random.default_rng(0)
    for seed in range(5):
        case = case_of(kind, seed)
        far = 10.0 ** rng.uniform(-9.0, 9.0, case.X.shape[1])
        a, b = (
            truth_of(case.X, case.V, start, signed=False, exact=True).cells
            for start in (None, far)
        )
        assert (((a == b) | np.isnan(a)) | (np.abs(a / b - 1.0) < 1e-17)).all()


def test_long_double_and_balls_agree():
    for seed in range(20):
        X = case_of("ordinary", seed).X
        a, b = (solve(X, exact=exact).cells for exact in (False, True))
        off = np.abs(a / b - 1.0)
        assert np.nanmax(off, initial=0.0) < 1e-12
