"""hdfe-stream: Poisson regression of cells in a Parquet file of any size."""

import logging
from tempfile import TemporaryDirectory

import numpy as np

from rivals import from_long, long_format

NAME = "hdfe-stream fepois, from a file"


def solve(X: np.ndarray) -> np.ndarray:
    import polars as pl
    from hdfe_stream import fepois_stream

    logging.getLogger("hdfe_stream").setLevel(logging.WARNING)
    values, rows, columns = long_format(X)
    frame = pl.DataFrame({"y": values, "row": rows, "col": columns})
    with TemporaryDirectory() as folder:
        path = f"{folder}/cells.parquet"
        frame.write_parquet(path)
        model = fepois_stream(
            "y ~ 1 | row + col", path, workdir=folder, iwls_tol=1e-10, fixef_rm="none"
        )
        found = model.predict(type="response").collect()["prediction"].to_numpy()
    return from_long(found, X)
