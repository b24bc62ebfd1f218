"""Results show themselves, as text and in notebooks; signatures show no internals."""

import importlib
import inspect
import re
from html.parser import HTMLParser

import numpy as np
import pandas as pd
import pytest

import a1gm

NASTY = ["$x_1$", "<b>bold", "a & b", "two\nlines", "\x1b[31mred", "very long " * 9]
INTERNALS = re.compile(
    r"LazyRows|ForwardRef|object at 0x|\bnp\.float64\(|dtype=|<function|<factory>|"
    r"<class|(?<!')\b_[a-z]\w*|\*\*(?!options|params|kwargs|fit_params)"
)


class Tags(HTMLParser):
    """Whether tags are closed in order; the text between them."""

    def __init__(self):
        super().__init__()
        self.open, self.text = [], ""

    def handle_starttag(self, tag, attrs):
        if tag not in ("input", "br"):
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        pass

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open[-1:] not in (["style"], ["script"]):
            self.text += data


def read(html):
    tags = Tags()
    tags.feed(html)
    assert tags.open == []
    return tags.text


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(0)
    X = rng.poisson(np.outer(rng.gamma(3, 200, 14), np.linspace(1, 2, 6) / 6)) + 1.0
    X[rng.random(X.shape) < 0.15] = np.nan
    rows = [*NASTY, *(f"shop {i}" for i in range(8))]
    return pd.DataFrame(X, rows, [f"2023-{k:02d}" for k in range(1, 7)])


def results(table):
    fit, X = a1gm.fit(table), table.to_numpy()
    u = fit.uncertainty()
    long = table.stack().rename_axis(["shop", "month"]).rename("sales").reset_index()
    keys = {"keys": ["shop", "month"], "value": "sales"}
    joint = a1gm.fit_nmmf(X, 2.0 * X[:3], X[:, :2])
    parts = X.copy()
    parts[:5, :3] = parts[5:, 3:] = np.nan
    split = a1gm.fit(parts, on_undetermined="ignore")
    yield from (fit, split, u, fit.pattern, split.pattern, joint)
    yield from (fit.undetermined, split.undetermined)
    yield from (u.totals("row"), u.totals("all"), u.index(), u.index(by="row"))
    yield from (split.uncertainty().totals("column"), u.factor_errors())
    yield from (fit.to_frames(name) for name in ("pandas", "polars", "pyarrow"))
    yield from (a1gm.assess(table, random_state=0), a1gm.fit_many([X] * 14))
    yield a1gm.fit_groups(long.assign(area="<north>"), by="area", **keys)
    yield joint.joint.uncertainty()
    yield from (a1gm.RankOneNMF().fit(X), a1gm.RankOneImputer().fit(X))


def test_every_result_shows_itself(table):
    """Seen: factor_errors() was printed as (LazyRows([...]), array)."""
    for result in results(table):
        text, html = repr(result), result._repr_html_()
        seen = read(html)
        for words in (text, seen):
            assert not INTERNALS.search(words), (type(result), words)
        if not hasattr(result, "rows"):  # frames, which show themselves
            assert "\x1b" not in text + html, type(result)
        assert "<b>bold" not in html, type(result)
        # Colours are those of the notebook, light or dark.
        if not hasattr(result, "get_params"):
            assert "color" not in html.replace("border", ""), type(result)
    assert not INTERNALS.search(repr(a1gm.PatternTable()))


def test_cells_that_are_not_determined_are_listed():
    X = np.array([[1.0, 2, np.nan], [np.nan, np.nan, 4]])
    cells = a1gm.fit(X, on_undetermined="ignore").undetermined
    assert "3 undetermined cells" in read(cells._repr_html_())
    assert cells._repr_html_().count("<td>undetermined</td>") == 3
    parts = np.where(np.eye(20) > 0, 1.0, np.nan)
    many = a1gm.fit(parts, on_undetermined="ignore").undetermined
    assert "... 368 more" in read(many._repr_html_())


def test_rows_that_are_read_when_needed_show_themselves(table, tmp_path):
    table.to_csv(tmp_path / "a.csv", index_label="shop")
    fit = a1gm.fit_file(tmp_path / "a.csv")
    for result in (fit.row_labels, fit.row_factor, fit.row_block):
        assert not INTERNALS.search(repr(result)), repr(result)
        assert repr(result).endswith("...] (14 rows)") or "array" in repr(result)


def test_numbers_stand_below_each_other(table):
    u = a1gm.fit(table).uncertainty()
    for result in (u.totals("row"), u.index(by="row"), u.factor_errors()):
        lines = repr(result).splitlines()
        assert "<b>bold" in repr(result)  # the names
        assert len({len(line) for line in lines[1:12]}) == 1
        ends = [line.split()[-1] for line in lines[1:12]]
        assert len({len(end) - end.index(".") for end in ends if "." in end}) == 1


def test_names_and_how_many_more_are_shown(table):
    u = a1gm.fit(table).uncertainty()
    for result in (u.totals("row"), u.index(by="row"), u.factor_errors()):
        for shown in (repr(result), read(result._repr_html_())):
            assert "two\\nlines" in shown
            assert "... 2 more" in shown
    assert "2023-06" in repr(u.factor_errors())
    assert "... 2 more" in a1gm.fit_many([table] * 14)._repr_html_()


MODULES = ["", ".plot", ".paper", ".paper.geometry", ".report", ".distributed"]


@pytest.mark.parametrize("module", MODULES)
def test_signatures_show_no_internals(module):
    """Seen: fit(**rank), and ForwardRef(...) in the help of estimators."""
    found = importlib.import_module(f"a1gm{module}")
    for name in found.__all__:
        public = getattr(found, name)
        if not callable(public):
            continue
        parts = [public]
        if inspect.isclass(public):
            # Classes that functions make are documented without arguments.
            is_made = "Made by" in (public.__doc__ or "")
            parts = [] if is_made else [public]
            parts += [
                member
                for word, member in inspect.getmembers(public, callable)
                if word[0] != "_" and member.__module__.startswith("a1gm")
            ]
        for part in parts:
            signature = str(inspect.signature(part))
            assert not INTERNALS.search(signature), (name, part, signature)
