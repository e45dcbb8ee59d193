"""The turns of one connector: what is committed, aborted, tried again and said, without a log and without Spark."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any, cast

import pytest

from millbeck.host import real_environment
from millbeck.kernel.errors import CoordinatorNotAvailable
from millbeck.kernel.ids import TopicPartition
from millbeck.pipeline.connect.config.definitions import STRING, ConfigDef, ConfigKey
from millbeck.pipeline.connect.connectors.connector_class import ConnectorClass, ConnectorKind
from millbeck.pipeline.connect.connectors.interface import (
    Backlog,
    Connector,
    Plan,
    SinkConnector,
    SinkReport,
    SinkShare,
    SourceConnector,
    SourcePositions,
    SourceReport,
    SourceShare,
    dealt_out,
)
from millbeck.pipeline.connect.errors import ConfigError
from millbeck.pipeline.connect.state.offsets import OffsetRecord, OffsetState
from millbeck.pipeline.connect.tasks.work import FailureKind, Outcome, ShareFailure, TaskSettings, Work
from millbeck.pipeline.connect.worker import runner as runner_module
from millbeck.pipeline.connect.worker.log_watch import Subscription
from millbeck.pipeline.connect.worker.runner import ConnectorRunner, RunnerSettings, Services, StatusReport
from millbeck.pipeline.connect.worker.supervision import Condition

A0 = TopicPartition("a", 0)
OUTAGE = ShareFailure(kind=FailureKind.RETRIABLE, message="down at secret-1")
WRONG = ShareFailure(kind=FailureKind.FATAL, message="no such table")
_PLACE = {"place": 1}

events: list[str] = []
"""What has happened, in order."""


class Source(SourceConnector):
    declared = ConnectorClass(name="Source", kind=ConnectorKind.SOURCE, doc="", config_def=ConfigDef())
    end = 3
    error: Exception | None = None

    def start(self) -> None:
        events.append("start")

    def stop(self) -> None:
        events.append("stop")

    def plan(self, positions: SourcePositions) -> Plan[SourceShare]:
        if Source.error is not None:
            raise Source.error
        found = positions.get(_PLACE)
        position = 0 if found is None else found["at"]
        events.append(f"plan {position}")
        if position >= Source.end:
            return Plan()
        return Plan(shares=(SourceShare(payload=position),), again_s=0)

    def commit(self, reports: Any) -> None:
        events.append(f"commit {[cast('SourceReport', report).share.payload for report in reports]}")


class Sink(SinkConnector):
    declared = ConnectorClass(
        name="Sink",
        kind=ConnectorKind.SINK,
        doc="",
        config_def=ConfigDef(ConfigKey(name="x", kind=STRING, default="", doc="")),
    )
    error: Exception | None = None

    def plan(self, backlog: Mapping[TopicPartition, Backlog]) -> Plan[SinkShare]:
        return dealt_out(backlog, 1)

    def commit(self, reports: Any) -> None:
        events.append(f"commit {[dict(cast('SinkReport', report).positions) for report in reports]}")
        if Sink.error is not None:
            error, Sink.error = Sink.error, None
            raise error


class Transaction:
    """Commits into ``offsets``, unless it is told to fail."""

    offsets = OffsetState()
    error: Exception | None = None

    def __init__(self, environment: object, cluster: object, settings: object, transactional_id: str) -> None:
        self.transactional_id = transactional_id
        self.is_open = False

    async def open(self) -> None:
        self.is_open = True
        events.append(f"open {self.transactional_id}")

    def begin(self) -> str:
        assert self.is_open
        return "ticket"

    async def commit(
        self,
        *,
        offsets_topic: str = "",
        source_offsets: tuple[OffsetRecord, ...] = (),
        group: str = "",
        positions: Mapping[TopicPartition, int] | None = None,
    ) -> None:
        if Transaction.error is not None:
            error, Transaction.error = Transaction.error, None
            self.is_open = False
            raise error
        for record in source_offsets:
            Transaction.offsets.replay(*record)
        events.append(f"end {group}{positions or ''}")

    async def abort(self) -> None:
        events.append("abort")


class Watch:
    """A partition with records up to ``end``."""

    def __init__(self) -> None:
        self.end = 10
        self.group: dict[TopicPartition, int] = {}
        self.errors: list[Exception] = []

    def subscribe(self, name: str, subscription: Subscription) -> None:
        assert subscription.wants("a")
        subscription.ends = {A0: self.end}
        subscription.has_ends = True

    def unsubscribe(self, name: str) -> None:
        pass

    async def ensure_topic(self, name: str, replicas: int) -> None:
        events.append(f"make {name}")

    async def committed(self, group: str) -> dict[TopicPartition, int]:
        return dict(self.group)

    async def beginnings(self, partitions: list[TopicPartition]) -> dict[TopicPartition, int]:
        return dict.fromkeys(partitions, 2)

    async def commit(self, group: str, positions: Mapping[TopicPartition, int]) -> None:
        if self.errors:
            raise self.errors.pop()
        events.append(f"positions {group} {dict(positions)}")
        self.group |= positions


class Engine:
    """Gives the outcomes in its list, then successes; never ends with ``hangs``."""

    def __init__(self, *failures: ShareFailure | None, letters: int = 0, hangs: bool = False) -> None:
        self.failures = list(failures)
        self.letters = letters
        self.hangs = hangs
        self.works: list[Work] = []
        self.job_count = 0

    def submit(self, work: Work, *, is_long: bool) -> asyncio.Future[Outcome]:
        self.works.append(work)
        future: asyncio.Future[Outcome] = asyncio.get_running_loop().create_future()
        if not self.hangs:
            future.set_result(self._outcome(work))
        return future

    def _outcome(self, work: Work) -> Outcome:
        failure = self.failures.pop(0) if self.failures else None
        if failure is not None:
            return Outcome(task=work.task, failure=failure)
        if isinstance(work.share, SourceShare):
            moved = ((_PLACE, {"at": work.share.payload + 1}),)
            return Outcome(task=work.task, record_count=1, offsets=moved, topics=("t",))
        positions = {found.partition: found.end for found in work.share.ranges}
        return Outcome(task=work.task, record_count=8, positions=positions, letter_count=self.letters)

    async def close(self) -> None:
        pass


class Bench:
    """A runner with all of its surroundings."""

    def __init__(self, kind: type[Connector], engine: Engine, settings: Mapping[str, str] | None = None) -> None:
        self.engine = engine
        self.watch = Watch()
        self.said: list[StatusReport] = []
        self.topics: list[tuple[str, ...]] = []
        self._kind = kind
        self._settings = {"topics": "a", **(settings or {})}

    def run(
        self, until: Callable[[ConnectorRunner], bool], then: Callable[[ConnectorRunner], Any] | None = None
    ) -> None:
        """Let the runner work until something is true, and then some more with ``then``."""

        async def main() -> None:
            runner = self._made()
            await _until(lambda: until(runner))
            if then is not None:
                found = then(runner)
                if isinstance(found, Coroutine):
                    await found
            await runner.stop(0.05)

        asyncio.run(main())

    def _made(self) -> ConnectorRunner:
        async def read() -> None:
            events.append("read")

        services = Services(
            environment=real_environment(),
            cluster=cast("Any", None),
            engine=self.engine,
            watch=cast("Any", self.watch),
            calls=ThreadPoolExecutor(1),
            offsets=Transaction.offsets,
            read_offsets=read,
            offsets_topic="offsets",
            group_id="g",
            delay_max_s=0.02,
        )
        task = TaskSettings(
            name="c",
            class_name=self._kind.__name__,
            implementation=f"{__name__}:{self._kind.__name__}",
            settings=self._settings,
            converters={},
            tasks_max=1,
            client={"bootstrap.servers": "127.0.0.1:1"},
            producer={},
            consumer={},
        )
        return ConnectorRunner(
            services,
            RunnerSettings(task=task, known=self._kind.declared, fences=2, hidden=("secret-1",)),
            on_status=self.said.append,
            on_topics=lambda number, topics: self.topics.append(topics),
        )


async def _until(reached: Callable[[], bool]) -> None:
    async with asyncio.timeout(10.0):
        while not reached():
            await asyncio.sleep(0.002)


@pytest.fixture(autouse=True)
def _fresh(monkeypatch: pytest.MonkeyPatch) -> None:
    events.clear()
    Source.error = Sink.error = Transaction.error = None
    Source.end = 3
    Transaction.offsets = OffsetState()
    monkeypatch.setattr(runner_module, "TaskTransaction", Transaction)


def _is_done(bench: Bench) -> Callable[[ConnectorRunner], bool]:
    return lambda runner: events[-1:] == ["plan 3"]


def test_a_source_fences_then_reads_offsets_then_works_turn_after_turn() -> None:
    bench = Bench(Source, Engine())
    bench.run(_is_done(bench))
    assert events == [
        # The configuration before had two tasks.
        "open g-c-0", "open g-c-1", "read", "start",
        "plan 0", "end ", "commit [0]", "plan 1", "end ", "commit [1]", "plan 2", "end ", "commit [2]", "plan 3",
        "stop",
    ]  # fmt: skip
    assert bench.topics[0] == ("t",)
    assert bench.said == [
        StatusReport(task=None, condition=Condition.RUNNING),
        StatusReport(task=0, condition=Condition.RUNNING),
    ]


def test_a_failed_share_is_aborted_and_planned_again() -> None:
    bench = Bench(Source, Engine(None, OUTAGE, OUTAGE))
    bench.run(_is_done(bench))
    assert [work.share.payload for work in bench.engine.works] == [0, 1, 1, 1, 2]
    assert [work.attempt for work in bench.engine.works] == [1, 1, 2, 3, 1]
    assert events.count("abort") == 2
    waiting = [report for report in bench.said if report.condition is Condition.WAITING]
    assert "attempt 3 is at" in str(waiting[-1].trace)
    assert "secret" not in str(waiting)
    assert "[hidden]" in str(waiting)
    assert bench.said[-1] == StatusReport(task=0, condition=Condition.RUNNING)


def test_after_an_unknown_outcome_everything_is_read_anew() -> None:
    Transaction.error = CoordinatorNotAvailable("gone")
    bench = Bench(Source, Engine())
    bench.run(_is_done(bench))
    again = events.index("plan 0") + 1
    assert events[again : again + 3] == ["open g-c-0", "read", "plan 0"]
    assert [work.share.payload for work in bench.engine.works] == [0, 0, 1, 2]


def test_what_trying_cannot_mend_waits_for_a_restart() -> None:
    bench = Bench(Source, Engine(WRONG))

    def is_failed(runner: ConnectorRunner) -> bool:
        return any(report.condition is Condition.FAILED for report in bench.said)

    async def restart(runner: ConnectorRunner) -> None:
        await asyncio.sleep(0.05)
        assert len(bench.engine.works) == 1
        runner.restart(connector=False, tasks=[0])
        await _until(lambda: events[-1] == "plan 3")

    bench.run(is_failed, restart)
    assert "mend it, then restart" in str([report.trace for report in bench.said])


def test_a_plan_that_fails_ends_the_connector_or_is_asked_for_again() -> None:
    Source.error = ConfigError("no such database")
    bench = Bench(Source, Engine())

    def has_said(condition: Condition) -> Callable[[], bool]:
        return lambda: any(report.task is None and report.condition is condition for report in bench.said)

    async def mend(runner: ConnectorRunner) -> None:
        assert events[-1] == "stop"
        Source.error = OSError("connection refused")
        runner.restart(connector=True, tasks=[])
        await _until(has_said(Condition.WAITING))
        Source.error = None
        await _until(lambda: events[-1] == "plan 3")

    bench.run(lambda runner: has_said(Condition.FAILED)() and events[-1] == "stop", mend)
    assert events.count("start") == events.count("stop")


def test_a_share_under_way_at_the_end_is_given_up_and_aborted() -> None:
    bench = Bench(Source, Engine(hangs=True))
    bench.run(lambda runner: bool(bench.engine.works))
    assert events[-2:] == ["abort", "stop"]
    assert "end " not in events


def _ranges(bench: Bench) -> list[Any]:
    return [cast("SinkShare", work.share).ranges for work in bench.engine.works]


def test_a_sink_commits_behind_its_connector() -> None:
    bench = Bench(Sink, Engine())
    bench.run(lambda runner: A0 in bench.watch.group)
    assert events == [f"commit {[{A0: 10}]}", f"positions connect-c { {A0: 10} }"]
    assert _ranges(bench) == [((A0, 2, 10),)]
    assert bench.engine.works[0].ticket is None


def test_letters_and_positions_are_one_transaction() -> None:
    settings = {"errors.tolerance": "all", "errors.deadletterqueue.topic.name": "dead"}
    bench = Bench(Sink, Engine(letters=3), settings)
    bench.run(lambda runner: any(event.startswith("end") for event in events))
    assert events == ["make dead", "open g-c-0", f"commit {[{A0: 10}]}", f"end connect-c{ {A0: 10} }"]
    assert bench.engine.works[0].ticket == "ticket"
    events.clear()
    bench = Bench(Sink, Engine(letters=0), settings)
    bench.run(lambda runner: A0 in bench.watch.group)
    assert events[-2:] == ["abort", f"positions connect-c { {A0: 10} }"]


def test_a_sink_whose_commit_fails_writes_the_share_again() -> None:
    Sink.error = OSError("no snapshot")
    bench = Bench(Sink, Engine())
    bench.run(lambda runner: A0 in bench.watch.group)
    assert _ranges(bench) == [((A0, 2, 10),)] * 2


def test_positions_that_cannot_be_committed_are_kept_and_committed_later() -> None:
    bench = Bench(Sink, Engine())
    bench.watch.errors = [CoordinatorNotAvailable("gone")]
    bench.run(lambda runner: runner.totals.turns == 1)
    # At the latest when the connector stops; nothing is written twice.
    assert bench.watch.group == {A0: 10}
    assert len(bench.engine.works) == 1
