"""One member of a classic group: the metadata it joined with, its assignment and its pending responses."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from millbeck.coordinator.group.records import GroupMember
from millbeck.coordinator.runtime.result import ResponseCallback
from millbeck.wire.messages.classic_groups import JoinGroupRequestProtocol, JoinGroupResponse, SyncGroupResponse

MEMBER_BYTES: Final = 500
PROTOCOL_BYTES: Final = 200
"""What a member, and each of its protocols, takes besides names and metadata."""
Protocols = tuple[tuple[str, bytes], ...]
"""(name, metadata), in the member's order of preference."""


def protocols_of(requested: Sequence[JoinGroupRequestProtocol]) -> Protocols:
    """The protocols of a JoinGroup request; if a name occurs twice, the first one counts."""
    found: dict[str, bytes] = {}
    for protocol in requested:
        found.setdefault(protocol.name, protocol.metadata)
    return tuple(found.items())


def size_of(protocols: Protocols, *texts: str | None) -> int:
    """About what a member with these protocols and ids takes in memory."""
    ids = sum(len(text) for text in texts if text is not None)
    return MEMBER_BYTES + ids + sum(len(name) + len(metadata) + PROTOCOL_BYTES for name, metadata in protocols)


@dataclass(slots=True, kw_only=True, eq=False)
class ClassicMember:
    member_id: str
    instance_id: str | None
    client_id: str
    client_host: str
    rebalance_timeout_ms: int
    session_timeout_ms: int
    protocols: Protocols
    assignment: bytes = b""
    is_new: bool = False
    """Whether the member has joined but has not received its member id yet, so that it cannot send heartbeats."""
    join_reply: ResponseCallback[JoinGroupResponse] | None = None
    sync_reply: ResponseCallback[SyncGroupResponse] | None = None

    @classmethod
    def from_record(cls, stored: GroupMember, protocol: str | None) -> ClassicMember:
        return cls(
            member_id=stored.member_id,
            instance_id=stored.group_instance_id,
            client_id=stored.client_id,
            client_host=stored.client_host,
            rebalance_timeout_ms=stored.session_timeout if stored.rebalance_timeout == -1 else stored.rebalance_timeout,
            session_timeout_ms=stored.session_timeout,
            protocols=((protocol or "", stored.subscription),),
            assignment=stored.assignment,
        )

    def to_record(self, protocol: str, assignment: bytes) -> GroupMember:
        return GroupMember(
            member_id=self.member_id,
            group_instance_id=self.instance_id,
            client_id=self.client_id,
            client_host=self.client_host,
            rebalance_timeout=self.rebalance_timeout_ms,
            session_timeout=self.session_timeout_ms,
            subscription=self.metadata(protocol),
            assignment=assignment,
        )

    @property
    def size_bytes(self) -> int:
        return size_of(self.protocols, self.member_id, self.instance_id, self.client_id)

    @property
    def is_static(self) -> bool:
        return self.instance_id is not None

    @property
    def is_awaiting_join(self) -> bool:
        return self.join_reply is not None

    @property
    def is_awaiting_sync(self) -> bool:
        return self.sync_reply is not None

    @property
    def has_satisfied_heartbeat(self) -> bool:
        """Whether a pending request keeps the session alive; a new member can still be removed while its request
        waits."""
        return not self.is_new and (self.is_awaiting_join or self.is_awaiting_sync)

    def metadata(self, protocol: str) -> bytes:
        for name, metadata in self.protocols:
            if name == protocol:
                return metadata
        raise AssertionError(f"member {self.member_id} does not support {protocol}")
