"""What the commands refuse: an exit code, what to do, and nothing written."""

import re
import shlex
from pathlib import Path

import pytest
from support.commands import run

LONG = (
    "shop,month,sales,note\nA,jan,10,x\nA,feb,20.50,\nB,jan,5,z\nB,feb,,z\nC,feb,8,\n"
)
ODD = "C,jan,4,\nD,jan,3,\nD,feb,9,\n"
FILES = {
    "a.csv": "x,y\n1,2\n2,\n",
    "u.csv": "user,p,q\nann,1,2\nbob,,4\ncid,3,6\n",
    "dan.csv": "user,age\ncid,30\nann,10\ndan,20\n",
    "cid.csv": "user,age\ncid,30\n",
    "ragged.csv": "x,y\n1\n",
    "low.csv": "a,a_low,b\n1,2,3\n,4,6\n3,5,9\n4,,13\n",
    "l.csv": LONG,
    "odd.csv": LONG.replace("shop", "sales_low") + ODD,
    "space.csv": LONG.replace("mon", " mon"),
    "key.csv": LONG.replace("B,jan", ",jan"),
    "minus.csv": LONG.replace("20.50", "-20.50"),
    "mark.csv": LONG.replace("20.50", "?"),
    "twice.csv": LONG.replace("A,feb", "\nA,feb") + "A,jan,3,\n",
    "semicolon.csv": "shop;month;sales\nA;jan;1\nA;feb;2\nB;jan;3\n",
    "parts/1.csv": "id,x,y\na,1,2\nb,2,\n",
    "parts/2.csv": "id,x,y\na,1,2\nb,2,\n",
}
FILES |= {
    "ones.csv": "user,p,q\nann,1,1\nbob,1,1\ncid,1,1\n",
    "far.csv": "user,total\nann,2.5\nbob,2\ncid,3\n",
    "more.csv": "p,q\n5,6\n",
    "keys.csv": "a,b,c,n\n1,1,1,2\n1,2,1,3\n2,1,1,3\n2,2,2,5\n1,1,2,5\n",
}
PYTHON = re.compile(r"(?<![-\w/])[a-z_]+=|a1gm\.\w+\(|_totals|max_iter|n_threads")
CONFLICTS = [
    "fit u.csv --negatives allow --weights ones.csv",
    "impute u.csv --negatives allow --exposure ones.csv",
    "assess u.csv --negatives allow --weights ones.csv",
    "report u.csv --negatives allow --exposure ones.csv",
    "fit l.csv --long shop,month,sales --negatives allow --weights note",
    "fit u.csv --weights ones.csv --exposure ones.csv",
    "fit l.csv --long shop,month,sales --duplicates sum --weights note",
    "fit u.csv --columns p --exclude p",
    "fit u.csv --columns p,p",
    "fit u.csv --decimal , --thousands ,",
    "fit u.csv --decimal x",
    "fit u.csv --thousands 5",
    "fit u.csv --delimiter ab",
    "fit u.csv --tol 0",
    "impute u.csv --interval 2",
    "impute l.csv --long shop,month,sales --interval 2",
    "assess u.csv --hide 2",
    "assess keys.csv --long a,b,c,n --hide last",
    "impute u.csv --row-totals far.csv --round auto",
    "impute u.csv --row-totals far.csv --interval 0.9",
    "scale ones.csv --row-totals far.csv --col-totals more.csv",
    "scale ones.csv --row-totals far.csv --round",
    "scale u.csv --row-totals far.csv",
    "scale ones.csv --row-totals far.csv --tol -1",
]


@pytest.mark.parametrize("line", CONFLICTS)
def test_refusals_are_in_the_words_of_the_command(line, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("u.csv", "ones.csv", "far.csv", "more.csv", "keys.csv", "l.csv"):
        Path(name).write_text(FILES[name])
    name, *rest = line.split()
    out = {"fit": "out", "impute": "out.csv", "report": "out.html", "scale": "out.csv"}
    more = ["-o", out[name]] if name in out else []
    done = run(name, *rest, *more, "-q", code=None)
    assert done.exit_code in (1, 2)
    assert done.stderr.startswith("a1gm: ")
    assert not PYTHON.search(done.stderr), done.stderr
    assert not Path(out.get(name, "out")).exists()


PAIRS = "--long shop,month,sales"
NEEDED = "Numbers are needed in the column that --long names as the value."
SEVERAL = "is a stream or named like one file. Name a folder"
ABSENT = "does not exist. Check the path."


@pytest.mark.parametrize(
    ("line", "code", "words"),
    [
        ("impute a.csv", 2, "--out"),
        ("impute nothing.csv -o -", 2, "does not exist"),
        # Seen: about the extension of the target only.
        ("impute typo/ -o out", 2, f"a1gm: typo/ {ABSENT}"),
        ("impute typo.csv -o out", 2, f"a1gm: typo.csv {ABSENT}"),
        # Before the data are read.
        ("impute ragged.csv -o l.csv", 2, "l.csv exists"),
        ("impute ragged.csv -o l.csv", 2, "--overwrite"),
        ("impute a.csv -o - --columns q", 2, "no column 'q'"),
        ("impute a.csv -o - --decimal ;", 2, "decimal"),
        ("impute a.csv -o - --json", 2, "standard output"),
        ("inspect a.csv --negatives maybe", 2, "--negatives"),
        ("inspect a.csv --by x", 2, "No such option"),
        ("impute a.csv -o out.csv --model none", 2, "does not exist"),
        ("impute a.csv -o out.csv --model u.csv", 1, "model"),
        ("impute low.csv -o out.csv --interval 0.9", 2, "which --interval would add"),
        ("impute a.csv -o out.csv --interval 0.9", 1, "0 degrees of freedom"),
        ("impute a.csv -o out.csv --interval 0.9", 1, "Leave out --interval"),
        ("impute parts -o out.parquet", 2, f"out.parquet {SEVERAL}"),
        ("impute parts/*.csv -o two.csv", 2, f"two.csv {SEVERAL}"),
        ("impute parts/1.csv parts/2.csv -o two.csv", 2, f"two.csv {SEVERAL}"),
        ("fit a.csv -o parts/1.csv", 2, "is a file"),
        ("fit a.csv -o x --format xml", 2, "--format"),
        *(  # Seen: an internal error, and 0 and inf accepted without --long.
            (f"fit a.csv -o x --tol {tol}", 2, f"a positive number, got {float(tol)}.")
            for tol in ("-1", "0", "nan", "inf")
        ),
        *(
            (f"assess u.csv --hide {hide}", 2, "a share between 0 and 1, or")
            for hide in ("2", "first", "0")
        ),
        ("inspect l.csv --long shop,month", 2, "three different columns"),
        ("inspect l.csv --long shop,month,shop", 2, "three different columns"),
        (f"impute l.csv -o - {PAIRS} --by shop", 2, "three different columns"),
        ("inspect l.csv --long shop,month,price", 2, "no column 'price'"),
        (f"inspect l.csv {PAIRS} --id note", 2, "drop --id"),
        ("impute l.csv -o - --by note", 2, "--by needs --long"),
        ("impute l.csv -o - --only-filled", 2, "--only-filled needs --long"),
        (f"impute l.csv -o - {PAIRS} --by noet", 2, "Did you mean 'note'?"),
        (f"impute l.csv -o - {PAIRS} --model m", 2, "a1gm.load(model).predict(frame)"),
        (
            "impute odd.csv -o - --long sales_low,month,sales --interval 0.9",
            2,
            "already has a column 'sales_low', which --interval would add",
        ),
        # Names are taken as they are written.
        (f"inspect space.csv {PAIRS}", 2, "Did you mean ' month'?"),
        # What the data hold is exit code 1, whatever helps: another option or file.
        (f"inspect key.csv {PAIRS}", 1, "key 'shop' is missing in key.csv, line 4"),
        (f"inspect minus.csv {PAIRS}", 1, "minus.csv, line 3"),
        (
            f"impute twice.csv -o - {PAIRS}",
            1,
            "twice.csv, line 2 and twice.csv, line 8 (1",
        ),
        ("inspect l.csv --long shop,month,note", 1, NEEDED),
        (f"inspect mark.csv {PAIRS}", 1, f"pass --missing '?'. {NEEDED}"),
        *(  # Another delimiter is named before columns that do not exist.
            (f"inspect semicolon.csv {options}", 1, "Pass --delimiter ';'.")
            for options in (PAIRS, "--columns sales", "--id shop", "--exclude shop")
        ),
    ],
)
def test_refused(tmp_path, monkeypatch, line, code, words):
    monkeypatch.chdir(tmp_path)
    Path("parts").mkdir()
    for name, text in FILES.items():
        Path(name).write_text(text)
    done = run(*shlex.split(line), code=code)
    assert words in done.stderr
    assert "Traceback" not in done.stderr
    assert code == 1 or done.stdout == ""
    assert {str(path): path.read_text() for path in Path().rglob("*.*")} == FILES
