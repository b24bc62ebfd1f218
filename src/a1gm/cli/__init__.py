"""The command line: parse, call the library, print, exit code.

Data go to standard output, messages to standard error. Exit codes: 0 done, 1 bad data,
2 bad usage, 130 interrupted. Each command is one module; all of them import the
library when they run, so that ``a1gm --help`` answers at once.
"""

from __future__ import annotations

import errno
import os
import signal
import sys
from importlib import import_module
from pathlib import Path
from typing import Any, NoReturn, TypeGuard


def main() -> None:
    """Run the command line; the entry point of the executable ``a1gm``."""
    sys.meta_path.insert(0, _WithoutPandas())
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:  # closed by the caller
            setattr(sys, name, Path(os.devnull).open("w"))  # noqa: SIM115
    # End like an error does, so that no half file is left behind.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    try:
        _run_app()
    except KeyboardInterrupt:
        _leave(130)  # before a command began, which prints a message
    except OSError as error:
        if not is_full(error):
            raise
        drop_output()  # of help: commands print their own message
        sys.stderr.write(f"a1gm: {FULL.format(error.strerror)}\n")
        _leave(1)
    except SystemExit as ended:
        if isinstance(ended.__context__, BrokenPipeError):
            _leave(0)  # the reader closed the pipe: rich and typer do the same
        if ended.code not in (None, 0):
            _leave(int(ended.code))
        raise


#: What is said when nothing more can be written to standard output.
FULL = "standard output cannot be written: {}."


def is_full(error: Exception) -> TypeGuard[OSError]:
    """Whether standard output takes no more; files are named in their errors."""
    if not isinstance(error, OSError) or error.filename is not None:
        return False
    return error.errno in {errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO}


def drop_output() -> None:
    """Let the rest of standard output go nowhere, at the end of the process too."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def load_app() -> Any:
    """Import the commands in the order of the help; each registers itself."""
    for name in (
        *("inspect", "fit", "impute", "scale"),
        *("assess", "report", "demo"),
    ):
        import_module(f"a1gm.cli.{name}")
    return import_module("a1gm.cli.app").app


def _run_app() -> None:
    try:
        import rich  # noqa: F401 - typer's own message about its absence is unclear

        from a1gm.cli.options import replace_unprintable

        app = load_app()
    except ImportError as error:
        if (error.name or "").partition(".")[0] not in ("typer", "rich"):
            raise
        from a1gm._base.optional import how_to_install

        sys.stderr.write(
            f"a1gm: the command line needs {error.name}, which is not installed.\n"
            f"{how_to_install('cli')}\n"
        )
        raise SystemExit(1) from None
    replace_unprintable()
    app()


def _leave(code: int) -> NoReturn:
    """End at once: reading threads may still run when the interpreter shuts down."""
    source = sys.modules.get("a1gm._rows.files.source")
    if source is not None:
        source.remove_spools()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


class _WithoutPandas:
    """Hides pandas from pyarrow, which loads it when it makes its first array.

    That takes a third of a second for nothing: no command uses frames, unless it reads
    a database.
    """

    def find_spec(self, name: str, path: object = None, target: object = None) -> None:
        """Raise for pandas; leave other names to the other finders."""
        if name == "pandas":
            raise ModuleNotFoundError(name=name)


def allow_pandas() -> None:
    """Do not hide pandas any more: Ibis needs it."""
    hiding = [one for one in sys.meta_path if isinstance(one, _WithoutPandas)]
    for one in hiding:
        sys.meta_path.remove(one)
