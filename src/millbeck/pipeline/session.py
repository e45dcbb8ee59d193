"""Needs pyspark: a Spark session that has a Java, the right Python for its workers, and ``format("millbeck")``.

    spark = spark_session("revenue")                                  # local, all cores
    spark = spark_session("revenue", master="spark://host:7077")      # a cluster

Whoever has a session already registers the format alone: ``spark.dataSource.register(MillbeckFormat)``.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from typing import Final

from pyspark.sql import SparkSession

from millbeck.pipeline.java import find_java
from millbeck.pipeline.spark_format import MillbeckFormat

DEFAULTS: Final[Mapping[str, str]] = {
    # Rows with headers reach Python eight times faster when batches are cut by rows, not by bytes.
    "spark.sql.execution.arrow.maxBytesPerBatch": "2147483647",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "20000",
    "spark.ui.showConsoleProgress": "false",
}
_LOCAL: Final[Mapping[str, str]] = {
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.sql.shuffle.partitions": "4",
}


def spark_session(
    name: str = "millbeck", *, master: str = "local[*]", settings: Mapping[str, str] | None = None
) -> SparkSession:
    """A session with these Spark settings; raises `JavaMissing`."""
    os.environ["JAVA_HOME"] = str(find_java())
    # Workers would take whatever python3 is on the path.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)
    chosen = {**DEFAULTS, **(_LOCAL if master.startswith("local") else {}), **(settings or {})}
    builder = SparkSession.builder.appName(name).master(master)
    for setting, value in chosen.items():
        builder = builder.config(setting, value)
    spark = builder.getOrCreate()
    spark.dataSource.register(MillbeckFormat)
    return spark
