"""ListOffsets: the first and the last offset of a partition, or the offset for a timestamp.

Behaviour
- -1 latest: the high watermark, or the last stable offset for read_committed. -2 earliest, -3 the record with the
  largest timestamp, -4 earliest on local disk, -5 latest tiered, -6 earliest not yet uploaded. Without tiered storage
  -4 is the log's start, and -5 and -6 are unknown.
- A timestamp: the first record with that timestamp or a later one. Offset and timestamp are -1 when that record, or the
  one with the largest timestamp, is at or above the latest offset of the reader.
- A partition named twice is INVALID_REQUEST. Only the leader answers, and only in the leader epoch that the request
  names.
- A new leader whose high watermark has not reached its epoch's start yet answers with an error, because the offset
  could be lower than the previous leader's: OFFSET_NOT_AVAILABLE, or LEADER_NOT_AVAILABLE before version 5.
- A follower, on the inter-broker listener, gets the log end offset; so does the debugging replica id -2, which may ask
  any replica.
- A timestamp lookup reads batches. A request with many partitions yields to the event loop between them, and a thread
  reads data that is not in the page cache.
Versions
- 1 is the oldest. 4: leader epochs, fencing. 7: -3. 8: -4. 9: -5. 11: -6. Special timestamps that a version does not
  define are UNSUPPORTED_VERSION.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable
from typing import Final, Protocol

from millbeck.kernel.errors import (
    ApiError,
    InvalidRequest,
    KafkaStorageError,
    LeaderNotAvailable,
    OffsetNotAvailable,
    TopicAuthorizationFailed,
    UnsupportedVersion,
)
from millbeck.security.authorizer import Operation, ResourceType
from millbeck.server.loop.tasks import TimeSlices
from millbeck.server.network.call import Call
from millbeck.server.network.route import Need, handles
from millbeck.storage.segment import ColdRead
from millbeck.wire.messages.log_offsets import (
    ListOffsetsPartition,
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
    ListOffsetsTopicResponse,
)

LATEST: Final = -1
EARLIEST: Final = -2
MAX_TIMESTAMP: Final = -3
EARLIEST_LOCAL: Final = -4
LATEST_TIERED: Final = -5
EARLIEST_PENDING_UPLOAD: Final = -6
VERSION_OF: Final = {MAX_TIMESTAMP: 7, EARLIEST_LOCAL: 8, LATEST_TIERED: 9, EARLIEST_PENDING_UPLOAD: 11}
READ_COMMITTED: Final = 1
LEADER_EPOCH_FROM: Final = 4
OFFSET_NOT_AVAILABLE_FROM: Final = 5
CONSUMER: Final = -1
DEBUGGING: Final = -2
WARMINGS_MAX: Final = 8
"""The maximum number of times a thread reads missing data of one partition into the page cache; after that the lookup
continues as if everything were cached."""

log = logging.getLogger(__name__)


def error_reply(request: ListOffsetsRequest | None, version: int, error: ApiError) -> ListOffsetsResponse | None:
    if request is None:
        return None
    return ListOffsetsResponse(
        topics=[
            ListOffsetsTopicResponse(
                topic.name,
                [ListOffsetsPartitionResponse(asked.partition_index, error.code) for asked in topic.partitions],
            )
            for topic in request.topics
        ]
    )


@handles(2, needs=[Need(Operation.DESCRIBE, ResourceType.TOPIC)], error_reply=error_reply)
def handle_list_offsets(
    call: Call, request: ListOffsetsRequest
) -> ListOffsetsResponse | Awaitable[ListOffsetsResponse]:
    seen: dict[tuple[str, int], int] = {}
    searches = False
    for topic in request.topics:
        for asked in topic.partitions:
            key = (topic.name, asked.partition_index)
            seen[key] = seen.get(key, 0) + 1
            searches = searches or asked.timestamp >= 0 or asked.timestamp == MAX_TIMESTAMP

    def answer(
        topic: ListOffsetsTopic, asked: ListOffsetsPartition, nowait: bool = True
    ) -> ListOffsetsPartitionResponse:
        try:
            if not (
                call.is_cluster_action_allowed()
                if request.replica_id >= 0
                else call.may(Operation.DESCRIBE, ResourceType.TOPIC, topic.name)
            ):
                raise TopicAuthorizationFailed
            if seen[topic.name, asked.partition_index] > 1:
                raise InvalidRequest("duplicate partition in the request")
            return _answer(call, request, topic, asked, nowait)
        except ApiError as error:
            return ListOffsetsPartitionResponse(asked.partition_index, error.code)

    if searches:
        return _answer_in_slices(call, request, answer)
    return ListOffsetsResponse(
        topics=[
            ListOffsetsTopicResponse(topic.name, [answer(topic, asked) for asked in topic.partitions])
            for topic in request.topics
        ]
    )


class FoundOffset(Protocol):
    def __call__(
        self, topic: ListOffsetsTopic, asked: ListOffsetsPartition, nowait: bool
    ) -> ListOffsetsPartitionResponse:
        """The result of one partition; with ``nowait`` raises `ColdRead` rather than wait for the disk."""


async def _answer_in_slices(call: Call, request: ListOffsetsRequest, answer: FoundOffset) -> ListOffsetsResponse:
    slices = TimeSlices(call.broker.environment.clock)
    answers = []
    for topic in request.topics:
        partitions = []
        for asked in topic.partitions:
            partitions.append(await _answer_warm(call, topic, asked, answer))
            await slices.yield_to_loop()
        answers.append(ListOffsetsTopicResponse(topic.name, partitions))
    return ListOffsetsResponse(topics=answers)


async def _answer_warm(
    call: Call, topic: ListOffsetsTopic, asked: ListOffsetsPartition, answer: FoundOffset
) -> ListOffsetsPartitionResponse:
    for _ in range(WARMINGS_MAX):
        try:
            return answer(topic, asked, True)
        except ColdRead as cold:
            job, release = cold.job, cold.release
        try:
            await call.broker.in_thread(job)
        except OSError as error:
            log.error("cannot read %s-%s: %s", topic.name, asked.partition_index, error)
            return ListOffsetsPartitionResponse(asked.partition_index, KafkaStorageError.code)
        finally:
            release()
    return answer(topic, asked, False)


def _answer(
    call: Call, request: ListOffsetsRequest, topic: ListOffsetsTopic, asked: ListOffsetsPartition, nowait: bool
) -> ListOffsetsPartitionResponse:
    timestamp = asked.timestamp
    if timestamp < 0 and call.version < VERSION_OF.get(timestamp, 1 if timestamp >= EARLIEST else 2**15):
        raise UnsupportedVersion(f"timestamp {timestamp} is not supported in version {call.version}")
    partition = call.broker.topics.partition(topic.name, asked.partition_index)
    if request.replica_id == DEBUGGING:
        partition.check_leader_epoch(asked.current_leader_epoch)
    else:
        partition.check_is_leader(asked.current_leader_epoch)
    end_offset = partition.log.end_offset
    if request.replica_id == CONSUMER:
        end_offset = partition.fetch_upper_bound(committed_only=request.isolation_level == READ_COMMITTED)
        if not partition.knows_committed and timestamp not in (EARLIEST, EARLIEST_LOCAL):
            raise OffsetNotAvailable if call.version >= OFFSET_NOT_AVAILABLE_FROM else LeaderNotAvailable
    index = asked.partition_index
    if timestamp == LATEST:
        return _found(call, index, -1, end_offset, partition.leader_epoch)
    if timestamp in (EARLIEST, EARLIEST_LOCAL):
        offset = partition.log.log_start_offset
        return _found(call, index, -1, offset, partition.log.epochs.epoch_of(offset))
    if timestamp in (LATEST_TIERED, EARLIEST_PENDING_UPLOAD):
        return ListOffsetsPartitionResponse(index)
    found = (
        partition.log.offset_of_max_timestamp(nowait=nowait)
        if timestamp == MAX_TIMESTAMP
        else partition.log.offset_for_timestamp(timestamp, upto_offset=end_offset, nowait=nowait)
    )
    if found is None or found.offset >= end_offset:
        return ListOffsetsPartitionResponse(index)
    return _found(call, index, found.timestamp, found.offset, found.leader_epoch)


def _found(call: Call, index: int, timestamp: int, offset: int, leader_epoch: int) -> ListOffsetsPartitionResponse:
    # Older versions have no field for the epoch; the encoder refuses one.
    return ListOffsetsPartitionResponse(
        index, 0, timestamp, offset, leader_epoch if call.version >= LEADER_EPOCH_FROM else -1
    )
