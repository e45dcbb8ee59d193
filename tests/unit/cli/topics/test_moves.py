from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path

import click
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from millbeck.cli.topics.moves import CopyProgress, copy_of, move_rows, move_state, progress, proposal, sum_of
from millbeck.client.admin.results import Reassignment
from millbeck.kernel.ids import TopicPartition

T = [TopicPartition("t", index) for index in range(60)]


@settings(max_examples=60)
@given(st.integers(1, 6), st.integers(1, 4), st.integers(1, 30))
def test_a_proposal_keeps_the_count_and_spreads_leaders(broker_count: int, replica_count: int, count: int) -> None:
    replica_count = min(replica_count, broker_count)
    proposed = proposal(
        {partition: tuple(range(100, 100 + replica_count)) for partition in T[:count]},
        dict.fromkeys(range(broker_count)),
    )
    assert all(len(set(replicas)) == replica_count for replicas in proposed.values())
    leaders = Counter(replicas[0] for replicas in proposed.values())
    assert max(leaders.values()) - min(leaders.get(broker, 0) for broker in range(broker_count)) <= 1


def test_racks_come_before_brokers() -> None:
    racks = {1: "a", 2: "a", 3: "b", 4: "b", 5: None, 6: None}
    for replicas in proposal(dict.fromkeys(T, (1, 2)), {k: v for k, v in racks.items() if v}).values():
        assert racks[replicas[0]] != racks[replicas[1]]


def test_followers_are_not_always_the_same_neighbours() -> None:
    proposed = proposal(dict.fromkeys(T, (1, 2)), dict.fromkeys((1, 2, 3, 4)))
    assert len({replicas for replicas in proposed.values() if replicas[0] == 1}) == 3


def test_more_replicas_than_brokers_are_refused() -> None:
    with pytest.raises(click.ClickException, match="t-0 has 3 replicas"):
        proposal({T[0]: (1, 2, 3)}, {1: None, 2: None})


def test_progress() -> None:
    moving = {T[0]: Reassignment(replicas=(1, 2), adding=(2,), removing=(1,))}
    current = {T[0]: (1, 2), T[1]: (2,), T[2]: (3,)}
    assert [progress(each, (2,), current, moving) for each in T[:4]] == [
        "still moving, adding 2",
        "done",
        "not moving: it has replicas 3 instead of 2",
        "no such partition",
    ]


def test_the_state_of_a_move_for_programs() -> None:
    moving = {T[0]: Reassignment(replicas=(1, 2), adding=(2,), removing=(1,))}
    current = {T[0]: (1, 2), T[1]: (2,), T[2]: (3,)}
    states = [move_state(each, (2,), current, moving) for each in T[:4]]
    assert [row["state"] for row in states] == ["moving", "done", "not moving", "missing"]
    assert states[1] == {"topic": "t", "partition": 1, "state": "done", "replicas": [2], "wanted": [2]}
    copied = move_state(T[0], (2,), current, moving, CopyProgress(done_bytes=1, total_bytes=4))
    assert (copied["adding"], copied["copied_bytes"], copied["total_bytes"]) == ([2], 1, 4)


def test_usage(fails: Callable[..., str], tmp_path: Path) -> None:
    path = tmp_path / "topics.json"
    path.write_text('{"topics": [{"topic": "t"}]}')
    arguments = ("reassign", "generate", "--topics-to-move-json-file", str(path), "--broker-list")
    assert "different broker ids" in fails(*arguments, "1,1")
    assert "different broker ids" in fails(*arguments, "one")


def test_copies_are_measured_by_what_the_largest_replica_has() -> None:
    partition = TopicPartition("t", 0)
    move = Reassignment(replicas=(1, 2, 3, 4), adding=(3, 4), removing=(1,))
    sizes = {(1, partition): 4_000_000, (2, partition): 3_000_000, (3, partition): 1_000_000, (4, T[1]): 9}
    copy = copy_of(partition, move, sizes)
    assert copy == CopyProgress(done_bytes=1_000_000, total_bytes=8_000_000)
    assert str(sum_of([copy, copy])) == "2.0 of 16.0 MB copied (12 %)"
    assert str(sum_of([])) == "0.0 of 0.0 MB copied (100 %)"
    shown = progress(partition, (2, 3, 4), {}, {partition: move}, copy)
    assert shown == "still moving, adding 3,4, 1.0 of 8.0 MB copied (12 %)"


def test_moves_are_rows_for_programs() -> None:
    moving = {T[1]: Reassignment(replicas=(1, 2, 3), adding=(3,), removing=(1,))}
    assert move_rows(moving) == [
        {"topic": "t", "partition": 1, "replicas": [1, 2, 3], "adding": [3], "removing": [1]},
    ]
