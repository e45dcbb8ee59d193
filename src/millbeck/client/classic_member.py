"""A member of a classic group of any protocol type: joins, gets an assignment, sends heartbeats, leaves.

    out ──begin_join──▶ joining ──joined──▶ member ──rebalance, new protocols──▶ needs to join again
                            ▲                  │
                            └── lost ◀─────────┘   (the group has removed it; its assignment is lost)

Joining is one task that runs JoinGroup and SyncGroup until they succeed; the leader computes the assignment in between.
It runs in the background, but its owner decides when it starts and when its result is taken over. A second task sends
heartbeats and detects a rebalance, and that the program has not polled for too long. A subclass defines the protocols
it offers, how a leader assigns, and how an assignment is decoded.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Final, Generic, Protocol, TypeVar

from millbeck.client.cluster import COORDINATOR, Cluster
from millbeck.client.errors import Disconnected, RequestTimeout
from millbeck.client.idle_check import IdleCheck
from millbeck.client.retry import Deadline
from millbeck.kernel.errors import (
    ApiError,
    CoordinatorNotAvailable,
    FencedInstanceId,
    IllegalGeneration,
    InconsistentGroupProtocol,
    MemberIdRequired,
    NotCoordinator,
    RebalanceInProgress,
    UnknownMemberId,
    from_code,
)
from millbeck.wire.messages.classic_groups import (
    HeartbeatRequest,
    HeartbeatResponse,
    JoinGroupRequest,
    JoinGroupRequestProtocol,
    JoinGroupResponse,
    LeaveGroupRequest,
    LeaveGroupResponse,
    MemberIdentity,
    SyncGroupRequest,
    SyncGroupRequestAssignment,
    SyncGroupResponse,
)

R = TypeVar("R")

log = logging.getLogger(__name__)

NO_GENERATION: Final = -1
_JOIN_MARGIN_S: Final = 5.0
_REASON_LENGTH_MAX: Final = 255


class MemberSettings(Protocol):
    @property
    def group_id(self) -> str | None: ...
    @property
    def group_instance_id(self) -> str | None: ...
    @property
    def session_timeout_ms(self) -> int: ...
    @property
    def heartbeat_interval_ms(self) -> int: ...
    @property
    def rebalance_timeout_ms(self) -> int: ...
    @property
    def request_timeout_ms(self) -> int: ...
    @property
    def default_api_timeout_ms(self) -> int: ...


class ClassicMember(Generic[R]):
    def __init__(
        self, cluster: Cluster, config: MemberSettings, protocol_type: str, *, on_change: Callable[[], None]
    ) -> None:
        assert config.group_id is not None
        self.group_id = config.group_id
        self.member_id = ""
        self.generation = NO_GENERATION
        self.needs_join = False
        self.is_lost = False
        """The group has removed this member, so its partitions are lost; set until the owner has handled that."""
        self.on_heartbeat: Callable[[], None] = lambda: None
        """Called after each heartbeat that was answered."""
        self.failure: ApiError | None = None
        """The fatal error that ended the membership."""
        self.idle = IdleCheck(config.rebalance_timeout_ms)
        self._cluster = cluster
        self._config = config
        self._protocol_type = protocol_type
        self._on_change = on_change
        self._loop = asyncio.get_running_loop()
        cluster.watch_loop(self.group_id, config.heartbeat_interval_ms / 1000)
        self._joining: asyncio.Task[R] | None = None
        self._beating: asyncio.Task[None] | None = None
        self._reason = ""

    # implemented by subclasses

    def _protocols(self) -> dict[str, bytes]:
        """The protocols offered, in order of preference, each with this member's metadata."""
        raise NotImplementedError

    async def _assign(self, response: JoinGroupResponse, deadline: Deadline) -> list[SyncGroupRequestAssignment]:
        """As the leader, compute the assignment of all members."""
        raise NotImplementedError

    def _taken(self, protocol: str, assignment: bytes) -> R:
        """Decode this member's assignment; raises an `ApiError` if it is malformed."""
        raise NotImplementedError

    def _joined(self, joined: R) -> None:
        """Called when the member has an assignment of a new generation."""

    def _removed(self) -> None:
        """Called when the group has removed this member during a join; the join continues with a new member id."""

    def _forget_assignment(self) -> None:
        """Called when the assignment that this member computed as the leader is no longer valid."""

    @property
    def is_joining(self) -> bool:
        return self._joining is not None

    @property
    def is_member(self) -> bool:
        return self.generation >= 0

    def request_join(self, reason: str) -> None:
        """Rejoin with the next poll."""
        self._reason = reason[:_REASON_LENGTH_MAX]
        if not self.needs_join:
            self.needs_join = True
            self._on_change()

    # joining

    def _begin(self) -> None:
        """Start joining in a task; `take_joined` returns the result."""
        assert self._joining is None
        self.needs_join = False
        self._stop_beating()
        self._joining = self._cluster.spawn(self._join())
        self._joining.add_done_callback(lambda _: self._on_change())

    def take_joined(self) -> R | None:
        """The result of joining, returned once; None while there is none. Raises the error that ended it."""
        task = self._joining
        if task is None or not task.done():
            return None
        self._joining = None
        if task.cancelled():
            return None
        return task.result()

    async def _join(self) -> R:
        failures = 0
        while True:
            try:
                joined = await self._join_once()
                self._joined(joined)
                # From now on the group expects heartbeats, even before the program polls again.
                self._beating = self._cluster.spawn(self._beat())
                return joined
            except ApiError as error:
                log.debug("joining group %s: %s", self.group_id, error)
                if isinstance(error, MemberIdRequired | RebalanceInProgress):
                    continue
                failures += 1
                if isinstance(error, UnknownMemberId | IllegalGeneration):
                    self._reset()
                    self._removed()
                elif not error.retriable:
                    raise
                else:
                    self._cluster.forget_coordinator(self.group_id)
            await asyncio.sleep(self._cluster.backoff.delay_s(failures))

    async def _join_once(self) -> R:
        deadline = Deadline(self._config.default_api_timeout_ms / 1000)
        node_id = await self._cluster.coordinator(self.group_id, deadline=deadline)
        connection = await self._cluster.connection(node_id, COORDINATOR, deadline=deadline)
        offered = self._protocols()
        request = JoinGroupRequest(
            group_id=self.group_id,
            session_timeout_ms=self._config.session_timeout_ms,
            rebalance_timeout_ms=self._config.rebalance_timeout_ms,
            member_id=self.member_id,
            group_instance_id=self._config.group_instance_id,
            protocol_type=self._protocol_type,
            protocols=[JoinGroupRequestProtocol(name=name, metadata=metadata) for name, metadata in offered.items()],
            reason=self._reason or None,
        )
        # The coordinator delays its response until all members have joined, for at most the rebalance timeout.
        timeout_s = max(self._config.request_timeout_ms, self._config.rebalance_timeout_ms) / 1000 + _JOIN_MARGIN_S
        response = await connection.request(request, JoinGroupResponse, timeout_s=timeout_s)
        if response.error_code:
            if response.error_code == MemberIdRequired.code:
                self.member_id = response.member_id
            raise from_code(response.error_code)
        self.member_id = response.member_id
        self.generation = response.generation_id
        chosen = response.protocol_name or ""
        if chosen not in offered:
            raise InconsistentGroupProtocol(f"the group chose {chosen!r}, which was not offered")
        assignments: list[SyncGroupRequestAssignment] = []
        self._forget_assignment()
        if response.leader == response.member_id:
            assignments = await self._assign(response, deadline)
        sync = SyncGroupRequest(
            group_id=self.group_id,
            generation_id=self.generation,
            member_id=self.member_id,
            group_instance_id=self._config.group_instance_id,
            protocol_type=self._protocol_type,
            protocol_name=chosen,
            assignments=assignments,
        )
        synced = await connection.request(sync, SyncGroupResponse, timeout_s=timeout_s)
        if synced.error_code:
            raise from_code(synced.error_code)
        return self._taken(chosen, synced.assignment)

    # staying

    async def _beat(self) -> None:
        interval_s = self._config.heartbeat_interval_ms / 1000
        heard_s = self._loop.time()
        while True:
            await asyncio.sleep(interval_s)
            if self.idle.is_over():
                log.warning("left group %s: no poll within max.poll.interval.ms", self.group_id)
                if self._config.group_instance_id is None:
                    await self._send_leave("no poll within max.poll.interval.ms")
                self._lose("no poll within max.poll.interval.ms")
                return
            try:
                await self._beat_once()
                heard_s = self._loop.time()
                self.on_heartbeat()
            except RebalanceInProgress:
                heard_s = self._loop.time()
                self.request_join("the group is rebalancing")
            except (UnknownMemberId, IllegalGeneration) as error:
                self._lose(str(error))
                return
            except FencedInstanceId as error:
                self._fail(error)
                return
            except ApiError as error:
                if not error.retriable:
                    self._fail(error)
                    return
                self._cluster.forget_coordinator(self.group_id)
                if self._loop.time() - heard_s > self._config.session_timeout_ms / 1000:
                    self._lose("no coordinator answered within session.timeout.ms")
                    return

    async def _beat_once(self) -> None:
        deadline = Deadline(self._config.session_timeout_ms / 1000)
        node_id = await self._cluster.coordinator(self.group_id, deadline=deadline)
        response = await self._cluster.request(
            HeartbeatRequest(
                group_id=self.group_id,
                generation_id=self.generation,
                member_id=self.member_id,
                group_instance_id=self._config.group_instance_id,
            ),
            HeartbeatResponse,
            deadline=deadline,
            node_id=node_id,
            purpose=COORDINATOR,
        )
        if response.error_code:
            raise from_code(response.error_code)

    def _stop_beating(self) -> None:
        if self._beating is not None:
            self._beating.cancel()
            self._beating = None

    def note(self, error: ApiError) -> None:
        """Handle an error of an offset commit that concerns the membership."""
        if isinstance(error, RebalanceInProgress):
            self.request_join("the group is rebalancing")
        elif isinstance(error, FencedInstanceId):
            self._fail(error)
        elif isinstance(error, UnknownMemberId | IllegalGeneration):
            self._lose(str(error))
        elif isinstance(error, NotCoordinator | CoordinatorNotAvailable | Disconnected | RequestTimeout):
            self._cluster.forget_coordinator(self.group_id)

    def _reset(self) -> None:
        self.member_id = ""
        self.generation = NO_GENERATION
        self._forget_assignment()

    def _lose(self, reason: str) -> None:
        self._reset()
        if self._joining is not None and self._joining.done():
            # An assignment that has not been taken over yet is lost too.
            self._joining = None
        self.is_lost = True
        self.request_join(reason)

    def _fail(self, error: ApiError) -> None:
        self._reset()
        self.is_lost = True
        self.failure = error
        self._on_change()

    # leaving

    async def leave(self, reason: str, leaves_group: bool | None = None) -> None:
        """Stop; by default a static member sends no LeaveGroup, as it may return."""
        self._stop_beating()
        if self._joining is not None:
            self._joining.cancel()
            self._joining = None
        if leaves_group or (leaves_group is None and self._config.group_instance_id is None):
            await self._send_leave(reason)
        self._reset()
        self.needs_join = False

    async def _send_leave(self, reason: str) -> None:
        if not self.member_id:
            return
        deadline = Deadline(min(self._config.request_timeout_ms, self._config.session_timeout_ms) / 1000)
        try:
            node_id = await self._cluster.coordinator(self.group_id, deadline=deadline)
            connection = await self._cluster.connection(node_id, COORDINATOR, deadline=deadline)
            is_old = connection.version_of(LeaveGroupRequest) < 3
            request = (
                LeaveGroupRequest(group_id=self.group_id, member_id=self.member_id)
                if is_old
                else LeaveGroupRequest(
                    group_id=self.group_id,
                    members=[
                        MemberIdentity(
                            member_id=self.member_id,
                            group_instance_id=self._config.group_instance_id,
                            reason=reason,
                        )
                    ],
                )
            )
            await connection.request(request, LeaveGroupResponse, timeout_s=self._cluster.request_timeout_s(deadline))
        except ApiError as error:
            # The coordinator removes the member anyway when the session expires.
            log.debug("leaving group %s: %s", self.group_id, error)
