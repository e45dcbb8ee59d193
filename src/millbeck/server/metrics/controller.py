"""The controller's metrics under Kafka's names: brokers, offline partitions, elections, event queue times.

Every controller, active or standby, exports the committed state; only ``activecontrollercount`` differs. The counts
cover all partitions and are computed once per scraped image. Elections are counted when they are committed; those
before the start of this process are not counted.
"""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Final

from millbeck.controller.counts import ControllerCounts, counts_of, elections_in
from millbeck.kernel.environment import Clock
from millbeck.kernel.histogram import Histogram
from millbeck.kernel.metrics import Registry, Rows
from millbeck.metadata.delta import MetadataDelta
from millbeck.metadata.image import BrokerRegistration, MetadataImage
from millbeck.raft.voters import Leader
from millbeck.server.loop.tasks import TimeSlices
from millbeck.server.metrics.metadata import MetadataLag
from millbeck.server.metrics.tables import declare_single

if TYPE_CHECKING:
    from millbeck.server.metadata.quorum_driver import QuorumDriver
    from millbeck.server.node import Node

FENCED = 10
IN_CONTROLLED_SHUTDOWN = 20
ACTIVE = 30
CHANGES_AT_ONCE: Final = 500


class ElectionWatch:
    """Counts leader elections in committed deltas; a subscriber of the quorum driver."""

    def __init__(self, clock: Clock, times_ms: Histogram) -> None:
        self._clock = clock
        self._started_ms = clock.wall_ms()
        self._times_ms = times_ms
        self.unclean = 0
        self.from_eligible = 0

    async def published(self, image: MetadataImage, delta: MetadataDelta) -> None:
        if image.timestamp_ms < self._started_ms:
            return
        took_ms = max(0, self._clock.wall_ms() - image.timestamp_ms)
        turns = TimeSlices(self._clock)
        changed = delta.topics.changed_partitions()
        while some := list(islice(changed, CHANGES_AT_ONCE)):
            found = elections_in(some)
            self.unclean += found.unclean
            self.from_eligible += found.from_eligible
            if found.elections:
                self._times_ms.record_many(took_ms, found.elections)
            await turns.yield_to_loop()


class ClusterCounts:
    """The counts of the committed image, computed again when the image has changed since the last read."""

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
    """Declare the controller's metrics; must be called before the quorum starts."""
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
                "Brokers in controlled shutdown.",
                lambda: counts.read().in_controlled_shutdown,
            ),
            ("globaltopiccount", "Topics in the cluster.", lambda: counts.read().topics),
            ("globalpartitioncount", "Partitions in the cluster.", lambda: counts.read().partitions),
            ("offlinepartitionscount", "Partitions without a leader.", lambda: counts.read().offline_partitions),
            (
                "preferredreplicaimbalancecount",
                "Partitions whose leader is not the preferred replica.",
                lambda: counts.read().preferred_replica_imbalance,
            ),
        ),
    )

    def registration_states() -> Rows:
        return [((broker.broker_id,), _state_of(broker)) for broker in quorum.image.cluster.brokers.values()]

    registry.callback_gauge(
        "kafka_controller_kafkacontroller_brokerregistrationstate",
        "State of each registered broker. 10: fenced; 20: in controlled shutdown; 30: active.",
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
            (
                "lastappliedrecordoffset",
                "Offset of the last metadata record applied on this controller.",
                lambda: quorum.image.offset,
            ),
            (
                "lastappliedrecordtimestamp",
                "Timestamp in milliseconds of the last applied metadata record.",
                lambda: quorum.image.timestamp_ms,
            ),
            (
                "lastappliedrecordlagms",
                "Milliseconds for which committed records have not been applied, or the leader is unknown.",
                lag.read_ms,
            ),
            (
                "lastcommittedrecordoffset",
                "Offset of the last committed metadata record.",
                lambda: quorum.high_watermark - 1,
            ),
            (
                "metadataerrorcount",
                "Inconsistent metadata records and failures of the metadata log.",
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
            (
                "newactivecontrollerscount",
                "Changes of the active controller that this node has seen.",
                lambda: leaders_seen,
            ),
            (
                "eventqueueoperationsstartedcount",
                "Controller events that this node has processed as the active controller.",
                lambda: quorum.statistics.decision_count,
            ),
            (
                "timedoutbrokerheartbeatcount",
                "Broker heartbeats that were not answered before the broker's session timed out.",
                lambda: quorum.statistics.late_heartbeat_count,
            ),
        ),
    )
    # The event loop is the controller's event queue: every event waits there until it is processed.
    node.watch.lateness_ms.append(
        registry.histogram(
            "kafka_controller_controllereventmanager_eventqueuetimems",
            "Milliseconds that a controller event waits in the event loop's queue.",
        ).child()
    )
    quorum.statistics.processing_ms = registry.histogram(
        "kafka_controller_controllereventmanager_eventqueueprocessingtimems",
        "Milliseconds that the active controller takes to process an event, including the append.",
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
                "Unclean leader elections: the new leader was not in the ISR, so acknowledged records may be lost.",
                lambda: watch.unclean,
            ),
            (
                "electionfromeligibleleaderreplicas_total",
                "Elections of an eligible leader replica (ELR): not in the ISR, but with all acknowledged records.",
                lambda: watch.from_eligible,
            ),
        ),
    )
