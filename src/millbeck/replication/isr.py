"""In-sync replicas: the state of a leader's followers, and the high watermark that follows from it.

A follower's progress is its fetch offset: everything below it is in its log. A follower is caught up when it was at
the leader's end offset not longer than ``replica.lag.time.max.ms`` ago.

Theory of operation. ``isr`` is the set committed by the controller. A change is proposed to the controller, one at a
time, which checks the epochs. While a proposal is pending, either set may be the committed one, so what must hold for
the in-sync replicas must hold for both: the high watermark waits for their union (``maximal``), and
``min.insync.replicas`` counts only the committed set. The controller's response or the metadata log decides; a removal
from the ISR takes effect only by the metadata log.

The high watermark also waits for a replica that is caught up but not in the ISR yet: otherwise a leader that is alone
in its ISR would advance the high watermark ahead of every follower forever.

Nothing here does I/O or reads a clock; times are milliseconds of a monotonic clock.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

from millbeck.kernel.errors import NotLeaderOrFollower

if TYPE_CHECKING:
    from millbeck.replication.partition import Partition

UNKNOWN: Final = -1
NO_BROKER_EPOCH: Final = -1


class FetchSessionTimes(Protocol):
    """A follower's fetch session: each fetch in it counts for all partitions of the session."""

    used_ms: int
    epoch: int
    """The number of fetches in the session."""

    def readable_end_advanced(self, partition: Partition) -> None: ...

    def high_watermark_advanced(self, partition: Partition) -> None: ...


class Follower:
    """State of one follower of a partition that this node leads."""

    __slots__ = (
        "broker_epoch",
        "broker_id",
        "caught_up_ms",
        "end_offset",
        "fetched_ms",
        "leader_end_offset",
        "log_start_offset",
        "session",
        "stale_epoch",
    )

    def __init__(self, broker_id: int, caught_up_ms: int) -> None:
        self.broker_id = broker_id
        self.broker_epoch = NO_BROKER_EPOCH
        self.end_offset = UNKNOWN
        self.log_start_offset = UNKNOWN
        self.caught_up_ms = caught_up_ms
        self.fetched_ms = 0
        self.leader_end_offset = UNKNOWN
        """The leader's log end offset at its last fetch."""
        self.session: FetchSessionTimes | None = None
        self.stale_epoch: int | None = None
        """The session's fetch number at which it was removed from the ISR: its earlier state no longer counts."""

    @property
    def has_fetched_since_removal(self) -> bool:
        """Whether the follower has fetched since it was removed from the ISR; fetches of an idle session count."""
        return self.stale_epoch is None or (self.session is not None and self.session.epoch != self.stale_epoch)

    def leaves(self) -> None:
        self.stale_epoch = -1 if self.session is None else self.session.epoch

    def fetched(self, offset: int, log_start_offset: int, leader_end_offset: int, now_ms: int) -> None:
        if offset >= leader_end_offset:
            self.caught_up_ms = max(self.caught_up_ms, now_ms)
        elif self.leader_end_offset != UNKNOWN and offset >= self.leader_end_offset:
            self.caught_up_ms = max(self.caught_up_ms, self.fetched_ms)
        self.stale_epoch = None
        self.end_offset = offset
        self.log_start_offset = log_start_offset
        self.leader_end_offset = max(leader_end_offset, self.leader_end_offset)
        self.fetched_ms = now_ms

    def on_log_end_advanced(self, old_end_offset: int) -> None:
        """The leader's log is about to grow beyond ``old_end_offset``. An idle session does not list all its
        partitions in every fetch: its last fetch also counts for this partition if the follower was at the log end.
        """
        if self.end_offset >= old_end_offset and self.session is not None:
            self.caught_up_ms = max(self.caught_up_ms, self.session.used_ms)

    def is_caught_up(self, leader_end_offset: int, now_ms: int, lag_ms_max: int) -> bool:
        return self.end_offset == leader_end_offset or now_ms - self.caught_up_ms <= lag_ms_max


class IsrMember(NamedTuple):
    """A replica in an ISR proposal."""

    broker_id: int
    broker_epoch: int


class IsrProposal:
    """An ISR proposed to the controller, which commits it only if the partition epoch is unchanged."""

    __slots__ = ("grows", "isr", "leader_epoch", "members", "partition_epoch")

    def __init__(
        self, members: tuple[IsrMember, ...], leader_epoch: int, partition_epoch: int, *, grows: bool = False
    ) -> None:
        self.members = members
        self.isr = tuple(member.broker_id for member in members)
        self.leader_epoch = leader_epoch
        self.partition_epoch = partition_epoch
        self.grows = grows
        """Whether it has more members than the committed ISR had at the time."""

    def __repr__(self) -> str:
        return f"<ISR {self.isr} at leader epoch {self.leader_epoch}, partition epoch {self.partition_epoch}>"


class ReplicaContext:
    """Cluster state and settings that every partition of a node needs.

    ``is_eligible(broker_id, broker_epoch)`` returns whether a replica may be in sync: its broker is registered with
    that epoch (-1 is not compared), not fenced and not shutting down.
    """

    __slots__ = ("broker_epoch", "is_eligible", "lag_ms_max", "node_id", "now_ms", "wakes_followers", "write_failed")

    def __init__(
        self,
        node_id: int,
        now_ms: Callable[[], int],
        is_eligible: Callable[[int, int], bool],
        lag_ms_max: int,
        broker_epoch: Callable[[], int] = lambda: NO_BROKER_EPOCH,
    ) -> None:
        """``broker_epoch`` returns the epoch of this node's registration."""
        self.node_id = node_id
        self.now_ms = now_ms
        self.is_eligible = is_eligible
        self.lag_ms_max = lag_ms_max
        self.broker_epoch = broker_epoch
        self.write_failed: Callable[[Partition], None] = lambda partition: None
        """Called with a partition whose log cannot be written, because its disk is full or has failed."""
        self.wakes_followers = False
        """Wake delayed follower fetches when the high watermark advances: needed where consumers read from
        followers.
        """


class IsrState:
    """The ISR and the followers of one partition that this node leads."""

    __slots__ = ("_context", "followers", "isr", "lost", "maximal", "pending", "replicas")

    def __init__(self, context: ReplicaContext) -> None:
        self._context = context
        self.replicas: tuple[int, ...] = ()
        self.isr: tuple[int, ...] = ()
        self.maximal: tuple[int, ...] = ()
        """The committed ISR plus the replicas that a pending proposal adds."""
        self.lost: tuple[int, ...] = ()
        """Live followers without a usable log directory (full or failed disk), according to the controller. Such a
        follower may keep fetching from the same offset: the high watermark does not wait for it, and it is not
        proposed for the ISR until it has a directory.
        """
        self.pending: IsrProposal | None = None
        self.followers: dict[int, Follower] = {}

    def begin(
        self,
        replicas: tuple[int, ...],
        isr: tuple[int, ...],
        lost: tuple[int, ...] = (),
        *,
        is_new_leader: bool,
        is_known: bool = False,
    ) -> None:
        """Apply the controller's state. A new leader forgets its followers' progress, which is of an earlier epoch.

        With ``is_known`` the response to a proposal had the same ``isr`` already, and a later proposal stays pending.
        """
        now_ms = self._context.now_ms()
        known = {} if is_new_leader else self.followers
        self.replicas = replicas
        self.lost = lost
        self.followers = {}
        for broker_id in replicas:
            if broker_id == self._context.node_id:
                continue
            follower = known.get(broker_id)
            if follower is None:
                follower = Follower(broker_id, now_ms if broker_id in isr else now_ms - self._context.lag_ms_max - 1)
            elif broker_id in isr and broker_id not in self.isr:
                follower.caught_up_ms = max(follower.caught_up_ms, now_ms)
            self.followers[broker_id] = follower
        if not is_known or is_new_leader:
            self.commit(isr)

    def commit(self, isr: tuple[int, ...]) -> None:
        for broker_id in self.isr:
            if broker_id not in isr and broker_id in self.followers:
                self.followers[broker_id].leaves()
        self.isr = self.maximal = isr
        self.pending = None

    def withdraw(self) -> None:
        """Drop the pending proposal, which has failed."""
        self.maximal = self.isr
        self.pending = None

    # High watermark.

    def is_under(self, min_insync_replicas: int) -> bool:
        return len(self.isr) < min(min_insync_replicas, len(self.replicas))

    def watermark(self, own_offset: int, leader_end_offset: int) -> int:
        """The highest possible high watermark when the leader counts with ``own_offset``; ``leader_end_offset`` is its
        log end.
        """
        watermark = own_offset
        maximal = self.maximal
        for follower in self.followers.values():
            if follower.end_offset < watermark and (
                follower.broker_id in maximal or self._may_join(follower, leader_end_offset)
            ):
                watermark = follower.end_offset
        return watermark

    def _may_join(self, follower: Follower, leader_end_offset: int) -> bool:
        context = self._context
        return (
            follower.is_caught_up(leader_end_offset, context.now_ms(), context.lag_ms_max)
            and follower.broker_id not in self.lost
            and context.is_eligible(follower.broker_id, follower.broker_epoch)
        )

    def grows(self, old_end_offset: int) -> None:
        for follower in self.followers.values():
            follower.on_log_end_advanced(old_end_offset)

    # Progress and proposals.

    def follower(self, broker_id: int, broker_epoch: int) -> Follower:
        """The state of the follower that fetches. Raises NOT_LEADER_OR_FOLLOWER for an unknown one or an old broker
        epoch.
        """
        follower = self.followers.get(broker_id)
        if follower is None:
            raise NotLeaderOrFollower(f"broker {broker_id} has no replica of the partition")
        if broker_epoch != NO_BROKER_EPOCH and broker_epoch < follower.broker_epoch:
            raise NotLeaderOrFollower(f"broker {broker_id} has a newer registration than broker epoch {broker_epoch}")
        return follower

    def expansion(self, follower: Follower, high_watermark: int, epoch_start_offset: int) -> tuple[int, ...] | None:
        """The ISR with this follower added; None when it may not join now or a proposal is pending."""
        if (
            self.pending is not None
            or follower.broker_id in self.isr
            or follower.end_offset < high_watermark
            or follower.end_offset < epoch_start_offset
            or follower.broker_id in self.lost
            or not self._context.is_eligible(follower.broker_id, follower.broker_epoch)
        ):
            return None
        return (*self.isr, follower.broker_id)

    def reduction(self, leader_end_offset: int) -> tuple[int, ...] | None:
        """The ISR without the followers that lag for too long; None when there are none or a proposal is pending."""
        if self.pending is not None:
            return None
        context = self._context
        now_ms = context.now_ms()
        kept = []
        for broker_id in self.isr:
            follower = self.followers.get(broker_id)
            if follower is None or follower.is_caught_up(leader_end_offset, now_ms, context.lag_ms_max):
                kept.append(broker_id)
        return tuple(kept) if len(kept) < len(self.isr) else None

    def without(self, broker_id: int) -> tuple[int, ...] | None:
        """The ISR without one of its members; None when a proposal is pending."""
        if self.pending is not None:
            return None
        return tuple(member for member in self.isr if member != broker_id)

    def propose(self, isr: tuple[int, ...], leader_epoch: int, partition_epoch: int) -> IsrProposal:
        context = self._context
        members = tuple(
            IsrMember(broker_id, self.followers[broker_id].broker_epoch)
            if broker_id in self.followers
            else IsrMember(broker_id, context.broker_epoch())
            for broker_id in isr
        )
        self.pending = IsrProposal(members, leader_epoch, partition_epoch, grows=len(isr) > len(self.isr))
        self.maximal = (*self.isr, *(broker_id for broker_id in isr if broker_id not in self.isr))
        return self.pending
