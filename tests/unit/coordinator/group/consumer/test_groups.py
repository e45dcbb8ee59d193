from __future__ import annotations

from typing import Any

from millbeck.coordinator.group.consumer.records import (
    ConsumerGroupMetadataKey,
    ConsumerGroupPartitionMetadataKey,
    ConsumerGroupPartitionMetadataValue,
)
from millbeck.coordinator.group.records import GroupRecord
from millbeck.wire.messages.group_offsets import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)


def test_tombstones_of_what_is_not_there_do_nothing(world: Any) -> None:
    world.shard.replay(GroupRecord(ConsumerGroupMetadataKey("g"), None), offset=0, producer_id=-1)
    assert world.group() is None
    world.stable_group()
    world.shard.replay(GroupRecord(ConsumerGroupMetadataKey("g"), None), offset=0, producer_id=-1)
    assert world.state() == "Stable"


def test_what_topics_once_looked_like_is_read_and_left_alone(world: Any) -> None:
    record = GroupRecord(ConsumerGroupPartitionMetadataKey("g"), ConsumerGroupPartitionMetadataValue())
    assert world.shard.decode(*world.shard.encode(record)) == record
    world.shard.replay(record, offset=0, producer_id=-1)
    assert world.group().epoch == 0


def test_a_group_known_by_its_offsets_becomes_one_of_the_consumer_protocol(world: Any) -> None:
    world.commit({("t", 0): 5})
    assert world.enter_consumer("a").code_name == "NONE"
    assert world.fetched({"t": [0]}) == {("t", 0): 5}
    assert world.reload().fetched({"t": [0]}) == {("t", 0): 5}


def test_an_empty_group_takes_the_protocol_of_whoever_comes(world: Any) -> None:
    world.enter_consumer("a")
    world.beat("a", -1)
    assert world.join().code_name == "MEMBER_ID_REQUIRED"
    assert world.state() == "Empty"
    assert world.enter_consumer("b").code_name == "NONE"
    assert world.reload().described().group_state == "Stable"


def test_an_empty_group_stays_what_it_is_when_nobody_gets_in(world: Any) -> None:
    world.enter_consumer("a")
    world.beat("a", -1)
    assert world.join(protocols={}).code_name == "INCONSISTENT_GROUP_PROTOCOL"
    assert world.described().group_state == "Empty"


def test_deleting_needs_an_empty_group_and_leaves_nothing(world: Any) -> None:
    world.enter_consumer("a", regex="t")
    world.run_jobs()
    world.commit({("t", 0): 5}, member_id="a", generation=1)
    assert world.write(lambda shard, _: shard.delete_groups(["g"])).response[0].error_code == 68
    world.beat("a", -1)
    assert world.write(lambda shard, _: shard.delete_groups(["g"])).response[0].error_code == 0
    after = world.reload()
    assert after.group() is None
    assert after.described().error_code == 69
    assert after.fetched({"t": [0]}) == {("t", 0): -1}


def test_groups_are_listed_and_described_by_their_type(world: Any, worlds: Any) -> None:
    world.enter_consumer("a")
    world.stable_group(group="h")
    outcome = worlds.Outcome()
    world.host.read(lambda shard, at: shard.list_groups([], ["Consumer"], at), outcome.reply)
    (listed,) = outcome.response
    assert (listed.group_id, listed.protocol_type, listed.group_state, listed.group_type) == (
        "g",
        "consumer",
        "Stable",
        "consumer",
    )
    assert world.described("h").error_message == "Group h is not a consumer group."
    described = worlds.Outcome()
    world.host.read(lambda shard, at: shard.describe_groups(["g"], 6, at), described.reply)
    assert described.response[0].error_message == "Group g is not a classic group."
    assert world.shard.statistics().consumer_group_counts["Stable"] == 1


def test_offsets_of_topics_that_members_read_are_not_deleted(world: Any) -> None:
    world.enter_consumer("a")
    world.commit({("t", 0): 5, ("u", 0): 6}, member_id="a", generation=1)
    request = OffsetDeleteRequest(
        "g", [OffsetDeleteRequestTopic(name, [OffsetDeleteRequestPartition(0)]) for name in ("t", "u")]
    )
    response = world.write(lambda shard, _: shard.delete_offsets(request)).response
    assert [topic.partitions[0].error_code for topic in response.topics] == [86, 0]
    assert world.fetched(None) == {("t", 0): 5}
