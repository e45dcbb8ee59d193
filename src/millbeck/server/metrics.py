"""The node's metrics under the names that dashboards for Kafka use; read from the state itself when asked for."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from millbeck.kernel.metrics import Rows
from millbeck.server.cleaner.metrics import declare_cleaner_metrics
from millbeck.server.process_metrics import declare_process_metrics
from millbeck.server.quorum_metrics import declare_quorum_metrics
from millbeck.server.topics import TopicCounts

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
    _declare_topics(node)
    _declare_partitions(node)
    _declare_broker(node)
    _declare_groups(node)
    declare_quorum_metrics(node.registry, node.broker.quorum, node.environment.clock)
    declare_process_metrics(node.registry, node.settings.process_numbers, node.listening.replies)
    if node.broker_part is not None:
        declare_cleaner_metrics(node.registry, node.broker)


def _declare_topics(node: Node) -> None:
    topics = node.broker.topics
    for name, help_text, read in _TOPIC_COUNTERS:

        def rows(read: Callable[[TopicCounts], int] = read) -> Rows:
            return [((topic.name,), read(topic.counts)) for topic in topics.by_name.values()]

        node.registry.counter_from(f"kafka_server_brokertopicmetrics_{name}_total", help_text, ["topic"], rows)


def _declare_partitions(node: Node) -> None:
    topics, registry = node.broker.topics, node.registry

    def each(read: Callable[..., int]) -> Callable[[], Rows]:
        return lambda: [
            ((partition.name.topic, partition.name.partition), read(partition)) for partition in topics.all_partitions()
        ]

    labels = ["topic", "partition"]
    registry.gauge_from("kafka_log_log_size", "Bytes on disk.", labels, each(lambda p: p.log.size_bytes))
    registry.gauge_from(
        "kafka_log_log_numlogsegments", "Segments of the log.", labels, each(lambda p: len(p.log.segments))
    )
    registry.gauge_from(
        "kafka_topic_partition_current_offset", "The high watermark.", labels, each(lambda p: p.high_watermark)
    )
    registry.gauge_from(
        "kafka_topic_partition_oldest_offset", "The log start offset.", labels, each(lambda p: p.log.log_start_offset)
    )
    image = node.broker

    def registrations(read: Callable[..., int]) -> Callable[[], Rows]:
        return lambda: [
            ((topic.name, index), read(partition))
            for topic in image.image.topics.by_name.values()
            for index, partition in topic.partitions.items()
        ]

    registry.gauge_from("kafka_topic_partition_replicas", "Replicas.", labels, registrations(lambda p: len(p.replicas)))
    registry.gauge_from(
        "kafka_topic_partition_in_sync_replica", "Replicas in sync.", labels, registrations(lambda p: len(p.isr))
    )
    registry.gauge_from(
        "kafka_topic_partition_leader_is_preferred",
        "Whether the first replica leads.",
        labels,
        registrations(lambda p: int(p.leader == p.replicas[0])),
    )
    registry.gauge_from(
        "kafka_topic_partition_under_replicated_partition",
        "Whether a replica is out of sync.",
        labels,
        registrations(lambda p: int(len(p.isr) < len(p.replicas))),
    )
    registry.gauge_from(
        "kafka_cluster_partition_replicascount", "Replicas.", labels, registrations(lambda p: len(p.replicas))
    )
    for name, help_text, compare in (
        ("underminisr", "Whether fewer replicas are in sync than min.insync.replicas asks for.", int.__lt__),
        ("atminisr", "Whether exactly as many replicas are in sync as min.insync.replicas asks for.", int.__eq__),
    ):
        registry.gauge_from(f"kafka_cluster_partition_{name}", help_text, labels, _against_min_isr(node, compare))
    registry.gauge_from(
        "kafka_topic_partitions",
        "Partitions.",
        ["topic"],
        lambda: [((topic.name,), len(topic.partitions)) for topic in image.image.topics.by_name.values()],
    )


def _declare_broker(node: Node) -> None:
    broker, registry = node.broker, node.registry
    single: tuple[tuple[str, str, Callable[[], float]], ...] = (
        (
            "kafka_server_replicamanager_leadercount",
            "Partitions led here.",
            lambda: len(broker.topics.all_partitions()),
        ),
        (
            "kafka_server_replicamanager_partitioncount",
            "Partitions with a replica here.",
            lambda: len(broker.topics.all_partitions()),
        ),
        (
            "kafka_server_replicamanager_underreplicatedpartitions",
            "Partitions led here with a replica out of sync.",
            lambda: sum(
                len(partition.isr) < len(partition.replicas)
                for topic in broker.image.topics.by_name.values()
                for partition in topic.partitions.values()
            ),
        ),
        (
            "kafka_server_replicamanager_underminisrpartitioncount",
            "Partitions with fewer replicas in sync than min.insync.replicas, which counts at most all of them.",
            lambda: sum(is_under for _, is_under in _against_min_isr(node, int.__lt__)()),
        ),
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
        ("kafka_controller_kafkacontroller_activecontrollercount", "Whether this node is the controller.", lambda: 1),
        (
            "kafka_controller_kafkacontroller_offlinepartitionscount",
            "Partitions without a leader.",
            lambda: sum(
                not partition.has_leader
                for topic in broker.image.topics.by_name.values()
                for partition in topic.partitions.values()
            ),
        ),
        ("kafka_controller_controllerstats_uncleanleaderelections_total", "Unclean elections.", lambda: 0),
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
        (
            "millbeck_unexpected_errors_total",
            "Errors that should not happen, see the log.",
            lambda: broker.unexpected_errors,
        ),
    )
    for name, help_text, read in single:
        if name.endswith("_total"):
            registry.counter_from(name, help_text, [], _one_row(read))
        else:
            registry.gauge(name, help_text).child().read = read
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


def _against_min_isr(node: Node, compare: Callable[[int, int], bool]) -> Callable[[], Rows]:
    """Of every partition, how its replicas in sync compare with what is asked for, which is at most all of them."""

    def rows() -> Rows:
        for topic in node.broker.topics.by_name.values():
            image = node.broker.image.topics.named(topic.name)
            for index, partition in ({} if image is None else image.partitions).items():
                needed = min(topic.config.min_insync_replicas, len(partition.replicas))
                yield (topic.name, index), int(compare(len(partition.isr), needed))

    return rows


def _declare_groups(node: Node) -> None:
    """Lag is served for groups without live members too."""
    broker, registry = node.broker, node.registry
    labels = ["consumergroup", "topic", "partition"]

    def offsets() -> Rows:
        return [
            ((each.group_id, each.topic, each.partition), each.offset) for each in broker.groups.committed_offsets()
        ]

    def lags() -> Rows:
        for each in broker.groups.committed_offsets():
            topic = broker.topics.by_name.get(each.topic)
            partition = None if topic is None else topic.partitions.get(each.partition)
            if partition is not None:
                labels = (each.group_id, each.topic, each.partition)
                yield labels, max(0, partition.high_watermark - each.offset)

    registry.gauge_from("kafka_consumergroup_current_offset", "The committed offset.", labels, offsets)
    registry.gauge_from("kafka_consumergroup_lag", "Records between the committed offset and the end.", labels, lags)

    def groups() -> Rows:
        totals: dict[str, int] = {}
        for statistics in broker.groups.statistics():
            for state, count in statistics.group_counts.items():
                totals[state] = totals.get(state, 0) + count
        return [((state,), count) for state, count in totals.items()]

    registry.gauge_from("kafka_coordinator_group_groupmetadatamanager_numgroups", "Groups by state.", ["state"], groups)


def _one_row(read: Callable[[], float]) -> Callable[[], Rows]:
    """A counter without labels."""
    return lambda: [((), read())]
