"""The scripts behind docs/paper.md run, on tables small enough for a test."""

import csv
import gzip
import subprocess
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[2] / "benchmarks"
pytestmark = pytest.mark.nightly


def run(script: str, *options: object) -> str:
    command = [sys.executable, FOLDER / script, *options]
    done = subprocess.run(
        [str(word) for word in command], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def rows_of(path: Path) -> list[dict[str, str]]:
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def test_table1_reads_plain_and_compressed_files(tmp_path) -> None:
    (tmp_path / "plain.csv").write_text("a,b,c\n1,2,3\n4,,0\n-7,8,\n2,2,2\n")
    with gzip.open(tmp_path / "SleepData.csv.gz", "wt") as file:
        file.write("a,b\n1,2\n3,\n5,6\n")
    out = tmp_path / "table1.csv"
    printed = run("table1.py", "--data", tmp_path, "--budget", 0, "--out", out)
    sleep, plain = rows_of(out)
    assert (sleep["data_set"], plain["data_set"]) == ("SleepData", "plain")
    assert plain["increase_rate"] == "2"
    assert float(sleep["fit_relative_error"]) <= 1.0000001
    assert float(plain["fit_relative_error"]) <= float(plain["a1gm_relative_error"])
    assert "SleepData: this copy differs from the paper's" in printed
    assert "not found: Autompg" in printed


def test_table1_asks_for_the_data(tmp_path) -> None:
    command = [sys.executable, str(FOLDER / "table1.py"), "--data", tmp_path / "none"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "A1GM_DATA" in done.stderr


def test_figure5_writes_numbers_and_pictures(tmp_path) -> None:
    pytest.importorskip("matplotlib")
    run("figure5.py", "--largest", 21, "--trials", 2, "--out", tmp_path)
    rows = rows_of(tmp_path / "figure5.csv")
    assert {row["pattern"] for row in rows} == {"corner", "grid"}
    assert {row["size"] for row in rows} == {"10", "21"}
    assert len({row["method"] for row in rows}) == 4
    assert (tmp_path / "figure5.svg").stat().st_size > 1000
    assert (tmp_path / "figure5.png").stat().st_size > 1000


def test_peers_names_what_is_skipped_and_beats_no_optimum(tmp_path) -> None:
    out = tmp_path / "peers.csv"
    run("peers.py", "--table", "triangle", "--budget", 0, "--out", out)
    rows = rows_of(out)
    assert len(rows) == 14
    for row in rows:
        assert row["note"] or float(row["excess"]) >= -1e-9
    by_name = {row["rival"]: row for row in rows}
    assert by_name["scikit-learn NMF (mu, KL)"]["note"] == "complete tables only"


@pytest.mark.parametrize(
    ("note", "shown"),
    [
        ("skipped: glum is not installed", "not installed"),
        ("failed: ValueError", "failed"),
        ("complete tables only", "–"),
    ],
)
def test_peers_tells_the_absent_from_the_unfit(note, shown, monkeypatch) -> None:
    monkeypatch.syspath_prepend(str(FOLDER))
    peers = pytest.importorskip("peers")
    row = {"rival": "glum", "table": "grid", "seconds": "", "note": note}
    assert peers.pivot([row]) == [{"": "glum", "grid": shown}]
