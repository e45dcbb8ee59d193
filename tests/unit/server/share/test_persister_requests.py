from __future__ import annotations

import pytest

from millbeck.coordinator.runtime.result import Reply
from millbeck.coordinator.share.shard import ShareKey, ShareState, Written
from millbeck.coordinator.share.states import StateBatch
from millbeck.server.share import errands
from millbeck.server.share.errands import Errand, Kind, Stored, summary_of
from millbeck.wire import codec
from millbeck.wire.messages.read_share_group_state import ReadShareGroupStatePartitionResult
from millbeck.wire.messages.read_share_group_state import StateBatch as ReadBatch
from millbeck.wire.messages.read_share_group_state_summary import ReadShareGroupStateSummaryPartitionResult

A, B = b"a" * 16, b"b" * 16
WRITTEN = Written(
    state_epoch=1, leader_epoch=2, start_offset=3, delivery_complete_count=4, batches=[StateBatch(5, 6, 2, 1)]
)
REPLY: Reply[object] = Reply(lambda _: None, lambda _: None)


@pytest.mark.parametrize(
    ("kind", "argument", "version"),
    [
        (errands.READ, 7, 0),
        (errands.WRITE, WRITTEN, 1),
        (errands.INITIALIZE, (3, -1), 0),
        (errands.DELETE, None, 0),
        (errands.SUMMARY, None, 1),
    ],
)
def test_a_request_carries_all_that_is_asked_of_a_group(kind: Kind, argument: object, version: int) -> None:
    keys = [ShareKey("g", A, 0), ShareKey("g", B, 1), ShareKey("g", A, 2)]
    request = kind.request("g", [Errand(kind, key, argument, REPLY) for key in keys])
    decoded, _ = codec.decoder(type(request), version)(codec.encoder(type(request), version)(request))
    assert decoded.group_id == "g"
    assert [(topic.topic_id, [each.partition for each in topic.partitions]) for topic in decoded.topics] == [
        (A, [0, 2]),
        (B, [1]),
    ]


def test_what_is_written_is_all_in_the_request() -> None:
    request = errands.WRITE.request("g", [Errand(errands.WRITE, ShareKey("g", A, 0), WRITTEN, REPLY)])
    partition = request.topics[0].partitions[0]
    assert (partition.state_epoch, partition.leader_epoch, partition.start_offset) == (1, 2, 3)
    assert (partition.delivery_complete_count, partition.state_batches[0].last_offset) == (4, 6)
    assert errands.WRITE.value(None) is True


def test_answers_are_understood() -> None:
    read = ReadShareGroupStatePartitionResult(0, 0, None, 4, 5, [ReadBatch(6, 7, 2, 1)])
    assert errands.READ.value(read) == Stored(4, 5, [StateBatch(6, 7, 2, 1)])
    summary = ReadShareGroupStateSummaryPartitionResult(0, 0, None, 4, 9, 5, 2)
    state = ShareState(snapshot_epoch=0, state_epoch=4, leader_epoch=9, start_offset=5, delivery_complete_count=2)
    assert errands.SUMMARY.value(summary) == summary_of(state)
