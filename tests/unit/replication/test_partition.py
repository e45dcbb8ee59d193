"""A partition the node leads: who is answered when, who is told, and what happens when the disk or the topic goes."""

from __future__ import annotations

import errno
import random
from collections.abc import Callable
from typing import Any

import pytest

from millbeck import compiled
from millbeck.kernel.errors import (
    ApiError,
    FencedLeaderEpoch,
    KafkaStorageError,
    NotEnoughReplicas,
    NotLeaderOrFollower,
    OffsetOutOfRange,
    OutOfOrderSequenceNumber,
    UnknownLeaderEpoch,
    UnknownTopicOrPartition,
)
from millbeck.kernel.event_batch import EventBatch
from millbeck.kernel.ids import TopicPartition
from millbeck.records import batch as batches
from millbeck.records import control
from millbeck.records.record import Record
from millbeck.records.validation import ValidationRules, validate
from millbeck.replication.partition import Partition
from millbeck.replication.partition_appends import CallbackAppend
from millbeck.simulation.environment.disk import SimDisk
from millbeck.simulation.environment.disk_faults import DiskCall
from millbeck.storage.config import LogConfig
from millbeck.storage.directory import LogDirectory
from millbeck.storage.file_cache import FileCache
from millbeck.storage.index_cache import IndexCache
from millbeck.storage.log import Log
from millbeck.storage.producer_state import AppendOrigin
from millbeck.storage.segment import ColdRead, CorruptSegment
from tests.unit.replication.replicas import LAG_MS, Cluster

NAME = TopicPartition("t", 0)
TOPIC_ID = bytes(range(16))
NOW_MS = 1_700_000_000_000


class Watching:
    def __init__(self) -> None:
        self.told: list[int] = []

    def readable_end_advanced(self, partition: Partition) -> None:
        self.told.append(partition.high_watermark)


class World:
    """One partition on a simulated disk, in a turn that the test runs by hand."""

    def __init__(self, **options: Any) -> None:
        self.disk = SimDisk(random.Random(1))
        self.scheduled: list[Callable[[], None]] = []
        self.errors: list[Exception] = []
        self.written: list[int] = []
        self.answers: list[tuple[str, str]] = []
        self.turn = EventBatch(self.scheduled.append, self.errors.append)
        files = self.disk.mount()
        self.directory = LogDirectory(
            files,
            "/data",
            cache=FileCache(files, 100),
            index_cache=IndexCache(),
            jitter_below=lambda _: 0,
            on_failure=lambda reason: None,
        )
        log = self.directory.create_log(NAME, TOPIC_ID, LogConfig.of(**options), now_ms=NOW_MS)
        self.partition = Partition(
            log,
            self.turn,
            leader_epoch=3,
            partition_epoch=7,
            written=lambda partition, now_ms: self.written.append(now_ms),
        )

    def append(self, label: str, *, wants_all: bool = False, **fields: Any) -> Any:
        data = batches.build([Record(-1, NOW_MS, None, label.encode())], **fields)
        validated = validate(data, ValidationRules(max_message_bytes=10_000_000), NOW_MS)

        def complete(error: ApiError | None) -> None:
            self.answers.append((label, "ok" if error is None else type(error).__name__))

        return self.partition.append(validated, CallbackAppend(complete, wants_all=wants_all), now_ms=NOW_MS)

    def end_turn(self) -> None:
        scheduled, self.scheduled[:] = list(self.scheduled), []
        for run in scheduled:
            run()

    def flush(self) -> None:
        self.partition.log.flush()
        self.partition.flushed()
        self.end_turn()


def numbered(sequence: int, producer_id: int = 9) -> dict[str, Any]:
    return {"producer_id": producer_id, "producer_epoch": 0, "base_sequence": sequence}


def test_nothing_is_settled_or_readable_before_the_end_of_the_turn() -> None:
    world = World()
    staged = world.append("a")
    assert staged.first_offset == 0
    assert (world.answers, world.partition.high_watermark, world.partition.log.end_offset) == ([], 0, 0)
    world.end_turn()
    assert (world.answers, world.partition.high_watermark) == ([("a", "ok")], 1)
    assert world.scheduled == []


def test_what_is_staged_when_the_log_closes_is_not_acknowledged() -> None:
    world = World()
    world.append("a")
    world.partition.log.closing_job()
    world.end_turn()
    assert world.answers == [("a", "KafkaStorageError")]
    assert world.partition.log.end_offset == 0


def test_appends_of_a_turn_are_one_write_and_are_settled_in_order() -> None:
    world = World()
    for label, wants_all in (("a", True), ("b", False), ("c", True), ("d", False)):
        world.append(label, wants_all=wants_all)
    assert len(world.scheduled) == 1
    world.end_turn()
    assert world.answers == [(label, "ok") for label in "abcd"]
    assert world.written == []


def test_a_write_is_told_of_once_when_it_is_time_to_flush() -> None:
    world = World(flush_messages="3")
    world.append("a")
    world.append("b")
    world.end_turn()
    assert world.written == []
    world.append("c")
    world.append("d")
    world.end_turn()
    assert world.written == [NOW_MS]


def test_with_flush_messages_of_one_only_what_is_on_the_disk_counts_for_all() -> None:
    world = World(flush_messages="1")
    watcher = Watching()
    world.partition.watchers[watcher] = None
    world.append("one", wants_all=False)
    world.append("all", wants_all=True)
    world.end_turn()
    assert world.partition.waits_for_flush
    assert (world.answers, world.partition.high_watermark, watcher.told) == ([("one", "ok")], 0, [])
    assert world.partition.read(0, size_bytes_max=1000, committed_only=False, at_least_one=True) is None
    world.flush()
    assert (world.answers, world.partition.high_watermark) == ([("one", "ok"), ("all", "ok")], 2)
    assert watcher.told == [2]


def test_those_who_wait_for_all_are_settled_as_far_as_the_flush_went() -> None:
    world = World(flush_messages="1")
    world.append("early", wants_all=True)
    world.end_turn()
    job = world.partition.log.flush_job()
    assert job is not None
    world.append("late", wants_all=True)
    world.end_turn()
    world.partition.log.finish_flush(job, job.run())
    world.partition.flushed()
    world.end_turn()
    assert world.answers == [("early", "ok")]
    world.flush()
    assert world.answers == [("early", "ok"), ("late", "ok")]


def test_a_duplicate_waits_like_the_batch_it_repeats() -> None:
    world = World(flush_messages="1")
    world.append("first", wants_all=True, **numbered(0))
    world.end_turn()
    repeated = world.append("again", wants_all=True, **numbered(0))
    assert (repeated.is_duplicate, repeated.first_offset) == (True, 0)
    world.end_turn()
    assert world.answers == []
    world.flush()
    assert world.answers == [("first", "ok"), ("again", "ok")]
    assert world.partition.log.end_offset == 1


def test_a_duplicate_in_the_same_turn_is_written_once() -> None:
    world = World()
    world.append("first", **numbered(0))
    world.append("again", **numbered(0))
    world.end_turn()
    assert world.answers == [("first", "ok"), ("again", "ok")]
    assert world.partition.high_watermark == 1


def test_a_refused_batch_raises_and_is_never_settled() -> None:
    world = World()
    world.append("fine", **numbered(0))
    with pytest.raises(OutOfOrderSequenceNumber):
        world.append("gap", **numbered(5))
    world.end_turn()
    assert world.answers == [("fine", "ok")]


def test_a_failed_write_settles_everything_of_the_turn_with_the_error_and_the_next_turn_is_free() -> None:
    world = World()
    watcher = Watching()
    world.partition.watchers[watcher] = None
    world.disk.fail_next(DiskCall.WRITE, path_part="/t-0/", error=errno.ENOSPC)
    world.append("a", **numbered(0))
    world.append("b", wants_all=True)
    world.append("a again", **numbered(0))
    world.end_turn()
    assert world.answers == [("a", "KafkaStorageError"), ("b", "KafkaStorageError"), ("a again", "KafkaStorageError")]
    assert (world.partition.high_watermark, watcher.told, world.written) == (0, [], [])
    world.answers.clear()
    world.partition.log.flush()
    assert world.append("a", **numbered(0)).first_offset == 0
    world.end_turn()
    assert world.answers == [("a", "ok")]


def test_an_offline_log_refuses_and_settles_what_was_staged() -> None:
    world = World()
    world.append("staged")
    world.partition.log.mark_offline("a test")
    world.end_turn()
    assert world.answers == [("staged", "KafkaStorageError")]
    with pytest.raises(KafkaStorageError):
        world.append("later")


def test_a_failed_flush_is_told_to_those_who_wait_for_it() -> None:
    world = World(flush_messages="1")
    watcher = Watching()
    world.partition.watchers[watcher] = None
    world.append("written", wants_all=True)
    world.end_turn()
    world.disk.fail_next(DiskCall.SYNC, path_part="/t-0/")
    with pytest.raises(KafkaStorageError):
        world.partition.log.flush()
    world.partition.flushed()
    world.end_turn()
    assert world.answers == [("written", "KafkaStorageError")]
    assert (watcher.told, world.partition.high_watermark) == ([0], 0)


def test_watchers_are_told_once_a_turn_and_only_of_growth() -> None:
    world = World()
    watcher, other = Watching(), Watching()
    world.partition.watchers[watcher] = None
    world.partition.watchers[other] = None
    for label in "abc":
        world.append(label)
    world.end_turn()
    assert (watcher.told, other.told) == ([3], [3])
    world.partition.flushed()
    world.end_turn()
    assert watcher.told == [3]
    world.append("again", **numbered(0))
    world.end_turn()
    world.append("again", **numbered(0))
    world.end_turn()
    assert watcher.told == [3, 4]


def test_a_watcher_may_leave_while_it_is_told() -> None:
    world = World()

    class Leaving(Watching):
        def readable_end_advanced(self, partition: Partition) -> None:
            super().readable_end_advanced(partition)
            del partition.watchers[self]

    watchers = [Leaving(), Leaving()]
    for watcher in watchers:
        world.partition.watchers[watcher] = None
    world.append("a")
    world.end_turn()
    assert [watcher.told for watcher in watchers] == [[1], [1]]
    assert world.errors == []


def test_watchers_hear_of_a_new_log_start() -> None:
    world = World()
    world.append("a")
    world.end_turn()
    watcher = Watching()
    world.partition.watchers[watcher] = None
    world.partition.log_start_moved()
    assert watcher.told == [1]


def test_closing_answers_everybody_once() -> None:
    world = World(flush_messages="1")
    watcher = Watching()
    world.partition.watchers[watcher] = None
    world.append("written", wants_all=True)
    world.end_turn()
    world.append("staged", wants_all=False)
    world.partition.close(UnknownTopicOrPartition("gone"))
    assert world.answers == [("written", "UnknownTopicOrPartition"), ("staged", "UnknownTopicOrPartition")]
    assert watcher.told == [0]
    world.directory.delete_log(NAME, bytes(16))
    world.end_turn()
    assert len(world.answers) == 2
    assert world.errors == []


def test_one_settlement_that_raises_does_not_keep_the_others_from_theirs() -> None:
    world = World()

    def raises(error: ApiError | None) -> None:
        raise ZeroDivisionError

    world.append("before")
    data = batches.build([Record(-1, NOW_MS, None, b"x")])
    validated = validate(data, ValidationRules(max_message_bytes=1000), NOW_MS)
    world.partition.append(validated, CallbackAppend(raises, wants_all=False), now_ms=NOW_MS)
    world.append("after")
    world.end_turn()
    world.append("next turn")
    world.end_turn()
    assert world.answers == [("before", "ok"), ("after", "ok"), ("next turn", "ok")]
    assert [type(error) for error in world.errors] == [ZeroDivisionError]


def test_leader_epochs_of_readers_are_compared_with_ours() -> None:
    partition = World().partition
    partition.check_leader_epoch(-1)
    partition.check_leader_epoch(3)
    with pytest.raises(FencedLeaderEpoch):
        partition.check_leader_epoch(2)
    with pytest.raises(UnknownLeaderEpoch):
        partition.check_leader_epoch(4)


def test_a_new_leader_epoch_begins_at_the_end_of_the_log_and_marks_what_follows() -> None:
    world = World()
    world.append("old")
    world.end_turn()
    world.partition.lead(8, 9)
    assert (world.partition.leader_epoch, world.partition.partition_epoch) == (8, 9)
    world.append("new")
    world.end_turn()
    assert world.partition.log.end_offset_for_epoch(3) == (3, 1)
    assert world.partition.log.end_offset_for_epoch(8) == (8, 2)
    piece = world.partition.read(1, size_bytes_max=1000, committed_only=False, at_least_one=True)
    assert piece is not None
    assert batches.read_header(piece.file.read(piece.size, piece.position)).partition_leader_epoch == 8
    piece.release()


def test_an_older_leader_epoch_changes_nothing_but_the_partition_epoch() -> None:
    world = World()
    world.partition.lead(2, 11)
    assert (world.partition.leader_epoch, world.partition.partition_epoch) == (3, 11)


def test_reads_stop_at_the_high_watermark_or_the_first_open_transaction() -> None:
    world = World()
    world.append("plain")
    world.end_turn()
    partition = world.partition
    data = batches.build([Record(-1, NOW_MS, None, b"open")], is_transactional=True, **numbered(0))
    partition.log.stage(data, leader_epoch=3, now_ms=NOW_MS)
    partition.log.write_staged()
    partition.advance_high_watermark()
    assert partition.fetch_upper_bound(committed_only=False) == 2
    assert partition.fetch_upper_bound(committed_only=True) == 1
    committed = partition.read(0, size_bytes_max=10_000, committed_only=True, at_least_one=True)
    everything = partition.read(0, size_bytes_max=10_000, committed_only=False, at_least_one=True)
    assert committed is not None
    assert everything is not None
    assert committed.size < everything.size
    committed.release()
    everything.release()
    assert partition.read(1, size_bytes_max=10_000, committed_only=True, at_least_one=True) is None
    marker = control.marker_batch(
        control.EndTransaction(committed=True, coordinator_epoch=1), producer_id=9, producer_epoch=0, timestamp=NOW_MS
    )
    partition.log.stage(marker, leader_epoch=3, now_ms=NOW_MS, origin=AppendOrigin.COORDINATOR)
    partition.log.write_staged()
    partition.advance_high_watermark()
    assert partition.fetch_upper_bound(committed_only=True) == 3


@pytest.mark.parametrize("offset", [-1, 0, 3])
def test_offsets_outside_the_log_are_out_of_range(offset: int) -> None:
    world = World()
    world.append("a")
    world.append("b")
    world.end_turn()
    world.partition.log.delete_records(1)
    with pytest.raises(OffsetOutOfRange, match=r"outside \[1, 2\]"):
        world.partition.read(offset, size_bytes_max=1000, committed_only=False, at_least_one=True)


def test_a_reader_that_may_not_wait_gets_the_job_that_warms() -> None:
    world = World(segment_bytes=str(1024 * 1024))
    for number in range(30):
        world.append(f"{number}" + "x" * 100_000)
        world.end_turn()
    world.disk.faults.cold_read = 1.0
    arguments: dict[str, Any] = {"size_bytes_max": 1000, "committed_only": False, "at_least_one": True}
    with pytest.raises(ColdRead) as cold:
        world.partition.read(2, **arguments)
    cold.value.job()
    cold.value.release()
    piece = world.partition.read(2, **arguments, nowait=False)
    assert piece is not None
    piece.release()


@pytest.mark.skipif(compiled.in_use(), reason="a compiled class keeps its methods")
def test_a_write_that_raises_anything_fails_everybody_and_leaves_nothing_staged(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world = World()
    world.append("a")

    def damaged(self: Log) -> None:
        raise CorruptSegment("x.log", 0, "no batch begins here")

    with monkeypatch.context() as patch:
        patch.setattr(Log, "write_staged", damaged)
        world.end_turn()
    assert world.answers == [("a", "KafkaStorageError")]
    assert [type(error) for error in world.errors] == [CorruptSegment]
    assert not world.partition.log.has_staged
    assert world.append("b").first_offset == 0
    world.end_turn()
    assert world.answers[1:] == [("b", "ok")]


def test_a_flush_that_cannot_begin_keeps_no_append_from_its_answer() -> None:
    world = World(flush_messages="2")

    def refuse(partition: Partition, now_ms: int) -> None:
        raise OSError(errno.EMFILE, "too many open files")

    world.partition._written = refuse
    world.append("a", wants_all=True)
    world.append("b", wants_all=True)
    world.end_turn()
    assert world.answers == [("a", "ok"), ("b", "ok")]
    assert [type(error) for error in world.errors] == [OSError]


# Several replicas.


def led(**config: Any) -> Cluster:
    cluster = Cluster(**config)
    cluster.elect(1)
    return cluster


def test_who_waits_for_all_is_settled_in_offset_order_as_the_watermark_passes() -> None:
    cluster = led()
    cluster.fetch_bytes = 1
    appends = [cluster.produce(label) for label in "abc"]
    assert [append.outcome for append in appends] == [None, None, None]
    cluster.fetch_all(2)
    assert [append.outcome for append in appends] == ["ok", None, None]
    cluster.fetch_all(1)
    assert [append.outcome for append in appends] == ["ok", "ok", None]
    assert cluster.produce("one", acks_all=False).outcome == "ok"


def test_a_duplicate_of_what_waits_is_settled_with_it_and_not_behind_later_batches() -> None:
    cluster = led()
    cluster.fetch_bytes = 1
    first = cluster.produce("a", **numbered(0))
    second = cluster.produce("b", **numbered(1))
    again = cluster.produce("a", **numbered(0))
    assert again.first_offset == 0
    cluster.fetch_all(2)
    assert (first.outcome, second.outcome, again.outcome) == ("ok", None, "ok")


def test_what_was_sent_behind_a_batch_refused_for_lack_of_replicas_is_refused_for_that_too() -> None:
    cluster = led()
    cluster.produce("a", **numbered(0))
    cluster.change_isr((1,))
    with pytest.raises(NotEnoughReplicas):
        cluster.produce("b", **numbered(1))
    cluster.change_isr((1, 2))
    with pytest.raises(NotEnoughReplicas):
        cluster.produce("c", **numbered(2))
    assert [cluster.produce(label, **numbered(index)).first_offset for index, label in ((1, "b"), (2, "c"))] == [1, 2]
    with pytest.raises(OutOfOrderSequenceNumber):
        cluster.produce("e", **numbered(4))


def test_what_was_sent_behind_a_batch_that_came_before_its_leader_began_is_refused_for_that_too() -> None:
    cluster = led()
    cluster.produce("a", **numbered(0))
    cluster.fetch_all(2)
    with pytest.raises(NotLeaderOrFollower):
        cluster.produce("b", node_id=2, **numbered(1))
    cluster.elect(2)
    with pytest.raises(NotLeaderOrFollower):
        cluster.produce("c", **numbered(2))
    assert cluster.produce("b", **numbered(1)).first_offset == 1
    assert cluster.produce("c", **numbered(2)).first_offset == 2


def test_a_producer_nobody_knows_does_not_begin_with_its_second_batch_when_the_first_was_refused() -> None:
    cluster = led()
    cluster.change_isr((1,))
    with pytest.raises(NotEnoughReplicas):
        cluster.produce("a", **numbered(0))
    cluster.change_isr((1, 2))
    with pytest.raises(NotEnoughReplicas):
        cluster.produce("b", **numbered(1))
    assert cluster.produce("other", **numbered(7, producer_id=8)).first_offset == 0
    assert [cluster.produce(label, **numbered(index)).first_offset for index, label in enumerate("ab")] == [1, 2]


def test_a_refused_batch_that_is_in_the_log_already_keeps_nobody_waiting() -> None:
    cluster = led()
    cluster.produce("a", **numbered(0))
    cluster.change_isr((1,))
    with pytest.raises(NotEnoughReplicas):
        cluster.produce("a", **numbered(0))
    cluster.change_isr((1, 2))
    assert cluster.produce("b", **numbered(1)).first_offset == 1
    assert cluster.produce("a", **numbered(0)).first_offset == 0


def test_with_too_few_in_sync_nothing_is_appended_for_all_and_the_watermark_stands_still() -> None:
    cluster = led()
    waiting = cluster.produce("a")
    cluster.change_isr((1,))
    assert waiting.outcome == "NotEnoughReplicasAfterAppend"
    with pytest.raises(NotEnoughReplicas):
        cluster.produce("b")
    partition = cluster[1].partition
    assert (partition.log.end_offset, partition.high_watermark) == (1, 0)
    assert cluster.produce("c", acks_all=False).outcome == "ok"
    assert partition.high_watermark == 0
    cluster.change_isr((1, 2))
    cluster.fetch_all()
    assert partition.high_watermark == 2


def test_one_proposal_is_out_at_a_time_and_the_next_follows_its_answer() -> None:
    cluster = led()
    cluster.change_isr((1,))
    cluster.fetch_all(1)
    assert [proposal.isr for _, proposal in cluster.proposals] == [(1, 2)]
    assert cluster.decide() == [(1, 2)]
    assert [proposal.isr for _, proposal in cluster.proposals] == [(1, 2, 3)]
    assert cluster.decide() == [(1, 2, 3)]
    assert cluster[1].partition.partition_epoch == cluster.partition_epoch


def test_a_refused_proposal_is_withdrawn_and_made_again_when_somebody_looks() -> None:
    cluster = led()
    cluster.change_isr((1, 2))
    cluster.fetch(3)
    cluster.ineligible.append(3)
    assert cluster.decide() == []
    partition = cluster[1].partition
    assert partition.replicas is not None
    assert (partition.replicas.pending, partition.replicas.maximal) == (None, (1, 2))
    cluster.fetch(3)
    assert cluster.proposals == []
    cluster.ineligible.clear()
    partition.maybe_shrink_isr()
    assert cluster.decide() == [(1, 2, 3)]


def test_answers_about_another_time_change_nothing() -> None:
    cluster = led()
    cluster.change_isr((1, 2))
    cluster.fetch(3)
    ((partition, proposal),) = cluster.proposals
    cluster.elect(1)
    partition.on_alter_partition_response(proposal, (1, 2, 3), 99)
    partition.on_alter_partition_error(proposal)
    assert partition.replicas is not None
    assert (partition.replicas.isr, partition.partition_epoch) == ((1, 2), cluster.partition_epoch)


def test_metadata_older_than_an_answer_is_passed_over() -> None:
    cluster = led()
    cluster.change_isr((1, 2))
    cluster.fetch(3)
    cluster.decide()
    partition = cluster[1].partition
    assert not partition.lead(cluster.leader_epoch, cluster.partition_epoch - 1, (1, 2, 3), (1, 2))
    assert partition.replicas is not None
    assert partition.replicas.isr == (1, 2, 3)


def test_metadata_that_repeats_an_answer_leaves_the_next_proposal_in_force() -> None:
    """The controller may have taken that already: until it says, its new member counts."""
    cluster = led(min_insync_replicas="1")
    cluster.produce("a")
    cluster.fetch_all()
    cluster.change_isr((1,))
    for node_id in (2, 3):
        cluster.fetch(node_id)
    assert cluster.decide() == [(1, 2)]
    ((partition, proposal),) = cluster.proposals
    assert proposal.isr == (1, 2, 3)
    cluster.tell(1)
    assert partition.replicas is not None
    assert (partition.replicas.pending, partition.replicas.maximal) == (proposal, (1, 2, 3))
    cluster.now_ms += 2 * LAG_MS
    append = cluster.produce("b")
    cluster.fetch(2)
    cluster.fetch(2)
    assert append.outcome is None, "acknowledged without a replica that may be in sync by now"
    assert cluster.decide() == [(1, 2, 3)]
    cluster.fetch_all()
    assert append.outcome == "ok"


@pytest.mark.parametrize(
    ("raised_to", "expected"), [("1", "ok"), ("2", "NotEnoughReplicasAfterAppend")], ids=["stays", "is raised"]
)
def test_nothing_is_committed_without_who_has_left_before_the_metadata_says_so(raised_to: str, expected: str) -> None:
    """The option may have been raised before it left, and then it may lead again: what it lacks would be lost."""
    cluster = led(min_insync_replicas="1")
    cluster.produce("a")
    cluster.fetch_all()
    cluster.change_isr((1, 2))
    cluster.now_ms += 2 * LAG_MS
    append = cluster.produce("b")
    partition = cluster[1].partition
    cluster.config = cluster.config.replace(min_insync_replicas=int(raised_to))
    partition.maybe_shrink_isr()
    assert cluster.decide() == [(1,)]
    assert cluster.eligible == ((2,) if raised_to == "2" else ())
    assert (append.outcome, partition.high_watermark) == (None, 1)
    partition.log.update_config(cluster.config)
    cluster.tell(1)
    assert append.outcome == expected
    assert partition.high_watermark == (2 if expected == "ok" else 1)


def test_who_has_caught_up_while_another_left_is_proposed_when_the_metadata_says_that_it_has() -> None:
    """Not at the next look, which may be far away: until then the leader might be alone in sync."""
    cluster = led(min_insync_replicas="1")
    cluster.produce("a")
    cluster.fetch_all()
    cluster.change_isr((1, 2))
    cluster.now_ms += 2 * LAG_MS
    cluster.produce("b")
    cluster[1].partition.maybe_shrink_isr()
    for _ in range(2):
        cluster.fetch(3)
    assert cluster.decide() == [(1,)]
    assert cluster.proposals == []
    cluster.tell(1)
    assert cluster.decide() == [(1, 3)]


def test_a_member_that_has_lost_what_it_had_leaves_at_once() -> None:
    cluster = led()
    cluster.produce("a")
    cluster.fetch_all()
    partition = cluster[1].partition
    assert partition.high_watermark == 1
    partition.update_follower_fetch_state(3, -1, 0, 0, None)
    assert [proposal.isr for _, proposal in cluster.proposals] == [(1, 2)]


def test_a_member_that_was_taken_out_comes_back_by_a_fetch_and_not_by_what_was_known_of_it() -> None:
    cluster = led()
    cluster.produce("a")
    cluster.fetch_all()
    cluster.change_isr((1, 2))
    cluster[1].partition.maybe_expand_isr()
    assert cluster.proposals == []
    cluster[3].session.epoch += 1
    cluster[1].partition.maybe_expand_isr()
    assert [proposal.isr for _, proposal in cluster.proposals] == [(1, 2, 3)], "its idle session has fetched since"


def test_nobody_fetches_from_one_that_does_not_lead_or_has_no_followers() -> None:
    cluster = led()
    with pytest.raises(NotLeaderOrFollower):
        cluster[2].partition.update_follower_fetch_state(3, -1, 0, 0, None)
    with pytest.raises(NotLeaderOrFollower):
        World().partition.update_follower_fetch_state(2, -1, 0, 0, None)
    cluster[1].partition.update_follower_fetch_state(2, 9, 0, 0, None)
    with pytest.raises(NotLeaderOrFollower):
        cluster[1].partition.update_follower_fetch_state(2, 8, 0, 0, None)


def test_a_deposed_leader_answers_everybody_and_writes_nothing_more() -> None:
    cluster = led()
    waiting = cluster.produce("written")
    replica = cluster[1]
    data = validate(
        batches.build([Record(-1, NOW_MS, None, b"staged")]), ValidationRules(max_message_bytes=1000), NOW_MS
    )
    outcomes: list[ApiError | None] = []
    replica.partition.append(data, CallbackAppend(outcomes.append, wants_all=False), now_ms=NOW_MS)
    cluster.elect(2)
    assert waiting.outcome == "NotLeaderOrFollower"
    assert [type(error) for error in outcomes] == [NotLeaderOrFollower]
    assert replica.values() == [b"written"]
    with pytest.raises(NotLeaderOrFollower):
        cluster.produce("late", node_id=1)
    cluster.elect(1)
    cluster.produce("again")
    assert replica.values() == [b"written", b"again"], "what was answered with an error does not come back"


def test_what_is_staged_when_the_epoch_changes_belongs_to_the_old_one() -> None:
    cluster = led()
    partition = cluster[1].partition
    data = validate(batches.build([Record(-1, NOW_MS, None, b"old")]), ValidationRules(max_message_bytes=1000), NOW_MS)
    partition.append(data, CallbackAppend(lambda error: None, wants_all=False), now_ms=NOW_MS)
    cluster.elect(1)
    assert (partition.log.end_offset, partition.epoch_start_offset) == (1, 1)
    cluster.produce("new")
    assert partition.log.epochs.entries() == [(0, 0), (1, 1)]


def test_a_new_leader_knows_what_is_committed_when_its_followers_have_come() -> None:
    cluster = led()
    cluster.produce("a")
    cluster.fetch_all(2)
    cluster.elect(2)
    partition = cluster[2].partition
    assert not partition.knows_committed
    cluster.fetch_all()
    assert partition.knows_committed
    assert partition.high_watermark == 1


def test_only_the_leader_of_that_epoch_answers() -> None:
    cluster = led()
    cluster[1].partition.check_is_leader(0)
    with pytest.raises(NotLeaderOrFollower):
        cluster[2].partition.check_is_leader(0)
    with pytest.raises(UnknownLeaderEpoch):
        cluster[2].partition.check_is_leader(1)


def test_followers_are_told_of_growth_at_once_and_of_the_watermark_by_the_way() -> None:
    class Follower(Watching):
        def __init__(self) -> None:
            super().__init__()
            self.by_the_way = 0

        def high_watermark_advanced(self, partition: Partition) -> None:
            self.by_the_way += 1

    cluster = led()
    follower = Follower()
    partition = cluster[1].partition
    partition.end_watchers[follower] = None
    cluster.produce("a")
    assert (follower.told, follower.by_the_way) == ([0], 0)
    cluster.fetch_all(2)
    assert (follower.told, follower.by_the_way) == ([0], 1)
    cluster[1].context.wakes_followers = True
    cluster.produce("b")
    cluster.fetch_all(2)
    assert (follower.told, follower.by_the_way) == ([0, 1, 2], 1)
    cluster.elect(2)
    assert len(follower.told) == 4


def test_a_follower_believes_its_leader_as_far_as_its_log_goes() -> None:
    cluster = led()
    cluster.produce("a")
    cluster.fetch(2)
    partition = cluster[2].partition
    watcher = Watching()
    partition.watchers[watcher] = None
    partition.update_from_leader(9, 0)
    assert (partition.high_watermark, watcher.told) == (1, [1])
    partition.update_from_leader(0, 5)
    assert (partition.high_watermark, partition.log.log_start_offset) == (1, 1)


def test_only_an_append_that_others_must_have_outlives_its_turn() -> None:
    data = validate(batches.build([Record(-1, NOW_MS, None, b"x")]), ValidationRules(max_message_bytes=1000), NOW_MS)
    for partition, may_wait in (
        (World().partition, False),
        (World(flush_messages="1").partition, True),
        (led()[1].partition, True),
    ):
        append = CallbackAppend(lambda error: None)
        partition.append(data, append, now_ms=NOW_MS)
        assert append.may_wait == may_wait


def test_a_replica_that_stays_alone_waits_for_nobody() -> None:
    cluster = led()
    waiting = cluster.produce("a")
    partition = cluster[1].partition
    partition.lead(5, 5, (1,), (1,))
    cluster[1].end_turn()
    assert (waiting.outcome, partition.replicas, partition.high_watermark) == ("ok", None, 1)


def test_a_flush_is_told_once_to_who_waits_for_it() -> None:
    partition = World().partition
    told: list[int] = []
    partition.on_flushed = lambda: told.append(1)
    partition.flushed()
    partition.flushed()
    assert told == [1]
