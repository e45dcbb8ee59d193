"""Who is in sync, and how far the high watermark may go."""

from __future__ import annotations

from typing import Any

import pytest

from millbeck.kernel.errors import NotLeaderOrFollower
from millbeck.replication.isr import Follower, IsrMember, IsrState, ReplicaContext

LAG_MS = 1000


class Clock:
    def __init__(self) -> None:
        self.ms = 50_000
        self.ineligible: list[int] = []

    def context(self) -> ReplicaContext:
        return ReplicaContext(
            1, lambda: self.ms, lambda broker, epoch: broker not in self.ineligible, LAG_MS, lambda: 11
        )


def replicas(clock: Clock, isr: tuple[int, ...] = (1, 2, 3)) -> IsrState:
    in_sync = IsrState(clock.context())
    in_sync.begin((1, 2, 3), isr, is_new_leader=True)
    return in_sync


def reach(in_sync: IsrState, broker_id: int, offset: int, end_offset: int, now_ms: int = 50_000) -> Follower:
    follower = in_sync.followers[broker_id]
    follower.fetched(offset, 0, end_offset, now_ms)
    return follower


def test_the_watermark_is_the_smallest_end_of_the_in_sync_replicas() -> None:
    in_sync = replicas(Clock())
    assert in_sync.watermark(10, 10) == -1
    reach(in_sync, 2, 8, 10)
    reach(in_sync, 3, 5, 10)
    assert in_sync.watermark(10, 10) == 5
    reach(in_sync, 3, 10, 10)
    assert in_sync.watermark(10, 10) == 8
    assert in_sync.watermark(6, 10) == 6


def test_one_who_lags_outside_the_isr_holds_nothing_back() -> None:
    clock = Clock()
    in_sync = replicas(clock, isr=(1, 2))
    reach(in_sync, 2, 10, 10)
    assert in_sync.watermark(10, 10) == 10


def test_one_who_keeps_up_is_waited_for_so_that_it_can_join() -> None:
    clock = Clock()
    in_sync = replicas(clock, isr=(1, 2))
    reach(in_sync, 2, 10, 10)
    reach(in_sync, 3, 7, 7, clock.ms)
    assert in_sync.watermark(10, 10) == 7
    clock.ineligible.append(3)
    assert in_sync.watermark(10, 10) == 10
    clock.ineligible.clear()
    clock.ms += LAG_MS + 1
    assert in_sync.watermark(10, 10) == 10


def test_one_that_has_no_place_for_its_log_is_neither_waited_for_nor_proposed() -> None:
    in_sync = replicas(Clock(), isr=(1, 2))
    reach(in_sync, 2, 10, 10)
    follower = reach(in_sync, 3, 10, 10)
    assert in_sync.expansion(follower, 10, 0) == (1, 2, 3)
    in_sync.begin((1, 2, 3), (1, 2), (3,), is_new_leader=False)
    assert in_sync.expansion(follower, 10, 0) is None
    reach(in_sync, 2, 12, 12)
    assert in_sync.watermark(12, 12) == 12
    in_sync.begin((1, 2, 3), (1, 2), is_new_leader=False)
    assert in_sync.watermark(12, 12) == 10


def test_while_an_expansion_is_proposed_the_new_member_counts_for_the_watermark_and_not_for_the_minimum() -> None:
    in_sync = replicas(Clock(), isr=(1,))
    proposal = in_sync.propose((1, 3), 4, 9)
    assert (proposal.isr, proposal.leader_epoch, proposal.partition_epoch) == ((1, 3), 4, 9)
    assert in_sync.maximal == (1, 3)
    reach(in_sync, 3, 2, 10)
    assert in_sync.watermark(10, 10) == 2
    assert in_sync.is_under(2)
    in_sync.commit((1, 3))
    assert not in_sync.is_under(2)
    assert in_sync.pending is None


def test_while_a_reduction_is_proposed_the_old_set_still_counts() -> None:
    in_sync = replicas(Clock())
    for broker_id, offset in ((2, 10), (3, 4)):
        reach(in_sync, broker_id, offset, 10)
    in_sync.propose((1, 2), 4, 9)
    assert in_sync.watermark(10, 10) == 4
    in_sync.withdraw()
    assert (in_sync.maximal, in_sync.pending) == ((1, 2, 3), None)


def test_the_minimum_is_never_more_than_there_are_replicas() -> None:
    in_sync = replicas(Clock())
    assert not in_sync.is_under(5)
    in_sync.commit((1, 2))
    assert in_sync.is_under(5)
    assert in_sync.is_under(3)
    assert not in_sync.is_under(2)


def test_a_follower_is_caught_up_when_it_has_everything_or_had_it_lately() -> None:
    follower = Follower(2, 0)
    follower.fetched(10, 0, 10, 5000)
    assert follower.caught_up_ms == 5000
    follower.fetched(10, 0, 15, 6000)
    assert follower.caught_up_ms == 5000
    follower.fetched(15, 0, 20, 7000)
    assert follower.caught_up_ms == 6000, "it has what was the end at its last fetch"
    follower.fetched(16, 0, 30, 8000)
    assert follower.caught_up_ms == 6000
    assert follower.is_caught_up(16, 99_000, 1)
    assert follower.is_caught_up(30, 7000, 1000)
    assert not follower.is_caught_up(30, 7001, 1000)


def test_an_idle_session_speaks_for_the_partitions_it_does_not_name() -> None:
    class Session:
        used_ms = 9000
        epoch = 1

        def readable_end_advanced(self, partition: Any) -> None: ...

        def high_watermark_advanced(self, partition: Any) -> None: ...

    follower = Follower(2, 0)
    follower.fetched(10, 0, 10, 5000)
    follower.session = Session()
    follower.on_log_end_advanced(11)
    assert follower.caught_up_ms == 5000, "it did not have everything"
    follower.on_log_end_advanced(10)
    assert follower.caught_up_ms == 9000


def test_who_lags_for_too_long_is_left_out() -> None:
    clock = Clock()
    in_sync = replicas(clock)
    reach(in_sync, 2, 10, 10)
    reach(in_sync, 3, 9, 10)
    clock.ms += LAG_MS
    assert in_sync.reduction(10) is None
    clock.ms += 1
    assert in_sync.reduction(10) == (1, 2)
    assert in_sync.reduction(11) == (1,)
    in_sync.propose((1, 2), 0, 0)
    assert in_sync.reduction(10) is None, "one proposal at a time"


@pytest.mark.parametrize(
    ("offset", "eligible", "joins"), [(8, True, True), (7, True, False), (8, False, False), (9, True, True)]
)
def test_a_follower_joins_at_the_watermark_when_its_broker_may(offset: int, eligible: bool, joins: bool) -> None:
    clock = Clock()
    in_sync = replicas(clock, isr=(1,))
    if not eligible:
        clock.ineligible.append(2)
    follower = reach(in_sync, 2, offset, 10)
    assert in_sync.expansion(follower, 8, 0) == ((1, 2) if joins else None)


def test_a_follower_joins_only_with_the_start_of_the_leaders_epoch() -> None:
    in_sync = replicas(Clock(), isr=(1,))
    follower = reach(in_sync, 2, 9, 10)
    assert in_sync.expansion(follower, 5, 10) is None
    assert in_sync.expansion(follower, 5, 9) == (1, 2)
    in_sync.propose((1, 2), 0, 0)
    assert in_sync.expansion(reach(in_sync, 3, 10, 10), 5, 9) is None, "one proposal at a time"
    in_sync.commit((1, 2))
    assert in_sync.expansion(follower, 5, 9) is None, "it is in already"


def test_a_proposal_names_the_registrations_it_is_about() -> None:
    in_sync = replicas(Clock())
    in_sync.followers[2].broker_epoch = 22
    assert in_sync.propose((1, 2, 3), 0, 0).members == (IsrMember(1, 11), IsrMember(2, 22), IsrMember(3, -1))


def test_strangers_and_former_lives_are_no_followers() -> None:
    in_sync = replicas(Clock())
    in_sync.followers[2].broker_epoch = 22
    assert in_sync.follower(2, 22) is in_sync.followers[2]
    assert in_sync.follower(2, -1) is in_sync.followers[2]
    for broker_id, broker_epoch in ((2, 21), (1, -1), (9, 1)):
        with pytest.raises(NotLeaderOrFollower):
            in_sync.follower(broker_id, broker_epoch)


def test_a_new_leader_knows_nothing_of_its_followers_and_an_old_one_keeps_what_it_knows() -> None:
    clock = Clock()
    in_sync = replicas(clock)
    follower = reach(in_sync, 2, 10, 10)
    in_sync.begin((1, 2, 4), (1, 2), is_new_leader=False)
    assert in_sync.followers[2] is follower
    assert list(in_sync.followers) == [2, 4]
    assert in_sync.followers[4].end_offset == -1
    in_sync.begin((1, 2, 4), (1, 2), is_new_leader=True)
    assert in_sync.followers[2].end_offset == -1
    assert in_sync.followers[2].caught_up_ms == clock.ms
    assert not in_sync.followers[4].is_caught_up(5, clock.ms, LAG_MS)


def test_a_member_can_be_left_out_at_once() -> None:
    in_sync = replicas(Clock())
    assert in_sync.without(2) == (1, 3)
    in_sync.propose((1, 3), 0, 0)
    assert in_sync.without(3) is None


def test_who_has_left_is_not_known_before_it_fetches_again() -> None:
    class Session:
        used_ms = 0
        epoch = 7

        def readable_end_advanced(self, partition: Any) -> None: ...

        def high_watermark_advanced(self, partition: Any) -> None: ...

    in_sync = replicas(Clock())
    session = Session()
    for broker_id in (2, 3):
        reach(in_sync, broker_id, 10, 10).session = session
    in_sync.commit((1, 2))
    assert (in_sync.followers[2].has_fetched_since_removal, in_sync.followers[3].has_fetched_since_removal) == (
        True,
        False,
    )
    session.epoch = 8
    assert in_sync.followers[3].has_fetched_since_removal, "an idle session has fetched"
    in_sync.begin((1, 2, 3), (1,), is_new_leader=False)
    assert not in_sync.followers[2].has_fetched_since_removal
    reach(in_sync, 2, 10, 10)
    assert in_sync.followers[2].has_fetched_since_removal
