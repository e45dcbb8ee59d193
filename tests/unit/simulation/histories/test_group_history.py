from __future__ import annotations

from millbeck.coordinator.group.consumer import writing
from millbeck.coordinator.group.consumer.member import ConsumerMember
from millbeck.coordinator.group.records import GroupRecord
from millbeck.simulation.histories.group_history import GroupHistory, read_log

T = b"t" * 16
P, Q = (T, 0), (T, 1)


def has(member_id: str, *partitions: int, revoking: tuple[int, ...] = ()) -> GroupRecord:
    member = ConsumerMember(
        member_id=member_id,
        epoch=1,
        assigned={T: partitions} if partitions else {},
        revoking={T: revoking} if revoking else {},
    )
    return writing.current_record("g", member)


def log_of(*records: GroupRecord) -> list[tuple[int, GroupRecord]]:
    return list(enumerate(records))


def kinds(history: GroupHistory, *records: GroupRecord) -> list[str]:
    return [anomaly.kind for anomaly in history.check(log_of(*records))]


def busy() -> GroupHistory:
    history = GroupHistory()
    history.granted("a", [P])
    history.acknowledged(P, 5)
    return history


def test_a_partition_that_is_given_up_may_be_given_away() -> None:
    history = busy()
    history.keeps("a", [])
    history.granted("b", [P])
    assert kinds(history, has("a", 0), has("a"), has("b", 0)) == []


def test_a_partition_that_is_still_had_may_not() -> None:
    history = busy()
    history.granted("b", [P])
    assert kinds(history, has("a", 0), has("a"), has("b", 0)) == ["two owners"]


def test_unless_whoever_had_it_was_removed_before() -> None:
    history = busy()
    history.granted("b", [P])
    gone = writing.member_tombstones("g", "a")
    assert kinds(history, has("a", 0), *gone, has("b", 0)) == []
    assert kinds(history, has("a", 0), has("a"), has("b", 0), *gone) == ["two owners"]


def test_whoever_is_gone_has_nothing() -> None:
    history = busy()
    history.gone("a")
    history.granted("b", [P])
    assert kinds(history) == []


def test_two_holders_in_the_log() -> None:
    assert kinds(busy(), has("a", 0, revoking=(1,)), has("b", 1)) == ["two owners"]
    assert kinds(busy(), has("a", 0), has("b", 1), has("a", 0), has("b", 1)) == []


def test_epochs_that_go_back() -> None:
    epochs = [writing.group_record("g", epoch=each, metadata_hash=0) for each in (1, 2, 1)]
    targets = [writing.target_epoch_record("g", each) for each in (3, 2)]
    assert [anomaly.kind for anomaly in read_log(log_of(*epochs, *targets)).anomalies] == ["epoch went back"] * 2


def test_commits() -> None:
    history = busy()
    history.fetched(P, 5, at_least=history.last_acknowledged(P))
    history.fetched(Q, -1, at_least=history.last_acknowledged(Q))
    history.stale_commit("a", is_accepted=False)
    assert kinds(history) == []
    history.fetched(P, 4, at_least=5)
    history.stale_commit("a", is_accepted=True)
    assert kinds(history) == ["lost commit", "stale commit"]


def test_a_run_in_which_nothing_happened_shows_nothing() -> None:
    assert kinds(GroupHistory()) == ["vacuous"]
