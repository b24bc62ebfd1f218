"""``a1gm assess``."""

import json

from support.commands import run

SALES = "shop,a,b,c,d\n" + "".join(
    f"s{i},{10 * i},{21 * i},{29 * i + 1},{'' if i == 3 else 40 * i}\n"
    for i in range(1, 12)
)


def test_the_verdict_comes_first(tmp_path):
    (tmp_path / "a.csv").write_text(SALES)
    words = run("assess", tmp_path / "a.csv").stdout
    assert words.startswith("Rank 1 is better than the column means: on ")
    summary = json.loads(run("assess", tmp_path / "a.csv", "--json").stdout)
    assert summary["skill"] > 0.5
    assert summary["scores"]["rank 1"]["deviance"] >= 0.0
    assert words.startswith(summary["verdict"])
    last = run("assess", tmp_path / "a.csv", "--hide", "last", "--seed", "3").stdout
    assert "last value" in last
