"""Apply the acknowledgements of a request to the share partitions, and collect the result of each."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Final, Protocol

from millbeck.coordinator.runtime.result import ResponseCallback
from millbeck.coordinator.share.partition.share_partition import Acknowledgement
from millbeck.coordinator.share.states import AcknowledgeType
from millbeck.kernel.errors import ApiError, InvalidRecordState, InvalidRequest, TopicAuthorizationFailed
from millbeck.security.authorizer import Operation, ResourceType
from millbeck.server.share.sessions import Place

if TYPE_CHECKING:
    from millbeck.server.network.call import Call
    from millbeck.server.share.partition_leader import SharePartitionLeader
    from millbeck.server.share.share_partition_manager import SharePartitionManager

TYPES_MAX: Final = AcknowledgeType.RENEW


class AcknowledgedBatch(Protocol):
    first_offset: int
    last_offset: int
    acknowledge_types: list[int]


def checked(batches: Iterable[AcknowledgedBatch], *, may_renew: bool) -> list[Acknowledgement]:
    """Validate a member's acknowledgements of a partition; raises INVALID_REQUEST."""
    found = []
    previous = -1
    for batch in batches:
        first, last, types = batch.first_offset, batch.last_offset, batch.acknowledge_types
        if first > last or first <= previous:
            raise InvalidRequest(f"the acknowledgement batch from offset {first} to {last} is out of order")
        if len(types) not in (1, last - first + 1):
            raise InvalidRequest(f"{len(types)} acknowledge types for {last - first + 1} offsets")
        if not all(AcknowledgeType.GAP <= each <= TYPES_MAX for each in types):
            raise InvalidRequest("unknown acknowledge type")
        if not may_renew and AcknowledgeType.RENEW in types:
            raise InvalidRequest("acknowledge type RENEW requires IsRenewAck in the request")
        found.append(Acknowledgement(first, last, types))
        previous = last
    return found


class PendingAcknowledgements:
    """The acknowledgements of one request."""

    def __init__(self, call: Call, group_id: str, member_id: str) -> None:
        self._call = call
        self._group_id = group_id
        self._member_id = member_id
        self._missing = 1
        self.errors: dict[Place, ApiError | None] = {}
        """The result per partition, None for success; complete when `is_done`."""
        self.on_done: Callable[[], None] = lambda: None

    @property
    def is_done(self) -> bool:
        return self._missing == 0

    def ask(self, place: Place, batches: Sequence[AcknowledgedBatch], *, may_renew: bool) -> None:
        self._missing += 1
        try:
            valid = checked(batches, may_renew=may_renew)
            led = find_acquired(self._call, self._group_id, place)
        except ApiError as error:
            self._put(place, error)
            return
        counters = self._call.broker.shares.counters

        def succeed(_: bool) -> None:
            for each in valid:
                if len(each.types) == 1:
                    counters.acknowledged(self._group_id, each.types[0], each.last_offset - each.first_offset + 1)
                else:
                    for kind in each.types:
                        counters.acknowledged(self._group_id, kind, 1)
            self._put(place, None)

        led.acknowledge(self._member_id, valid, ResponseCallback(succeed, lambda error: self._put(place, error)))

    def close(self) -> None:
        """Called when all acknowledgements have been submitted."""
        self._missing -= 1
        if not self._missing:
            self.on_done()

    def _put(self, place: Place, error: ApiError | None) -> None:
        if error is not None:
            self._call.broker.shares.counters.failed_acknowledgements += 1
        self.errors[place] = error
        self.close()


def check_may_read(call: Call, place: Place) -> None:
    name = call.broker.topics.name_of(place[0])
    if not call.may(Operation.READ, ResourceType.TOPIC, name):
        raise TopicAuthorizationFailed(f"not authorized to read topic {name}")


def find_acquired(call: Call, group_id: str, place: Place) -> SharePartitionLeader:
    """The share partition that the member may have acquired records of; raises ApiError when there is none."""
    check_may_read(call, place)
    shares: SharePartitionManager = call.broker.shares
    call.broker.topics.led_partition(*place)
    led = shares.known(group_id, *place)
    if led is None:
        raise InvalidRecordState("no records of this partition are acquired")
    return led
