"""Fixtures of the kernel's tests."""

from importlib import import_module

import pytest


@pytest.fixture(params=["reference", "_native"])
def kernel(request):
    if request.param == "_native":
        return pytest.importorskip("a1gm._kernel._native")
    return import_module("a1gm._kernel.reference")
