"""Frames in, frames out
========================

A frame goes in, the same kind of frame comes out: pandas, polars and pyarrow."""

from __future__ import annotations

import importlib.util

import numpy as np

import a1gm

SALES = {
    "spring": [12, 30, 7, 18],
    "summer": [24.0, np.nan, 14.0, 36.0],
    "autumn": [18.0, 45.0, 10.5, np.nan],
}


def with_pandas() -> None:
    """Keep the index and the types of untouched columns."""
    import pandas as pd

    frame = pd.DataFrame(SALES, index=["north", "east", "south", "west"])
    fit = a1gm.fit(frame)
    print(fit.impute(frame).round(1), "\n")
    print(fit.to_frames().rows.round(1), "\n")


def with_polars() -> None:
    """Take null and NaN alike as missing."""
    import polars as pl

    frame = pl.DataFrame(SALES).fill_nan(None)
    print(a1gm.fit(frame).impute(frame), "\n")


def with_pyarrow() -> None:
    """Read the buffers of a table where they lie."""
    import pyarrow as pa

    table = pa.table(SALES)
    print(a1gm.fit(table).impute(table).to_pydict(), "\n")


def main() -> None:
    """Use the libraries that are installed."""
    steps = {"pandas": with_pandas, "polars": with_polars, "pyarrow": with_pyarrow}
    for library, step in steps.items():
        if importlib.util.find_spec(library) is None:
            print(f"{library} is not installed\n")
            continue
        print(f"--- {library}")
        step()


if __name__ == "__main__":
    main()
