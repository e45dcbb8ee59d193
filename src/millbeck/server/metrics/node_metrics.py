"""The node's metrics under the names that dashboards for Kafka use; read from the state itself when asked for."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from millbeck.kernel.metrics import Rows
from millbeck.replication.partition import Partition
from millbeck.server.cleaner.metrics import declare_cleaner_metrics
from millbeck.server.controller_metrics import declare_controller_metrics
from millbeck.server.group_metrics import declare_group_metrics
from millbeck.server.metadata_metrics import declare_broker_metadata_metrics, declare_metadata_metrics
from millbeck.server.metric_tables import declare_single
from millbeck.server.process_metrics import declare_process_metrics
from millbeck.server.quorum_metrics import declare_quorum_metrics
from millbeck.server.replica_metrics import declare_replica_metrics
from millbeck.server.share_metrics import declare_share_metrics
from millbeck.server.topics import TopicCounts
from millbeck.server.transaction_metrics import declare_transaction_metrics

if TYPE_CHECKING:
    from millbeck.server.node import Node

_TOPIC_COUNTERS: tuple[tuple[str, str, Callable[[TopicCounts], int]], ...] = (
    ("messagesin", "Records produced.", lambda counts: counts.messages_in),
    ("bytesin", "Bytes of batches produced.", lambda counts: counts.bytes_in),
    ("bytesout", "Bytes of batches fetched by consumers.", lambda counts: counts.bytes_out),
    ("totalproducerequests", "Partitions in produce requests.", lambda counts: counts.produce_requests),
    ("totalfetchrequests", "Partitions looked at for fetch replies.", lambda counts: counts.fetch_requests),
    ("failedproducerequests", "Partitions in produce requests that failed.", lambda counts: counts.produce_failed),
    ("failedfetchrequests", "Partitions in fetch requests that failed.", lambda counts: counts.fetch_failed),
)


def declare_metrics(node: Node) -> None:
    """Before the quorum starts. What only a broker or only a controller has, the other does not show."""
    _declare_node(node)
    declare_quorum_metrics(node.registry, node.broker.quorum, node.environment.clock)
    declare_metadata_metrics(node.registry, node.broker.quorum)
    declare_process_metrics(node.registry, node.settings.process_numbers, node.listening.replies)
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

        node.registry.counter_from(f"kafka_server_brokertopicmetrics_{name}_total", help_text, ["topic"], rows)


def _declare_partitions(node: Node) -> None:
    topics, registry = node.broker.topics, node.registry

    def each(read: Callable[[Partition], int], *, only_led: bool = False) -> Callable[[], Rows]:
        return lambda: [
            ((partition.name.topic, partition.name.partition), read(partition))
            for partition in topics.all_partitions()
            if partition.is_leader or not only_led
        ]

    labels = ["topic", "partition"]
    registry.gauge_from("kafka_log_log_size", "Bytes on disk.", labels, each(lambda p: p.log.size_bytes))
    registry.gauge_from(
        "kafka_log_log_numlogsegments", "Segments of the log.", labels, each(lambda p: len(p.log.segments))
    )
    registry.gauge_from(
        "kafka_topic_partition_current_offset",
        "The high watermark, as its leader has it.",
        labels,
        each(lambda p: p.high_watermark, only_led=True),
    )
    registry.gauge_from(
        "kafka_topic_partition_oldest_offset",
        "The log start offset, as its leader has it.",
        labels,
        each(lambda p: p.log.log_start_offset, only_led=True),
    )
    registry.gauge_from(
        "kafka_topic_partitions",
        "Partitions.",
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
                "Log directories that failed.",
                lambda: sum(directory.offline_reason is not None for directory in broker.logs.directories),
            ),
            (
                "millbeck_offline_partitions",
                "Partitions whose log here is damaged or unreachable.",
                lambda: sum(partition.log.is_offline for partition in broker.topics.all_partitions()),
            ),
            (
                "kafka_server_fetchsessioncache_numincrementalfetchsessions",
                "Fetch sessions.",
                lambda: len(broker.fetch_sessions),
            ),
            (
                "kafka_server_fetchsessioncache_numincrementalfetchpartitionscached",
                "Partitions in fetch sessions.",
                lambda: broker.fetch_sessions.partitions_cached,
            ),
        ),
    )


def _declare_node(node: Node) -> None:
    broker, registry = node.broker, node.registry
    declare_single(
        registry,
        "millbeck_",
        (("unexpected_errors_total", "Errors that should not happen, see the log.", lambda: broker.unexpected_errors),),
    )
    registry.gauge_from(
        "kafka_server_socket_server_metrics_connection_count",
        "Open connections.",
        ["listener"],
        lambda: [((listener.address.name,), len(listener.connections)) for listener in node.listeners],
    )
    registry.counter_from(
        "kafka_server_socket_server_metrics_connection_creation_total",
        "Connections accepted.",
        ["listener"],
        lambda: [((listener.address.name,), listener.connections_accepted) for listener in node.listeners],
    )
    registry.counter_from(
        "kafka_server_socket_server_metrics_incoming_byte_total",
        "Bytes received.",
        ["listener"],
        lambda: [((listener.address.name,), listener.bytes_in.value) for listener in node.listeners],
    )
    registry.gauge_from(
        "kafka_broker_info",
        "Brokers of the cluster.",
        ["id", "address"],
        lambda: [
            ((each.broker_id, ",".join(f"{where.host}:{where.port}" for where in each.endpoints)), 1)
            for each in broker.image.cluster.brokers.values()
        ],
    )
