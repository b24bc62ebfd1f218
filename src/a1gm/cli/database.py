"""Tables of databases: ``URL::TABLE`` in place of a file."""

from __future__ import annotations

import re
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from a1gm._base.words import counted, did_you_mean, listed, shown
from a1gm.cli.options import Options, UsageError, progress_bar
from a1gm.exceptions import A1gmError, EngineError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from a1gm._fit.fit import RankOneFit

_URL = re.compile(r"([a-z][a-z0-9+.-]*)://(.*?)(?:::(.*))?", re.DOTALL)
_IN_FILES = ("duckdb", "sqlite")
_NAMES = ("id", "columns", "exclude")
_ROWS_AT_ONCE = 1 << 16


def is_database(file: Sequence[str]) -> bool:
    """Whether a table is given by the URL of a database."""
    return any(_URL.fullmatch(one) for one in file)


@dataclass
class DatabaseTable:
    """A table of a database, which is fitted and filled where it is."""

    name: str
    lazy: Any

    @classmethod
    @contextmanager
    def open(
        cls, file: Sequence[str], options: Options, **of_files: Any
    ) -> Iterator[DatabaseTable]:
        """Open the table that a URL names; ``of_files`` are options that it lacks.

        Without a name the tables of the database are listed.
        """
        _check_options(file, options, of_files)
        found = _URL.fullmatch(file[0])
        assert found is not None
        scheme, place, name = found.groups()
        base = _shown(f"{scheme}://{place}")
        with ExitStack() as stack, _errors_of(base):
            tables, opened, close = _connect(scheme, place)
            stack.callback(close)
            if name in tables:
                yield cls(f"{base}::{name}", opened(name))
                return
        there = f"Its tables are: {listed([repr(one) for one in tables], 20)}."
        if not name:
            raise UsageError(
                f"{base} is a database. {there} Name one of them: '{base}::TABLE'."
            )
        hint = did_you_mean(name, tables)
        raise UsageError(f"{base} has no table {name!r}. {there}{hint}")

    def fit(self, options: Options) -> RankOneFit:
        """Fit the table in its database, and describe it."""
        from a1gm import fit

        named = {name: options.reading[name] for name in _NAMES}
        with progress_bar(f"Counting {self.name}", quiet=options.quiet):
            found = fit(self.lazy, **named, **options.fitting)
        size = counted(found.shape[0], "row")
        columns = counted(found.shape[1], "numeric column")
        names = listed([str(name) for name in found.col_labels], 5)
        options.echo(f"{self.name}: {size}, {columns} ({names}).")
        return found

    def write(self, path: str | Path, lazy: Any, options: Options) -> None:
        """Write a lazy frame of this database to a file, batch by batch."""
        from a1gm._write.fill import open_writer

        if hasattr(lazy, "to_pyarrow_batches"):  # of Ibis
            batches = lazy.to_pyarrow_batches(chunk_size=_ROWS_AT_ONCE)
        else:
            batches = lazy.to_arrow_reader(_ROWS_AT_ONCE)
        with open_writer(path, batches.schema, **options.writing) as writer:
            for batch in batches:
                writer.write(batch)


@contextmanager
def _errors_of(database: str) -> Iterator[None]:
    """Name the database in errors of its driver."""
    try:
        yield
    except (A1gmError, OSError):
        raise
    except ImportError as error:  # of a driver: Ibis says how to get it
        lines = [line.strip() for line in str(error).splitlines()]
        how = next((line for line in lines if "pip install" in line), "")
        raise UsageError(f"{lines[0]} {how.partition('#')[0]}".strip()) from error
    except Exception as error:
        text = str(error).strip().splitlines() or [type(error).__name__]
        raise EngineError(f"{database}: {shown(text[0])}") from error


def _connect(scheme: str, place: str) -> tuple[list[str], Any, Any]:
    """Names of the tables of a database, what opens one of them, and what closes it."""
    from a1gm._base.optional import require
    from a1gm._rows.files.source import missing_file
    from a1gm.cli import allow_pandas

    if scheme in _IN_FILES:  # a new file would be made
        is_relative = not Path(place).exists() and Path(place.lstrip("/")).exists()
        place = place.lstrip("/") if is_relative else place
        if not Path(place).is_file():
            raise missing_file(f"{scheme}://{place}")
    if scheme == "duckdb":  # Ibis does not read every release of it
        duckdb = require("duckdb", "duckdb", "Reading this database")
        con = duckdb.connect(place, read_only=True)
        query = "SELECT table_name FROM information_schema.tables"
        tables = [row[0] for row in con.execute(query).fetchall()]
        return tables, con.table, con.close
    allow_pandas()
    ibis = require("ibis", "sql", "Reading a database")
    backend = ibis.connect(f"{scheme}://{place}")
    return list(backend.list_tables()), backend.table, backend.disconnect


def _shown(url: str) -> str:
    """A URL in messages, without a password."""
    return shown(re.sub(r"(://[^:/@]*):[^/]*@", r"\1:***@", url))


def _check_options(
    file: Sequence[str], options: Options, of_files: dict[str, Any]
) -> None:
    """Raise for what databases do not have."""
    if len(file) > 1:
        raise UsageError("Name one table of a database, and nothing beside it.")
    usual = Options()
    names = "weights", "exposure", "long", "by", "interactions", *options.reading
    changed = [
        name
        for name in names
        if name not in _NAMES and getattr(options, name) != getattr(usual, name)
    ]
    changed += [name for name, value in of_files.items() if value]
    if changed:
        raise UsageError(
            f"--{changed[0].replace('_', '-')} is for files, and this is a table of a "
            "database. Leave it out, or write the table to a file first."
        )
