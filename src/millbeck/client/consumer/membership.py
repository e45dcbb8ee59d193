"""A member of a group with the classic protocol: joins, gets an assignment, sends heartbeats, leaves.

    out ──begin_join──▶ joining ──joined──▶ member ──rebalance, new subscription──▶ needs to join again
                            ▲                  │
                            └── lost ◀─────────┘   (the group went on without it; its partitions are lost)

Joining is one task that runs JoinGroup and SyncGroup until they succeed; the leader computes the assignment in between.
It runs in the background, but the consumer decides when it starts and when its result is taken over, so that no
partition changes owner between two polls. A second task sends heartbeats and detects a rebalance, and that the program
has not polled for max.poll.interval.ms.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Sequence
from typing import Final, NamedTuple

from millbeck.client.cluster import COORDINATOR, Cluster
from millbeck.client.consumer.assignors import NO_GENERATION, Assignor, SubscribedMember, assignor_named
from millbeck.client.consumer.config import ConsumerConfig
from millbeck.client.consumer.idle_check import IdleCheck
from millbeck.client.errors import Disconnected, RequestTimeout
from millbeck.client.group_protocol import (
    PROTOCOL_TYPE,
    by_topic,
    decode_assignment,
    decode_subscription,
    encode_assignment,
    encode_subscription,
    flattened,
)
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
from millbeck.kernel.ids import TopicPartition
from millbeck.wire.errors import DecodeError
from millbeck.wire.messages.classic_groups import (
    ConsumerProtocolSubscription,
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

_JOIN_MARGIN_S: Final = 5.0
_REASON_LENGTH_MAX: Final = 255


class JoinResult(NamedTuple):
    """The result of a rebalance for this member."""

    partitions: list[TopicPartition]
    assignor: Assignor | None
    """The assignor that the group chose; None if the broker assigned."""


class ClassicGroupMembership:
    def __init__(self, cluster: Cluster, config: ConsumerConfig, *, on_change: Callable[[], None]) -> None:
        assert config.group_id is not None
        self.group_id = config.group_id
        self.member_id = ""
        self.generation = NO_GENERATION
        self.needs_join = False
        self.is_lost = False
        """The group has removed this member, so its partitions are lost; set until the consumer has handled that."""
        self.failure: ApiError | None = None
        """The fatal error that ended the membership."""
        self.is_cooperative = all(assignor_named(name).is_cooperative for name in config.assignors)
        """Whether partitions are kept during a rebalance (cooperative protocol)."""
        self.idle = IdleCheck(config.max_poll_interval_ms)
        self._cluster = cluster
        self._config = config
        self._on_change = on_change
        self._loop = asyncio.get_running_loop()
        self._joining: asyncio.Task[JoinResult] | None = None
        self._beating: asyncio.Task[None] | None = None
        self._previous: list[TopicPartition] = []
        """The last assignment of this member, which sticky assignors keep."""
        self._previous_generation = NO_GENERATION
        self._counts: dict[str, int] | None = None
        """Partition counts of the topics this member assigned as leader; a change requires a rebalance."""
        self._reason = ""
        cluster.on_update.append(self._check_partition_counts)

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

    def owns(self, partitions: Sequence[TopicPartition]) -> None:
        """Record the partitions the consumer has taken over; sent to the group with the next JoinGroup."""

    # joining

    def begin_join(self, topics: Sequence[str], owned: Sequence[TopicPartition]) -> None:
        """Start joining in a task; `take_joined` returns the result."""
        assert self._joining is None
        self.needs_join = False
        self._stop_beating()
        self._joining = self._cluster.spawn(self._join(list(topics), list(owned)))
        self._joining.add_done_callback(lambda _: self._on_change())

    def take_joined(self) -> JoinResult | None:
        """The result of joining, returned once; None while there is none. Raises the error that ended it."""
        task = self._joining
        if task is None or not task.done():
            return None
        self._joining = None
        if task.cancelled():
            return None
        return task.result()

    async def _join(self, topics: list[str], owned: list[TopicPartition]) -> JoinResult:
        failures = 0
        while True:
            try:
                joined = await self._join_once(topics, owned)
                self._previous = joined.partitions
                self._previous_generation = self.generation
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
                    owned = []
                elif not error.retriable:
                    raise
                else:
                    self._cluster.forget_coordinator(self.group_id)
            await asyncio.sleep(self._cluster.backoff.delay_s(failures))

    async def _join_once(self, topics: list[str], owned: list[TopicPartition]) -> JoinResult:
        deadline = Deadline(self._config.default_api_timeout_ms / 1000)
        node_id = await self._cluster.coordinator(self.group_id, deadline=deadline)
        connection = await self._cluster.connection(node_id, COORDINATOR, deadline=deadline)
        request = JoinGroupRequest(
            group_id=self.group_id,
            session_timeout_ms=self._config.session_timeout_ms,
            rebalance_timeout_ms=self._config.max_poll_interval_ms,
            member_id=self.member_id,
            group_instance_id=self._config.group_instance_id,
            protocol_type=PROTOCOL_TYPE,
            protocols=[
                JoinGroupRequestProtocol(name=name, metadata=self._subscription(name, topics, owned))
                for name in self._config.assignors
            ],
            reason=self._reason or None,
        )
        # The coordinator delays its answer until all members have joined, for up to the rebalance timeout.
        timeout_s = max(self._config.request_timeout_ms, self._config.max_poll_interval_ms) / 1000 + _JOIN_MARGIN_S
        response = await connection.request(request, JoinGroupResponse, timeout_s=timeout_s)
        if response.error_code:
            if response.error_code == MemberIdRequired.code:
                self.member_id = response.member_id
            raise from_code(response.error_code)
        self.member_id = response.member_id
        self.generation = response.generation_id
        if response.protocol_name not in self._config.assignors:
            raise InconsistentGroupProtocol(f"the group chose {response.protocol_name!r}, which was not offered")
        assignor = assignor_named(response.protocol_name)
        assignments: list[SyncGroupRequestAssignment] = []
        self._counts = None
        if response.leader == response.member_id:
            assignments = await self._assign(response, assignor, deadline)
        sync = SyncGroupRequest(
            group_id=self.group_id,
            generation_id=self.generation,
            member_id=self.member_id,
            group_instance_id=self._config.group_instance_id,
            protocol_type=PROTOCOL_TYPE,
            protocol_name=response.protocol_name,
            assignments=assignments,
        )
        synced = await connection.request(sync, SyncGroupResponse, timeout_s=timeout_s)
        if synced.error_code:
            raise from_code(synced.error_code)
        try:
            return JoinResult(decode_assignment(synced.assignment), assignor)
        except DecodeError as error:
            raise InconsistentGroupProtocol(f"the leader sent an assignment that cannot be read: {error}") from error

    def _subscription(self, name: str, topics: list[str], owned: list[TopicPartition]) -> bytes:
        return encode_subscription(
            ConsumerProtocolSubscription(
                topics=sorted(topics),
                user_data=assignor_named(name).user_data(self._previous, self._previous_generation),
                owned_partitions=by_topic(owned),
                generation_id=self._previous_generation if owned else NO_GENERATION,
                rack_id=self._config.client_rack or None,
            )
        )

    async def _assign(
        self, response: JoinGroupResponse, assignor: Assignor, deadline: Deadline
    ) -> list[SyncGroupRequestAssignment]:
        """As the leader, compute the assignment of all members."""
        members: list[SubscribedMember] = []
        for entry in response.members:
            try:
                subscription = decode_subscription(entry.metadata)
            except DecodeError as error:
                raise InconsistentGroupProtocol(
                    f"member {entry.member_id} sent a subscription that cannot be read: {error}"
                ) from error
            members.append(
                SubscribedMember(
                    member_id=entry.member_id,
                    instance_id=entry.group_instance_id,
                    topics=tuple(subscription.topics),
                    owned=tuple(flattened(subscription.owned_partitions)),
                    generation=subscription.generation_id,
                    user_data=subscription.user_data,
                )
            )
        topics = sorted({topic for member in members for topic in member.topics})
        self._cluster.add_topics(topics)
        await self._cluster.ask_metadata(topics, deadline)
        self._counts = self._partition_counts(topics)
        if response.skip_assignment:
            return []
        existing = {topic: count for topic, count in self._counts.items() if count}
        return [
            SyncGroupRequestAssignment(member_id=member_id, assignment=encode_assignment(partitions))
            for member_id, partitions in assignor.assign(members, existing).items()
        ]

    def _partition_counts(self, topics: Iterable[str]) -> dict[str, int]:
        known = self._cluster.metadata.topics
        return {topic: known[topic].partition_count if topic in known else 0 for topic in topics}

    def _check_partition_counts(self) -> None:
        if self._counts is not None and not self.is_joining and self._counts != self._partition_counts(self._counts):
            self.request_join("the partitions of the group's topics changed")

    # staying

    async def _beat(self) -> None:
        interval_s = self._config.heartbeat_interval_ms / 1000
        heard_s = self._loop.time()
        while True:
            await asyncio.sleep(interval_s)
            if self.idle.is_over():
                log.warning("left group %s: no poll within max.poll.interval.ms", self.group_id)
                await self._say_goodbye("no poll within max.poll.interval.ms")
                self._lose("no poll within max.poll.interval.ms")
                return
            try:
                await self._beat_once()
                heard_s = self._loop.time()
            except RebalanceInProgress:
                heard_s = self._loop.time()
                self.request_join("the group rebalances")
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
            self.request_join("the group rebalances")
        elif isinstance(error, FencedInstanceId):
            self._fail(error)
        elif isinstance(error, UnknownMemberId | IllegalGeneration):
            self._lose(str(error))
        elif isinstance(error, NotCoordinator | CoordinatorNotAvailable | Disconnected | RequestTimeout):
            self._cluster.forget_coordinator(self.group_id)

    def _reset(self) -> None:
        self.member_id = ""
        self.generation = NO_GENERATION
        self._counts = None

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

    async def leave(self, reason: str) -> None:
        """Leave the group; a static member sends no LeaveGroup, as it may return."""
        self._stop_beating()
        if self._joining is not None:
            self._joining.cancel()
            self._joining = None
        if self._config.group_instance_id is None:
            await self._say_goodbye(reason)
        self._reset()
        self.needs_join = False
        self._previous = []
        self._cluster.on_update.remove(self._check_partition_counts)

    async def _say_goodbye(self, reason: str) -> None:
        if not self.member_id or self._config.group_instance_id is not None:
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
                    group_id=self.group_id, members=[MemberIdentity(member_id=self.member_id, reason=reason)]
                )
            )
            await connection.request(request, LeaveGroupResponse, timeout_s=self._cluster.request_timeout_s(deadline))
        except ApiError as error:
            # The coordinator removes the member anyway when the session expires.
            log.debug("leaving group %s: %s", self.group_id, error)
