"""Interfaces that share groups need: topics, settings and the share coordinator."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from millbeck.kernel.ids import Uuid


class TopicShape(Protocol):
    """The properties of a topic that share groups need."""

    @property
    def topic_id(self) -> Uuid: ...

    @property
    def name(self) -> str: ...

    @property
    def partition_count(self) -> int: ...


class Topics(Protocol):
    """The existing topics. ``version`` increases when they change."""

    version: int

    def shape(self, name: str) -> TopicShape | None: ...

    def name_of(self, topic_id: Uuid) -> str | None: ...

    def metadata_hash(self, names: Iterable[str]) -> int:
        """Hash that changes when one of these topics is created, deleted or extended; 0 for no topics."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MembershipSettings:
    """Dynamic configuration of one group."""

    session_timeout_ms: int = 45_000
    heartbeat_interval_ms: int = 5000
    assignment_interval_ms: int = 1000


class PartitionStart(NamedTuple):
    """A share partition to initialize, with its start offset."""

    topic_id: Uuid
    partition: int
    start_offset: int


Place = tuple[Uuid, int]


class StateInitializer(Protocol):
    """Sends requests to the share coordinator."""

    def initialize(self, group_id: str, state_epoch: int, beginnings: list[PartitionStart]) -> None:
        """Initialize share partitions; the successful ones are reported to ``ShareGroups.initialized``."""
