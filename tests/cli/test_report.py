"""``a1gm report``."""

from support.commands import run


def test_the_report_names_rows_by_their_lines(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("x,y\n1,2\n\n3,\n")
    run("report", path, "-o", tmp_path / "a.html")
    page = (tmp_path / "a.html").read_text()
    assert "line 2" in page
    assert "line 4" in page
    assert "row 0" not in page


def test_the_report_locates_bad_cells(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("x,y\n1,2\n\n3,-4\n")
    words = run("report", path, "-o", tmp_path / "a.html", code=1).stderr
    assert "a.csv, line 4, column 'y': -4 is negative" in words
