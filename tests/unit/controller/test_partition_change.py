"""Each rule of a partition's change alone; `tests/model/controller` runs them all against each other."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from millbeck.controller.partition_change import ChangeContext, ElectionMode, PartitionChange
from millbeck.metadata.image import BrokerRegistration, ClusterImage, PartitionRegistration
from millbeck.metadata.image.topics import RECOVERED, RECOVERING
from millbeck.metadata.records import NO_LEADER, NO_LEADER_CHANGE, PartitionChangeRecord

TOPIC = b"t" * 16
DISKS = {broker: bytes([100 + broker]) * 16 for broker in range(1, 7)}
CLUSTER = ClusterImage(
    brokers={
        broker: BrokerRegistration(
            broker_id=broker, epoch=broker, incarnation_id=bytes(16), is_fenced=False, directories=(disk,)
        )
        for broker, disk in DISKS.items()
    }
)


def partition(replicas: tuple[int, ...] = (1, 2, 3), **fields: Any) -> PartitionRegistration:
    values: dict[str, Any] = {
        "isr": replicas,
        "leader": replicas[0],
        "directories": tuple(DISKS[replica] for replica in replicas),
        "leader_epoch": 5,
        "partition_epoch": 7,
        **fields,
    }
    return PartitionRegistration(replicas=replicas, **values)


def change(
    before: PartitionRegistration,
    *,
    alive: tuple[int, ...] = (1, 2, 3, 4, 5, 6),
    tracks: bool = False,
    version: int = 30,
    minimum: int = 1,
    election: ElectionMode = ElectionMode.ONLINE,
    cluster: ClusterImage = CLUSTER,
    **wanted: Any,
) -> PartitionChangeRecord | None:
    context = ChangeContext(
        cluster=cluster,
        metadata_version=version,
        tracks_eligible_leaders=tracks,
        is_acceptable_leader=lambda broker: broker in alive,
    )
    builder = PartitionChange(before, context, min_insync_replicas=minimum, election=election)
    for name, value in wanted.items():
        setattr(builder, name, value)
    return builder.build(TOPIC, 3)


def changed(before: PartitionRegistration, **how: Any) -> PartitionRegistration:
    record = change(before, **how)
    assert record is not None
    return before.changed(record)


def test_nothing_different_is_no_record() -> None:
    assert change(partition()) is None
    assert change(partition(leader=2)) is None


def test_a_leader_that_may_not_lead_is_followed_by_the_first_in_sync_who_may() -> None:
    record = change(partition(), alive=(2, 3), isr=(2, 3))
    assert record == PartitionChangeRecord(partition_id=3, topic_id=TOPIC, isr=[2, 3], leader=2)
    assert changed(partition(isr=(1, 3)), alive=(2, 3), isr=(3,)).leader == 3


def test_without_eligible_leaders_the_last_in_sync_stays_so_and_nobody_leads() -> None:
    after = changed(partition(isr=(1,)), alive=(2, 3), isr=())
    assert (after.isr, after.leader, after.leader_epoch) == ((1,), NO_LEADER, 6)
    assert changed(after, alive=(1,)).leader == 1


def test_a_shrinking_isr_keeps_the_leader_epoch_but_with_old_brokers() -> None:
    record = change(partition(), isr=(1, 2))
    assert record is not None
    assert (record.isr, record.leader) == ([1, 2], NO_LEADER_CHANGE)
    old = change(partition(), isr=(1, 2), version=11)
    assert old is not None
    assert old.leader == 1
    grown = change(partition(isr=(1, 2)), isr=(1, 2, 3), version=11)
    assert grown is not None
    assert grown.leader == NO_LEADER_CHANGE


def test_who_leaves_a_small_isr_in_good_order_is_eligible() -> None:
    after = changed(partition(), tracks=True, minimum=2, isr=(1,))
    assert (after.isr, after.eligible_leader_replicas, after.leader) == ((1,), (2, 3), 1)
    enough = changed(partition(), tracks=True, minimum=2, isr=(1, 2))
    assert (enough.isr, enough.eligible_leader_replicas) == ((1, 2), ())
    assert changed(partition(), tracks=False, minimum=2, isr=(1,)).eligible_leader_replicas == ()


def test_who_lost_its_unsynced_end_is_not_eligible() -> None:
    after = changed(partition(), tracks=True, minimum=3, isr=(1, 2), unclean_shutdown=3)
    assert after.eligible_leader_replicas == ()
    waiting = partition(isr=(1,), eligible_leader_replicas=(2, 3))
    after = changed(waiting, tracks=True, minimum=2, unclean_shutdown=3)
    assert after.eligible_leader_replicas == (2,)


def test_with_enough_in_sync_nobody_is_eligible() -> None:
    waiting = partition(isr=(1,), eligible_leader_replicas=(2, 3), last_known_elr=(1,))
    after = changed(waiting, tracks=True, minimum=2, isr=(1, 2))
    assert (after.eligible_leader_replicas, after.last_known_elr) == ((), ())


def test_more_can_not_be_asked_for_than_there_are_replicas() -> None:
    after = changed(partition(replicas=(1, 2)), tracks=True, minimum=3, isr=(1,))
    assert after.eligible_leader_replicas == (2,)
    waiting = partition(replicas=(1, 2), isr=(1,), eligible_leader_replicas=(2,))
    assert changed(waiting, tracks=True, minimum=3, isr=(1, 2)).eligible_leader_replicas == ()


def test_the_isr_may_be_empty_while_eligible_leaders_are_tracked() -> None:
    after = changed(partition(isr=(1,), eligible_leader_replicas=(2,)), tracks=True, minimum=2, alive=(3,), isr=())
    assert (after.isr, after.eligible_leader_replicas, after.leader) == ((), (2, 1), NO_LEADER)
    assert after.last_known_elr == (1,)


def test_an_eligible_leader_is_elected_when_nobody_is_in_sync() -> None:
    waiting = partition(isr=(), eligible_leader_replicas=(2, 3), leader=NO_LEADER, last_known_elr=(1,))
    after = changed(waiting, tracks=True, minimum=2, alive=(1, 3))
    assert (after.leader, after.isr, after.eligible_leader_replicas) == (3, (3,), (2,))
    assert (after.leader_recovery_state, after.last_known_elr) == (RECOVERED, ())
    assert changed(waiting, tracks=True, minimum=1, alive=(1, 3)).eligible_leader_replicas == ()
    in_sync = partition(isr=(1,), eligible_leader_replicas=(2,), leader=NO_LEADER)
    assert change(in_sync, tracks=True, minimum=2, alive=(2,)) is None


def test_the_last_leader_leads_again_when_nobody_else_can_and_it_lives() -> None:
    lost = partition(isr=(), leader=NO_LEADER, last_known_elr=(2,))
    assert change(lost, tracks=True, minimum=2, alive=(1, 3)) is None
    after = changed(lost, tracks=True, minimum=2, alive=(1, 2, 3))
    assert (after.leader, after.isr, after.leader_recovery_state) == (2, (2,), RECOVERING)
    assert after.last_known_elr == ()
    several = replace(lost, last_known_elr=(1, 2))
    assert change(several, tracks=True, minimum=2) is None
    eligible = replace(lost, eligible_leader_replicas=(3,))
    assert change(eligible, tracks=True, minimum=2, alive=(2,)) is None


def test_the_last_leader_is_remembered_even_when_it_led_no_more() -> None:
    alone = partition(isr=(2,), leader=NO_LEADER)
    after = changed(alone, tracks=True, minimum=1, alive=(), isr=(), unclean_shutdown=2)
    assert (after.isr, after.last_known_elr) == ((), (2,))
    both = partition(isr=(2, 3), leader=NO_LEADER)
    assert changed(both, tracks=True, minimum=1, alive=(), isr=(), unclean_shutdown=2).last_known_elr == ()


def test_an_unclean_election_is_for_where_it_is_allowed() -> None:
    lost = partition(isr=(1,), leader=NO_LEADER)
    assert change(lost, alive=(2, 3)) is None
    assert change(lost, alive=(2, 3), election=ElectionMode.PREFERRED) is None
    after = changed(lost, alive=(3, 2), election=ElectionMode.UNCLEAN)
    assert (after.leader, after.isr, after.leader_recovery_state) == (2, (2,), RECOVERING)
    still = changed(replace(after, leader=NO_LEADER), alive=(3,), election=ElectionMode.UNCLEAN)
    assert (still.leader, still.leader_recovery_state) == (3, RECOVERING)


def test_an_unclean_election_forgets_who_was_eligible() -> None:
    lost = partition(isr=(), eligible_leader_replicas=(1,), leader=NO_LEADER)
    after = changed(lost, tracks=True, minimum=2, alive=(2,), election=ElectionMode.UNCLEAN)
    assert (after.leader, after.isr, after.eligible_leader_replicas) == (2, (2,), ())


def test_a_preferred_election_takes_the_first_replica_if_it_can_lead() -> None:
    assert changed(partition(leader=2), election=ElectionMode.PREFERRED).leader == 1
    assert change(partition(leader=2), election=ElectionMode.PREFERRED, alive=(2, 3)) is None
    assert change(partition(leader=2, isr=(2, 3)), election=ElectionMode.PREFERRED) is None
    assert changed(partition(leader=NO_LEADER, isr=(2, 3)), election=ElectionMode.PREFERRED).leader == 2


def test_a_directory_that_is_offline_can_not_lead() -> None:
    elsewhere = partition(directories=(b"x" * 16, DISKS[2], DISKS[3]))
    assert changed(elsewhere).leader == 2
    there = change(elsewhere, directories={1: DISKS[1]})
    assert there is not None
    assert (there.leader, there.directories) == (NO_LEADER_CHANGE, [DISKS[1], DISKS[2], DISKS[3]])
    assert change(elsewhere, directories={1: DISKS[1]}, version=16) is None


def test_a_completed_move_takes_its_old_replicas_out_in_a_new_epoch() -> None:
    moving = partition(
        replicas=(4, 2, 1), isr=(1, 2), leader=2, adding_replicas=(4,), removing_replicas=(1,), partition_epoch=9
    )
    after = changed(moving, isr=(1, 2, 4))
    assert (after.replicas, after.isr, after.leader, after.leader_epoch) == ((4, 2), (2, 4), 2, 6)
    assert (after.adding_replicas, after.removing_replicas) == ((), ())
    assert after.directories == (DISKS[4], DISKS[2])


def test_a_completed_move_takes_the_leader_along_when_it_must() -> None:
    moving = partition(replicas=(4, 1), isr=(1,), leader=1, adding_replicas=(4,), removing_replicas=(1,))
    after = changed(moving, isr=(1, 4))
    assert (after.replicas, after.leader, after.leader_epoch) == ((4,), 4, 6)


def test_who_is_no_replica_any_more_is_not_eligible() -> None:
    moving = partition(replicas=(1, 2, 3), isr=(1, 2, 3), removing_replicas=(2, 3))
    after = changed(moving, tracks=True, minimum=2, isr=(1, 2, 3))
    assert (after.replicas, after.isr, after.eligible_leader_replicas) == ((1,), (1,), ())


def test_new_replicas_are_where_their_broker_puts_them() -> None:
    after = changed(partition(), replicas=(1, 2, 3, 4), adding=(4,))
    assert after.directories == (DISKS[1], DISKS[2], DISKS[3], DISKS[4])
    assert after.leader_epoch == 5


@pytest.mark.parametrize("state", [RECOVERED, RECOVERING])
def test_the_leader_says_when_it_has_recovered(state: int) -> None:
    recovering = partition(isr=(1,), leader_recovery_state=RECOVERING)
    record = change(recovering, recovery_state=state)
    assert (record is None) == (state == RECOVERING)
    if record is not None:
        assert (record.leader_recovery_state, record.leader) == (RECOVERED, NO_LEADER_CHANGE)
