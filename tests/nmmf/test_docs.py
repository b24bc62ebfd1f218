"""The examples of the guide and of the docstrings run as written."""

import doctest
from pathlib import Path

import pytest

import a1gm.estimators._nmmf
import a1gm.nmmf.fit
import a1gm.nmmf.tune.tune

MODULES = [a1gm.estimators._nmmf, a1gm.nmmf.fit, a1gm.nmmf.tune.tune]
GUIDE = Path(__file__).parents[2] / "docs" / "guide-nmmf.md"


@pytest.mark.parametrize("module", MODULES, ids=lambda m: m.__name__)
def test_docstrings(module):
    found = doctest.testmod(module)
    assert found.attempted > 0
    assert found.failed == 0


def test_guide():
    found = doctest.testfile(str(GUIDE), module_relative=False)
    assert found.attempted > 10
    assert found.failed == 0
