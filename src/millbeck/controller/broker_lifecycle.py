"""The lifecycle of brokers in the controller: registration, fencing and unfencing, shutdown, session expiry.

Theory of operation. A broker registers and is fenced. Its heartbeats contain the offset up to which it has replayed the
metadata log, and the state it wants. The transitions, each caused by a heartbeat except the last:

- fenced → unfenced when it does not want to be fenced and has replayed its own registration;
- unfenced → fenced when it wants to be;
- unfenced → shutting down when it wants to shut down and leads partitions: leadership is moved and it leaves the ISRs;
- shutting down → may shut down, when it leads no partition and every active broker has replayed the leader changes;
- fenced, or unfenced and leading no partition → may shut down at once when it wants to;
- unfenced or shutting down → fenced when its session expires.

A broker that may shut down is fenced with the same response. Replicas in directories that a heartbeat reports as failed
lose their leadership too.
"""

from __future__ import annotations

from enum import Enum
from typing import Final

from millbeck.controller import broker_changes
from millbeck.controller.config_rules import ConfigRules
from millbeck.controller.heartbeats import HeartbeatTracker
from millbeck.controller.nodes import NodeRegistration, register_broker, unregister_broker
from millbeck.controller.options import ControllerOptions
from millbeck.controller.result import Result, Steps
from millbeck.kernel.errors import BrokerIdNotRegistered, NotController
from millbeck.metadata.features import CORDONED_DIRECTORIES_FROM, DIRECTORY_ASSIGNMENT_FROM
from millbeck.metadata.image import BrokerRegistration, MetadataImage
from millbeck.metadata.records import BrokerRegistrationChangeRecord, MetadataRecord
from millbeck.wire.messages.nodes import BrokerHeartbeatRequest, BrokerHeartbeatResponse

FENCED_AT_ONCE_MAX: Final = 500
"""The maximum number of partitions that a broker without heartbeats is removed from in one decision: about five
milliseconds of work."""


class BrokerState(Enum):
    FENCED = "fenced"
    UNFENCED = "unfenced"
    SHUTTING_DOWN = "shutting down"
    MAY_END = "may end"


class BrokerLifecycle:
    """The brokers' lifecycle; ``tracker`` is set while this node is the active controller."""

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
        self, image: MetadataImage, registration: NodeRegistration, *, now_ms: int | None, has_live_session: bool
    ) -> Steps[Result[BrokerRegistration]]:
        """Register a broker. With ``now_ms``, an id whose session has not expired cannot be registered by another
        process."""
        tracker = self.tracker
        existing = image.cluster.broker(registration.node_id)
        if tracker is not None and existing is not None and now_ms is not None:
            has_live_session = has_live_session or tracker.has_session(existing, now_ms)
        result = yield from register_broker(
            image,
            registration,
            self._rules,
            cluster_id=self._options.cluster_id,
            has_live_session=has_live_session,
        )
        if tracker is not None and now_ms is not None:
            tracker.registered(result.response, offset=image.offset + 1, now_ms=now_ms)
        return result

    def unregister(self, image: MetadataImage, broker_id: int) -> Steps[Result[None]]:
        result = yield from unregister_broker(image, self._rules, broker_id)
        if self.tracker is not None:
            self.tracker.forget(broker_id)
        return result

    def fence(self, image: MetadataImage, broker_id: int, epoch: int) -> Steps[Result[None]]:
        """Fence the broker."""
        broker = _registered(image, broker_id, epoch)
        records = [] if broker.is_fenced else (yield from broker_changes.fenced(image, self._rules, broker))
        return Result(response=None, records=records, is_atomic=False)

    def unfence(self, image: MetadataImage, broker_id: int, epoch: int) -> Steps[Result[None]]:
        """Unfence the broker; it becomes leader where no other can. Partition changes may be separate batches."""
        broker = _registered(image, broker_id, epoch)
        records = (yield from broker_changes.unfenced(image, self._rules, broker)) if broker.is_fenced else []
        return Result(response=None, records=records, is_atomic=False)

    def fence_stale(self, image: MetadataImage, broker: BrokerRegistration, now_ms: int) -> Steps[Result[int]]:
        """Fence a broker whose session has expired, or begin to fence it; returns its id.

        Brokers are fenced one at a time: the next decision is based on the result of the one before. A broker with more
        partitions than fit in one decision remains the stale broker until it has left all ISRs.
        """
        tracker = self._active_tracker()
        contact_ms = tracker.last_contact_ms(broker, now_ms)
        records = yield from broker_changes.records_for_partial_fencing(
            image, self._rules, broker, partitions_max=FENCED_AT_ONCE_MAX
        )
        if tracker.last_contact_ms(broker, now_ms) != contact_ms:
            # A heartbeat arrived during this decision: the broker is alive.
            return Result(response=broker.broker_id)
        tracker.end_controlled_shutdown(broker.broker_id)
        tracker.fencing_begun(broker.broker_id)
        return Result(response=broker.broker_id, records=records, is_atomic=False)

    def heartbeat_arrived(self, request: BrokerHeartbeatRequest, now_ms: int) -> None:
        if self.tracker is not None:
            self.tracker.touch(request.broker_id, request.broker_epoch, now_ms)

    def reply_to_unchanged(
        self, committed: MetadataImage, image: MetadataImage, request: BrokerHeartbeatRequest, now_ms: int
    ) -> BrokerHeartbeatResponse | None:
        """The response to a heartbeat that changes nothing; None when it needs a decision, or when its response would
        contain uncommitted state.

        The response depends only on the broker's registration, which is the same in both images, and not on partitions.
        """
        tracker, broker = self._active_tracker(), image.cluster.broker(request.broker_id)
        if (
            broker is None
            or broker.epoch != request.broker_epoch
            or broker != committed.cluster.broker(broker.broker_id)
        ):
            return None
        if request.want_shut_down or tracker.is_partly_fenced(broker, now_ms):
            return None
        if _lost_directories(image, broker, request) or _cordons(image, broker, request):
            return None
        state = self._state_of(broker, now_ms)
        if state is BrokerState.SHUTTING_DOWN or state is not self._next_state(image, broker, state, request, now_ms):
            return None
        return self._reply(broker, state, request, now_ms)

    def heartbeat(
        self, image: MetadataImage, request: BrokerHeartbeatRequest, now_ms: int
    ) -> Steps[Result[BrokerHeartbeatResponse]]:
        """Handle a heartbeat; raises `StaleBrokerEpoch` if the broker's process is not the registered one."""
        tracker = self._active_tracker()
        broker = broker_changes.check_broker_epoch(image, request.broker_id, request.broker_epoch)
        # Directories first: an unfenced broker must not become leader of replicas that it has just lost.
        records = yield from self._directory_records(image, broker, request)
        image = yield from broker_changes.after(image, records)
        broker = image.cluster.brokers[broker.broker_id]
        before = self._state_of(broker, now_ms)
        state = self._next_state(image, broker, before, request, now_ms)
        changes = [] if state is before else (yield from self._records_for(image, broker, state))
        if state is before is BrokerState.UNFENCED and tracker.is_partly_fenced(broker, now_ms):
            # This controller or the previous one removed it from some partitions, which may have no leader now.
            changes = yield from broker_changes.regained(image, self._rules, broker)
        if state is BrokerState.SHUTTING_DOWN:
            tracker.begin_controlled_shutdown(broker, offset=image.offset + len(changes), now_ms=now_ms)
        elif state is not BrokerState.UNFENCED:
            tracker.end_controlled_shutdown(broker.broker_id)
        response = self._reply(broker, state, request, now_ms)
        return Result(response=response, records=records + changes, is_atomic=False)

    def _reply(
        self, broker: BrokerRegistration, state: BrokerState, request: BrokerHeartbeatRequest, now_ms: int
    ) -> BrokerHeartbeatResponse:
        tracker = self._active_tracker()
        tracker.heartbeat_received(broker, metadata_offset=request.current_metadata_offset, now_ms=now_ms)
        return BrokerHeartbeatResponse(
            is_caught_up=tracker.is_caught_up(broker, request.current_metadata_offset, now_ms),
            is_fenced=state in (BrokerState.FENCED, BrokerState.MAY_END),
            should_shut_down=state is BrokerState.MAY_END,
        )

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
            everybody_knows = tracker.can_shut_down(image, broker, now_ms)
            return BrokerState.MAY_END if everybody_knows else BrokerState.SHUTTING_DOWN
        if request.want_fence:
            return BrokerState.MAY_END if request.want_shut_down else BrokerState.FENCED
        if request.want_shut_down:
            leads = broker_changes.leads_any(image, broker.broker_id)
            return BrokerState.SHUTTING_DOWN if leads else BrokerState.MAY_END
        return BrokerState.UNFENCED

    def _records_for(
        self, image: MetadataImage, broker: BrokerRegistration, state: BrokerState
    ) -> Steps[list[MetadataRecord]]:
        if state is BrokerState.UNFENCED:
            return (yield from broker_changes.unfenced(image, self._rules, broker))
        if state is BrokerState.SHUTTING_DOWN:
            return (yield from broker_changes.records_for_controlled_shutdown(image, self._rules, broker))
        return [] if broker.is_fenced else (yield from broker_changes.fenced(image, self._rules, broker))

    def _directory_records(
        self, image: MetadataImage, broker: BrokerRegistration, request: BrokerHeartbeatRequest
    ) -> Steps[list[MetadataRecord]]:
        """The records for directory changes that a heartbeat reports."""
        records: list[MetadataRecord] = []
        if _lost_directories(image, broker, request):
            records += yield from broker_changes.records_for_offline_directories(
                image, self._rules, broker, request.offline_log_dirs
            )
        if _cordons(image, broker, request):
            records.append(
                BrokerRegistrationChangeRecord(
                    broker_id=broker.broker_id,
                    broker_epoch=broker.epoch,
                    cordoned_log_dirs=list(request.cordoned_log_dirs or ()),
                )
            )
        return records

    def _active_tracker(self) -> HeartbeatTracker:
        if self.tracker is None:
            raise NotController("This node is not the active controller.")
        return self.tracker


def _lost_directories(image: MetadataImage, broker: BrokerRegistration, request: BrokerHeartbeatRequest) -> bool:
    """Whether the heartbeat reports failed directories that are online in the image."""
    return image.features.metadata_version >= DIRECTORY_ASSIGNMENT_FROM and not set(broker.directories).isdisjoint(
        request.offline_log_dirs
    )


def _cordons(image: MetadataImage, broker: BrokerRegistration, request: BrokerHeartbeatRequest) -> bool:
    """Whether the heartbeat changes the set of cordoned directories."""
    return (
        request.cordoned_log_dirs is not None
        and image.features.metadata_version >= CORDONED_DIRECTORIES_FROM
        and tuple(request.cordoned_log_dirs) != broker.cordoned_directories
    )


def _registered(image: MetadataImage, broker_id: int, epoch: int) -> BrokerRegistration:
    if image.cluster.broker(broker_id) is None:
        raise BrokerIdNotRegistered(f"Broker {broker_id} is not registered.")
    return broker_changes.check_broker_epoch(image, broker_id, epoch)
