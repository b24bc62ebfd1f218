"""The suite itself: what is missing fails where it must be there, else is skipped."""

from __future__ import annotations

import pytest
from support.browser import running_browser
from support.lazy import need_spark
from support.suite import need

import a1gm


def open_browser():
    with running_browser():
        pass


@pytest.mark.parametrize(
    ("ask", "reason"),
    [
        (open_browser, "no chromium on this machine"),
        (need_spark, "Java is not installed"),
        (lambda: need("a1gm.nothing"), "a1gm.nothing is not installed"),
    ],
)
def test_what_is_missing_fails_only_where_it_is_required(ask, reason, monkeypatch):
    pytest.importorskip("pyspark")
    monkeypatch.setenv("PATH", "")
    monkeypatch.delenv("A1GM_REQUIRE", raising=False)
    with pytest.raises(pytest.skip.Exception, match=reason):
        ask()
    monkeypatch.setenv("A1GM_REQUIRE", "1")
    with pytest.raises(pytest.fail.Exception, match=f"{reason}.*A1GM_REQUIRE"):
        ask()
    assert need("a1gm") is a1gm
