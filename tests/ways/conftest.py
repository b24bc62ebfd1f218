"""Fits are made once and shared by all tests of the ways in."""

from __future__ import annotations

from collections.abc import Callable

import pytest

import ways.file_ways
import ways.lazy_ways  # noqa: F401 - both enter their ways into the registry
from ways.oracle import Oracle
from ways.tables import TABLES
from ways.ways import WAYS, Answers

Asked = Callable[[str, str], tuple[Answers, Oracle]]


@pytest.fixture(scope="session")
def asked(tmp_path_factory: pytest.TempPathFactory) -> Asked:
    """What a way says of a table, and what is right."""
    answers: dict[tuple[str, str], Answers | Exception] = {}
    oracles: dict[tuple[str, str], Oracle] = {}

    def ask(way: str, table: str) -> tuple[Answers, Oracle]:
        chosen = WAYS[way]
        X = chosen.seen(TABLES[table])
        kind = (chosen.dtype.__name__, table)
        if kind not in oracles:
            oracles[kind] = Oracle(X)
        if (way, table) not in answers:
            try:
                found = chosen.ask(X, tmp_path_factory.mktemp("way"))
            except Exception as error:  # noqa: BLE001 - every test of it fails alike
                found = error
            answers[way, table] = found
        found = answers[way, table]
        if isinstance(found, Exception):
            raise found.with_traceback(None)
        return found, oracles[kind]

    return ask
