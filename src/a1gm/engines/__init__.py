"""Where the pass runs elsewhere: Dask."""
