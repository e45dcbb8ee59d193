"""Replicas of one partition, each on a simulated disk, without a network: a test says who fetches, and when.

`Cluster` is also their controller: it commits in-sync replicas as the real one does, by comparing epochs, and names
leaders. Time stands still unless a test moves it.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

from millbeck.kernel.errors import ApiError
from millbeck.kernel.event_batch import EventBatch
from millbeck.kernel.ids import TopicPartition
from millbeck.records import batch as batches
from millbeck.records.record import Record
from millbeck.records.validation import ValidationRules, validate
from millbeck.replication.fetcher import FetchEffect, Fetcher, FetchLimits, FetchOffsets, TruncateLog, WaitForFlush
from millbeck.replication.isr import IsrProposal, ReplicaContext
from millbeck.replication.log_read import LOG_END, FetchPosition, read_partition
from millbeck.replication.partition import NO_LEADER, Partition
from millbeck.replication.partition_appends import CallbackAppend
from millbeck.simulation.environment.disk import SimDisk
from millbeck.storage.config import LogConfig
from millbeck.storage.directory import LogDirectory
from millbeck.storage.file_cache import FileCache
from millbeck.storage.index_cache import IndexCache
from millbeck.wire.messages.fetch import (
    EpochEndOffset,
    FetchableTopicResponse,
    FetchedPartition,
    FetchPartition,
    FetchRequest,
    FetchResponse,
)
from tests.log_steps import truncate_to

NAME = TopicPartition("t", 0)
TOPIC_ID = bytes(range(16))
NOW_MS = 1_700_000_000_000
LAG_MS = 30_000
RULES = ValidationRules(max_message_bytes=1_000_000)


class Session:
    """What the leader knows of a follower's session."""

    def __init__(self) -> None:
        self.used_ms = 0
        self.epoch = 0

    def readable_end_advanced(self, partition: Partition) -> None: ...

    def high_watermark_advanced(self, partition: Partition) -> None: ...


class Replica:
    """One broker's replica. ``crash`` ends the process, ``start`` makes another on the same disk."""

    def __init__(self, cluster: Cluster, node_id: int) -> None:
        self.cluster = cluster
        self.node_id = node_id
        self.disk = SimDisk(random.Random(node_id))
        self.is_up = False
        self.checkpoint = 0
        """The high watermark as it was written down last."""
        self.epoch = 0
        self.start()

    def start(self) -> None:
        cluster = self.cluster
        self.files = self.disk.mount()
        self.scheduled: list[Callable[[], None]] = []
        self.turn = EventBatch(self.scheduled.append, _raise)
        self.directory = LogDirectory(
            self.files,
            "/data",
            cache=FileCache(self.files, 100),
            index_cache=IndexCache(),
            jitter_below=lambda _: 0,
            on_failure=lambda reason: None,
        )
        found = any(name == NAME for name, _ in self.directory.partitions())
        make = self.directory.open_log if found else self.directory.create_log
        self.epoch += 1
        self.context = ReplicaContext(
            self.node_id, lambda: cluster.now_ms, cluster.is_eligible, LAG_MS, lambda: self.epoch
        )
        self.partition = Partition(
            make(NAME, TOPIC_ID, cluster.config, now_ms=NOW_MS),
            self.turn,
            written=lambda partition, now_ms: None,
            context=self.context,
            isr_changes=cluster,
            high_watermark=self.checkpoint,
        )
        self.session = Session()
        self.fetcher: Fetcher | None = None
        self.is_up = True

    def crash(self, *, power_loss: bool = False) -> None:
        self.is_up = False
        if power_loss:
            self.disk.power_loss()
        else:
            self.disk.unmount(self.files)

    def end_turn(self) -> None:
        while self.scheduled:
            scheduled, self.scheduled[:] = list(self.scheduled), []
            for run in scheduled:
                run()

    def flush(self) -> None:
        self.partition.log.flush()
        self.partition.flushed()
        self.end_turn()

    def data(self, upto_offset: int | None = None) -> bytes:
        """The bytes of every batch below an offset."""
        log = self.partition.log
        end_offset = log.end_offset if upto_offset is None else upto_offset
        found, offset = b"", log.log_start_offset
        while offset < end_offset:
            piece = log.read(offset, size_bytes_max=1_000_000, upto_offset=end_offset)
            if piece is None:
                break
            data = piece.file.read(piece.size, piece.position)
            piece.release()
            found += data
            offset = list(batches.split(data))[-1].header.next_offset
        return found

    def values(self, upto_offset: int | None = None) -> list[bytes]:
        return [
            record.value or b""
            for one in batches.split(self.data(upto_offset))
            for record in batches.records_of(one.data)
        ]


class Append:
    """What became of a batch."""

    def __init__(self, label: str, *, wants_all: bool) -> None:
        self.label = label
        self.wants_all = wants_all
        self.outcome: str | None = None
        self.first_offset = -1
        self.seen: list[str] = []

    def complete(self, error: ApiError | None) -> None:
        assert self.outcome is None, "completed twice"
        self.outcome = "ok" if error is None else type(error).__name__


class Cluster:
    """The replicas, and the controller's view of their partition."""

    def __init__(self, count: int = 3, **config: str) -> None:
        self.config = LogConfig.of(**{"min_insync_replicas": "2", **config})
        self.now_ms = 1_000_000
        self.fetch_bytes = 1000
        self.proposals: list[tuple[Partition, IsrProposal]] = []
        self.ineligible: list[int] = []
        self.leader = NO_LEADER
        self.leader_epoch = -1
        self.partition_epoch = 0
        self.assigned = tuple(range(1, count + 1))
        self.isr = self.assigned
        self.eligible: tuple[int, ...] = ()
        """The eligible leader replicas: who left the in-sync ones when too few were left."""
        self.replicas = {node_id: Replica(self, node_id) for node_id in self.assigned}

    def __getitem__(self, node_id: int) -> Replica:
        return self.replicas[node_id]

    def is_eligible(self, broker_id: int, broker_epoch: int) -> bool:
        return broker_id not in self.ineligible and broker_epoch in (-1, self.replicas[broker_id].epoch)

    # The controller.

    def elect(self, leader: int, isr: tuple[int, ...] | None = None) -> None:
        self.leader = leader
        self.leader_epoch += 1
        self.partition_epoch += 1
        if isr is not None:
            self.commit(isr)
        for node_id in self.assigned:
            self.tell(node_id)

    def commit(self, isr: tuple[int, ...], lost: int | None = None) -> None:
        """Another set is in sync. Who leaves may lead later, when it has all that is committed; one that has ``lost``
        data may not."""
        left = [member for member in (*self.eligible, *self.isr) if member not in isr and member != lost]
        self.eligible = () if len(isr) >= self.config.min_insync_replicas else tuple(dict.fromkeys(left))
        self.isr = isr

    def change_isr(self, isr: tuple[int, ...]) -> None:
        """The controller's own doing, as when it fences a broker."""
        self.commit(isr)
        self.partition_epoch += 1
        for node_id in self.assigned:
            self.tell(node_id)

    def tell(self, node_id: int) -> None:
        """Let the present metadata reach one broker."""
        replica = self.replicas[node_id]
        if not replica.is_up:
            return
        partition = replica.partition
        if self.leader == node_id:
            partition.lead(self.leader_epoch, self.partition_epoch, self.assigned, self.isr)
            replica.fetcher = None
        elif partition.follow(self.leader, self.leader_epoch, self.partition_epoch) or replica.fetcher is None:
            replica.fetcher = Fetcher(
                self.leader,
                node_id,
                limits=FetchLimits(),
                now_ms=lambda: self.now_ms,
                wall_ms=lambda: NOW_MS,
                broker_epoch=lambda: replica.epoch,
            )
            step = replica.fetcher.add(partition)
            if step is not None:
                self.perform(replica, step, self.replicas.get(self.leader))
        replica.end_turn()

    def propose(self, partition: Partition, proposal: IsrProposal) -> None:
        self.proposals.append((partition, proposal))

    def decide(self) -> list[tuple[int, ...]]:
        """Answer every proposal that is still about the present; the sets that were committed."""
        proposals, self.proposals = self.proposals, []
        committed = []
        for partition, proposal in proposals:
            replica = next((each for each in self.replicas.values() if each.partition is partition), None)
            if replica is None or not replica.is_up:
                continue
            if (proposal.leader_epoch, proposal.partition_epoch) != (self.leader_epoch, self.partition_epoch):
                continue
            if any(not self.is_eligible(member, epoch) for member, epoch in proposal.members):
                partition.on_alter_partition_error(proposal)
            else:
                self.commit(proposal.isr)
                self.partition_epoch += 1
                committed.append(self.isr)
                partition.on_alter_partition_response(proposal, self.isr, self.partition_epoch)
            replica.end_turn()
        return committed

    # Clients and followers.

    def produce(self, label: str, *, acks_all: bool = True, node_id: int | None = None, **fields: Any) -> Append:
        """Stage and write one batch at the leader; raises what the leader refuses it with."""
        replica = self.replicas[self.leader if node_id is None else node_id]
        validated = validate(batches.build([Record(-1, NOW_MS, None, label.encode())], **fields), RULES, NOW_MS)
        append = Append(label, wants_all=acks_all)
        callback = CallbackAppend(append.complete, wants_all=acks_all)
        staged = replica.partition.append(validated, callback, now_ms=NOW_MS)
        append.first_offset = staged.first_offset
        replica.end_turn()
        return append

    def fetch(self, node_id: int, leader_id: int | None = None) -> FetchResponse | None:
        """One fetch of a follower, answered and taken; None when it had nothing to ask."""
        follower = self.replicas[node_id]
        assert follower.fetcher is not None
        request = follower.fetcher.request()
        if request is None:
            return None
        leader = self.replicas[follower.fetcher.leader_id if leader_id is None else leader_id]
        response = serve(leader, follower, request)
        leader.end_turn()
        for step in follower.fetcher.replied(response):
            self.perform(follower, step, leader)
        follower.end_turn()
        return response

    def perform(self, follower: Replica, step: FetchEffect, leader: Replica | None) -> None:
        assert follower.fetcher is not None
        log = step.partition.log
        following: FetchEffect | None = None
        if isinstance(step, WaitForFlush):
            follower.flush()
        elif isinstance(step, FetchOffsets):
            assert leader is not None
            leader_log = leader.partition.log
            following = follower.fetcher.on_offsets(step, leader_log.log_start_offset, leader_log.end_offset)
            if following is not None:
                self.perform(follower, following, leader)
            return
        elif isinstance(step, TruncateLog):
            if step.starts_over:
                log.truncate_fully_and_start_at(step.offset)
            else:
                truncate_to(log, step.offset)
            step.partition.was_truncated()
        follower.fetcher.resume(step)

    def fetch_all(self, rounds: int = 3) -> None:
        for _ in range(rounds):
            for node_id in self.assigned:
                if node_id != self.leader and self.replicas[node_id].is_up:
                    self.fetch(node_id)


def serve(leader: Replica, follower: Replica, request: FetchRequest) -> FetchResponse:
    """What the leader's Fetch handler does for a follower; every request is a full one."""
    follower.session.used_ms = leader.cluster.now_ms
    follower.session.epoch += 1
    leader.partition.end_watchers[follower.session] = None
    answers = []
    for topic in request.topics:
        results = [_serve_one(leader, follower, request, asked) for asked in topic.partitions]
        answers.append(FetchableTopicResponse(topic_id=topic.topic_id, partitions=results))
    return FetchResponse(session_id=0, responses=answers)


def _serve_one(leader: Replica, follower: Replica, request: FetchRequest, asked: FetchPartition) -> FetchedPartition:
    partition = leader.partition
    try:
        position = FetchPosition()
        position.fetch_offset = asked.fetch_offset
        position.current_leader_epoch = asked.current_leader_epoch
        position.last_fetched_epoch = asked.last_fetched_epoch
        info = read_partition(
            partition,
            position,
            LOG_END,
            size_bytes_max=leader.cluster.fetch_bytes,
            must_lead=False,
            at_least_one=True,
            nowait=False,
        )
        result = FetchedPartition(0, 0, info.high_watermark, -1, info.log_start_offset)
        if info.diverging_epoch is not None:
            result.diverging_epoch = EpochEndOffset(*info.diverging_epoch)
            return result
        state = request.replica_state
        partition.update_follower_fetch_state(
            state.replica_id, state.replica_epoch, asked.fetch_offset, asked.log_start_offset, follower.session
        )
    except ApiError as error:
        return FetchedPartition(0, error.code)
    piece = info.slice
    if piece is not None:
        result.records = piece.file.read(piece.size, piece.position)
        piece.release()
    return result


def _raise(error: Exception) -> None:
    raise error
