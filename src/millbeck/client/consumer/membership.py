"""A consumer as a member of a group with the classic protocol: subscriptions, assignors, owned partitions."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from millbeck.client.classic_member import NO_GENERATION, ClassicMember
from millbeck.client.cluster import Cluster
from millbeck.client.consumer.assignors import Assignor, SubscribedMember, assignors_named
from millbeck.client.consumer.config import ConsumerConfig
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
from millbeck.kernel.errors import InconsistentGroupProtocol
from millbeck.kernel.ids import TopicPartition
from millbeck.wire.errors import DecodeError
from millbeck.wire.messages.classic_groups import (
    ConsumerProtocolSubscription,
    JoinGroupResponse,
    SyncGroupRequestAssignment,
)


class JoinResult(NamedTuple):
    """The result of a rebalance for this member."""

    partitions: list[TopicPartition]
    assignor: Assignor | None
    """The assignor that the group chose; None if the broker assigned."""


class ClassicGroupMembership(ClassicMember[JoinResult]):
    def __init__(self, cluster: Cluster, config: ConsumerConfig, *, on_change: Callable[[], None]) -> None:
        super().__init__(cluster, config, PROTOCOL_TYPE, on_change=on_change)
        self._assignors = assignors_named(config.assignors)
        self.is_cooperative = all(assignor.is_cooperative for assignor in self._assignors.values())
        """Whether partitions are kept during a rebalance (cooperative protocol)."""
        self._rack = config.client_rack or None
        self._topics: list[str] = []
        self._owned: list[TopicPartition] = []
        self._previous: list[TopicPartition] = []
        """The last assignment of this member, which sticky assignors keep."""
        self._previous_generation = NO_GENERATION
        self._counts: dict[str, int] | None = None
        """Partition counts of the topics this member assigned as leader; a change requires a rebalance."""
        cluster.on_update.append(self._check_partition_counts)

    def owns(self, partitions: Sequence[TopicPartition]) -> None:
        """Record the partitions the consumer has taken over; sent to the group with the next JoinGroup."""

    def begin_join(self, topics: Sequence[str], owned: Sequence[TopicPartition]) -> None:
        """Start joining in a task; `take_joined` returns the result."""
        self._topics, self._owned = list(topics), list(owned)
        self._begin()

    def _protocols(self) -> dict[str, bytes]:
        return {name: self._subscription(assignor) for name, assignor in self._assignors.items()}

    def _taken(self, protocol: str, assignment: bytes) -> JoinResult:
        try:
            return JoinResult(decode_assignment(assignment), self._assignors[protocol])
        except DecodeError as error:
            raise InconsistentGroupProtocol(f"the leader sent an assignment that cannot be read: {error}") from error

    def _joined(self, joined: JoinResult) -> None:
        self._previous = joined.partitions
        self._previous_generation = self.generation

    def _removed(self) -> None:
        self._owned = []

    def _forget_assignment(self) -> None:
        self._counts = None

    async def leave(self, reason: str, leaves_group: bool | None = None) -> None:
        await super().leave(reason, leaves_group)
        self._previous = []
        self._cluster.on_update.remove(self._check_partition_counts)

    def _subscription(self, assignor: Assignor) -> bytes:
        return encode_subscription(
            ConsumerProtocolSubscription(
                topics=sorted(self._topics),
                user_data=assignor.user_data(self._previous, self._previous_generation),
                owned_partitions=by_topic(self._owned),
                generation_id=self._previous_generation if self._owned else NO_GENERATION,
                rack_id=self._rack,
            )
        )

    async def _assign(self, response: JoinGroupResponse, deadline: Deadline) -> list[SyncGroupRequestAssignment]:
        assignor = self._assignors[response.protocol_name or ""]
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
                    rack=subscription.rack_id,
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
