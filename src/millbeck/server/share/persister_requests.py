"""The share coordinator operations: each runs on a local shard, or becomes a request to another broker."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final, NamedTuple, Protocol

from millbeck.coordinator.runtime.result import ResponseCallback
from millbeck.coordinator.share.shard import ShareKey, ShareState, StateWrite
from millbeck.coordinator.share.states import StateBatch
from millbeck.kernel.errors import ApiError
from millbeck.kernel.ids import Uuid
from millbeck.server.coordinators.share_coordinator import ShareStateDriver, key_text
from millbeck.wire.messages import share_state as share_state_messages


class PersistedState(NamedTuple):
    """The state of a share partition as persisted by the share coordinator."""

    state_epoch: int
    start_offset: int
    batches: Sequence[StateBatch] = ()
    leader_epoch: int = -1
    delivery_complete_count: int = -1


NOTHING_STORED: Final = PersistedState(0, -1)


class PersisterRequest:
    """A pending operation on one share partition, with its callback."""

    __slots__ = ("argument", "deadline_ms", "key", "kind", "reply", "tries")

    def __init__(self, kind: PersisterOperation, key: ShareKey, argument: Any, reply: ResponseCallback[Any]) -> None:
        self.kind = kind
        self.key = key
        self.argument = argument
        self.reply = reply
        self.tries = 0
        self.deadline_ms: int | None = None
        """The time after which it is not retried; set by the first attempt."""


class PersisterOperation(Protocol):
    """One of the APIs that share coordinators serve."""

    response: type[Any]

    def run_here(
        self, driver: ShareStateDriver, request: PersisterRequest, reply: ResponseCallback[Any], now_ms: int
    ) -> None: ...

    def request(self, group_id: str, requests: Iterable[PersisterRequest]) -> Any: ...

    def value(self, result: Any) -> Any:
        """The value of a partition's result without an error."""


def _by_topic(requests: Iterable[PersisterRequest]) -> dict[Uuid, list[PersisterRequest]]:
    found: dict[Uuid, list[PersisterRequest]] = {}
    for request in requests:
        found.setdefault(request.key.topic_id, []).append(request)
    return found


class _Read:
    """ReadShareGroupState. ``argument`` is the leader epoch; returns `PersistedState`."""

    response = share_state_messages.ReadShareGroupStateResponse

    def run_here(
        self, driver: ShareStateDriver, request: PersisterRequest, reply: ResponseCallback[Any], now_ms: int
    ) -> None:
        def found(state: ShareState) -> None:
            reply.reply(PersistedState(state.state_epoch, state.start_offset, state.batches))

        key, leader_epoch = request.key, request.argument
        driver.write(key_text(key), lambda shard: shard.read(key, leader_epoch), ResponseCallback(found, reply.fail))

    def request(self, group_id: str, requests: Iterable[PersisterRequest]) -> Any:
        messages = share_state_messages
        return messages.ReadShareGroupStateRequest(
            group_id,
            [
                messages.ReadStateData(
                    topic,
                    [messages.ReadShareGroupStatePartition(each.key.partition, each.argument) for each in found],
                )
                for topic, found in _by_topic(requests).items()
            ],
        )

    def value(self, result: Any) -> PersistedState:
        batches = [
            StateBatch(each.first_offset, each.last_offset, each.delivery_state, each.delivery_count)
            for each in result.state_batches
        ]
        return PersistedState(result.state_epoch, result.start_offset, batches)


class _Write:
    """WriteShareGroupState. ``argument`` is a `StateWrite`."""

    response = share_state_messages.WriteShareGroupStateResponse

    def run_here(
        self, driver: ShareStateDriver, request: PersisterRequest, reply: ResponseCallback[Any], now_ms: int
    ) -> None:
        key, written = request.key, request.argument
        driver.write(key_text(key), lambda shard: shard.write(key, written, now_ms), reply)

    def request(self, group_id: str, requests: Iterable[PersisterRequest]) -> Any:
        messages = share_state_messages
        return messages.WriteShareGroupStateRequest(
            group_id,
            [
                messages.WriteStateData(topic, [self._partition(each.key.partition, each.argument) for each in found])
                for topic, found in _by_topic(requests).items()
            ],
        )

    def _partition(self, index: int, written: StateWrite) -> share_state_messages.WriteShareGroupStatePartition:
        messages = share_state_messages
        return messages.WriteShareGroupStatePartition(
            index,
            written.state_epoch,
            written.leader_epoch,
            written.start_offset,
            written.delivery_complete_count,
            [messages.StateBatch(*batch) for batch in written.batches],
        )

    def value(self, result: Any) -> bool:
        return True


class _Initialize:
    """InitializeShareGroupState. ``argument`` is (state epoch, start offset)."""

    response = share_state_messages.InitializeShareGroupStateResponse

    def run_here(
        self, driver: ShareStateDriver, request: PersisterRequest, reply: ResponseCallback[Any], now_ms: int
    ) -> None:
        key, (state_epoch, start_offset) = request.key, request.argument
        driver.write(
            key_text(key),
            lambda shard: shard.initialize(key, state_epoch=state_epoch, start_offset=start_offset, now_ms=now_ms),
            reply,
        )

    def request(self, group_id: str, requests: Iterable[PersisterRequest]) -> Any:
        messages = share_state_messages
        return messages.InitializeShareGroupStateRequest(
            group_id,
            [
                messages.InitializeStateData(
                    topic,
                    [messages.InitializeShareGroupStatePartition(each.key.partition, *each.argument) for each in found],
                )
                for topic, found in _by_topic(requests).items()
            ],
        )

    def value(self, result: Any) -> bool:
        return True


class _Delete:
    response = share_state_messages.DeleteShareGroupStateResponse

    def run_here(
        self, driver: ShareStateDriver, request: PersisterRequest, reply: ResponseCallback[Any], now_ms: int
    ) -> None:
        key = request.key
        driver.write(key_text(key), lambda shard: shard.delete(key), reply)

    def request(self, group_id: str, requests: Iterable[PersisterRequest]) -> Any:
        messages = share_state_messages
        return messages.DeleteShareGroupStateRequest(
            group_id,
            [
                messages.DeleteStateData(
                    topic, [messages.DeleteShareGroupStatePartition(each.key.partition) for each in found]
                )
                for topic, found in _by_topic(requests).items()
            ],
        )

    def value(self, result: Any) -> bool:
        return True


class _Summary:
    """ReadShareGroupStateSummary. Returns `PersistedState` without batches."""

    response = share_state_messages.ReadShareGroupStateSummaryResponse

    def run_here(
        self, driver: ShareStateDriver, request: PersisterRequest, reply: ResponseCallback[Any], now_ms: int
    ) -> None:
        def found(state: ShareState | None) -> None:
            reply.reply(NOTHING_STORED if state is None else summary_of(state))

        key = request.key
        driver.read(key_text(key), lambda shard, at: shard.summary(key, at), ResponseCallback(found, reply.fail))

    def request(self, group_id: str, requests: Iterable[PersisterRequest]) -> Any:
        messages = share_state_messages
        return messages.ReadShareGroupStateSummaryRequest(
            group_id,
            [
                messages.ReadStateSummaryData(
                    topic, [messages.ReadShareGroupStateSummaryPartition(each.key.partition, -1) for each in found]
                )
                for topic, found in _by_topic(requests).items()
            ],
        )

    def value(self, result: Any) -> PersistedState:
        return PersistedState(
            result.state_epoch, result.start_offset, (), result.leader_epoch, result.delivery_complete_count
        )


def summary_of(state: ShareState) -> PersistedState:
    return PersistedState(state.state_epoch, state.start_offset, (), state.leader_epoch, state.delivery_complete_count)


READ: Final = _Read()
WRITE: Final = _Write()
INITIALIZE: Final = _Initialize()
DELETE: Final = _Delete()
SUMMARY: Final = _Summary()


def failed(requests: Iterable[PersisterRequest], error: ApiError) -> list[tuple[PersisterRequest, ApiError]]:
    return [(request, error) for request in requests]
