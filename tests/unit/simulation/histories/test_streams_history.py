from __future__ import annotations

from millbeck.coordinator.group.records import GroupRecord
from millbeck.coordinator.group.streams.member import StreamsMember
from millbeck.coordinator.group.streams.records import (
    StreamsGroupCurrentMemberAssignmentKey,
    StreamsGroupMemberMetadataKey,
    StreamsGroupMetadataKey,
    StreamsGroupMetadataValue,
    StreamsGroupTargetAssignmentMetadataKey,
    StreamsGroupTargetAssignmentMetadataValue,
)
from millbeck.coordinator.group.streams.tasks import TaskSet
from millbeck.simulation.histories.streams_history import StreamsHistory


def has(member_id: str, *active: int, standby: tuple[int, ...] = (), revoking: tuple[int, ...] = ()) -> GroupRecord:
    member = StreamsMember(
        member_id=member_id,
        assigned=TaskSet({"0": active} if active else {}, {"0": standby} if standby else {}),
        revoking=TaskSet({"0": revoking} if revoking else {}),
    )
    return GroupRecord(StreamsGroupCurrentMemberAssignmentKey("g", member_id), member.current_value())


def of_process(member_id: str, process_id: str) -> GroupRecord:
    member = StreamsMember(member_id=member_id, process_id=process_id)
    return GroupRecord(StreamsGroupMemberMetadataKey("g", member_id), member.metadata_value())


def gone(member_id: str) -> list[GroupRecord]:
    return [
        GroupRecord(StreamsGroupCurrentMemberAssignmentKey("g", member_id), None),
        GroupRecord(StreamsGroupMemberMetadataKey("g", member_id), None),
    ]


def kinds(*records: GroupRecord, history: StreamsHistory | None = None) -> list[str]:
    return [anomaly.kind for anomaly in (history or busy()).check(list(enumerate(records)))]


def busy() -> StreamsHistory:
    history = StreamsHistory()
    history.granted("a", [(b"0", 0)])
    history.acknowledged((b"0", 0), 5)
    return history


A, B = of_process("a", "p"), of_process("b", "q")


def test_a_task_that_was_given_up_may_go_to_another() -> None:
    history = busy()
    history.keeps("a", [])
    history.granted("b", [(b"0", 0)])
    assert kinds(A, B, has("a", 0), has("a", revoking=(0,)), has("a"), has("b", 0), history=history) == []


def test_a_task_has_one_owner_even_while_it_is_given_up() -> None:
    assert kinds(A, B, has("a", 0), has("b", 0)) == ["two owners"]
    assert kinds(A, B, has("a", revoking=(0,)), has("b", 0)) == ["two owners"]


def test_a_task_that_a_member_still_has_goes_to_another_only_when_it_was_removed() -> None:
    def history() -> StreamsHistory:
        found = busy()
        found.granted("b", [(b"0", 0)])
        return found

    assert kinds(A, B, has("a", 0), *gone("a"), has("b", 0), history=history()) == []
    assert kinds(A, B, has("a", 0), has("a"), has("b", 0), *gone("a"), history=history()) == ["two owners"]


def test_a_standby_may_be_elsewhere_and_not_in_the_same_process() -> None:
    assert kinds(A, B, has("a", 0), has("b", standby=(0,))) == []
    assert kinds(A, of_process("b", "p"), has("a", 0), has("b", standby=(0,))) == ["twice in a process"]
    assert kinds(A, has("a", 0, standby=(0,))) == ["twice in a process"]


def test_epochs_do_not_go_back() -> None:
    def group(epoch: int) -> GroupRecord:
        return GroupRecord(StreamsGroupMetadataKey("g"), StreamsGroupMetadataValue(epoch))

    def target(epoch: int) -> GroupRecord:
        key = StreamsGroupTargetAssignmentMetadataKey("g")
        return GroupRecord(key, StreamsGroupTargetAssignmentMetadataValue(epoch))

    assert kinds(group(2), target(2), group(3)) == []
    assert kinds(group(3), group(2)) == ["epoch went back"]
    assert kinds(target(3), target(2)) == ["epoch went back"]
