"""A fit on a Spark cluster of two executors, one of which is killed meanwhile.

Run as a program, since a process has one Spark. Prints the factors, the tasks that were
done when the executor was killed, and the executors at the end, as JSON.
"""

from __future__ import annotations

import json
import os
import signal
import threading
import time
from pathlib import Path
from typing import Any

import pyspark

import a1gm

N_TASKS = 10
#: Columns by the number of a row; the first one takes its time.
COLUMNS = {
    "a": "id % 7 + 1.0D + 0.0D * length(reflect('java.lang.Thread', 'sleep', 300L))",
    "b": "CASE WHEN id % 3 > 0 THEN id % 5 + 2.0D END",
    "c": "CASE WHEN id % 4 > 0 THEN id % 2 + 0.5D END",
}


def started() -> Any:
    from pyspark.sql import SparkSession

    return (
        SparkSession.builder.master("local-cluster[2,1,1024]")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.host", "127.0.0.1")
        .getOrCreate()
    )


def executors(driver: int) -> list[int]:
    """Processes of the executors, which are children of the driver's JVM."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            stat = (folder / "stat").read_text().rpartition(")")[2].split()
            command = (folder / "cmdline").read_bytes()
        except OSError:  # it has ended
            continue
        if int(stat[1]) == driver and b"CoarseGrainedExecutorBackend" in command:
            found.append(int(folder.name))
    return found


def kill_one(context: Any, driver: int, tasks_done: list[int]) -> None:
    """Wait until some tasks of a stage are done and others run; kill an executor."""
    tracker = context.statusTracker()
    while not tasks_done:
        for number in tracker.getActiveStageIds():
            stage = tracker.getStageInfo(number)
            if stage and 2 <= stage.numCompletedTasks < N_TASKS - 2:
                os.kill(executors(driver)[0], signal.SIGKILL)
                tasks_done.append(stage.numCompletedTasks)
                break
        time.sleep(0.02)


def main() -> None:
    os.environ["SPARK_HOME"] = str(Path(pyspark.__file__).parent)
    session = started()
    context = session.sparkContext
    context.setLogLevel("OFF")
    driver = context._jvm.java.lang.ProcessHandle.current().pid()
    frame = session.range(2 * N_TASKS, numPartitions=N_TASKS)
    frame = frame.selectExpr(*(f"{text} AS {name}" for name, text in COLUMNS.items()))
    before, tasks_done = executors(driver), []
    killer = threading.Thread(
        target=kill_one, args=(context, driver, tasks_done), daemon=True
    )
    killer.start()
    fit = a1gm.fit(frame)
    print(
        json.dumps(
            {
                "factor": fit.col_factor.tolist(),
                "tasks_done": tasks_done,
                "lost": sorted(set(before) - set(executors(driver))),
            }
        )
    )
    session.stop()


if __name__ == "__main__":
    main()
