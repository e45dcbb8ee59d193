"""Leader election by the group protocol, as Confluent's instances do it.

Instances are members of a classic group of type ``sr``. Each joins with its address. The leader of the group chooses
the registry's leader in the assignment for all members. It keeps the previous leader, so that a new member does not
move the leadership.

    {"version":1,"host":"r1","port":8081,"master_eligibility":true,"scheme":"http"}        the metadata of a member
    {"version":1,"error":0,"master":"sr-1-…","master_identity":{…}}                        its assignment

The election only determines which instance should write. The log ensures that no other instance can (`writer`): an
instance that was paused for an hour still assumes that it leads.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, NamedTuple

from millbeck.client.cluster import COORDINATOR, Cluster
from millbeck.client.retry import Deadline
from millbeck.client.schemas.log_records import Json, UnreadableRecord, decode_json, encode_json
from millbeck.kernel.errors import (
    ApiError,
    IllegalGeneration,
    InconsistentGroupProtocol,
    MemberIdRequired,
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

log = logging.getLogger(__name__)

PROTOCOL_TYPE: Final = "sr"
PROTOCOL: Final = "v0"
_NO_GENERATION: Final = -1
_VERSION: Final = 1
_JOIN_MARGIN_S: Final = 5.0
_PORT_MAX: Final = 65535


class Identity(NamedTuple):
    """The address of an instance."""

    host: str
    port: int
    scheme: str = "http"
    is_eligible: bool = True

    @property
    def url(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.scheme}://{host}:{self.port}"

    def encode(self) -> bytes:
        return encode_json(self.members())

    def members(self) -> Json:
        return {
            "version": _VERSION,
            "host": self.host,
            "port": self.port,
            "master_eligibility": self.is_eligible,
            "scheme": self.scheme,
        }

    @classmethod
    def decode(cls, members: object) -> Identity:
        if not isinstance(members, dict):
            raise UnreadableRecord("an identity is not an object")
        host, port, scheme = members.get("host"), members.get("port"), members.get("scheme") or "http"
        if not isinstance(host, str) or not isinstance(scheme, str):
            raise UnreadableRecord("an identity has no host")
        if not isinstance(port, int) or not 0 <= port <= _PORT_MAX:
            raise UnreadableRecord("an identity has no port")
        return cls(host, port, scheme, members.get("master_eligibility") is True)


class Elected(NamedTuple):
    """The result of an election."""

    identity: Identity | None
    """The elected leader; None if no instance may lead."""
    is_me: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class ElectionSettings:
    group_id: str = "schema-registry"
    session_timeout_ms: int = 10_000
    heartbeat_interval_ms: int = 3_000


def choose(members: dict[str, Identity], current: Identity | None) -> str | None:
    """Choose the leader: the previous one, else the first by address; None if no member is eligible."""
    eligible = sorted((identity, member_id) for member_id, identity in members.items() if identity.is_eligible)
    for identity, member_id in eligible:
        if identity == current:
            return member_id
    return eligible[0][1] if eligible else None


class Election:
    """Takes part in the election until cancelled. ``on_change`` is called with each result, and with None when the
    membership is lost."""

    def __init__(
        self,
        cluster: Cluster,
        identity: Identity,
        settings: ElectionSettings,
        on_change: Callable[[Elected | None], None],
    ) -> None:
        self._cluster = cluster
        self._identity = identity
        self._settings = settings
        self._on_change = on_change
        self.on_error: Callable[[ApiError], None] = lambda error: None
        """Called with an error that does not pass by itself."""
        self._loop = asyncio.get_running_loop()
        self._member_id = ""
        self._generation = _NO_GENERATION
        self._current: Identity | None = None
        self._answered_s = self._loop.time()
        """The send time of the last request whose response confirmed the membership."""
        self._is_member = False

    @property
    def has_lease(self) -> bool:
        """Whether the group cannot have removed this member yet, because its session timeout has not passed."""
        return self._is_member and self._loop.time() - self._answered_s < self._settings.session_timeout_ms / 1000

    async def run(self) -> None:
        failures = 0
        while True:
            try:
                elected = await self._join()
                self._is_member = True
                failures = 0
                self._on_change(elected)
                await self._stay()
                continue
            except (MemberIdRequired, RebalanceInProgress):
                continue
            except (UnknownMemberId, IllegalGeneration) as error:
                log.info("no longer a member of group %s: %s", self._settings.group_id, error)
                self._on_membership_lost()
            except ApiError as error:
                failures += 1
                self._cluster.forget_coordinator(self._settings.group_id)
                log.debug("election in group %s: %s", self._settings.group_id, error)
                if not error.retriable:
                    self.on_error(error)
            self._resign_when_silent()
            await asyncio.sleep(self._cluster.backoff.delay_s(max(1, failures)))

    def _on_membership_lost(self) -> None:
        self._member_id, self._generation, self._is_member = "", _NO_GENERATION, False
        self._on_change(None)

    def _resign_when_silent(self) -> None:
        """Resign when no coordinator has answered for the length of the session timeout."""
        if self._loop.time() - self._answered_s > self._settings.session_timeout_ms / 1000:
            self._is_member = False
            self._on_change(None)

    async def _join(self) -> Elected:
        settings = self._settings
        deadline = Deadline(settings.session_timeout_ms / 1000)
        node_id = await self._cluster.coordinator(settings.group_id, deadline=deadline)
        connection = await self._cluster.connection(node_id, COORDINATOR, deadline=deadline)
        # The coordinator answers when all members have joined, at most after the rebalance timeout.
        timeout_s = settings.session_timeout_ms / 1000 + _JOIN_MARGIN_S
        response = await connection.request(
            JoinGroupRequest(
                group_id=settings.group_id,
                session_timeout_ms=settings.session_timeout_ms,
                rebalance_timeout_ms=settings.session_timeout_ms,
                member_id=self._member_id,
                protocol_type=PROTOCOL_TYPE,
                protocols=[JoinGroupRequestProtocol(name=PROTOCOL, metadata=self._identity.encode())],
            ),
            JoinGroupResponse,
            timeout_s=timeout_s,
        )
        if response.error_code:
            if response.error_code == MemberIdRequired.code:
                self._member_id = response.member_id
            raise from_code(response.error_code)
        self._member_id, self._generation = response.member_id, response.generation_id
        is_group_leader = response.leader == response.member_id
        asked_s = self._loop.time()
        synced = await connection.request(
            SyncGroupRequest(
                group_id=settings.group_id,
                generation_id=self._generation,
                member_id=self._member_id,
                protocol_type=PROTOCOL_TYPE,
                protocol_name=PROTOCOL,
                assignments=self._assign(response) if is_group_leader else [],
            ),
            SyncGroupResponse,
            timeout_s=timeout_s,
        )
        if synced.error_code:
            raise from_code(synced.error_code)
        self._answered_s = asked_s
        return self._read(synced.assignment)

    def _assign(self, response: JoinGroupResponse) -> list[SyncGroupRequestAssignment]:
        members: dict[str, Identity] = {}
        for entry in response.members:
            try:
                members[entry.member_id] = Identity.decode(decode_json(entry.metadata))
            except UnreadableRecord as error:
                log.warning("member %s of group %s: %s", entry.member_id, self._settings.group_id, error)
        chosen = choose(members, self._current)
        assigned: Json = {"version": _VERSION, "error": 0, "master": chosen, "master_identity": None}
        if chosen is not None:
            assigned["master_identity"] = members[chosen].members()
        return [SyncGroupRequestAssignment(entry.member_id, encode_json(assigned)) for entry in response.members]

    def _read(self, assignment: bytes) -> Elected:
        try:
            assigned = decode_json(assignment)
            if assigned.get("error") not in (0, None):
                log.error("group %s has two instances with the same address: see host.name", self._settings.group_id)
                return Elected(None, False)
            if assigned.get("master") is None:
                return Elected(None, False)
            self._current = Identity.decode(assigned.get("master_identity"))
        except UnreadableRecord as error:
            raise InconsistentGroupProtocol(
                f"the group's leader sent an assignment that cannot be read: {error}"
            ) from error
        return Elected(self._current, assigned["master"] == self._member_id)

    async def _stay(self) -> None:
        """Send heartbeats; returns when the group rebalances, raises when the membership is lost."""
        while True:
            await asyncio.sleep(self._settings.heartbeat_interval_ms / 1000)
            asked_s = self._loop.time()
            try:
                await self._beat()
                self._answered_s = asked_s
                if not self._is_member:
                    return  # it is a member still, after all: join again to hear who leads
            except RebalanceInProgress:
                self._answered_s = asked_s
                return
            except ApiError as error:
                if not error.retriable:
                    raise
                self._cluster.forget_coordinator(self._settings.group_id)
                self._resign_when_silent()

    async def _beat(self) -> None:
        deadline = Deadline(self._settings.session_timeout_ms / 1000)
        node_id = await self._cluster.coordinator(self._settings.group_id, deadline=deadline)
        request = HeartbeatRequest(
            group_id=self._settings.group_id, generation_id=self._generation, member_id=self._member_id
        )
        response = await self._cluster.request(
            request, HeartbeatResponse, deadline=deadline, node_id=node_id, purpose=COORDINATOR
        )
        if response.error_code:
            raise from_code(response.error_code)

    async def leave(self) -> None:
        """Leave the group, so that another instance is elected at once."""
        if not self._member_id:
            return
        deadline = Deadline(self._settings.heartbeat_interval_ms / 1000)
        try:
            node_id = await self._cluster.coordinator(self._settings.group_id, deadline=deadline)
            request = LeaveGroupRequest(
                group_id=self._settings.group_id,
                member_id=self._member_id,
                members=[MemberIdentity(member_id=self._member_id)],
            )
            await self._cluster.request(
                request, LeaveGroupResponse, deadline=deadline, node_id=node_id, purpose=COORDINATOR
            )
        except ApiError as error:
            log.debug("leaving group %s: %s", self._settings.group_id, error)
