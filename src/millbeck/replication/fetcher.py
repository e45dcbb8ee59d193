"""What a follower asks one leader, and what it does with the answers; without the connection.

A fetcher copies any number of partitions from one leader, one request at a time, in an incremental fetch session: after
the first request it names only what has changed, so an idle fetcher costs nothing per partition.

    request = fetcher.request()             # None: nothing to ask now; look again at `due_ms`, or after a step
    steps = fetcher.replied(response)       # records are in the logs; what is left needs time, and the driver
    fetcher.failed()                        # the connection is gone: the next request begins a new session

States of a partition. *Fetching*: in the session. *Resting*: after an error, out of the session until its time comes.
*Busy*: out of the session while its log is cut, flushed or compared with the leader's (`Step`); `resume` ends that.
A partition whose epoch the leader has left behind is *fenced*: it waits for the metadata to say who leads.

With ``flush.messages=1`` a fetch says what is on the disk: a partition with unflushed batches holds the next request
back.
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
from millbeck.storage.following import UnexpectedAppendOffset
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
"""How long a throttled partition stays out of requests before it is looked at again."""
_EPOCH_MAX: Final = 0x7FFFFFFF
_SESSION_ERRORS: Final = (FetchSessionIdNotFound.code, InvalidFetchSessionEpoch.code, FetchSessionTopicIdError.code)

logger = logging.getLogger(__name__)

Key = tuple[Uuid, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchLimits:
    """The ``replica.fetch.*`` settings."""

    wait_ms_max: int = 500
    size_bytes_min: int = 1
    partition_size_bytes_max: int = 1024 * 1024
    size_bytes_max: int = 10 * 1024 * 1024
    backoff_ms: int = 1000


class State(Enum):
    FETCHING = "fetching"
    RESTING = "resting"
    BUSY = "busy"
    FENCED = "fenced"


class Step:
    """Something to be done for one partition before it is fetched again."""

    __slots__ = ("leader_epoch", "partition")

    def __init__(self, partition: Partition) -> None:
        self.partition = partition
        self.leader_epoch = partition.leader_epoch

    @property
    def is_wanted(self) -> bool:
        """Whether the partition still follows the leader for whose sake the step was asked for."""
        return not self.partition.is_leader and self.partition.leader_epoch == self.leader_epoch


class Truncate(Step):
    """Cut the log to ``offset``, or start it over there."""

    __slots__ = ("offset", "starts_over")

    def __init__(self, partition: Partition, offset: int, *, starts_over: bool = False) -> None:
        super().__init__(partition)
        self.offset = offset
        self.starts_over = starts_over


class FindOffsets(Step):
    """Ask the leader where its log begins and ends, and give that to `Fetcher.offsets_found`."""

    __slots__ = ()


class AwaitFlush(Step):
    """Flush the log; other partitions wait for that, too."""

    __slots__ = ()


class Followed:
    """One partition of a fetcher. ``told`` is what the leader knows of it in the present session."""

    __slots__ = ("lag", "partition", "rest_until_ms", "state", "step", "told")

    def __init__(self, partition: Partition) -> None:
        self.partition = partition
        self.lag = 0
        """Records between our end and the leader's high watermark, as of its last answer."""
        self.state = State.FETCHING
        self.rest_until_ms = 0
        self.step: Step | None = None
        """What keeps it busy."""
        self.told: FetchPartition | None = None


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
        is_held_back: Callable[[Partition], bool] = lambda partition: False,
        copied: Callable[[Partition, int], None] = lambda partition, size_bytes: None,
    ) -> None:
        """``now_ms`` is a monotonic clock, ``wall_ms`` stamps appends. ``is_held_back`` says whether a partition's
        replication is throttled for now; ``copied`` is told what came for each."""
        self.leader_id = leader_id
        self.limits = limits
        self._node_id = node_id
        self._now_ms = now_ms
        self._wall_ms = wall_ms
        self._broker_epoch = broker_epoch
        self._is_held_back = is_held_back
        self._copied = copied
        self._followed: dict[Key, Followed] = {}
        self._changed: dict[Key, Followed] = {}
        """In the session, or to come into it, with something to tell."""
        self._resting: dict[Key, Followed] = {}
        self._forgotten: dict[Key, None] = {}
        """In the leader's session, and to leave it."""
        self._unflushed: dict[Key, None] = {}
        self._session_id = NO_SESSION
        self._session_epoch = 0
        self.bytes_in = 0

    def __len__(self) -> int:
        return len(self._followed)

    @property
    def followed(self) -> list[Followed]:
        return list(self._followed.values())

    @property
    def partitions(self) -> list[Partition]:
        return [followed.partition for followed in self._followed.values()]

    def state_of(self, partition: Partition) -> State | None:
        followed = self._followed.get(_key(partition))
        return None if followed is None else followed.state

    # who is followed

    def add(self, partition: Partition) -> Step | None:
        """Follow a partition from the end of its log on; one that is known starts anew, in its present epoch."""
        self.remove(partition)
        key = _key(partition)
        followed = self._followed[key] = Followed(partition)
        return self._go_on(key, followed)

    def _go_on(self, key: Key, followed: Followed) -> Step | None:
        partition = followed.partition
        if _fetch_offset(partition) < partition.log.end_offset:
            self._unflushed[key] = None
            return self._busy(key, followed, AwaitFlush(partition))
        self._changed[key] = followed
        return None

    def remove(self, partition: Partition) -> None:
        key = _key(partition)
        followed = self._followed.pop(key, None)
        if followed is not None:
            self._leave_session(key, followed)
            self._resting.pop(key, None)
            self._unflushed.pop(key, None)

    def resume(self, step: Step, error: ApiError | None = None) -> None:
        """A step is done, or has failed; either way the partition is fetched again, in the second case later."""
        key = _key(step.partition)
        followed = self._followed.get(key)
        if followed is None or followed.step is not step:
            return
        followed.step = None
        self._unflushed.pop(key, None)
        if error is not None:
            self._rest(key, followed, str(error) or type(error).__name__)
            return
        followed.state = State.FETCHING
        self._changed[key] = followed

    def offsets_found(self, step: FindOffsets, start_offset: int, end_offset: int) -> Truncate | None:
        """The leader's log spans these offsets: how ours has to be cut to go on; None when it goes on as it is."""
        followed = self._followed.get(_key(step.partition))
        log = step.partition.log
        truncate: Truncate | None = None
        if end_offset < log.end_offset:
            truncate = Truncate(step.partition, end_offset)
        elif start_offset > log.end_offset:
            truncate = Truncate(step.partition, start_offset, starts_over=True)
        if truncate is None or followed is None or followed.step is not step:
            self.resume(step)
            return None
        followed.step = truncate
        return truncate

    # asking

    @property
    def due_ms(self) -> int | None:
        """When the next resting partition wants to be asked for."""
        return min((followed.rest_until_ms for followed in self._resting.values()), default=None)

    @property
    def has_questions(self) -> bool:
        """Whether some partition is to be asked for now; none is while another waits for its flush."""
        return not self._unflushed and any(each.state is State.FETCHING for each in self._followed.values())

    def request(self) -> FetchRequest | None:
        """The next request. None when there is nothing to ask for, or something is to be flushed first."""
        self._wake_rested()
        if self._unflushed:
            return None
        if self._session_id == NO_SESSION:
            self._forgotten.clear()
            self._changed = {
                key: followed for key, followed in self._followed.items() if followed.state is State.FETCHING
            }
        topics: dict[Uuid, FetchTopic] = {}
        for key, followed in list(self._changed.items()):
            if self._is_held_back(followed.partition):
                self._rest(key, followed, "its replication is throttled", THROTTLED_MS)
                continue
            asked = self._ask(followed.partition)
            if asked == followed.told:
                continue
            followed.told = asked
            topic = topics.get(key[0])
            if topic is None:
                topic = topics[key[0]] = FetchTopic(topic_id=key[0])
            topic.partitions.append(asked)
        self._changed.clear()
        forgotten = self._take_forgotten()
        if not topics and not any(followed.told is not None for followed in self._followed.values()):
            # The session is left to its end at the leader; a new one begins when there is something to fetch.
            self._session_id = NO_SESSION
            self._session_epoch = 0
            return None
        limits = self.limits
        return FetchRequest(
            replica_state=ReplicaState(self._node_id, self._broker_epoch()),
            max_wait_ms=limits.wait_ms_max,
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
                followed.state = State.FETCHING
                self._changed[key] = followed

    # answers

    def failed(self) -> None:
        """There will be no answer, or one that cannot be read: the next request begins a new session."""
        self._session_id = NO_SESSION
        self._session_epoch = 0
        for followed in self._followed.values():
            followed.told = None

    def replied(self, response: FetchResponse) -> list[Step]:
        """Put what came into the logs; the steps that partitions need before they can go on."""
        if response.error_code:
            self.failed()
            if response.error_code not in _SESSION_ERRORS:
                for key, followed in self._followed.items():
                    if followed.state is State.FETCHING:
                        self._rest(key, followed, _error(response.error_code).__name__)
            return []
        if response.session_id != NO_SESSION:
            self._session_id = response.session_id
            self._session_epoch = 1 if self._session_epoch == _EPOCH_MAX else self._session_epoch + 1
        steps: list[Step] = []
        for topic in response.responses:
            for result in topic.partitions:
                key = (topic.topic_id, result.partition_index)
                known = self._followed.get(key)
                step = None if known is None else self._take(key, known, result)
                if step is not None:
                    steps.append(step)
        if response.session_id == NO_SESSION:
            # None was granted: everything is named again with every request.
            self.failed()
        return steps

    def _take(self, key: Key, followed: Followed, result: FetchedPartition) -> Step | None:
        partition = followed.partition
        if followed.state is not State.FETCHING or partition.is_leader:
            return None
        told = followed.told
        if (
            told is None
            or told.fetch_offset != _fetch_offset(partition)
            or told.current_leader_epoch != partition.leader_epoch
        ):
            # The answer to a question that would be another one now.
            self._changed[key] = followed
            return None
        if result.error_code:
            return self._refused(key, followed, _error(result.error_code))
        if result.diverging_epoch.epoch >= 0:
            leader = EpochEnd(result.diverging_epoch.epoch, result.diverging_epoch.end_offset)
            return self._busy(key, followed, Truncate(partition, truncation_offset(partition.log, leader)))
        return self._append(key, followed, result)

    def _append(self, key: Key, followed: Followed, result: FetchedPartition) -> Step | None:
        partition = followed.partition
        try:
            if result.records:
                partition.append_as_follower(result.records, self._wall_ms())
                self.bytes_in += len(result.records)
                self._copied(partition, len(result.records))
            partition.leader_said(result.high_watermark, result.log_start_offset)
            followed.lag = max(0, result.high_watermark - partition.log.end_offset)
        except (UnexpectedAppendOffset, ApiError) as error:
            if partition.log.is_offline:
                self.remove(partition)
                return None
            self._rest(key, followed, str(error))
            return None
        return self._go_on(key, followed)

    def _refused(self, key: Key, followed: Followed, error: type[ApiError]) -> Step | None:
        if error is OffsetOutOfRange:
            return self._busy(key, followed, FindOffsets(followed.partition))
        if error is FencedLeaderEpoch:
            followed.state = State.FENCED
            self._leave_session(key, followed)
            return None
        self._rest(key, followed, error.__name__)
        return None

    def _busy(self, key: Key, followed: Followed, step: Step) -> Step:
        followed.state = State.BUSY
        followed.step = step
        if isinstance(step, AwaitFlush):
            # It stays in the session: nothing is asked before the flush has ended.
            self._changed.pop(key, None)
        else:
            self._leave_session(key, followed)
        return step

    def _rest(self, key: Key, followed: Followed, reason: str, rest_ms: int | None = None) -> None:
        if rest_ms is None:
            logger.info(
                "%s rests before it fetches from broker %s again: %s", followed.partition.name, self.leader_id, reason
            )
        followed.state = State.RESTING
        followed.rest_until_ms = self._now_ms() + (self.limits.backoff_ms if rest_ms is None else rest_ms)
        self._resting[key] = followed
        self._leave_session(key, followed)

    def _leave_session(self, key: Key, followed: Followed) -> None:
        self._changed.pop(key, None)
        if followed.told is not None:
            followed.told = None
            if self._session_id != NO_SESSION:
                self._forgotten[key] = None


def _key(partition: Partition) -> Key:
    return partition.topic_id, partition.name.partition


def _fetch_offset(partition: Partition) -> int:
    """What the leader may count on: everything below is in our log, and on our disk where that is asked for."""
    return partition.log.flushed_offset if partition.waits_for_flush else partition.log.end_offset


def _error(code: int) -> type[ApiError]:
    return by_code.get(code, UnknownServerError)
