"""What is asked of a share coordinator: each is an operation of a shard here, or a request to another broker."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final, NamedTuple, Protocol

from millbeck.coordinator.runtime.result import Reply
from millbeck.coordinator.share.shard import ShareKey, ShareState, Written
from millbeck.coordinator.share.states import StateBatch
from millbeck.kernel.errors import ApiError
from millbeck.kernel.ids import Uuid
from millbeck.server.drivers.share_state import ShareStateDriver, key_text
from millbeck.wire.messages import (
    delete_share_group_state,
    initialize_share_group_state,
    read_share_group_state,
    read_share_group_state_summary,
    write_share_group_state,
)


class Stored(NamedTuple):
    """What a share coordinator says of a share partition."""

    state_epoch: int
    start_offset: int
    batches: Sequence[StateBatch] = ()
    leader_epoch: int = -1
    delivery_complete_count: int = -1


NOTHING_STORED: Final = Stored(0, -1)


class Errand:
    """One question about one share partition, and the place its answer goes."""

    __slots__ = ("argument", "key", "kind", "reply", "tries")

    def __init__(self, kind: Kind, key: ShareKey, argument: Any, reply: Reply[Any]) -> None:
        self.kind = kind
        self.key = key
        self.argument = argument
        self.reply = reply
        self.tries = 0


class Kind(Protocol):
    """One of the APIs that share coordinators serve."""

    response: type[Any]

    def run_here(self, driver: ShareStateDriver, errand: Errand, reply: Reply[Any], now_ms: int) -> None: ...

    def request(self, group_id: str, errands: Iterable[Errand]) -> Any: ...

    def value(self, result: Any) -> Any:
        """What a partition's result without an error says."""


def _by_topic(errands: Iterable[Errand]) -> dict[Uuid, list[Errand]]:
    found: dict[Uuid, list[Errand]] = {}
    for errand in errands:
        found.setdefault(errand.key.topic_id, []).append(errand)
    return found


class _Read:
    """``argument``: the leader's epoch. Answers with `Stored`."""

    response = read_share_group_state.ReadShareGroupStateResponse

    def run_here(self, driver: ShareStateDriver, errand: Errand, reply: Reply[Any], now_ms: int) -> None:
        def found(state: ShareState) -> None:
            reply.reply(Stored(state.state_epoch, state.start_offset, state.batches))

        key, leader_epoch = errand.key, errand.argument
        driver.write(key_text(key), lambda shard: shard.read(key, leader_epoch), Reply(found, reply.fail))

    def request(self, group_id: str, errands: Iterable[Errand]) -> Any:
        messages = read_share_group_state
        return messages.ReadShareGroupStateRequest(
            group_id,
            [
                messages.ReadStateData(
                    topic,
                    [messages.ReadShareGroupStatePartition(each.key.partition, each.argument) for each in found],
                )
                for topic, found in _by_topic(errands).items()
            ],
        )

    def value(self, result: Any) -> Stored:
        batches = [
            StateBatch(each.first_offset, each.last_offset, each.delivery_state, each.delivery_count)
            for each in result.state_batches
        ]
        return Stored(result.state_epoch, result.start_offset, batches)


class _Write:
    """``argument``: a `Written`."""

    response = write_share_group_state.WriteShareGroupStateResponse

    def run_here(self, driver: ShareStateDriver, errand: Errand, reply: Reply[Any], now_ms: int) -> None:
        key, written = errand.key, errand.argument
        driver.write(key_text(key), lambda shard: shard.write(key, written, now_ms), reply)

    def request(self, group_id: str, errands: Iterable[Errand]) -> Any:
        messages = write_share_group_state
        return messages.WriteShareGroupStateRequest(
            group_id,
            [
                messages.WriteStateData(topic, [self._partition(each.key.partition, each.argument) for each in found])
                for topic, found in _by_topic(errands).items()
            ],
        )

    def _partition(self, index: int, written: Written) -> write_share_group_state.WriteShareGroupStatePartition:
        messages = write_share_group_state
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
    """``argument``: (state epoch, start offset)."""

    response = initialize_share_group_state.InitializeShareGroupStateResponse

    def run_here(self, driver: ShareStateDriver, errand: Errand, reply: Reply[Any], now_ms: int) -> None:
        key, (state_epoch, start_offset) = errand.key, errand.argument
        driver.write(
            key_text(key),
            lambda shard: shard.initialize(key, state_epoch=state_epoch, start_offset=start_offset, now_ms=now_ms),
            reply,
        )

    def request(self, group_id: str, errands: Iterable[Errand]) -> Any:
        messages = initialize_share_group_state
        return messages.InitializeShareGroupStateRequest(
            group_id,
            [
                messages.InitializeStateData(
                    topic,
                    [messages.InitializeShareGroupStatePartition(each.key.partition, *each.argument) for each in found],
                )
                for topic, found in _by_topic(errands).items()
            ],
        )

    def value(self, result: Any) -> bool:
        return True


class _Delete:
    response = delete_share_group_state.DeleteShareGroupStateResponse

    def run_here(self, driver: ShareStateDriver, errand: Errand, reply: Reply[Any], now_ms: int) -> None:
        key = errand.key
        driver.write(key_text(key), lambda shard: shard.delete(key), reply)

    def request(self, group_id: str, errands: Iterable[Errand]) -> Any:
        messages = delete_share_group_state
        return messages.DeleteShareGroupStateRequest(
            group_id,
            [
                messages.DeleteStateData(
                    topic, [messages.DeleteShareGroupStatePartition(each.key.partition) for each in found]
                )
                for topic, found in _by_topic(errands).items()
            ],
        )

    def value(self, result: Any) -> bool:
        return True


class _Summary:
    """Answers with `Stored` without batches."""

    response = read_share_group_state_summary.ReadShareGroupStateSummaryResponse

    def run_here(self, driver: ShareStateDriver, errand: Errand, reply: Reply[Any], now_ms: int) -> None:
        def found(state: ShareState | None) -> None:
            reply.reply(NOTHING_STORED if state is None else summary_of(state))

        key = errand.key
        driver.read(key_text(key), lambda shard, at: shard.summary(key, at), Reply(found, reply.fail))

    def request(self, group_id: str, errands: Iterable[Errand]) -> Any:
        messages = read_share_group_state_summary
        return messages.ReadShareGroupStateSummaryRequest(
            group_id,
            [
                messages.ReadStateSummaryData(
                    topic, [messages.ReadShareGroupStateSummaryPartition(each.key.partition, -1) for each in found]
                )
                for topic, found in _by_topic(errands).items()
            ],
        )

    def value(self, result: Any) -> Stored:
        return Stored(result.state_epoch, result.start_offset, (), result.leader_epoch, result.delivery_complete_count)


def summary_of(state: ShareState) -> Stored:
    return Stored(state.state_epoch, state.start_offset, (), state.leader_epoch, state.delivery_complete_count)


READ: Final = _Read()
WRITE: Final = _Write()
INITIALIZE: Final = _Initialize()
DELETE: Final = _Delete()
SUMMARY: Final = _Summary()


def failed(errands: Iterable[Errand], error: ApiError) -> list[tuple[Errand, ApiError]]:
    return [(errand, error) for errand in errands]
