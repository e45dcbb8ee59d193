"""A worker: the state of the cluster as its topics tell it, the connectors that it runs, and what requests ask for.

Requests and other workers change records; the worker follows the records and makes what it runs agree with them
(`_reconcile`). The leader also writes the tasks of connectors that have none yet. A standalone worker keeps
configurations and status in memory; sources' offsets are in the log in any case, with the records that they belong to.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final, TypeVar, TypeVarTuple

from millbeck.client.cluster import Cluster as LogCluster
from millbeck.client.producer.config import ProducerConfig
from millbeck.kernel.environment import Environment
from millbeck.kernel.errors import ApiError, InvalidConfig
from millbeck.kernel.ids import TopicPartition
from millbeck.kernel.option_kinds import ProvidedText
from millbeck.pipeline.connect.connectors.declared import (
    ConnectorClass,
    ConnectorKind,
    SettingProblem,
    connector_of,
)
from millbeck.pipeline.connect.connectors.interface import SinkConnector
from millbeck.pipeline.connect.errors import ConfigError
from millbeck.pipeline.connect.rest.answers import Decision, GroupOffset, RestError, bad_request
from millbeck.pipeline.connect.rest.herder import Cluster
from millbeck.pipeline.connect.rest.loggers import Loggers
from millbeck.pipeline.connect.state import configs as config_records
from millbeck.pipeline.connect.state import status as status_records
from millbeck.pipeline.connect.state.configs import (
    Change,
    ConfigEvent,
    RestartRequest,
    StateRecord,
    TargetState,
    TaskId,
)
from millbeck.pipeline.connect.state.status import State, Status, TopicUse
from millbeck.pipeline.connect.tasks.process import made_connector
from millbeck.pipeline.connect.tasks.work import TaskSettings
from millbeck.pipeline.connect.worker.assignment import WorkerMetadata
from millbeck.pipeline.connect.worker.config import Parsed
from millbeck.pipeline.connect.worker.engine import Engine
from millbeck.pipeline.connect.worker.group import WorkerGroup
from millbeck.pipeline.connect.worker.log_watch import LogWatch
from millbeck.pipeline.connect.worker.metrics import text_of
from millbeck.pipeline.connect.worker.runner import ConnectorRunner, RunnerSettings, Services, StatusReport, without
from millbeck.pipeline.connect.worker.state_log import StateLog, ensure_topic
from millbeck.pipeline.connect.worker.supervision import Condition
from millbeck.pipeline.connect.worker.transactions import write_offsets

log = logging.getLogger(__name__)

T = TypeVar("T")
Ts = TypeVarTuple("Ts")

CALLS_MAX: Final = 32
CHECK_SECONDS: Final = 20.0
_STOP_SECONDS: Final = 90.0
_JOIN_SECONDS: Final = 90.0
_RETRY_SECONDS: Final = 1.0
_STATES: Final = {
    Condition.RUNNING: State.RUNNING,
    Condition.WAITING: State.RESTARTING,
    Condition.FAILED: State.FAILED,
}
_PREFIXES: Final = ("producer.override.", "consumer.override.")

Resolve = Callable[[Mapping[str, str]], dict[str, str]]
"""Replaces variables of config providers; raises `InvalidConfig`."""


class Member:
    """One worker. `start` it inside a running event loop, and `close` it."""

    def __init__(
        self,
        environment: Environment,
        parsed: Parsed,
        engine: Engine,
        *,
        worker_id: str,
        is_standalone: bool,
        resolve: Resolve = dict,
    ) -> None:
        """``worker_id`` is the host and port where other workers and users reach this one."""
        self._environment = environment
        self._parsed = parsed
        self._config = parsed.config
        self._engine = engine
        self._worker_id = worker_id
        self._is_standalone = is_standalone
        self._resolve = resolve
        self.cluster = Cluster(converters=parsed.default_converters)
        self.runners: dict[str, ConnectorRunner] = {}
        self.cluster_id = ""
        self.loggers = Loggers(environment.clock.wall_ms)
        self._running_settings: dict[str, dict[str, str]] = {}
        self._stopping: dict[str, asyncio.Task[None]] = {}
        self._broken: dict[str, dict[str, str]] = {}
        """Connectors that cannot be started as they are, with the settings of which that is true."""
        self._group: WorkerGroup | None = None
        self._joined = asyncio.Event()
        self.failed: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        """Gets the error that ends the worker's membership in its group."""
        self._configuration_count = 0
        self._memory_offset = 0
        self._is_started = False
        self._is_closing = False
        self._wanted = asyncio.Event()
        self._settled = asyncio.Event()
        self._statuses: dict[str, StateRecord] = {}
        self._statuses_wanted = asyncio.Event()
        self._tasks: list[asyncio.Task[None]] = []
        self._is_exactly_once = parsed.config.exactly_once_sources == "enabled"
        self._calls = ThreadPoolExecutor(CALLS_MAX, thread_name_prefix="connector")

    # start and end

    async def start(self) -> None:
        """Read the state, and begin to run connectors. Raises `ApiError`, `InvalidConfig`, `TimeoutError`."""
        parsed, config, environment = self._parsed, self._config, self._environment
        client = dict(parsed.client)
        topics = [config.offset_topic]
        await ensure_topic(
            environment,
            client,
            config.offset_topic,
            partitions=config.offset_partitions,
            replication_factor=config.offset_replication,
        )
        if not self._is_standalone:
            topics += [config.config_topic, config.status_topic]
            await ensure_topic(
                environment,
                client,
                config.config_topic,
                partitions=1,
                replication_factor=config.config_replication,
                is_single=True,
            )
            await ensure_topic(
                environment,
                client,
                config.status_topic,
                partitions=config.status_partitions,
                replication_factor=config.status_replication,
            )
        self._producer_config = ProducerConfig.parse(client)
        self._log_cluster = LogCluster(environment, self._producer_config, creates_topics=True)
        self._state_log = StateLog(environment, client, topics, self._on_record)
        self._watch = LogWatch(
            environment,
            client,
            interval_s=config.turn_interval_ms / 1000,
            refresh_s=config.topic_refresh_ms / 1000,
        )
        self._services = Services(
            environment=environment,
            cluster=self._log_cluster,
            engine=self._engine,
            watch=self._watch,
            calls=self._calls,
            offsets=self.cluster.offsets,
            read_offsets=self._state_log.read_to_end,
            offsets_topic=config.offset_topic,
            group_id=config.group_id,
            on_fenced=self._on_fenced,
            is_exactly_once=self._is_exactly_once,
            retries=config.restart_policy == "backoff",
            delay_max_s=config.restart_delay_max_ms / 1000,
        )
        self.cluster_id = (await self._watch.admin.describe_cluster()).cluster_id or ""
        await self._state_log.start()
        self._watch.start()
        self._is_started = True
        self._tasks = [asyncio.create_task(self._keep_reconciled()), asyncio.create_task(self._write_statuses())]
        if not self._is_standalone:
            await self._join()
        self._wanted.set()

    async def _join(self) -> None:
        self._group = WorkerGroup(
            self._environment,
            self._parsed,
            info=self._info,
            connectors=lambda: list(self.cluster.configs.connectors),
            last_workers=self._last_workers,
            on_change=self._on_part,
        )
        self._group.start()
        self._tasks.append(asyncio.create_task(self._follow_group(self._group)))
        joined = asyncio.create_task(self._joined.wait())
        waits: set[asyncio.Future[Any]] = {joined, self.failed}
        await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED, timeout=_JOIN_SECONDS)
        joined.cancel()
        if self.failed.done():
            await self.failed
        if not self._joined.is_set():
            raise TimeoutError(f"group {self._config.group_id} has not admitted this worker in time")

    async def _follow_group(self, group: WorkerGroup) -> None:
        try:
            await group.wait_failed()
        except ApiError as error:
            if not self.failed.done():
                self.failed.set_exception(error)

    def _info(self) -> WorkerMetadata:
        part = None if self._group is None else self._group.part
        owned = (
            () if part is None else tuple(name for name in part.connectors if name in self.cluster.configs.connectors)
        )
        return WorkerMetadata(worker_id=self._worker_id, url=self.url, owned=owned)

    def _last_workers(self) -> dict[str, str]:
        return {
            name: status.worker_id
            for name, status in self.cluster.statuses.connectors.items()
            if status.state is not State.UNASSIGNED
        }

    def _on_fenced(self) -> None:
        if self._group is not None:
            self._group.check()

    def _on_part(self) -> None:
        if self._group is not None and self._group.part is not None:
            self._joined.set()
        self._want()

    @property
    def url(self) -> str:
        return f"http://{self._worker_id}/"

    def elsewhere(self, decision: Decision) -> str | None:
        """The address of the worker that has to do this; None for this one. Raises `RestError` while nobody knows."""
        if self._is_standalone:
            return None
        part = None if self._group is None else self._group.part
        name = decision.connector or ("" if decision.restarted_task is None else decision.restarted_task.connector)
        if not decision.configs and not name:
            return None
        if part is None:
            raise RestError(
                409,
                "Cannot complete request momentarily due to no known leader URL, likely because a rebalance was"
                " underway.",
            )
        if decision.configs:
            return None if part.is_leader else part.leader_url
        url = part.owners.get(name)
        return None if url is None or url == self.url else url

    async def close(self) -> None:
        """Stop all connectors, and say so."""
        self._is_closing = True
        for task in self._tasks[:1]:
            task.cancel()
            await asyncio.wait([task])
        if self._is_started:
            owned = [name for name in self.cluster.configs.connectors if self._owns(name)]
            await asyncio.gather(*(self._stop_runner(name) for name in list(self.runners)))
            for name in owned:
                self._publish_all(name, State.UNASSIGNED)
            try:
                await self._flush_statuses()
            except (ApiError, TimeoutError) as error:
                log.warning("the last status is not written: %s", error)
            if self._group is not None:
                await self._group.close()
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks)
        await self._engine.close()
        if self._is_started:
            await self._watch.close()
            await self._state_log.close()
            await self._log_cluster.close()
        self._calls.shutdown(wait=False, cancel_futures=True)

    # records of the state topics

    def _on_record(self, topic: str, offset: int, key: bytes | None, value: bytes | None) -> None:
        config = self._config
        if topic == config.offset_topic:
            if not self.cluster.offsets.replay(key, value):
                log.warning("%s: the record at offset %d is not an offset, and left out", topic, offset)
        elif topic == config.config_topic:
            self._on_config(offset, _text(key), value)
        elif not self.cluster.statuses.replay(_text(key), value):
            log.warning("%s: the record at offset %d is not a status, and left out", topic, offset)

    def _on_config(self, offset: int, key: str | None, value: bytes | None) -> None:
        event = self.cluster.configs.replay(offset, key, value)
        if event.change is Change.UNREADABLE:
            log.warning("%s: the record at offset %d is left out: %s", self._config.config_topic, offset, key)
        if not self._is_started:
            return
        if event.change is Change.RESTART:
            self._on_restart(event)
        elif event.change is Change.LOGGER:
            self.loggers.apply(event.name, event.detail)
        if event.change in (Change.CONNECTOR_SET, Change.CONNECTOR_REMOVED):
            self._broken.pop(event.name, None)
        if event.change is not Change.NOTHING:
            self._want()
            if self._group is not None:
                self._group.look()

    def _want(self) -> None:
        self._settled.clear()
        self._wanted.set()

    def _on_restart(self, event: ConfigEvent) -> None:
        request: RestartRequest = event.detail
        statuses = self.cluster.statuses
        self._broken.pop(request.connector, None)
        runner = self.runners.get(request.connector)
        if runner is None:
            return
        connector = statuses.connectors.get(request.connector)
        wants_connector = not request.only_failed or (connector is not None and connector.state is not State.RUNNING)
        tasks = [
            number
            for number, status in statuses.tasks_of(request.connector).items()
            if request.include_tasks and (not request.only_failed or status.state in (State.FAILED, State.RESTARTING))
        ]
        runner.restart(connector=wants_connector, tasks=tasks)

    # what runs

    def _owns(self, name: str) -> bool:
        part = None if self._group is None else self._group.part
        return self._is_standalone or (part is not None and name in part.connectors)

    @property
    def _is_leader(self) -> bool:
        part = None if self._group is None else self._group.part
        return self._is_standalone or (part is not None and part.is_leader)

    @property
    def _generation(self) -> int:
        return 0 if self._group is None else self._group.generation

    async def _keep_reconciled(self) -> None:
        while True:
            await self._wanted.wait()
            self._wanted.clear()
            try:
                await self._reconcile()
                if not self._wanted.is_set():
                    self._settled.set()
            except (ApiError, TimeoutError) as error:
                log.warning("connectors are looked at again soon: %s", error)
                await asyncio.sleep(_RETRY_SECONDS)
                self._wanted.set()

    async def _reconcile(self) -> None:
        configs = self.cluster.configs
        for name in [*self.runners]:
            wanted = configs.connectors.get(name)
            is_running = configs.target_states.get(name) is TargetState.STARTED and self._owns(name)
            if wanted is None or not is_running or wanted != self._running_settings.get(name):
                self._begin_stopping(name)
        for name in [name for name in self.cluster.statuses.connectors if name not in configs.connectors]:
            if self._is_leader and name not in self.runners:
                self._forget_status(name)
        if self._is_leader:
            for name, settings in list(configs.connectors.items()):
                if configs.target_states[name] is TargetState.STARTED:
                    await self._make_tasks(name, dict(settings))
        for name, settings in list(configs.connectors.items()):
            if not self._owns(name) or name in self._stopping or name in self.runners:
                continue
            await self._reconcile_one(name, dict(settings), configs.target_states[name])

    async def _reconcile_one(self, name: str, settings: dict[str, str], target: TargetState) -> None:
        if target is TargetState.STOPPED:
            self._publish_connector(name, State.STOPPED)
            self._forget_tasks(name, 0)
            return
        if target is TargetState.PAUSED:
            self._publish_all(name, State.PAUSED)
            return
        if self._broken.get(name) == settings:
            return
        try:
            runner = self._runner_settings(name, settings)
        except (InvalidConfig, ConfigError) as error:
            self._broken[name] = settings
            log.warning("%s cannot run: %s", name, error)
            self._publish_connector(name, State.FAILED, f"{type(error).__name__}: {error}")
            return
        if self._lacks_tasks(name, settings, runner.task.tasks_max):
            # The leader writes them.
            return
        self._forget_tasks(name, runner.task.tasks_max)
        self._running_settings[name] = settings
        self.runners[name] = ConnectorRunner(
            self._services,
            runner,
            on_status=lambda report: self._on_status(name, runner.known, report),
            on_topics=lambda task, topics: self._on_topics(name, task, topics),
        )

    def _lacks_tasks(self, name: str, settings: dict[str, str], count: int) -> bool:
        configs = self.cluster.configs
        return configs.applied.get(name) != settings or len(configs.tasks_of(name)) != count

    async def _make_tasks(self, name: str, settings: dict[str, str]) -> None:
        """As the leader, write the tasks of a connector if it has none of this configuration."""
        try:
            runner = self._runner_settings(name, settings)
        except (InvalidConfig, ConfigError):
            # The worker that has the connector says so.
            return
        known, count = runner.known, runner.task.tasks_max
        if not self._lacks_tasks(name, settings, count):
            return
        task_class = known.name.removesuffix("Connector") + "Task"
        tasks = [{**settings, "task.class": task_class} for _ in range(count)]
        records = config_records.task_records(name, tasks)
        if known.kind is ConnectorKind.SOURCE and self._services.is_exactly_once:
            records.append(config_records.fencing_record(name, count))
        await self._append_configs(records)

    def _runner_settings(self, name: str, settings: dict[str, str]) -> RunnerSettings:
        """Raises `ConfigError` for a class that is not known here, `InvalidConfig` for a variable without a value."""
        class_name = settings.get("connector.class")
        if class_name is None:
            raise ConfigError("Connector config contains no connector type: set connector.class")
        known = connector_of(class_name.strip())
        resolved = self._resolve(settings)
        hidden = tuple(text for text in resolved.values() if isinstance(text, ProvidedText) and len(text) > 3)
        own = {
            prefix: {key.removeprefix(prefix): text for key, text in resolved.items() if key.startswith(prefix)}
            for prefix in _PREFIXES
        }
        try:
            tasks_max = 1 if known.is_single else int(resolved.get("tasks.max", "1"))
        except ValueError:
            raise ConfigError.of("tasks.max", resolved["tasks.max"], "Not a number of type INT") from None
        if tasks_max < 1:
            raise ConfigError.of("tasks.max", tasks_max, "Value must be at least 1")
        wanted = resolved.get("exactly.once.support", "").strip().lower()
        if known.kind is ConnectorKind.SOURCE and wanted == "required" and not self._is_exactly_once:
            raise ConfigError(
                "exactly.once.support: required is not possible on this worker: set exactly.once.source.support=enabled"
            )
        self._configuration_count += 1
        task = TaskSettings(
            name=name,
            class_name=known.name,
            implementation=known.implementation,
            settings={key: str(text) for key, text in resolved.items()},
            converters=dict(self._parsed.converters),
            tasks_max=tasks_max,
            client=dict(self._parsed.client),
            producer={**self._parsed.producer, **own["producer.override."]},
            consumer={**self._parsed.consumer, **own["consumer.override."]},
            creates_topics=self._config.creates_topics,
            generation=self._configuration_count,
        )
        fences = self.cluster.configs.fencing_counts.get(name, 0)
        return RunnerSettings(task=task, known=known, fences=fences, hidden=hidden)

    def _begin_stopping(self, name: str) -> None:
        if name not in self._stopping:
            self._stopping[name] = asyncio.create_task(self._stop_runner(name))

    async def _stop_runner(self, name: str) -> None:
        runner = self.runners.get(name)
        try:
            if runner is not None:
                await runner.stop(self._config.shutdown_timeout_ms / 1000)
        finally:
            self.runners.pop(name, None)
            self._running_settings.pop(name, None)
            self._stopping.pop(name, None)
            self._want()

    # status

    def _on_status(self, name: str, known: ConnectorClass, report: StatusReport) -> None:
        state = _STATES[report.condition]
        if report.task is None:
            self._publish_connector(name, state, report.trace)
        else:
            self._publish(
                status_records.task_record, TaskId(name, report.task), self._status(state, known, report.trace)
            )

    def _publish_connector(self, name: str, state: State, trace: str | None = None) -> None:
        known = self._known(name)
        status = self._status(state, known, trace)
        before = self.cluster.statuses.connectors.get(name)
        if before != status:
            self._publish(status_records.connector_record, name, status)

    def _publish_all(self, name: str, state: State) -> None:
        self._publish_connector(name, state)
        status = self._status(state, self._known(name), None)
        for task in self.cluster.configs.tasks_of(name):
            if self.cluster.statuses.tasks.get(task) != status:
                self._publish(status_records.task_record, task, status)

    def _known(self, name: str) -> ConnectorClass | None:
        try:
            return connector_of(self.cluster.configs.connectors.get(name, {}).get("connector.class", ""))
        except ConfigError:
            return None

    def _status(self, state: State, known: ConnectorClass | None, trace: str | None) -> Status:
        return Status(
            state=state,
            worker_id=self._worker_id,
            generation=self._generation,
            trace=trace,
            version=None if known is None else known.version,
        )

    def _forget_status(self, name: str) -> None:
        self._publish(status_records.connector_record, name, None)
        self._forget_tasks(name, 0)
        for topic in self.cluster.statuses.topics.get(name, {}):
            self._put_status(status_records.forgotten_topic_record(topic, name))

    def _forget_tasks(self, name: str, count: int) -> None:
        for number in self.cluster.statuses.tasks_of(name):
            if number >= count:
                self._publish(status_records.task_record, TaskId(name, number), None)

    def _publish(self, record: Callable[[Any, Status | None], StateRecord], what: Any, status: Status | None) -> None:
        self._put_status(record(what, status))

    def _on_topics(self, name: str, task: int, topics: tuple[str, ...]) -> None:
        known = self.cluster.statuses.topics.get(name, {})
        for topic in topics:
            if topic not in known:
                use = TopicUse(topic, name, task, self._environment.clock.wall_ms())
                self._put_status(status_records.topic_record(use))

    def _put_status(self, record: StateRecord) -> None:
        """Write a record soon; only the last one of a key is of interest."""
        if self._is_standalone:
            self.cluster.statuses.replay(record.key, record.value)
            return
        self._statuses.pop(record.key, None)
        self._statuses[record.key] = record
        self._statuses_wanted.set()

    async def _write_statuses(self) -> None:
        while True:
            await self._statuses_wanted.wait()
            self._statuses_wanted.clear()
            try:
                await self._flush_statuses()
            except (ApiError, TimeoutError) as error:
                log.warning("the status of connectors is not written, and tried again: %s", error)
                await asyncio.sleep(_RETRY_SECONDS)
                self._statuses_wanted.set()

    async def _flush_statuses(self) -> None:
        written = dict(self._statuses)
        if written:
            await self._append(self._config.status_topic, list(written.values()))
        for key, record in written.items():
            if self._statuses.get(key) is record:
                del self._statuses[key]

    # writing

    async def _append_configs(self, records: Sequence[StateRecord]) -> None:
        if not self._is_standalone:
            await self._append(self._config.config_topic, records)
            return
        for record in records:
            self._memory_offset += 1
            self._on_config(self._memory_offset, record.key, record.value)

    async def _append(self, topic: str, records: Sequence[StateRecord]) -> None:
        await self._state_log.append(topic, [(record.key.encode(), record.value) for record in records])

    # requests

    async def perform(self, decision: Decision) -> None:
        """Do what an answer depends on. Raises `RestError`."""
        try:
            await self._check(decision)
            if decision.configs:
                await self._append_configs(decision.configs)
            for record in decision.statuses:
                self._put_status(record)
            if decision.connector:
                await self._until_stopped(decision.connector)
            if decision.source_offsets:
                await write_offsets(
                    self._environment,
                    self._log_cluster,
                    self._producer_config,
                    self._config.offset_topic,
                    decision.source_offsets,
                    None,
                )
                await self._state_log.read_to_end()
            if decision.group is not None and decision.group_offsets is not None:
                await self._alter_group(decision.connector, decision.group, decision.group_offsets)
            if decision.restarted_task is not None:
                self._restart_task(decision.restarted_task)
        except (ApiError, TimeoutError) as error:
            raise RestError(500, f"the brokers refuse or do not answer: {error}") from error

    def metrics(self) -> str:
        """The metrics, in Prometheus' format."""
        return text_of(
            self.cluster,
            {name: runner.totals for name, runner in self.runners.items()},
            owned=[name for name in self.cluster.configs.connectors if self._owns(name)],
            is_rebalancing=not self._is_standalone and (self._group is None or self._group.part is None),
            job_count=self._engine.job_count,
            gauges={name: runner.gauges for name, runner in self.runners.items()},
        )

    async def committed(self, group: str) -> Iterable[GroupOffset]:
        try:
            found = await self._watch.committed(group)
        except (ApiError, TimeoutError) as error:
            raise RestError(500, f"the offsets of group {group} are not known: {error}") from error
        return [GroupOffset(partition.topic, partition.partition, offset) for partition, offset in found.items()]

    def _restart_task(self, task: TaskId) -> None:
        runner = self.runners.get(task.connector)
        if runner is not None:
            runner.restart(connector=False, tasks=[task.task])

    async def _check(self, decision: Decision) -> None:
        """Ask a connector of a new configuration what is wrong with it in the other system."""
        for record in decision.configs:
            name = record.key.removeprefix(config_records.CONNECTOR)
            if not record.key.startswith(config_records.CONNECTOR) or record.value is None:
                continue
            settings = config_records.settings_of(record.value)
            problems = await self.problems({"name": name, **settings})
            if problems:
                listed = "\n".join(
                    f"Invalid value {settings.get(setting)} for configuration {setting}: {problem}"
                    for setting, problem in problems
                )
                raise bad_request(
                    f"Connector configuration is invalid and contains the following {len(problems)} error(s):\n{listed}"
                )

    async def problems(self, settings: Mapping[str, str]) -> list[SettingProblem]:
        """What a connector says is wrong with its settings in the other system."""
        name = settings.get("name", "")
        hidden: tuple[str, ...] = ()
        try:
            runner = self._runner_settings(name, dict(settings))
            hidden = runner.hidden
            connector = made_connector(runner.task)
            async with asyncio.timeout(CHECK_SECONDS):
                found = await self._call(lambda: list(connector.check()))
        except TimeoutError:
            return []
        except (ConfigError, InvalidConfig) as error:
            found = [SettingProblem("connector.class", str(error))]
        except Exception as error:
            log.info("%s: its settings could not be checked: %s", name, without(hidden, str(error)))
            return []
        return [SettingProblem(setting, without(hidden, problem)) for setting, problem in found]

    async def _call(self, function: Callable[[*Ts], T], *arguments: *Ts) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._calls, function, *arguments)

    async def _until_stopped(self, name: str) -> None:
        async with asyncio.timeout(_STOP_SECONDS):
            while name in self.runners or name in self._stopping:
                await asyncio.sleep(0.05)

    async def _alter_group(self, name: str, group: str, changes: Sequence[GroupOffset]) -> None:
        committed = await self._watch.committed(group)
        positions: dict[TopicPartition, int | None] = {
            TopicPartition(topic, number): offset for topic, number, offset in changes
        }
        if not changes:
            positions = dict.fromkeys(committed, None)
        await self._alter_target(name, positions)
        moved = {partition: offset for partition, offset in positions.items() if offset is not None}
        reset = [partition for partition, offset in positions.items() if offset is None and partition in committed]
        if moved:
            await self._watch.commit(group, moved)
        if reset:
            done = await self._watch.admin.delete_group_offsets(group, reset)
            for error in done.failed.values():
                raise error

    async def _alter_target(self, name: str, positions: Mapping[TopicPartition, int | None]) -> None:
        """Let a sink that keeps positions in its target follow."""
        try:
            task = self._runner_settings(name, dict(self.cluster.configs.connectors[name])).task
            connector = made_connector(task)
            if isinstance(connector, SinkConnector):
                await self._call(connector.alter_positions, positions)
        except (ConfigError, InvalidConfig) as error:
            raise bad_request(str(error)) from None
        except Exception as error:
            raise RestError(500, f"the positions in the target could not be altered: {error}") from error


def _text(key: bytes | None) -> str | None:
    return None if key is None else key.decode("utf-8", "replace")
