"""Every example in a docstring of a1gm.paper gives what it shows."""

import doctest
import importlib
import pkgutil

import pytest

from a1gm import paper

MODULES = [
    f"a1gm.paper.{module.name}" for module in pkgutil.iter_modules(paper.__path__)
]


@pytest.mark.parametrize("name", MODULES)
def test_examples_run(name: str) -> None:
    assert doctest.testmod(importlib.import_module(name)).failed == 0


def test_every_public_function_has_an_example() -> None:
    functions = [getattr(paper, name) for name in paper.__all__]
    functions += [getattr(paper.geometry, name) for name in paper.geometry.__all__]
    without = [
        f.__name__
        for f in functions
        if callable(f) and not isinstance(f, type) and ">>> " not in (f.__doc__ or "")
    ]
    assert without == []
