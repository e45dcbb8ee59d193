"""What a controller shows of the cluster, under Kafka's names: brokers, partitions without a leader, elections, load.

Every controller shows what is committed, the active one as well as those that stand by; only ``activecontrollercount``
tells them apart. The counts cover all partitions and are made once for each image that somebody asks about. Elections
are counted as they are committed; those from before this process are not its news.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from millbeck.controller.counts import ControllerCounts, counts_of, elections_in
from millbeck.kernel.environment import Clock
from millbeck.kernel.histogram import Histogram
from millbeck.kernel.metrics import Registry, Rows
from millbeck.metadata.delta import MetadataDelta
from millbeck.metadata.image import BrokerRegistration, MetadataImage
from millbeck.raft.voters import Leader
from millbeck.server.metadata_metrics import MetadataLag
from millbeck.server.metric_tables import declare_single

if TYPE_CHECKING:
    from millbeck.server.drivers.quorum import QuorumDriver
    from millbeck.server.node import Node

FENCED = 10
IN_CONTROLLED_SHUTDOWN = 20
ACTIVE = 30


class ElectionWatch:
    """Counts leaders as they change; a subscriber of the quorum's."""

    def __init__(self, clock: Clock, times_ms: Histogram) -> None:
        self._clock = clock
        self._started_ms = clock.wall_ms()
        self._times_ms = times_ms
        self.unclean = 0
        self.from_eligible = 0

    async def published(self, image: MetadataImage, delta: MetadataDelta) -> None:
        if image.timestamp_ms < self._started_ms:
            return
        found = elections_in(delta)
        self.unclean += found.unclean
        self.from_eligible += found.from_eligible
        took_ms = max(0, self._clock.wall_ms() - image.timestamp_ms)
        for _ in range(found.elections):
            self._times_ms.record(took_ms)


class ClusterCounts:
    """The counts of the committed image; it is gone through when it is another than at the last question."""

    def __init__(self, quorum: QuorumDriver) -> None:
        self._quorum = quorum
        self._image = quorum.image
        self._counts = counts_of(self._image)

    def read(self) -> ControllerCounts:
        image = self._quorum.image
        if image is not self._image:
            self._image, self._counts = image, counts_of(image)
        return self._counts


def declare_controller_metrics(node: Node) -> None:
    """To be called before the quorum starts."""
    _declare_cluster(node.registry, node.broker.quorum)
    _declare_applied(node.registry, node.broker.quorum)
    _declare_work(node)
    _declare_elections(node.registry, node.broker.quorum)


def _declare_cluster(registry: Registry, quorum: QuorumDriver) -> None:
    counts = ClusterCounts(quorum)
    declare_single(
        registry,
        "kafka_controller_kafkacontroller_",
        (
            ("activecontrollercount", "Whether this node is the active controller.", lambda: int(quorum.is_active)),
            ("activebrokercount", "Brokers that are registered and not fenced.", lambda: counts.read().active_brokers),
            ("fencedbrokercount", "Brokers that are registered and fenced.", lambda: counts.read().fenced_brokers),
            (
                "controlledshutdownbrokercount",
                "Brokers that are handing over what they lead.",
                lambda: counts.read().in_controlled_shutdown,
            ),
            ("globaltopiccount", "Topics of the cluster.", lambda: counts.read().topics),
            ("globalpartitioncount", "Partitions of the cluster.", lambda: counts.read().partitions),
            ("offlinepartitionscount", "Partitions without a leader.", lambda: counts.read().offline_partitions),
            (
                "preferredreplicaimbalancecount",
                "Partitions that are not led by the first of their replicas.",
                lambda: counts.read().preferred_replica_imbalance,
            ),
        ),
    )

    def registration_states() -> Rows:
        return [((broker.broker_id,), _state_of(broker)) for broker in quorum.image.cluster.brokers.values()]

    registry.gauge_from(
        "kafka_controller_kafkacontroller_brokerregistrationstate",
        "10: fenced; 20: in controlled shutdown; 30: active.",
        ["broker"],
        registration_states,
    )


def _state_of(broker: BrokerRegistration) -> int:
    return FENCED if broker.is_fenced else IN_CONTROLLED_SHUTDOWN if broker.in_controlled_shutdown else ACTIVE


def _declare_applied(registry: Registry, quorum: QuorumDriver) -> None:
    lag = MetadataLag(quorum, lambda: quorum.image)
    declare_single(
        registry,
        "kafka_controller_kafkacontroller_",
        (
            ("lastappliedrecordoffset", "The last metadata record applied here.", lambda: quorum.image.offset),
            (
                "lastappliedrecordtimestamp",
                "When that record was written, in milliseconds.",
                lambda: quorum.image.timestamp_ms,
            ),
            (
                "lastappliedrecordlagms",
                "For how long something committed has waited here, or no leader has been known.",
                lag.read_ms,
            ),
            ("lastcommittedrecordoffset", "The last metadata record committed.", lambda: quorum.high_watermark - 1),
            (
                "metadataerrorcount",
                "Contradictions in the metadata, and failures of its log.",
                lambda: quorum.statistics.fault_count,
            ),
        ),
    )


def _declare_work(node: Node) -> None:
    registry, quorum = node.registry, node.broker.quorum
    leaders_seen = 0

    def leader_changed(leader: Leader) -> None:
        nonlocal leaders_seen
        leaders_seen += leader.is_known

    quorum.on_leader_change(leader_changed)
    declare_single(
        registry,
        "kafka_controller_kafkacontroller_",
        (
            ("newactivecontrollerscount", "Active controllers this node has seen begin.", lambda: leaders_seen),
            (
                "eventqueueoperationsstartedcount",
                "Decisions this node has taken as the active controller.",
                lambda: quorum.statistics.decision_count,
            ),
            (
                "timedoutbrokerheartbeatcount",
                "Heartbeats that were answered, if at all, when the broker's session was over.",
                lambda: quorum.statistics.late_heartbeat_count,
            ),
        ),
    )
    # The event loop is the controller's queue: whatever is to be decided waits there for its turn.
    node.watch.lateness_ms.append(
        registry.histogram(
            "kafka_controller_controllereventmanager_eventqueuetimems",
            "Milliseconds that a decision waits for its turn of the event loop.",
        ).child()
    )
    quorum.statistics.processing_ms = registry.histogram(
        "kafka_controller_controllereventmanager_eventqueueprocessingtimems",
        "Milliseconds that the active controller spends on a decision, its append included.",
    ).child()


def _declare_elections(registry: Registry, quorum: QuorumDriver) -> None:
    times_ms = registry.histogram(
        "kafka_controller_controllerstats_leaderelectionrateandtimems",
        "Milliseconds from the election of a partition's leader to its commit.",
    ).child()
    watch = ElectionWatch(quorum.environment.clock, times_ms)
    quorum.subscribe(watch.published)
    declare_single(
        registry,
        "kafka_controller_controllerstats_",
        (
            (
                "uncleanleaderelections_total",
                "Leaders that were not in sync: acknowledged records may be lost.",
                lambda: watch.unclean,
            ),
            (
                "electionfromeligibleleaderreplicas_total",
                "Leaders that were not in sync and yet known to have every acknowledged record.",
                lambda: watch.from_eligible,
            ),
        ),
    )
