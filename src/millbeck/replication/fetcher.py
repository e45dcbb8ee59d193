"""Replica fetcher: builds a follower's fetch requests to one leader and applies the responses; does no I/O.

A fetcher copies any number of partitions from one leader, one request at a time, in an incremental fetch session:
after the first request it lists only changed partitions, so an idle fetcher costs nothing per partition.

    request = fetcher.request()    # None: nothing to fetch now; call again at `due_ms`, or after a `resume`
    steps = fetcher.replied(response)    # records are appended; the driver runs the remaining steps
    fetcher.failed()      # the connection is lost: the next request begins a new session

States of a partition. *Fetching*: in the session. *Resting*: out of the session after an error, until its backoff
ends. *Busy*: not fetched while its log is truncated, flushed or compared (`FetchEffect`); `resume` ends that.
*Fenced*: its leader epoch is older than the leader's, so it waits for new metadata.

With ``flush.messages=1`` the fetch offset is the flushed offset: a partition with unflushed batches delays the next
request.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import Final

from millbeck.kernel.errors import (
    ApiError,
    FencedLeaderEpoch,
    FetchSessionIdNotFound,
    FetchSessionTopicIdError,
    InvalidFetchSessionEpoch,
    OffsetOutOfRange,
    UnknownServerError,
    by_code,
)
from millbeck.kernel.ids import Uuid
from millbeck.replication.divergence import EpochEnd, truncation_offset
from millbeck.replication.partition import Partition
from millbeck.storage.follower_append import UnexpectedAppendOffset
from millbeck.wire.messages.fetch import (
    FetchedPartition,
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    ForgottenTopic,
    ReplicaState,
)

NO_SESSION: Final = 0
THROTTLED_MS: Final = 200
"""Backoff of a throttled partition before it is checked again."""
_EPOCH_MAX: Final = 0x7FFFFFFF
_SESSION_ERRORS: Final = (FetchSessionIdNotFound.code, InvalidFetchSessionEpoch.code, FetchSessionTopicIdError.code)

logger = logging.getLogger(__name__)

Key = tuple[Uuid, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchLimits:
    """The ``replica.fetch.*`` settings, and the maximum number of partitions per request, which costs time on both
    event loops.

    The leader does not delay a request that has not examined all changed partitions, and the next one continues.
    """

    wait_ms_max: int = 500
    size_bytes_min: int = 1
    partition_size_bytes_max: int = 1024 * 1024
    size_bytes_max: int = 10 * 1024 * 1024
    backoff_ms: int = 1000
    looked_at_max: int = 250


class FetcherState(Enum):
    FETCHING = "fetching"
    RESTING = "resting"
    BUSY = "busy"
    FENCED = "fenced"


class FetchEffect:
    """A step that must be run for one partition before it is fetched again."""

    __slots__ = ("leader_epoch", "partition")

    def __init__(self, partition: Partition) -> None:
        self.partition = partition
        self.leader_epoch = partition.leader_epoch

    @property
    def is_wanted(self) -> bool:
        """Whether the partition still follows the leader, in the epoch, for which the step was requested."""
        return not self.partition.is_leader and self.partition.leader_epoch == self.leader_epoch


class TruncateLog(FetchEffect):
    """Truncate the log to ``offset``, or fully, to start at ``offset``."""

    __slots__ = ("offset", "starts_over")

    def __init__(self, partition: Partition, offset: int, *, starts_over: bool = False) -> None:
        super().__init__(partition)
        self.offset = offset
        self.starts_over = starts_over


class FetchOffsets(FetchEffect):
    """Ask the leader for its log start and end offsets, and pass them to `Fetcher.on_offsets`."""

    __slots__ = ()


class WaitForFlush(FetchEffect):
    """Flush the log; requests of the fetcher wait for it."""

    __slots__ = ()


class FollowedPartition:
    """One partition of a fetcher. ``sent`` is its last entry in a request of the current session."""

    __slots__ = ("lag", "partition", "rest_until_ms", "sent", "state", "step")

    def __init__(self, partition: Partition) -> None:
        self.partition = partition
        self.lag = 0
        """The leader's high watermark minus the local log end offset, as of its last response."""
        self.state = FetcherState.FETCHING
        self.rest_until_ms = 0
        self.step: FetchEffect | None = None
        """The step that must finish before the partition is fetched again."""
        self.sent: FetchPartition | None = None


class Fetcher:
    def __init__(
        self,
        leader_id: int,
        node_id: int,
        *,
        limits: FetchLimits,
        now_ms: Callable[[], int],
        wall_ms: Callable[[], int],
        broker_epoch: Callable[[], int],
        is_throttled: Callable[[Partition], bool] = lambda partition: False,
        copied: Callable[[Partition, int], None] = lambda partition, size_bytes: None,
    ) -> None:
        """``now_ms`` is a monotonic clock, ``wall_ms`` the wall clock for appends. ``is_throttled`` returns whether a
        partition's replication is throttled; ``copied`` is called with the bytes fetched for each partition.
        """
        self.leader_id = leader_id
        self.limits = limits
        self._node_id = node_id
        self._now_ms = now_ms
        self._wall_ms = wall_ms
        self._broker_epoch = broker_epoch
        self._is_held_back = is_throttled
        self._copied = copied
        self._followed: dict[Key, FollowedPartition] = {}
        self._changed: dict[Key, FollowedPartition] = {}
        """Partitions of the session, or to be added to it, with a changed entry."""
        self._resting: dict[Key, FollowedPartition] = {}
        self._forgotten: dict[Key, None] = {}
        """Partitions to be removed from the leader's session."""
        self._unflushed: dict[Key, None] = {}
        self._session_id = NO_SESSION
        self._session_epoch = 0
        self._is_sessionless = False
        """The leader has granted no session: each request must list every partition."""
        self.bytes_in = 0

    def __len__(self) -> int:
        return len(self._followed)

    @property
    def followed(self) -> list[FollowedPartition]:
        return list(self._followed.values())

    @property
    def partitions(self) -> list[Partition]:
        return [followed.partition for followed in self._followed.values()]

    def state_of(self, partition: Partition) -> FetcherState | None:
        followed = self._followed.get(_key(partition))
        return None if followed is None else followed.state

    # Followed partitions.

    def add(self, partition: Partition) -> FetchEffect | None:
        """Follow a partition from its log end offset on; a known one starts again in its current leader epoch."""
        self.remove(partition)
        key = _key(partition)
        followed = self._followed[key] = FollowedPartition(partition)
        return self._go_on(key, followed)

    def _go_on(self, key: Key, followed: FollowedPartition) -> FetchEffect | None:
        partition = followed.partition
        if _fetch_offset(partition) < partition.log.end_offset:
            self._unflushed[key] = None
            return self._busy(key, followed, WaitForFlush(partition))
        self._changed[key] = followed
        return None

    def remove(self, partition: Partition) -> None:
        key = _key(partition)
        followed = self._followed.pop(key, None)
        if followed is not None:
            self._leave_session(key, followed)
            self._resting.pop(key, None)
            self._unflushed.pop(key, None)

    def resume(self, step: FetchEffect, error: ApiError | None = None) -> None:
        """Fetch the partition again after a step has finished; after a backoff if the step failed."""
        key = _key(step.partition)
        followed = self._followed.get(key)
        if followed is None or followed.step is not step:
            return
        followed.step = None
        self._unflushed.pop(key, None)
        if error is not None:
            self._rest(key, followed, str(error) or type(error).__name__)
            return
        followed.state = FetcherState.FETCHING
        self._changed[key] = followed

    def on_offsets(self, step: FetchOffsets, start_offset: int, end_offset: int) -> TruncateLog | None:
        """Compare the leader's start and end offsets with the local log; returns the truncation needed, or None."""
        followed = self._followed.get(_key(step.partition))
        log = step.partition.log
        truncate: TruncateLog | None = None
        if end_offset < log.end_offset:
            truncate = TruncateLog(step.partition, end_offset)
        elif start_offset > log.end_offset:
            truncate = TruncateLog(step.partition, start_offset, starts_over=True)
        if truncate is None or followed is None or followed.step is not step:
            self.resume(step)
            return None
        followed.step = truncate
        return truncate

    # Requests.

    @property
    def due_ms(self) -> int | None:
        """The time at which the next backoff of a partition ends."""
        return min((followed.rest_until_ms for followed in self._resting.values()), default=None)

    @property
    def has_fetchable_partitions(self) -> bool:
        """Whether a partition can be fetched now; none can while another one waits for its flush."""
        return not self._unflushed and any(each.state is FetcherState.FETCHING for each in self._followed.values())

    def request(self) -> FetchRequest | None:
        """The next request; None when there is nothing to fetch, or a log must be flushed first."""
        self._wake_rested()
        if self._unflushed:
            return None
        if self._session_id == NO_SESSION:
            self._forgotten.clear()
            self._changed = {
                key: followed for key, followed in self._followed.items() if followed.state is FetcherState.FETCHING
            }
        topics: dict[Uuid, FetchTopic] = {}
        left = len(self._changed) if self._is_sessionless else self.limits.looked_at_max
        for key, followed in list(self._changed.items()):
            if left == 0:
                break
            left -= 1
            del self._changed[key]
            if self._is_held_back(followed.partition):
                self._rest(key, followed, "its replication is throttled", THROTTLED_MS)
                continue
            asked = self._ask(followed.partition)
            if asked == followed.sent:
                continue
            followed.sent = asked
            topic = topics.get(key[0])
            if topic is None:
                topic = topics[key[0]] = FetchTopic(topic_id=key[0])
            topic.partitions.append(asked)
        forgotten = self._take_forgotten()
        if not topics and not any(followed.sent is not None for followed in self._followed.values()):
            # Abandon the session to expire at the leader; a new one begins when there is something to fetch.
            self._session_id = NO_SESSION
            self._session_epoch = 0
            return None
        limits = self.limits
        return FetchRequest(
            replica_state=ReplicaState(self._node_id, self._broker_epoch()),
            max_wait_ms=0 if self._changed else limits.wait_ms_max,
            min_bytes=limits.size_bytes_min,
            max_bytes=limits.size_bytes_max,
            session_id=self._session_id,
            session_epoch=self._session_epoch if self._session_id != NO_SESSION else 0,
            topics=list(topics.values()),
            forgotten_topics_data=forgotten,
        )

    def _ask(self, partition: Partition) -> FetchPartition:
        log = partition.log
        return FetchPartition(
            partition=partition.name.partition,
            current_leader_epoch=partition.leader_epoch,
            fetch_offset=_fetch_offset(partition),
            last_fetched_epoch=log.epochs.latest_epoch,
            log_start_offset=log.log_start_offset,
            partition_max_bytes=self.limits.partition_size_bytes_max,
        )

    def _take_forgotten(self) -> list[ForgottenTopic]:
        topics: dict[Uuid, ForgottenTopic] = {}
        for topic_id, index in self._forgotten:
            topic = topics.get(topic_id)
            if topic is None:
                topic = topics[topic_id] = ForgottenTopic(topic_id=topic_id)
            topic.partitions.append(index)
        self._forgotten.clear()
        return list(topics.values())

    def _wake_rested(self) -> None:
        if not self._resting:
            return
        now_ms = self._now_ms()
        for key, followed in list(self._resting.items()):
            if followed.rest_until_ms <= now_ms:
                del self._resting[key]
                followed.state = FetcherState.FETCHING
                self._changed[key] = followed

    # Responses.

    def failed(self) -> None:
        """Handle a failed request or an unreadable response: the next request begins a new session."""
        self._session_id = NO_SESSION
        self._session_epoch = 0
        for followed in self._followed.values():
            followed.sent = None

    def replied(self, response: FetchResponse) -> list[FetchEffect]:
        """Append the fetched records to the logs; returns the steps that partitions need before they continue."""
        if response.error_code:
            self.failed()
            if response.error_code not in _SESSION_ERRORS:
                for key, followed in self._followed.items():
                    if followed.state is FetcherState.FETCHING:
                        self._rest(key, followed, _error(response.error_code).__name__)
            return []
        if response.session_id != NO_SESSION:
            self._session_id = response.session_id
            self._is_sessionless = False
            self._session_epoch = 1 if self._session_epoch == _EPOCH_MAX else self._session_epoch + 1
        steps: list[FetchEffect] = []
        for topic in response.responses:
            for result in topic.partitions:
                key = (topic.topic_id, result.partition_index)
                known = self._followed.get(key)
                step = None if known is None else self._take(key, known, result)
                if step is not None:
                    steps.append(step)
        if response.session_id == NO_SESSION:
            # No session was granted: every request lists all partitions.
            self.failed()
            self._is_sessionless = True
        return steps

    def _take(self, key: Key, followed: FollowedPartition, result: FetchedPartition) -> FetchEffect | None:
        partition = followed.partition
        if followed.state is not FetcherState.FETCHING or partition.is_leader:
            return None
        sent = followed.sent
        if (
            sent is None
            or sent.fetch_offset != _fetch_offset(partition)
            or sent.current_leader_epoch != partition.leader_epoch
        ):
            # The offset or epoch has changed since the request: ignore the response and fetch again.
            self._changed[key] = followed
            return None
        if result.error_code:
            return self._refused(key, followed, _error(result.error_code))
        if result.diverging_epoch.epoch >= 0:
            leader = EpochEnd(result.diverging_epoch.epoch, result.diverging_epoch.end_offset)
            return self._busy(key, followed, TruncateLog(partition, truncation_offset(partition.log, leader)))
        return self._append(key, followed, result)

    def _append(self, key: Key, followed: FollowedPartition, result: FetchedPartition) -> FetchEffect | None:
        partition = followed.partition
        try:
            if result.records:
                partition.append_as_follower(result.records, self._wall_ms())
                self.bytes_in += len(result.records)
                self._copied(partition, len(result.records))
            partition.update_from_leader(result.high_watermark, result.log_start_offset)
            followed.lag = max(0, result.high_watermark - partition.log.end_offset)
        except (UnexpectedAppendOffset, ApiError) as error:
            if partition.log.is_offline:
                self.remove(partition)
                return None
            self._rest(key, followed, str(error))
            return None
        return self._go_on(key, followed)

    def _refused(self, key: Key, followed: FollowedPartition, error: type[ApiError]) -> FetchEffect | None:
        if error is OffsetOutOfRange:
            return self._busy(key, followed, FetchOffsets(followed.partition))
        if error is FencedLeaderEpoch:
            followed.state = FetcherState.FENCED
            self._leave_session(key, followed)
            return None
        self._rest(key, followed, error.__name__)
        return None

    def _busy(self, key: Key, followed: FollowedPartition, step: FetchEffect) -> FetchEffect:
        followed.state = FetcherState.BUSY
        followed.step = step
        if isinstance(step, WaitForFlush):
            # It stays in the session: no request is sent before the flush has finished.
            self._changed.pop(key, None)
        else:
            self._leave_session(key, followed)
        return step

    def _rest(self, key: Key, followed: FollowedPartition, reason: str, rest_ms: int | None = None) -> None:
        if rest_ms is None:
            logger.info(
                "backing off before fetching %s from broker %s again: %s",
                followed.partition.name,
                self.leader_id,
                reason,
            )
        followed.state = FetcherState.RESTING
        followed.rest_until_ms = self._now_ms() + (self.limits.backoff_ms if rest_ms is None else rest_ms)
        self._resting[key] = followed
        self._leave_session(key, followed)

    def _leave_session(self, key: Key, followed: FollowedPartition) -> None:
        self._changed.pop(key, None)
        if followed.sent is not None:
            followed.sent = None
            if self._session_id != NO_SESSION:
                self._forgotten[key] = None


def _key(partition: Partition) -> Key:
    return partition.topic_id, partition.name.partition


def _fetch_offset(partition: Partition) -> int:
    """The offset up to which this replica acknowledges records to the leader: its log end offset, or the flushed offset
    if ``flush.messages=1``."""
    return partition.log.flushed_offset if partition.waits_for_flush else partition.log.end_offset


def _error(code: int) -> type[ApiError]:
    return by_code.get(code, UnknownServerError)
