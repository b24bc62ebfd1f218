"""Rows are found on the lines an editor shows."""

import gzip

import pytest
from support.files import open_file


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("x,y\n1,2\n3,4\n5,6\n", [2, 3, 4]),
        ("x,y\n1,2\n3,4\n5,6", [2, 3, 4]),
        ("x,y\r\n1,2\r\n3,4\r\n5,6\r\n", [2, 3, 4]),
        # A blank line and no line end at the end: as many line ends as rows.
        ("x,y\n1,2\n\n3,4\n5,6", [2, 4, 5]),
        ("\n\nx,y\n1,2\n3,4\n\n\n5,6\n\n", [4, 5, 8]),
        ('x,y,"a\nb"\n1,2,c\n3,4,"d\n\ne"\n5,6,f\n', [3, 4, 7]),
        ("x,y\r1,2\r3,4\r5,6\r", [2, 3, 4]),
        ("x\n1\n\n3\n", [2, 3, 4]),
    ],
)
@pytest.mark.parametrize("kind", ["plain", "gzip", "utf-16"])
def test_lines(tmp_path, text, lines, kind):
    data = text.encode("utf-16" if kind == "utf-16" else "utf-8")
    path = tmp_path / "a.csv"
    path.write_bytes(gzip.compress(data) if kind == "gzip" else data)
    table = open_file(path, encoding="utf-16" if kind == "utf-16" else "utf-8")
    list(table.pieces())
    assert table.source.lines_of([0, 1, 2]) == lines
    assert table.source.lines_of([2, 0]) == [lines[2], lines[0]]
    assert table.place_of(2, "x").endswith(f"line {lines[2]}, column 'x'")


# FIX
