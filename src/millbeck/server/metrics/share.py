"""Metrics of share groups: sessions, in-flight records, acknowledgements, dead letters, and the share coordinator."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from millbeck.kernel.errors import ApiError
from millbeck.kernel.metrics import Registry, Rows
from millbeck.server.share.partition_leader import SharePartitionLeader
from millbeck.server.share.statistics import GroupCounters

if TYPE_CHECKING:
    from millbeck.server.broker import Broker


def declare_share_metrics(registry: Registry, broker: Broker) -> None:
    sessions = broker.shares.sessions
    registry.callback_gauge(
        "kafka_server_sharesessioncache_numsharesessions", "Share sessions.", [], lambda: [((), len(sessions))]
    )
    registry.callback_gauge(
        "kafka_server_sharesessioncache_numsharepartitions",
        "Partitions in share sessions.",
        [],
        lambda: [((), sessions.partition_count())],
    )
    _declare_partition_metrics(registry, broker)
    _declare_group_metrics(registry, broker)
    _declare_coordinator_metrics(registry, broker)


def _declare_partition_metrics(registry: Registry, broker: Broker) -> None:
    labels = ["group", "topic", "partition"]

    def each(value: Callable[[SharePartitionLeader], int]) -> Callable[[], Rows]:
        return lambda: [
            ((led.key.group_id, led.partition.name.topic, led.key.partition), value(led)) for led in broker.shares.all()
        ]

    prefix = "kafka_server_sharepartitionmetrics_"
    registry.callback_gauge(
        prefix + "inflightmessagecount",
        "In-flight records between the start and end offset of a share partition.",
        labels,
        each(lambda led: 0 if led.machine is None else len(led.machine.window)),
    )
    registry.callback_gauge(
        prefix + "inflightbatchcount",
        "Batches of consecutive in-flight records with the same state.",
        labels,
        each(lambda led: 0 if led.machine is None else len(led.machine.window.runs)),
    )
    registry.callback_gauge(
        prefix + "waitingfetchcount",
        "ShareFetch requests that wait for records.",
        labels,
        each(lambda led: len(led.waiting)),
    )


def _declare_group_metrics(registry: Registry, broker: Broker) -> None:
    def acknowledgements() -> Rows:
        return [
            ((group, kind.name.lower()), count)
            for group, counters in broker.shares.counters.by_group.items()
            for kind, count in counters.acknowledgements.items()
        ]

    def acquired() -> Rows:
        return [((group,), found.acquired_records) for group, found in broker.shares.counters.by_group.items()]

    prefix = "kafka_server_sharegroupmetrics_"
    registry.callback_counter(
        prefix + "recordacknowledgement_total",
        "Acknowledgements of records by type.",
        ["group", "ack_type"],
        acknowledgements,
    )
    registry.callback_counter(prefix + "recordsacquired_total", "Records acquired by consumers.", ["group"], acquired)

    _declare_dead_letter_metrics(registry, broker)

    def by_state() -> Rows:
        totals: dict[str, int] = {}
        try:
            counts = broker.groups.read_all(lambda shard, _: [shard.share.counts()])
        except ApiError:
            # A shard is being loaded: the next scrape shows the groups.
            return []
        for found in counts:
            for state, count in found.items():
                totals[state.lower()] = totals.get(state.lower(), 0) + count
        return [((state,), count) for state, count in totals.items()]

    registry.callback_gauge(
        "kafka_server_group_coordinator_metrics_share_group_count", "Share groups by state.", ["state"], by_state
    )


def _declare_dead_letter_metrics(registry: Registry, broker: Broker) -> None:
    def each(value: Callable[[GroupCounters], int]) -> Callable[[], Rows]:
        return lambda: [((group,), value(found)) for group, found in broker.shares.counters.by_group.items()]

    prefix = "kafka_server_sharegroupmetrics_deadletterqueue"
    registry.callback_counter(
        prefix + "recordcount_total", "Dead letters written.", ["group"], each(lambda found: found.dead_letters)
    )
    registry.callback_counter(
        prefix + "totalproducerequests_total",
        "Produce requests for dead letters, including retries.",
        ["group"],
        each(lambda found: found.dead_letter_requests),
    )
    registry.callback_counter(
        prefix + "failedproducerequests_total",
        "Produce requests for dead letters that failed and are not retried.",
        ["group"],
        each(lambda found: found.dead_letter_failures),
    )


def _declare_coordinator_metrics(registry: Registry, broker: Broker) -> None:
    prefix = "kafka_server_share_coordinator_metrics_"
    registry.callback_counter(
        prefix + "write_total",
        "Writes of share partition state; restarts at 0 when a shard is loaded.",
        [],
        lambda: [((), broker.share_state.write_count())],
    )
    registry.callback_gauge(
        prefix + "num_partitions",
        "Shards of the share coordinator by state.",
        ["state"],
        lambda: [((state,), count) for state, count in broker.share_state.shard_counts().items()],
    )
