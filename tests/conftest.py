"""Hypothesis profiles (`dev` to write, `ci` always the same, `deep`), what runs when.

Tests that share what is slow to make stay in one process (`--dist loadgroup`): those of
an engine, and those of a table of `ways`, whose fits are made once.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from support.browser import running_browser
from support.lazy import ENGINES
from support.suite import DAILY_ENGINES, DIALECTS

_COMMON = {
    "deadline": None,
    "print_blob": True,
    "suppress_health_check": [HealthCheck.too_slow],
}
settings.register_profile("quick", max_examples=8, derandomize=True, **_COMMON)
settings.register_profile("dev", max_examples=50, **_COMMON)
settings.register_profile("ci", max_examples=200, derandomize=True, **_COMMON)
settings.register_profile("deep", max_examples=5000, **_COMMON)
settings.load_profile(
    os.environ.get("HYPOTHESIS_PROFILE", "ci" if os.environ.get("CI") else "dev")
)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "engine" in metafunc.fixturenames:
        metafunc.parametrize("engine", ENGINES, scope="session")


@pytest.hookimpl(tryfirst=True)  # xdist reads the groups in the same hook
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        params = item.callspec.params if hasattr(item, "callspec") else {}
        for name in {"engine", "database", "dialect"} & params.keys():
            engine = DIALECTS.get(str(params[name]), str(params[name]))
            if engine not in ENGINES:
                continue
            item.add_marker(pytest.mark.xdist_group(engine))
            marker = item.get_closest_marker("daily")
            if engine not in (marker.args if marker else DAILY_ENGINES):
                item.add_marker(pytest.mark.nightly)
        if item.path.parent.name == "ways" and "table" in params:
            item.add_marker(pytest.mark.xdist_group(f"ways, {params['table']}"))


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """A real browser; tests that need one are skipped where there is none."""
    with running_browser() as running:
        yield running
