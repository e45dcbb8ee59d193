"""The node's own options, under Kafka's names, and how a node reads them from its texts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from millbeck.coordinator.config import BROKER_SECTIONS as GROUP_BROKER_SECTIONS
from millbeck.coordinator.config import ClassicGroupOptions, OffsetOptions, OffsetsTopicOptions
from millbeck.kernel.errors import InvalidConfig
from millbeck.kernel.options import (
    BOOLEAN,
    INT,
    LIST,
    LONG,
    PASSWORD,
    STRING,
    Importance,
    Layers,
    OptionSet,
    Section,
    Update,
    at_least,
    between,
    each_of,
    non_empty,
    one_of,
    option,
)
from millbeck.server.listener import ListenerAddress

SECURITY_PROTOCOLS: Final = ("PLAINTEXT", "SSL")
DEFAULT_PROTOCOL_MAP: Final = ("PLAINTEXT:PLAINTEXT", "SSL:SSL")


class NodeOptions(Section):
    """Who this node is and where it keeps things."""

    process_roles = option(
        "process.roles",
        LIST,
        ("broker", "controller"),
        valid=each_of("broker", "controller"),
        importance=Importance.HIGH,
        doc="The roles of this process. A single node has both.",
    )
    node_id = option(
        "node.id", INT, 1, valid=at_least(0), importance=Importance.HIGH, doc="The number of this node in the cluster."
    )
    log_dir = option("log.dir", STRING, "", importance=Importance.HIGH, doc="Used when log.dirs is not set.")
    log_dirs = option(
        "log.dirs", LIST, (), importance=Importance.HIGH, doc="Directories in which the logs are kept, one to a disk."
    )
    metadata_log_dir = option(
        "metadata.log.dir",
        STRING,
        "",
        importance=Importance.HIGH,
        doc="Directory of the metadata log; the first of log.dirs when not set.",
    )
    broker_rack = option("broker.rack", STRING, "", doc="The rack of this node, used to place replicas apart.")


class ListenerOptions(Section):
    listeners = option(
        "listeners",
        LIST,
        ("PLAINTEXT://:9092",),
        valid=non_empty(),
        update=Update.PER_BROKER,
        importance=Importance.HIGH,
        doc="Where to listen: NAME://host:port, separated by commas. No host: every interface. Port 0: a free one.",
    )
    advertised_listeners = option(
        "advertised.listeners",
        LIST,
        (),
        update=Update.PER_BROKER,
        importance=Importance.HIGH,
        doc="The addresses clients are told. Not set: each client is told the address it dialled.",
    )
    listener_security_protocol_map = option(
        "listener.security.protocol.map",
        LIST,
        DEFAULT_PROTOCOL_MAP,
        doc="Listener name to security protocol, as NAME:PROTOCOL pairs.",
    )
    controller_listener_names = option(
        "controller.listener.names",
        LIST,
        (),
        importance=Importance.HIGH,
        doc="The listeners that serve the controller; they take no clients.",
    )
    inter_broker_listener_name = option(
        "inter.broker.listener.name", STRING, "", doc="The listener brokers use among themselves."
    )
    ssl_keystore_location = option(
        "ssl.keystore.location",
        STRING,
        "",
        update=Update.PER_BROKER,
        importance=Importance.HIGH,
        doc="PEM file with the certificate chain and the private key of the SSL listeners.",
    )
    ssl_key_password = option(
        "ssl.key.password", PASSWORD, None, update=Update.PER_BROKER, doc="Password of the private key, if it has one."
    )
    ssl_truststore_location = option(
        "ssl.truststore.location",
        STRING,
        "",
        update=Update.PER_BROKER,
        importance=Importance.HIGH,
        doc="PEM file with the certificates that client certificates are checked against.",
    )
    ssl_client_auth = option(
        "ssl.client.auth",
        STRING,
        "none",
        valid=one_of("none", "requested", "required"),
        update=Update.PER_BROKER,
        doc="Whether clients of an SSL listener must present a certificate.",
    )


class SocketOptions(Section):
    socket_request_max_bytes = option(
        "socket.request.max.bytes",
        INT,
        100 * 1024 * 1024,
        valid=at_least(1),
        importance=Importance.HIGH,
        doc="The largest request. A longer frame ends its connection before anything is allocated.",
    )
    socket_send_buffer_bytes = option(
        "socket.send.buffer.bytes",
        INT,
        102400,
        importance=Importance.HIGH,
        doc="SO_SNDBUF; -1 leaves it to the system.",
    )
    socket_receive_buffer_bytes = option(
        "socket.receive.buffer.bytes",
        INT,
        102400,
        importance=Importance.HIGH,
        doc="SO_RCVBUF; -1 leaves it to the system.",
    )
    socket_listen_backlog_size = option(
        "socket.listen.backlog.size", INT, 50, valid=at_least(1), doc="Connections that may wait to be accepted."
    )
    connections_max_idle_ms = option(
        "connections.max.idle.ms", LONG, 600_000, doc="Connections without a request for this long are closed."
    )
    max_connections = option(
        "max.connections",
        INT,
        2**31 - 1,
        valid=at_least(0),
        update=Update.CLUSTER_WIDE,
        doc="Connections at a time over all listeners; more are closed at once.",
    )
    max_connections_per_ip = option(
        "max.connections.per.ip",
        INT,
        2**31 - 1,
        valid=at_least(0),
        update=Update.CLUSTER_WIDE,
        doc="Connections at a time from one address.",
    )
    max_connections_per_ip_overrides = option(
        "max.connections.per.ip.overrides",
        LIST,
        (),
        update=Update.CLUSTER_WIDE,
        doc="Other limits for single addresses, as address:count pairs.",
    )


class TopicDefaultOptions(Section):
    auto_create_topics_enable = option(
        "auto.create.topics.enable",
        BOOLEAN,
        True,
        importance=Importance.HIGH,
        doc="Create a topic when a client asks for its metadata and it does not exist.",
    )
    num_partitions = option(
        "num.partitions", INT, 1, valid=at_least(1), doc="Partitions of a topic created without a number of them."
    )
    default_replication_factor = option(
        "default.replication.factor", INT, 1, valid=at_least(1), doc="Replicas of a topic created without a number."
    )
    max_request_partition_size_limit = option(
        "max.request.partition.size.limit",
        INT,
        2000,
        valid=at_least(1),
        doc="The most partitions in one page of DescribeTopicPartitions.",
    )
    delete_topic_enable = option(
        "delete.topic.enable", BOOLEAN, True, importance=Importance.HIGH, doc="Whether topics can be deleted at all."
    )


class FetchOptions(Section):
    fetch_max_bytes = option(
        "fetch.max.bytes",
        INT,
        55 * 1024 * 1024,
        valid=at_least(1024),
        doc="The most a fetch reply carries, unless its first batch alone is larger.",
    )
    max_incremental_fetch_session_cache_slots = option(
        "max.incremental.fetch.session.cache.slots",
        INT,
        1000,
        valid=at_least(0),
        doc="Fetch sessions kept at a time.",
    )


class LogUpkeepOptions(Section):
    log_retention_check_interval_ms = option(
        "log.retention.check.interval.ms", LONG, 300_000, valid=at_least(1), doc="How often retention is applied."
    )
    log_flush_scheduler_interval_ms = option(
        "log.flush.scheduler.interval.ms",
        LONG,
        2**63 - 1,
        valid=at_least(0),
        doc="How often logs are looked at for flush.ms.",
    )
    log_flush_offset_checkpoint_interval_ms = option(
        "log.flush.offset.checkpoint.interval.ms",
        INT,
        60_000,
        valid=at_least(0),
        doc="How often the recovery points are written down; they bound what a start after a crash reads again.",
    )
    log_flush_start_offset_checkpoint_interval_ms = option(
        "log.flush.start.offset.checkpoint.interval.ms",
        INT,
        60_000,
        valid=at_least(0),
        doc="How often the log start offsets are written down.",
    )
    replica_high_watermark_checkpoint_interval_ms = option(
        "replica.high.watermark.checkpoint.interval.ms",
        LONG,
        5_000,
        doc="How often the high watermarks are written down.",
    )
    log_scrub_interval_ms = option(
        "log.scrub.interval.ms",
        LONG,
        86_400_000,
        valid=at_least(0),
        doc="How often everything on disk is read again in search of damage, a few megabytes a second; 0 is never.",
    )
    producer_id_expiration_ms = option(
        "producer.id.expiration.ms",
        INT,
        86_400_000,
        valid=at_least(1),
        update=Update.CLUSTER_WIDE,
        importance=Importance.LOW,
        doc="A producer id that wrote nothing for this long is forgotten.",
    )


class MetadataLogOptions(Section):
    snapshot_after_bytes = option(
        "metadata.log.max.record.bytes.between.snapshots",
        LONG,
        20 * 1024 * 1024,
        valid=at_least(1),
        importance=Importance.HIGH,
        doc="A snapshot of the metadata is written after this many bytes of new records.",
    )
    snapshot_after_ms = option(
        "metadata.log.max.snapshot.interval.ms",
        LONG,
        3_600_000,
        valid=at_least(0),
        importance=Importance.HIGH,
        doc="And after this long when there are any; 0 waits for the bytes alone.",
    )
    segment_bytes = option(
        "metadata.log.segment.bytes",
        INT,
        1024 * 1024 * 1024,
        valid=at_least(8 * 1024 * 1024),
        importance=Importance.HIGH,
        doc="Segment size of the metadata log.",
    )


class MetricsOptions(Section):
    host = option("metrics.http.host", STRING, "127.0.0.1", doc="Where /metrics listens. Empty: every interface.")
    port = option(
        "metrics.http.port",
        INT,
        9404,
        valid=between(0, 65535),
        doc="The port of /metrics; a free one is taken, and printed, when it is in use.",
    )
    open_files_max = option(
        "log.open.files.max",
        INT,
        4096,
        valid=at_least(16),
        doc="Log files kept open at a time; the rest are opened when they are needed.",
    )


def parse_address(text: str, protocol_map: Mapping[str, str], setting: str = "listeners") -> ListenerAddress:
    """One ``NAME://host:port``; raises `InvalidConfig` that names the setting."""
    name, separator, rest = text.strip().partition("://")
    host, colon, port = rest.rpartition(":")
    if not separator or not colon or not name or not port.isdigit() or int(port) > 65535:
        raise InvalidConfig(f"{setting}: {text!r} is not NAME://host:port")
    name = name.upper()
    protocol = protocol_map.get(name)
    if protocol is None:
        raise InvalidConfig(f"{setting}: listener {name} has no entry in listener.security.protocol.map")
    return ListenerAddress(name=name, host=host.strip("[]"), port=int(port), protocol=protocol)


def parse_protocol_map(entries: tuple[str, ...]) -> dict[str, str]:
    pairs: dict[str, str] = {}
    for entry in entries:
        name, colon, protocol = entry.strip().partition(":")
        protocol = protocol.upper()
        if not colon or protocol not in SECURITY_PROTOCOLS:
            raise InvalidConfig(
                f"listener.security.protocol.map: {entry!r} is not NAME:PROTOCOL with one of "
                f"{', '.join(SECURITY_PROTOCOLS)}"
            )
        pairs[name.upper()] = protocol
    return pairs


def parse_ip_overrides(entries: tuple[str, ...]) -> dict[str, int]:
    overrides: dict[str, int] = {}
    for entry in entries:
        host, colon, count = entry.strip().rpartition(":")
        if not colon or not count.isdigit():
            raise InvalidConfig(f"max.connections.per.ip.overrides: {entry!r} is not address:count")
        overrides[host] = int(count)
    return overrides


BROKER_OPTIONS: Final = OptionSet(
    NodeOptions,
    ListenerOptions,
    SocketOptions,
    TopicDefaultOptions,
    FetchOptions,
    LogUpkeepOptions,
    MetadataLogOptions,
    MetricsOptions,
    *GROUP_BROKER_SECTIONS,
)
GROUP_OPTIONS: Final = OptionSet()


class NodeConfig:
    """Every section of one node, resolved from the texts of its file, environment and flags."""

    def __init__(self, texts: Mapping[str, str]) -> None:
        self.texts = dict(texts)
        layers = Layers(static=self.texts)
        self.node = NodeOptions.resolve(layers)
        self.listener = ListenerOptions.resolve(layers)
        self.socket = SocketOptions.resolve(layers)
        self.topic_defaults = TopicDefaultOptions.resolve(layers)
        self.fetch = FetchOptions.resolve(layers)
        self.upkeep = LogUpkeepOptions.resolve(layers)
        self.metadata_log = MetadataLogOptions.resolve(layers)
        self.metrics = MetricsOptions.resolve(layers)
        self.offsets_topic = OffsetsTopicOptions.resolve(layers)
        self.offsets = OffsetOptions.resolve(layers)
        self.classic_groups = ClassicGroupOptions.resolve(layers)

    @property
    def option_set(self) -> OptionSet:
        return BROKER_OPTIONS

    @property
    def group_option_set(self) -> OptionSet:
        return GROUP_OPTIONS

    @property
    def open_files_max(self) -> int:
        return self.metrics.open_files_max

    def apply_dynamic(self, of_broker: Mapping[str, str], of_all_brokers: Mapping[str, str]) -> None:
        """Take over options that were changed while the node runs."""
        layers = Layers(static=self.texts, dynamic_broker=of_broker, dynamic_default=of_all_brokers)
        self.socket = SocketOptions.resolve(layers)
        self.upkeep = LogUpkeepOptions.resolve(layers)

    @property
    def directories(self) -> tuple[str, ...]:
        directories = self.node.log_dirs or ((self.node.log_dir,) if self.node.log_dir else ())
        if not directories:
            raise InvalidConfig("log.dirs is not set: name at least one directory")
        return directories

    @property
    def metadata_directory(self) -> str:
        return self.node.metadata_log_dir or self.directories[0]

    def client_addresses(self) -> list[ListenerAddress]:
        """The listeners that clients use: all but the controller's."""
        protocol_map = parse_protocol_map(self.listener.listener_security_protocol_map)
        controller_names = {name.upper() for name in self.listener.controller_listener_names}
        for name in controller_names:
            protocol_map.setdefault(name, "PLAINTEXT")
        addresses = [parse_address(text, protocol_map) for text in self.listener.listeners]
        names = [address.name for address in addresses]
        if len(set(names)) != len(names):
            raise InvalidConfig(f"listeners: each name may come once, got {','.join(names)}")
        return [address for address in addresses if address.name not in controller_names]

    def advertised(self) -> dict[str, tuple[str, int]]:
        protocol_map = parse_protocol_map(self.listener.listener_security_protocol_map)
        addresses = (
            parse_address(text, protocol_map, "advertised.listeners") for text in self.listener.advertised_listeners
        )
        return {address.name: (address.host, address.port) for address in addresses}
