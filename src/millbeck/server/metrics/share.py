"""Share groups that this broker serves: sessions, what is in flight, acknowledgements, and their coordinators."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from millbeck.kernel.errors import ApiError
from millbeck.kernel.metrics import Registry, Rows
from millbeck.server.share.led import LedShare
from millbeck.server.share.statistics import GroupCounters

if TYPE_CHECKING:
    from millbeck.server.broker import Broker


def declare_share_metrics(registry: Registry, broker: Broker) -> None:
    sessions = broker.shares.sessions
    registry.gauge_from(
        "kafka_server_sharesessioncache_numsharesessions", "Share sessions.", [], lambda: [((), len(sessions))]
    )
    registry.gauge_from(
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

    def each(value: Callable[[LedShare], int]) -> Callable[[], Rows]:
        return lambda: [
            ((led.key.group_id, led.partition.name.topic, led.key.partition), value(led)) for led in broker.shares.all()
        ]

    prefix = "kafka_server_sharepartitionmetrics_"
    registry.gauge_from(
        prefix + "inflightmessagecount",
        "Records between the start and the end of a share partition.",
        labels,
        each(lambda led: 0 if led.machine is None else len(led.machine.window)),
    )
    registry.gauge_from(
        prefix + "inflightbatchcount",
        "Runs of such records that are in the same state.",
        labels,
        each(lambda led: 0 if led.machine is None else len(led.machine.window.runs)),
    )
    registry.gauge_from(
        prefix + "waitingfetchcount", "Fetches that wait for records.", labels, each(lambda led: len(led.waiting))
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
    registry.counter_from(
        prefix + "recordacknowledgement_total",
        "What consumers said of records, by what they said.",
        ["group", "ack_type"],
        acknowledgements,
    )
    registry.counter_from(prefix + "recordsacquired_total", "Records given to consumers.", ["group"], acquired)

    _declare_dead_letter_metrics(registry, broker)

    def by_state() -> Rows:
        totals: dict[str, int] = {}
        try:
            counts = broker.groups.read_all(lambda shard, _: [shard.share.counts()])
        except ApiError:
            # A shard is being loaded: the next page shows them.
            return []
        for found in counts:
            for state, count in found.items():
                totals[state.lower()] = totals.get(state.lower(), 0) + count
        return [((state,), count) for state, count in totals.items()]

    registry.gauge_from(
        "kafka_server_group_coordinator_metrics_share_group_count", "Share groups by state.", ["state"], by_state
    )


def _declare_dead_letter_metrics(registry: Registry, broker: Broker) -> None:
    def each(value: Callable[[GroupCounters], int]) -> Callable[[], Rows]:
        return lambda: [((group,), value(found)) for group, found in broker.shares.counters.by_group.items()]

    prefix = "kafka_server_sharegroupmetrics_deadletterqueue"
    registry.counter_from(
        prefix + "recordcount_total", "Dead letters written.", ["group"], each(lambda found: found.dead_letters)
    )
    registry.counter_from(
        prefix + "totalproducerequests_total",
        "Writes of dead letters, each time they are tried.",
        ["group"],
        each(lambda found: found.dead_letter_requests),
    )
    registry.counter_from(
        prefix + "failedproducerequests_total",
        "Writes of dead letters that were given up.",
        ["group"],
        each(lambda found: found.dead_letter_failures),
    )


def _declare_coordinator_metrics(registry: Registry, broker: Broker) -> None:
    prefix = "kafka_server_share_coordinator_metrics_"
    registry.counter_from(
        prefix + "write_total",
        "Writes of share partitions' state; it begins anew when a shard is loaded.",
        [],
        lambda: [((), broker.share_state.write_count())],
    )
    registry.gauge_from(
        prefix + "num_partitions",
        "Shards of the share coordinator by state.",
        ["state"],
        lambda: [((state,), count) for state, count in broker.share_state.shard_counts().items()],
    )
