"""One node: its parts are made, joined and started here, and stopped in the reverse order. Nothing is decided here.

A node has the role broker (`broker_part`), controller (`controller_part`) or both; every node keeps the metadata log
and listens. Start: lock and check the directories, take part in the metadata quorum, open the logs the image names,
bind the listeners, join as a broker, and only then take requests. Stop: accept nothing more, answer what is open, let
the coordinators go, make everything durable, and leave the marker that saves the next start its recovery.
"""

from __future__ import annotations

import asyncio
import logging
import ssl
from collections.abc import Callable, Coroutine, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

from millbeck.kernel.environment import Environment
from millbeck.kernel.ids import ZERO_UUID, Uuid
from millbeck.kernel.metrics import Registry
from millbeck.metadata.delta import MetadataDelta
from millbeck.metadata.features import METADATA_VERSION, release_of
from millbeck.metadata.image import MetadataImage
from millbeck.replication.turn import Turn
from millbeck.security.authorizer import AllowAll
from millbeck.server.broker import Broker
from millbeck.server.broker_part import BrokerPart
from millbeck.server.channels import Channels
from millbeck.server.config import NodeConfig
from millbeck.server.controller_part import ControllerPart, make_controller
from millbeck.server.deadlines import Deadlines
from millbeck.server.dispatch import Dispatcher
from millbeck.server.drivers.metadata_loading import open_metadata_log
from millbeck.server.drivers.metadata_retention import MetadataRetention
from millbeck.server.drivers.metadata_snapshots import SnapshotOptions
from millbeck.server.drivers.quorum import MetadataLogFailed, QuorumDriver
from millbeck.server.formatting import METADATA_PARTITION, check_formatted
from millbeck.server.forwarding import Forwarder
from millbeck.server.handlers.api_versions import fallback, served_versions
from millbeck.server.inner_calls import InnerRequests
from millbeck.server.listener import Listener
from millbeck.server.listening import Audience, Listening
from millbeck.server.log_steps import sync_for_closing
from millbeck.server.loop_watch import LoopWatch
from millbeck.server.metrics import declare_metrics
from millbeck.server.metrics_endpoint import MetricsEndpoint
from millbeck.server.process_metrics import Numbers
from millbeck.server.quorum_config import is_alone, quorum_settings
from millbeck.server.request_metrics import RequestMetrics
from millbeck.server.routes import CONTROLLER_ROUTES, FORWARDED, ROUTES
from millbeck.server.tasks import Tasks
from millbeck.server.tls import peer_context
from millbeck.storage.directory import NO_BROKER_EPOCH, LogDirectory
from millbeck.storage.file_cache import FileCache
from millbeck.storage.index_cache import IndexCache
from millbeck.storage.log import Log
from millbeck.storage.lost_directory import LostDirectory
from millbeck.storage.segment import LOG_SUFFIX

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
    process_numbers: Numbers | None = None
    """What the operating system counts of the process, where it is the node's own (`host.process`)."""


class Node:
    """Use `start`, then `stop`; ``failed`` is set when the node cannot go on."""

    def __init__(self, environment: Environment, config: NodeConfig, settings: NodeSettings | None = None) -> None:
        self.environment = environment
        self.config = config
        self.settings = settings or NodeSettings()
        self.node_id = config.node.node_id
        self.metrics_port: int | None = None
        self._loop = asyncio.get_running_loop()
        self.failed: asyncio.Future[BaseException] = self._loop.create_future()
        self.tasks = Tasks(self._loop, report=self._report, fail=self._fail)
        self.directories: list[LogDirectory] = []
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
        self.listening = Listening(
            config,
            network=environment.network,
            turn=self.broker.turn,
            now=environment.clock.monotonic,
            checks_views=self.settings.checks_views,
        )
        self.broker_part: BrokerPart | None = None
        self.controller_part: ControllerPart | None = None
        self._metrics = MetricsEndpoint(environment.network, self.render_metric_parts)

    @property
    def listeners(self) -> list[Listener]:
        """Those for clients come first."""
        return self.listening.listeners

    @property
    def broker_epoch(self) -> int:
        return NO_BROKER_EPOCH if self.broker_part is None else self.broker_part.epoch

    @property
    def is_active_controller(self) -> bool:
        return self.controller_part is not None and self.broker.quorum.is_active

    # starting

    async def start(self) -> None:
        """Be ready for clients when this returns; whatever it raises, nothing is left running.

        A node may fail while it waits to be let in, and then there is nothing left to wait for.
        """
        starting = self._loop.create_task(self._start())
        try:
            awaited: list[asyncio.Future[Any]] = [starting, self.failed]
            await asyncio.wait(awaited, return_when=asyncio.FIRST_COMPLETED)
            if not starting.done():
                raise self.failed.result()
            await starting
        except GeneratorExit:
            # Nobody runs this any more, so nothing can be awaited.
            raise
        except BaseException:
            starting.cancel()
            await asyncio.gather(starting, return_exceptions=True)
            await self._abandon()
            raise

    async def _start(self) -> None:
        config, quorum_is_alone = self.config, is_alone(self.config)
        self.watch.start()
        self._open_directories()
        opened_s = self._loop.time()
        unclean = self._unclean_directories()
        await self.listening.start(self._audiences())
        client_names = [address.name for address in config.client_addresses()]
        controller_names = [address.name for address in config.controller_addresses()]
        self._wire(controller_names)
        if self.broker_part is not None:
            self.broker_part.find_logs()
        self.broker.quorum.subscribe(self._publish)
        if not quorum_is_alone:
            # The others cannot elect without it, nor can this one hear who leads.
            self.listening.open(controller_names)
        await self.broker.quorum.start()
        self.listening.open(controller_names)
        await self.broker.quorum.wait_caught_up()
        if self.controller_part is not None and controller_names:
            self.spawn(self.controller_part.join(self.listening.endpoints(controller_names)))
        if self.broker_part is not None:
            await self.broker_part.join(self.listening.endpoints(client_names))
        if self.settings.serves_metrics:
            self.metrics_port = await self._metrics.start(config.metrics.host, config.metrics.port)
        for directory in unclean:
            count, seconds = len(directory.logs), self._loop.time() - opened_s
            log.info("%s: %d logs are open after %.2f s", directory.path, count, seconds)
        self.spawn(self.listening.sweep())
        if self.settings.manages_memory:
            self.watch.settle()
        self.listening.open(client_names)

    def _open_directories(self) -> None:
        files = self.environment.files
        # The other half is for connections, and for files that are opened just to be read or written once.
        cache = FileCache(files, max(1, min(self.config.open_files_max, files.open_files_limit() // 2)))
        index_cache = IndexCache()
        for path in dict.fromkeys([*self.config.directories, self.config.metadata_directory]):
            try:
                directory = LogDirectory(
                    files,
                    path,
                    cache=cache,
                    index_cache=index_cache,
                    jitter_below=self.environment.randomness.below,
                    on_failure=self._directory_failed,
                )
            except OSError as error:
                if path == self.config.metadata_directory:
                    raise
                log.critical("log directory %s is offline: %s", path, error)
                directory = LostDirectory(path, str(error))
            self.directories.append(directory)

    def _unclean_directories(self) -> list[LogDirectory]:
        """Those whose logs have to be checked; a directory that never held any does not count."""
        unclean = []
        for directory in self.directories:
            found = [] if directory.had_clean_shutdown else directory.partitions()
            if found and not self._is_just_formatted(directory, len(found)):
                log.info("%s was not closed cleanly: its %d logs are checked", directory.path, len(found))
                unclean.append(directory)
        return unclean

    def _is_just_formatted(self, directory: LogDirectory, log_count: int) -> bool:
        """Whether the only log is the quorum's, with no more in it than the voters it is to begin with."""
        metadata_log = f"{directory.path}/{METADATA_PARTITION}"
        files = self.environment.files
        if log_count > 1 or not files.exists(metadata_log):
            return False
        return not any(name.endswith(LOG_SUFFIX) for name in files.names(metadata_log))

    def _wire(self, controller_names: list[str]) -> None:
        broker, config = self.broker, self.config
        tls = self._controllers_tls()
        broker.quorum = QuorumDriver(
            self.environment,
            self._metadata_log(),
            node_id=self.node_id,
            voters=(self.node_id,) if is_alone(config) else (),
            spawn=self.spawn,
            on_fatal=self._metadata_failed,
            snapshot_options=SnapshotOptions(
                after_bytes=config.metadata_log.snapshot_after_bytes,
                after_ms=config.metadata_log.snapshot_after_ms,
                retention=MetadataRetention(
                    size_bytes_max=config.metadata_log.retention_bytes, age_ms_max=config.metadata_log.retention_ms
                ),
            ),
            settings=quorum_settings(
                config,
                cluster_id=self.cluster_id,
                directory_id=self._metadata_directory_id(),
                endpoints=self.listening.endpoints(controller_names),
                tls=tls,
            ),
        )
        broker.controller = make_controller(broker)
        broker.inner_requests = InnerRequests(broker, CONTROLLER_ROUTES)
        broker.forwarded_apis = FORWARDED
        self.channels = Channels(broker, is_controller=config.is_controller, tls=tls)
        broker.forwarder = Forwarder(broker.quorum, self.channels.forwarding, is_controller=config.is_controller)
        if config.is_controller:
            self.controller_part = ControllerPart(broker, self.channels)
        if config.is_broker:
            self.broker_part = BrokerPart(
                broker,
                self.listening,
                self.directories,
                self.channels,
                settle_memory=self.watch.settle_again,
                fail=self._fail,
            )
        declare_metrics(self)

    def _controllers_tls(self) -> ssl.SSLContext | None:
        name, protocol = self.config.controllers_protocol()
        return peer_context(self.config.ssl(name)) if protocol == "SSL" else None

    def _metadata_directory(self) -> LogDirectory:
        return next(each for each in self.directories if each.path == self.config.metadata_directory)

    def _metadata_directory_id(self) -> Uuid:
        meta = self._metadata_directory().meta
        return ZERO_UUID if meta is None else meta.directory_id

    def _metadata_log(self) -> Log:
        return open_metadata_log(
            self._metadata_directory(),
            segment_bytes=self.config.metadata_log.segment_bytes,
            now_ms=self.environment.clock.wall_ms(),
        )

    def _audiences(self) -> list[Audience]:
        statistics = RequestMetrics(self.registry).statistics
        audiences = []
        for addresses, routes in (
            (self.config.client_addresses(), ROUTES),
            (self.config.controller_addresses(), CONTROLLER_ROUTES),
        ):
            if addresses:
                offered = routes
                if self.config.offers_unstable_versions:
                    offered = tuple(route.with_unstable_versions() for route in routes)
                served = served_versions(offered)
                audience = Audience(
                    addresses=tuple(addresses),
                    requests=Dispatcher(
                        self.broker,
                        offered,
                        statistics,
                        partial(fallback, served),
                        forwarded=FORWARDED if routes is ROUTES else frozenset(),
                    ),
                    served=served,
                    is_controllers=routes is CONTROLLER_ROUTES,
                )
                audiences.append(audience)
        return audiences

    async def _publish(self, image: MetadataImage, delta: MetadataDelta) -> None:
        """A committed image reaches the node's parts; one that has no logs sees it at once."""
        level, known = image.features.metadata_version, self.config.supported_features[METADATA_VERSION]
        if level > known.max_level:
            # It could not even read what the others write from now on.
            message = f"the cluster's metadata.version is {release_of(level)}, and this node knows up to "
            self._metadata_failed(MetadataLogFailed(message + release_of(known.max_level)))
            return
        if self.broker_part is not None:
            await self.broker_part.publish(image, delta)
        else:
            self.broker.image = image

    # running

    def spawn(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """Run a coroutine as one of the node's own tasks: kept until it ends, cancelled when the node stops."""
        return self.tasks.spawn(work)

    def render_metrics(self) -> str:
        return "".join(self.render_metric_parts())

    def render_metric_parts(self) -> Iterator[str]:
        self.registry.advance(int(self._loop.time() * 1000))
        return self.registry.render_parts()

    def _report(self, error: Exception) -> None:
        self.broker.report(error)

    def _fail(self, error: BaseException) -> None:
        if not self.failed.done():
            self.failed.set_result(error)

    def _metadata_failed(self, error: MetadataLogFailed) -> None:
        log.critical("the node stops: %s", error)
        self._fail(error)

    def _directory_failed(self, reason: str) -> None:
        if self.broker_part is not None and self.broker_part.directory_failed():
            self._fail(OSError(f"every log directory has failed; the last: {reason}"))

    # stopping

    async def stop(self) -> None:
        """End cleanly: what was acknowledged is durable, and the next start need not recover."""
        if self.broker_part is not None:
            await self.broker_part.leave()
        await self.listening.drain([address.name for address in self.config.client_addresses()])
        self._metrics.stop()
        if self.broker_part is not None:
            self.broker_part.let_go()
        try:
            await self.broker.quorum.stop()
        except MetadataLogFailed as error:
            log.error("the metadata log is not closed cleanly: %s", error)
        await self.listening.drain([address.name for address in self.config.controller_addresses()])
        self.channels.close()
        if self.broker_part is not None:
            await self.broker_part.stop()
        await self.tasks.cancel()
        logs = [each for directory in self.directories for each in directory.logs.values()]
        await sync_for_closing(logs, self.broker.in_thread)
        for directory in self.directories:
            await self.broker.in_thread(partial(directory.close, broker_epoch=self.broker_epoch))
        self._end()

    async def _abandon(self) -> None:
        """A start that failed: let go of what was taken, and promise nothing that was not promised before.

        A directory that was closed in good order is closed so again. Before it has registered a broker copies nothing
        and serves nobody, so what the process before said of its end still holds; else one that could not start would
        pass for one that may have lost records, and lose its place among those that could lead.
        """
        self.listening.abort()
        self._metrics.stop()
        await self.tasks.cancel()
        for directory in self.directories:
            if directory.had_clean_shutdown:
                # On the loop, which has nothing else left to do: whatever ran now could still write.
                epoch = directory.previous_broker_epoch if self.broker_epoch == NO_BROKER_EPOCH else self.broker_epoch
                directory.close(broker_epoch=epoch)
            else:
                directory.abandon()
        self._end()

    def _end(self) -> None:
        self.watch.stop()
        self.deadlines.close()
