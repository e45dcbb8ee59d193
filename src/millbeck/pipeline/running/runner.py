"""Needs pyspark: one run of a pipeline, from the session to the last batch, tried again when it fails.

A stop, by signal, lets the batch that is being written end. What is wrong with the pipeline itself is not tried again:
it would be as wrong the second time. Nor is anything tried here once Spark's Java process is gone: that takes another
process, which `keeper` starts.

What only a topology needs is not loaded with this module, but while Java starts (`meanwhile`).
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import threading
import time
from collections.abc import Callable
from types import FrameType
from typing import TYPE_CHECKING, Any, Final

from py4j.protocol import Py4JError  # type: ignore[import-untyped]
from pyspark import SparkContext
from pyspark.errors import AnalysisException, PySparkException
from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from millbeck.pipeline.errors import (
    BadRecord,
    CheckpointMismatch,
    ConnectMissing,
    DefinitionError,
    DriverLost,
    InvalidOption,
    JavaMissing,
    NotExactlyOnce,
    PipelineError,
    RecordsLost,
    SchemaError,
    TopologyError,
)
from millbeck.pipeline.explaining import explained
from millbeck.pipeline.running.backoff import Backoff
from millbeck.pipeline.running.definition import Definition
from millbeck.pipeline.running.metrics import PipelineMetrics
from millbeck.pipeline.running.metrics_server import served
from millbeck.pipeline.running.progress import Progress, progress_of
from millbeck.pipeline.running.run_directory import RunDirectory
from millbeck.pipeline.session import spark_session

if TYPE_CHECKING:
    from millbeck.pipeline.progress_groups import ProgressGroups
    from millbeck.pipeline.topology.topology import Topology

_LOOK_SECONDS: Final = 0.5
_JAVA_ENDS_SECONDS: Final = 2.0
FINAL: Final = (
    TopologyError,
    DefinitionError,
    InvalidOption,
    JavaMissing,
    ConnectMissing,
    SchemaError,
    BadRecord,
    RecordsLost,
    NotExactlyOnce,
    CheckpointMismatch,
)
_WRONG: Final = (AnalysisException,)
"""What Spark says of a query that cannot be; a source that has failed may be inside it."""
MENDED: Final = (PySparkException, Py4JError, PipelineError)
"""What another attempt may mend, unless it is one of those above."""

Say = Callable[[str], None]


def build_topology(definition: Definition, spark: SparkSession) -> Topology:
    from millbeck.pipeline.topology.topology import Topology

    settings = definition.settings
    topology = Topology(
        settings.name,
        spark,
        bootstrap_servers=settings.bootstrap_servers,
        bad_records=settings.bad_records,
        lateness=settings.lateness,
        options=settings.options,
    )
    definition.build(topology)
    topology.outgoing()
    return topology


class Runner:
    """``once`` reads what is there and ends; ``watch`` is told of every batch."""

    def __init__(
        self,
        definition: Definition,
        directory: RunDirectory,
        *,
        say: Say,
        watch: Callable[[Progress], None],
        once: bool = False,
        attempts_max: int | None = None,
    ) -> None:
        self._definition = definition
        self._directory = directory
        self._say = say
        self._watch = watch
        self._once = once
        self._backoff = Backoff(attempts_max)
        self._stops = threading.Event()
        self._has_progressed = False
        settings = definition.settings
        self._is_running = False
        self._metrics = PipelineMetrics(settings.name, restarts=directory.restarts, is_running=lambda: self._is_running)
        self._groups: ProgressGroups | None = None

    def run(self) -> None:
        """Until it is stopped, or done; raises what cannot be mended by trying again.

        Whoever calls it holds the run's directory.
        """
        settings = self._definition.settings
        self._directory.write_status(
            state="starting",
            driver=os.getpid(),
            file=str(self._definition.path.resolve()),
            master=settings.master,
            bootstrap_servers=settings.bootstrap_servers,
            checkpoint=self._checkpoint,
        )
        previous = {number: signal.signal(number, self._signalled) for number in (signal.SIGTERM, signal.SIGINT)}
        try:
            with served(settings.metrics, self._metrics.registry) as address:
                self._directory.write_status(metrics=address)
                self._attempts()
        except BaseException as error:
            self._directory.write_status(state="failed", error=str(explained(error)), metrics=None)
            raise
        finally:
            for number, handler in previous.items():
                signal.signal(number, handler)
        self._directory.write_status(state="stopped", metrics=None)

    @property
    def _checkpoint(self) -> str:
        """The same text wherever it is started from: a restart may have another working directory."""
        named = self._definition.settings.checkpoint
        if named is not None and "://" in named:
            return named
        return os.path.abspath(named or self._directory.checkpoint)

    def _signalled(self, number: int, frame: FrameType | None) -> None:
        self._stops.set()

    def _attempts(self) -> None:
        while not self._stops.is_set():
            began = time.monotonic()
            self._has_progressed = False
            try:
                self._attempt()
                return
            except Exception as error:
                if java_has_ended():
                    if self._stops.is_set():
                        # Ctrl-C is for every process of a terminal.
                        return
                    raise DriverLost(f"Spark's Java process has ended: {explained(error)}") from error
                if not isinstance(error, MENDED):
                    raise
                told = explained(error)
                self._directory.keep_failure(error)
                is_final = isinstance(told, FINAL) or (type(told) is PipelineError and isinstance(error, _WRONG))
                wait = self._backoff.failed(time.monotonic() - began, has_progressed=self._has_progressed)
                if is_final or wait is None:
                    raise told from error
                restarts = self._directory.restarts() + 1
                self._directory.write_status(state="waiting", error=str(told), restarts=restarts)
                self._say(f"failed: {told}; trying again in {wait:.0f} s")
                self._stops.wait(wait)

    def _attempt(self) -> None:
        settings = self._definition.settings
        spark = spark_session(settings.name, master=settings.master, settings=settings.spark)
        topology = build_topology(self._definition, spark)
        trigger: dict[str, Any] = {"availableNow": True} if self._once else {"processingTime": settings.trigger}
        query = topology.start(self._checkpoint, delivery=settings.delivery, trigger=trigger)
        self._directory.write_status(state="running")
        self._is_running = True
        try:
            self._follow(query)
        finally:
            self._is_running = False

    def _progress_groups(self) -> ProgressGroups:
        if self._groups is None:
            from millbeck.pipeline.progress_groups import ProgressGroups

            settings = self._definition.settings
            self._groups = ProgressGroups(
                {"bootstrap.servers": settings.bootstrap_servers}, {settings.name: settings.group or settings.name}
            )
        return self._groups

    def _follow(self, query: StreamingQuery) -> None:
        told = -1
        while not query.awaitTermination(_LOOK_SECONDS):  # type: ignore[arg-type]
            told = self._tell(query, told)
            if self._stops.is_set():
                query.stop()
        self._tell(query, told)

    def _tell(self, query: StreamingQuery, told: int) -> int:
        for reported in query.recentProgress:
            progress = progress_of(json.loads(reported.json))
            self._metrics.looked(progress)
            if progress.batch > told and progress.rows:
                told = progress.batch
                self._has_progressed = True
                self._metrics.wrote(progress)
                self._progress_groups().progressed(reported)
                self._directory.write_status(progress=progress.as_json())
                self._watch(progress)
        return told


def java_has_ended() -> bool:
    """Whether the Java that this process started is gone; False when it started none."""
    process = getattr(SparkContext._gateway, "proc", None)
    if process is None:
        return False
    try:
        process.wait(_JAVA_ENDS_SECONDS)
    except subprocess.TimeoutExpired:
        return False
    return True
