"""Tables that lie elsewhere: what engines count and fill, streams, and Dask."""
