"""Finds the positions of partitions: committed offsets, resets by policy, and validation after a leader change.

One task serves all partitions that wait for something and ends when none does. Retriable errors are retried; others,
and a reset policy of none, are reported, and the next poll starts again. A partition without a leader, or a broker that
does not answer, does not delay the other partitions.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Final

from millbeck.client.cluster import Cluster
from millbeck.client.consumer.config import ConsumerConfig, duration_ms
from millbeck.client.consumer.positions import FetchState, SubscriptionState, TopicPartitionState
from millbeck.client.errors import LogTruncated, NoOffsetForPartition, UnsupportedByBroker
from millbeck.client.offset_requests import by_topic, error_of, list_offsets
from millbeck.client.retry import Deadline
from millbeck.kernel.errors import ApiError
from millbeck.kernel.ids import TopicPartition
from millbeck.wire.messages.log_offsets import (
    EpochEndOffset,
    ListOffsetsPartitionResponse,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)

LATEST: Final = -1
EARLIEST: Final = -2

Committed = Mapping[TopicPartition, tuple[int, int]]
"""Offset and leader epoch by partition; a partition without a committed offset is missing."""


class OffsetFetcher:
    def __init__(
        self,
        cluster: Cluster,
        config: ConsumerConfig,
        positions: SubscriptionState,
        *,
        find_committed: Callable[[list[TopicPartition], Deadline], Awaitable[Committed]],
        on_change: Callable[[], None],
        on_error: Callable[[ApiError], None],
    ) -> None:
        self._cluster = cluster
        self._config = config
        self._positions = positions
        self._find_committed = find_committed
        self._on_change = on_change
        self._on_error = on_error
        self._task: asyncio.Task[ApiError | None] | None = None
        cluster.on_update.append(self._check_leaders)

    def wake(self) -> None:
        if self._task is None and any(state.waits_for is not FetchState.NOTHING for state in self._positions):
            self._task = self._cluster.spawn(self._run())
            self._task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[ApiError | None]) -> None:
        # The next poll may start again, so the task must be marked as ended before its error is reported.
        self._task = None
        error = None if task.cancelled() or task.exception() is not None else task.result()
        if error is not None:
            self._on_error(error)

    def _check_leaders(self) -> None:
        self._look_at_leaders()
        self.wake()

    def _look_at_leaders(self) -> None:
        """Validate the positions of partitions with a new leader again, because its log may be shorter."""
        for state in self._positions:
            if not state.has_position:
                continue
            try:
                leader_epoch = self._cluster.metadata.partition(*state.partition).leader_epoch
            except ApiError:
                continue
            if leader_epoch > state.validated_epoch:
                if state.offset_epoch < 0:
                    state.validated(leader_epoch)
                else:
                    state.validate()

    async def _run(self) -> ApiError | None:
        """Work until no partition waits; returns a fatal error, if there is one."""
        failures = 0
        while True:
            waiting = [state for state in self._positions if state.waits_for is not FetchState.NOTHING]
            if not waiting:
                return None
            try:
                await self._work(waiting)
                failures = 0
            except ApiError as error:
                if not error.retriable:
                    return error
                failures += 1
                self._cluster.request_refresh()
                await asyncio.sleep(self._cluster.backoff.delay_s(failures))

    async def _work(self, waiting: list[TopicPartitionState]) -> None:
        deadline = Deadline(self._config.default_api_timeout_ms / 1000)
        uncommitted = [state for state in waiting if state.waits_for is FetchState.COMMITTED_OFFSET]
        if uncommitted:
            await self._start_from_committed(uncommitted, deadline)
        resets = [state for state in waiting if state.waits_for is FetchState.RESET]
        unvalidated = [state for state in waiting if state.waits_for is FetchState.VALIDATION]
        try:
            if resets:
                await self._reset(resets, deadline)
            if unvalidated:
                await self._validate(unvalidated, deadline)
        finally:
            self._on_change()

    def _is_current(self, state: TopicPartitionState, turn: int) -> bool:
        return state.turn == turn and self._positions.get(state.partition) is state

    # committed offsets

    async def _start_from_committed(self, states: list[TopicPartitionState], deadline: Deadline) -> None:
        turns = {state.partition: state.turn for state in states}
        committed = await self._find_committed([state.partition for state in states], deadline)
        for state in states:
            if not self._is_current(state, turns[state.partition]):
                continue
            found = committed.get(state.partition)
            if found is None:
                state.reset()
            else:
                state.seek(*found)
        # The log may have been truncated since the commit; validation by leader epoch detects that.
        self._look_at_leaders()

    # resets

    def _reset_timestamp(self, state: TopicPartitionState) -> int:
        if state.reset_timestamp is not None:
            return state.reset_timestamp
        policy = self._config.auto_offset_reset
        if policy in ("earliest", "latest"):
            return EARLIEST if policy == "earliest" else LATEST
        before_ms = duration_ms(policy)
        if before_ms is None:
            raise NoOffsetForPartition(f"{state.partition} has no committed offset, and auto.offset.reset is none")
        return max(0, self._cluster.environment.clock.wall_ms() - before_ms)

    async def _reset(self, states: list[TopicPartitionState], deadline: Deadline) -> None:
        turns = {state.partition: state.turn for state in states}
        timestamps = {state.partition: self._reset_timestamp(state) for state in states}
        found, failed = await self._look_up(timestamps, deadline)
        # If no record is that late, start at the end.
        late = [partition for partition, answer in found.items() if answer.offset < 0]
        if late:
            ends, without_end = await self._look_up(dict.fromkeys(late, LATEST), deadline)
            found = {partition: answer for partition, answer in found.items() if answer.offset >= 0} | ends
            failed += without_end
        for state in states:
            answer = found.get(state.partition)
            if answer is not None and self._is_current(state, turns[state.partition]):
                state.seek(max(0, answer.offset), answer.leader_epoch)
                # The leader itself returned the offset, so it needs no validation.
                state.validated(self._cluster.metadata.partition(*state.partition).leader_epoch)
        _raise_first(failed)

    async def list_offsets(
        self, timestamps: Mapping[TopicPartition, int], deadline: Deadline
    ) -> dict[TopicPartition, ListOffsetsPartitionResponse]:
        """The offsets from the leaders of all partitions; raises the first error."""
        found, failed = await self._look_up(timestamps, deadline)
        _raise_first(failed)
        return found

    async def _look_up(
        self, timestamps: Mapping[TopicPartition, int], deadline: Deadline
    ) -> tuple[dict[TopicPartition, ListOffsetsPartitionResponse], list[ApiError]]:
        """The offsets from the leaders, and an error for each partition without one."""
        found: dict[TopicPartition, ListOffsetsPartitionResponse] = {}
        by_leader, failed = await self._by_leader(timestamps, deadline)
        for node_id, led in by_leader.items():
            try:
                answers = await list_offsets(
                    self._cluster,
                    node_id,
                    {partition: timestamps[partition] for partition in led},
                    isolation_level=int(self._config.reads_committed),
                    deadline=deadline,
                    checks_epochs=True,
                )
            except ApiError as error:
                failed.append(error)
                continue
            for partition, answer in answers.items():
                if isinstance(answer, ApiError):
                    failed.append(answer)
                else:
                    found[partition] = answer
        return found, failed

    async def _by_leader(
        self, partitions: Iterable[TopicPartition], deadline: Deadline
    ) -> tuple[dict[int, list[TopicPartition]], list[ApiError]]:
        """Partitions by leader id, and an error for each partition whose leader is not known."""
        metadata = self._cluster.metadata
        wanted = list(partitions)
        if self._cluster.add_topics([partition.topic for partition in wanted]) or any(
            partition.topic not in metadata.topics for partition in wanted
        ):
            await self._cluster.refresh(deadline)
        grouped: dict[int, list[TopicPartition]] = {}
        failed: list[ApiError] = []
        for partition in wanted:
            try:
                grouped.setdefault(metadata.leader(*partition).node_id, []).append(partition)
            except ApiError as error:
                failed.append(error)
        return grouped, failed

    # changes of leader

    async def _validate(self, states: list[TopicPartitionState], deadline: Deadline) -> None:
        by_partition = {state.partition: (state, state.turn) for state in states}
        by_leader, failed = await self._by_leader(by_partition, deadline)
        for node_id, led in by_leader.items():
            epochs = {partition: self._cluster.metadata.partition(*partition).leader_epoch for partition in led}
            try:
                answers = await self._ask_epoch_ends(node_id, led, by_partition, epochs, deadline)
            except UnsupportedByBroker:
                answers = {}
            except ApiError as error:
                failed.append(error)
                continue
            for partition in led:
                state, turn = by_partition[partition]
                if not self._is_current(state, turn):
                    continue
                answer = answers.get(partition)
                if answer is not None and answer.error_code:
                    failed.append(error_of(partition, answer.error_code))
                    continue
                self._conclude(state, answer, epochs[partition])
        _raise_first(failed)

    async def _ask_epoch_ends(
        self,
        node_id: int,
        led: list[TopicPartition],
        by_partition: Mapping[TopicPartition, tuple[TopicPartitionState, int]],
        epochs: Mapping[TopicPartition, int],
        deadline: Deadline,
    ) -> dict[TopicPartition, EpochEndOffset]:
        request = OffsetForLeaderEpochRequest(
            replica_id=-1,
            topics=[
                OffsetForLeaderTopic(
                    topic=topic,
                    partitions=[
                        OffsetForLeaderPartition(
                            partition=number,
                            current_leader_epoch=epochs[TopicPartition(topic, number)],
                            leader_epoch=by_partition[TopicPartition(topic, number)][0].offset_epoch,
                        )
                        for number in numbers
                    ],
                )
                for topic, numbers in by_topic(led).items()
            ],
        )
        response = await self._cluster.request(
            request, OffsetForLeaderEpochResponse, deadline=deadline, node_id=node_id
        )
        return {
            TopicPartition(topic.topic, found.partition): found
            for topic in response.topics
            for found in topic.partitions
        }

    def _conclude(self, state: TopicPartitionState, answer: EpochEndOffset | None, leader_epoch: int) -> None:
        if answer is None or 0 <= state.position <= answer.end_offset:
            state.validated(leader_epoch)
            return
        if self._config.auto_offset_reset == "none":
            raise LogTruncated(
                f"{state.partition} ends at {answer.end_offset} in epoch {answer.leader_epoch}, "
                f"but {state.position} was read already; auto.offset.reset is none"
            )
        if answer.end_offset < 0:
            state.reset()
            return
        state.seek(answer.end_offset, answer.leader_epoch)
        state.validated(leader_epoch)


def _raise_first(errors: list[ApiError]) -> None:
    """Raise the first error that is not retriable, or else the first one."""
    for error in [error for error in errors if not error.retriable] or errors:
        raise error
