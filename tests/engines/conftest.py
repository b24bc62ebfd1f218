"""Each engine is started when the first test asks for it."""

from __future__ import annotations

import pytest
from support.lazy import ENGINES

#: Starting Spark takes as long as hundreds of tests.
SLOW = {"Spark": pytest.mark.slow}


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "engine" in metafunc.fixturenames:
        every = [
            pytest.param(name, marks=SLOW.get(name, ()), id=name) for name in ENGINES
        ]
        metafunc.parametrize("engine", every, scope="session")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Keep the tests of an engine in one process, so that it is started once."""
    for item in items:
        params = getattr(getattr(item, "callspec", None), "params", {})
        if "engine" in params:
            item.add_marker(pytest.mark.xdist_group(params["engine"]))
