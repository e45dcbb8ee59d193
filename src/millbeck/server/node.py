"""A node: create, wire and start its components, and stop them in reverse order. It contains no other logic.

A node has the broker role (`BrokerRole`), the controller role (`ControllerRole`) or both; every node has the metadata
log and listeners. Start: lock and check the directories, bind the listeners, join the metadata quorum, open the logs in
the metadata image, register the broker, and only then accept client requests. Stop: accept no more requests, complete
the pending ones, close the coordinators, flush the logs, and write the clean-shutdown marker, with which the next start
needs no log recovery.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Collection, Coroutine, Iterator
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from millbeck.kernel.environment import Environment
from millbeck.kernel.event_batch import EventBatch
from millbeck.kernel.ids import ZERO_UUID, Uuid
from millbeck.kernel.metrics import Registry
from millbeck.metadata.delta import MetadataDelta
from millbeck.metadata.features import METADATA_VERSION, release_name
from millbeck.metadata.image import MetadataImage
from millbeck.security.authorizer import AllowAll, Authorizer, GuardedAuthorizer
from millbeck.security.principal_builder import GuardedPrincipalBuilder
from millbeck.security.standard_authorizer import StandardAuthorizer
from millbeck.server.audit.node_audit import connect_audit, make_audit
from millbeck.server.broker import Broker
from millbeck.server.broker_role import BrokerRole
from millbeck.server.config import NodeConfig
from millbeck.server.config.addresses import ListenerAddress
from millbeck.server.config.sections.security import STANDARD_AUTHORIZERS, AuthorizerOptions
from millbeck.server.controller_role import ControllerRole, make_controller
from millbeck.server.local.formatting import METADATA_PARTITION, check_formatted
from millbeck.server.loop.deadlines import Deadlines
from millbeck.server.loop.monitor import EventLoopMonitor
from millbeck.server.loop.tasks import TaskSupervisor
from millbeck.server.metadata.acl_publisher import AclPublisher
from millbeck.server.metadata.channels import ControllerChannels
from millbeck.server.metadata.loading import open_metadata_log
from millbeck.server.metadata.quorum_config import is_alone, quorum_settings
from millbeck.server.metadata.quorum_driver import MetadataLogFailed, QuorumDriver
from millbeck.server.metadata.retention import MetadataRetention
from millbeck.server.metadata.snapshots import SnapshotOptions
from millbeck.server.metrics.endpoint import MetricsEndpoint
from millbeck.server.metrics.node_metrics import declare_metrics
from millbeck.server.metrics.process import Numbers
from millbeck.server.network.connection import ListenerAuthentication
from millbeck.server.network.inner_calls import LocalRequests
from millbeck.server.network.listener import Listener
from millbeck.server.network.listeners import ListenerGroup, Listeners
from millbeck.server.network.node_tls import NodeTls
from millbeck.server.network.open_files import OpenFiles
from millbeck.server.network.peer_security import NodePeers
from millbeck.server.network.request_metrics import RequestMetrics
from millbeck.server.replicas.log_steps import sync_for_closing
from millbeck.server.requests.dispatch import Dispatcher
from millbeck.server.requests.forwarding import Forwarder
from millbeck.server.requests.handlers.api_versions import fallback, served_versions
from millbeck.server.requests.routes import CONTROLLER_ROUTES, FORWARDED, ROUTES
from millbeck.server.seams import load_seam
from millbeck.storage.directory import NO_BROKER_EPOCH, LogDirectory
from millbeck.storage.file_cache import FileCache
from millbeck.storage.index_cache import IndexCache
from millbeck.storage.log import Log
from millbeck.storage.lost_directory import OfflineLogDirectory
from millbeck.storage.segment import LOG_SUFFIX

if TYPE_CHECKING:
    from millbeck.server.requests.authentication import AuthenticationWork

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeSettings:
    """Settings of the process rather than of the broker."""

    manages_memory: bool = False
    """Tune the garbage collector; only when the node has a process of its own, not when it is embedded."""
    checks_views: bool = False
    """Raise an error when a view of a request buffer is used after its dispatch (tests)."""
    serves_metrics: bool = True
    is_alone: Callable[[], bool] | None = None
    """Whether the current event is the only one in this event loop iteration, if the loop can tell (`host.loop`)."""
    process_numbers: Numbers | None = None
    """Operating system statistics of the process, if it is the node's own (`host.process`)."""
    give_back_memory: Callable[[], None] | None = None
    """Returns freed memory to the system, on a thread, if the process is the node's own (`host.memory`)."""


def make_authorizer(config: NodeConfig) -> Authorizer:
    """The authorizer of the node's configuration, without ACLs yet."""
    options = config.authorizer
    name = options.authorizer_class_name
    if not name:
        return AllowAll()
    if name not in STANDARD_AUTHORIZERS:
        setting = AuthorizerOptions.authorizer_class_name.name
        return GuardedAuthorizer(load_seam("millbeck.authorizer", setting, name, config.texts, method="authorize"))
    return StandardAuthorizer(config.super_users, allow_everyone_if_no_acl_found=options.allow_everyone_if_no_acl_found)


def make_principal_builder(broker: Broker, listener: str) -> GuardedPrincipalBuilder | None:
    """The principal builder of a listener's clients; None for Kafka's default. Raises `InvalidConfig`."""
    named = broker.config.principal_builder(listener)
    if named is None:
        return None
    setting, name = named
    builder = load_seam("millbeck.principal_builder", setting, name, broker.config.texts, method="build")
    return GuardedPrincipalBuilder(builder, partial(broker.seam_failed, setting))


class Node:
    """A node; call `start`, then `stop`. ``failed`` is set when the node cannot continue."""

    def __init__(self, environment: Environment, config: NodeConfig, settings: NodeSettings | None = None) -> None:
        self.environment = environment
        self.config = config
        self.settings = settings or NodeSettings()
        self.node_id = config.node.node_id
        self.metrics_port: int | None = None
        self._loop = asyncio.get_running_loop()
        self.failed: asyncio.Future[BaseException] = self._loop.create_future()
        self.tasks = TaskSupervisor(self._loop, report=self._report, fail=self._fail)
        self.directories: list[LogDirectory] = []
        self.registry = Registry()
        self.deadlines = Deadlines(self._loop, self._report)
        self.watch = EventLoopMonitor(self._loop, environment.clock, self.registry)
        self.cluster_id = check_formatted(environment, config)
        self.broker = Broker(
            environment,
            config,
            turn=EventBatch(self._loop.call_soon, self._report, self.settings.is_alone),
            deadlines=self.deadlines,
            authorizer=make_authorizer(config),
            node_id=self.node_id,
            cluster_id=self.cluster_id,
            spawn=self.spawn,
        )
        authorizer = self.broker.authorizer
        if isinstance(authorizer, GuardedAuthorizer):
            setting = AuthorizerOptions.authorizer_class_name.name
            authorizer.on_failure = partial(self.broker.seam_failed, setting)
        self.broker.tls = NodeTls(config, environment)
        self.broker.security = NodePeers(environment, config, self.broker.tls)
        self._open_files = OpenFiles.shared_out(environment.files.open_files_limit(), config.open_files_max)
        self.listening = Listeners(
            config,
            self.broker.tls,
            network=environment.network,
            turn=self.broker.turn,
            now=environment.clock.monotonic,
            checks_views=self.settings.checks_views,
            principals=partial(make_principal_builder, self.broker),
            connections_possible=self._open_files.connections,
        )
        self.authentication_work: AuthenticationWork | None = None
        authorizer = self.broker.authorizer
        self.audit = make_audit(self.broker)
        self.acls = (
            AclPublisher(
                authorizer, environment.clock, permissions_changed=self.broker.fetch_sessions.permissions_changed
            )
            if isinstance(authorizer, StandardAuthorizer)
            else None
        )
        self.broker_part: BrokerRole | None = None
        self.controller_part: ControllerRole | None = None
        self._metrics = MetricsEndpoint(environment.network, self.render_metric_parts)

    @property
    def listeners(self) -> list[Listener]:
        """All listeners, those for clients first."""
        return self.listening.listeners

    @property
    def broker_epoch(self) -> int:
        return NO_BROKER_EPOCH if self.broker_part is None else self.broker_part.epoch

    @property
    def is_active_controller(self) -> bool:
        return self.controller_part is not None and self.broker.quorum.is_active

    # starting

    async def start(self) -> None:
        """Start the node; it is ready for clients when this returns. On any exception nothing is left running.

        A node may fail while it waits to be unfenced; the start then fails with the same error.
        """
        starting = self._loop.create_task(self._start())
        try:
            awaited: list[asyncio.Future[Any]] = [starting, self.failed]
            await asyncio.wait(awaited, return_when=asyncio.FIRST_COMPLETED)
            if not starting.done():
                raise self.failed.result()
            await starting
        except GeneratorExit:
            # The coroutine is being closed, so nothing can be awaited.
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
        await self.listening.start(self._listener_groups())
        client_names = [address.name for address in config.client_addresses()]
        controller_names = [address.name for address in config.controller_addresses()]
        self._wire(controller_names)
        if self.broker_part is not None:
            self.broker_part.load_logs()
        self.broker.quorum.subscribe(self._publish)
        authorizer = self.broker.authorizer
        early_names = controller_names
        if isinstance(authorizer, StandardAuthorizer):
            early_names = [name for name in controller_names if name in config.early_listeners]
        if not quorum_is_alone:
            # The other voters need this one for an election, and this one must learn who is the leader.
            self.listening.open(early_names)
        await self.broker.quorum.start()
        self.listening.open(early_names)
        await self.broker.quorum.wait_caught_up()
        if isinstance(authorizer, StandardAuthorizer):
            authorizer.loaded()
        self.listening.open(controller_names)
        if self.controller_part is not None and controller_names:
            self.spawn(self.controller_part.join(self.listening.endpoints(controller_names)))
        if self.broker_part is not None:
            await self.broker_part.join(self.listening.endpoints(client_names))
        if self.settings.serves_metrics:
            self.metrics_port = await self._metrics.start(config.metrics.host, config.metrics.port)
        for directory in unclean:
            count, seconds = len(directory.logs), self._loop.time() - opened_s
            log.info("%s: opened %d logs in %.2f s", directory.path, count, seconds)
        self.spawn(self.listening.sweep())
        if self.settings.manages_memory:
            job = self.settings.give_back_memory
            self.watch.freeze_loaded_objects(None if job is None else lambda: self.spawn(self.broker.in_thread(job)))
        if self.broker.tls.is_used:
            await self.broker.tls.reload_if_wanted()
            self.spawn(self.broker.tls.watch())
        if self.audit is not None:
            self.audit.start(self.spawn)
        self.listening.open(client_names)

    def _open_directories(self) -> None:
        files = self.environment.files
        cache = FileCache(files, self._open_files.logs)
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
                directory = OfflineLogDirectory(path, str(error))
            self.directories.append(directory)

    def _unclean_directories(self) -> list[LogDirectory]:
        """The directories whose logs need recovery; a directory that never had logs does not count."""
        unclean = []
        for directory in self.directories:
            found = [] if directory.had_clean_shutdown else directory.partitions()
            if found and not self._is_just_formatted(directory, len(found)):
                log.info("%s was not closed cleanly: recovering its %d logs", directory.path, len(found))
                unclean.append(directory)
        return unclean

    def _is_just_formatted(self, directory: LogDirectory, log_count: int) -> bool:
        """Whether the only log is the metadata log as formatting wrote it, with only the initial voters."""
        metadata_log = f"{directory.path}/{METADATA_PARTITION}"
        files = self.environment.files
        if log_count > 1 or not files.exists(metadata_log):
            return False
        return not any(name.endswith(LOG_SUFFIX) for name in files.names(metadata_log))

    def _wire(self, controller_names: list[str]) -> None:
        broker, config = self.broker, self.config
        security = broker.security.controllers
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
                security=security,
            ),
        )
        broker.controller = make_controller(broker)
        broker.inner_requests = LocalRequests(broker, CONTROLLER_ROUTES)
        broker.forwarded_apis = FORWARDED
        self.channels = ControllerChannels(broker, is_controller=config.is_controller, security=security)
        broker.forwarder = Forwarder(broker.quorum, self.channels.forwarding, is_controller=config.is_controller)
        if config.is_controller:
            self.controller_part = ControllerRole(broker, self.channels)
        if config.is_broker:
            self.broker_part = BrokerRole(
                broker,
                self.listening,
                self.directories,
                self.channels,
                settle_memory=self.watch.refreeze_gc,
                fail=self._fail,
            )
        if self.audit is not None:
            connect_audit(self.audit, broker)
        declare_metrics(self)

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

    def _listener_groups(self) -> list[ListenerGroup]:
        statistics = RequestMetrics(self.registry).statistics
        groups = []
        for addresses, routes in (
            (self.config.client_addresses(), ROUTES),
            (self.config.controller_addresses(), CONTROLLER_ROUTES),
        ):
            if addresses:
                offered = routes
                if self.config.offers_unstable_versions:
                    offered = tuple(route.with_unstable_versions() for route in routes)
                served = served_versions(offered)
                dispatcher = Dispatcher(
                    self.broker,
                    offered,
                    statistics,
                    partial(fallback, served),
                    forwarded=FORWARDED if routes is ROUTES else frozenset(),
                )
                group = ListenerGroup(
                    addresses=tuple(addresses),
                    requests=dispatcher,
                    authentication=self._authentication(addresses, dispatcher),
                    served=served,
                    is_controllers=routes is CONTROLLER_ROUTES,
                )
                groups.append(group)
        return groups

    def _authentication(
        self, addresses: Collection[ListenerAddress], dispatcher: Dispatcher
    ) -> dict[str, ListenerAuthentication]:
        names = [address.name for address in addresses if address.has_sasl]
        if not names:
            return {}
        # Imported late: a node without SASL starts faster without it.
        from millbeck.server.requests.authentication import AuthenticationWork, SaslListener

        self.authentication_work = self.authentication_work or AuthenticationWork(self.broker)
        if self.config.revocation.disconnect and self.broker.revocation is None:
            from millbeck.server.requests.revocation import Revocation

            self.broker.revocation = Revocation(self.broker, self.listening)
        return {name: SaslListener(self.broker, dispatcher, name, self.authentication_work) for name in names}

    async def _publish(self, image: MetadataImage, delta: MetadataDelta) -> None:
        """Pass a committed metadata image on to the broker role; a node without that role puts it in force at once. The
        ACLs are applied first, so that denials take effect before the resources they protect become visible."""
        level, known = image.features.metadata_version, self.config.supported_features[METADATA_VERSION]
        if level > known.max_level:
            # This node could not read the records that the cluster writes from now on.
            message = f"the cluster's metadata.version is {release_name(level)}, but this node supports up to "
            self._metadata_failed(MetadataLogFailed(message + release_name(known.max_level)))
            return
        if self.acls is not None:
            await self.acls.publish(image, delta)
        if self.broker_part is not None:
            await self.broker_part.publish(image, delta)
        else:
            self.broker.image = image
        self.broker.follow_quotas(self.broker.image.client_quotas)
        self.listening.limit_addresses(self.broker.all_quotas.connections)
        self.broker.metadata_replies.follow(self.broker.image)
        if self.broker.revocation is not None:
            await self.broker.revocation.follow(delta)

    # running

    def reload(self) -> None:
        """Reload certificates and keys from their files, and the keys of identity providers."""
        self.broker.tls.want_reload()
        if self.authentication_work is not None:
            self.authentication_work.reload()

    def spawn(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """Run a coroutine as a task of the node: referenced until it ends, cancelled when the node stops."""
        return self.tasks.spawn(work)

    def render_metrics(self) -> str:
        return "".join(self.render_metric_parts())

    def render_metric_parts(self, names: Collection[str] | None = None) -> Iterator[str]:
        """Render the metrics, see `Registry.render_parts`."""
        self.registry.advance(int(self._loop.time() * 1000))
        return self.registry.render_parts(names)

    def _report(self, error: Exception) -> None:
        self.broker.report(error)

    def _fail(self, error: BaseException) -> None:
        if not self.failed.done():
            self.failed.set_result(error)

    def _metadata_failed(self, error: MetadataLogFailed) -> None:
        log.critical("shutting down the node: %s", error)
        self._fail(error)

    def _directory_failed(self, reason: str) -> None:
        if self.broker_part is not None and self.broker_part.directory_failed():
            self._fail(OSError(f"every log directory has failed; the last: {reason}"))

    # stopping

    async def stop(self) -> None:
        """Stop cleanly: all acknowledged records are durable, and the next start needs no log recovery."""
        if self.audit is not None:
            await self.audit.close()
        if self.broker_part is not None:
            await self.broker_part.leave()
        await self.listening.drain([address.name for address in self.config.client_addresses()])
        self._metrics.stop()
        if self.broker_part is not None:
            self.broker_part.close_fetchers_and_coordinators()
        try:
            await self.broker.quorum.stop()
        except MetadataLogFailed as error:
            log.error("the metadata log was not closed cleanly: %s", error)
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
        """Clean up after a failed start. A directory is marked as closed cleanly only if it was marked so before.

        A directory that was closed cleanly by the previous process is marked so again: before its registration a broker
        neither replicates nor serves clients, so the clean shutdown still holds. Otherwise a broker that failed to
        start would look like one that may have lost records, and would be removed from the eligible leader replicas.
        """
        self.listening.abort()
        self._metrics.stop()
        await self.tasks.cancel()
        for directory in self.directories:
            if directory.had_clean_shutdown:
                # Blocks the event loop on purpose: another task that ran now could still write to the directory.
                epoch = directory.previous_broker_epoch if self.broker_epoch == NO_BROKER_EPOCH else self.broker_epoch
                directory.close(broker_epoch=epoch)
            else:
                directory.abandon()
        self._end()

    def _end(self) -> None:
        self.watch.stop()
        self.deadlines.close()
