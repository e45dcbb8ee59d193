"""A member of a group with server-side assignment (KIP-848): a loop of ConsumerGroupHeartbeat requests.

    out ──begin_join──▶ joining ──first answer──▶ member ──▶ ... each answer may bring another assignment
                            ▲                        │
                            └─── fenced ◀────────────┘   (its partitions are lost; it joins again with none)

One task sends heartbeats: at the interval the broker sets, and at once when the subscription or the owned partitions
have changed. A new assignment from a response waits until the program polls; then the consumer revokes what is not in
it, takes what is new, and calls `owns`, which the next heartbeat reports to the broker. Fields that have not changed
since the last answered request are omitted; after an error a full request is sent.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from typing import Final

from millbeck.client.cluster import COORDINATOR, Cluster
from millbeck.client.consumer.config import ConsumerConfig
from millbeck.client.consumer.membership import JoinResult
from millbeck.client.errors import Disconnected, RequestTimeout, heartbeat_error
from millbeck.client.idle_check import IdleCheck
from millbeck.client.retry import Deadline
from millbeck.kernel.errors import (
    ApiError,
    CoordinatorNotAvailable,
    FencedMemberEpoch,
    NotCoordinator,
    StaleMemberEpoch,
    UnknownMemberId,
    UnreleasedInstanceId,
)
from millbeck.kernel.ids import TopicPartition
from millbeck.wire.messages.consumer_groups import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    ConsumerGroupHeartbeatTopicPartitions,
)

log = logging.getLogger(__name__)

JOIN_EPOCH: Final = 0
LEAVE_EPOCH: Final = -1
LEAVE_STATIC_EPOCH: Final = -2
NO_EPOCH: Final = -1
LOSS_POLL_SECONDS: Final = 0.1
SILENCE_SECONDS_MAX: Final = 45.0
"""The time without a response after which the coordinator has expired this member's session."""


class ConsumerMembership:
    is_cooperative = True
    """The rebalance is cooperative: partitions that stay assigned are read without interruption."""
    is_joining = False

    def __init__(
        self,
        cluster: Cluster,
        config: ConsumerConfig,
        *,
        pattern: Callable[[], str | None],
        on_change: Callable[[], None],
    ) -> None:
        """``pattern`` is the regular expression for the broker to match topics with, None if topics are named."""
        assert config.group_id is not None
        self.group_id = config.group_id
        self.member_id = _new_member_id(cluster)
        self.generation = NO_EPOCH
        """The member epoch, which is sent in offset commits."""
        self.needs_join = False
        self.is_lost = False
        self.on_heartbeat: Callable[[], None] = lambda: None
        """Called after each heartbeat that was answered."""
        self.failure: ApiError | None = None
        self.idle = IdleCheck(config.max_poll_interval_ms)
        self._cluster = cluster
        self._config = config
        self._pattern = pattern
        self._on_change = on_change
        self._loop = asyncio.get_running_loop()
        cluster.watch_loop(self.group_id, config.heartbeat_interval_ms / 1000)
        self._beating: asyncio.Task[None] | None = None
        self._wake = asyncio.Event()
        self._topics: list[str] = []
        self._owned: list[TopicPartition] = []
        self._ids: dict[str, bytes] = {}
        """Topic ids by name, also of assigned topics that have since been deleted."""
        self._assigned: list[TopicPartition] | None = None
        """The newest assignment from a response, not yet taken over by the consumer."""
        self._is_full = True
        """Whether the next request must contain all fields."""
        self._sent_owned: list[TopicPartition] | None = None
        self._sent_topics: tuple[list[str], str | None] | None = None
        self._interval_s = config.heartbeat_interval_ms / 1000

    @property
    def is_member(self) -> bool:
        return self.generation > JOIN_EPOCH

    def request_join(self, reason: str) -> None:
        """Send the subscription to the broker after the next poll."""
        if not self.needs_join:
            self.needs_join = True
            self._on_change()

    def begin_join(self, topics: Sequence[str], owned: Sequence[TopicPartition]) -> None:
        self.needs_join = False
        self._topics = sorted(topics)
        self._owned = sorted(owned)
        self._wake.set()
        if self._beating is None:
            self._beating = self._cluster.spawn(self._beat())

    def take_joined(self) -> JoinResult | None:
        """The new assignment, returned once."""
        assigned, self._assigned = self._assigned, None
        return None if assigned is None else JoinResult(assigned, None)

    def owns(self, partitions: Sequence[TopicPartition]) -> None:
        """Record the partitions owned after the consumer has revoked and taken over what the assignment requires."""
        self._owned = sorted(partitions)
        if self._owned != self._sent_owned:
            self._wake.set()

    def note(self, error: ApiError) -> None:
        """Handle an error of an offset commit that concerns the membership."""
        if isinstance(error, UnknownMemberId | FencedMemberEpoch):
            self._lose()
        elif isinstance(error, StaleMemberEpoch):
            self._wake.set()
        elif isinstance(error, NotCoordinator | CoordinatorNotAvailable | Disconnected | RequestTimeout):
            self._cluster.forget_coordinator(self.group_id)

    # heartbeats

    async def _beat(self) -> None:
        failures = 0
        heard_s = self._loop.time()
        while self.failure is None:
            if not self.is_lost and self.idle.is_over():
                log.warning("left group %s: no poll within max.poll.interval.ms", self.group_id)
                await self._send_leave(LEAVE_EPOCH)
                self._lose()
            if self.is_lost:
                # The program must be notified of the loss before this member accepts a new assignment.
                await asyncio.sleep(LOSS_POLL_SECONDS)
                continue
            self._wake.clear()
            try:
                await self._beat_once()
                failures, heard_s = 0, self._loop.time()
                self.on_heartbeat()
            except (FencedMemberEpoch, UnknownMemberId) as error:
                log.info("group %s: %s", self.group_id, error)
                self._lose()
                continue
            except ApiError as error:
                failures += 1
                self._is_full = True
                if not error.retriable and not isinstance(error, UnreleasedInstanceId):
                    self._fail(error)
                    return
                self._cluster.forget_coordinator(self.group_id)
                if self.is_member and self._loop.time() - heard_s > SILENCE_SECONDS_MAX:
                    self._lose()
                await asyncio.sleep(self._cluster.backoff.delay_s(failures))
                continue
            await self._pause(self._interval_s)

    async def _pause(self, seconds: float) -> None:
        try:
            async with asyncio.timeout(seconds):
                await self._wake.wait()
        except TimeoutError:
            return
        self._wake.clear()

    async def _beat_once(self) -> None:
        deadline = Deadline(self._config.request_timeout_ms / 1000)
        request = self._request()
        owned, topics = self._owned, (self._topics, self._pattern())
        response = await self._send(request, deadline)
        if response.error_code:
            raise heartbeat_error(response.error_code, response.error_message, request.member_epoch)
        self._is_full = False
        self._sent_owned, self._sent_topics = owned, topics
        self.generation = response.member_epoch
        self._interval_s = response.heartbeat_interval_ms / 1000
        if response.assignment is not None:
            self._assigned = await self._named(response.assignment.topic_partitions, deadline)
            self._on_change()

    def _request(self) -> ConsumerGroupHeartbeatRequest:
        is_joining = not self.is_member
        is_full = self._is_full or is_joining
        pattern = self._pattern()
        request = ConsumerGroupHeartbeatRequest(
            group_id=self.group_id,
            member_id=self.member_id,
            member_epoch=JOIN_EPOCH if is_joining else self.generation,
            instance_id=self._config.group_instance_id,
        )
        if is_full:
            request.rack_id = self._config.client_rack or None
            request.rebalance_timeout_ms = self._config.max_poll_interval_ms
            request.server_assignor = self._config.group_remote_assignor
        if is_full or self._sent_topics != (self._topics, pattern):
            request.subscribed_topic_names = list(self._topics) if pattern is None else []
            # An empty pattern removes the previous one.
            had_pattern = self._sent_topics is not None and self._sent_topics[1] is not None
            request.subscribed_topic_regex = pattern if pattern is not None else "" if had_pattern else None
        if is_full or self._sent_owned != self._owned:
            request.topic_partitions = [] if is_joining else self._with_ids(self._owned)
        return request

    async def _send(self, request: ConsumerGroupHeartbeatRequest, deadline: Deadline) -> ConsumerGroupHeartbeatResponse:
        node_id = await self._cluster.coordinator(self.group_id, deadline=deadline)
        return await self._cluster.request(
            request, ConsumerGroupHeartbeatResponse, deadline=deadline, node_id=node_id, purpose=COORDINATOR
        )

    def _with_ids(self, partitions: Sequence[TopicPartition]) -> list[ConsumerGroupHeartbeatTopicPartitions]:
        topics: dict[bytes, list[int]] = {}
        for partition in partitions:
            topics.setdefault(self._ids[partition.topic], []).append(partition.partition)
        return [ConsumerGroupHeartbeatTopicPartitions(topic_id, numbers) for topic_id, numbers in topics.items()]

    async def _named(
        self, topics: Sequence[ConsumerGroupHeartbeatTopicPartitions], deadline: Deadline
    ) -> list[TopicPartition]:
        """The partitions by topic name; a topic whose id no broker knows has been deleted and is left out."""
        if any(self._cluster.metadata.topic_name(topic.topic_id) is None for topic in topics):
            await self._cluster.ask_metadata(None if self._pattern() is not None else self._topics, deadline)
        found: list[TopicPartition] = []
        for topic in topics:
            name = self._cluster.metadata.topic_name(topic.topic_id)
            if name is not None:
                self._ids[name] = topic.topic_id
                found += [TopicPartition(name, number) for number in topic.partitions]
        return found

    def _reset(self) -> None:
        self.generation = NO_EPOCH
        self._is_full = True
        self._assigned = None
        self._owned = []

    def _lose(self) -> None:
        self._reset()
        self.is_lost = True
        self._on_change()

    def _fail(self, error: ApiError) -> None:
        self._reset()
        self.is_lost = True
        self.failure = error
        self._on_change()

    # leaving

    async def leave(self, reason: str, leaves_group: bool | None = None) -> None:
        """Stop; by default a static member leaves temporarily (epoch -2), a dynamic one for good."""
        if self._beating is not None:
            self._beating.cancel()
            self._beating = None
        if self._config.group_instance_id is not None and not leaves_group:
            await self._send_leave(LEAVE_STATIC_EPOCH)
        elif leaves_group is not False:
            await self._send_leave(LEAVE_EPOCH)
        self._reset()
        self.needs_join = False

    async def _send_leave(self, epoch: int) -> None:
        if not self.is_member:
            return
        deadline = Deadline(self._config.request_timeout_ms / 1000)
        request = ConsumerGroupHeartbeatRequest(
            group_id=self.group_id,
            member_id=self.member_id,
            member_epoch=epoch,
            instance_id=self._config.group_instance_id,
        )
        try:
            await self._send(request, deadline)
        except ApiError as error:
            # The coordinator removes the member anyway when the session expires.
            log.debug("leaving group %s: %s", self.group_id, error)


def _new_member_id(cluster: Cluster) -> str:
    digits = cluster.environment.randomness.uuid().hex()
    return f"{digits[:8]}-{digits[8:12]}-{digits[12:16]}-{digits[16:20]}-{digits[20:]}"
