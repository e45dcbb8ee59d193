"""`GroupMember`: a member of a classic group of any protocol type, such as a worker of a service that distributes work.

    member = GroupMember(
        {"bootstrap.servers": "127.0.0.1:9092", "group.id": "workers"},
        protocol_type="jobs",
        protocols={"even": b"this member's metadata"},
        assign=lambda protocol, metadata: {member_id: b"its part" for member_id in metadata},
        on_assigned=start,
        on_revoked=stop,
    )
    async with member:
        await member.wait_failed()

The group's leader calls ``assign`` with the metadata of all members by their ids, and gives each its part.
``on_revoked`` is called before every rebalance and ``on_assigned`` after it; both may be coroutines. Heartbeats are
sent in the background.
"""

from __future__ import annotations

import asyncio
import inspect
import math
from collections.abc import Awaitable, Callable, Mapping
from types import TracebackType
from typing import Any, NamedTuple, Self

from millbeck.client.classic_member import ClassicMember, MemberSettings
from millbeck.client.cluster import Cluster
from millbeck.client.config import CLIENT, ClientConfig, Value
from millbeck.client.idle_check import IdleCheck
from millbeck.client.lifecycle import LoopBound, merged
from millbeck.client.retry import Deadline
from millbeck.kernel.environment import Environment
from millbeck.kernel.errors import ApiError, InvalidConfig
from millbeck.kernel.options import INT, STRING, Importance, at_least, option
from millbeck.wire.messages.classic_groups import JoinGroupResponse, SyncGroupRequestAssignment


class GroupMemberConfig(ClientConfig):
    group_id = option(
        "group.id", STRING, None, scope=CLIENT, importance=Importance.HIGH, doc="The group this member joins."
    )
    group_instance_id = option(
        "group.instance.id",
        STRING,
        None,
        scope=CLIENT,
        doc="The id for static membership: a member that returns within the session timeout keeps its part.",
    )
    session_timeout_ms = option(
        "session.timeout.ms",
        INT,
        45_000,
        valid=at_least(1),
        scope=CLIENT,
        importance=Importance.HIGH,
        doc="A member without a heartbeat for this long is removed from the group.",
    )
    heartbeat_interval_ms = option(
        "heartbeat.interval.ms", INT, 3_000, valid=at_least(1), scope=CLIENT, doc="The interval of heartbeats."
    )
    rebalance_timeout_ms = option(
        "rebalance.timeout.ms",
        INT,
        60_000,
        valid=at_least(1),
        scope=CLIENT,
        doc="The maximum time for members to rejoin when the group rebalances.",
    )

    def check(self) -> None:
        if not self.group_id:
            raise InvalidConfig("a group member needs group.id")


class MemberAssignment(NamedTuple):
    """This member's part of one generation."""

    protocol: str
    data: bytes
    generation: int
    member_id: str
    is_leader: bool


Assign = Callable[[str, Mapping[str, bytes]], Mapping[str, bytes]]
"""Protocol and the members' metadata by member id; returns each member's part."""


class _Membership(ClassicMember[MemberAssignment]):
    def __init__(
        self,
        cluster: Cluster,
        config: MemberSettings,
        protocol_type: str,
        *,
        protocols: Callable[[], Mapping[str, bytes]],
        assign: Assign,
        on_change: Callable[[], None],
    ) -> None:
        super().__init__(cluster, config, protocol_type, on_change=on_change)
        self.idle = IdleCheck(math.inf)
        self._offer = protocols
        self._assign_all = assign
        self._is_leader = False

    def begin(self) -> None:
        self._is_leader = False
        self._begin()

    def _protocols(self) -> dict[str, bytes]:
        return dict(self._offer())

    async def _assign(self, response: JoinGroupResponse, deadline: Deadline) -> list[SyncGroupRequestAssignment]:
        self._is_leader = True
        if response.skip_assignment:
            return []
        metadata = {member.member_id: member.metadata for member in response.members}
        parts = self._assign_all(response.protocol_name or "", metadata)
        return [SyncGroupRequestAssignment(member_id, parts.get(member_id, b"")) for member_id in metadata]

    def _removed(self) -> None:
        self.is_lost = True
        self._on_change()

    def _taken(self, protocol: str, assignment: bytes) -> MemberAssignment:
        return MemberAssignment(protocol, assignment, self.generation, self.member_id, self._is_leader)


class GroupMember(LoopBound):
    """The member; it is started by ``async with`` or `start`."""

    def __init__(
        self,
        settings: Mapping[str, object] | None = None,
        *,
        protocol_type: str,
        protocols: Mapping[str, bytes] | Callable[[], Mapping[str, bytes]],
        assign: Assign,
        on_assigned: Callable[[MemberAssignment], Awaitable[None] | None],
        on_revoked: Callable[[], Awaitable[None] | None],
        on_lost: Callable[[], Awaitable[None] | None] | None = None,
        environment: Environment | None = None,
        **named: Value,
    ) -> None:
        """``protocols`` has the metadata by protocol name; a function is called for each rebalance. With ``on_lost``,
        that is called instead of ``on_revoked`` when the group has removed this member already."""
        super().__init__(environment)
        self.config = GroupMemberConfig.parse(merged(settings, named))
        self._protocol_type = protocol_type
        self._protocols = protocols
        self._assign = assign
        self._on_assigned = on_assigned
        self._on_revoked = on_revoked
        self._on_lost = on_lost
        self._changed = asyncio.Event()
        self._is_assigned = False

    def _start(self) -> None:
        self.cluster = Cluster(self.environment, self.config)
        self.cluster.start_upkeep()
        self._member = _Membership(
            self.cluster,
            self.config,
            self._protocol_type,
            protocols=self._offered,
            assign=self._assign,
            on_change=self._changed.set,
        )
        self._member.request_join("the member has started")
        self._following = self.cluster.spawn(self._follow())

    def _offered(self) -> Mapping[str, bytes]:
        return self._protocols() if callable(self._protocols) else self._protocols

    def start(self) -> None:
        self._enter()

    async def __aenter__(self) -> Self:
        self._enter()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.close()

    def rejoin(self, reason: str) -> None:
        """Request a rebalance, because this member's metadata or the work to assign has changed."""
        self._enter()
        self._member.request_join(reason)

    async def wait_failed(self) -> None:
        """Wait until the membership ends with an error, which is raised."""
        self._enter()
        await asyncio.shield(self._following)

    async def _follow(self) -> None:
        member = self._member
        while True:
            await self._changed.wait()
            self._changed.clear()
            if member.is_lost:
                member.is_lost = False
                await self._lose()
            if member.failure is not None:
                raise member.failure
            if member.needs_join and not member.is_joining:
                await self._revoke()
                member.begin()
            joined = member.take_joined()
            if joined is not None:
                self._is_assigned = True
                await _wait(self._on_assigned(joined))
                if member.needs_join:
                    # Requested while this member was joining.
                    self._changed.set()

    async def _revoke(self) -> None:
        if self._is_assigned:
            self._is_assigned = False
            await _wait(self._on_revoked())

    async def _lose(self) -> None:
        if self._on_lost is None:
            await self._revoke()
            return
        # Also when a rebalance is under way: the part of before may be somebody else's by now.
        self._is_assigned = False
        await _wait(self._on_lost())

    async def close(self) -> None:
        """Give up the assignment and leave the group."""
        if not self.is_started:
            return
        self._enter()
        self._following.cancel()
        await asyncio.wait([self._following])
        try:
            await self._revoke()
            await self._member.leave("the member was closed")
        except ApiError:
            pass
        finally:
            await self.cluster.close()


async def _wait(outcome: Any) -> None:
    if inspect.isawaitable(outcome):
        await outcome
