"""One member of a classic group: what it told us when it joined, its assignment, and the replies it waits for."""

from __future__ import annotations

from collections.abc import Sequence

from millbeck.coordinator.group.records import GroupMember
from millbeck.coordinator.runtime.result import Reply
from millbeck.wire.messages.join_group import JoinGroupRequestProtocol, JoinGroupResponse
from millbeck.wire.messages.sync_group import SyncGroupResponse

Protocols = tuple[tuple[str, bytes], ...]
"""(name, metadata) in the member's order of preference."""


def protocols_of(requested: Sequence[JoinGroupRequestProtocol]) -> Protocols:
    """The protocols of a request; of a name given twice the first counts."""
    found: dict[str, bytes] = {}
    for protocol in requested:
        found.setdefault(protocol.name, protocol.metadata)
    return tuple(found.items())


class Member:
    __slots__ = (
        "assignment",
        "client_host",
        "client_id",
        "instance_id",
        "is_new",
        "join_reply",
        "join_version",
        "member_id",
        "protocols",
        "rebalance_timeout_ms",
        "session_timeout_ms",
        "sync_reply",
    )

    def __init__(
        self,
        *,
        member_id: str,
        instance_id: str | None,
        client_id: str,
        client_host: str,
        rebalance_timeout_ms: int,
        session_timeout_ms: int,
        protocols: Protocols,
        assignment: bytes = b"",
        is_new: bool = False,
    ) -> None:
        self.member_id = member_id
        self.instance_id = instance_id
        self.client_id = client_id
        self.client_host = client_host
        self.rebalance_timeout_ms = rebalance_timeout_ms
        self.session_timeout_ms = session_timeout_ms
        self.protocols = protocols
        self.assignment = assignment
        self.is_new = is_new
        """Joined and never told its member id: it cannot send heartbeats yet."""
        self.join_reply: Reply[JoinGroupResponse] | None = None
        self.join_version = 0
        self.sync_reply: Reply[SyncGroupResponse] | None = None

    @classmethod
    def from_record(cls, stored: GroupMember, protocol: str | None) -> Member:
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
    def is_static(self) -> bool:
        return self.instance_id is not None

    @property
    def is_awaiting_join(self) -> bool:
        return self.join_reply is not None

    @property
    def is_awaiting_sync(self) -> bool:
        return self.sync_reply is not None

    @property
    def is_excused_from_heartbeat(self) -> bool:
        """A parked request shows that the member is there; a new one may still be dropped while it waits."""
        return not self.is_new and (self.is_awaiting_join or self.is_awaiting_sync)

    def metadata(self, protocol: str) -> bytes:
        for name, metadata in self.protocols:
            if name == protocol:
                return metadata
        raise AssertionError(f"member {self.member_id} does not support {protocol}")
