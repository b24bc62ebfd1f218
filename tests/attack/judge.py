"""The verdict on a table: right, announced, or silently wrong."""

from __future__ import annotations

import atexit
import math
import shutil
import tempfile
import warnings
from pathlib import Path
from unittest import mock

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import scipy.sparse as sp
from support.oracles import FINITE, UNBOUNDED, UNDETERMINED, ZERO

import a1gm
from a1gm._observe import accumulate
from a1gm._observe import observe as _observe
from a1gm.exceptions import A1gmError, ConvergenceWarning, NotRepresentableError

from .oracle import NoTruth, Truth, truth_of
from .zoo import ANNOUNCED, KINDS, RIGHT, UNKNOWN, WRONG, Case, Verdict, case_of

ULP = 2.0**-52
CLAIM = 1e-8  # what `converged` promises of every finite cell
FOLDER = Path(tempfile.mkdtemp(prefix="a1gm-attack-"))
atexit.register(shutil.rmtree, FOLDER, ignore_errors=True)
LEAST, LARGEST = float(np.finfo(float).tiny), float(np.finfo(float).max)
SMALLEST = 2.0**-1074


def judge(name: str, seed: int) -> Verdict:
    """Fit the table of a kind and a seed, and compare everything with the truth."""
    case, about = case_of(name, seed), KINDS[name]
    signed = case.signed and bool((case.X < 0.0).any())
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            fit = fit_case(case)
            answers = Answers(case, fit)
        except A1gmError as error:
            words = f"{type(error).__name__}: {error}"
            needless = has_answer(case, signed)
            if (about.ordinary and not case.signed) or (about.strict and needless):
                return Verdict(WRONG, words)
            return Verdict(ANNOUNCED, words, needless=needless)
        except Exception as error:  # noqa: BLE001
            return Verdict(WRONG, f"raw {type(error).__name__}: {error}")
    if case.V is None and not is_in_range(case):
        return Verdict(WRONG, "sums beyond the limits are fitted")
    raw = [w for w in caught if not issubclass(w.category, a1gm.exceptions.A1gmWarning)]
    if raw:
        return Verdict(WRONG, f"raw warning: {raw[0].message}")
    told = [w for w in caught if issubclass(w.category, ConvergenceWarning)]
    try:
        start = answers.col_factor
        truth = truth_of(case.X, case.V, start, signed=signed, exact=about.exact)
    except NoTruth as error:
        if signed and has_margins(case, answers):
            return Verdict(RIGHT)  # sums of any sign: they are the truth
        return Verdict(UNKNOWN, str(error))
    # The oracle takes rows and columns of sum 0 for zeros; chain-ladder does not.
    sums = np.nansum(case.X, axis=0), np.nansum(case.X, axis=1)
    if signed and not np.concatenate(sums).all() and has_margins(case, answers):
        return Verdict(RIGHT)
    if about.strict and not has_scatter(case, fit, truth):
        return Verdict(WRONG, "Pearson's statistic")
    return compare(case, answers, truth, told=bool(told), ordinary=about.ordinary)


def is_in_range(case: Case) -> bool:
    """Whether cells and sums, and weights, are those that are fitted."""
    used = ~np.isnan(case.X)
    if case.V is not None:
        used &= case.V > 0.0
    with np.errstate(all="ignore"):
        cells = np.where(used, case.X if case.V is None else case.X * case.V, 0.0)
        sums = [np.abs(cells.sum(axis=k)) for k in (0, 1)]
    sizes = np.concatenate([*sums, np.abs(cells[np.abs(cells) > 1.0])])
    if case.V is not None:
        lost = used & (case.X > 0.0) & (cells < LEAST)
        sizes = np.concatenate([sizes, case.V[used], cells[lost]])
        if lost.any():
            return False
    return bool(((sizes == 0.0) | ((sizes >= 1e-140) & (sizes <= 1e140))).all())


def has_scatter(case: Case, fit, true: Truth) -> bool:
    """Whether Pearson's statistic is that of the true cells."""
    if case.way in ("pieces", "sparse", "disk"):
        return True
    found = fit.uncertainty("poisson").pearson_chi2
    cells = true.cells.astype(np.longdouble)
    known = ~np.isnan(case.X) & (cells > 0.0)
    chi2 = float((((case.X - cells) ** 2 / cells)[known]).sum())
    total = float(np.nansum(case.X))
    return abs(found - chi2) <= 1e-7 * chi2 + 1e-14 * total


def has_margins(case: Case, answers: Answers) -> bool:
    """Whether every row and column of the fitted table has the sum of the data."""
    holes = np.isnan(case.X)
    off = np.where(holes, 0.0, answers.table - case.X)
    size = np.where(holes, 0.0, np.abs(answers.table) + np.abs(case.X))
    fills = answers.filled[holes], answers.table[holes]
    return np.allclose(*fills, rtol=1e-12, atol=0.0, equal_nan=True) and all(
        (np.abs(off.sum(axis=k)) <= 1e-11 * size.sum(axis=k)).all() for k in (0, 1)
    )


def fit_case(case: Case):
    """Fit a table the way it is to be fitted."""
    X = case.X
    if case.signed:
        return a1gm.fit(X, negatives="allow")
    if case.V is not None:
        return a1gm.fit(X, weights=case.V)
    if case.way == "weights":
        return a1gm.fit(X, weights=np.ones_like(X))
    if case.way == "sparse":
        i, j = np.nonzero(~np.isnan(X))
        sparse = sp.csr_array((X[i, j], (i, j)), shape=X.shape)
        return a1gm.fit(sparse, absent="missing")
    if case.way == "masks":
        with mock.patch.object(_observe, "TABLE_CELLS", 1):
            return a1gm.fit(X, n_threads=2)
    if case.way == "pieces":
        table = a1gm.PatternTable()
        rng = np.random.default_rng(len(X))
        for piece in np.array_split(rng.permutation(len(X)), min(3, len(X))):
            table.update(X[piece])
        return table.solve()
    if case.way in ("file", "disk"):
        path = FOLDER / "table.parquet"
        columns = {f"c{j}": pa.array(x, from_pandas=True) for j, x in enumerate(X.T)}
        pq.write_table(pa.table(columns), path, row_group_size=5)
        small = 1 if case.way == "disk" else accumulate.TABLE_BYTES
        with mock.patch.object(accumulate, "TABLE_BYTES", small):
            return a1gm.fit_file(path)
    return a1gm.fit(X, n_threads=1 + len(X) % 2)


class Answers:
    """All that a fit says of its table; vectors without a float64 are None."""

    def __init__(self, case: Case, fit) -> None:
        X, own = case.X, case.way != "pieces"
        self.filled = np.asarray(fit.impute(X, on_undetermined="ignore"))
        self.table = np.asarray(fit.reconstruct()) if own else None
        self.divergence = fit.divergence if own else fit.divergence_of(X)
        self.certificate, self.converged = fit.certificate, fit.converged
        self.cell_error = fit.cell_error
        self.col_factor = self._vector(fit, "col_factor")
        self.row_factor = self._vector(fit, "row_factor") if own else None
        holes = np.argwhere(np.isnan(X)).tolist()
        self.fate = [fit.fate(i, j) for i, j in holes] if own else None

    @staticmethod
    def _vector(fit, name):
        try:
            return np.asarray(getattr(fit, name))
        except NotRepresentableError:
            return None


def off(found: np.ndarray, true: np.ndarray) -> np.ndarray:
    """Relative errors; values beyond float64 may round to 0, never to inf."""
    true = np.asarray(true, np.longdouble)
    with np.errstate(all="ignore"):
        tiny = np.longdouble(2.0**-1074)
        room = np.where(np.abs(true) < 1e-307, 8.0 * tiny, 0.0)
        gap = np.maximum(np.abs(found - true) - room, 0.0)
        error = np.where(gap == 0.0, 0.0, gap / np.maximum(np.abs(true), tiny))
        return np.where(np.isnan(error), np.inf, error).astype(float)


def compare(
    case: Case, got: Answers, true: Truth, *, told: bool, ordinary: bool
) -> Verdict:
    """Compare what a fit says with what is true."""
    why: list[str] = []
    error = max(
        compare_cells("fills", got.filled, np.isnan(case.X), case, true, why),
        compare_cells("reconstruct", got.table, None, case, true, why),
    )
    fate = true.fate[np.isnan(case.X)].tolist()
    if case.signed and got.fate is not None:  # a column of factor 0 has finite cells
        fate = [
            a if (a, b) == (FINITE, ZERO) else b
            for a, b in zip(got.fate, fate, strict=True)
        ]
    if got.fate is not None and got.fate != fate:
        k = [a == b for a, b in zip(got.fate, fate, strict=True)].index(False)
        place = tuple(np.argwhere(np.isnan(case.X))[k].tolist())
        why.append(f"fate of {place}: {got.fate[k]}, is {fate[k]}")
    for name in ("row_factor", "col_factor"):
        found, vector = getattr(got, name), getattr(true, name)
        has_float = (vector <= LARGEST) & ((vector >= 1e-307) | (vector == 0.0))
        if found is not None and has_float.any():
            wrong = off(found[has_float], vector[has_float]).max()
            is_told = got.cell_error == math.inf  # that nothing is known
            if wrong > max(CLAIM, 4.0 * error) and not is_told:
                why.append(f"{name} off by {wrong:.1e}")
    bound, ratio = got.cell_error, 0.0
    if error > 4.0 * ULP:
        ratio = 0.0 if bound == math.inf else error / max(bound, 5e-324)
        if ratio > 1.0:
            why.append(f"cell_error {bound:.1e}, is {error:.1e}")
    if got.converged and error > CLAIM:
        why.append(f"cells off by {error:.1e}")
    d = true.divergence
    with np.errstate(all="ignore"):  # a fitted cell near 5e-324 has few digits
        few = np.longdouble(5e-324) * case.X / true.cells.astype(np.longdouble)
    few = np.nansum(np.where((case.X > 0.0) & (true.cells > 0.0), few, 0.0))
    slack = 1e-9 * d + 64.0 * ULP * true.total + 2e-323 * case.X.size + few
    is_known = not case.signed and not told and d <= LARGEST
    if is_known and not abs(got.divergence - d) <= slack:
        why.append(f"divergence {got.divergence:.17g}, is {float(d):.17g}")
    if told == got.converged:
        why.append("a warning, but converged" if told else "not converged, not told")
    details = (float(error), ratio, true.digits)
    if why:  # a warning excuses no wrong bound
        return Verdict(WRONG, "; ".join(why), *details)
    if told:
        verdict = WRONG if ordinary else ANNOUNCED
        why = f"accused, error {error:.1e}"
        return Verdict(verdict, why, *details, needless=bool(error <= CLAIM))
    return Verdict(RIGHT, "", *details)


def has_answer(case: Case, signed: bool) -> bool:
    """Whether all that a fit is asked for has a float64, factors with all digits.

    Column factors sum to 1. A positive cell that is fitted by less than the smallest
    float64 has no divergence.
    """
    if not is_in_range(case):
        return False
    try:
        true = truth_of(case.X, case.V, None, signed=signed, exact=True)
    except NoTruth:
        return False
    factors = np.abs(np.concatenate([true.row_factor, true.col_factor]))
    factors = factors[factors > 0.0]
    positive = true.cells[(case.X > 0.0) & (true.fate == FINITE)]
    return bool(
        factors.min(initial=1.0) >= LEAST
        and factors.max(initial=1.0) <= LARGEST
        and positive.min(initial=1.0) >= SMALLEST
        and np.nanmax(true.cells, initial=true.divergence) <= LARGEST
    )


def compare_cells(what, table, where, case: Case, true: Truth, why: list[str]) -> float:
    """The worst relative error of the finite cells; what else is wrong goes to why."""
    if table is None:
        return 0.0
    where = np.ones(table.shape, bool) if where is None else where
    seen = ~np.isnan(case.X)
    if case.V is not None:
        seen &= case.V > 0.0
    if (table[where & (true.fate == ZERO)] != 0.0).any():
        why.append(f"{what}: not 0 where it is")
    none = np.isin(true.fate, [UNBOUNDED, UNDETERMINED]) & ~seen
    if not np.isnan(table[where & none]).all():
        why.append(f"{what}: a value that the data do not determine")
    finite = where & (true.fate == FINITE)
    if np.isinf(table[finite]).any():
        why.append(f"{what}: inf")
    finite &= true.cells <= LARGEST
    return off(table[finite], true.cells[finite]).max(initial=0.0)
