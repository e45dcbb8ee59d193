"""Runs one connector: turn after turn of *plan → shares → commit*, as long as this worker has it.

    opening ──▶ running ──stop──▶ stopped
       ▲           │
       │           └── plan(), start() or positions fail ──▶ waiting ──▶ opening
       └───────────────────────────────────────────────────────┘    or failed, until a restart

What a share's failure means is decided by `supervision`; this module does what was decided. A connector's methods are
called on a thread, one at a time.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Callable, Hashable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, Final, TypeVar, TypeVarTuple

from millbeck.client.cluster import Cluster
from millbeck.client.consumer.config import ConsumerConfig
from millbeck.client.producer.config import ProducerConfig
from millbeck.kernel.environment import Environment
from millbeck.kernel.errors import ApiError, InvalidConfig, InvalidProducerEpoch, ProducerFenced
from millbeck.kernel.ids import TopicPartition
from millbeck.pipeline.connect.config.definitions import LIST
from millbeck.pipeline.connect.connectors.declared import ConnectorClass, ConnectorKind, Delivery
from millbeck.pipeline.connect.connectors.interface import (
    Backlog,
    Connector,
    Plan,
    SinkConnector,
    SinkReport,
    SinkShare,
    SourceConnector,
    SourceReport,
    SourceShare,
)
from millbeck.pipeline.connect.errors import ConfigError
from millbeck.pipeline.connect.model.java_patterns import compiled
from millbeck.pipeline.connect.state.offsets import OffsetRecord, OffsetState
from millbeck.pipeline.connect.tasks.process import made_connector
from millbeck.pipeline.connect.tasks.running import failure_of
from millbeck.pipeline.connect.tasks.tolerance import ErrorPolicy
from millbeck.pipeline.connect.tasks.work import FailureKind, Outcome, ShareFailure, TaskSettings, Work
from millbeck.pipeline.connect.worker.engine import Engine
from millbeck.pipeline.connect.worker.log_watch import READ_COMMITTED, LogWatch, Subscription
from millbeck.pipeline.connect.worker.supervision import ALL, FIRST_DELAY_S, Condition, Placed, Supervision
from millbeck.pipeline.connect.worker.transactions import TaskTransaction, transactional_id, write_offsets
from millbeck.pipeline.connect.worker.turns import TurnClock

log = logging.getLogger(__name__)

T = TypeVar("T")
Ts = TypeVarTuple("Ts")

COMMIT_RETRY_S: Final = 5.0
_CONNECTOR: Final = None
"""In reports of status: the connector itself, not a task."""


class Positions:
    """The committed offsets of a source."""

    def __init__(self, offsets: Iterable[tuple[dict[str, Any], dict[str, Any]]]) -> None:
        self._offsets = {_canonical(partition): (partition, offset) for partition, offset in offsets}

    def get(self, partition: Mapping[str, Any]) -> dict[str, Any] | None:
        found = self._offsets.get(_canonical(partition))
        return None if found is None else found[1]

    def items(self) -> list[tuple[dict[str, Any], dict[str, Any]]]:
        return list(self._offsets.values())

    def move(self, offsets: Iterable[tuple[dict[str, Any], dict[str, Any] | None]]) -> None:
        for partition, offset in offsets:
            if offset is None:
                self._offsets.pop(_canonical(partition), None)
            else:
                self._offsets[_canonical(partition)] = (partition, offset)


def _canonical(partition: Mapping[str, Any]) -> str:
    return json.dumps(partition, sort_keys=True)


def _nothing() -> None:
    pass


@dataclass(slots=True)
class Totals:
    """What a connector's tasks have done since it was started here."""

    records: int = 0
    read: int = 0
    filtered: int = 0
    skipped: int = 0
    letters: int = 0
    retries: int = 0
    failures: int = 0
    turns: int = 0
    turn_seconds: float = 0.0
    plan_seconds: float = 0.0
    commit_seconds: float = 0.0

    def add(self, outcome: Outcome) -> None:
        self.records += outcome.record_count
        self.read += outcome.read_count
        self.filtered += outcome.filtered_count
        self.skipped += outcome.skipped_count
        self.letters += outcome.letter_count
        self.retries += outcome.retry_count
        self.failures += outcome.failure is not None


@dataclass(frozen=True, slots=True, kw_only=True)
class Services:
    """What the connectors of a worker share."""

    environment: Environment
    cluster: Cluster
    engine: Engine
    watch: LogWatch
    calls: ThreadPoolExecutor
    offsets: OffsetState
    read_offsets: Callable[[], Any]
    """Waits until ``offsets`` has all that is committed now."""
    offsets_topic: str
    group_id: str
    on_fenced: Callable[[], None] = _nothing
    """Called when another worker has taken over a transactional id of this one."""
    is_exactly_once: bool = True
    retries: bool = True
    delay_max_s: float = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class StatusReport:
    """What is to be said of a connector (task None) or of one of its tasks."""

    task: int | None
    condition: Condition
    trace: str | None = None


@dataclass(slots=True)
class RunnerSettings:
    """One configuration of a connector, resolved."""

    task: TaskSettings
    known: ConnectorClass
    fences: int
    """How many transactional ids earlier tasks may have."""
    hidden: tuple[str, ...] = field(default=(), repr=False)
    """Values of config providers, which no message may show."""


class ConnectorRunner:
    """``on_status`` gets every change of status, ``on_topics`` the topics in use by a task."""

    def __init__(
        self,
        services: Services,
        settings: RunnerSettings,
        *,
        on_status: Callable[[StatusReport], None],
        on_topics: Callable[[int, tuple[str, ...]], None],
    ) -> None:
        self._services = services
        self._settings = settings
        self.name = settings.task.name
        self._on_status = on_status
        self._on_topics = on_topics
        self._loop = asyncio.get_running_loop()
        self._changed = asyncio.Event()
        self._clock = TurnClock()
        self._is_stopping = False
        self._is_restarted = False
        self._opened: Connector | None = None
        self._transactions: dict[int, TaskTransaction] = {}
        self._positions = Positions(())
        self._sink_positions: dict[TopicPartition, int] = {}
        self._subscription: Subscription | None = None
        self._said: dict[int | None, StatusReport] = {}
        self._must_reload = False
        self._uncommitted: dict[TopicPartition, int] = {}
        self._unconfirmed: list[SourceReport] = []
        self.supervision = Supervision(
            settings.task.tasks_max, retries=services.retries, delay_max_s=services.delay_max_s
        )
        self.totals = Totals()
        self._running = asyncio.create_task(self._run())

    # called by the worker

    def restart(self, *, connector: bool, tasks: Iterable[int]) -> None:
        """Begin anew by a request: the connector's object, or some of its tasks."""
        for task in tasks:
            self.supervision.restart(task)
            self._said.pop(task, None)
        if connector:
            self._is_restarted = True
            self._said.pop(_CONNECTOR, None)
        else:
            self._publish_tasks()
        self._wake()

    async def stop(self, timeout_s: float) -> None:
        """Let the turn under way end, for at most this long; then give it up, and abort its transactions."""
        self._is_stopping = True
        self._changed.set()
        done, _ = await asyncio.wait([self._running], timeout=timeout_s)
        if not done:
            self._running.cancel()
            await asyncio.wait([self._running])

    @property
    def gauges(self) -> Mapping[str, float]:
        """What the connector says of itself, while it runs."""
        if self._opened is None:
            return {}
        try:
            return self._opened.gauges()
        except Exception as error:
            log.warning("%s: gauges() failed: %s", self.name, self._hide(str(error)))
            return {}

    def _wake(self) -> None:
        self._clock.wake()
        self._changed.set()

    def _wake_threadsafe(self) -> None:
        try:
            self._loop.call_soon_threadsafe(self._wake)
        except RuntimeError:
            # The worker has ended.
            pass

    # the connector's life

    async def _run(self) -> None:
        failures = 0
        while not self._is_stopping:
            self._is_restarted = False
            turns = self.totals.turns
            try:
                await self._open()
                self._publish(_CONNECTOR, Condition.RUNNING)
                self._publish_tasks()
                await self._take_turns()
            except Exception as error:
                failure = failure_of(error)
                failures = 1 if self.totals.turns > turns else failures + 1
                delay_s = min(self._services.delay_max_s, FIRST_DELAY_S * 2.0 ** min(failures - 1, 16))
                is_final = failure.kind is FailureKind.FATAL or not self._services.retries
                self._log_failure("failed", failure, error)
                self._publish(
                    _CONNECTOR,
                    Condition.FAILED if is_final else Condition.WAITING,
                    self._trace(failure, failures, None if is_final else delay_s),
                )
                await self._close()
                await self._rest(None if is_final else delay_s)
            finally:
                await self._close()
        await self._commit_positions()

    async def _rest(self, delay_s: float | None) -> None:
        """Wait for the time, a restart or the end."""
        deadline_s = None if delay_s is None else self._loop.time() + delay_s
        while not self._is_stopping and not self._is_restarted:
            left_s = None if deadline_s is None else deadline_s - self._loop.time()
            if left_s is not None and left_s <= 0:
                return
            await self._wait(left_s)

    async def _wait(self, timeout_s: float | None) -> None:
        self._changed.clear()
        try:
            await asyncio.wait_for(self._changed.wait(), timeout_s)
        except TimeoutError:
            pass

    async def _open(self) -> None:
        services, settings = self._services, self._settings
        connector = made_connector(settings.task, self._wake_threadsafe)
        if settings.known.kind is ConnectorKind.SOURCE:
            await self._open_transactions(settings.fences)
            await self._load_source_positions()
        self._opened = connector
        await self._call(connector.start)
        if isinstance(connector, SinkConnector):
            await self._open_sink(connector)
        self._clock = TurnClock()
        log.info("%s runs (%s)", self.name, settings.task.class_name)
        if services.is_exactly_once and isinstance(connector, SourceConnector):
            assert self._transactions

    async def _open_transactions(self, count: int) -> None:
        """Fence all tasks that may still write, and abort what they have left."""
        if not self._services.is_exactly_once:
            return
        numbers = range(max(count, self._settings.task.tasks_max))
        opened = {number: self._transaction(number) for number in numbers}
        await asyncio.gather(*(each.open() for each in opened.values()))
        self._transactions = {number: each for number, each in opened.items() if number < self._settings.task.tasks_max}

    def _transaction(self, task: int) -> TaskTransaction:
        services, settings = self._services, self._settings.task
        return TaskTransaction(
            services.environment,
            services.cluster,
            {**settings.client, **settings.producer},
            transactional_id(services.group_id, self.name, task),
        )

    async def _load_source_positions(self) -> None:
        await self._services.read_offsets()
        self._positions = Positions(self._services.offsets.offsets_of(self.name))

    async def _open_sink(self, connector: SinkConnector) -> None:
        settings = self._settings.task
        if self._has_letters:
            policy = ErrorPolicy.of(settings.settings)
            await self._services.watch.ensure_topic(policy.letter_topic, policy.letter_replicas)
        config = ConsumerConfig.parse({"isolation.level": READ_COMMITTED, **settings.client, **settings.consumer})
        if self._has_letters and connector.delivery is not Delivery.IN_TARGET:
            self._transactions = {number: self._transaction(number) for number in range(settings.tasks_max)}
            await asyncio.gather(*(each.open() for each in self._transactions.values()))
        self._subscription = Subscription(wanted_topics(settings.settings), config.isolation_level, self._wake)
        self._services.watch.subscribe(self.name, self._subscription)
        await self._until_watched()
        await self._load_sink_positions(connector)

    async def _until_watched(self) -> None:
        assert self._subscription is not None
        while not self._subscription.has_ends and not self._is_stopping:
            await self._wait(None)

    async def _load_sink_positions(self, connector: SinkConnector) -> None:
        assert self._subscription is not None
        partitions = list(self._subscription.ends)
        committed = await self._committed(partitions)
        # What is written here already counts, also if its commit has failed.
        committed |= {each: self._sink_positions[each] for each in partitions if each in self._sink_positions}
        self._sink_positions = dict(await self._call(connector.positions, committed))

    async def _committed(self, partitions: list[TopicPartition]) -> dict[TopicPartition, int]:
        """From where each partition is written on; where nothing is committed, what auto.offset.reset says."""
        found = await self._services.watch.committed(self.group)
        missing = [partition for partition in partitions if partition not in found]
        assert self._subscription is not None
        if self._settings.task.consumer.get("auto.offset.reset", "earliest") == "latest":
            begins = {partition: self._subscription.ends[partition] for partition in missing}
        else:
            begins = await self._services.watch.beginnings(missing)
        return {partition: found.get(partition, begins.get(partition, 0)) for partition in partitions}

    @property
    def group(self) -> str:
        """The consumer group with a sink's positions."""
        return self._settings.task.consumer.get("group.id") or f"connect-{self.name}"

    @property
    def _has_letters(self) -> bool:
        policy = ErrorPolicy.of(self._settings.task.settings)
        return policy.tolerates and bool(policy.letter_topic)

    async def _close(self) -> None:
        self._services.watch.unsubscribe(self.name)
        self._subscription = None
        opened, self._opened = self._opened, None
        if opened is not None:
            try:
                await asyncio.shield(self._call(opened.stop))
            except Exception as error:
                log.warning("%s: stop() failed: %s", self.name, self._hide(str(error)))

    async def _call(self, function: Callable[[*Ts], T], *arguments: *Ts) -> T:
        """Call a method of the connector on a thread."""
        return await self._loop.run_in_executor(self._services.calls, function, *arguments)

    # turns

    async def _take_turns(self) -> None:
        while not self._is_stopping and not self._is_restarted:
            wait_s = self._clock.wait_s(self._loop.time())
            if wait_s is None or wait_s > 0:
                await self._wait(wait_s)
                continue
            await self._turn()

    async def _turn(self) -> None:
        self._clock.begin()
        await self._commit_positions()
        started_s = self._loop.time()
        connector = self._opened
        if not self.supervision.may_plan(started_s):
            self._clock.planned(started_s, None, ran=0, planned=0, retry_s=self.supervision.next_attempt_s())
            return
        if self._must_reload:
            await self._reload()
        if isinstance(connector, SourceConnector):
            plan = await self._call(connector.plan, self._positions)
            shares = [((share.key or ALL,), share) for share in plan.shares]
            ran = await self._run_sources(connector, self.supervision.place(shares, started_s), started_s)
            self._planned(started_s, plan, ran)
            return
        assert isinstance(connector, SinkConnector)
        sink_plan = await self._call(connector.plan, self._backlog(started_s))
        sink_shares = [
            (tuple(found.partition for found in share.ranges), share) for share in sink_plan.shares if share.ranges
        ]
        ran = await self._run_sinks(connector, self.supervision.place(sink_shares, started_s), started_s)
        self._planned(started_s, sink_plan, ran)

    def _planned(self, started_s: float, plan: Plan[Any], ran: int) -> None:
        self._clock.planned(
            started_s,
            plan.again_s,
            ran=ran,
            planned=len(plan.shares),
            retry_s=self.supervision.next_attempt_s(),
        )

    def _backlog(self, now_s: float) -> dict[TopicPartition, Backlog]:
        assert self._subscription is not None
        excluded = self.supervision.excluded(now_s)
        found: dict[TopicPartition, Backlog] = {}
        for partition, end in self._subscription.ends.items():
            position = self._sink_positions.get(partition)
            if position is None:
                self._must_reload = True
                self._wake()
            elif position < end and partition not in excluded:
                found[partition] = Backlog(position, end)
        return found

    async def _reload(self) -> None:
        """Read positions and take transactions over again, after an outcome that nobody knows."""
        for transaction in self._transactions.values():
            if not transaction.is_open:
                await transaction.open()
        if isinstance(self._opened, SinkConnector):
            await self._load_sink_positions(self._opened)
        else:
            await self._load_source_positions()
        self._must_reload = False

    async def _submitted(self, placed: Placed[Any], ticket: Any) -> Outcome:
        work = Work(
            settings=self._settings.task, task=placed.task, share=placed.share, ticket=ticket, attempt=placed.attempt
        )
        return await self._services.engine.submit(work, is_long=placed.share.is_long)

    # sources

    async def _run_sources(
        self, connector: SourceConnector, placed: list[Placed[SourceShare]], started_s: float
    ) -> int:
        if not placed:
            return 0
        planned_s = self._loop.time()
        reports: list[SourceReport] = []
        tasks = [asyncio.create_task(self._run_source(each, reports)) for each in placed]
        try:
            await asyncio.gather(*tasks)
        except BaseException:
            for task in tasks:
                task.cancel()
            await asyncio.wait(tasks)
            raise
        ended_s = self._loop.time()
        self._unconfirmed += sorted(reports, key=lambda report: report.task)
        if self._unconfirmed:
            try:
                await self._call(connector.commit, tuple(self._unconfirmed))
                self._unconfirmed.clear()
            except Exception as error:
                log.warning("%s: commit() failed and is tried again: %s", self.name, self._hide(str(error)))
        self._count_turn(started_s, planned_s, ended_s)
        return len(placed)

    async def _run_source(self, placed: Placed[SourceShare], reports: list[SourceReport]) -> None:
        transaction = self._transactions.get(placed.task)
        outcome: Outcome | None = None
        try:
            if transaction is not None and not transaction.is_open:
                await transaction.open()
            ticket = None if transaction is None else transaction.begin()
            outcome = await self._submitted(placed, ticket)
            if outcome.failure is None:
                await self._commit_source(transaction, outcome)
                reports.append(
                    SourceReport(
                        task=placed.task,
                        share=placed.share,
                        offsets=outcome.offsets,
                        record_count=outcome.record_count,
                    )
                )
                self._succeeded(placed.task, outcome)
                return
            await self._abort(transaction)
            failure = outcome.failure
        except asyncio.CancelledError:
            await asyncio.shield(self._abort(transaction))
            raise
        except (ApiError, TimeoutError) as error:
            # Whether it is committed is not known.
            self._must_reload = True
            self._look_for_others(error)
            failure = failure_of(error)
        self._failed(placed.task, (placed.share.key or ALL,), failure, outcome)

    async def _commit_source(self, transaction: TaskTransaction | None, outcome: Outcome) -> None:
        services = self._services
        records: list[OffsetRecord] = [
            services.offsets.record(self.name, partition, offset) for partition, offset in outcome.offsets
        ]
        if transaction is not None:
            if records or outcome.record_count:
                await transaction.commit(offsets_topic=services.offsets_topic, source_offsets=records)
            else:
                await transaction.abort()
        elif records:
            config = ProducerConfig.parse({**self._settings.task.client, **self._settings.task.producer})
            await write_offsets(services.environment, services.cluster, config, services.offsets_topic, records, None)
        self._positions.move(outcome.offsets)

    async def _abort(self, transaction: TaskTransaction | None) -> None:
        if transaction is None:
            return
        try:
            await transaction.abort()
        except (ApiError, TimeoutError) as error:
            self._must_reload = True
            self._look_for_others(error)
            log.info("%s: the transaction could not be aborted, it is when it is taken over: %s", self.name, error)

    def _look_for_others(self, error: Exception) -> None:
        if isinstance(error, ProducerFenced | InvalidProducerEpoch):
            log.warning("%s: another worker has taken over: %s", self.name, error)
            self._services.on_fenced()

    # sinks

    async def _run_sinks(self, connector: SinkConnector, placed: list[Placed[SinkShare]], started_s: float) -> int:
        if not placed:
            return 0
        planned_s = self._loop.time()
        tickets: dict[int, Any] = {}
        for each in placed:
            transaction = self._transactions.get(each.task)
            if transaction is not None:
                if not transaction.is_open:
                    await transaction.open()
                tickets[each.task] = transaction.begin()
        try:
            outcomes = await asyncio.gather(*(self._submitted(each, tickets.get(each.task)) for each in placed))
            ended_s = self._loop.time()
            await self._commit_sinks(connector, placed, outcomes)
        except BaseException:
            for task in tickets:
                await asyncio.shield(self._abort(self._transactions[task]))
            raise
        self._count_turn(started_s, planned_s, ended_s)
        return len(placed)

    async def _commit_sinks(
        self, connector: SinkConnector, placed: list[Placed[SinkShare]], outcomes: list[Outcome]
    ) -> None:
        done = [(each, outcome) for each, outcome in zip(placed, outcomes, strict=True) if outcome.failure is None]
        for each, outcome in zip(placed, outcomes, strict=True):
            if outcome.failure is not None:
                await self._abort(self._transactions.get(each.task))
                self._sink_failed(connector, each, outcome.failure, outcome)
        if not done:
            return
        try:
            await self._call(
                connector.commit,
                tuple(
                    SinkReport(
                        task=each.task,
                        share=each.share,
                        positions=outcome.positions,
                        result=outcome.result,
                        record_count=outcome.record_count,
                    )
                    for each, outcome in done
                ),
            )
        except Exception as error:
            for each, outcome in done:
                await self._abort(self._transactions.get(each.task))
                self._sink_failed(connector, each, failure_of(error), outcome)
            return
        plain: dict[TopicPartition, int] = {}
        for each, outcome in done:
            transaction = self._transactions.get(each.task)
            try:
                if transaction is not None and outcome.letter_count:
                    await transaction.commit(group=self.group, positions=outcome.positions)
                else:
                    await self._abort(transaction)
                    plain |= outcome.positions
            except (ApiError, TimeoutError) as error:
                self._must_reload = True
                self._sink_failed(connector, each, failure_of(error), outcome)
                continue
            self._sink_positions |= outcome.positions
            self._succeeded(each.task, outcome)
        self._uncommitted |= plain
        await self._commit_positions()

    async def _commit_positions(self) -> None:
        """Commit positions of what is written; what fails is committed before the next turn."""
        if not self._uncommitted:
            return
        try:
            await self._services.watch.commit(self.group, self._uncommitted)
            self._uncommitted.clear()
        except (ApiError, TimeoutError) as error:
            log.warning("%s: positions are not committed yet: %s", self.name, error)
            self._loop.call_later(COMMIT_RETRY_S, self._wake)

    def _sink_failed(
        self, connector: SinkConnector, placed: Placed[SinkShare], failure: ShareFailure, outcome: Outcome
    ) -> None:
        self._must_reload = True
        keys: tuple[Hashable, ...] = tuple(found.partition for found in placed.share.ranges)
        self._failed(placed.task, keys, failure, outcome)

    # what has become of shares

    def _count_turn(self, started_s: float, planned_s: float, ended_s: float) -> None:
        now_s = self._loop.time()
        self.totals.turns += 1
        self.totals.plan_seconds += planned_s - started_s
        self.totals.commit_seconds += now_s - ended_s
        self.totals.turn_seconds += now_s - started_s

    def _succeeded(self, task: int, outcome: Outcome) -> None:
        self.totals.add(outcome)
        for line in outcome.logged:
            log.error("%s-%d: %s", self.name, task, self._hide(line))
        if outcome.topics:
            self._on_topics(task, outcome.topics)
        self.supervision.succeeded(task)
        self._publish(task, Condition.RUNNING)

    def _failed(self, task: int, keys: tuple[Hashable, ...], failure: ShareFailure, outcome: Outcome | None) -> None:
        if outcome is not None:
            self.totals.add(outcome)
        now_s = self._loop.time()
        state = self.supervision.failed(task, keys, failure, now_s)
        delay_s = None if state.condition is Condition.FAILED else state.retry_s - now_s
        self._log_failure(f"task {task} failed", failure, None)
        self._publish(task, state.condition, self._trace(failure, state.failures, delay_s))

    def _publish_tasks(self) -> None:
        for number, state in self.supervision.tasks.items():
            if state.condition is Condition.RUNNING:
                self._publish(number, Condition.RUNNING)

    def _publish(self, task: int | None, condition: Condition, trace: str | None = None) -> None:
        report = StatusReport(task=task, condition=condition, trace=trace)
        if self._said.get(task) != report:
            self._said[task] = report
            self._on_status(report)

    def _log_failure(self, what: str, failure: ShareFailure, error: Exception | None) -> None:
        place = f" at {failure.place}" if failure.place else ""
        log.warning("%s: %s%s: %s", self.name, what, place, self._hide(failure.message))
        if error is not None:
            log.debug("%s: %s", self.name, self._hide(failure.trace))

    def _trace(self, failure: ShareFailure, attempts: int, delay_s: float | None) -> str:
        """The text of a status: what, where, what comes next, and the stack."""
        place = f" at {failure.place}" if failure.place else ""
        if delay_s is None:
            coming = "mend it, then restart: it is not tried again by itself"
        else:
            wall_s = self._services.environment.clock.wall_ms() // 1000 + round(delay_s)
            coming = f"attempt {attempts + 1} is at {_utc(wall_s)}"
        return self._hide(f"{failure.message}{place}; {coming}\n{failure.trace}".rstrip())

    def _hide(self, text: str) -> str:
        return without(self._settings.hidden, text)


def without(secrets: Iterable[str], text: str) -> str:
    """The text without these."""
    for secret in secrets:
        text = text.replace(secret, "[hidden]")
    return text


def _utc(wall_s: int) -> str:
    from datetime import UTC, datetime

    return datetime.fromtimestamp(wall_s, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def wanted_topics(settings: Mapping[str, str]) -> Callable[[str], bool]:
    """Which topics a sink reads."""
    pattern = settings.get("topics.regex", "").strip()
    if pattern:
        found = compiled(pattern)
        return lambda topic: found.fullmatch(topic) is not None
    named = {topic for topic in LIST.parse(settings.get("topics", "")) if topic}
    return lambda topic: topic in named


__all__ = ["ConfigError", "ConnectorRunner", "InvalidConfig", "RunnerSettings", "Services", "StatusReport", "Totals"]
