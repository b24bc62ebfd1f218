"""``a1gm report``, and ``a1gm demo``, which writes one."""

import html
import json
import re

import numpy as np
import pytest
from support.commands import run

import a1gm


def test_the_report_names_rows_by_their_lines(csv, tmp_path):
    path = csv("x,y\n1,2\n\n3,\n")
    run("report", path, "-o", tmp_path / "a.html")
    page = (tmp_path / "a.html").read_text()
    assert "line 2" in page
    assert "line 4" in page
    assert "row 0" not in page


def notes_in(path):
    """The lines of a page that stand before its numbers."""
    found = re.search(r'<ul class="notes[^>]*>(.*?)</ul>', path.read_text())
    words = re.sub("</?span.*?>", "", found[1]) if found else ""
    return re.findall("<li>(.*?)</li>", html.unescape(words))


def test_a_page_names_the_options_of_the_command_that_made_it(tmp_path):
    """In Python they are those of the function: see tests/report."""
    rng = np.random.default_rng(3)
    X = np.where(rng.random((12, 9)) < 0.5, np.nan, rng.poisson(20.0, (12, 9)))
    path, out = tmp_path / "a.csv", tmp_path / "a.html"
    np.savetxt(path, X, delimiter=",", header="a,b,c,d,e,f,g,h,i", comments="")
    run("report", path, "-o", out, "--max-iter", "1", "--tol", "1e-15")
    assert "Raise --max-iter or --tol." in notes_in(out)[0]


@pytest.mark.parametrize("long", [False, True])
def test_report_and_assess_judge_the_same_sample(tmp_path, long):
    rng = np.random.default_rng(0)
    X = rng.poisson(np.outer(rng.gamma(3, 20, 300), rng.gamma(3, 1, 5)))
    path, out, options = tmp_path / "a.csv", tmp_path / "a.html", []
    lines = [f"S{i},{','.join(map(str, row))}" for i, row in enumerate(X)]
    lines = ["shop,a,b,c,d,e", *lines]
    if long:
        cells = [f"S{i},{j},{x}" for (i, j), x in np.ndenumerate(X)]
        lines, options = ["shop,item,x", *cells], ["--long", "shop,item,x"]
    path.write_text("\n".join(lines))
    run("report", path, "-o", out, "--sample", "40", *options)
    found = json.loads(run("assess", path, "--sample", "40", "--json", *options).stdout)
    assert found["n_rows"] == [40, 300]
    comparison = found["verdict"].partition(": ")[2]
    assert comparison[1:] in out.read_text()
    assert notes_in(out)[0].startswith("This page is about 40 of the 300 rows")
    expected = a1gm.assess(X, sample=40, random_state=0)
    assert expected.verdict == found["verdict"]


def headlines(path, tmp_path, *options):
    """The first sentences of the report and of assess."""
    out = tmp_path / "page.html"
    run("report", path, "-o", out, "--overwrite", *options)
    found = json.loads(run("assess", path, "--json", *options).stdout)
    head = re.search('<p class="head">(.*?)</p>', out.read_text())[1]
    return head, found["verdict"].partition(": ")[0] + "."


@pytest.mark.nightly  # the months give the same answer in less
def test_report_and_assess_say_the_same_about_a_sparse_table(tmp_path):
    rng = np.random.default_rng(0)
    n, m, size = 3459, 800, 27_358  # 250 rows of it have too few cells
    at = np.sort(rng.choice(n * m, size, replace=False))
    i, j = np.divmod(at, m)
    x = rng.poisson(3.0 * (rng.gamma(3, 1, n)[i] * rng.gamma(3, 1, m)[j])) + 1
    path = tmp_path / "ratings.csv"
    lines = [f"u{a},i{b},{c}" for a, b, c in zip(i, j, x, strict=True)]
    path.write_text("\n".join(["user,item,rating", *lines]))
    page, terminal = headlines(path, tmp_path, "--long", "user,item,rating")
    assert page == terminal == "Rank 1 is better than the column means."


def test_report_and_assess_say_the_same_about_months(tmp_path):
    rng = np.random.default_rng(0)
    X = np.round(1000 * np.exp(rng.normal(0, 0.3, (200, 12)).cumsum(axis=1)))
    path = tmp_path / "walks.csv"
    months = ",".join(f"2024-{month:02d}" for month in range(1, 13))
    lines = [f"S{i},{','.join(map(str, row))}" for i, row in enumerate(X)]
    path.write_text("\n".join([f"shop,{months}", *lines]))
    page, terminal = headlines(path, tmp_path)
    assert page == terminal == "The last value is better than rank 1."


def test_groups_are_judged(tmp_path):
    rng = np.random.default_rng(0)
    X = rng.poisson(np.outer(rng.gamma(3, 20, 40), rng.gamma(3, 1, 5)))
    cells = [f"{'ab'[i % 2]},S{i},{j},{x}" for (i, j), x in np.ndenumerate(X)]
    path = tmp_path / "a.csv"
    path.write_text("\n".join(["group,shop,item,x", *cells]))
    options = ["--long", "shop,item,x", "--by", "group"]
    text = run("assess", path, *options)
    assert "200 rows, 2 tables by group." in text.stderr
    assert re.search("group +hidden cells +lead +coverage +verdict", text.stdout)
    assert re.search("all +100 .*Rank 1 is better", text.stdout)
    found = json.loads(run("assess", path, "--json", *options).stdout)
    assert list(found["groups"]) == ["a", "b"]
    assert found["n_hidden"] == 100
    assert found["failed"] == {}


TOTALS = (
    "shop,jan,feb,mar,total\n"
    "A,10,20,30,60\nB,20,,60,80\nC,30,60,,90\ntotal,60,80,90,230\n"
)


@pytest.mark.parametrize("options", [(), ("--quiet",)])
def test_the_page_repeats_what_the_terminal_warns_of(tmp_path, options):
    path, out = tmp_path / "a.csv", tmp_path / "a.html"
    path.write_text(TOTALS)
    words = run("report", path, "-o", out, *options).stderr
    totals = notes_in(out)
    assert [text.partition(" looks like")[0] for text in totals] == [
        "Column 'total'",
        "Row 'total'",
    ]
    if not options:
        assert all(f"a.csv: {text[0].lower()}{text[1:]}" in words for text in totals)
    assert totals[0].endswith("--exclude total leaves it out.")
    run("report", path, "-o", out, "--exclude", "total", "--overwrite")
    row, columns = notes_in(out)
    assert row == totals[1]
    assert columns == "Columns that are not part of the table: total."


def test_the_page_tells_of_numbers_taken_for_names(csv, tmp_path):
    path = csv("id,jan,feb\n101,10,20\n205,20,\n303,31,60\n")
    run("report", path, "-o", tmp_path / "a.html")
    (note,) = notes_in(tmp_path / "a.html")
    assert note.startswith("Took 'id' as row labels, by name and type. Pass --columns")


@pytest.mark.parametrize("long", [False, True])
def test_the_page_tells_of_files_left_out(tmp_path, long):
    folder = tmp_path / "parts"
    folder.mkdir()
    (folder / "notes.txt").write_text("not a table")
    (folder / ".old.csv").write_text("x,y\n1,2\n")
    if long:
        (folder / "a.csv").write_text("r,c,x\nA,u,1\nA,v,2\nB,u,3\n")
        options = "--long", "r,c,x"
    else:
        (folder / "a.csv").write_text("x,y\n1,2\n3,\n")
        options = ()
    (folder / "b.csv").write_text((folder / "a.csv").read_text().partition("\n")[0])
    run("report", folder, "-o", tmp_path / "a.html", *options)
    note, hidden = notes_in(tmp_path / "a.html")
    assert hidden == "Hidden files left out: .old.csv."
    assert note.startswith("Left out of ")
    assert "a.csv: 1 file has no rows (" in note
    assert "1 is not a table (notes.txt)" in note


@pytest.mark.parametrize(
    ("given", "heading"),
    [("{}/a.csv", "a.csv"), ("{}", "parts (2 files)"), ("{}/", "parts (2 files)")],
)
def test_the_heading_is_the_name_of_the_file_without_its_folder(
    given, heading, tmp_path
):
    parts = tmp_path / "parts"
    parts.mkdir()
    for name in ("a.csv", "b.csv"):
        (parts / name).write_text("shop,x,y\na,1,2\nb,2,\nc,3,6\n")
    run("report", given.format(parts), "-o", tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text()
    assert f"<title>{heading}</title>" in page
    assert given.format(parts).rstrip("/") in page  # below, where it came from


def test_demo_walks_through(tmp_path):
    done = run("demo", "-o", tmp_path / "demo")
    names = sorted(p.name for p in (tmp_path / "demo").iterdir())
    assert names == ["filled.csv", "report.html", "sales.csv"]
    assert "$ a1gm impute" in done.stderr
    assert "Rank 1 is better than the last value" in done.output
    lines = done.output.splitlines()
    assert len(lines) <= 32  # one screen
    said = [line for line in lines if line.strip()]
    assert len(said) == len(set(said))
    page = (tmp_path / "demo" / "report.html").read_text()
    assert '<th scope="row">S08</th><td>2024-05</td>' in page  # the planted outlier
    filled = (tmp_path / "demo" / "filled.csv").read_text().splitlines()
    assert all(",," not in line for line in filled[:-1])
    assert filled[-1].endswith("," * 24)
