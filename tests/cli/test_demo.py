"""``a1gm demo``."""

from support.commands import run


def test_demo_walks_through(tmp_path):
    done = run("demo", "-o", tmp_path / "demo")
    names = sorted(p.name for p in (tmp_path / "demo").iterdir())
    assert names == ["filled.csv", "report.html", "sales.csv"]
    assert "$ a1gm impute" in done.stderr
    assert "Rank 1 is better than the column means" in done.output
    lines = done.output.splitlines()
    assert len(lines) <= 32  # one screen
    said = [line for line in lines if line.strip()]
    assert len(said) == len(set(said))
    page = (tmp_path / "demo" / "report.html").read_text()
    assert '<th scope="row">S08</th><td>2024-05</td>' in page  # the planted outlier
    filled = (tmp_path / "demo" / "filled.csv").read_text().splitlines()
    assert all(",," not in line for line in filled[:-1])
    assert filled[-1].endswith("," * 24)
