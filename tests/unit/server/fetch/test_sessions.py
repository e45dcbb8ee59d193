"""KIP-227: ids, epochs, what a session remembers, and what it looks at."""

from __future__ import annotations

import random
from typing import Any, cast

import pytest

from millbeck.kernel.errors import FetchSessionIdNotFound, FetchSessionTopicIdError, InvalidFetchSessionEpoch
from millbeck.replication.partition import Partition
from millbeck.server.fetch.sessions import EVICTION_IDLE_MS, CachedPartition, FetchSession, FetchSessions
from tests.unit.server.harness.method_patches import needs_sources


def wanted(topic: str = "t", index: int = 0, offset: int = 0) -> CachedPartition:
    return CachedPartition(topic, index, offset, 1000, -1, -1)


class FakePartition:
    def __init__(self) -> None:
        self.watchers: dict[Any, None] = {}
        self.end_watchers: dict[Any, None] = {}


def partition() -> Partition:
    return cast(Partition, FakePartition())


def sessions(slots: int = 2) -> FetchSessions:
    return FetchSessions(slots, random.Random(1).randrange)


def opened(cache: FetchSessions, size: int = 1, now_ms: int = 0) -> FetchSession:
    session = cache.open(size, False, now_ms)
    assert session is not None
    session.update([wanted(index=index) for index in range(size)], ())
    return session


def test_ids_are_positive_and_epochs_count_from_one() -> None:
    cache = sessions()
    session = opened(cache)
    assert session.session_id > 0
    for epoch in (1, 2, 3):
        assert cache.next(session.session_id, epoch, False, 0) is session


def test_the_epoch_wraps_to_one() -> None:
    cache = sessions()
    session = opened(cache)
    session.epoch = 2**31 - 1
    cache.next(session.session_id, 2**31 - 1, False, 0)
    assert session.epoch == 1


def test_an_unknown_id_a_wrong_epoch_and_mixed_topic_names_are_told_apart() -> None:
    cache = sessions()
    session = opened(cache)
    with pytest.raises(FetchSessionIdNotFound):
        cache.next(session.session_id + 1, 1, False, 0)
    with pytest.raises(InvalidFetchSessionEpoch):
        cache.next(session.session_id, 7, False, 0)
    with pytest.raises(FetchSessionTopicIdError):
        cache.next(session.session_id, 1, True, 0)


def test_no_session_for_no_partitions() -> None:
    assert sessions().open(0, False, 0) is None


LATER_MS = EVICTION_IDLE_MS + 1


def opened_with(cache: FetchSessions, size: int, now_ms: int, *, is_privileged: bool = False) -> FetchSession:
    session = cache.open(size, False, now_ms, is_privileged=is_privileged)
    assert session is not None
    session.update([wanted(index=index) for index in range(size)], ())
    return session


def test_a_session_not_used_for_two_minutes_makes_room_for_any() -> None:
    cache = sessions(slots=1)
    opened_with(cache, 4, 10, is_privileged=True)
    assert cache.open(1, False, 10 + EVICTION_IDLE_MS) is None
    assert cache.open(1, False, 11 + EVICTION_IDLE_MS) is not None
    assert (cache.evictions, len(cache)) == (1, 1)


def test_the_first_two_minutes_are_safe_from_consumers() -> None:
    cache = sessions(slots=1)
    session = opened_with(cache, 1, 0)
    cache.next(session.session_id, 1, False, EVICTION_IDLE_MS)
    assert cache.open(100, False, LATER_MS) is None
    cache.next(session.session_id, 2, False, LATER_MS)
    assert cache.open(100, False, LATER_MS) is not None


def test_a_smaller_session_goes_for_one_not_smaller_and_the_smallest_goes_first() -> None:
    cache = sessions(slots=2)
    large, small = opened_with(cache, 5, 0), opened_with(cache, 3, 0)
    for session in (large, small):
        cache.next(session.session_id, 1, False, LATER_MS)
    assert cache.open(2, False, LATER_MS) is None
    assert cache.open(3, False, LATER_MS) is not None
    with pytest.raises(FetchSessionIdNotFound):
        cache.next(small.session_id, 2, False, LATER_MS)
    cache.next(large.session_id, 2, False, LATER_MS)


def test_a_session_is_worth_what_it_has_now() -> None:
    cache = sessions(slots=2)
    grown, other = opened_with(cache, 1, 0), opened_with(cache, 3, 0)
    grown.update([wanted(index=index) for index in range(9)], ())
    for session in (grown, other):
        cache.next(session.session_id, 1, False, LATER_MS)
    assert cache.open(4, False, LATER_MS) is not None
    cache.next(grown.session_id, 2, False, LATER_MS)
    with pytest.raises(FetchSessionIdNotFound):
        cache.next(other.session_id, 2, False, LATER_MS)


def test_followers_take_the_place_of_consumers_at_once_and_never_the_other_way() -> None:
    cache = sessions(slots=1)
    opened_with(cache, 50, 0)
    follower = cache.open(1, False, 1, is_privileged=True)
    assert follower is not None
    follower.update([wanted()], ())
    assert cache.open(9, False, 2, is_privileged=True) is None
    cache.next(follower.session_id, 1, False, LATER_MS + 1)
    assert cache.open(100, False, LATER_MS + 1) is None
    assert cache.open(1, False, LATER_MS + 1, is_privileged=True) is not None
    assert cache.evictions == 2


def test_what_was_closed_is_not_evicted_again() -> None:
    cache = sessions(slots=1)
    session = opened_with(cache, 2, 0)
    cache.close(session.session_id)
    opened_with(cache, 2, 1)
    assert cache.open(2, False, 2) is None
    assert cache.evictions == 0


@needs_sources
def test_only_what_is_named_or_has_grown_is_looked_at() -> None:
    session = FetchSession(1, False, 0)
    quiet, busy = wanted(index=0), wanted(index=1)
    session.update([quiet, busy], ())
    where = {0: partition(), 1: partition()}
    for each in (quiet, busy):
        session.watch(each, where[each.partition_index])
        session.mark_without_data(each)
    assert session.ready == {}
    session.readable_end_advanced(where[1])
    assert list(session.ready.values()) == [busy]
    session.update([wanted(index=0, offset=5)], ())
    assert quiet.fetch_offset == 5
    assert list(session.ready.values()) == [busy, quiet]


@needs_sources
def test_growth_wakes_a_parked_fetch() -> None:
    session = FetchSession(1, False, 0)
    only = wanted()
    session.update([only], ())
    place = partition()
    session.watch(only, place)
    woken: list[int] = []
    session.on_ready = lambda: woken.append(1)
    session.readable_end_advanced(place)
    assert woken == [1]


@needs_sources
def test_a_forgotten_or_closed_partition_is_no_longer_watched() -> None:
    session = FetchSession(1, False, 0)
    first, second = wanted(index=0), wanted(index=1)
    places = [partition(), partition()]
    session.update([first, second], ())
    session.watch(first, places[0])
    session.watch(second, places[1])
    session.update([], [first.key])
    assert session not in places[0].watchers
    session.readable_end_advanced(places[0])
    assert first.key not in session.ready
    session.close()
    assert session not in places[1].watchers


def test_what_was_served_goes_behind_the_others() -> None:
    session = FetchSession(1, False, 0)
    parts = [wanted(index=index) for index in range(3)]
    session.update(parts, ())
    session.served(parts[0])
    assert [each.partition_index for each in session.wanted.values()] == [1, 2, 0]
    assert [each.partition_index for each in session.ready.values()] == [1, 2, 0]


@needs_sources
def test_a_recreated_topic_moves_the_watch() -> None:
    session = FetchSession(1, False, 0)
    only = wanted()
    session.update([only], ())
    old, new = partition(), partition()
    session.watch(only, old)
    session.watch(only, new)
    assert session not in old.watchers
    assert session in new.watchers


@needs_sources
def test_a_followers_session_watches_the_end_of_the_log() -> None:
    session = sessions(1).open(9, True, 200_000, is_privileged=True)
    assert session is not None
    place, asked = partition(), CachedPartition(bytes(16), 0, 0, 100, -1, -1)
    session.update([asked], ())
    session.watch(asked, place)
    assert (session in place.end_watchers, session in place.watchers) == (True, False)
    session.mark_without_data(asked)
    woken: list[int] = []
    session.on_ready = lambda: woken.append(1)
    session.high_watermark_advanced(place)
    assert (list(session.ready.values()), woken) == ([asked], [])
    session.high_watermark_advanced(partition())
    session.readable_end_advanced(place)
    assert woken == [1]
    session.close()
    assert place.end_watchers == {}
