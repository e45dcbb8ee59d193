"""The group of workers: a classic group of type ``connect``, whose leader assigns connectors.

Rebalances stop nothing: a worker goes on with what it has until its new part says otherwise, or until the group has
removed it. Workers of Apache Kafka offer other protocols, so the coordinator keeps the two apart: the later one is
refused, with a line that says why.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping
from typing import Final

from millbeck.client.group_member import GroupMember, MemberAssignment
from millbeck.kernel.environment import Environment
from millbeck.kernel.errors import ApiError, InconsistentGroupProtocol
from millbeck.pipeline.connect.worker.assignment import PROTOCOL, PROTOCOL_TYPE, Assignor, Part, WorkerMetadata
from millbeck.pipeline.connect.worker.config import Parsed

log = logging.getLogger(__name__)

_NOBODY: Final = Part(leader_url="", is_leader=False)


class ForeignWorkers(ApiError):
    """The group has workers of other software."""


class WorkerGroup:
    """This worker's membership. ``connectors`` gives all connectors there are, ``last_workers`` who had them."""

    def __init__(
        self,
        environment: Environment,
        parsed: Parsed,
        *,
        info: Callable[[], WorkerMetadata],
        connectors: Callable[[], list[str]],
        last_workers: Callable[[], Mapping[str, str]],
        on_change: Callable[[], None],
    ) -> None:
        config = parsed.config
        self.part: Part | None = None
        """None until the first rebalance, and after the group has removed this worker."""
        self.generation = 0
        self._group_id = config.group_id
        self._info = info
        self._connectors = connectors
        self._last_workers = last_workers
        self._on_change = on_change
        self._assignor = Assignor(config.scheduled_rebalance_max_delay_ms / 1000)
        self._assigned: set[str] = set()
        self._timer: asyncio.TimerHandle | None = None
        self._loop = asyncio.get_running_loop()
        self._member = GroupMember(
            {
                **parsed.client,
                "group.id": config.group_id,
                "session.timeout.ms": config.session_timeout_ms,
                "heartbeat.interval.ms": config.heartbeat_interval_ms,
                "rebalance.timeout.ms": config.rebalance_timeout_ms,
            },
            protocol_type=PROTOCOL_TYPE,
            protocols=lambda: {PROTOCOL: info().encode()},
            assign=self._assign,
            on_assigned=self._take,
            on_revoked=lambda: None,
            on_lost=self._lost,
            environment=environment,
        )

    def start(self) -> None:
        self._member.start()

    async def wait_failed(self) -> None:
        """Wait until the membership ends with an error. Raises `ForeignWorkers`, `ApiError`."""
        try:
            await self._member.wait_failed()
        except InconsistentGroupProtocol as error:
            raise ForeignWorkers(
                f"the group {self._group_id} has workers of Apache Kafka Connect, which share no work with these: stop"
                " them first (their connectors and offsets are taken over), or set another group.id"
            ) from error

    async def close(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        await self._member.close()

    def check(self) -> None:
        """Ask the group whether this worker still belongs to it: another one has taken over what it does."""
        if self.part is not None:
            self._member.rejoin("another worker has taken over a task")

    def look(self) -> None:
        """As the leader, rebalance if a connector is new."""
        if self.part is not None and self.part.is_leader and set(self._connectors()) - self._assigned:
            self._member.rejoin("there are new connectors")

    def _assign(self, protocol: str, metadata: Mapping[str, bytes]) -> Mapping[str, bytes]:
        members: dict[str, WorkerMetadata] = {}
        for member, data in metadata.items():
            try:
                members[member] = WorkerMetadata.decode(data)
            except (ValueError, KeyError, TypeError) as error:
                log.warning("worker %s is left out: %s", member, error)
        now_s = self._loop.time()
        parts = self._assignor.assign(members, self._connectors(), self._last_workers(), now_s)
        self._assigned = {name for names in parts.values() for name in names} | set(self._assignor.waiting)
        self._schedule(now_s)
        leader_url = self._info().url
        owners = {name: members[member].url for member, names in parts.items() for name in names}
        return {
            member: Part(
                leader_url=leader_url,
                is_leader=members[member].url == leader_url,
                connectors=names,
                owners=owners,
            ).encode()
            for member, names in parts.items()
        }

    def _schedule(self, now_s: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        next_s = self._assignor.next_s()
        if next_s is not None:
            log.info("connectors of a worker that is gone wait for it for %.0f s", next_s - now_s)
            self._timer = self._loop.call_at(next_s, self._member.rejoin, "a worker has not come back")

    def _take(self, assigned: MemberAssignment) -> None:
        try:
            self.part = Part.decode(assigned.data)
        except (ValueError, KeyError, TypeError) as error:
            log.warning("an assignment cannot be read: %s", error)
            self.part = _NOBODY
        if not self.part.is_leader and self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self.generation = assigned.generation
        log.info("generation %d: this worker has %s", assigned.generation, ", ".join(self.part.connectors) or "nothing")
        self._on_change()

    def _lost(self) -> None:
        log.warning("the group has removed this worker: its connectors stop")
        self.part = None
        self._on_change()
