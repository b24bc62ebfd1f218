"""Every public method of a fit on every kind of fit: an answer, or one clear error."""

from __future__ import annotations

import copy
import inspect
import pickle
import re

import numpy as np
import polars as pl
import pytest
from support.oracles import same_partition

import a1gm
from a1gm.exceptions import NotNumericError, ParameterError
from ways import containers
from ways.kinds import KINDS, OF_THEIR_OWN, WITHOUT_ROWS, Made
from ways.oracle import Oracle
from ways.tables import TABLES
from ways.ways import noted

CHOSEN = ("random holes", "two blocks", "blocks beside zeros", "empty lines")
WHAT_TO_DO = re.compile(
    r"transform\(|impute|keep_rows|a1gm\.fit|\b(Use|Pass|Keep|Give|Name|Call|Fit)\b"
)
pytestmark = pytest.mark.filterwarnings("ignore::a1gm.exceptions.A1gmWarning")


def in_hand(table):
    """Rows in memory, whatever was fitted."""
    return table.compute() if hasattr(table, "compute") else table


def dense(made):
    """Rows in memory, with all their cells."""
    table = in_hand(made.given)
    return table.toarray() if hasattr(table, "toarray") else table


def filled_long(made):
    """The pairs of a long table; other fits say that they are of none."""
    try:
        return made.fit.fill_long()
    except ParameterError as error:
        assert "not one of a long table" in str(error)  # noqa: PT017 - or an answer
        return None


def query(made):
    """The query of a fit whose columns have names and no weights; else its refusal."""
    if made.fit.has_weights or made.fit.col_labels is None:
        with pytest.raises(ParameterError, match=r"^A query ") as refused:
            made.fit.to_sql("t", dialect="duckdb")
        return str(refused.value)
    return made.fit.to_sql("t", dialect="duckdb")


# How to call each public method; a new one must be entered here.
CALLS = {
    "divergence_of": lambda made: made.fit.divergence_of(made.given, **made.options),
    "fate": lambda made: [
        made.fit.fate(0, 0),
        made.fit.fate([0, -1], [0, -1]),
        made.fit.fate(np.arange(2)[:, None], np.arange(2)),
    ],
    "fill_long": filled_long,
    "impute": lambda made: made.fit.impute(made.given, **made.options),
    "predict": lambda made: made.fit.predict([0, -1], [0, -1]),
    "reconstruct": lambda made: made.fit.reconstruct(),
    "residuals": lambda made: made.fit.residuals(dense(made), **made.options),
    "save": lambda made: made.fit.save(made.folder / "again.a1gm", overwrite=True),
    "summary": lambda made: made.fit.summary(),
    "to_frames": lambda made: [
        made.fit.to_frames(backend=name) for name in ("pandas", "polars", "pyarrow")
    ],
    "to_sql": query,
    "transform": lambda made: made.fit.transform(in_hand(made.given), **made.options),
    "uncertainty": lambda made: made.fit.uncertainty(2.0).totals("column", "fitted"),
}
# What Python itself asks of a fit.
PROTOCOLS = {
    "repr": lambda made: repr(made.fit),
    "page": lambda made: made.fit._repr_html_(),
    "copy": lambda made: copy.copy(made.fit).col_factor,
    "deep copy": lambda made: copy.deepcopy(made.fit).certificate,
    "pickle": lambda made: pickle.loads(pickle.dumps(made.fit)).col_factor,
}


def public_names() -> list[str]:
    """Everything public that a fit has, read from the class and from an object."""
    fit = a1gm.fit(np.ones((2, 2)))
    return sorted(name for name in dir(fit) if not name.startswith("_"))


METHODS = {
    n for n in public_names() if inspect.isfunction(getattr(a1gm.RankOneFit, n, None))
}


def ask(made: Made, name: str):
    """Call a method or read a property, and look at what comes back."""
    if name in PROTOCOLS:
        return PROTOCOLS[name](made)
    found = CALLS[name](made) if name in CALLS else getattr(made.fit, name)
    if hasattr(found, "compute"):
        found = found.compute()
    if name == "row_factor":
        np.asarray(found)
    elif name == "undetermined":
        list(found), repr(found)
    elif name == "pattern":
        read_pattern(found)
    return found


PATTERN = [n for n in dir(a1gm.MissingPattern) if not n.startswith("_")]


def read_pattern(pattern):
    """All properties of a pattern, by name."""
    return {
        name: getattr(pattern, name)
        for name in PATTERN
        if not inspect.isroutine(getattr(a1gm.MissingPattern, name))
    }


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A fit of some kind of some table, made once."""
    fits: dict[tuple[str, str], Made | Exception] = {}

    def get(kind: str, table: str) -> Made:
        if (kind, table) not in fits:
            folder = tmp_path_factory.mktemp("kind")
            try:
                fits[kind, table] = KINDS[kind](TABLES[table], folder)
            except Exception as error:  # noqa: BLE001 - every test of it fails alike
                fits[kind, table] = error
        found = fits[kind, table]
        if isinstance(found, Exception):
            raise found.with_traceback(None)
        return found

    return get


def test_every_public_method_is_called():
    assert set(CALLS) == METHODS
    assert "converged" in public_names()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("table", CHOSEN)
def test_methods_answer_or_say_what_to_do(made, kind, table):
    chosen = made(kind, table)
    assert type(chosen.fit) is a1gm.RankOneFit
    for name in (*public_names(), *PROTOCOLS):
        refusal = refusal_of(chosen, name)
        if refusal is not None:
            assert kind in WITHOUT_ROWS, (name, refusal)
            assert name not in ALWAYS, (name, refusal)
            assert WHAT_TO_DO.search(str(refusal)), (name, refusal)


def refusal_of(made, name):
    """The one error that may be raised: this fit has not kept what is asked for."""
    try:
        ask(made, name)
    except ParameterError as error:
        return error
    return None


# A fit knows these even when its rows are gone.
ALWAYS = {
    *("attained", "certificate", "col_factor", "col_labels", "converged", "impute"),
    *("n_blocks", "n_iter", "n_undetermined", "row_labels", "save", "shape", "solver"),
    *("summary", "tol", "transform", *PROTOCOLS),
}


@pytest.mark.parametrize("kind", sorted(set(KINDS) - OF_THEIR_OWN))
@pytest.mark.parametrize("table", CHOSEN)
def test_every_kind_of_fit_says_the_same(made, kind, table):
    fit, reference = made(kind, table), made("in memory", table)
    for name in ("attained", "converged", "n_blocks", "n_undetermined", "shape"):
        assert getattr(fit.fit, name) == getattr(reference.fit, name), name
    answers = {}
    for name in ("pattern", "divergence", "col_block", "row_block", "reconstruct"):
        try:
            answers[name] = ask(fit, name)
        except ParameterError:
            assert kind in WITHOUT_ROWS
    if "pattern" in answers:
        wanted = read_pattern(reference.fit.pattern)
        for name, value in read_pattern(answers["pattern"]).items():
            np.testing.assert_equal(value, wanted[name], err_msg=name)
    divergence = answers.get("divergence", np.nan)
    if not np.isnan(divergence):
        assert divergence == pytest.approx(
            reference.fit.divergence, rel=1e-9, abs=1e-12
        )
    else:  # the data are gone
        assert kind in WITHOUT_ROWS or "pieces" in kind or "unpickled" in kind
    for name in ("row_block", "col_block"):
        if name in answers:
            assert same_partition(
                np.asarray(answers[name]), getattr(reference.fit, name)
            )
    if "reconstruct" in answers:
        found = np.asarray(answers["reconstruct"], float)
        truth = Oracle(TABLES[table]).fitted
        np.testing.assert_allclose(found, truth, rtol=1e-9, atol=0.0)


@pytest.mark.parametrize("container", ["pandas", "polars", "pyarrow table"])
@pytest.mark.parametrize("table", CHOSEN)
def test_a_frame_is_reconstructed_as_a_frame(table, container):
    make, take = containers.CONTAINERS[container]
    given = make(TABLES[table])
    found = a1gm.fit(given).reconstruct()
    assert type(found) is type(given)
    assert list(found.columns) == list(given.columns) or container == "pyarrow table"
    truth = Oracle(TABLES[table]).fitted
    np.testing.assert_allclose(take(found), truth, rtol=1e-9, atol=0.0)


def test_a_lazy_frame_is_refused_without_a_look_at_its_names():
    frame = pl.DataFrame({"a": [1.0, 2.0, 3.0], "b": [2.0, None, 5.0]})
    fit = a1gm.fit(frame)
    with pytest.raises(NotNumericError, match=r"Pass X\.collect"), noted():
        fit.residuals(frame.lazy())
