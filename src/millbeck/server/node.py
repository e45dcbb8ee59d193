"""One node: everything is made, joined and started here, and stopped in the reverse order. Nothing is decided here.

Start: lock and check the directories, lead the metadata quorum, open the logs the image names, bind the listeners,
register as a broker, and only then take requests. Stop: accept nothing more, answer what is open, let the coordinators
go, make everything durable, and leave the marker that saves the next start its recovery.
"""

from __future__ import annotations

import asyncio
import logging
import ssl
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from millbeck.controller.config_rules import OptionRules
from millbeck.controller.machine import Controller
from millbeck.controller.nodes import Registration
from millbeck.controller.options import ControllerOptions
from millbeck.kernel.environment import Environment
from millbeck.kernel.errors import InvalidConfig
from millbeck.kernel.metrics import Registry
from millbeck.metadata.delta import MetadataDelta
from millbeck.metadata.image import Endpoint, MetadataImage, ResourceType
from millbeck.replication.turn import Turn
from millbeck.security.authorizer import AllowAll
from millbeck.server.broker import Broker
from millbeck.server.config import NodeConfig, parse_ip_overrides
from millbeck.server.config_checks import ConfigChecks
from millbeck.server.deadlines import Deadlines
from millbeck.server.dispatch import Dispatcher
from millbeck.server.drivers.groups import GroupDriver
from millbeck.server.drivers.metadata_loading import open_metadata_log
from millbeck.server.drivers.metadata_snapshots import SnapshotOptions
from millbeck.server.drivers.quorum import MetadataLogFailed, QuorumDriver
from millbeck.server.formatting import check_formatted
from millbeck.server.handlers.api_versions import fallback, served_versions
from millbeck.server.internal_topics import OFFSETS_TOPIC, internal_topics
from millbeck.server.listener import ConnectionLimits, Listener, ListenerAddress
from millbeck.server.logs import Logs
from millbeck.server.loop_watch import LoopWatch
from millbeck.server.metrics import declare_metrics
from millbeck.server.metrics_endpoint import MetricsEndpoint
from millbeck.server.producer_ids import ProducerIds
from millbeck.server.receive import SharedBuffer
from millbeck.server.request_memory import RequestMemory
from millbeck.server.request_metrics import RequestMetrics
from millbeck.server.routes import ROUTES
from millbeck.server.tls import renew_certificate, server_context
from millbeck.storage.config import TOPIC_OPTIONS
from millbeck.storage.directory import LogDirectory
from millbeck.storage.file_cache import FileCache
from millbeck.storage.index_cache import IndexCache
from millbeck.storage.log import Log

SWEEP_SECONDS: Final = 5.0
FRAME_SECONDS_MAX: Final = 30.0
STALL_SECONDS_MAX: Final = 60.0
LARGE_CHANGE_PARTITIONS: Final = 200
DRAIN_SECONDS_MAX: Final = 5.0
SECURITY_PROTOCOL_NUMBERS: Final = {"PLAINTEXT": 0, "SSL": 1}

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeSettings:
    """What is about the process, not about the broker."""

    manages_memory: bool = False
    """Tune the garbage collector: right for a process of its own, wrong inside somebody else's."""
    checks_views: bool = False
    """Make a view that outlives its dispatch an error (tests)."""
    serves_metrics: bool = True
    is_alone: Callable[[], bool] | None = None
    """Whether what runs now is the only event of this turn of the loop, where the loop can tell (`host.loop`)."""


class Node:
    """Use `start`, then `stop`; ``failed`` is set when the node cannot go on."""

    def __init__(self, environment: Environment, config: NodeConfig, settings: NodeSettings | None = None) -> None:
        self.environment = environment
        self.config = config
        self.settings = settings or NodeSettings()
        self.node_id = config.node.node_id
        self.listeners: list[Listener] = []
        self._tls: dict[str, ssl.SSLContext] = {}
        self.metrics_port: int | None = None
        self.broker_epoch = -1
        self._loop = asyncio.get_running_loop()
        self.failed: asyncio.Future[BaseException] = self._loop.create_future()
        self._tasks: dict[asyncio.Task[None], None] = {}
        self._directories: list[LogDirectory] = []
        self.registry = Registry()
        self.deadlines = Deadlines(self._loop, self._report)
        self.watch = LoopWatch(self._loop, environment.clock, self.registry)
        self.cluster_id = check_formatted(environment, config)
        self.broker = Broker(
            environment,
            config,
            turn=Turn(self._loop.call_soon, self._report, self.settings.is_alone),
            deadlines=self.deadlines,
            authorizer=AllowAll(),
            node_id=self.node_id,
            cluster_id=self.cluster_id,
            spawn=self.spawn,
        )
        self._metrics = MetricsEndpoint(environment.network, self.render_metrics)

    # starting

    async def start(self) -> None:
        """Be ready for clients when this returns; whatever it raises, nothing is left running."""
        try:
            await self._start()
        except BaseException:
            await self._abandon()
            raise

    async def _start(self) -> None:
        broker = self.broker
        self.watch.start()
        self._open_directories()
        self._wire()
        broker.quorum.subscribe(self._publish)
        broker.logs.find_on_disk()
        await broker.quorum.start()
        broker.logs.set_strays_aside()
        await self._listen()
        await self._register()
        broker.logs.start_upkeep()
        if self.settings.serves_metrics:
            self.metrics_port = await self._metrics.start(self.config.metrics.host, self.config.metrics.port)
        self.spawn(self._sweep())
        if self.settings.manages_memory:
            self.watch.settle()
        for listener in self.listeners:
            listener.open()

    def _open_directories(self) -> None:
        files = self.environment.files
        # The other half is for connections, and for files that are opened just to be read or written once.
        cache = FileCache(files, max(1, min(self.config.open_files_max, files.open_files_limit() // 2)))
        index_cache = IndexCache()
        for path in dict.fromkeys([*self.config.directories, self.config.metadata_directory]):
            self._directories.append(
                LogDirectory(
                    files,
                    path,
                    cache=cache,
                    index_cache=index_cache,
                    jitter_below=self.environment.randomness.below,
                    on_failure=self._directory_failed,
                )
            )

    def _wire(self) -> None:
        broker, config = self.broker, self.config
        broker.quorum = QuorumDriver(
            self.environment,
            self._metadata_log(),
            node_id=self.node_id,
            voters=(self.node_id,),
            spawn=self.spawn,
            on_fatal=self._metadata_failed,
            snapshot_options=SnapshotOptions(
                after_bytes=config.metadata_log.snapshot_after_bytes, after_ms=config.metadata_log.snapshot_after_ms
            ),
        )
        defaults = config.option_set.default_texts()
        broker.controller = Controller(
            options=ControllerOptions(
                partition_count_default=config.topic_defaults.num_partitions,
                replication_factor_default=config.topic_defaults.default_replication_factor,
                delete_topics=config.topic_defaults.delete_topic_enable,
            ),
            rules=OptionRules(
                topic=TOPIC_OPTIONS,
                broker=config.option_set,
                group=config.group_option_set,
                static=config.texts,
                node_id=self.node_id,
                checks=(ConfigChecks(config.texts).check,),
            ),
            randomness=self.environment.randomness,
        )
        paths = set(config.directories)
        broker.logs = Logs(broker, [each for each in self._directories if each.path in paths], broker_defaults=defaults)
        broker.internal_topics = internal_topics(config)
        broker.groups = GroupDriver(
            self.environment,
            self.deadlines,
            classic=config.classic_groups,
            offsets=config.offsets,
            topic=config.offsets_topic,
            spawn=self.spawn,
            report=self._report,
        )
        broker.producer_ids = ProducerIds(self._allocate_producer_ids, self.spawn)
        broker.served = served_versions(ROUTES)
        requests = RequestMetrics(self.registry)
        self._dispatcher = Dispatcher(broker, ROUTES, requests.statistics, lambda: fallback(broker.served))
        declare_metrics(self)

    def _metadata_log(self) -> Log:
        directory = next(each for each in self._directories if each.path == self.config.metadata_directory)
        return open_metadata_log(
            directory, segment_bytes=self.config.metadata_log.segment_bytes, now_ms=self.environment.clock.wall_ms()
        )

    async def _publish(self, image: MetadataImage, delta: MetadataDelta) -> None:
        """A committed image reaches the node's parts, in the order in which they depend on each other."""
        deleted = [(topic.name, topic_id) for topic_id, topic in delta.topics.deleted.items()]
        gone = [topic for topic in delta.topics.deleted.values() if topic.name == OFFSETS_TOPIC]
        for topic in gone:
            for index in topic.partitions:
                self.broker.groups.partition_lost(index)
        placed = await self.broker.logs.apply(image, delta)
        offsets_topic = image.topics.named(OFFSETS_TOPIC)
        if offsets_topic is not None:
            self.broker.groups.partition_count = len(offsets_topic.partitions)
        for partition in placed:
            if partition.name.topic == OFFSETS_TOPIC:
                self.broker.groups.partition_led(partition)
        if len(placed) >= LARGE_CHANGE_PARTITIONS:
            self.watch.settle_again()
        if deleted:
            self.broker.groups.topics_deleted(deleted)
        if delta.configs.changed:
            self.config.apply_dynamic(image.configs.of_broker(self.node_id), image.configs.of_all_brokers())
            self._apply_limits()
            if any(resource.type == ResourceType.BROKER for resource in delta.configs.changed):
                self._renew_certificates()

    async def _listen(self) -> None:
        config = self.config
        shared = SharedBuffer(check_views=self.settings.checks_views)
        self._limits = ConnectionLimits(
            connections_max=config.socket.max_connections,
            connections_max_per_ip=config.socket.max_connections_per_ip,
            overrides_per_ip=parse_ip_overrides(config.socket.max_connections_per_ip_overrides),
        )
        per_ip: dict[str, int] = {}
        memory = RequestMemory(config.socket.queued_max_request_bytes)
        advertised = config.advertised()
        for address in config.client_addresses():
            listener = Listener(
                address,
                network=self.environment.network,
                turn=self.broker.turn,
                requests=self._dispatcher,
                now=self._loop.time,
                shared_buffer=shared,
                frame_bytes_max=config.socket.socket_request_max_bytes,
                limits=self._limits,
                per_ip=per_ip,
                memory=memory,
                tls=self._tls_of(address),
                send_buffer_bytes=config.socket.socket_send_buffer_bytes,
                receive_buffer_bytes=config.socket.socket_receive_buffer_bytes,
                backlog=config.socket.socket_listen_backlog_size,
            )
            listener.advertised = advertised.get(address.name)
            self.listeners.append(listener)
            await listener.start()

    def _tls_of(self, address: ListenerAddress) -> ssl.SSLContext | None:
        if address.protocol != "SSL":
            return None
        return self._tls.setdefault(address.name, server_context(self.config.ssl(address.name), address.name))

    async def _register(self) -> None:
        endpoints = []
        for listener in self.listeners:
            host, port = listener.advertised or (listener.address.host or "localhost", listener.port)
            protocol = SECURITY_PROTOCOL_NUMBERS[listener.address.protocol]
            endpoints.append(Endpoint(listener=listener.address.name, host=host, port=port, security_protocol=protocol))
        directories = [each.meta.directory_id for each in self.broker.logs.directories if each.meta is not None]
        registration = Registration(
            node_id=self.node_id,
            incarnation_id=self.environment.randomness.uuid(),
            endpoints=tuple(endpoints),
            rack=self.config.node.broker_rack or None,
            directories=tuple(sorted(directories)),
        )
        quorum, controller = self.broker.quorum, self.broker.controller
        epoch = await quorum.submit(lambda image: controller.register_broker(image, registration))
        self.broker_epoch = epoch
        await quorum.submit(lambda image: controller.unfence_broker(image, self.node_id, epoch))

    async def _allocate_producer_ids(self) -> Any:
        controller = self.broker.controller
        return await self.broker.quorum.submit(
            lambda image: controller.allocate_producer_ids(image, self.node_id, self.broker_epoch)
        )

    # running

    def spawn(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """Run a coroutine as one of the node's own tasks: kept until it ends, cancelled when the node stops."""
        task = self._loop.create_task(work)
        self._tasks[task] = None
        task.add_done_callback(self._task_done)
        return task

    def _task_done(self, task: asyncio.Task[None]) -> None:
        self._tasks.pop(task, None)
        if not task.cancelled() and (error := task.exception()) is not None:
            if isinstance(error, Exception):
                self._report(error)
            else:
                self._fail(error)

    async def _sweep(self) -> None:
        while True:
            await asyncio.sleep(SWEEP_SECONDS)
            for listener in self.listeners:
                listener.close_overdue(
                    idle_max=self.config.socket.connections_max_idle_ms / 1000,
                    frame_max=FRAME_SECONDS_MAX,
                    stall_max=STALL_SECONDS_MAX,
                )

    def render_metrics(self) -> str:
        self.registry.advance(int(self._loop.time() * 1000))
        return self.registry.render()

    def _apply_limits(self) -> None:
        if not self.listeners:
            return
        self._limits.connections_max = self.config.socket.max_connections
        self._limits.connections_max_per_ip = self.config.socket.max_connections_per_ip
        self._limits.overrides_per_ip = parse_ip_overrides(self.config.socket.max_connections_per_ip_overrides)

    def _renew_certificates(self) -> None:
        for name, context in self._tls.items():
            try:
                renew_certificate(context, self.config.ssl(name), name)
            except InvalidConfig as error:
                log.error("listener %s keeps the certificate it has: %s", name, error.message)

    def _report(self, error: Exception) -> None:
        self.broker.report(error)

    def _fail(self, error: BaseException) -> None:
        if not self.failed.done():
            self.failed.set_result(error)

    def _metadata_failed(self, error: MetadataLogFailed) -> None:
        log.critical("the node stops: %s", error)
        self._fail(error)

    def _directory_failed(self, reason: str) -> None:
        self.broker.logs.tell_of_offline_logs()
        if all(directory.offline_reason is not None for directory in self.broker.logs.directories):
            self._fail(OSError(f"every log directory has failed; the last: {reason}"))

    # stopping

    async def stop(self) -> None:
        """End cleanly: what was acknowledged is durable, and the next start need not recover."""
        for listener in self.listeners:
            listener.stop_accepting()
        for listener in self.listeners:
            listener.drain()
        deadline = self._loop.time() + DRAIN_SECONDS_MAX
        while any(listener.connections for listener in self.listeners) and self._loop.time() < deadline:
            await asyncio.sleep(0.01)
        for listener in self.listeners:
            listener.abort()
        self._metrics.stop()
        self.broker.groups.close()
        try:
            await self.broker.quorum.stop()
        except MetadataLogFailed as error:
            log.error("the metadata log is not closed cleanly: %s", error)
        await self.broker.logs.stop_flushing()
        await self._cancel_tasks()
        for directory in self._directories:
            await self.broker.in_thread(partial(directory.close, broker_epoch=self.broker_epoch))
        self._end()

    async def _abandon(self) -> None:
        """A start that failed: let go of what was taken, promise nothing."""
        for listener in self.listeners:
            listener.stop_accepting()
            listener.abort()
        self._metrics.stop()
        await self._cancel_tasks()
        for directory in self._directories:
            directory.abandon()
        self._end()

    async def _cancel_tasks(self) -> None:
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _end(self) -> None:
        self.watch.stop()
        self.deadlines.close()
