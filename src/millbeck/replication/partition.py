"""A partition on this broker: its role, high watermark, in-sync replicas, reads, and the requests that wait for them.

A partition leads or follows. The leader accepts appends (`PartitionAppends`). Watchers (delayed fetches, fetch
sessions, shards of coordinators) are notified at most once per event batch that readable data grew; followers read up
to the log end and are notified when that advances.

The high watermark is the smallest end offset of the in-sync replicas (`isr`). Where ``flush.messages=1`` promises that
nothing is acknowledged before it is on disk, the leader counts its flushed end offset. A partition with a single
replica has no `IsrState`. On a follower the high watermark is the leader's, limited to its own log end.

Roles: `lead` and `follow` switch between them when the controller says so. A leader that becomes a follower discards
what is staged, and completes everything that waits with NOT_LEADER_OR_FOLLOWER: whether those records remain in the
log is decided by the next leader.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, Protocol

from millbeck.kernel.environment import Bytes
from millbeck.kernel.errors import (
    ApiError,
    FencedLeaderEpoch,
    KafkaStorageError,
    NotEnoughReplicasAfterAppend,
    NotLeaderOrFollower,
    UnknownLeaderEpoch,
)
from millbeck.kernel.event_batch import EventBatch
from millbeck.replication.isr import FetchSessionTimes, IsrProposal, IsrState, ReplicaContext
from millbeck.replication.partition_appends import PartitionAppends
from millbeck.storage.log import Log
from millbeck.storage.reading import LogSlice

NO_EPOCH: Final = -1
NO_LEADER: Final = -1


class Watcher(Protocol):
    """Notified when more of a partition is readable, or when it goes offline."""

    def readable_end_advanced(self, partition: Partition) -> None: ...


class FollowerWatcher(Watcher, Protocol):
    """A follower's fetch or session: it reads beyond the high watermark, and gets a new one with its next response."""

    def high_watermark_advanced(self, partition: Partition) -> None: ...


class AlterPartitionSender(Protocol):
    """Sends ISR proposals to the controller; the result comes back by `Partition.on_alter_partition_response`."""

    def propose(self, partition: Partition, proposal: IsrProposal) -> None: ...


class Partition(PartitionAppends):
    __slots__ = (
        "_notified_end_offset",
        "end_watchers",
        "epoch_start_offset",
        "isr_changes",
        "on_flushed",
        "partition_epoch",
        "watchers",
    )

    def __init__(
        self,
        log: Log,
        turn: EventBatch,
        *,
        written: Callable[[Partition, int], None],
        context: ReplicaContext | None = None,
        isr_changes: AlterPartitionSender | None = None,
        high_watermark: int = -1,
        leader_epoch: int = -1,
        partition_epoch: int = -1,
    ) -> None:
        """Starts without a role: `lead` or `follow` must be called next. With ``leader_epoch`` it is the only leader.

        ``high_watermark`` is the checkpointed one. ``written`` is called, with the wall time, after a write that makes
        a flush or writeback due.
        """
        leads = leader_epoch >= 0
        super().__init__(log, turn, context, written)
        self.leader_epoch = leader_epoch
        self.partition_epoch = partition_epoch
        self.is_leader = leads
        self.leader_id = NO_LEADER if context is None else context.node_id
        self.epoch_start_offset = log.end_offset
        self.high_watermark = (
            log.end_offset if leads else min(max(high_watermark, log.log_start_offset), log.end_offset)
        )
        self.isr_changes = isr_changes
        if leads:
            log.assign_epoch(leader_epoch, log.end_offset)
        self.watchers: dict[Watcher, None] = {}
        self.end_watchers: dict[FollowerWatcher, None] = {}
        """Fetches of followers, which read beyond the high watermark."""
        self.on_flushed: Callable[[], None] | None = None
        """Called once at the next flush, for a follower that must not fetch before it."""
        self._notified_end_offset = log.end_offset

    # Roles.

    def lead(
        self,
        leader_epoch: int,
        partition_epoch: int,
        replicas: tuple[int, ...] = (),
        isr: tuple[int, ...] = (),
        lost: tuple[int, ...] = (),
    ) -> bool:
        """Become the leader, or apply new state as the leader; True when this node did not lead before, or not in this
        epoch.

        ``lost`` are the replicas whose brokers have no usable log directory. The metadata may repeat the state that an
        AlterPartition response contained: an older partition epoch is ignored, and a later proposal stays pending,
        since the controller may have committed it by now.
        """
        if leader_epoch <= self.leader_epoch and self.is_leader and partition_epoch < self.partition_epoch:
            return False
        if leader_epoch < self.leader_epoch and not self.is_leader:
            return False
        is_new = leader_epoch > self.leader_epoch or not self.is_leader
        is_new_leader = not self.is_leader
        is_known = not is_new and partition_epoch == self.partition_epoch
        if is_new:
            if self._pending:
                # Staged batches have the old epoch, and the new one begins after them.
                self.write()
            self.is_leader = True
            self.leader_epoch = leader_epoch
            self.epoch_start_offset = self._notified_end_offset = self.log.end_offset
            self.log.assign_epoch(leader_epoch, self.log.end_offset)
        self.partition_epoch = partition_epoch
        context = self._context
        if context is not None:
            self.leader_id = context.node_id
        self.high_watermark = min(self.high_watermark, self.log.end_offset)
        if len(replicas) > 1 and context is not None:
            self._begin_isr(context, replicas, isr, lost, is_new_leader=is_new, is_known=is_known)
        else:
            self.replicas = None
            if is_new_leader:
                # There is no other replica that could have fewer records.
                self.high_watermark = self.log.end_offset
        self._event_batch.add_high_watermark(self)
        if is_new:
            self._notify_all()
        elif not is_known:
            self.maybe_expand_isr()
        return is_new

    def _begin_isr(
        self,
        context: ReplicaContext,
        replicas: tuple[int, ...],
        isr: tuple[int, ...],
        lost: tuple[int, ...],
        *,
        is_new_leader: bool,
        is_known: bool,
    ) -> None:
        in_sync = self.replicas
        if in_sync is None:
            in_sync = self.replicas = IsrState(context)
            is_new_leader = True
        in_sync.begin(replicas, isr, lost, is_new_leader=is_new_leader, is_known=is_known)
        self._fail_without_min_isr()

    def follow(self, leader_id: int, leader_epoch: int, partition_epoch: int) -> bool:
        """Become a follower of ``leader_id`` (-1: no leader); True when the leader, its epoch or the role has
        changed.
        """
        if leader_epoch < self.leader_epoch or (
            leader_epoch == self.leader_epoch and partition_epoch < self.partition_epoch
        ):
            return False
        was_leader = self.is_leader
        is_new = was_leader or leader_epoch > self.leader_epoch or leader_id != self.leader_id
        self.is_leader = False
        self.leader_id = leader_id
        self.leader_epoch = leader_epoch
        self.partition_epoch = partition_epoch
        self.replicas = None
        self.high_watermark = min(self.high_watermark, self.log.end_offset)
        if was_leader:
            self.log.discard_staged()
            self._fail(
                self._take_all_appends(), NotLeaderOrFollower(f"the leader of {self.name} is now broker {leader_id}")
            )
        if is_new:
            self._notify_all()
        return is_new

    def _notify_all(self) -> None:
        for watcher in list(self.watchers):
            watcher.readable_end_advanced(self)
        for follower in list(self.end_watchers):
            follower.readable_end_advanced(self)

    # High watermark.

    def advance_high_watermark(self) -> None:
        """Advance the high watermark as far as possible, complete the appends it passed, and notify the watchers.

        When the log has gone offline it does not advance, and waiting appends fail.
        """
        log = self.log
        grew = False
        if self.is_leader:
            watermark = log.flushed_offset if self.waits_for_flush else log.end_offset
            if self.replicas is not None:
                watermark = self._isr_watermark(self.replicas, watermark)
            if watermark > self.high_watermark:
                self.high_watermark = watermark
                grew = True
        failure = self._complete_passed() if self._just_written or self._waiting_for_all else None
        if grew or log.is_offline:
            for watcher in list(self.watchers):
                watcher.readable_end_advanced(self)
        if self.end_watchers:
            self._notify_followers(grew)
        if failure is not None:
            raise failure

    def _isr_watermark(self, replicas: IsrState, own_offset: int) -> int:
        end_offset = self.log.end_offset
        if end_offset > self._notified_end_offset:
            replicas.grows(self._notified_end_offset)
        if replicas.is_under(self.log.config.min_insync_replicas):
            return NO_EPOCH
        return replicas.watermark(own_offset, end_offset)

    def _notify_followers(self, high_watermark_advanced: bool) -> None:
        log = self.log
        wakes = self._context is not None and self._context.wakes_followers
        if log.end_offset > self._notified_end_offset or log.is_offline or (high_watermark_advanced and wakes):
            for watcher in list(self.end_watchers):
                watcher.readable_end_advanced(self)
        elif high_watermark_advanced:
            for watcher in list(self.end_watchers):
                watcher.high_watermark_advanced(self)
        self._notified_end_offset = log.end_offset

    def flushed(self) -> None:
        """Called when a flush has finished or the log went offline: the high watermark may advance, or waiting appends
        fail."""
        self._event_batch.add_high_watermark(self)
        if self.on_flushed is not None:
            on_flushed, self.on_flushed = self.on_flushed, None
            on_flushed()

    def log_start_moved(self) -> None:
        """Notify the waiting readers of a new log start offset, in the same way as of new data."""
        self._notify_all()

    def close(self, error: ApiError) -> None:
        """Close the partition: waiting appends fail with ``error``."""
        appends = self._take_all_appends()
        self.is_leader = False
        self.leader_id = NO_LEADER
        self._notify_all()
        self._fail(appends, error)

    @property
    def waits_for_flush(self) -> bool:
        return self.log.waits_for_flush

    # Followers and ISR, on the leader.

    def update_follower_fetch_state(
        self, broker_id: int, broker_epoch: int, offset: int, log_start_offset: int, session: FetchSessionTimes | None
    ) -> None:
        """Record the progress of a follower that has everything below ``offset``: the high watermark and the ISR may
        grow.

        Raises NOT_LEADER_OR_FOLLOWER for a broker that is no follower of this partition.
        """
        replicas, context = self.replicas, self._context
        if replicas is None or context is None or not self.is_leader:
            raise NotLeaderOrFollower(f"this node does not lead {self.name} with a follower {broker_id}")
        follower = replicas.follower(broker_id, broker_epoch)
        if broker_epoch > follower.broker_epoch:
            follower.broker_epoch = broker_epoch
        has_moved = offset != follower.end_offset
        follower.session = session
        follower.fetched(offset, log_start_offset, self.log.end_offset, context.now_ms())
        if has_moved:
            self._event_batch.add_high_watermark(self)
        if broker_id not in replicas.isr:
            self._propose(replicas, replicas.expansion(follower, self.high_watermark, self.epoch_start_offset))
        elif offset < self.high_watermark:
            # It has lost acknowledged records, and must not be electable.
            self._propose(replicas, replicas.without(broker_id))

    def maybe_shrink_isr(self) -> None:
        """Called periodically: propose an ISR without lagging followers, or with those that caught up."""
        if self.replicas is not None and self.is_leader:
            self._propose(self.replicas, self.replicas.reduction(self.log.end_offset))
            self.maybe_expand_isr()

    def maybe_expand_isr(self) -> None:
        """Propose followers that have become eligible meanwhile, or that waited for another proposal to end."""
        replicas = self.replicas
        if replicas is not None and self.is_leader:
            for follower in replicas.followers.values():
                # A session counts as a fetch of this partition as long as the partition is in it.
                session = follower.session
                if session is not None and session in self.end_watchers and follower.has_fetched_since_removal:
                    self._propose(replicas, replicas.expansion(follower, self.high_watermark, self.epoch_start_offset))

    def _propose(self, replicas: IsrState, isr: tuple[int, ...] | None) -> None:
        if isr is not None and self.isr_changes is not None:
            self.isr_changes.propose(self, replicas.propose(isr, self.leader_epoch, self.partition_epoch))

    def on_alter_partition_response(self, proposal: IsrProposal, isr: tuple[int, ...], partition_epoch: int) -> None:
        """Handle the controller's response to a proposal: it has committed ``isr`` at ``partition_epoch``.

        An ISR without a present member is ignored here and applied when the metadata log has it. The metadata log then
        also has every change of ``min.insync.replicas`` that the controller knew of: with a higher one the removed
        replica may be elected again (KIP-966), so nothing may be committed without it under the lower one.
        """
        replicas = self.replicas
        if replicas is None or proposal.leader_epoch != self.leader_epoch or partition_epoch < self.partition_epoch:
            return
        if any(member not in isr for member in replicas.isr):
            return
        self.partition_epoch = partition_epoch
        replicas.commit(isr)
        self._fail_without_min_isr()
        self._event_batch.add_high_watermark(self)
        self.maybe_expand_isr()

    def on_alter_partition_error(self, proposal: IsrProposal) -> None:
        """Handle a rejected proposal: the newer state of the controller follows with the metadata log."""
        if self.replicas is not None and self.replicas.pending is proposal:
            self.replicas.withdraw()
            self._event_batch.add_high_watermark(self)

    def _fail_without_min_isr(self) -> None:
        """Fail waiting appends when too few in-sync replicas remain. Their records are in the log and may yet be
        committed.
        """
        if self.replicas is not None and self.replicas.is_under(self.log.config.min_insync_replicas):
            waiting = list(self._waiting_for_all)
            self._waiting_for_all.clear()
            self._fail(
                waiting,
                NotEnoughReplicasAfterAppend(f"{self.name} has fewer in-sync replicas left than min.insync.replicas"),
            )

    # Following.

    def append_as_follower(self, batches: Bytes, now_ms: int) -> int:
        """Write batches fetched from the leader; returns the new end offset. Raises what `Log.append_as_follower`
        does.
        """
        assert not self.is_leader, f"{self.name} is led here"
        try:
            end_offset = self.log.append_as_follower(batches, leader_epoch=self.leader_epoch, now_ms=now_ms)
        except KafkaStorageError:
            self._write_failed()
            raise
        if self.log.is_maintenance_due(now_ms):
            self._written(self, now_ms)
        return end_offset

    def _write_failed(self) -> None:
        if self._context is not None:
            self._context.write_failed(self)

    def update_from_leader(self, high_watermark: int, log_start_offset: int) -> None:
        """Apply the high watermark and log start offset of a fetch response, limited to the local log end."""
        assert not self.is_leader, f"{self.name} is led here"
        log = self.log
        grew = min(high_watermark, log.end_offset) > self.high_watermark
        if grew:
            self.high_watermark = min(high_watermark, log.end_offset)
        has_start = log_start_offset > log.log_start_offset
        if has_start:
            log.delete_records(min(log_start_offset, self.high_watermark))
        if grew or has_start:
            for watcher in list(self.watchers):
                watcher.readable_end_advanced(self)

    def was_truncated(self) -> None:
        """Limit the high watermark to the log after a truncation."""
        self.high_watermark = min(max(self.high_watermark, self.log.log_start_offset), self.log.end_offset)

    def replace_log(self, log: Log) -> None:
        """Use a reopened log, which may have fewer records."""
        assert not self.is_leader, f"{self.name} is led here"
        self.log = log
        self.was_truncated()

    def swap_log(self, log: Log) -> None:
        """Use the same log in another directory, whatever the role."""
        assert (log.log_start_offset, log.end_offset) == (self.log.log_start_offset, self.log.end_offset)
        assert not self.log.has_staged
        self.log = log

    # Reads.

    def check_leader_epoch(self, current_leader_epoch: int) -> None:
        """Raise an error unless the client's leader epoch is the current one or missing."""
        if current_leader_epoch == NO_EPOCH or current_leader_epoch == self.leader_epoch:
            return
        if current_leader_epoch < self.leader_epoch:
            raise FencedLeaderEpoch
        raise UnknownLeaderEpoch

    def check_is_leader(self, current_leader_epoch: int = NO_EPOCH) -> None:
        """Raise an error unless this node leads; a wrong epoch is reported first, as it tells the client more."""
        self.check_leader_epoch(current_leader_epoch)
        if not self.is_leader:
            raise NotLeaderOrFollower(f"{self.name} is led by broker {self.leader_id}")

    @property
    def knows_committed(self) -> bool:
        """Whether this leader knows the high watermark of its epoch; a new leader learns it from its followers'
        fetches."""
        return self.high_watermark >= self.epoch_start_offset

    def fetch_upper_bound(self, *, committed_only: bool) -> int:
        """The upper bound of a consumer's read: the high watermark, or the last stable offset for read_committed."""
        if committed_only:
            return self.log.last_stable_offset(self.high_watermark)
        return self.high_watermark

    def read(
        self, offset: int, *, size_bytes_max: int, committed_only: bool, at_least_one: bool, nowait: bool = True
    ) -> LogSlice | None:
        """Read whole batches from ``offset`` on, below the reader's upper bound; None when there is nothing yet.

        With ``nowait`` it never blocks on the disk: `ColdRead` has the job that loads the data needed by the lookup.
        """
        return self.log.read(
            offset,
            size_bytes_max=size_bytes_max,
            upto_offset=self.fetch_upper_bound(committed_only=committed_only),
            at_least_one=at_least_one,
            nowait=nowait,
        )
