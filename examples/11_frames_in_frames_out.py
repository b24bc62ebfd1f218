"""Frames in, frames out
========================

A frame goes in, the same kind of frame comes out: pandas, polars and pyarrow. Names
come along: into the fills, into the factors, and into the pictures.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa

import a1gm

SALES = {
    "spring": [12, 30, 7, 18],
    "summer": [24.0, np.nan, 14.0, 36.0],
    "autumn": [18.0, 45.0, 10.5, np.nan],
}

frame = pd.DataFrame(SALES, index=["north", "east", "south", "west"])
fit = a1gm.fit(frame)
print(fit.impute(frame).round(1))

# %%
# In polars null and NaN are both missing. Columns without a hole keep their type.
polars_frame = pl.DataFrame(SALES)
print(a1gm.fit(polars_frame).impute(polars_frame))

# %%
# Of an Arrow table the buffers are read where they lie, and an Arrow table comes back.
table = pa.table(SALES)
print(a1gm.fit(table).impute(table).schema)

# %%
# The factors as frames, and as a picture: what a region sells in all three seasons, and
# how that is shared among them.
print(fit.to_frames().rows.round(1))
a1gm.plot.factors(fit)
plt.show()
