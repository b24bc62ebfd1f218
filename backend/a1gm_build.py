"""Build with scikit-build-core, and with a compiler from PyPI where there is none.

``ziglang`` is a C++ compiler, linker and archiver in one wheel. It is asked for where
Linux has no C++ compiler, and where ``A1GM_TARGET`` names what to compile for, such as
``x86_64-linux-gnu.2.17`` (the oldest glibc) or ``x86_64-linux-musl``.
"""

from __future__ import annotations

import os
import platform
import shlex
import shutil
import sys
import sysconfig
from pathlib import Path

from scikit_build_core import build
from scikit_build_core.build import *  # noqa: F403 - the other hooks, as they are

TARGET = os.environ.get("A1GM_TARGET", "")


def has_compiler() -> bool:
    """Whether CMake finds a C++ compiler; True also where that of PyPI is not tried."""
    may_use_pypi = sys.platform == "linux" and platform.machine() in {
        "x86_64",
        "aarch64",
    }
    if "CXX" in os.environ or not may_use_pypi:
        return True
    of_python = shlex.split(sysconfig.get_config_var("CXX") or "c++")[0]
    return any(map(shutil.which, (of_python, "c++", "g++", "clang++")))


def put_zig_on_path() -> None:
    """Write the compiler and its tools as programs, where CMake finds them again."""
    tools = Path("build", f"zig-{TARGET or 'here'}").resolve()
    tools.mkdir(parents=True, exist_ok=True)
    options = f"-target {TARGET}" if TARGET else "-mcpu=baseline"
    for command in (f"c++ {options}", "ar", "ranlib"):
        tool = tools / command.split()[0]
        call = f'exec "{sys.executable}" -m ziglang {command} "$@"'
        tool.write_text(f"#!/bin/sh\n{call}\n")
        tool.chmod(0o755)
    os.environ["CXX"] = str(tools / "c++")
    os.environ["PATH"] = f"{tools}{os.pathsep}{os.environ['PATH']}"
    if TARGET.endswith("musl"):
        suffix = sysconfig.get_config_var("EXT_SUFFIX")
        os.environ["SETUPTOOLS_EXT_SUFFIX"] = suffix.replace("-gnu", "-musl")


NEEDS = ["ziglang"] if TARGET or not has_compiler() else []
if NEEDS:
    put_zig_on_path()


def get_requires_for_build_wheel(config_settings=None):
    """List what building a wheel needs, the compiler among it."""
    return [*build.get_requires_for_build_wheel(config_settings), *NEEDS]


def get_requires_for_build_editable(config_settings=None):
    """List what an editable install needs, the compiler among it."""
    return [*build.get_requires_for_build_editable(config_settings), *NEEDS]
