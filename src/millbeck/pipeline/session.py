"""Needs pyspark: create a Spark session with a Java, the right Python for its workers, and ``format("millbeck")``.

    spark = spark_session("revenue")                                  # local, all cores
    spark = spark_session("revenue", master="spark://host:7077")      # a cluster
    spark = spark_session("revenue", master="sc://host:15002")        # a Spark Connect server, with its own Java

With an existing session, register only the format: ``spark.dataSource.register(MillbeckFormat)``.
"""

from __future__ import annotations

import importlib.util
import os
import sys
from collections.abc import Mapping
from contextlib import nullcontext
from pathlib import Path
from typing import Final

from millbeck.kernel.extras import needs_extra
from millbeck.pipeline.error_summaries import install_exception_hook
from millbeck.pipeline.errors import ConnectMissing
from millbeck.pipeline.java import find_java
from millbeck.pipeline.preloading import loading
from millbeck.pipeline.spark_output import ignore_lost_connections, without_noise

with needs_extra("spark"):
    from pyspark import SparkContext, accumulators
    from pyspark.logger import PySparkLogger
    from pyspark.sql import SparkSession

    from millbeck.pipeline.spark_format import MillbeckFormat

DEFAULTS: Final[Mapping[str, str]] = {
    # Rows with headers are passed to Python eight times faster if batches are limited by rows, not by bytes.
    "spark.sql.execution.arrow.maxBytesPerBatch": "2147483647",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "20000",
    # A batch writes a changelog of its state changes instead of RocksDB's files.
    "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
    "spark.ui.showConsoleProgress": "false",
}
_LOOPBACK: Final[Mapping[str, str]] = {"spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"}
_LOCAL: Final[Mapping[str, str]] = {**_LOOPBACK, "spark.sql.shuffle.partitions": "4"}
_CLUSTER: Final[Mapping[str, str]] = {
    # Tasks of a retried stage would write at the same time as those of its first attempt, which may not have ended.
    "spark.stage.maxConsecutiveAttempts": "1",
}
_JAVA_OPTIONS: Final = "spark.driver.extraJavaOptions"
_LOOPBACK_MASTERS: Final = ("spark://127.0.0.1:", "spark://localhost:")
_CONNECT: Final = "sc://"
_CONNECT_MODULES: Final = ("grpc", "grpc_status", "google.rpc", "zstandard", "pandas")


def spark_session(
    name: str = "millbeck", *, master: str = "local[*]", settings: Mapping[str, str] | None = None
) -> SparkSession:
    """Create a session; raises `JavaMissing`, or `ConnectMissing` for a Spark Connect server.

    Workers run the Python of ``spark.pyspark.python`` or ``PYSPARK_PYTHON``, which needs this package; by default the
    current Python. A Spark Connect server starts its workers itself.
    """
    if master.startswith(_CONNECT):
        return _remote_session(name, master, settings or {})
    os.environ["JAVA_HOME"] = str(find_java())
    # Spark prints the error with Java's stack trace although it is raised a moment later.
    PySparkLogger.getLogger("SQLQueryContextLogger").setLevel("CRITICAL")
    install_exception_hook()
    for server in (accumulators.AccumulatorTCPServer, accumulators.AccumulatorUnixServer):
        if "handle_error" not in vars(server):
            ignore_lost_connections(server)
    settings = settings or {}
    if "spark.pyspark.python" in settings:
        # Spark reads the setting only when Java starts Python, not when Python starts Java.
        os.environ["PYSPARK_PYTHON"] = settings["spark.pyspark.python"]
    # Otherwise workers would use the first python3 on the PATH.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)
    chosen = {**DEFAULTS, **_for_master(master), **settings, **_quietly(settings)}
    builder = SparkSession.builder.appName(name).master(master)
    for setting, value in chosen.items():
        builder = builder.config(setting, value)
    starts_java = SparkContext._gateway is None
    # The standard error of a Java process that runs already cannot be changed.
    mark_without_data = starts_java and bool(_quietly(settings))
    with without_noise() if mark_without_data else nullcontext(), loading() if starts_java else nullcontext():
        spark = builder.getOrCreate()
    spark.dataSource.register(MillbeckFormat)
    return spark


def _remote_session(name: str, address: str, settings: Mapping[str, str]) -> SparkSession:
    """Create a new session each time, because the server loses its sessions when it restarts."""
    missing = [module for module in _CONNECT_MODULES if not _is_installed(module)]
    if missing:
        raise ConnectMissing(
            f"{address} is a Spark Connect server, and its client needs packages that are not installed "
            f"({', '.join(missing)}): pip install 'millbeck[spark-connect]'"
        )
    of_a_session = {setting: value for setting, value in DEFAULTS.items() if setting.startswith("spark.sql.")}
    builder = SparkSession.builder.appName(name).remote(address)
    for setting, value in {**of_a_session, **settings}.items():
        builder = builder.config(setting, value)
    spark = builder.create()
    spark.dataSource.register(MillbeckFormat)
    return spark


def _is_installed(module: str) -> bool:
    try:
        return importlib.util.find_spec(module) is not None
    except ModuleNotFoundError:
        return False


def _for_master(master: str) -> Mapping[str, str]:
    if master.startswith("local"):
        return _LOCAL
    return {**_CLUSTER, **(_LOOPBACK if master.startswith(_LOOPBACK_MASTERS) else {})}


def _quietly(settings: Mapping[str, str]) -> Mapping[str, str]:
    """Settings that make Java log as in log4j2.properties here, unless the user has configured logging."""
    given = settings.get(_JAVA_OPTIONS, "")
    if "log4j" in given or "SPARK_CONF_DIR" in os.environ:
        return {}
    quiet = f"-Dlog4j2.configurationFile={Path(__file__).with_name('log4j2.properties').as_uri()}"
    return {_JAVA_OPTIONS: f"{quiet} {given}".strip()}
