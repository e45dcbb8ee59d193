"""Incremental fetch sessions (KIP-227): determines the partitions to include in a Fetch request. Pure.

The first request contains every partition and requests a session. If the broker grants one, later requests contain only
changed partitions, and list those no longer read as forgotten. Requests carry the session epoch; on any mismatch
(unknown session, wrong epoch, mix of topic names and ids) the session starts over with a full request.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

from millbeck.kernel.ids import ZERO_UUID, TopicPartition, Uuid
from millbeck.wire.messages.fetch import FetchPartition, FetchTopic, ForgottenTopic

_INITIAL_EPOCH: Final = 0
_EPOCH_MAX: Final = 0x7FFFFFFF
NO_SESSION: Final = 0


class FetchTarget(NamedTuple):
    """The fetch offset and limits of one partition."""

    offset: int
    leader_epoch: int
    size_bytes_max: int
    topic_id: Uuid = ZERO_UUID


class SessionPlan(NamedTuple):
    """The fields of a Fetch request that the session determines."""

    session_id: int
    session_epoch: int
    topics: list[FetchTopic]
    forgotten: list[ForgottenTopic]
    uses_ids: bool


class FetchSession:
    """The fetch session with one broker."""

    __slots__ = ("_epoch", "_sent", "_session_id", "_uses_ids")

    def __init__(self) -> None:
        self._sent: dict[TopicPartition, FetchTarget] = {}
        self._uses_ids = False
        self._session_id = NO_SESSION
        self._epoch = _INITIAL_EPOCH

    def reset(self) -> None:
        """Start a new session with the next request."""
        self._sent = {}
        self._session_id = NO_SESSION
        self._epoch = _INITIAL_EPOCH

    @property
    def is_open(self) -> bool:
        return self._session_id != NO_SESSION

    def plan(self, wanted: Mapping[TopicPartition, FetchTarget]) -> SessionPlan:
        """The fields to send for these partitions. `answered` or `reset` must follow."""
        uses_ids = all(target.topic_id != ZERO_UUID for target in wanted.values())
        if self.is_open and uses_ids != self._uses_ids:
            self.reset()
        self._uses_ids = uses_ids
        gone: list[tuple[TopicPartition, Uuid]] = []
        if self.is_open:
            for partition, sent in self._sent.items():
                target = wanted.get(partition)
                if target is None or target.topic_id != sent.topic_id:
                    gone.append((partition, sent.topic_id))
            changed = {partition: target for partition, target in wanted.items() if self._sent.get(partition) != target}
        else:
            changed = dict(wanted)
        self._sent = dict(wanted)
        return SessionPlan(self._session_id, self._epoch, _topics_of(changed), _forgotten_of(gone), uses_ids)

    def answered(self, session_id: int) -> None:
        """Apply a response without a top-level error, which may have granted a session."""
        if session_id == NO_SESSION:
            self.reset()
            return
        self._session_id = session_id
        self._epoch = 1 if self._epoch == _EPOCH_MAX else self._epoch + 1


def _topics_of(targets: Mapping[TopicPartition, FetchTarget]) -> list[FetchTopic]:
    topics: dict[str, FetchTopic] = {}
    for (topic, number), target in targets.items():
        entry = topics.get(topic)
        if entry is None:
            entry = topics[topic] = FetchTopic(topic=topic, topic_id=target.topic_id)
        entry.partitions.append(
            FetchPartition(
                partition=number,
                current_leader_epoch=target.leader_epoch,
                fetch_offset=target.offset,
                partition_max_bytes=target.size_bytes_max,
            )
        )
    return list(topics.values())


def _forgotten_of(gone: list[tuple[TopicPartition, Uuid]]) -> list[ForgottenTopic]:
    topics: dict[tuple[str, Uuid], ForgottenTopic] = {}
    for (topic, number), topic_id in gone:
        entry = topics.get((topic, topic_id))
        if entry is None:
            entry = topics[topic, topic_id] = ForgottenTopic(topic=topic, topic_id=topic_id)
        entry.partitions.append(number)
    return list(topics.values())
