"""A follower's side of a fetch session: what it asks, what it does with answers, and how it comes back from errors."""

from __future__ import annotations

import errno
from typing import Any

import pytest

from millbeck.kernel import errors
from millbeck.kernel.ids import TopicPartition
from millbeck.records import batch as batches
from millbeck.records.record import Record
from millbeck.replication.fetcher import (
    THROTTLED_MS,
    FetchEffect,
    Fetcher,
    FetcherState,
    FetchLimits,
    FetchOffsets,
    TruncateLog,
    WaitForFlush,
)
from millbeck.replication.partition import Partition
from millbeck.simulation.environment.disk_faults import DiskCall
from millbeck.wire.messages.fetch import (
    EpochEndOffset,
    FetchableTopicResponse,
    FetchedPartition,
    FetchRequest,
    FetchResponse,
)
from tests.log_steps import truncate_to
from tests.unit.replication.replicas import NOW_MS, TOPIC_ID, Cluster, Replica, serve


class Following:
    """The follower 2 of a cluster, whose leader's answers a test writes by hand."""

    def __init__(self, **config: Any) -> None:
        self.cluster = Cluster(**config)
        self.cluster.elect(1)
        self.replica: Replica = self.cluster[2]
        self.partition = self.replica.partition
        assert self.replica.fetcher is not None
        self.fetcher: Fetcher = self.replica.fetcher
        self.fetcher.limits = FetchLimits(wait_ms_max=7, size_bytes_min=8, size_bytes_max=9, backoff_ms=100)

    def ask(self) -> FetchRequest:
        request = self.fetcher.request()
        assert request is not None
        return request

    def answer(self, *results: FetchedPartition, session_id: int = 77, error_code: int = 0) -> list[FetchEffect]:
        topics = [FetchableTopicResponse(topic_id=TOPIC_ID, partitions=list(results))] if results else []
        return self.fetcher.replied(FetchResponse(0, error_code, session_id, topics))

    def answer_error(self, error: type[errors.ApiError]) -> list[FetchEffect]:
        return self.answer(FetchedPartition(0, error.code))

    @property
    def state(self) -> FetcherState | None:
        return self.fetcher.state_of(self.partition)


def data(offset: int = 0, epoch: int = 0, value: bytes = b"x") -> bytes:
    return batches.build([Record(-1, NOW_MS, None, value)], base_offset=offset, partition_leader_epoch=epoch)


def offsets_in(request: FetchRequest) -> list[int]:
    return [asked.fetch_offset for topic in request.topics for asked in topic.partitions]


def test_the_lag_is_what_the_leaders_high_watermark_is_ahead() -> None:
    following = Following()
    (followed,) = following.fetcher.followed
    assert followed.lag == 0
    assert following.fetcher.has_fetchable_partitions
    following.ask()
    following.answer(FetchedPartition(0, high_watermark=10, records=data()))
    assert followed.lag == 9
    following.ask()
    following.answer(FetchedPartition(0, high_watermark=2, records=data(1)))
    assert followed.lag == 0
    following.answer_error(errors.FencedLeaderEpoch)
    following.ask()
    following.answer_error(errors.FencedLeaderEpoch)
    assert following.state is FetcherState.FENCED
    assert not following.fetcher.has_fetchable_partitions


def test_the_first_request_names_the_partition_and_the_replica_and_asks_for_a_session() -> None:
    following = Following()
    request = following.ask()
    assert (request.session_id, request.session_epoch) == (0, 0)
    assert (request.replica_state.replica_id, request.replica_state.replica_epoch) == (2, following.replica.epoch)
    assert (request.max_wait_ms, request.min_bytes, request.max_bytes) == (7, 8, 9)
    (topic,) = request.topics
    (asked,) = topic.partitions
    assert topic.topic_id == TOPIC_ID
    assert (asked.partition, asked.fetch_offset, asked.current_leader_epoch, asked.last_fetched_epoch) == (0, 0, 0, -1)


def test_later_requests_name_only_what_has_moved() -> None:
    following = Following()
    following.ask()
    assert following.answer(FetchedPartition(0, 0, 0, -1, 0, records=data())) == []
    request = following.ask()
    assert (request.session_id, request.session_epoch) == (77, 1)
    assert offsets_in(request) == [1]
    assert request.topics[0].partitions[0].last_fetched_epoch == 0
    following.answer()
    request = following.ask()
    assert (request.session_epoch, request.topics) == (2, [])


def with_more(following: Following, count: int, **limits: int) -> None:
    """Let the fetcher follow so many more of the leader's partitions."""
    replica = following.replica
    for index in range(1, count + 1):
        name = TopicPartition("t", index)
        log = replica.directory.create_log(name, TOPIC_ID, following.cluster.config, now_ms=NOW_MS)
        partition = Partition(
            log,
            replica.turn,
            written=lambda partition, now_ms: None,
            context=replica.context,
            isr_changes=following.cluster,
        )
        partition.follow(1, 1, 1)
        following.fetcher.add(partition)
    following.fetcher.limits = FetchLimits(wait_ms_max=7, **limits)


def named_in(request: FetchRequest) -> list[int]:
    return [asked.partition for topic in request.topics for asked in topic.partitions]


def nothing_for(request: FetchRequest) -> list[FetchedPartition]:
    return [FetchedPartition(index, 0, 0, -1, 0) for index in named_in(request)]


def test_a_request_looks_at_so_many_partitions_and_the_next_ones_at_the_others_at_once() -> None:
    following = Following()
    with_more(following, 4, looked_at_max=2)
    asked = []
    for _ in range(6):
        request = following.ask()
        asked.append((named_in(request), request.max_wait_ms, request.session_id))
        following.answer(*nothing_for(request))
    # The others come before those that were answered and have nothing new to say.
    assert asked == [([0, 1], 0, 0), ([2, 3], 0, 77), ([4], 0, 77), ([], 0, 77), ([], 7, 77), ([], 7, 77)]


def test_what_has_grown_is_named_among_many_that_have_not() -> None:
    following = Following()
    with_more(following, 3, looked_at_max=2)
    for _ in range(5):
        request = following.ask()
        following.answer(*nothing_for(request))
    following.ask()
    following.answer(
        *(FetchedPartition(index, 0, 0, -1, 0) for index in range(3)), FetchedPartition(3, 0, 0, -1, 0, records=data())
    )
    named = []
    for _ in range(2):
        request = following.ask()
        named.append((named_in(request), request.max_wait_ms))
        following.answer()
    assert named == [([], 0), ([3], 7)]


def test_without_a_session_a_request_names_them_all() -> None:
    following = Following()
    with_more(following, 4, looked_at_max=2)
    assert named_in(following.ask()) == [0, 1]
    for _ in range(2):
        following.answer(session_id=0)
        request = following.ask()
        assert (named_in(request), request.max_wait_ms) == ([0, 1, 2, 3, 4], 7)
    following.answer(*nothing_for(request), session_id=78)
    assert named_in(following.ask()) == []


def test_without_a_session_everything_is_named_every_time() -> None:
    following = Following()
    for _ in range(2):
        request = following.ask()
        assert (request.session_id, request.session_epoch, offsets_in(request)) == (0, 0, [0])
        following.answer(session_id=0)


@pytest.mark.parametrize("error", [errors.FetchSessionIdNotFound, errors.InvalidFetchSessionEpoch])
def test_a_lost_session_begins_anew_at_once(error: type[errors.ApiError]) -> None:
    following = Following()
    following.ask()
    following.answer()
    following.ask()
    following.answer(error_code=error.code)
    request = following.ask()
    assert (request.session_id, request.session_epoch, offsets_in(request)) == (0, 0, [0])


def test_another_error_of_the_whole_request_is_rested_on() -> None:
    following = Following()
    following.ask()
    following.answer(error_code=errors.UnknownServerError.code)
    assert following.fetcher.request() is None
    assert following.fetcher.due_ms == following.cluster.now_ms + 100


def test_records_and_what_the_leader_says_reach_the_log() -> None:
    following = Following()
    following.ask()
    following.answer(FetchedPartition(0, 0, 5, -1, 0, records=data(0) + data(1, value=b"y")))
    assert following.replica.values() == [b"x", b"y"]
    assert following.partition.high_watermark == 2
    assert following.fetcher.bytes_in == len(data(0) + data(1))
    following.ask()
    following.answer(FetchedPartition(0, 0, 5, -1, 1))
    assert following.partition.log.log_start_offset == 1


def test_a_diverging_epoch_asks_for_a_cut_and_the_partition_waits_outside_the_session() -> None:
    following = Following()
    following.ask()
    following.answer(FetchedPartition(0, 0, 0, -1, 0, records=data(0) + data(1)))
    following.ask()
    (step,) = following.answer(FetchedPartition(0, diverging_epoch=EpochEndOffset(0, 1)))
    assert isinstance(step, TruncateLog)
    assert (step.offset, step.starts_over, step.is_wanted, following.state) == (1, False, True, FetcherState.BUSY)
    assert following.fetcher.request() is None
    truncate_to(step.partition.log, step.offset)
    following.fetcher.resume(step)
    assert offsets_in(following.ask()) == [1]


def test_a_step_for_a_former_leader_is_not_wanted_any_more() -> None:
    following = Following()
    step = TruncateLog(following.partition, 0)
    following.cluster.elect(3)
    assert not step.is_wanted
    step = TruncateLog(following.partition, 0)
    following.cluster.elect(2)
    assert not step.is_wanted


@pytest.mark.parametrize(
    ("start", "end", "offset", "starts_over"), [(0, 1, 1, False), (9, 20, 9, True), (2, 20, None, False)]
)
def test_out_of_range_compares_the_two_logs(start: int, end: int, offset: int | None, starts_over: bool) -> None:
    following = Following()
    following.ask()
    following.answer(FetchedPartition(0, 0, 0, -1, 0, records=data(0) + data(1)))
    following.ask()
    (step,) = following.answer_error(errors.OffsetOutOfRange)
    assert isinstance(step, FetchOffsets)
    cut = following.fetcher.on_offsets(step, start, end)
    if offset is None:
        assert cut is None
        assert offsets_in(following.ask()) == [2]
    else:
        assert cut is not None
        assert (cut.offset, cut.starts_over, following.state) == (offset, starts_over, FetcherState.BUSY)


@pytest.mark.parametrize(
    "error",
    [
        errors.UnknownLeaderEpoch,
        errors.NotLeaderOrFollower,
        errors.UnknownTopicId,
        errors.KafkaStorageError,
        errors.UnknownServerError,
    ],
)
def test_errors_of_a_partition_are_rested_on_and_tried_again(error: type[errors.ApiError]) -> None:
    following = Following()
    following.ask()
    assert following.answer_error(error) == []
    assert following.state is FetcherState.RESTING
    assert following.fetcher.request() is None
    following.cluster.now_ms += 100
    assert offsets_in(following.ask()) == [0]


def test_a_code_nobody_knows_is_an_error_like_others() -> None:
    following = Following()
    following.ask()
    following.answer(FetchedPartition(0, 9999))
    assert following.state is FetcherState.RESTING


def test_a_fenced_partition_waits_for_the_metadata() -> None:
    following = Following()
    following.ask()
    following.answer_error(errors.FencedLeaderEpoch)
    assert following.state is FetcherState.FENCED
    following.cluster.now_ms += 10_000
    assert following.fetcher.request() is None
    following.fetcher.add(following.partition)
    assert offsets_in(following.ask()) == [0]


def test_damaged_records_are_refused_and_fetched_again() -> None:
    following = Following()
    following.ask()
    damaged = bytearray(data())
    damaged[-1] ^= 1
    following.answer(FetchedPartition(0, 0, 0, -1, 0, records=bytes(damaged)))
    assert (following.partition.log.end_offset, following.state) == (0, FetcherState.RESTING)
    following.cluster.now_ms += 100
    following.ask()
    following.answer(FetchedPartition(0, 0, 0, -1, 0, records=data()))
    assert following.replica.values() == [b"x"]


def test_a_full_disk_is_rested_on_and_a_failed_one_ends_the_following() -> None:
    following = Following()
    following.ask()
    following.replica.disk.fail_next(DiskCall.WRITE, path_part="/t-0/", error=errno.ENOSPC)
    following.answer(FetchedPartition(0, 0, 0, -1, 0, records=data()))
    assert following.state is FetcherState.RESTING
    following.cluster.now_ms += 100
    following.ask()
    following.partition.log.mark_offline("a test")
    following.answer(FetchedPartition(0, 0, 0, -1, 0, records=data()))
    assert following.state is None
    assert len(following.fetcher) == 0


@pytest.mark.parametrize("is_told", [True, False])
def test_an_answer_to_a_question_of_another_epoch_is_not_taken(is_told: bool) -> None:
    """A large image gives way to the loop before its fetchers are told of the partitions that have new leaders."""
    following = Following()
    following.ask()
    following.partition.follow(1, 5, 5)
    if is_told:
        following.fetcher.add(following.partition)
    following.answer(FetchedPartition(0, 0, 0, -1, 0, records=data()))
    assert following.partition.log.end_offset == 0
    assert following.ask().topics[0].partitions[0].current_leader_epoch == 5


def test_a_session_that_was_left_because_all_rest_is_followed_by_a_new_one_that_counts_from_its_own_start() -> None:
    following = Following()
    following.ask()
    following.answer_error(errors.NotLeaderOrFollower)
    assert following.fetcher.request() is None
    following.cluster.now_ms += 100
    request = following.ask()
    assert (request.session_id, request.session_epoch, offsets_in(request)) == (0, 0, [0])
    following.answer(session_id=78)
    request = following.ask()
    assert (request.session_id, request.session_epoch) == (78, 1)


def test_one_that_rests_leaves_the_session_and_comes_back_into_it() -> None:
    following = Following()
    other = Cluster()
    other.elect(1)
    stranger = other[3].partition
    stranger.topic_id = bytes(16)
    following.fetcher.add(stranger)
    following.ask()
    following.answer_error(errors.NotLeaderOrFollower)
    request = following.ask()
    assert [(topic.topic_id, topic.partitions) for topic in request.forgotten_topics_data] == [(TOPIC_ID, [0])]
    following.cluster.now_ms += 100
    assert offsets_in(following.ask()) == [0]
    following.fetcher.remove(following.partition)
    assert [topic.topic_id for topic in following.ask().forgotten_topics_data] == [TOPIC_ID]
    assert following.fetcher.partitions == [stranger]


def test_a_throttled_partition_stays_out_of_requests_for_a_while() -> None:
    following = Following()
    held = [True]
    copied: list[int] = []
    following.fetcher._is_held_back = lambda partition: held[0]
    following.fetcher._copied = lambda partition, size_bytes: copied.append(size_bytes)
    assert following.fetcher.request() is None
    assert following.fetcher.due_ms == following.cluster.now_ms + THROTTLED_MS
    following.cluster.now_ms += THROTTLED_MS
    held[0] = False
    assert offsets_in(following.ask()) == [0]
    following.answer(FetchedPartition(0, 0, 0, -1, 0, records=data()))
    assert copied == [len(data())]


def test_with_flush_messages_of_one_nothing_is_asked_before_the_disk_has_it() -> None:
    following = Following(flush_messages="1")
    following.ask()
    (step,) = following.answer(FetchedPartition(0, 0, 0, -1, 0, records=data()))
    assert isinstance(step, WaitForFlush)
    assert following.fetcher.request() is None
    following.partition.log.flush()
    following.fetcher.resume(step)
    assert offsets_in(following.ask()) == [1]


def test_a_follower_that_starts_with_something_unflushed_flushes_first() -> None:
    following = Following(flush_messages="1")
    following.partition.log.append_as_follower(data(), leader_epoch=0, now_ms=NOW_MS)
    step = following.fetcher.add(following.partition)
    assert isinstance(step, WaitForFlush)
    assert following.fetcher.request() is None


def test_a_step_that_failed_is_rested_on() -> None:
    following = Following()
    following.ask()
    (step,) = following.answer_error(errors.OffsetOutOfRange)
    following.fetcher.resume(step, errors.KafkaStorageError("no"))
    assert following.state is FetcherState.RESTING
    following.fetcher.resume(step)
    assert following.state is FetcherState.RESTING, "it was resumed already"


def test_when_the_connection_is_gone_the_next_request_is_a_first_one() -> None:
    following = Following()
    following.ask()
    following.answer()
    following.fetcher.failed()
    request = following.ask()
    assert (request.session_id, request.session_epoch, offsets_in(request)) == (0, 0, [0])


def test_a_follower_copies_its_leader_and_learns_of_its_watermark() -> None:
    cluster = Cluster()
    cluster.elect(1)
    for label in "abc":
        cluster.produce(label)
    cluster.fetch_all(4)
    assert [cluster[node_id].values() for node_id in (1, 2, 3)] == [[b"a", b"b", b"c"]] * 3
    assert [cluster[node_id].partition.high_watermark for node_id in (1, 2, 3)] == [3, 3, 3]
    assert cluster[2].data() == cluster[1].data()


def test_a_follower_far_behind_a_trimmed_leader_starts_over() -> None:
    cluster = Cluster()
    cluster.elect(1)
    for label in "abc":
        cluster.produce(label)
    cluster.fetch(2)
    cluster.fetch(2)
    cluster[1].partition.log.delete_records(2)
    cluster.fetch(3)
    cluster.fetch(3)
    assert (cluster[3].partition.log.log_start_offset, cluster[3].values()) == (2, [b"c"])


def test_the_helper_serves_as_a_stranger_is_served() -> None:
    cluster = Cluster()
    cluster.elect(1)
    request = cluster[2].fetcher.request() if cluster[2].fetcher else None
    assert request is not None
    request.replica_state.replica_id = 9
    response = serve(cluster[1], cluster[2], request)
    assert response.responses[0].partitions[0].error_code == errors.NotLeaderOrFollower.code
