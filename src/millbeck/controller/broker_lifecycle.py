"""A broker's life as the controller sees it: registered, fenced and unfenced, shutting down, expired.

Theory of operation. A broker registers and is fenced. Its heartbeats say how far it has replayed the metadata log, and
what it wants. The legal moves, each made by a heartbeat but the last:

- fenced → unfenced when it does not want to be fenced and has seen its own registration;
- unfenced → fenced when it wants to be;
- unfenced → shutting down when it wants to end and leads anything: its leaders are moved, it leaves the ISRs;
- shutting down → may end, when it leads nothing and every active broker has replayed the hand-over;
- fenced, or unfenced and leading nothing → may end at once when it wants to;
- unfenced or shutting down → fenced when its session expires.

A broker that may end is fenced with the same answer. Directories that a heartbeat reports lost lose their leaders too.
"""

from __future__ import annotations

from enum import Enum
from typing import Final

from millbeck.controller import broker_changes
from millbeck.controller.config_rules import ConfigRules
from millbeck.controller.heartbeats import HeartbeatTracker
from millbeck.controller.nodes import Registration, register_broker, unregister_broker
from millbeck.controller.options import ControllerOptions
from millbeck.controller.result import Result
from millbeck.kernel.errors import BrokerIdNotRegistered, NotController
from millbeck.metadata.features import CORDONED_DIRECTORIES_FROM, DIRECTORY_ASSIGNMENT_FROM
from millbeck.metadata.image import BrokerRegistration, MetadataImage
from millbeck.metadata.records import BrokerRegistrationChangeRecord, MetadataRecord
from millbeck.wire.messages.broker_heartbeat import BrokerHeartbeatRequest, BrokerHeartbeatResponse

FENCED_AT_ONCE_MAX: Final = 500
"""Partitions that lose a silent broker in one decision: some five milliseconds of work."""


class BrokerState(Enum):
    FENCED = "fenced"
    UNFENCED = "unfenced"
    SHUTTING_DOWN = "shutting down"
    MAY_END = "may end"


class BrokerLifecycle:
    """``tracker`` is there while this node is the active controller."""

    def __init__(self, options: ControllerOptions, rules: ConfigRules) -> None:
        self._options = options
        self._rules = rules
        self.tracker: HeartbeatTracker | None = None

    def activate(self, image: MetadataImage, now_ms: int) -> None:
        self.tracker = HeartbeatTracker(self._options.session_timeout_ms)
        self.tracker.begin(image, now_ms)

    def deactivate(self) -> None:
        self.tracker = None

    def register(
        self, image: MetadataImage, registration: Registration, *, now_ms: int | None, has_live_session: bool
    ) -> Result[BrokerRegistration]:
        """With ``now_ms`` a process of the same id that is heard from keeps its id."""
        tracker = self.tracker
        existing = image.cluster.broker(registration.node_id)
        if tracker is not None and existing is not None and now_ms is not None:
            has_live_session = has_live_session or tracker.has_session(existing, now_ms)
        result = register_broker(
            image,
            registration,
            self._rules,
            cluster_id=self._options.cluster_id,
            has_live_session=has_live_session,
        )
        if tracker is not None and now_ms is not None:
            tracker.registered(result.response, offset=image.offset + 1, now_ms=now_ms)
        return result

    def unregister(self, image: MetadataImage, broker_id: int) -> Result[None]:
        result = unregister_broker(image, self._rules, broker_id)
        if self.tracker is not None:
            self.tracker.forget(broker_id)
        return result

    def fence(self, image: MetadataImage, broker_id: int, epoch: int) -> Result[None]:
        """The broker leads nothing from here on."""
        broker = _registered(image, broker_id, epoch)
        records = [] if broker.is_fenced else broker_changes.fenced(image, self._rules, broker)
        return Result(response=None, records=records, is_atomic=False)

    def unfence(self, image: MetadataImage, broker_id: int, epoch: int) -> Result[None]:
        """The broker may lead; it does at once where nobody else can. Partitions may follow in batches of their own."""
        broker = _registered(image, broker_id, epoch)
        records = broker_changes.unfenced(image, self._rules, broker) if broker.is_fenced else []
        return Result(response=None, records=records, is_atomic=False)

    def fence_one_stale(self, image: MetadataImage, now_ms: int) -> Result[int | None]:
        """Fence the broker not heard of for longest, if that is too long, or begin to; its id, or None.

        One at a time: the next is decided on what the first one's end has made of the cluster. A broker with more
        partitions than can be decided on in a few milliseconds stays the stale one until it has none in sync.
        """
        tracker = self._active_tracker()
        broker = tracker.stale_broker(image, now_ms)
        if broker is None:
            return Result(response=None)
        tracker.shutdown_ended(broker.broker_id)
        records = broker_changes.partly_fenced(image, self._rules, broker, partitions_max=FENCED_AT_ONCE_MAX)
        return Result(response=broker.broker_id, records=records, is_atomic=False)

    def heartbeat(
        self, image: MetadataImage, request: BrokerHeartbeatRequest, now_ms: int
    ) -> Result[BrokerHeartbeatResponse]:
        """`StaleBrokerEpoch` tells a process that another one has its id, or that it must register again."""
        tracker = self._active_tracker()
        broker = broker_changes.checked_broker(image, request.broker_id, request.broker_epoch)
        # Directories first: who is let in must not be given what it has just lost.
        records = self._directory_records(image, broker, request)
        image = broker_changes.after(image, records)
        broker = image.cluster.brokers[broker.broker_id]
        before = self._state_of(broker, now_ms)
        state = self._next_state(image, broker, before, request, now_ms)
        changes = [] if state is before else self._records_for(image, broker, state)
        if state is BrokerState.SHUTTING_DOWN:
            tracker.shutdown_begun(broker, offset=image.offset + len(changes), now_ms=now_ms)
        elif state is not BrokerState.UNFENCED:
            tracker.shutdown_ended(broker.broker_id)
        is_caught_up = tracker.is_caught_up(broker, request.current_metadata_offset, now_ms)
        tracker.heard(broker, metadata_offset=request.current_metadata_offset, now_ms=now_ms)
        response = BrokerHeartbeatResponse(
            is_caught_up=is_caught_up,
            is_fenced=state in (BrokerState.FENCED, BrokerState.MAY_END),
            should_shut_down=state is BrokerState.MAY_END,
        )
        return Result(response=response, records=records + changes, is_atomic=False)

    def _state_of(self, broker: BrokerRegistration, now_ms: int) -> BrokerState:
        if broker.is_fenced:
            return BrokerState.FENCED
        if self._active_tracker().is_shutting_down(broker, now_ms):
            return BrokerState.SHUTTING_DOWN
        return BrokerState.UNFENCED

    def _next_state(
        self,
        image: MetadataImage,
        broker: BrokerRegistration,
        state: BrokerState,
        request: BrokerHeartbeatRequest,
        now_ms: int,
    ) -> BrokerState:
        tracker = self._active_tracker()
        if state is BrokerState.FENCED:
            if request.want_shut_down:
                return BrokerState.MAY_END
            if request.want_fence or not tracker.is_caught_up(broker, request.current_metadata_offset, now_ms):
                return BrokerState.FENCED
            return BrokerState.UNFENCED
        if state is BrokerState.SHUTTING_DOWN:
            if broker_changes.leads_any(image, broker.broker_id):
                return BrokerState.SHUTTING_DOWN
            everybody_knows = tracker.all_have_seen_shutdown(image, broker, now_ms)
            return BrokerState.MAY_END if everybody_knows else BrokerState.SHUTTING_DOWN
        if request.want_fence:
            return BrokerState.MAY_END if request.want_shut_down else BrokerState.FENCED
        if request.want_shut_down:
            leads = broker_changes.leads_any(image, broker.broker_id)
            return BrokerState.SHUTTING_DOWN if leads else BrokerState.MAY_END
        return BrokerState.UNFENCED

    def _records_for(
        self, image: MetadataImage, broker: BrokerRegistration, state: BrokerState
    ) -> list[MetadataRecord]:
        if state is BrokerState.UNFENCED:
            return broker_changes.unfenced(image, self._rules, broker)
        if state is BrokerState.SHUTTING_DOWN:
            return broker_changes.shutting_down(image, self._rules, broker)
        return [] if broker.is_fenced else broker_changes.fenced(image, self._rules, broker)

    def _directory_records(
        self, image: MetadataImage, broker: BrokerRegistration, request: BrokerHeartbeatRequest
    ) -> list[MetadataRecord]:
        """What the heartbeat says of directories that is new."""
        records: list[MetadataRecord] = []
        if request.offline_log_dirs and image.features.metadata_version >= DIRECTORY_ASSIGNMENT_FROM:
            records += broker_changes.directories_lost(image, self._rules, broker, request.offline_log_dirs)
        cordoned = request.cordoned_log_dirs
        if (
            cordoned is not None
            and image.features.metadata_version >= CORDONED_DIRECTORIES_FROM
            and tuple(cordoned) != broker.cordoned_directories
        ):
            records.append(
                BrokerRegistrationChangeRecord(
                    broker_id=broker.broker_id, broker_epoch=broker.epoch, cordoned_log_dirs=list(cordoned)
                )
            )
        return records

    def _active_tracker(self) -> HeartbeatTracker:
        if self.tracker is None:
            raise NotController("This node is not the active controller.")
        return self.tracker


def _registered(image: MetadataImage, broker_id: int, epoch: int) -> BrokerRegistration:
    if image.cluster.broker(broker_id) is None:
        raise BrokerIdNotRegistered(f"Broker {broker_id} is not registered.")
    return broker_changes.checked_broker(image, broker_id, epoch)
