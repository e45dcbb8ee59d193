"""What a broker shows of the replicas it has, under Kafka's names: in sync or not, fetching, state of the broker.

A partition is told of by the broker that leads it, so that sums over the brokers count it once; followers show how far
they are behind. What the metadata says of partitions is gone through once for each image that somebody asks about.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

from millbeck.kernel.metrics import Registry, Rows
from millbeck.metadata.image import EMPTY, MetadataImage, PartitionRegistration
from millbeck.replication.fetcher import State as FetchState
from millbeck.server.membership import State
from millbeck.server.metric_tables import declare_single
from millbeck.server.recent import RecentRate

if TYPE_CHECKING:
    from millbeck.server.broker import Broker
    from millbeck.server.drivers.replica_fetchers import FetchLine
    from millbeck.server.membership import Membership

BROKER_STATES = {State.STARTING: 1, State.REGISTERED: 2, State.RUNNING: 3, State.LEAVING: 6, State.STOPPED: 7}
"""Kafka's numbers."""
ALL_FETCHERS = "Replica"


class LedPartition(NamedTuple):
    """A partition led here, as the metadata has it."""

    topic: str
    partition: int
    registration: PartitionRegistration
    needed: int
    """How many in-sync replicas ``min.insync.replicas`` asks for, which is at most all of them."""

    @property
    def is_under_replicated(self) -> bool:
        """Whether one is missing; those that a reassignment adds are not yet missed."""
        registration = self.registration
        return len(registration.isr) < len(registration.replicas) - len(registration.adding_replicas)

    @property
    def is_under_min_isr(self) -> bool:
        return len(self.registration.isr) < self.needed

    @property
    def is_at_min_isr(self) -> bool:
        return len(self.registration.isr) == self.needed


class LedCounts(NamedTuple):
    under_replicated: int = 0
    under_min_isr: int = 0
    at_min_isr: int = 0
    reassigning: int = 0


class LedPartitions:
    """All of them; gone through when the image is another than at the last question."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._image: MetadataImage = EMPTY
        self._led: list[LedPartition] = []
        self._counts = LedCounts()

    def read(self) -> list[LedPartition]:
        self._look()
        return self._led

    def counts(self) -> LedCounts:
        self._look()
        return self._counts

    def _look(self) -> None:
        image = self._broker.image
        if image is self._image:
            return
        self._image, led = image, self._find(image)
        self._led = led
        self._counts = LedCounts(
            under_replicated=sum(each.is_under_replicated for each in led),
            under_min_isr=sum(each.is_under_min_isr for each in led),
            at_min_isr=sum(each.is_at_min_isr for each in led),
            reassigning=sum(each.registration.is_being_reassigned for each in led),
        )

    def _find(self, image: MetadataImage) -> list[LedPartition]:
        found = []
        node_id, here = self._broker.node_id, self._broker.topics.by_id
        for topic_id, topic in image.topics.by_id.items():
            local = here.get(topic_id)
            if local is None:
                continue
            minimum = local.config.min_insync_replicas
            for index, registration in topic.partitions.items():
                if registration.leader == node_id:
                    needed = min(minimum, len(registration.replicas))
                    found.append(LedPartition(topic.name, index, registration, needed))
        return found


def declare_replica_metrics(registry: Registry, broker: Broker, membership: Membership) -> None:
    led = LedPartitions(broker)
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
                "1: starting; 2: catching up; 3: running; 6: handing over; 7: stopping.",
                lambda: BROKER_STATES[membership.state],
            ),
            (
                "brokertopicmetrics_replicationbytesin_total",
                "Bytes copied from leaders.",
                lambda: broker.replication.fetchers.bytes_in,
            ),
            (
                "brokertopicmetrics_replicationbytesout_total",
                "Bytes given to followers.",
                lambda: broker.replication.bytes_out,
            ),
        ),
    )


def _declare_counts(registry: Registry, broker: Broker, led: LedPartitions) -> None:
    changes = broker.replication.isr_changes
    declare_single(
        registry,
        "kafka_server_replicamanager_",
        (
            ("partitioncount", "Partitions with a replica here.", lambda: _replica_count(broker)),
            ("leadercount", "Partitions led here.", lambda: len(led.read())),
            (
                "underreplicatedpartitions",
                "Partitions led here with a replica out of sync.",
                lambda: led.counts().under_replicated,
            ),
            (
                "underminisrpartitioncount",
                "Partitions led here with fewer replicas in sync than min.insync.replicas: acks=all is refused.",
                lambda: led.counts().under_min_isr,
            ),
            (
                "atminisrpartitioncount",
                "Partitions led here with just as many replicas in sync as min.insync.replicas asks for.",
                lambda: led.counts().at_min_isr,
            ),
            ("offlinereplicacount", "Replicas here that cannot be served.", lambda: _offline_count(broker)),
            (
                "reassigningpartitions",
                "Partitions led here that are being moved.",
                lambda: led.counts().reassigning,
            ),
            ("isrshrinks_total", "Times that replicas here lost one that was in sync.", lambda: changes.shrinks),
            ("isrexpands_total", "Times that replicas here gained one in sync.", lambda: changes.expansions),
            (
                "failedisrupdates_total",
                "Changes of in-sync replicas that the controller refused.",
                lambda: changes.failures,
            ),
        ),
    )


def _replica_count(broker: Broker) -> int:
    return sum(len(topic.partitions) + len(topic.unusable) for topic in broker.topics.by_name.values())


def _offline_count(broker: Broker) -> int:
    offline = sum(partition.log.is_offline for partition in broker.topics.all_partitions())
    return offline + sum(len(topic.unusable) for topic in broker.topics.by_name.values())


def _declare_partitions(registry: Registry, led: LedPartitions) -> None:
    table: tuple[tuple[str, str, Callable[[LedPartition], int]], ...] = (
        ("topic_partition_replicas", "Replicas.", lambda each: len(each.registration.replicas)),
        ("topic_partition_in_sync_replica", "Replicas in sync.", lambda each: len(each.registration.isr)),
        (
            "topic_partition_leader_is_preferred",
            "Whether the first replica leads.",
            lambda each: each.registration.has_preferred_leader,
        ),
        (
            "topic_partition_under_replicated_partition",
            "Whether a replica is out of sync.",
            lambda each: each.is_under_replicated,
        ),
        ("cluster_partition_replicascount", "Replicas.", lambda each: len(each.registration.replicas)),
        ("cluster_partition_insyncreplicascount", "Replicas in sync.", lambda each: len(each.registration.isr)),
        (
            "cluster_partition_underreplicated",
            "Whether a replica is out of sync.",
            lambda each: each.is_under_replicated,
        ),
        (
            "cluster_partition_underminisr",
            "Whether fewer replicas are in sync than min.insync.replicas asks for.",
            lambda each: each.is_under_min_isr,
        ),
        (
            "cluster_partition_atminisr",
            "Whether exactly as many replicas are in sync as min.insync.replicas asks for.",
            lambda each: each.is_at_min_isr,
        ),
    )
    for name, help_text, number in table:

        def rows(number: Callable[[LedPartition], int] = number) -> Rows:
            return [((each.topic, each.partition), number(each)) for each in led.read()]

        registry.gauge_from(f"kafka_{name}", help_text, ["topic", "partition"], rows)


def _declare_fetchers(registry: Registry, broker: Broker) -> None:
    fetchers = broker.replication.fetchers
    rates = FetchRates(broker)
    for name, help_text, read in (
        ("maxlag", "Records that the slowest replica here is behind its leader.", lambda: _lag_max(broker)),
        (
            "minfetchrate",
            "Fetches a second of the slowest fetcher; 0 without any.",
            rates.read_slowest,
        ),
        ("failedpartitionscount", "Replicas here that should be fetched and cannot be.", lambda: _failed_count(broker)),
        (
            "deadthreadcount",
            "Fetchers that have something to ask and do not.",
            lambda: sum(line.is_stuck for line in fetchers.lines.values()),
        ),
    ):

        def rows(read: Callable[[], float] = read) -> Rows:
            return [((ALL_FETCHERS,), read())]

        registry.gauge_from(f"kafka_server_replicafetchermanager_{name}", help_text, ["clientId"], rows)
    registry.counter_from(
        "kafka_server_fetcherstats_requests_total",
        "Fetches sent.",
        ["clientId"],
        lambda: [((_client_id(*key),), line.requests) for key, line in fetchers.lines.items()],
    )
    registry.counter_from(
        "kafka_server_fetcherstats_bytes_total",
        "Bytes fetched.",
        ["clientId"],
        lambda: [((_client_id(*key),), line.fetcher.bytes_in) for key, line in fetchers.lines.items()],
    )


def _declare_lag(registry: Registry, broker: Broker) -> None:
    def lags() -> Rows:
        for key, line in broker.replication.fetchers.lines.items():
            client_id = _client_id(*key)
            for followed in line.fetcher.followed:
                name = followed.partition.name
                yield (client_id, name.topic, name.partition), followed.lag

    registry.gauge_from(
        "kafka_server_fetcherlagmetrics_consumerlag",
        "Records that a replica here is behind its leader's high watermark.",
        ["clientId", "topic", "partition"],
        lags,
    )


def _client_id(leader_id: int, number: int) -> str:
    return f"ReplicaFetcherThread-{number}-{leader_id}"


def _lag_max(broker: Broker) -> int:
    lines = broker.replication.fetchers.lines.values()
    return max((followed.lag for line in lines for followed in line.fetcher.followed), default=0)


def _failed_count(broker: Broker) -> int:
    """Fenced by their leader, of which no newer metadata has told us; or without a log that takes anything."""
    lines = broker.replication.fetchers.lines.values()
    fenced = sum(followed.state is FetchState.FENCED for line in lines for followed in line.fetcher.followed)
    return fenced + sum(each.log.is_offline and not each.is_leader for each in broker.topics.all_partitions())


class FetchRates:
    """How often each fetcher has asked lately."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._rates: dict[tuple[int, int], tuple[FetchLine, RecentRate]] = {}

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
