"""Finds positions: committed offsets, resets by policy, and whether a position survived a change of leader.

One task works on every partition that waits for something and ends when none does. Retriable errors are retried;
others, and a policy of none, are reported, and the next poll begins again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Final

from millbeck.client.cluster import Cluster
from millbeck.client.consumer.config import ConsumerConfig, duration_ms
from millbeck.client.consumer.positions import Missing, PartitionState, Positions
from millbeck.client.errors import LogTruncated, NoOffsetForPartition, UnsupportedByBroker
from millbeck.client.offset_requests import by_topic, list_offsets
from millbeck.client.retry import Deadline
from millbeck.kernel.errors import ApiError, from_code
from millbeck.kernel.ids import TopicPartition
from millbeck.wire.messages.list_offsets import ListOffsetsPartitionResponse
from millbeck.wire.messages.offset_for_leader_epoch import (
    EpochEndOffset,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)

LATEST: Final = -1
EARLIEST: Final = -2

Committed = Mapping[TopicPartition, tuple[int, int]]
"""Offset and leader epoch; a partition without a committed offset is missing."""


class OffsetFinder:
    def __init__(
        self,
        cluster: Cluster,
        config: ConsumerConfig,
        positions: Positions,
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
        if self._task is None and any(state.waits_for is not Missing.NOTHING for state in self._positions):
            self._task = self._cluster.spawn(self._run())
            self._task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[ApiError | None]) -> None:
        # The next poll may begin again, so the task is over before anybody hears of its error.
        self._task = None
        error = None if task.cancelled() or task.exception() is not None else task.result()
        if error is not None:
            self._on_error(error)

    def _check_leaders(self) -> None:
        self._look_at_leaders()
        self.wake()

    def _look_at_leaders(self) -> None:
        """A position is looked at again when its partition has a new leader, which may know less."""
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
        """Work until nothing waits; the error that nothing can be done about here."""
        failures = 0
        while True:
            waiting = [state for state in self._positions if state.waits_for is not Missing.NOTHING]
            if not waiting:
                return None
            try:
                await self._work(waiting)
                failures = 0
            except ApiError as error:
                if not error.retriable:
                    return error
                failures += 1
                self._cluster.refresh_soon()
                await asyncio.sleep(self._cluster.backoff.delay_s(failures))

    async def _work(self, waiting: list[PartitionState]) -> None:
        deadline = Deadline(self._config.default_api_timeout_ms / 1000)
        uncommitted = [state for state in waiting if state.waits_for is Missing.COMMITTED_OFFSET]
        if uncommitted:
            await self._start_from_committed(uncommitted, deadline)
        resets = [state for state in waiting if state.waits_for is Missing.RESET]
        unvalidated = [state for state in waiting if state.waits_for is Missing.VALIDATION]
        try:
            if resets:
                await self._reset(resets, deadline)
            if unvalidated:
                await self._validate(unvalidated, deadline)
        finally:
            self._on_change()

    def _is_current(self, state: PartitionState, turn: int) -> bool:
        return state.turn == turn and self._positions.get(state.partition) is state

    # committed offsets

    async def _start_from_committed(self, states: list[PartitionState], deadline: Deadline) -> None:
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
        # The log may have been cut since the commit; its epoch tells.
        self._look_at_leaders()

    # resets

    def _reset_timestamp(self, state: PartitionState) -> int:
        if state.reset_timestamp is not None:
            return state.reset_timestamp
        policy = self._config.auto_offset_reset
        if policy in ("earliest", "latest"):
            return EARLIEST if policy == "earliest" else LATEST
        before_ms = duration_ms(policy)
        if before_ms is None:
            raise NoOffsetForPartition(
                f"there is no offset to begin {state.partition} from, and auto.offset.reset is none"
            )
        return max(0, self._cluster.environment.clock.wall_ms() - before_ms)

    async def _reset(self, states: list[PartitionState], deadline: Deadline) -> None:
        turns = {state.partition: state.turn for state in states}
        timestamps = {state.partition: self._reset_timestamp(state) for state in states}
        found = await self.list_offsets(timestamps, deadline)
        # A time after the last record means the end.
        late = [partition for partition, answer in found.items() if answer.offset < 0]
        if late:
            found |= await self.list_offsets(dict.fromkeys(late, LATEST), deadline)
        for state in states:
            answer = found.get(state.partition)
            if answer is not None and self._is_current(state, turns[state.partition]):
                state.seek(max(0, answer.offset), answer.leader_epoch)
                # The leader itself has just named the offset.
                state.validated(self._cluster.metadata.partition(*state.partition).leader_epoch)

    async def list_offsets(
        self, timestamps: Mapping[TopicPartition, int], deadline: Deadline
    ) -> dict[TopicPartition, ListOffsetsPartitionResponse]:
        """The answer of every partition's leader; raises the first error."""
        found: dict[TopicPartition, ListOffsetsPartitionResponse] = {}
        for node_id, led in (await self._by_leader(timestamps, deadline)).items():
            answers = await list_offsets(
                self._cluster,
                node_id,
                {partition: timestamps[partition] for partition in led},
                isolation_level=int(self._config.reads_committed),
                deadline=deadline,
                checks_epochs=True,
            )
            for partition, answer in answers.items():
                if isinstance(answer, ApiError):
                    raise answer
                found[partition] = answer
        return found

    async def _by_leader(
        self, partitions: Iterable[TopicPartition], deadline: Deadline
    ) -> dict[int, list[TopicPartition]]:
        metadata = self._cluster.metadata
        wanted = list(partitions)
        if self._cluster.want_topics([partition.topic for partition in wanted]) or any(
            partition.topic not in metadata.topics for partition in wanted
        ):
            await self._cluster.refresh(deadline)
        grouped: dict[int, list[TopicPartition]] = {}
        for partition in wanted:
            grouped.setdefault(metadata.leader(*partition).node_id, []).append(partition)
        return grouped

    # changes of leader

    async def _validate(self, states: list[PartitionState], deadline: Deadline) -> None:
        by_partition = {state.partition: (state, state.turn) for state in states}
        for node_id, led in (await self._by_leader(by_partition, deadline)).items():
            epochs = {partition: self._cluster.metadata.partition(*partition).leader_epoch for partition in led}
            try:
                answers = await self._ask_epoch_ends(node_id, led, by_partition, epochs, deadline)
            except UnsupportedByBroker:
                answers = {}
            for partition in led:
                state, turn = by_partition[partition]
                if not self._is_current(state, turn):
                    continue
                answer = answers.get(partition)
                if answer is not None and answer.error_code:
                    raise from_code(answer.error_code)
                self._conclude(state, answer, epochs[partition])

    async def _ask_epoch_ends(
        self,
        node_id: int,
        led: list[TopicPartition],
        by_partition: Mapping[TopicPartition, tuple[PartitionState, int]],
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

    def _conclude(self, state: PartitionState, answer: EpochEndOffset | None, leader_epoch: int) -> None:
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
