"""A member of a share group: sends heartbeats and receives its assignment."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from typing import Final

from millbeck.client.cluster import COORDINATOR, Cluster
from millbeck.client.errors import heartbeat_error
from millbeck.client.retry import Deadline
from millbeck.kernel.errors import ApiError, FencedMemberEpoch, UnknownMemberId
from millbeck.kernel.ids import uuid_text
from millbeck.wire.messages.share_groups import ShareGroupHeartbeatRequest, ShareGroupHeartbeatResponse

log = logging.getLogger(__name__)

JOIN_EPOCH: Final = 0
HELD_SECONDS_MAX: Final = 3.0
"""A program that holds the event loop for longer is told so."""
LEAVE_EPOCH: Final = -1


class ShareMembership:
    def __init__(self, cluster: Cluster, group_id: str, rack: str | None, on_change: Callable[[], None]) -> None:
        self._cluster = cluster
        self._group_id = group_id
        self._rack = rack
        self._on_change = on_change
        self.member_id = uuid_text(cluster.environment.randomness.uuid())
        self.epoch = JOIN_EPOCH
        self.assigned: dict[bytes, list[int]] = {}
        self.failure: ApiError | None = None
        self._topics: list[str] = []
        self._sent_topics: list[str] | None = None
        self._wake = asyncio.Event()
        self._beating: asyncio.Task[None] | None = None
        cluster.watch_loop(group_id, HELD_SECONDS_MAX)

    def subscribe(self, topics: Sequence[str]) -> None:
        self._topics = sorted(topics)
        self._wake.set()
        if self._beating is None:
            self._beating = self._cluster.spawn(self._beat())

    async def _beat(self) -> None:
        failures = 0
        interval_s = 0.0
        while self.failure is None:
            self._wake.clear()
            try:
                interval_s = await self._beat_once()
                failures = 0
            except (FencedMemberEpoch, UnknownMemberId) as error:
                log.info("share group %s: %s", self._group_id, error)
                self._begin_anew()
                continue
            except ApiError as error:
                failures += 1
                self._sent_topics = None
                if not error.retriable:
                    self.failure = error
                    self._on_change()
                    return
                self._cluster.forget_coordinator(self._group_id)
                await asyncio.sleep(self._cluster.backoff.delay_s(failures))
                continue
            try:
                async with asyncio.timeout(interval_s):
                    await self._wake.wait()
            except TimeoutError:
                continue

    async def _beat_once(self) -> float:
        """Send one heartbeat; returns the interval until the next."""
        deadline = Deadline(self._cluster.config.request_timeout_ms / 1000)
        topics = self._topics
        is_full = self.epoch == JOIN_EPOCH or self._sent_topics != topics
        request = ShareGroupHeartbeatRequest(
            self._group_id, self.member_id, self.epoch, self._rack or None, list(topics) if is_full else None
        )
        response = await self._send(request, deadline)
        if response.error_code:
            raise heartbeat_error(response.error_code, response.error_message, request.member_epoch)
        self._sent_topics = topics
        self.epoch = response.member_epoch
        if response.assignment is not None:
            self.assigned = {each.topic_id: each.partitions for each in response.assignment.topic_partitions}
            self._on_change()
        return response.heartbeat_interval_ms / 1000

    async def _send(self, request: ShareGroupHeartbeatRequest, deadline: Deadline) -> ShareGroupHeartbeatResponse:
        node_id = await self._cluster.coordinator(self._group_id, deadline=deadline)
        return await self._cluster.request(
            request, ShareGroupHeartbeatResponse, deadline=deadline, node_id=node_id, purpose=COORDINATOR
        )

    def _begin_anew(self) -> None:
        self.epoch = JOIN_EPOCH
        self._sent_topics = None
        self.assigned = {}
        self._on_change()

    async def leave(self) -> None:
        if self._beating is not None:
            self._beating.cancel()
            self._beating = None
        if self.epoch == JOIN_EPOCH:
            return
        deadline = Deadline(self._cluster.config.request_timeout_ms / 1000)
        try:
            await self._send(ShareGroupHeartbeatRequest(self._group_id, self.member_id, LEAVE_EPOCH), deadline)
        except ApiError as error:
            # The coordinator removes the member anyway when the session expires.
            log.debug("leaving share group %s: %s", self._group_id, error)
        self.epoch = JOIN_EPOCH
        self._sent_topics = None
        self.assigned = {}
