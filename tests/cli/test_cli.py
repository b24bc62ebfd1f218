"""The commands: what they print, write and say."""

import json
import re
import subprocess
import sys
import sysconfig
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support.commands import run

import a1gm
from a1gm._api import gather as _gather
from a1gm.cli import console, gather
from a1gm.cli.app import app
from a1gm.cli.common import split_names, unwrapped
from a1gm.cli.console import _duration
from a1gm.cli.holes import HolePicture
from a1gm.cli.inspect import shrink
from a1gm._sources.files import csv as csv_source

ROOT = Path(__file__).parents[2]
CSV = ROOT / "tests" / "data" / "csv"
COMMANDS = [command.name for command in app.registered_commands]
nan = np.nan


@pytest.fixture
def sales(tmp_path):
    path = tmp_path / "sales.csv"
    path.write_text(
        "shop,opened,jan,feb,mar\n"
        "A,2020-01-01,10,20,30\n"
        "B,2021-05-01,20,,60\n"
        'C,,30,60,\n"D, new",2022-02-02,40,80,120\n'
    )
    return path


# Help and documentation


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_help_with_an_example_and_a_page(name):
    text = run(name, "--help").output
    assert "Example:" in text
    assert f"a1gm {name}" in text
    page = (ROOT / "docs" / "cli.md").read_text()
    section = re.search(
        rf"^## {name}\n(.*?)(?=^## |\Z)", page, re.DOTALL | re.MULTILINE
    )
    assert section is not None, f"docs/cli.md has no section on {name}"
    assert f"a1gm {name}" in section[1]


def test_every_option_is_documented():
    page = (ROOT / "docs" / "cli.md").read_text()
    for name in COMMANDS:
        for option in set(re.findall(r"--[a-z]+", run(name, "--help").output)):
            assert option in page or option in ("--help", "--out", "--title"), option


def test_python_runs_the_package():
    command = [sys.executable, "-m", "a1gm", "--version"]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    assert a1gm.__version__ in done.stdout


def test_help_answers_at_once():
    def seconds(*command):
        started = time.perf_counter()
        subprocess.run(command, check=True, capture_output=True)
        return time.perf_counter() - started

    executable = Path(sysconfig.get_path("scripts")) / "a1gm"
    extra = []
    # The machine may be busy: the fastest of a few runs counts.
    for _ in range(8):
        extra.append(seconds(executable, "--help") - seconds(sys.executable, "-c", "0"))
        if min(extra) < 0.4:
            break
    assert min(extra) < 0.4


def test_version():
    assert run("--version").output == f"a1gm {a1gm.__version__}\n"


@pytest.mark.parametrize(
    ("package", "arguments"),
    [("typer", ["--help"]), ("rich", ["--help"]), ("pyarrow", ["inspect"])],
)
def test_an_absent_package_names_the_extra(package, arguments):
    code = (
        "import sys\n"
        f"sys.modules[{package!r}] = None\n"
        f"sys.argv = ['a1gm', *{[*arguments, str(CSV / 'plain.csv')]!r}]\n"
        "from a1gm.cli import main\n"
        "main()\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    assert "a1gm[cli]" in done.stderr
    assert "Traceback" not in done.stderr


# inspect


def test_inspect_prints_what_there_is(sales):
    done = run("inspect", sales, "--id", "shop")
    for word in ("4 rows × 3 columns", "2 cells of 12 (16.7%)", "mar", "feb", "█"):
        assert word in done.stdout
    assert "Passed through untouched: shop, opened." in done.stderr


def test_inspect_for_programs(sales):
    done = run("inspect", sales, "--json")
    found = json.loads(done.stdout)
    pattern = a1gm.MissingPattern.of(
        np.array([[10, 20, 30], [20, nan, 60], [30, 60, nan], [40, 80, 120]])
    )
    expected = {
        "n_rows": 4,
        "n_cols": 3,
        "n_missing": 2,
        "n_row_patterns": 3,
        "n_col_patterns": 3,
        "is_complete": False,
        "is_grid_like": False,
        "is_nested": pattern.is_nested,
        "has_closed_form": pattern.has_closed_form,
        "increase_rate": 2.0,
        "core_shape": list(pattern.core_shape),
        "n_blocks": 1,
        "n_undetermined": 0,
    }
    assert found == expected


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("x,y\n1,2\n3,4\n", "complete"),
        ("x,y\n1,2\n3,\n", "grid"),
        ("x,y,z\n1,2,3\n1,2,\n1,,\n", "staircase"),
        ("x,y\n1,\n,2\n", "2: their scales cannot be compared"),
    ],
)
def test_inspect_names_the_shape(tmp_path, text, words):
    path = tmp_path / "a.csv"
    path.write_text(text)
    assert words in run("inspect", path).stdout


def test_inspect_counts_what_cannot_be_known(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("x,y\n1,\n,2\n")
    assert (
        json.loads(run("inspect", path, "--json", "-q").stdout)["n_undetermined"] == 2
    )


# fit


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_fit_writes_factors_with_names(sales, tmp_path, kind):
    out = tmp_path / "results"
    run("fit", sales, "--id", "shop", "-o", out, "--format", kind)
    if kind == "csv":
        rows = (out / "row_factor.csv").read_text().splitlines()
        assert rows[0] == "shop,row_factor,block"
        assert rows[4].startswith('"D, new",')
        assert (
            (out / "col_factor.csv").read_text().startswith("column,col_factor,block")
        )
        factor = [
            float(line.rpartition(",")[0].rpartition(",")[2]) for line in rows[1:]
        ]
    else:
        table = pq.read_table(out / "row_factor.parquet")
        assert table.column("shop").to_pylist() == ["A", "B", "C", "D, new"]
        factor = table.column("row_factor").to_pylist()
    np.testing.assert_allclose(factor, [60, 120, 180, 240], rtol=1e-7)
    summary = json.loads((out / "fit.json").read_text())
    assert summary["columns"] == ["jan", "feb", "mar"]
    assert summary["certificate"] <= 1e-10
    assert abs(summary["divergence"]) < 1e-9


def test_fit_numbers_rows_without_an_id(sales, tmp_path):
    run("fit", sales, "-o", tmp_path / "results", "-q")
    rows = (tmp_path / "results" / "row_factor.csv").read_text().splitlines()
    assert rows[0] == "row,row_factor,block"
    assert rows[1].startswith("0,")


def test_fit_refuses_to_replace_results(sales, tmp_path):
    run("fit", sales, "-o", tmp_path / "results")
    done = run("fit", sales, "-o", tmp_path / "results", code=2)
    assert "--overwrite" in done.stderr
    run("fit", sales, "-o", tmp_path / "results", "--overwrite")
    assert "is a file" in run("fit", sales, "-o", sales, code=2).stderr
    assert "--format" in run("fit", sales, "-o", "x", "--format", "xml", code=2).stderr


@pytest.mark.parametrize("few_cells", [0, 1 << 20])
def test_divergence_is_that_of_the_library(tmp_path, monkeypatch, few_cells):
    """Whether the table was fitted in one piece or from its statistics."""
    monkeypatch.setattr(gather, "_FEW_CELLS", few_cells)
    X = np.random.default_rng(0).poisson(5, (40, 6)).astype(float)
    X[np.random.default_rng(1).random(X.shape) < 0.2] = nan
    path = tmp_path / "a.csv"
    np.savetxt(path, X, delimiter=",", header="a,b,c,d,e,f", comments="")
    done = run("fit", path, "-o", tmp_path / "out", "--json", "-q")
    found = json.loads(done.stdout)["divergence"]
    assert found == pytest.approx(a1gm.fit(X).divergence, rel=1e-9)


# impute


def test_impute_keeps_everything_else(sales, tmp_path):
    done = run("impute", sales, "-o", tmp_path / "filled.csv")
    before = sales.read_text().splitlines()
    after = (tmp_path / "filled.csv").read_text().splitlines()
    assert after[0] == before[0]
    assert after[1] == before[1]
    assert after[4] == before[4]
    assert re.fullmatch(r"B,2021-05-01,20,(40|39\.9{6}\d*|40\.0{6}\d*),60", after[2])
    assert "Filled 2 cells in 2 columns" in done.stderr


def test_impute_marks_the_filled_cells(sales, tmp_path):
    run("impute", sales, "-o", tmp_path / "filled.csv", "--mark", "--json")
    after = (tmp_path / "filled.csv").read_text().splitlines()
    assert after[0].endswith(",mar,feb_filled,mar_filled")
    assert after[1].endswith(",false,false")
    assert after[2].endswith(",true,false")
    assert after[3].endswith(",false,true")


def test_impute_to_typed_files_keeps_integers(sales, tmp_path):
    run("impute", sales, "-o", tmp_path / "filled.parquet", "--mark")
    table = pq.read_table(tmp_path / "filled.parquet")
    kinds = dict(zip(table.schema.names, map(str, table.schema.types), strict=True))
    assert kinds["jan"] == "int64"
    assert kinds["feb"] == "double"
    assert kinds["opened"] == "string"
    assert kinds["feb_filled"] == "bool"


def test_impute_typed_files(tmp_path):
    table = pa.table(
        {
            "name": ["a", "b", "c"],
            "n": pa.array([1, 2, 3], pa.int16()),
            "m": pa.array([2, None, 6], pa.int32()),
            "f": pa.array([3, 6, nan], pa.float32()),
            "d": pa.array([4, None, 12], pa.decimal128(8, 2)),
            "kind": pa.array(["u", None, "v"]).dictionary_encode(),
        }
    )
    pq.write_table(table, tmp_path / "in.parquet")
    for suffix in (".parquet", ".feather"):
        run("impute", tmp_path / "in.parquet", "-o", tmp_path / f"out{suffix}")
    found = pq.read_table(tmp_path / "out.parquet")
    assert found.column("n").type == pa.int16()
    assert found.column("m").type == pa.float64()
    assert found.column("f").type == pa.float32()
    assert found.column("d").type == pa.decimal128(8, 2)
    assert found.column("m").to_pylist() == pytest.approx([2, 4, 6])
    assert found.column("f").to_pylist() == pytest.approx([3, 6, 9])
    assert list(map(float, found.column("d").to_pylist())) == [4, 8, 12]
    assert found.column("kind").to_pylist() == ["u", None, "v"]
    with pa.ipc.open_file(tmp_path / "out.feather") as reader:
        assert reader.read_all().to_pylist() == found.to_pylist()


def test_what_cannot_be_known_stays_missing(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("x,y\n1,NA\nNA,2\n3,NA\n")
    done = run("impute", path, "-o", tmp_path / "b.csv")
    assert (tmp_path / "b.csv").read_text() == path.read_text()
    assert "3 cells stay missing" in done.stderr
    assert done.stderr.count("warning") == 1
    quiet = run("impute", path, "-o", tmp_path / "c.csv", "-q")
    assert quiet.stderr == ""


@pytest.mark.parametrize("many_patterns", [20_000, 3])
@pytest.mark.parametrize("table_bytes", [1 << 26, 1])
@pytest.mark.parametrize("cells_kept", [1 << 25, 250, 50])
def test_large_tables_get_the_answer_of_small_ones(
    tmp_path, monkeypatch, cells_kept, table_bytes, many_patterns
):
    """From blocks kept or statistics alone, with too many patterns for these or not."""
    rng = np.random.default_rng(3)
    X = np.outer(rng.gamma(2, 1, 60), rng.gamma(2, 1, 5)) + 0.1
    X[rng.random(X.shape) < 0.2] = nan
    path = tmp_path / "a.csv"
    text = "\n".join(
        ",".join("" if np.isnan(x) else repr(float(x)) for x in r) for r in X
    )
    path.write_text("a,b,c,d,e\n" + text + "\n")
    expected = a1gm.fit(X).impute(X)
    monkeypatch.setattr(gather, "_FEW_CELLS", 0)
    monkeypatch.setattr(gather, "MOST_CELLS_KEPT", cells_kept)
    monkeypatch.setattr(gather, "_MANY_PATTERNS", many_patterns)
    monkeypatch.setattr(csv_source, "_BLOCK_BYTES", 512)
    defaults = _gather.Gatherer.__init__.__kwdefaults__
    monkeypatch.setitem(defaults, "table_bytes", table_bytes)
    run("impute", path, "-o", tmp_path / "b.csv", "-q")
    found = np.loadtxt(tmp_path / "b.csv", delimiter=",", skiprows=1)
    np.testing.assert_allclose(found, expected, rtol=1e-8)


def test_large_tables_with_unknown_cells(tmp_path, monkeypatch):
    monkeypatch.setattr(gather, "_FEW_CELLS", 0)
    monkeypatch.setattr(gather, "MOST_CELLS_KEPT", 0)
    path = tmp_path / "a.csv"
    path.write_text("x,y,z\n1,2,\n2,,\n,,3\n")
    run("impute", path, "-o", tmp_path / "b.csv", "-q")
    assert (tmp_path / "b.csv").read_text() == "x,y,z\n1,2,\n2,4,\n,,3\n"


# What warnings call rows and columns

HOLES = "shop,jan,feb,mar\nA,1,,\n\nB,,2,\nC,,,\nD,,4,\n"
EMPTY = "Nothing is observed in"


@pytest.mark.parametrize("few_cells", [0, 1 << 20])
@pytest.mark.parametrize("command", ["inspect", "impute", "fit", "report"])
def test_rows_go_by_their_id(tmp_path, monkeypatch, few_cells, command):
    monkeypatch.setattr(gather, "_FEW_CELLS", few_cells)
    path = tmp_path / "a.csv"
    path.write_text(HOLES)
    out = [] if command == "inspect" else ["-o", tmp_path / OUTPUTS[command]]
    words = run(command, path, "--id", "shop", *out).stderr
    assert f"{EMPTY} row 'C' and column 'mar':" in words
    assert (
        "3 missing cells are undetermined, the first at row 'A', column 'feb'." in words
    )
    where = "the page" if command == "report" else "a1gm report"
    assert f"They stay missing; {where} lists them." in words
    assert "fit.undetermined" not in words


OUTPUTS = {"impute": "b.csv", "fit": "results", "report": "b.html"}


@pytest.mark.parametrize("few_cells", [0, 1 << 20])
def test_rows_without_an_id_go_by_their_line(tmp_path, monkeypatch, few_cells):
    monkeypatch.setattr(gather, "_FEW_CELLS", few_cells)
    path = tmp_path / "a.csv"
    path.write_text(HOLES)
    words = run("inspect", path).stderr
    # The blank line counts, as it does in an editor.
    assert f"{EMPTY} line 5 and column 'mar':" in words
    assert "the first at line 2, column 'feb'." in words
    path.write_text(HOLES + ",,,\n" * 9)
    words = run("inspect", path).stderr
    assert f"{EMPTY} lines 5, 7, 8, 9, 10 and 5 more and column 'mar':" in words


def test_several_ids_and_typed_files(tmp_path):
    table = pa.table(
        {
            "town": ["Cork", "Cork", "Faro"],
            "shop": [1, 2, 1],
            "x": [1.0, None, None],
            "y": [2.0, 3.0, None],
        }
    )
    pq.write_table(table, tmp_path / "a.parquet", row_group_size=1)
    words = run("inspect", tmp_path / "a.parquet", "--id", "town,shop").stderr
    assert f"{EMPTY} row 'Faro · 1':" in words
    words = run("inspect", tmp_path / "a.parquet", "--exclude", "shop").stderr
    assert f"{EMPTY} row 2:" in words


def test_the_report_names_rows_by_their_lines(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("x,y\n1,2\n\n3,\n")
    run("report", path, "-o", tmp_path / "a.html")
    page = (tmp_path / "a.html").read_text()
    assert "line 2" in page
    assert "line 4" in page
    assert "row 0" not in page


@pytest.mark.parametrize("command", ["inspect", "report"])
def test_sums_below_zero_are_named(tmp_path, command):
    path = tmp_path / "a.csv"
    path.write_text("shop,x,y\nA,1,2\nB,1,-4\n")
    out = [] if command == "inspect" else ["-o", tmp_path / "b.html"]
    words = run(command, path, *out, "--negatives", "allow", code=1).stderr
    assert "a.csv, line 3: the row sums to less than zero." in words
    path.write_text("shop,x,y\nA,3,2\nB,5,-4\n")
    words = run(command, path, *out, "--negatives", "allow", code=1).stderr
    assert "a.csv: column 'y' sums to less than zero." in words
    assert "--exclude y" in words


def test_integers_that_cannot_be_kept_are_refused(tmp_path):
    table = pa.table({"x": pa.array([2**60 + 1, None], pa.int64()), "y": [1.0, 2.0]})
    pq.write_table(table, tmp_path / "a.parquet")
    done = run("impute", tmp_path / "a.parquet", "-o", tmp_path / "b.parquet", code=1)
    assert "--exclude x" in done.stderr
    assert not (tmp_path / "b.parquet").exists()


def test_a_mark_needs_its_name(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("x,y,x_filled\n1,2,no\n,4,no\n")
    done = run("impute", path, "-o", tmp_path / "b.csv", "--mark", code=2)
    assert "'x_filled'" in done.stderr


def test_names_are_split_at_commas_unless_a_column_is_called_so():
    assert split_names(["a,b", "c"], ["a", "b", "c"]) == ["a", "b", "c"]
    assert split_names(["a,b"], ["a,b", "c"]) == ["a,b"]
    assert split_names(None, ["a"]) == []


def test_negative_cells_can_be_allowed(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("x,y,z\n10,5,1\n20,-1,\n30,14,\n")
    assert "Negative values" in run("impute", path, "-o", "-", code=1).stderr
    run("impute", path, "-o", tmp_path / "b.csv", "--negatives", "allow")
    assert "20,-1," in (tmp_path / "b.csv").read_text()


def test_debug_shows_the_traceback(tmp_path):
    done = run("inspect", CSV / "ragged_short.csv", "--debug", code=1)
    assert "Traceback" in done.stderr
    assert "Traceback" not in run("inspect", CSV / "ragged_short.csv", code=1).stderr


def test_a_saved_model_fills_other_files(sales, tmp_path):
    run("fit", sales, "-o", tmp_path / "results", "-q")
    model = tmp_path / "results" / "model.a1gm"
    new = tmp_path / "new.csv"
    new.write_text("mar,name,jan,feb\n,E,50,\n6,F,,4\n")
    run("impute", new, "-o", tmp_path / "b.csv", "--model", model)
    lines = (tmp_path / "b.csv").read_text().splitlines()
    assert lines[0] == "mar,name,jan,feb"
    cells = [line.split(",") for line in lines[1:]]
    assert [float(cells[0][k]) for k in (0, 2, 3)] == pytest.approx([150, 50, 100])
    assert [float(cells[1][k]) for k in (0, 2, 3)] == pytest.approx([6, 2, 4])
    np.testing.assert_allclose(a1gm.load(model).col_factor, [1 / 6, 1 / 3, 1 / 2])


def test_models_that_do_not_fit_are_refused(sales, tmp_path):
    run("fit", sales, "-o", tmp_path / "results", "-q")
    model = tmp_path / "results" / "model.a1gm"
    other = tmp_path / "other.csv"
    other.write_text("jan,feb\n1,2\n")
    out = tmp_path / "b.csv"
    done = run("impute", other, "-o", out, "--model", model, code=2)
    assert "no column 'mar'" in done.stderr
    done = run("impute", sales, "-o", out, "--model", tmp_path / "none", code=2)
    assert "does not exist" in done.stderr
    model.write_bytes(b"not a model")
    assert "model" in run("impute", sales, "-o", out, "--model", model, code=1).stderr
    assert not out.exists()


# nmmf


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
        ("a", ["0"]),
        ("b", ["age"]),
    ):
        lines = (out / f"{name}.csv").read_text().splitlines()[1:]
        assert [line.split(",")[0] for line in lines] == names
        found = [float(line.split(",")[1]) for line in lines]
        np.testing.assert_allclose(found, getattr(expected, name), rtol=1e-9)


def test_nmmf_refuses_what_does_not_match(shared):
    x, z, out = shared / "x.csv", shared / "z.csv", shared / "out"
    assert "--y or --z" in run("nmmf", x, "-o", out, code=2).stderr
    (shared / "z2.csv").write_text("user,age\ncid,30\nann,10\ndan,20\n")
    done = run("nmmf", x, "--z", shared / "z2.csv", "--id", "user", "-o", out, code=2)
    assert "'bob' is in only one" in done.stderr
    (shared / "z3.csv").write_text("user,age\ncid,30\n")
    done = run("nmmf", x, "--z", shared / "z3.csv", "-o", out, code=2)
    assert "has 1 row and" in done.stderr
    done = run("nmmf", x, "--y", z, "-o", out, code=2)
    assert "no column 'p'" in done.stderr
    assert not out.exists()


def test_nmmf_calls_rows_and_columns_by_name(shared):
    x, z, out = shared / "x.csv", shared / "z.csv", shared / "out"
    x.write_text("user,p,q\nann,1,\nbob,,\ncid,3,\n")
    z.write_text("user,age,pay\ncid,30,\nann,10,\nbob,,\n")
    words = run("nmmf", x, "--z", z, "--id", "user", "-o", out).stderr
    assert "Nothing determines w['bob'] and h['q'] and b['pay']:" in words
    assert "warning: 8 missing cells cannot be known" in words
    words = run("nmmf", x, "--z", z, "-o", out, "--overwrite").stderr
    assert "Nothing determines h['q'] and b['pay']:" in words
    x.write_text("p,q\n1,2\n\n,\n")
    z.write_text("age\n1\n\n")
    words = run("nmmf", x, "--z", z, "-o", out, "--overwrite").stderr
    assert "Nothing determines w['line 4']:" in words


def test_nmmf_locates_bad_cells(shared):
    x, z, out = shared / "x.csv", shared / "z.csv", shared / "out"
    z.write_text("user,age\ncid,30\nann,-10\nbob,1\n")
    words = run("nmmf", x, "--z", z, "--id", "user", "-o", out, code=1).stderr
    assert "z.csv, line 3, column 'age': -10 is negative" in words
    options = ["--z", z, "-o", out, "--negatives", "allow"]
    assert "no cells below zero" in run("nmmf", x, *options, code=2).stderr


def test_the_report_locates_bad_cells(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("x,y\n1,2\n\n3,-4\n")
    words = run("report", path, "-o", tmp_path / "a.html", code=1).stderr
    assert "a.csv, line 4, column 'y': -4 is negative" in words


def test_columns_that_another_table_has_are_named(sales, shared):
    run("fit", sales, "-o", shared / "results", "-q")
    model = shared / "results" / "model.a1gm"
    x, out = shared / "x.csv", shared / "b.csv"
    words = run("impute", x, "-o", out, "--model", model, code=2).stderr
    assert f"x.csv has no column 'jan', which the model {model} has." in words
    words = run("nmmf", x, "--y", sales, "-o", shared / "o", code=2).stderr
    assert f"sales.csv has no column 'p', which {x} has." in words


# demo, and the small tools


def test_demo_walks_through(tmp_path):
    done = run("demo", "-o", tmp_path / "demo")
    names = sorted(p.name for p in (tmp_path / "demo").iterdir())
    assert names == ["filled.csv", "report.html", "sales.csv"]
    assert "$ a1gm impute" in done.stderr
    filled = (tmp_path / "demo" / "filled.csv").read_text().splitlines()
    assert all(",," not in line for line in filled[:-1])
    assert filled[-1].endswith("," * 24)


def test_time_is_written_in_words():
    assert [_duration(s) for s in (0.4, 59, 61, 3720)] == [
        *("0 s", "59 s", "1 min 01 s", "1 h 02 min")
    ]


def test_progress_is_shown_on_a_terminal_after_a_second(monkeypatch, capsys):
    monkeypatch.setattr(console, "_SHOW_AFTER_SECONDS", 0.0)
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    monkeypatch.setenv("FORCE_COLOR", "1")
    with console.progress_bar("Reading a.csv", quiet=False) as show:
        show(1000, 0.5)
        show(2000, 1.0)
    words = capsys.readouterr().err
    assert "Reading a.csv" in words
    assert "rows/s" in words
    assert "left" in words


def test_paragraphs_are_unwrapped():
    assert unwrapped("a\nb\n\n\\b\nc\nd") == "a b\n\n\b\nc\nd"


def test_the_picture_of_holes_is_bounded():
    picture = HolePicture()
    rng = np.random.default_rng(0)
    X = np.where(rng.random((30_000, 3)) < [0.1, 0.5, 0.0], nan, 1.0)
    for start in range(0, len(X), 777):
        picture.add(X[start : start + 777])
    assert len(picture.counts()) <= 8192
    np.testing.assert_array_equal(picture.per_column(), np.isnan(X).sum(axis=0))
    assert picture.shares().max() <= 1
    small = shrink(picture.shares(), 10, 2)
    assert small.shape == (10, 2)
