"""Metrics of a broker's replicas under Kafka's names: ISR state, replica fetchers, state of the broker.

A partition is exported by the broker that leads it, so that sums over the brokers count it once; followers export their
lag. The partitions in the metadata are evaluated once per scraped image, yielding to the event loop in between.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, NamedTuple

from millbeck.kernel.metrics import Registry, Rows, RowsInParts
from millbeck.metadata.image import EMPTY, MetadataImage, PartitionRegistration
from millbeck.replication.fetcher import FetcherState as FetchState
from millbeck.replication.partition import NO_LEADER
from millbeck.server.broker_lifecycle import BrokerLifecycleState
from millbeck.server.metrics.recent import RecentRate
from millbeck.server.metrics.tables import declare_single

if TYPE_CHECKING:
    from millbeck.server.broker import Broker
    from millbeck.server.broker_lifecycle import BrokerLifecycleManager
    from millbeck.server.replicas.replica_fetchers import FetcherConnection

BROKER_STATES = {
    BrokerLifecycleState.STARTING: 1,
    BrokerLifecycleState.REGISTERED: 2,
    BrokerLifecycleState.RUNNING: 3,
    BrokerLifecycleState.LEAVING: 6,
    BrokerLifecycleState.STOPPED: 7,
}
"""The values of Kafka's BrokerState."""
ALL_FETCHERS = "Replica"
PARTITIONS_AT_ONCE = 1000
"""The maximum number of partitions evaluated per event loop iteration."""


class LeaderPartition(NamedTuple):
    """A partition led by this broker, from the metadata."""

    topic: str
    partition: int
    registration: PartitionRegistration
    needed: int
    """The required ISR size: ``min.insync.replicas``, at most the number of replicas."""

    @property
    def is_under_replicated(self) -> bool:
        """Whether a replica is missing from the ISR; replicas being added by a reassignment do not count."""
        registration = self.registration
        return len(registration.isr) < len(registration.replicas) - len(registration.adding_replicas)

    @property
    def is_under_min_isr(self) -> bool:
        return len(self.registration.isr) < self.needed

    @property
    def is_at_min_isr(self) -> bool:
        return len(self.registration.isr) == self.needed


class LeaderPartitionCounts(NamedTuple):
    under_replicated: int = 0
    under_min_isr: int = 0
    at_min_isr: int = 0
    reassigning: int = 0


class LeaderPartitions:
    """The partitions led by this broker, with counts; evaluated again by `evaluate` when the image has changed."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._image: MetadataImage = EMPTY
        self.all: list[LeaderPartition] = []
        self.counts = LeaderPartitionCounts()

    def evaluate(self) -> Iterator[None]:
        """Evaluate a new image; yields where the event loop may run. The old results stay until it is complete."""
        image = self._broker.image
        if image is self._image:
            return
        found: list[LeaderPartition] = []
        under_replicated = under_min_isr = at_min_isr = reassigning = 0
        node_id, here = self._broker.node_id, self._broker.topics.by_id
        looked_at = 0
        for topic_id, topic in image.topics.by_id.items():
            local = here.get(topic_id)
            if local is None:
                continue
            minimum = local.config.min_insync_replicas
            for index, registration in topic.partitions.items():
                looked_at += 1
                if looked_at % PARTITIONS_AT_ONCE == 0:
                    yield
                if registration.leader == node_id:
                    needed = min(minimum, len(registration.replicas))
                    led = LeaderPartition(topic.name, index, registration, needed)
                    found.append(led)
                    under_replicated += led.is_under_replicated
                    under_min_isr += led.is_under_min_isr
                    at_min_isr += led.is_at_min_isr
                    reassigning += registration.is_being_reassigned
        self._image, self.all = image, found
        self.counts = LeaderPartitionCounts(under_replicated, under_min_isr, at_min_isr, reassigning)


def declare_replica_metrics(registry: Registry, broker: Broker, membership: BrokerLifecycleManager) -> None:
    led = LeaderPartitions(broker)
    _declare_counts(registry, broker, led)
    _declare_partitions(registry, led)
    _declare_fetchers(registry, broker)
    _declare_lag(registry, broker)
    declare_single(
        registry,
        "kafka_server_",
        (
            (
                "kafkaserver_brokerstate",
                "1: starting; 2: recovery; 3: running; 6: pending controlled shutdown; 7: shutting down.",
                lambda: BROKER_STATES[membership.state],
            ),
            (
                "brokertopicmetrics_replicationbytesin_total",
                "Bytes fetched from leaders.",
                lambda: broker.replication.fetchers.bytes_in,
            ),
            (
                "brokertopicmetrics_replicationbytesout_total",
                "Bytes sent to followers.",
                lambda: broker.replication.bytes_out,
            ),
        ),
    )


def _declare_counts(registry: Registry, broker: Broker, led: LeaderPartitions) -> None:
    changes = broker.replication.isr_changes
    prefix = "kafka_server_replicamanager_"
    declare_single(
        registry,
        prefix,
        (
            ("partitioncount", "Partitions with a replica on this broker.", lambda: _replica_count(broker)),
            ("offlinereplicacount", "Offline replicas on this broker.", lambda: _offline_count(broker)),
            ("isrshrinks_total", "ISR shrinks of partitions led by this broker.", lambda: changes.shrinks),
            ("isrexpands_total", "ISR expansions of partitions led by this broker.", lambda: changes.expansions),
            (
                "failedisrupdates_total",
                "ISR changes that the controller rejected.",
                lambda: changes.failures,
            ),
        ),
    )
    table: tuple[tuple[str, str, Callable[[], int]], ...] = (
        ("leadercount", "Partitions led by this broker.", lambda: len(led.all)),
        (
            "underreplicatedpartitions",
            "Partitions led by this broker with a replica that is not in the ISR.",
            lambda: led.counts.under_replicated,
        ),
        (
            "underminisrpartitioncount",
            "Partitions led by this broker with an ISR below min.insync.replicas; acks=all writes are rejected.",
            lambda: led.counts.under_min_isr,
        ),
        (
            "atminisrpartitioncount",
            "Partitions led by this broker whose ISR size equals min.insync.replicas.",
            lambda: led.counts.at_min_isr,
        ),
        (
            "reassigningpartitions",
            "Partitions led by this broker that are being reassigned.",
            lambda: led.counts.reassigning,
        ),
    )
    for name, help_text, read in table:

        def rows(read: Callable[[], int] = read) -> RowsInParts:
            yield from led.evaluate()
            yield (), read()

        registry.callback_gauge(prefix + name, help_text, [], rows, in_parts=True)


def _replica_count(broker: Broker) -> int:
    return sum(len(topic.partitions) + len(topic.unusable) for topic in broker.topics.by_name.values())


def _offline_count(broker: Broker) -> int:
    offline = sum(partition.log.is_offline for partition in broker.topics.all_partitions())
    return offline + sum(len(topic.unusable) for topic in broker.topics.by_name.values())


def _declare_partitions(registry: Registry, led: LeaderPartitions) -> None:
    table: tuple[tuple[str, str, Callable[[LeaderPartition], int]], ...] = (
        (
            "topic_partition_replicas",
            "Number of replicas of the partition.",
            lambda each: len(each.registration.replicas),
        ),
        (
            "topic_partition_in_sync_replica",
            "Number of in-sync replicas of the partition.",
            lambda each: len(each.registration.isr),
        ),
        (
            "topic_partition_leader_is_preferred",
            "Whether the leader is the preferred replica.",
            lambda each: each.registration.has_preferred_leader,
        ),
        (
            "topic_partition_under_replicated_partition",
            "Whether a replica is not in the ISR.",
            lambda each: each.is_under_replicated,
        ),
        (
            "cluster_partition_replicascount",
            "Number of replicas of the partition.",
            lambda each: len(each.registration.replicas),
        ),
        (
            "cluster_partition_insyncreplicascount",
            "Number of in-sync replicas of the partition.",
            lambda each: len(each.registration.isr),
        ),
        (
            "cluster_partition_underreplicated",
            "Whether a replica is not in the ISR.",
            lambda each: each.is_under_replicated,
        ),
        (
            "cluster_partition_underminisr",
            "Whether the ISR is smaller than min.insync.replicas.",
            lambda each: each.is_under_min_isr,
        ),
        (
            "cluster_partition_atminisr",
            "Whether the ISR size equals min.insync.replicas.",
            lambda each: each.is_at_min_isr,
        ),
    )
    for name, help_text, number in table:

        def rows(number: Callable[[LeaderPartition], int] = number) -> RowsInParts:
            yield from led.evaluate()
            for each in led.all:
                yield (each.topic, each.partition), number(each)

        registry.callback_gauge(f"kafka_{name}", help_text, ["topic", "partition"], rows, in_parts=True)


def _declare_fetchers(registry: Registry, broker: Broker) -> None:
    fetchers = broker.replication.fetchers
    rates = FetchRates(broker)
    for name, help_text, read in (
        ("maxlag", "Maximum lag in records of a replica on this broker.", lambda: _lag_max(broker)),
        (
            "minfetchrate",
            "Fetches per second of the slowest replica fetcher; 0 without fetchers.",
            rates.read_slowest,
        ),
        (
            "failedpartitionscount",
            "Partitions followed by this broker that cannot be fetched.",
            lambda: _failed_count(broker),
        ),
        (
            "deadthreadcount",
            "Replica fetchers that have partitions to fetch but are stuck.",
            lambda: sum(line.is_stuck for line in fetchers.lines.values()),
        ),
    ):

        def rows(read: Callable[[], float] = read) -> Rows:
            return [((ALL_FETCHERS,), read())]

        registry.callback_gauge(f"kafka_server_replicafetchermanager_{name}", help_text, ["clientId"], rows)
    registry.callback_counter(
        "kafka_server_fetcherstats_requests_total",
        "Fetch requests sent by a replica fetcher.",
        ["clientId"],
        lambda: [((_client_id(*key),), line.requests) for key, line in fetchers.lines.items()],
    )
    registry.callback_counter(
        "kafka_server_fetcherstats_bytes_total",
        "Bytes received by a replica fetcher.",
        ["clientId"],
        lambda: [((_client_id(*key),), line.fetcher.bytes_in) for key, line in fetchers.lines.items()],
    )


def _declare_lag(registry: Registry, broker: Broker) -> None:
    def lags() -> RowsInParts:
        for key, line in list(broker.replication.fetchers.lines.items()):
            client_id = _client_id(*key)
            for followed in line.fetcher.followed:
                name = followed.partition.name
                yield (client_id, name.topic, name.partition), followed.lag

    registry.callback_gauge(
        "kafka_server_fetcherlagmetrics_consumerlag",
        "Lag in records of a replica on this broker behind its leader's high watermark.",
        ["clientId", "topic", "partition"],
        lags,
        in_parts=True,
    )


def _client_id(leader_id: int, number: int) -> str:
    return f"ReplicaFetcherThread-{number}-{leader_id}"


def _lag_max(broker: Broker) -> int:
    lines = broker.replication.fetchers.lines.values()
    return max((followed.lag for line in lines for followed in line.fetcher.followed), default=0)


def _failed_count(broker: Broker) -> int:
    """The number of followed partitions whose leader returned FENCED_LEADER_EPOCH, or whose log is offline.

    A partition without a leader counts as offline instead.
    """
    lines = broker.replication.fetchers.lines.values()
    fenced = sum(followed.state is FetchState.FENCED for line in lines for followed in line.fetcher.followed)
    return fenced + sum(
        each.log.is_offline and not each.is_leader and each.leader_id != NO_LEADER
        for each in broker.topics.all_partitions()
    )


class FetchRates:
    """The recent request rate of each fetcher."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._rates: dict[tuple[int, int], tuple[FetcherConnection, RecentRate]] = {}

    def read_slowest(self) -> float:
        now_s = self._broker.environment.clock.monotonic()
        before, self._rates = self._rates, {}
        found = []
        for key, line in self._broker.replication.fetchers.lines.items():
            known, rate = before.get(key, (None, None))
            if rate is None or known is not line:
                rate = RecentRate(line.requests, now_s)
            self._rates[key] = (line, rate)
            found.append(rate.read(line.requests, now_s))
        return min(found, default=0.0)
