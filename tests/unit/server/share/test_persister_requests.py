from __future__ import annotations

import pytest

from millbeck.coordinator.runtime.result import ResponseCallback
from millbeck.coordinator.share.shard import ShareKey, ShareState, StateWrite
from millbeck.coordinator.share.states import StateBatch
from millbeck.server.share import persister_requests
from millbeck.server.share.persister_requests import PersistedState, PersisterOperation, PersisterRequest, summary_of
from millbeck.wire import codec
from millbeck.wire.messages.share_state import (
    ReadShareGroupStatePartitionResult,
    ReadShareGroupStateSummaryPartitionResult,
)
from millbeck.wire.messages.share_state import StateBatch as ReadBatch

A, B = b"a" * 16, b"b" * 16
WRITTEN = StateWrite(
    state_epoch=1, leader_epoch=2, start_offset=3, delivery_complete_count=4, batches=[StateBatch(5, 6, 2, 1)]
)
REPLY: ResponseCallback[object] = ResponseCallback(lambda _: None, lambda _: None)


@pytest.mark.parametrize(
    ("kind", "argument", "version"),
    [
        (persister_requests.READ, 7, 0),
        (persister_requests.WRITE, WRITTEN, 1),
        (persister_requests.INITIALIZE, (3, -1), 0),
        (persister_requests.DELETE, None, 0),
        (persister_requests.SUMMARY, None, 1),
    ],
)
def test_a_request_carries_all_that_is_asked_of_a_group(
    kind: PersisterOperation, argument: object, version: int
) -> None:
    keys = [ShareKey("g", A, 0), ShareKey("g", B, 1), ShareKey("g", A, 2)]
    request = kind.request("g", [PersisterRequest(kind, key, argument, REPLY) for key in keys])
    decoded, _ = codec.decoder(type(request), version)(codec.encoder(type(request), version)(request))
    assert decoded.group_id == "g"
    assert [(topic.topic_id, [each.partition for each in topic.partitions]) for topic in decoded.topics] == [
        (A, [0, 2]),
        (B, [1]),
    ]


def test_what_is_written_is_all_in_the_request() -> None:
    request = persister_requests.WRITE.request(
        "g", [PersisterRequest(persister_requests.WRITE, ShareKey("g", A, 0), WRITTEN, REPLY)]
    )
    partition = request.topics[0].partitions[0]
    assert (partition.state_epoch, partition.leader_epoch, partition.start_offset) == (1, 2, 3)
    assert (partition.delivery_complete_count, partition.state_batches[0].last_offset) == (4, 6)
    assert persister_requests.WRITE.value(None) is True


def test_answers_are_understood() -> None:
    read = ReadShareGroupStatePartitionResult(0, 0, None, 4, 5, [ReadBatch(6, 7, 2, 1)])
    assert persister_requests.READ.value(read) == PersistedState(4, 5, [StateBatch(6, 7, 2, 1)])
    summary = ReadShareGroupStateSummaryPartitionResult(0, 0, None, 4, 9, 5, 2)
    state = ShareState(snapshot_epoch=0, state_epoch=4, leader_epoch=9, start_offset=5, delivery_complete_count=2)
    assert persister_requests.SUMMARY.value(summary) == summary_of(state)
