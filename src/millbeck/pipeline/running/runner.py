"""Needs pyspark: one run of a pipeline, from the session to the last batch, restarted on failures.

On a stop signal the current batch is completed. Errors of the pipeline itself are not retried, because they would occur
again. If Spark's Java process has ended, nothing is retried here: that needs a new process, which `supervisor` starts.

Modules that only a topology needs are imported while Java starts (`preloading`).
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Sequence
from types import FrameType
from typing import TYPE_CHECKING, Any, Final

from py4j.protocol import Py4JError
from pyspark import SparkContext
from pyspark.errors import AnalysisException, PySparkException
from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from millbeck.pipeline.error_summaries import explained
from millbeck.pipeline.errors import (
    BadRecord,
    CheckpointMismatch,
    ConnectMissing,
    ConnectorMissing,
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
from millbeck.pipeline.running.backoff import RestartBackoff
from millbeck.pipeline.running.connector import connector_jars, has_connector
from millbeck.pipeline.running.definition import Definition
from millbeck.pipeline.running.metrics import PipelineMetrics
from millbeck.pipeline.running.metrics_server import served
from millbeck.pipeline.running.places import placed
from millbeck.pipeline.running.progress import BatchProgress, progress_of
from millbeck.pipeline.running.run_directory import RunDirectory
from millbeck.pipeline.running.skips import SkippedRecord, Skips
from millbeck.pipeline.running.triggers import parse_trigger
from millbeck.pipeline.session import spark_session
from millbeck.pipeline.sink_options import AT_LEAST_ONCE, EXACTLY_ONCE

if TYPE_CHECKING:
    from millbeck.pipeline.progress_groups import ProgressGroups
    from millbeck.pipeline.topology.topology import Topology

_LOOK_SECONDS: Final[Any] = 0.5  # pyspark declares whole seconds, and takes fractions
_JAVA_ENDS_SECONDS: Final = 2.0
FINAL: Final = (
    TopologyError,
    DefinitionError,
    InvalidOption,
    JavaMissing,
    ConnectMissing,
    ConnectorMissing,
    SchemaError,
    BadRecord,
    RecordsLost,
    NotExactlyOnce,
    CheckpointMismatch,
)
_WRONG: Final = (AnalysisException,)
"""Spark's error classes for an invalid query; the error of a source may be wrapped inside."""
MENDED: Final = (PySparkException, Py4JError, PipelineError)
"""Error classes that are retried, unless one of those above applies."""

Report = Callable[[str], None]


def build_topology(
    definition: Definition, spark: SparkSession, skipped: Sequence[SkippedRecord] = (), *, emit: str | None = None
) -> Topology:
    from millbeck.pipeline.topology.real_time import RealTimeTopology
    from millbeck.pipeline.topology.topology import Topology

    settings = definition.settings
    kind = RealTimeTopology if parse_trigger(settings.trigger).is_real_time else Topology
    topology = kind(
        settings.name,
        spark,
        bootstrap_servers=settings.bootstrap_servers,
        bad_records=settings.bad_records,
        lateness=settings.lateness,
        options=settings.source_options,
        skipped=skipped,
        late_records=settings.late_records,
    )
    topology.default_emit = emit or topology.default_emit
    with placed(definition.path):
        definition.build(topology)
    topology.outgoing()
    return topology


def started(
    definition: Definition, report: Report, skipped: Sequence[SkippedRecord] = ()
) -> tuple[SparkSession, Topology]:
    """Start Spark and build the topology; in real-time mode with the connector, and with a slot for each task."""
    settings = definition.settings
    if not parse_trigger(settings.trigger).is_real_time:
        spark = spark_session(settings.name, master=settings.master, settings=settings.spark)
        return spark, build_topology(definition, spark, skipped)
    from millbeck.pipeline.topology.real_time import SESSION_SETTINGS, RealTimeTopology

    if settings.master.startswith("sc://"):
        raise TopologyError("real-time mode is not possible with Spark Connect: give a trigger of batches")
    given = {**SESSION_SETTINGS, **settings.spark}
    if not has_connector(settings.spark):
        named = [given["spark.jars"]] if given.get("spark.jars") else []
        given["spark.jars"] = ",".join([*named, *map(str, connector_jars(report))])
    spark = spark_session(settings.name, master=settings.master, settings=given)
    topology = build_topology(definition, spark, skipped)
    assert isinstance(topology, RealTimeTopology)
    slots = topology.slots()
    there = spark.sparkContext.defaultParallelism
    if slots.total <= there:
        return spark, topology
    if settings.master != "local[*]":
        raise TopologyError(
            f"real-time mode runs all tasks at once: {slots.sources} partitions of sources and {slots.shuffles} of "
            f"shuffles need {slots.total} slots, and {settings.master} has {there}. Give it more, or lower "
            "spark.sql.shuffle.partitions"
        )
    spark.stop()
    spark = spark_session(settings.name, master=f"local[{slots.total}]", settings=given)
    return spark, build_topology(definition, spark, skipped)


class Runner:
    """``once`` processes existing records and stops; ``watch`` is called after every batch."""

    def __init__(
        self,
        definition: Definition,
        directory: RunDirectory,
        *,
        report: Report,
        watch: Callable[[BatchProgress], None],
        once: bool = False,
        attempts_max: int | None = None,
    ) -> None:
        self._definition = definition
        self._directory = directory
        self._report = report
        self._watch = watch
        self._once = once
        self._backoff = RestartBackoff(attempts_max)
        self._stops = threading.Event()
        self._has_progressed = False
        settings = definition.settings
        self._is_running = False
        self._metrics = PipelineMetrics(settings.name, restarts=directory.restarts, is_running=lambda: self._is_running)
        self._groups: ProgressGroups | None = None

    def run(self) -> None:
        """Run until stopped or done; raises errors that a retry cannot fix.

        The caller holds the lock of the run directory.
        """
        settings = self._definition.settings
        self._directory.write_status(
            state="starting",
            driver=os.getpid(),
            file=str(self._definition.path.resolve()),
            master=settings.master,
            trigger=settings.trigger,
            bootstrap_servers=settings.bootstrap_servers,
            checkpoint=self._checkpoint,
            group=settings.group_id,
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
        supervisor = self._directory.process_id()
        if supervisor in (None, os.getpid(), os.getppid()):
            self._directory.write_status(state="stopped", metrics=None)
        else:
            self._directory.write_status(
                state="killed", metrics=None, error=f"the process {supervisor} that supervised it was killed"
            )

    @property
    def _checkpoint(self) -> str:
        """An absolute path, so that a restart from another working directory uses the same checkpoint."""
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
                if jvm_has_exited():
                    if self._stops.is_set():
                        # Ctrl-C reaches every process of the terminal.
                        return
                    raise DriverLost(f"Spark's Java process has ended: {explained(error)}") from error
                if not isinstance(error, MENDED):
                    raise
                summary = explained(error)
                self._directory.save_failure(error)
                is_final = isinstance(summary, FINAL) or (type(summary) is PipelineError and isinstance(error, _WRONG))
                wait = self._backoff.failed(time.monotonic() - began, has_progressed=self._has_progressed)
                if is_final or wait is None:
                    raise summary from error
                restarts = self._directory.restarts() + 1
                self._directory.write_status(state="waiting", error=str(summary), restarts=restarts)
                self._report(f"failed: {summary}; trying again in {wait:.0f} s")
                self._stops.wait(wait)

    def _attempt(self) -> None:
        settings = self._definition.settings
        trigger = parse_trigger(settings.trigger)
        if trigger.is_real_time and self._once:
            raise DefinitionError("--once processes what is there in batches: give a trigger of batches with it")
        skipped = Skips(self._directory.path).read()
        if skipped:
            self._report(f"skipping records: {', '.join(map(str, skipped))}")
        spark, topology = started(self._definition, self._report, skipped)
        if not trigger.is_real_time and topology.keeps_final_results(self._checkpoint):
            self._report(
                'this checkpoint has windows with final results, and keeps them: emit="update" needs a new one'
            )
            topology = build_topology(self._definition, spark, skipped, emit="final")
        if trigger.is_real_time:
            self._report_repeats(topology)
        self._directory.write_status(topics=list(topology.sources), tables=list(topology.tables))
        delivery = settings.delivery or (AT_LEAST_ONCE if trigger.is_real_time else EXACTLY_ONCE)
        arguments = {"availableNow": True} if self._once else trigger.arguments
        query = topology.start(self._checkpoint, delivery=delivery, trigger=arguments)
        self._directory.write_status(state="running", error=None)
        self._is_running = True
        try:
            self._follow(query)
        finally:
            self._is_running = False

    def _report_repeats(self, topology: Topology) -> None:
        from millbeck.pipeline.topology.real_time import RealTimeTopology

        assert isinstance(topology, RealTimeTopology)
        repeats = topology.repeats_max(self._checkpoint)
        if repeats is not None:
            self._report(
                f"continuing from the end of the last batch: {repeats:,} records came since then; those that a killed "
                "run has written are written again"
            )

    def _progress_groups(self) -> ProgressGroups:
        if self._groups is None:
            from millbeck.pipeline.progress_groups import ProgressGroups

            settings = self._definition.settings
            self._groups = ProgressGroups(settings.client, {settings.name: settings.group_id})
        return self._groups

    def _follow(self, query: StreamingQuery) -> None:
        last_reported = -1
        while not query.awaitTermination(_LOOK_SECONDS):
            last_reported = self._report_progress(query, last_reported)
            if self._stops.is_set():
                query.stop()
        self._report_progress(query, last_reported)

    def _report_progress(self, query: StreamingQuery, last_reported: int) -> int:
        for reported in query.recentProgress:
            progress = progress_of(json.loads(reported.json))
            self._metrics.looked(progress)
            if progress.batch > last_reported and progress.rows:
                last_reported = progress.batch
                self._has_progressed = True
                self._metrics.wrote(progress)
                self._progress_groups().progressed(reported)
                self._directory.write_status(progress=progress.as_json())
                self._watch(progress)
        return last_reported


def jvm_has_exited() -> bool:
    """Whether the Java process started by this process has ended; False if none was started."""
    process = getattr(SparkContext._gateway, "proc", None)
    if process is None:
        return False
    try:
        process.wait(_JAVA_ENDS_SECONDS)
    except subprocess.TimeoutExpired:
        return False
    return True
