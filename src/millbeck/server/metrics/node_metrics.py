"""The node's metrics under the names that Kafka dashboards use; values are read when the metrics are scraped."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from millbeck.kernel.metrics import Rows, RowsInParts
from millbeck.replication.partition import Partition
from millbeck.server.cleaner.metrics import declare_cleaner_metrics
from millbeck.server.local_topics import TopicCounts
from millbeck.server.metrics.controller import declare_controller_metrics
from millbeck.server.metrics.groups import declare_group_metrics
from millbeck.server.metrics.metadata import declare_broker_metadata_metrics, declare_metadata_metrics
from millbeck.server.metrics.permissions import declare_permission_metrics
from millbeck.server.metrics.process import declare_process_metrics
from millbeck.server.metrics.quorum import declare_quorum_metrics
from millbeck.server.metrics.replicas import declare_replica_metrics
from millbeck.server.metrics.share import declare_share_metrics
from millbeck.server.metrics.tables import declare_single
from millbeck.server.metrics.tls import declare_tls_metrics
from millbeck.server.metrics.transactions import declare_transaction_metrics

if TYPE_CHECKING:
    from millbeck.security.oauth.key_refresh import KeyRefresh
    from millbeck.server.broker import Broker
    from millbeck.server.node import Node

_TOPIC_COUNTERS: tuple[tuple[str, str, Callable[[TopicCounts], int]], ...] = (
    ("messagesin", "Records produced.", lambda counts: counts.messages_in),
    ("bytesin", "Bytes of batches produced.", lambda counts: counts.bytes_in),
    ("bytesout", "Bytes of batches fetched by consumers.", lambda counts: counts.bytes_out),
    ("totalproducerequests", "Partitions in produce requests.", lambda counts: counts.produce_requests),
    ("totalfetchrequests", "Partitions in fetch requests.", lambda counts: counts.fetch_requests),
    ("failedproducerequests", "Partitions in produce requests that failed.", lambda counts: counts.produce_failed),
    ("failedfetchrequests", "Partitions in fetch requests that failed.", lambda counts: counts.fetch_failed),
)


def declare_metrics(node: Node) -> None:
    """Declare all metrics of the node's roles; must be called before the quorum starts."""
    _declare_node(node)
    declare_quorum_metrics(node.registry, node.broker.quorum, node.environment.clock)
    declare_metadata_metrics(node.registry, node.broker.quorum)
    declare_process_metrics(node.registry, node.settings.process_numbers, node.listening.replies)
    declare_tls_metrics(node)
    declare_permission_metrics(node)
    if node.controller_part is not None:
        declare_controller_metrics(node)
    if node.broker_part is not None:
        _declare_topics(node)
        _declare_partitions(node)
        _declare_broker(node)
        declare_group_metrics(node.registry, node.broker)
        declare_transaction_metrics(node.registry, node.broker)
        declare_share_metrics(node.registry, node.broker)
        declare_replica_metrics(node.registry, node.broker, node.broker_part.membership)
        declare_broker_metadata_metrics(node.registry, node.broker)
        declare_cleaner_metrics(node.registry, node.broker)


def _declare_topics(node: Node) -> None:
    topics = node.broker.topics
    for name, help_text, read in _TOPIC_COUNTERS:

        def rows(read: Callable[[TopicCounts], int] = read) -> Rows:
            return [((topic.name,), read(topic.counts)) for topic in topics.by_name.values()]

        node.registry.callback_counter(f"kafka_server_brokertopicmetrics_{name}_total", help_text, ["topic"], rows)


def _declare_partitions(node: Node) -> None:
    topics, registry = node.broker.topics, node.registry

    def each(name: str, help_text: str, read: Callable[[Partition], int], *, only_led: bool = False) -> None:
        def rows() -> RowsInParts:
            for partition in topics.all_partitions():
                if partition.is_leader or not only_led:
                    yield (partition.name.topic, partition.name.partition), read(partition)

        registry.callback_gauge(name, help_text, ["topic", "partition"], rows, in_parts=True)

    each("kafka_log_log_size", "Bytes on disk.", lambda p: p.log.size_bytes)
    each("kafka_log_log_numlogsegments", "Segments of the log.", lambda p: len(p.log.segments))
    each(
        "kafka_topic_partition_current_offset",
        "The high watermark, exported by the partition's leader.",
        lambda p: p.high_watermark,
        only_led=True,
    )
    each(
        "kafka_topic_partition_oldest_offset",
        "The log start offset, exported by the partition's leader.",
        lambda p: p.log.log_start_offset,
        only_led=True,
    )
    registry.callback_gauge(
        "kafka_topic_partitions",
        "Number of partitions of the topic.",
        ["topic"],
        lambda: [((topic.name,), len(topic.partitions)) for topic in node.broker.image.topics.by_name.values()],
    )


def _declare_broker(node: Node) -> None:
    broker = node.broker
    declare_single(
        node.registry,
        "",
        (
            (
                "kafka_log_logmanager_offlinelogdirectorycount",
                "Offline log directories.",
                lambda: sum(directory.offline_reason is not None for directory in broker.logs.directories),
            ),
            (
                "millbeck_offline_partitions",
                "Partitions on this broker whose log is damaged or offline.",
                lambda: sum(partition.log.is_offline for partition in broker.topics.all_partitions()),
            ),
            (
                "kafka_server_fetchsessioncache_numincrementalfetchsessions",
                "Incremental fetch sessions.",
                lambda: len(broker.fetch_sessions),
            ),
            (
                "kafka_server_fetchsessioncache_numincrementalfetchpartitionscached",
                "Partitions cached in incremental fetch sessions.",
                lambda: broker.fetch_sessions.partitions_cached,
            ),
        ),
    )

    node.registry.callback_gauge(
        "millbeck_log_directory_free_bytes",
        "Free bytes on the disk of a log directory.",
        ["directory"],
        lambda: _of_directories(broker, broker.environment.files.free_bytes),
    )
    node.registry.callback_gauge(
        "millbeck_log_directory_total_bytes",
        "Size in bytes of the disk of a log directory.",
        ["directory"],
        lambda: _of_directories(broker, broker.environment.files.total_bytes),
    )


def _of_directories(broker: Broker, measure: Callable[[str], int]) -> list[tuple[tuple[str], int]]:
    """Measure each log directory; those that are offline or raise OSError are left out."""
    found: list[tuple[tuple[str], int]] = []
    for directory in broker.logs.directories:
        if directory.offline_reason is None:
            try:
                found.append(((directory.path,), measure(directory.path)))
            except OSError:
                pass
    return found


_AUTHENTICATION: Final = (
    ("successful_authentication_total", "succeeded", "Connections whose client logged in by SASL."),
    ("failed_authentication_total", "failed", "Connections whose client failed to log in by SASL."),
    ("successful_reauthentication_total", "reauthentication_succeeded", "Sessions renewed by SASL."),
    ("failed_reauthentication_total", "reauthentication_failed", "Sessions that failed to be renewed by SASL."),
    ("expired_connections_killed_count", "expired", "Connections closed because their session had expired."),
)


def _declare_token_keys(node: Node) -> None:
    def rows(read: Callable[[KeyRefresh], float | None]) -> Rows:
        work = node.authentication_work
        keys = () if work is None or work.token_keys is None else work.token_keys
        found = [((each.address,), read(each.refresh)) for each in keys]
        return [(labels, value) for labels, value in found if value is not None]

    def age_seconds(refresh: KeyRefresh) -> float | None:
        if refresh.fetched_ms is None:
            return None
        return node.environment.clock.monotonic() - refresh.fetched_ms / 1000

    node.registry.callback_gauge(
        "millbeck_jwks_age_seconds",
        "Time since the keys of an identity provider were fetched; no value before the first time.",
        ["url"],
        lambda: rows(age_seconds),
    )
    node.registry.callback_counter(
        "millbeck_jwks_refresh_failures_total",
        "Failed attempts to fetch the keys of an identity provider.",
        ["url"],
        lambda: rows(lambda refresh: refresh.failures_total),
    )


def _declare_authentication(node: Node) -> None:
    for name, attribute, text in _AUTHENTICATION:

        def rows(attribute: str = attribute) -> Rows:
            return [
                ((listener.address.name,), getattr(listener.authentication.statistics, attribute))
                for listener in node.listeners
                if listener.authentication is not None
            ]

        node.registry.callback_counter(f"kafka_server_socket_server_metrics_{name}", text, ["listener"], rows)


def _declare_node(node: Node) -> None:
    broker, registry = node.broker, node.registry
    declare_single(
        registry,
        "millbeck_",
        (("unexpected_errors_total", "Unexpected errors; see the server log.", lambda: broker.unexpected_errors),),
    )
    registry.callback_gauge(
        "kafka_server_socket_server_metrics_connection_count",
        "Open connections.",
        ["listener"],
        lambda: [((listener.address.name,), len(listener.connections)) for listener in node.listeners],
    )
    registry.callback_counter(
        "kafka_server_socket_server_metrics_connection_creation_total",
        "Connections accepted.",
        ["listener"],
        lambda: [((listener.address.name,), listener.connections_accepted) for listener in node.listeners],
    )
    node.registry.callback_counter(
        "millbeck_connections_refused_total",
        "Connections that were closed at once: above a limit, or from a network that is not allowed.",
        ["listener"],
        lambda: [((listener.address.name,), listener.connections_refused) for listener in node.listeners],
    )
    node.registry.callback_counter(
        "millbeck_connection_accept_throttle_seconds_total",
        "Seconds in which new connections waited because of max.connection.creation.rate.",
        ["listener"],
        lambda: [((listener.address.name,), listener.throttled_ms / 1000) for listener in node.listeners],
    )
    registry.callback_counter(
        "kafka_server_socket_server_metrics_incoming_byte_total",
        "Bytes received.",
        ["listener"],
        lambda: [((listener.address.name,), listener.bytes_in.value) for listener in node.listeners],
    )
    _declare_authentication(node)
    _declare_token_keys(node)
    registry.callback_gauge(
        "kafka_broker_info",
        "Registered brokers with their addresses; always 1.",
        ["id", "address"],
        lambda: [
            ((each.broker_id, ",".join(f"{where.host}:{where.port}" for where in each.endpoints)), 1)
            for each in broker.image.cluster.brokers.values()
        ],
    )
