"""How offsets go away, rule by rule."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import pytest

from millbeck.coordinator.group.offsets import removal
from millbeck.coordinator.group.records import OffsetCommitKey, OffsetCommitValue
from millbeck.coordinator.runtime import sweep
from millbeck.kernel import errors
from millbeck.kernel.ids import ZERO_UUID
from millbeck.wire.messages.group_offsets import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)

T0, U0 = ("t", 0), ("u", 0)
DAY_MS = 24 * 60 * 60 * 1000
CHECK_MS = 600_000


def delete(world: Any, places: dict[str, list[int]], group: str = "g") -> Any:
    topics = [
        OffsetDeleteRequestTopic(name, [OffsetDeleteRequestPartition(index) for index in indexes])
        for name, indexes in places.items()
    ]
    return world.write(lambda shard, _: shard.delete_offsets(OffsetDeleteRequest(group, topics)))


def codes(outcome: Any) -> list[int]:
    return [partition.error_code for topic in outcome.response.topics for partition in topic.partitions]


def begin_transaction(world: Any, topic: str, partition: int) -> None:
    key = OffsetCommitKey("g", topic, partition)
    world.shard._offsets.replay(key, OffsetCommitValue(offset=9), offset=50, producer_id=7)


# On request


def test_offsets_are_deleted_on_request(world: Any) -> None:
    world.commit({T0: 5, U0: 6})
    assert codes(delete(world, {"t": [0, 9], "nothing": [0]})) == [0, 0, 0]
    assert world.fetched(None) == {U0: 6}
    assert world.reload().fetched(None) == {U0: 6}


def test_deleting_nothing_writes_nothing(world: Any) -> None:
    world.commit({T0: 5})
    end_offset = world.log.end_offset
    delete(world, {"other": [0]})
    assert world.log.end_offset == end_offset


def test_subscribed_topics_are_kept(world: Any) -> None:
    member = world.stable_group(1)[0]
    world.commit({T0: 5, U0: 6}, member_id=member, generation=1)
    assert codes(delete(world, {"t": [0], "u": [0]})) == [errors.GroupSubscribedToTopic.code, 0]
    assert world.fetched(None) == {T0: 5}


def test_groups_of_other_protocols_are_left_alone_while_they_have_members(world: Any) -> None:
    member = world.stable_group(1, protocol_type="connect")[0]
    assert delete(world, {"t": [0]}).code_name == "NON_EMPTY_GROUP"
    world.leave((member, None))
    assert delete(world, {"t": [0]}).code_name == "NONE"


def test_a_group_must_be_there(world: Any) -> None:
    assert delete(world, {"t": [0]}, group="x").code_name == "GROUP_ID_NOT_FOUND"
    assert delete(world, {"t": [0]}, group="").code_name == "INVALID_GROUP_ID"


def test_a_pending_commit_is_deleted_too(world: Any) -> None:
    world.commit({T0: 5})
    begin_transaction(world, "u", 0)
    delete(world, {"u": [0]})
    assert not world.shard._offsets.has_pending("g")


# With the topic


def test_offsets_go_with_their_topic(world: Any, worlds: ModuleType) -> None:
    world.commit({T0: 5, U0: 6})
    world.commit({T0: 7}, group="h")
    world.commit({("t", 1): 8}, group="h", topic_id=b"o" * 16)
    world.commit({("t", 2): 9}, group="h", topic_id=ZERO_UUID)
    begin_transaction(world, "t", 3)
    world.write(lambda shard, _: shard.on_topics_deleted([("t", worlds.TOPIC_ID)]))
    assert world.fetched(None) == {U0: 6}
    assert world.fetched(None, group="h") == {("t", 1): 8}, "another incarnation of the name"
    assert not world.shard._offsets.has_pending("g")


# By age


def expired(world: Any, days: float) -> dict[tuple[str, int], int]:
    world.advance(int(days * DAY_MS))
    fetched: dict[tuple[str, int], int] = world.fetched(None)
    return fetched


def test_without_members_the_last_commit_counts(world: Any) -> None:
    world.commit({T0: 5})
    world.advance(DAY_MS)
    world.commit({U0: 6})
    assert expired(world, 5.9) == {T0: 5, U0: 6}
    assert expired(world, 0.2) == {U0: 6}
    assert world.group() is not None
    assert expired(world, 1) == {}
    assert world.group() is None, "nothing is left of the group"
    assert world.reload().group() is None


def test_the_moment_a_group_became_empty_counts(world: Any) -> None:
    member = world.stable_group(1, session_ms=1_800_000)[0]
    world.commit({T0: 5}, member_id=member, generation=1)
    for _ in range(400):
        world.advance(1_800_000 - 1)
        world.heartbeat(member, 1)
    world.leave((member, None))
    assert expired(world, 6.9) == {T0: 5}
    assert expired(world, 0.2) == {}
    assert world.group() is None


def test_a_record_that_does_not_say_when_the_group_became_empty(world: Any) -> None:
    member = world.stable_group(1)[0]
    world.commit({T0: 5}, member_id=member, generation=1)
    world.leave((member, None))
    world.group().state_timestamp_ms = -1
    assert expired(world, 6.9) == {T0: 5}
    assert expired(world, 0.2) == {}


def keep_alive(world: Any, member: str, days: int) -> None:
    for _ in range(days * 48 + 2):
        world.advance(1_800_000 - 1)
        world.heartbeat(member, 1)


def test_topics_the_group_has_given_up_expire_and_others_stay(world: Any) -> None:
    member = world.stable_group(1, session_ms=1_800_000)[0]
    world.commit({T0: 5, U0: 6}, member_id=member, generation=1)
    keep_alive(world, member, 7)
    assert world.fetched(None) == {T0: 5}


UNTOUCHED: dict[str, dict[str, Any]] = {
    "another protocol": {"protocol_type": "connect"},
    "subscriptions that cannot be read": {"protocols": {"range": b"\x00"}},
}


@pytest.mark.parametrize("details", UNTOUCHED.values(), ids=UNTOUCHED.keys())
def test_nothing_expires_while_nobody_knows_what_is_read(world: Any, details: dict[str, Any]) -> None:
    member = world.stable_group(1, session_ms=1_800_000, **details)[0]
    world.commit({T0: 5, U0: 6}, member_id=member, generation=1)
    keep_alive(world, member, 8)
    assert world.fetched(None) == {T0: 5, U0: 6}


def test_an_expiry_of_its_own_counts_instead(world: Any) -> None:
    world.commit({T0: 5}, retention_ms=1000)
    world.commit({U0: 6}, retention_ms=20 * DAY_MS)
    assert expired(world, CHECK_MS / DAY_MS) == {U0: 6}
    assert expired(world, 19) == {U0: 6}
    assert expired(world, 1.1) == {}


def test_an_open_transaction_keeps_everything_it_touched(world: Any) -> None:
    world.commit({T0: 5, U0: 6})
    begin_transaction(world, "t", 0)
    assert expired(world, 8) == {T0: 5}
    assert world.group() is not None
    world.shard.replay_end_transaction(producer_id=7, is_committed=False)
    assert expired(world, 0.1) == {}


def test_an_open_transaction_keeps_a_group_without_offsets(world: Any) -> None:
    world.join()
    begin_transaction(world, "t", 0)
    world.advance(CHECK_MS * 2)
    assert world.group() is not None


def test_a_group_that_never_committed_goes_when_it_is_empty(world: Any) -> None:
    pending = world.join(session_ms=1_800_000)
    world.advance(CHECK_MS)
    assert world.group() is not None, "a member is on its way"
    world.leave((pending.response.member_id, None))
    world.advance(CHECK_MS)
    assert world.group() is None


def test_many_offsets_are_looked_through_in_steps(world: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sweep, "STEP_WEIGHT_MAX", 24)
    for index in range(20):
        world.commit({("t", partition): 1 for partition in range(5)}, group=f"g{index}")
    batch_count = len(world.log.batches)
    world.advance(7 * DAY_MS + CHECK_MS)
    assert world.shard.statistics().offset_count == 0
    assert world.shard.statistics().counters.offset_expirations == 100
    assert len(world.log.batches) - batch_count == 10, "two groups of five at a time"


def test_one_bad_group_does_not_stop_the_expiry_of_the_others(world: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    original = removal.expire

    def expire(store: Any, group: Any, **details: Any) -> Any:
        if group.group_id == "bad":
            raise ValueError(group.group_id)
        return original(store, group, **details)

    monkeypatch.setattr(removal, "expire", expire)
    for group in ("a", "bad", "c"):
        world.commit({T0: 5}, group=group)
    world.advance(7 * DAY_MS + CHECK_MS)
    assert [world.fetched(None, group=group) for group in ("a", "bad", "c")] == [{}, {T0: 5}, {}]
    world.commit({T0: 5}, group="d")
    world.advance(7 * DAY_MS + CHECK_MS)
    assert world.fetched(None, group="d") == {}, "there is a next pass"
    assert world.host.failure_count > 1


def test_an_expiry_that_cannot_be_written_is_tried_again(world: Any) -> None:
    world.commit({T0: 5})
    world.advance(7 * DAY_MS - CHECK_MS)
    world.log.refusal = errors.NotEnoughReplicas()
    world.advance(CHECK_MS)
    assert world.fetched(None) == {T0: 5}
    world.log.refusal = None
    world.advance(CHECK_MS)
    assert world.fetched(None) == {}
