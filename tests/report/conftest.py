"""The page of the demo."""

import numpy as np
import pytest

import a1gm
from a1gm.cli.demo import demo_table
from a1gm.report import report_html

nan = np.nan


@pytest.fixture(scope="package")
def demo():
    lines = [line.split(",") for line in demo_table().splitlines()]
    X = np.array([[float(c) if c else nan for c in line[2:]] for line in lines[1:]])
    with pytest.warns(a1gm.exceptions.EmptyLineWarning):
        fit = a1gm.fit(X)
    return X, fit, [line[0] for line in lines[1:]], lines[0][2:]


@pytest.fixture(scope="package")
def page(demo):
    X, fit, rows, columns = demo
    names = {"row_names": rows, "col_names": columns}
    return report_html(X, fit, title="Sales", source="sales.csv", **names)


@pytest.fixture(scope="package")
def page_file(page, tmp_path_factory):
    path = tmp_path_factory.mktemp("report") / "report.html"
    path.write_text(page, encoding="utf-8")
    return path
