"""``a1gm nmmf``."""

import json

import numpy as np
import pytest
from support.commands import run

import a1gm

nan = np.nan


@pytest.fixture
def shared(tmp_path):
    (tmp_path / "x.csv").write_text("user,p,q\nann,1,2\nbob,,4\ncid,3,6\n")
    (tmp_path / "y.csv").write_text("shop,q,p\nS,8,4\n")
    (tmp_path / "z.csv").write_text("user,age\ncid,30\nann,10\nbob,20\n")
    return tmp_path


def test_nmmf_matches_rows_and_columns_by_name(shared):
    out = shared / "out"
    options = ["--y", shared / "y.csv", "--z", shared / "z.csv", "--id", "user"]
    done = run("nmmf", shared / "x.csv", *options, "-o", out, "--json", "-q")
    assert json.loads(done.stdout)["certificate"] <= 1e-10
    expected = a1gm.fit_nmmf(
        [[1, 2], [nan, 4], [3, 6]], Y=[[4, 8]], Z=[[10], [20], [30]]
    )
    for name, names in (
        ("w", ["ann", "bob", "cid"]),
        ("h", ["p", "q"]),
        ("a", ["S"]),
        ("b", ["age"]),
    ):
        lines = (out / f"{name}.csv").read_text().splitlines()[1:]
        assert [line.split(",")[0] for line in lines] == names
        found = [float(line.split(",")[1]) for line in lines]
        np.testing.assert_allclose(found, getattr(expected, name), rtol=1e-9)


def test_each_table_may_be_a_folder_of_parts(shared):
    (shared / "parts").mkdir()
    (shared / "parts" / "1.csv").write_text("user,p,q\nann,1,2\n")
    (shared / "parts" / "2.csv").write_text("user,p,q\nbob,,4\ncid,3,6\n")
    found = []
    for name in ("x.csv", "parts"):
        options = ["--z", shared / "z.csv", "-o", shared / f"out {name}"]
        run("nmmf", shared / name, *options)
        found.append((shared / f"out {name}" / "w.csv").read_text())
    assert found[0] == found[1]


def test_nmmf_calls_rows_and_columns_by_name(shared):
    x, z, out = shared / "x.csv", shared / "z.csv", shared / "out"
    x.write_text("user,p,q\nann,1,\nbob,,\ncid,3,\n")
    z.write_text("user,age,pay\ncid,30,\nann,10,\nbob,,\n")
    words = run("nmmf", x, "--z", z, "--id", "user", "-o", out).stderr
    assert "Nothing determines w['bob'] and h['q'] and b['pay']:" in words
    options = ["--z", z, "-o", out, "--overwrite"]
    words = run("nmmf", x, *options).stderr  # both have a first column user
    assert "Nothing determines w['bob'] and h['q'] and b['pay']:" in words
    words = run("nmmf", x, *options, "--exclude", "user").stderr
    assert "Nothing determines h['q'] and b['pay']:" in words
    x.write_text("p,q\n1,2\n\n,\n")
    z.write_text("age\n1\n\n")
    words = run("nmmf", x, "--z", z, "-o", out, "--overwrite").stderr
    assert "Nothing determines w['line 4']:" in words
