"""Faults that were seen once, each under its number in the issue that told of them."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support.commands import run
from support.containers import rewrite, unpack

import a1gm
from a1gm import RankOneImputer
from a1gm.exceptions import A1gmError, EmptyLineWarning
from ways.containers import sparse_table
from ways.file_ways import masks_on_disk, read_table
from ways.ways import WAYS, noted

nan = np.nan
TWO_BLOCKS = np.array(
    [[1, 2, nan, nan], [2, 4, nan, nan], [nan, nan, 3, 1], [nan, nan, 6, 2]]
)
ROW_OF_BOTH, FILLED = np.array([[1.0, nan, 3.0, nan]]), [[1.0, 2.0, 3.0, 1.0]]
CHAIN = np.array([[1.0, 0.0, nan], [nan, 1.0, 0.0], [nan, nan, 1.0]])


def csv_of(X, path):
    names = [f"c{j}" for j in range(X.shape[1])]
    frame = pd.DataFrame(X, columns=names)
    frame.insert(0, "id", [f"r{i}" for i in range(len(X))])
    frame.to_csv(path, index=False)
    return path


# ------------------------------------------------------------------------------ F1
def test_f1_a_pointer_past_the_end_does_not_crash_the_interpreter(tmp_path):
    X = np.random.default_rng(0).gamma(2.0, size=(6, 5))
    X[np.random.default_rng(1).random(X.shape) < 0.4] = nan
    X[0], X[:, 0] = 1.0, 1.0
    path = tmp_path / "model.a1gm"
    a1gm.fit(sparse_table(X), absent="missing").save(path)
    header, arrays = unpack(path.read_bytes())
    (name,) = [name for name in arrays if name.endswith("ptr")]
    arrays[name][-1] = 2**40
    rewrite(path, header, arrays)
    code = (
        "import sys, a1gm\n"
        "try:\n    print(a1gm.load(sys.argv[1]).pattern.has_closed_form)\n"
        "except a1gm.exceptions.FileFormatError as error:\n"
        "    print('refused', error)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, path], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, (done.returncode, done.stderr)
    assert done.stdout.startswith("refused")


# ------------------------------------------------------------------------------ F2
@pytest.mark.parametrize("masks", [False, True])
def test_f2_a_fit_of_a_file_of_two_parts_is_reconstructed(masks, tmp_path):
    path = csv_of(TWO_BLOCKS, tmp_path / "table.csv")
    with noted():
        if masks:
            with masks_on_disk():
                fit = a1gm.fit_file(path)
        else:
            fit = a1gm.fit_file(path)
        whole = a1gm.fit(TWO_BLOCKS)
    found = np.asarray(fit.reconstruct(), float)
    np.testing.assert_allclose(found, whole.reconstruct(), rtol=1e-9)


# ------------------------------------------------------------------------------ F3
def test_f3_one_rule_for_a_new_row_of_two_blocks(tmp_path):
    fit = a1gm.fit(TWO_BLOCKS, on_undetermined="ignore")
    np.testing.assert_allclose(fit.impute(ROW_OF_BOTH), FILLED, rtol=1e-12)
    with pytest.warns(EmptyLineWarning):
        assert np.isnan(fit.transform(ROW_OF_BOTH)).all()
    imputer = RankOneImputer().fit(TWO_BLOCKS)
    np.testing.assert_allclose(imputer.transform(ROW_OF_BOTH), FILLED, rtol=1e-12)
    named = pd.DataFrame(TWO_BLOCKS, columns=["c0", "c1", "c2", "c3"])
    by_name = a1gm.fit(named, on_undetermined="ignore")
    rows = csv_of(ROW_OF_BOTH, tmp_path / "rows.csv")
    a1gm.impute_file(rows, tmp_path / "out.csv", fit=by_name)
    np.testing.assert_allclose(read_table(tmp_path / "out.csv"), FILLED, rtol=1e-12)
    by_name.save(tmp_path / "model.a1gm")
    out = tmp_path / "out2.csv"
    run("impute", rows, "-o", out, "--model", tmp_path / "model.a1gm")
    np.testing.assert_allclose(read_table(out), FILLED, rtol=1e-12)


# ------------------------------------------------------------------------------ F4
def test_f4_a_chain_of_zeros_is_followed_by_every_way(tmp_path):
    right = CHAIN.copy()
    right[0, 2] = 0.0
    with noted():
        filled = {
            "fit": a1gm.fit(CHAIN).impute(CHAIN),
            "imputer": RankOneImputer().fit(CHAIN).transform(CHAIN),
            "call": a1gm.impute(CHAIN),
        }
        a1gm.impute_file(csv_of(CHAIN, tmp_path / "in.csv"), tmp_path / "out.csv")
    filled["file"] = read_table(tmp_path / "out.csv")
    for way, found in filled.items():
        np.testing.assert_array_equal(found, right, err_msg=way)


# ------------------------------------------------------------------------------ F5
def test_f5_whole_numbers_stay_whole_from_text_to_parquet(tmp_path):
    path = tmp_path / "table.csv"
    path.write_text("id,whole,holes,parts\na,1,2,1.5\nb,2,,3\nc,3,6,4.5\n")
    a1gm.impute_file(path, tmp_path / "library.parquet")
    run("impute", path, "-o", tmp_path / "command.parquet")
    kinds = {
        name: pq.read_schema(tmp_path / f"{name}.parquet")
        for name in ("library", "command")
    }
    for name, schema in kinds.items():
        assert schema.field("whole").type == pa.int64(), name
        assert schema.field("parts").type == pa.float64(), name
    assert kinds["library"].equals(kinds["command"])
    tables = [pq.read_table(tmp_path / f"{name}.parquet") for name in kinds]
    assert tables[0].equals(tables[1])


# ------------------------------------------------------------------------------ F6
OPTION = re.compile(r"(?<![\w-])--[a-z]")
BAD_FILES = {
    "negative": "x,y\n1,2\n-3,4\n",
    "infinite": "x,y\n1,2\ninf,4\n",
    "text": "x,y\n1,2\nwhat,4\n5,6\n7,8\n",
    "question mark": "x,y\n1,2\n?,4\n5,6\n",
    "dash": "x,y\n1,2\n-,4\n",
    "decimal comma": 'x,y\n"1,5",2\n"3,5",4\n',
    "thousands": 'x,y\n"1,500",2\n"3,500,000",4\n',
    "thousands with points": "x;y\n1.500.000;2\n3.500.000;4\n",
    "wrong delimiter": "x;y\n1;2\n3;4\n",
    "ragged": "x,y\n1,2\n3,4,5\n",
    "short": "x,y\n1,2\n3\n",
    "open quote": 'x,y\n1,2\n"3,4\n',
    "header only": "x,y\n",
    "empty": "",
    "same names": "x,x\n1,2\n3,4\n",
    "dates": "x,y\n2020-01-01,a\n2020-01-02,b\n",
    "huge": "x,y\n1,2\n1e999,4\n",
    "percent": "x,y\n1,2\n3%,4\n5%,1\n",
    "currency": "x,y\n1,2\n$3,4\n$5,1\n",
    "truth": "x,y\n1,2\ntrue,4\n",
}
ENCODED = {"latin": "x,é\n1,2\n".encode("latin-1"), "zeros": b"x,y\n1,\x002\n"}
READ_OPTIONS = [
    {},
    {"columns": ["x", "y"]},
    {"columns": ["x", "nowhere"]},
    {"decimal": ","},
    {"decimal": ",", "delimiter": ";", "thousands": "."},
    {"thousands": "."},
    {"delimiter": "\t"},
    {"missing": ["x"]},
    {"encoding": "ascii"},
    {"exclude": ["x", "y"]},
]


def errors_of_files(folder):
    """Texts of everything the library refuses about bad files."""
    files = {name: text.encode() for name, text in BAD_FILES.items()} | ENCODED
    out = folder / "out.csv"
    for name, data in files.items():
        path = folder / f"{name}.csv"
        path.write_bytes(data)
        for options in READ_OPTIONS:
            for call in (
                lambda path=path, options=options: a1gm.fit_file(path, **options),
                lambda path=path, options=options: a1gm.impute_file(
                    path, out, overwrite=True, **options
                ),
            ):
                try:
                    call()
                except A1gmError as error:
                    yield f"{name} {options}", str(error)


@pytest.mark.filterwarnings("ignore::a1gm.exceptions.A1gmWarning")
def test_f6_the_library_does_not_speak_of_options_of_the_command(tmp_path):
    texts = dict(errors_of_files(tmp_path))
    assert len(texts) >= len(BAD_FILES)
    good = tmp_path / "good.csv"
    good.write_text("x,y\n1,2\n2,\n")
    for target in (tmp_path / "there.csv", good, tmp_path):
        (tmp_path / "there.csv").write_text("x\n")
        with pytest.raises(A1gmError) as refused:
            a1gm.impute_file(good, target)
        texts[f"written to {target.name}"] = str(refused.value)
    wrong = {case: text for case, text in texts.items() if OPTION.search(text)}
    assert not wrong, "\n".join(f"{case}: {text}" for case, text in wrong.items())


def test_f6_no_text_of_the_library_names_an_option():
    """Read from the source: texts that no test above happens to raise count too."""
    root = Path(a1gm.__file__).parent
    found = []
    for path in sorted(root.rglob("*.py")):
        top = path.relative_to(root).parts[0]
        if top in ("cli", "report"):  # pages have style sheets
            continue
        tree = ast.parse(path.read_text(encoding="utf-8"))
        documentation = {
            id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)
        }
        found += [
            f"{path.relative_to(root)}:{node.lineno} {node.value!r}"
            for node in ast.walk(tree)
            if isinstance(node, ast.Constant)
            and isinstance(node.value, str)
            and id(node) not in documentation
            and OPTION.search(node.value)
        ]
    assert not found, "\n".join(found)


# ----------------------------------------------------------------------------- S18
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.filterwarnings("ignore::a1gm.exceptions.A1gmWarning")
def test_s18_minus_zero_never_comes_out_of_a_fit(way, tmp_path):
    X = np.array([[nan, 1.5, 1.5], [2, nan, 1], [1, 3, nan], [nan, -0.0, -0.0]])
    X = np.vstack([X, np.full((8, 3), -0.0)])
    answers = WAYS[way].ask(X, tmp_path)
    found = [answers.row_factor, answers.col_factor]
    if answers.filled is not None:  # observed cells stay as they were given
        found.append(answers.filled[np.isnan(X)])
    if answers.transform is not None:
        found.append(answers.transform(X))
    for values in found:
        assert values is None or not np.signbit(values).any()
