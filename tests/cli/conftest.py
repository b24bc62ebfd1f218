"""Tables that several tests of the commands use."""

import pytest


@pytest.fixture
def sales(tmp_path):
    path = tmp_path / "sales.csv"
    path.write_text(
        "shop,opened,jan,feb,mar\n"
        "A,2020-01-01,10,20,30\n"
        "B,2021-05-01,20,,60\n"
        'C,,30,60,\n"D, new",2022-02-02,40,80,120\n'
    )
    return path


@pytest.fixture
def csv(tmp_path):
    """Writes a text table and returns its path."""

    def write(text, name="a.csv"):
        (tmp_path / name).write_text(text)
        return tmp_path / name

    return write
