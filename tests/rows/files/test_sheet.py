"""Spreadsheets: sheets, places of cells, titles, formulas without a value."""

import re
import zipfile

import numpy as np
import pandas as pd
import pytest
from support.commands import run

import a1gm
from a1gm.exceptions import A1gmError, DataHintWarning, FileFormatError

nan = np.nan


@pytest.fixture
def book(tmp_path):
    pytest.importorskip("openpyxl")
    path = tmp_path / "sales.xlsx"
    frame = pd.DataFrame(
        {
            "shop": ["A", "B", "C"],
            "opened": pd.to_datetime(["2020-01-01", None, "2022-02-02"]),
            "year": [2020, 2021, 2022],
            "jan": [10, 20, 30.5],
            "feb": [20, None, 61],
        }
    )
    with pd.ExcelWriter(path) as writer:
        frame.to_excel(writer, sheet_name="Sales", index=False, startrow=2, startcol=1)
    return path


def test_spreadsheets_are_read(book, tmp_path):
    out = tmp_path / "filled.csv"
    done = run("impute", book, "-o", out)
    assert "took 'year' as row labels" in done.stderr
    assert out.read_text().split() == [
        "shop,opened,year,jan,feb",
        "A,2020-01-01,2020,10,20",
        "B,,2021,20,40",
        "C,2022-02-02,2022,30.5,61",
    ]
    assert run("impute", book, "-o", "-", "-q").stdout == out.read_text()
    run("impute", book, "-o", tmp_path / "filled.parquet")
    with pytest.warns(DataHintWarning, match="id="):
        fit = a1gm.fit_file(book)
    assert fit.shape == (3, 2)
    book.rename(tmp_path / "sales.csv")  # the bytes decide
    assert "3 rows, 2 numeric columns" in run("inspect", tmp_path / "sales.csv").stderr


def test_cells_of_a_spreadsheet_are_named(tmp_path):
    path = tmp_path / "a.xlsx"
    frame = pd.DataFrame({"x": [4, 2, -3.5], "y": [1, 2, 3.5]})
    frame.to_excel(path, sheet_name="S", index=False)
    words = run("inspect", path, code=1).stderr
    assert "a.xlsx, sheet 'S', row 4, column 'x': -3.5 is negative" in words
    pd.DataFrame({"x": [4, 2, "?"], "y": [1, 2, 3.5]}).to_excel(path, index=False)
    assert "--missing '?'" in run("inspect", path, code=1).stderr
    assert "3 rows" in run("inspect", path, "--missing", "?").stderr
    run("inspect", path, "--missing", "?", "--decimal", ",")  # cells have no marks
    frame.loc[2] = [nan, nan]
    frame.to_excel(path, index=False)
    assert "has no rows" not in run("inspect", path).stderr
    pd.DataFrame({"x": []}).to_excel(path, index=False)
    assert "has a header but no rows" in run("inspect", path, code=1).stderr
    rows = [["Sales", nan, nan], [nan] * 3, ["shop", "jan", "feb"], ["a", 1, 2]]
    pd.DataFrame(rows).to_excel(path, header=False, index=False)
    assert "'Sales' looks like a title" in run("inspect", path, code=1).stderr


def test_one_sheet_is_chosen(tmp_path):
    path = tmp_path / "a.xlsx"
    with pd.ExcelWriter(path) as writer:
        for name in ("Jan", "Feb"):
            frame = pd.DataFrame({"x": [4, 2], "y": [1, nan]})
            frame.to_excel(writer, sheet_name=name, index=False)
    words = run("inspect", path, code=1).stderr
    assert "2 sheets with cells in them: 'Jan', 'Feb'. Pass --sheet Jan" in words
    assert "2 rows" in run("inspect", path, "--sheet", "Feb").stderr
    assert "has no sheet 'Mar'" in run("inspect", path, "--sheet", "Mar", code=1).stderr


def test_a_damaged_spreadsheet_is_told(book):
    book.write_bytes(book.read_bytes()[:-100])
    assert "spreadsheet" in run("inspect", book, code=1).stderr


def test_formulas_without_a_value_and_errors_are_counted(tmp_path):
    openpyxl = pytest.importorskip("openpyxl")
    book, path = openpyxl.Workbook(), tmp_path / "a.xlsx"
    for row in (
        ["shop", "jan", "feb", "mar"],
        ["a", 1, 2, 3],
        ["b", 2, "=B3*3", 6],
        ["c", "#N/A", "=B2", 9],
    ):
        book.active.append(row)
    book.save(path)
    with pytest.warns(DataHintWarning, match=r"a.xlsx: 3 cells have a formula without"):
        a1gm.fit_file(path, on_undetermined="ignore")
    book.active["C3"], book.active["B4"], book.active["C4"] = 6, None, None
    book.save(path)
    a1gm.fit_file(path, on_undetermined="ignore")  # no warning


def test_a_computed_formula_has_its_value(tmp_path):
    """As Excel saves it: the value beside the formula, and empty text as a value."""
    openpyxl = pytest.importorskip("openpyxl")
    book = openpyxl.Workbook()
    for row in (["shop", "jan", "feb"], ["a", 1, "=B2*2"], ["b", 2, "=B3*2"]):
        book.active.append(row)
    book.save(tmp_path / "a.xlsx")
    empty = rb"<f>B2\*2</f><v ?(/>|></v>)"  # either, with lxml or without
    with (
        zipfile.ZipFile(tmp_path / "a.xlsx") as before,
        zipfile.ZipFile(tmp_path / "b.xlsx", "w") as after,
    ):
        for name in before.namelist():
            text = re.sub(empty, b"<f>B2*2</f><v>2</v>", before.read(name))
            after.writestr(name, text.replace(b'r="C3"><f>', b'r="C3" t="str"><f>'))
    fit = a1gm.fit_file(tmp_path / "b.xlsx")
    assert fit.row_factor[0] == pytest.approx(3.0)


def test_a_sheet_without_a_header(tmp_path):
    path = tmp_path / "a.xlsx"
    frame = pd.DataFrame([[3, 5, 8], [6, nan, 16], [9, 15, -24]])
    frame.to_excel(path, header=False, index=False)
    with pytest.raises(A1gmError, match="row 3"):
        a1gm.fit_file(path, header=False)
    frame.abs().to_excel(path, header=False, index=False)
    fit = a1gm.fit_file(path, header=False)
    assert fit.shape == (3, 3)
    assert fit.predict(1, "column_2") == pytest.approx(10.0)


SHEET = "xl/worksheets/sheet1.xml"


def rewrite(path, parts):
    """Replace some parts of a zip archive."""
    with zipfile.ZipFile(path) as book:
        old = {part: book.read(part) for part in book.namelist()}
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as book:
        for part, text in (old | parts).items():
            book.writestr(part, text)


@pytest.mark.parametrize(
    ("last", "size"),
    [
        ("XFD1048576", "1,048,576 rows × 16,384 columns"),
        ("A4294967295", "4,294,967,295 rows"),
        ("ZZZZZZZZ1", "217,180,147,158 columns"),
    ],
)
def test_a_sheet_with_a_cell_far_away_is_refused(tmp_path, last, size):
    path = tmp_path / "far.xlsx"
    pd.DataFrame({"x": [4, 2], "y": [1, 2]}).to_excel(path, index=False)
    with zipfile.ZipFile(path) as book:
        sheet = book.read(SHEET).decode()
    assert '"B3"' in sheet
    rewrite(path, {SHEET: sheet.replace('"B3"', f'"{last}"')})
    assert path.stat().st_size < 10_000
    words = run("inspect", path, code=1).stderr
    assert "far.xlsx has a sheet that spans" in words
    assert size in words
    assert ".csv" in words
    sheet = sheet.replace('"A1:B3"', '"A1:XFD1048576"')  # its size may be wrong
    rewrite(path, {SHEET: sheet})
    assert a1gm.fit_file(path).shape == (2, 2)


def test_an_opendocument_sheet_with_repeated_cells_is_refused(tmp_path):
    spaces = " ".join(
        f'xmlns:{name}="urn:oasis:names:tc:opendocument:xmlns:{name}:1.0"'
        for name in ("office", "table", "text", "manifest")
    )
    cell = (
        '<table:table-cell {} office:value-type="float" office:value="1"><text:p>1'
        "</text:p></table:table-cell>"
    )
    cells = cell.format('table:number-columns-repeated="90"')
    end = (  # as LibreOffice writes it
        '<table:table-row table:number-rows-repeated="1048000"><table:table-cell '
        'table:number-columns-repeated="16384"/></table:table-row>'
    )
    for n_rows, is_read in ((3, True), (1_000_000, False)):
        path = tmp_path / "far.ods"
        repeated = f'table:number-rows-repeated="{n_rows}"'
        with zipfile.ZipFile(path, "w") as book:
            book.writestr("mimetype", "application/vnd.oasis.opendocument.spreadsheet")
            book.writestr("META-INF/manifest.xml", f"<manifest:manifest {spaces}/>")
            book.writestr(
                "content.xml",
                f"<office:document-content {spaces}><office:body><office:spreadsheet>"
                f'<table:table table:name="S"><table:table-row>{cell.format("")}'
                f"{cell.format('').replace('1', '2')}</table:table-row>"
                f"<table:table-row {repeated}>{cells}</table:table-row>{end}"
                "</table:table></office:spreadsheet></office:body>"
                "</office:document-content>",
            )
        if is_read:
            message = "columns 3 and 4 have no name"
        else:
            message = "1,000,001 rows × 90 columns"
        with pytest.raises(FileFormatError, match=message):
            a1gm.fit_file(path)


def test_a_book_without_sheets_and_a_reader_that_panics(tmp_path, book, monkeypatch):
    path = tmp_path / "none.xlsx"
    pd.DataFrame({"x": [4, 2], "y": [1, 2]}).to_excel(path, index=False)
    with zipfile.ZipFile(path) as some:
        text = some.read("xl/workbook.xml").decode()
    text = re.sub(r"<sheet [^>]*/>", "", text)
    rewrite(path, {"xl/workbook.xml": text})
    with pytest.raises(FileFormatError, match="has no sheets"):
        a1gm.fit_file(path)
    calamine = pytest.importorskip("python_calamine")

    class PanicException(BaseException):
        pass

    class Workbook:
        @staticmethod
        def from_filelike(file):
            raise PanicException

    monkeypatch.setattr(calamine, "CalamineWorkbook", Workbook)
    with pytest.raises(FileFormatError, match="is damaged"):
        a1gm.fit_file(book)
