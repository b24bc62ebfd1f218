"""Spark Connect: a session of its own process, since it excludes the classic one."""

from __future__ import annotations

import pytest
from support.commands import run_python
from support.lazy import need_spark
from support.suite import need

pytestmark = [pytest.mark.nightly, pytest.mark.xdist_group("Spark")]

SCRIPT = """
import warnings
warnings.simplefilter("ignore")
import numpy as np, pyarrow as pa
from pyspark.sql import SparkSession
import a1gm
from a1gm.exceptions import NegativeValuesError

spark = SparkSession.builder.remote("local[2]")
for name, value in {
    "spark.ui.enabled": "false",
    "spark.sql.shuffle.partitions": "2",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
}.items():
    spark = spark.config(name, value)
spark = spark.getOrCreate()

rng = np.random.default_rng(3)
X = np.round(rng.gamma(2.0, size=(30, 4)) + 0.1, 3)
X[rng.random(X.shape) < 0.2] = np.nan
names = ["a.b", "c`d", "e f", "g"]
table = pa.table([pa.array(x, from_pandas=True) for x in X.T], names=names)
given, memory = spark.createDataFrame(table).coalesce(1), a1gm.fit(table)
assert type(given).__module__.startswith("pyspark.sql.connect")
fit = a1gm.fit(given)


def same(found, right):
    found = np.array([c.to_numpy(zero_copy_only=False) for c in found.columns], float)
    np.testing.assert_allclose(found.T, right, rtol=1e-9)


np.testing.assert_allclose(fit.col_factor, memory.col_factor, rtol=1e-11)
same(fit.impute(given).toArrow(), memory.impute(X))
same(fit.transform(given).toArrow(), memory.transform(X)[:, None])
np.testing.assert_allclose(fit.divergence, memory.divergence)
right = memory.uncertainty().errors(table).to_pandas().to_numpy()
same(fit.uncertainty().errors(given).toArrow(), right)

i, j = np.indices(X.shape).reshape(2, -1)
long = pa.table({"i": i, "j": j, "v": pa.array(X.ravel(), from_pandas=True)})
cells, keys = spark.createDataFrame(long), ["i", "j"]
fit = a1gm.fit_long(cells, keys, "v")
memory = a1gm.fit_long(long, keys, "v")
np.testing.assert_allclose(fit.divergence, memory.divergence)
np.testing.assert_allclose(fit.predict(long), memory.predict(long), rtol=1e-9)
try:
    a1gm.fit(spark.createDataFrame([(1.0, -1.0)], "a double, b double"))
except NegativeValuesError as error:
    assert "'b' has 1" in str(error)
else:
    raise AssertionError("a negative cell was taken")
spark.stop()
"""


def test_the_answers_of_a_connected_session():
    need_spark()
    for module in ("grpc", "grpc_status", "google.protobuf"):
        need(module)
    done = run_python(SCRIPT)
    assert done.returncode == 0, done.stderr
