"""Examples of docs/engines.md that need a server or Java; the others are doctests."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from support.lazy import connected, postgres, spark
from support.suite import need

PAGE = Path(__file__).parents[2] / "docs" / "engines.md"
SALES = [("a", 1.0, 2.0), ("b", 2.0, None), ("c", 3.0, 6.0)]
FILLED = [("a", 1.0, 2.0), ("b", 2.0, 4.0), ("c", 3.0, 6.0)]
pytestmark = [
    pytest.mark.nightly,
    pytest.mark.filterwarnings(
        "ignore:PySpark does not yet fully support pandas:FutureWarning"
    ),
]


def example(word: str) -> str:
    """The only program of the page in which a word occurs."""
    blocks = re.findall(r"^```python\n((?!>>>).*?)^```", PAGE.read_text(), re.M | re.S)
    (found,) = [block for block in blocks if word in block]
    return found


@pytest.mark.xdist_group("PostgreSQL")
def test_ibis_on_postgres():
    need("ibis")
    how = postgres()
    clear = "DROP TABLE IF EXISTS sales CASCADE"
    with connected() as con:
        con.execute(clear)
        con.execute("CREATE TABLE sales (shop TEXT, mon FLOAT8, tue FLOAT8)")
        con.cursor().executemany("INSERT INTO sales VALUES (%s, %s, %s)", SALES)
    url = "postgres://{user}@{host}:{port}/{database}".format(**how)
    program = example("ibis.connect")
    assert "postgres://user@host/warehouse" in program
    names: dict[str, Any] = {}
    exec(program.replace("postgres://user@host/warehouse", url), names)
    names["con"].disconnect()
    with connected() as con:
        rows = con.execute("SELECT * FROM sales_filled ORDER BY shop").fetchall()
        con.execute(clear)
    assert rows == [pytest.approx(row) for row in FILLED]


@pytest.mark.xdist_group("Spark")
def test_spark():
    session = spark()
    frame = session.createDataFrame(SALES, "shop string, mon double, tue double")
    frame.createOrReplaceTempView("sales")
    exec(example("spark.table"), {"spark": session})
    rows = session.table("sales_filled").orderBy("shop").collect()
    assert list(map(tuple, rows)) == FILLED
    session.sql("DROP TABLE sales_filled")
