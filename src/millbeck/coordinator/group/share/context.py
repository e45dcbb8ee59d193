"""What share groups need of the node around them: topics, settings, and the share coordinators."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from millbeck.kernel.ids import Uuid


class Shape(Protocol):
    """A topic as far as it matters here."""

    @property
    def topic_id(self) -> Uuid: ...

    @property
    def name(self) -> str: ...

    @property
    def partition_count(self) -> int: ...


class Topics(Protocol):
    """The topics there are. ``version`` grows when they change."""

    version: int

    def shape(self, name: str) -> Shape | None: ...

    def name_of(self, topic_id: Uuid) -> str | None: ...

    def metadata_hash(self, names: Iterable[str]) -> int:
        """A number that changes when one of these topics appears, goes or grows; 0 without any."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MembershipSettings:
    """What may be set for one group."""

    session_timeout_ms: int = 45_000
    heartbeat_interval_ms: int = 5000
    assignment_interval_ms: int = 1000


class Begin(NamedTuple):
    """A share partition that is to begin, or to begin anew."""

    topic_id: Uuid
    partition: int
    start_offset: int


Place = tuple[Uuid, int]


class StateKeeper(Protocol):
    """The way to the share coordinators."""

    def initialize(self, group_id: str, state_epoch: int, beginnings: list[Begin]) -> None:
        """Let share partitions begin; those for which it succeeded come back by ``ShareGroups.initialized``."""
