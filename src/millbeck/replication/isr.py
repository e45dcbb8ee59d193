"""Who is in sync: what the leader of a partition knows of its followers, and what follows for its high watermark.

A follower's progress is the offset it fetches from: everything below it is in its log. It is caught up when it was at
the leader's end not longer than ``replica.lag.time.max.ms`` ago.

Theory of operation. ``isr`` is what the controller has committed. A change is proposed to the controller, one at a
time, and compared with epochs there. While a proposal is out, either set may be the true one, so whatever must hold
for the in-sync replicas must hold for both: the high watermark waits for the union of them (``maximal``), and
``min.insync.replicas`` counts only those committed. An answer, or the metadata log, decides; that somebody has left is
for the metadata log alone to say.

The high watermark also waits for a replica that is not in sync yet but has kept up for a while: otherwise a leader
that is alone in its ISR would run ahead of every follower forever.

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


class FetchTimes(Protocol):
    """A follower's fetch session: each of its fetches speaks for all partitions in it."""

    used_ms: int
    epoch: int
    """Counts its fetches."""

    def readable_grew(self, partition: Partition) -> None: ...

    def watermark_grew(self, partition: Partition) -> None: ...


class Follower:
    """One follower of a partition this node leads."""

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
        """Where our log ended when it fetched last."""
        self.session: FetchTimes | None = None
        self.stale_epoch: int | None = None
        """The fetch of its session after which it left the ISR: what was known of it then no longer counts."""

    @property
    def is_fresh(self) -> bool:
        """Whether it has fetched since it left the ISR, be it by an idle session's fetch."""
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

    def left_behind(self, old_end_offset: int) -> None:
        """Our log is about to grow beyond ``old_end_offset``. An idle session does not name each of its partitions
        with every fetch: the last one counts for this partition, too, when the follower had all of it."""
        if self.end_offset >= old_end_offset and self.session is not None:
            self.caught_up_ms = max(self.caught_up_ms, self.session.used_ms)

    def is_caught_up(self, leader_end_offset: int, now_ms: int, lag_ms_max: int) -> bool:
        return self.end_offset == leader_end_offset or now_ms - self.caught_up_ms <= lag_ms_max


class Member(NamedTuple):
    """A replica as a proposal names it."""

    broker_id: int
    broker_epoch: int


class IsrProposal:
    """A set of in-sync replicas that the controller is asked to commit, if nothing else has changed meanwhile."""

    __slots__ = ("grows", "isr", "leader_epoch", "members", "partition_epoch")

    def __init__(
        self, members: tuple[Member, ...], leader_epoch: int, partition_epoch: int, *, grows: bool = False
    ) -> None:
        self.members = members
        self.isr = tuple(member.broker_id for member in members)
        self.leader_epoch = leader_epoch
        self.partition_epoch = partition_epoch
        self.grows = grows
        """Whether it has more members than what was committed when it was made."""

    def __repr__(self) -> str:
        return f"<ISR {self.isr} at leader epoch {self.leader_epoch}, partition epoch {self.partition_epoch}>"


class Surroundings:
    """What every partition of a node has to know about the cluster, in one place.

    ``is_eligible(broker_id, broker_epoch)`` says whether a replica may be in sync: its broker is registered with that
    epoch (-1 is not compared), not fenced and not shutting down.
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
        """``broker_epoch`` is that of this node's own registration."""
        self.node_id = node_id
        self.now_ms = now_ms
        self.is_eligible = is_eligible
        self.lag_ms_max = lag_ms_max
        self.broker_epoch = broker_epoch
        self.write_failed: Callable[[Partition], None] = lambda partition: None
        """Told of a replica that cannot write, because its disk is full or gone."""
        self.wakes_followers = False
        """Tell followers of a high watermark at once: where consumers read from them."""


class InSync:
    """The replicas of one partition that this node leads."""

    __slots__ = ("_around", "followers", "isr", "lost", "maximal", "pending", "replicas")

    def __init__(self, around: Surroundings) -> None:
        self._around = around
        self.replicas: tuple[int, ...] = ()
        self.isr: tuple[int, ...] = ()
        self.maximal: tuple[int, ...] = ()
        """The committed set and what is added by a proposal on its way."""
        self.lost: tuple[int, ...] = ()
        """Followers that live and cannot keep a log, for want of room or a sound disk, as the controller knows. One may
        go on fetching from the same offset: nobody waits for it, and it is not proposed before it has a place."""
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
        """The controller says so. What a new leader knew of its followers is from another epoch, and forgotten.

        With ``is_known`` its answer to a proposal has said the same of ``isr``: a later proposal goes on.
        """
        now_ms = self._around.now_ms()
        known = {} if is_new_leader else self.followers
        self.replicas = replicas
        self.lost = lost
        self.followers = {}
        for broker_id in replicas:
            if broker_id == self._around.node_id:
                continue
            follower = known.get(broker_id)
            if follower is None:
                follower = Follower(broker_id, now_ms if broker_id in isr else now_ms - self._around.lag_ms_max - 1)
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
        """The proposal has come to nothing."""
        self.maximal = self.isr
        self.pending = None

    # the high watermark

    def is_under(self, min_insync_replicas: int) -> bool:
        return len(self.isr) < min(min_insync_replicas, len(self.replicas))

    def watermark(self, own_offset: int, leader_end_offset: int) -> int:
        """How far the high watermark may go, when we count with ``own_offset``; ``leader_end_offset`` is our end."""
        watermark = own_offset
        maximal = self.maximal
        for follower in self.followers.values():
            if follower.end_offset < watermark and (
                follower.broker_id in maximal or self._may_join(follower, leader_end_offset)
            ):
                watermark = follower.end_offset
        return watermark

    def _may_join(self, follower: Follower, leader_end_offset: int) -> bool:
        around = self._around
        return (
            follower.is_caught_up(leader_end_offset, around.now_ms(), around.lag_ms_max)
            and follower.broker_id not in self.lost
            and around.is_eligible(follower.broker_id, follower.broker_epoch)
        )

    def grows(self, old_end_offset: int) -> None:
        for follower in self.followers.values():
            follower.left_behind(old_end_offset)

    # progress and changes

    def follower(self, broker_id: int, broker_epoch: int) -> Follower:
        """The follower that fetches; NOT_LEADER_OR_FOLLOWER for one that is none, or for its former life."""
        follower = self.followers.get(broker_id)
        if follower is None:
            raise NotLeaderOrFollower(f"broker {broker_id} is no replica of the partition")
        if broker_epoch != NO_BROKER_EPOCH and broker_epoch < follower.broker_epoch:
            raise NotLeaderOrFollower(f"broker {broker_id} has registered anew since epoch {broker_epoch}")
        return follower

    def expansion(self, follower: Follower, high_watermark: int, epoch_start_offset: int) -> tuple[int, ...] | None:
        """The ISR with this follower, when it belongs there now and nothing is proposed yet."""
        if (
            self.pending is not None
            or follower.broker_id in self.isr
            or follower.end_offset < high_watermark
            or follower.end_offset < epoch_start_offset
            or follower.broker_id in self.lost
            or not self._around.is_eligible(follower.broker_id, follower.broker_epoch)
        ):
            return None
        return (*self.isr, follower.broker_id)

    def reduction(self, leader_end_offset: int) -> tuple[int, ...] | None:
        """The ISR without those who have lagged for too long, when there are any and nothing is proposed yet."""
        if self.pending is not None:
            return None
        around = self._around
        now_ms = around.now_ms()
        kept = []
        for broker_id in self.isr:
            follower = self.followers.get(broker_id)
            if follower is None or follower.is_caught_up(leader_end_offset, now_ms, around.lag_ms_max):
                kept.append(broker_id)
        return tuple(kept) if len(kept) < len(self.isr) else None

    def without(self, broker_id: int) -> tuple[int, ...] | None:
        """The ISR without one of its members, when nothing is proposed yet."""
        if self.pending is not None:
            return None
        return tuple(member for member in self.isr if member != broker_id)

    def propose(self, isr: tuple[int, ...], leader_epoch: int, partition_epoch: int) -> IsrProposal:
        around = self._around
        members = tuple(
            Member(broker_id, self.followers[broker_id].broker_epoch)
            if broker_id in self.followers
            else Member(broker_id, around.broker_epoch())
            for broker_id in isr
        )
        self.pending = IsrProposal(members, leader_epoch, partition_epoch, grows=len(isr) > len(self.isr))
        self.maximal = (*self.isr, *(broker_id for broker_id in isr if broker_id not in self.isr))
        return self.pending
